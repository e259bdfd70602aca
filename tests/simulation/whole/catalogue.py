"""The addresses of a simulated broker: each shows one kind of queue, and a history uses some of them."""

from dataclasses import dataclass, field

from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.reserved_names import EVENTS_ADDRESS
from delosmq.model.settings import (
    AddressDefinition,
    AddressFullPolicy,
    AddressMatch,
    BrokerSettings,
    DivertSettings,
    JournalSettings,
    QueueSettings,
    RingEviction,
)

DEAD = "DLQ"
EXPIRED = "EXP"
EVERYWHERE: dict[str, object] = {
    "dead_letter_address": DEAD,
    "expiry_address": EXPIRED,
    "max_delivery_attempts": 3,
    "auto_delete_queues": False,
    "auto_delete_addresses": False,
}
FINAL: dict[str, object] = {"dead_letter_address": "", "expiry_address": "", "max_delivery_attempts": -1}
JOURNAL = JournalSettings("journal", file_size_bytes=64 * 1024, spare_files=2)
COMPACTING = JournalSettings(
    "journal", file_size_bytes=64 * 1024, spare_files=2, compact_min_files=2, compact_percentage=80
)


@dataclass(frozen=True)
class Place:
    """One address.

    Attributes:
        strict: its queues hand out in order of priority and sequence, whatever is returned.
        scheduled: messages may be.
    """

    address: str
    queues: tuple[QueueSettings, ...]
    fields: dict[str, object] = field(default_factory=dict)
    diverts: tuple[DivertSettings, ...] = ()
    routing: int = ANYCAST
    strict: bool = False
    scheduled: bool = True


def _place(name: str, *, strict: bool = False, fields: dict[str, object] | None = None, **settings: object) -> Place:
    return Place(name, (QueueSettings(name, name, ANYCAST, **settings),), fields or {}, strict=strict)  # type: ignore[arg-type]


PLACES = {
    place.address: place
    for place in (
        _place("jobs", strict=True),
        Place(
            "orders",
            (QueueSettings("orders.work", "orders", MULTICAST), QueueSettings("orders.archive", "orders", MULTICAST)),
            {"dead_letter_duplicates": False},
            routing=MULTICAST,
            strict=True,
            # What a lease has collected is out of the schedule's reach.
            scheduled=False,
        ),
        _place("prices", strict=True, ring_size=3),
        _place("ranks", ring_size=3, fields={"ring_eviction": RingEviction.LOWEST_PRIORITY}),
        _place("board", last_value_key="key"),
        _place("feed", non_destructive=True, ring_size=5),
        _place("solo", strict=True, exclusive=True, fields={"persist_delivery_count_before_delivery": True}),
        # Consumers that ask for all of a queue, and a queue whose consumers all do.
        _place("chief", strict=True),
        _place("chiefs", strict=True, fields={"all_consumers_exclusive_by_default": True}),
        _place("teams"),
        _place("late", fields={"redelivery_delay": 500, "redelivery_delay_multiplier": 2.0}),
        _place("red", filter="color = 'red'"),
        Place(
            "split",
            (QueueSettings("split", "split", ANYCAST),),
            diverts=(
                DivertSettings("copies", "split", ("jobs",)),
                DivertSettings("reds", "split", ("late",), exclusive=True, filter="color = 'red'"),
            ),
        ),
        # What is kept here pushes out by number and by size.
        Place(
            "news",
            (),
            {"subscription_recovery_count": 8, "subscription_recovery_size": 3_000},
            routing=MULTICAST,
        ),
    )
}
CHOICE = tuple(sorted(PLACES))
LONGEST_DELAYS_MS = {"late": 5_000}
"""Ten times the delay."""
CROWDED = ("left", "right")
"""Addresses with room for few messages, for which transactions wait."""
CROWD = 3
PLACES.update(
    (name, _place(name, fields={"max_size_messages": CROWD, "address_full_policy": AddressFullPolicy.BLOCK}))
    for name in CROWDED
)
ALWAYS = ("jobs",)
NEEDS = {"split": ("late",)}
DIVERTS = frozenset(divert.name for place in PLACES.values() for divert in place.diverts)
SINKS = (DEAD, EXPIRED)
TOLD = "told"
"""A ring of the records of `delosmq.events`, which no client looks at."""
LEASE_RETENTION_MS = 100_000
COLORS = ("red", "blue")
RECORDS_PER_S = 40
"""Some do not fit."""


class Catalogue:
    """What one history works with.

    Attributes:
        favourite: the address that gets most of the attention.
        large_bytes: no body is larger.
        slice: of so many messages, 0 for those of a real broker.
    """

    def __init__(
        self, chosen: list[str], journal: JournalSettings, large_bytes: int, *, recorded: bool = False
    ) -> None:
        self.favourite = chosen[0]
        self.large_bytes = large_bytes
        self.slice = 0
        names = set(chosen) | set(ALWAYS)
        for name in chosen:
            names.update(NEEDS.get(name, ()))
        self.places = [place for place in PLACES.values() if place.address in names]
        self.addresses = [place.address for place in self.places if place.address not in CROWDED]
        self.strict = {queue.name for place in self.places if place.strict for queue in place.queues}
        self.configured = [queue for place in self.places for queue in place.queues]
        self.sinks = [QueueSettings(name, name, ANYCAST) for name in SINKS]
        told = (QueueSettings(TOLD, EVENTS_ADDRESS, MULTICAST, ring_size=3),) if recorded else ()
        self.settings = BrokerSettings(
            journal=journal,
            queues=(*self.configured, *self.sinks, *told),
            delosmq_events=RECORDS_PER_S if recorded else 0,
            addresses=tuple(AddressDefinition(place.address, frozenset({place.routing})) for place in self.places),
            address_settings=(
                AddressMatch("#", EVERYWHERE),
                *(AddressMatch(place.address, place.fields) for place in self.places if place.fields),
                # Where none are made, what should go there is held when they are deleted.
                *(AddressMatch(name, {**FINAL, "auto_create_queues": len(names) % 2 == 0}) for name in SINKS),
            ),
            diverts=tuple(divert for place in self.places for divert in place.diverts),
            message_expiry_scan_period_ms=1_000,
            lease_retention_ms=LEASE_RETENTION_MS,
        )

    def receivers(self, address: str, color: str) -> list[str]:
        """The configured queues that get a message with this colour, on whatever way."""
        place = PLACES[address]
        diverted = [divert for divert in place.diverts if not divert.filter or color == "red"]
        # One exclusive divert takes the message from all that are not.
        exclusive = [divert for divert in diverted if divert.exclusive]
        found = [target for divert in exclusive or diverted for target in divert.forwarding_addresses]
        if not exclusive:
            found += [queue.name for queue in place.queues if not queue.filter or color == "red"]
        return found
