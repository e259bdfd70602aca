"""Several listeners hear what one would."""

import pytest

from delosmq.engine.base.events import NO_EVENTS, EngineEvents
from delosmq.engine.base.slots import Slot
from delosmq.engine.fan_out import FanOut, events_for
from delosmq.model.ids import WallMs
from delosmq.model.message import ANYCAST, EMPTY_BODY, Message
from delosmq.model.settings import QueueSettings
from tests.engine.support import Bench

MESSAGE = Message("orders", "stomp", b"", b"", body_kind=EMPTY_BODY, timestamp_ms=WallMs(1))
SLOT = Slot(MESSAGE, False)

TOLD: dict[str, tuple[object, ...]] = {
    "queue_created": ("queue", "address"),
    "queue_updated": ("queue",),
    "queue_deleted": ("queue",),
    "queue_paused": ("queue",),
    "queue_resumed": ("queue",),
    "queue_disabled": ("queue",),
    "queue_enabled": ("queue",),
    "queue_purged": ("queue", 2),
    "address_created": ("address",),
    "address_deleted": ("address",),
    "created_by_client": ("queue", "address", "user", True),
    "deleted_by_client": ("queue", "address", "user", 2),
    "deleted_unused": ("queue", "address", 2),
    "consumer_created": ("queue", 2),
    "consumer_closed": ("queue", 2),
    "exclusive_owner_changed": ("queue", 2),
    "group_assigned": ("queue", "group", 3),
    "message_scheduled": ("queue", SLOT),
    "message_due": ("queue", SLOT),
    "message_diverted": (MESSAGE, "divert", MESSAGE),
    "message_redelivered": ("queue", SLOT),
    "message_replaced": ("queue", SLOT),
    "message_dead_lettered": ("queue", SLOT, "dead_letter_address"),
    "message_expired": ("queue", SLOT, "expiry_address"),
    "message_dropped": (MESSAGE,),
    "message_routed": (MESSAGE, ["q"]),
    "message_unrouted": (MESSAGE,),
    "message_acknowledged": ("q", SLOT),
    "address_full": (MESSAGE,),
    "address_blocked": ("address",),
    "address_unblocked": ("address",),
    "lease_group_opened": ("group", 2),
    "lease_group_ended": ("group", 2),
    "lease_made": ("group", 2, 3),
    "lease_acknowledged": ("group", 2),
    "duplicate_ids_cleared": ("address", 2),
    "message_duplicate": (MESSAGE,),
    "transaction_committed": (1, 2, 3),
    "transaction_rolled_back": (1, 2, 3),
    "transaction_prepared": (1, b"x"),
    "transaction_timed_out": (1, b"x"),
    "branch_ended_by_operator": (1, b"x", True),
}
"""All that the engine tells, with something to tell."""


class Noting(EngineEvents):
    def __init__(self, notes: list[str], name: str) -> None:
        self.notes = notes
        self.name = name

    def queue_created(self, queue: str, address: str) -> None:
        self.notes.append(f"{self.name} {queue} of {address}")


def test_the_table_has_all_of_them() -> None:
    assert set(TOLD) == {name for name in dir(EngineEvents) if not name.startswith("_")}


@pytest.mark.parametrize("name", TOLD)
def test_everything_goes_on(name: str) -> None:
    heard: list[tuple[object, ...]] = []

    def note(self: EngineEvents, *told: object) -> None:
        heard.append(told)

    listener = type("Listener", (EngineEvents,), {name: note})
    getattr(FanOut([listener(), listener()]), name)(*TOLD[name])
    assert heard == [TOLD[name], TOLD[name]]


def test_all_are_told_in_their_order() -> None:
    notes: list[str] = []
    bench = Bench(events=events_for([Noting(notes, "a"), NO_EVENTS, Noting(notes, "b")]))
    bench.broker.resources.create_queue(QueueSettings("q", "orders", ANYCAST))
    assert notes == ["a q of orders", "b q of orders"]


def test_nobody_and_one_need_nothing_between() -> None:
    only = Noting([], "a")
    assert events_for([]) is NO_EVENTS
    assert events_for([NO_EVENTS]) is NO_EVENTS
    assert events_for([NO_EVENTS, only]) is only
