"""Health and metrics.

Both show the moment and confirm nothing, so neither waits for the disk: a slow disk is when they matter.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector, CollectorRegistry
from starlette.responses import Response

from delosmq.manage.control.addresses import AddressControl, AddressInfo
from delosmq.manage.control.broker import BrokerControl, BrokerStatus
from delosmq.manage.control.queue_info import QueueInfo
from delosmq.manage.control.queues import QueueControl
from delosmq.manage.control.routers import RouterControl, RouterStatus
from delosmq.manage.http.answers import Health
from delosmq.manage.http.calls.handlers import peek_all
from delosmq.manage.http.operations import LOGIN, NOTHING, Answer, Call, operation
from delosmq.model.ids import Position
from delosmq.security.access import Login
from delosmq.sessions.lease.answers import GroupStat

_MS_PER_S: Final = 1000
_Rows = tuple[tuple[str, str, str], ...]
"""Name of the metric, field that it shows, and what that is."""

_QUEUE_GAUGES: Final = (
    ("messages", "message_count", "Messages in the queue: pending, scheduled and in delivery"),
    ("messages_delivering", "delivering_count", "Messages held by consumers and leases"),
    ("messages_scheduled", "scheduled_count", "Messages that are not due yet"),
    ("messages_durable", "durable_message_count", "Messages that the store holds"),
    ("size_bytes", "persistent_size", "Encoded messages in the queue"),
    ("size_durable_bytes", "durable_persistent_size", "Encoded messages that the store holds"),
    ("size_delivering_bytes", "delivering_size", "Encoded messages held by consumers and leases"),
    ("size_scheduled_bytes", "scheduled_size", "Encoded messages that are not due yet"),
    ("consumers", "consumer_count", "Consumers and lease groups"),
    ("groups", "group_count", "Message groups that have an owner"),
    ("paused", "paused", "1 while the queue delivers nothing because it is paused"),
)
_QUEUE_COUNTERS: Final = (
    ("messages_added", "messages_added", "Messages routed to the queue since the broker started"),
    ("messages_acknowledged", "messages_acknowledged", "Messages acknowledged since the broker started"),
    (
        "acknowledge_attempts",
        "acknowledge_attempts",
        "Messages that were asked to end, for whatever reason, since the broker started",
    ),
    ("messages_replaced", "messages_replaced", "Messages pushed out by the ring since the broker started"),
    ("messages_killed", "messages_killed", "Messages that used up their attempts since the broker started"),
    ("messages_expired", "messages_expired", "Messages that expired since the broker started"),
)
_ADDRESS_GAUGES: Final = (
    ("size_bytes", "used_bytes", "What the messages of the address count against its limit, each once"),
    ("messages", "used_messages", "Messages of the address, each once"),
    ("limit_percent", "address_limit_percent", "How much of its tightest limit the address uses"),
    ("blocked_senders", "blocked_senders", "Senders that wait for space"),
    ("duplicate_ids", "duplicate_ids", "Duplicate ids remembered"),
)
_ADDRESS_COUNTERS: Final = (
    ("routed_messages", "routed_messages", "Messages that reached a queue or divert since the broker started"),
    ("unrouted_messages", "unrouted_messages", "Messages that reached none since the broker started"),
)
_BROKER_GAUGES: Final = (
    ("memory_used_bytes", "memory_used_bytes", "What all messages count against the memory limit"),
    ("memory_limit_bytes", "memory_limit_bytes", "The memory limit, -1 for none"),
    ("journal_position", "journal_position", "Number of the newest decision recorded"),
    ("journal_synced_position", "journal_synced", "Number of the newest decision that survives a crash"),
    ("storage_low", "storage_low", "1 while the store has no room for durable messages"),
)
_GROUP_GAUGES: Final = (
    ("leased_messages", "leased", 1, "Messages in leases that are not acknowledged"),
    ("oldest_age_seconds", "oldest_age_ms", _MS_PER_S, "Age of the oldest message that waits or is leased"),
    ("contact_age_seconds", "contact_age_ms", _MS_PER_S, "Since the reader was last heard of"),
    ("expires_in_seconds", "expires_in_ms", _MS_PER_S, "When the group ends unless its reader calls"),
)

_ROUTER_RESULTS: Final = (
    ("local", "local"),
    ("redirected", "redirect"),
    ("use_another", "use-another"),
    ("unavailable", "unavailable"),
)
"""Field of a router's status, and what the metric calls it."""


