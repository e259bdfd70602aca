"""The broker as a whole: how it stands and whether it is ready."""

from dataclasses import dataclass
from typing import Final

from delosmq.config.findings import LEFT_OUT
from delosmq.engine.api import EngineBroker
from delosmq.manage.control.host import Host, Reason
from delosmq.model.ports import Clock

_NS_PER_MS: Final = 1_000_000


@dataclass(frozen=True)
class BrokerStatus:
    """A broker as it stands.

    Attributes:
        node_id: tells it from all others, over restarts too.
        active: it takes work.
        connections: clients that are connected.
        memory_used_bytes: what all messages count together; memory_limit_bytes: -1 for none.
        journal_position: number of the newest decision recorded; journal_synced: of the newest that survives a crash.
        storage_low: no durable message is accepted for now.
        uptime_ms: since the broker serves management.
    """

    name: str
    version: str
    node_id: str
    active: bool
    connections: int
    queues: int
    addresses: int
    lease_groups: int
    memory_used_bytes: int
    memory_limit_bytes: int
    journal_position: int
    journal_synced: int
    storage_low: bool
    uptime_ms: int


class BrokerControl:
    """The broker itself; any login may look."""

    def __init__(self, broker: EngineBroker, host: Host, *, clock: Clock, version: str) -> None:
        self._broker = broker
        self._host = host
        self._clock = clock
        self._version = version
        self._started_ns = clock.monotonic_ns()

    def get(self) -> BrokerStatus:
        broker = self._broker
        return BrokerStatus(
            name=broker.settings.name,
            version=self._version,
            node_id=self._host.node_id(),
            active=not self._host.troubles(),
            connections=self._host.connection_count(),
            queues=len(broker.queues),
            addresses=len(broker.addresses),
            lease_groups=len(broker.leases.groups),
            memory_used_bytes=broker.used_bytes,
            memory_limit_bytes=broker.settings.global_max_size_bytes,
            journal_position=broker.log.position,
            journal_synced=broker.log.synced,
            storage_low=broker.storage_full,
            uptime_ms=(self._clock.monotonic_ns() - self._started_ns) // _NS_PER_MS,
        )

    def lease_groups_ended(self) -> dict[str, int]:
        """How many lease groups have ended since the start, by why."""
        return dict(self._broker.leases.ended)

    def role(self) -> str:
        """What the broker's ha-policy makes of it."""
        return self._host.role()

    def left_out(self) -> list[Reason]:
        """What the broker runs without although its configuration names it; [] when it obeys all of it."""
        names = self._broker.settings.left_out
        if not names:
            return []
        return [Reason(LEFT_OUT, f"runs without {', '.join(names)}, as --without says")]

    def not_ready(self) -> list[Reason]:
        """Why the broker should be sent no work; [] when it is ready."""
        reasons = list(self._host.troubles())
        if self._broker.storage_full:
            reasons.append(
                Reason(
                    "DMQ6101",
                    "the store has no room for durable messages, so their senders wait; free disk space or let"
                    " consumers catch up",
                )
            )
        return reasons
