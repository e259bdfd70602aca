"""A target: a broker that a router may choose."""

from typing import Final

from delosmq.model.declared.router import ConnectorSettings
from delosmq.model.ids import MonotonicNs

MOST_SUSPECTS: Final = 10
"""Keys that one target is asked for at each check."""
SUSPECTED_FOR_NS: Final = 30_000_000_000
"""After the last client with the key."""


class RouterTarget:
    """One broker.

    Attributes:
        connector: where it is; None for this broker.
        node_id: "" until it was asked.
        ready: whether the last check found it active.
        connection_count: what the last check found; None when it is not known.
        sent: connections that were given it since that check.
        trouble: why it is not ready, for people.
        suspects: keys that may go in a circle between it and this broker, and when a client had them last.
        onward: of those of them that it would send on, by its own word, the node ids of the brokers that follow.
    """

    def __init__(self, connector: ConnectorSettings | None, node_id: str = "") -> None:
        self.connector = connector
        self.node_id = node_id
        self.ready: bool = False
        self.connection_count: int | None = None
        self.sent: int = 0
        self.trouble: str = "not asked yet"
        self.suspects: dict[str, MonotonicNs] = {}
        self.onward: dict[str, tuple[str, ...]] = {}

    @property
    def name(self) -> str:
        """For logs: the connector's name with host and port."""
        one = self.connector
        return "this broker" if one is None else f"{one.name} ({one.host}:{one.port})"

    def suspect(self, key: str, now: MonotonicNs) -> None:
        """Clients with ``key`` come back from it often: it is asked at its next checks where they belong."""
        if key in self.suspects or len(self.suspects) < MOST_SUSPECTS:
            self.suspects[key] = now

    def asked_for(self, key: str, now: MonotonicNs) -> None:
        """A broker asks where ``key`` goes: what this one says of a circle has to be as new as its question."""
        if key in self.suspects:
            self.suspects[key] = now

    def suspected(self, now: MonotonicNs) -> list[str]:
        """The keys that it is to be asked for."""
        for key in [key for key, seen_at in self.suspects.items() if now >= seen_at + SUSPECTED_FOR_NS]:
            del self.suspects[key]
            self.onward.pop(key, None)
        return list(self.suspects)
