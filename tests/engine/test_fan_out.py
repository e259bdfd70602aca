"""Several listeners hear what one would."""

import pytest

from delosmq.engine.base.events import NO_EVENTS, EngineEvents, events_for
from delosmq.model.message import ANYCAST
from delosmq.model.settings import QueueSettings
from tests.engine.support import Bench

EVENTS = [name for name in dir(EngineEvents) if not name.startswith("_")]


class Noting(EngineEvents):
    def __init__(self, notes: list[str], name: str) -> None:
        self.notes = notes
        self.name = name

    def queue_created(self, queue: str, address: str) -> None:
        self.notes.append(f"{self.name} {queue} of {address}")


@pytest.mark.parametrize("event", EVENTS)
def test_all_who_listen_are_told(event: str) -> None:
    heard: list[tuple[object, ...]] = []

    def note(self: EngineEvents, *told: object) -> None:
        heard.append(told)

    listener = type("Listener", (EngineEvents,), {event: note})
    getattr(events_for([listener(), Noting([], "deaf"), listener()]), event)("orders", 2)
    assert heard == [("orders", 2), ("orders", 2)]


def test_an_event_that_is_nowhere_overridden_is_not_passed_on() -> None:
    class Listener(EngineEvents):
        """Overrides nothing."""

    fan_out = type(events_for([Listener(), Noting([], "a"), Noting([], "b")]))
    assert [event for event in EVENTS if getattr(fan_out, event) is not getattr(EngineEvents, event)] == [
        "queue_created"
    ]


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