@dataclass(frozen=True, eq=False)
class Figures(Collector):
    """What one scrape shows of one broker at one moment. Made for each: several brokers may share a process."""

    broker: BrokerStatus
    queues: list[QueueInfo]
    addresses: list[AddressInfo]
    groups: list[GroupStat]
    routers: list[RouterStatus]
    groups_ended: dict[str, int]

    def describe(self) -> Iterable[Metric]:
        """Nothing: the registry lives as long as the scrape."""
        return []

    def collect(self) -> Iterator[Metric]:
        for name, field, text in _BROKER_GAUGES:
            yield GaugeMetricFamily(f"delosmq_{name}", text, value=float(getattr(self.broker, field)))
        yield from _families("queue", self.queues, ("name", "address"), _QUEUE_GAUGES, _QUEUE_COUNTERS)
        yield from _families("address", self.addresses, ("name",), _ADDRESS_GAUGES, _ADDRESS_COUNTERS)
        for name, field, scale, text in _GROUP_GAUGES:
            gauge = GaugeMetricFamily(f"delosmq_lease_group_{name}", text, labels=["group", "queue"])
            for group in self.groups:
                gauge.add_metric([group.group, group.queue], getattr(group, field) / scale)
            yield gauge
        ended = CounterMetricFamily(
            "delosmq_lease_groups_ended", "Lease groups that ended since the broker started", labels=["reason"]
        )
        for reason, count in self.groups_ended.items():
            ended.add_metric([reason], count)
        yield ended
        decisions = CounterMetricFamily(
            "delosmq_router_decisions", "Connections so decided since the broker started", labels=["router", "result"]
        )
        loops = CounterMetricFamily(
            "delosmq_router_loops", "Connections refused because they would have gone in a circle", labels=["router"]
        )
        ready = GaugeMetricFamily("delosmq_router_ready_targets", "Targets that are ready", labels=["router"])
        for router in self.routers:
            ready.add_metric([router.name], router.ready_targets)
            loops.add_metric([router.name], router.loops)
            for field, result in _ROUTER_RESULTS:
                decisions.add_metric([router.name, result], getattr(router, field))
        yield from (decisions, ready, loops)


def _families(
    kind: str, shown: Sequence[object], named_by: tuple[str, ...], gauges: _Rows, counters: _Rows
) -> Iterator[Metric]:
    """A metric for each row, of all that is shown of one kind.

    Args:
        named_by: its fields that are labels; the first is called as the kind.
    """
    labels = [kind, *named_by[1:]]
    for family_of, rows in ((GaugeMetricFamily, gauges), (CounterMetricFamily, counters)):
        for name, field, text in rows:
            family = family_of(f"delosmq_{kind}_{name}", text, labels=labels)
            for one in shown:
                family.add_metric([getattr(one, label) for label in named_by], float(getattr(one, field)))
            yield family


class HealthCalls:
    def __init__(
        self,
        broker: BrokerControl,
        queues: QueueControl,
        addresses: AddressControl,
        routers: RouterControl,
        lease_groups: Callable[[Login], list[GroupStat]],
    ) -> None:
        self._broker = broker
        self._queues = queues
        self._addresses = addresses
        self._routers = routers
        self._lease_groups = lease_groups

    @operation("GET", "/health/live", "live", NOTHING, needs_login=False)
    async def live(self, call: Call) -> Answer[Health]:
        """The broker runs."""
        return Answer(Health("UP", "", [], self._broker.role()), Position(0))

    @operation("GET", "/health/ready", "ready", NOTHING, needs_login=False)
    async def ready(self, call: Call) -> Answer[Health]:
        """The broker takes work."""
        troubles, left_out = self._broker.not_ready(), self._broker.left_out()
        reasons = [*troubles, *left_out]
        why = "; ".join(f"{reason.code}: {reason.detail}" for reason in reasons)
        health = Health("DOWN" if troubles else "UP", why, reasons, self._broker.role())
        return Answer(health, Position(0), status=503 if troubles else 0)

    @operation("GET", "/metrics", "metrics", LOGIN, media_type="text/plain")
    async def metrics(self, call: Call) -> Response:
        """Metrics for Prometheus."""
        login = call.login
        queues = await peek_all(
            self._queues.names(login),
            lambda name: self._queues.peek(login, name) if self._queues.is_measured(name) else None,
        )
        addresses = await peek_all(
            self._addresses.names(login),
            lambda name: self._addresses.peek(login, name) if self._addresses.is_measured(name) else None,
        )
        figures = Figures(
            self._broker.get(),
            queues,
            addresses,
            self._lease_groups(login),
            self._routers.measured(login),
            self._broker.lease_groups_ended(),
        )
        encode, media_type = choose_encoder(call.request.headers.get("accept", ""))
        rendered = await asyncio.to_thread(_render, figures, encode)
        return Response(rendered, media_type=media_type)


def _render(figures: Figures, encode: Callable[[CollectorRegistry], bytes]) -> bytes:
    registry = CollectorRegistry()
    registry.register(figures)
    return encode(registry)
