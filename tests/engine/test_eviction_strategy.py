"""What a choice remembers of what it has looked at, and forgets again."""

# RING-11

from random import Random

import pytest

from delosmq.engine.base.slots import PendingSlots, Slot
from delosmq.engine.queues.eviction_strategy import EvictionChoice, IndexedChoice, LowestPriority, UniqueProperty
from delosmq.model.conversion import Conversions
from delosmq.model.ids import Sequence, WallMs
from delosmq.model.message import Message
from delosmq.wire.stomp.conversion import StompConversion
from tests.memory import measured

SIZE = 20


def slot(sequence: int, priority: int, value: int) -> Slot:
    head = f"k:{value}\n".encode() if value else b""
    message = Message("t", "stomp/12", head, b"", durable=False, priority=priority, timestamp_ms=WallMs(0))
    message.sequence = Sequence(sequence)
    return Slot(message, False)


def value_of(one: Slot) -> bytes:
    return one.message.head


def lowest(pending: list[Slot]) -> list[Slot]:
    return [min(pending, key=lambda one: (one.message.priority, one.sequence))]


def superseded(pending: list[Slot]) -> list[Slot]:
    latest = {value_of(one): one for one in pending if value_of(one)}
    found = [one for one in pending if one not in latest.values()]
    return found if latest and found else pending[:1]


def chosen_by(choice: EvictionChoice, pending: PendingSlots) -> list[Slot]:
    while not choice.learn(pending, 3):
        pass
    return choice.choose(pending)


def remembered(choice: IndexedChoice) -> list[Slot]:
    return sorted(choice.slots.values(), key=lambda one: one.sequence)


@pytest.mark.parametrize("values", [0, 3, 30, 3_000])
@pytest.mark.parametrize("kind", ["lowest", "unique"])
@pytest.mark.parametrize("prioritized", [False, True])
def test_it_chooses_as_if_it_looked_at_everything(kind: str, values: int, prioritized: bool) -> None:
    random = Random(values)
    pending = PendingSlots()
    choice: IndexedChoice = LowestPriority()
    if kind == "unique":
        choice = UniqueProperty("k", Conversions({"stomp": StompConversion()}))
    for sequence in range(1, 1_500):
        made = slot(sequence, random.randrange(10), random.randrange(values + 1))
        if not prioritized:
            made.level = 4
        pending.put_back(made)
        if random.random() < 0.3:  # dispatched
            head = pending.head()
            assert head is not None
            pending.remove(head)
        if pending.count > SIZE:
            waiting = sorted(pending.in_order(), key=lambda one: one.sequence)
            wanted = lowest(waiting) if kind == "lowest" else superseded(waiting)
            chosen = chosen_by(choice, pending)
            assert [one.sequence for one in reversed(chosen)] == [one.sequence for one in wanted]
            for one in chosen:
                pending.remove(one)
            assert remembered(choice) == [one for one in waiting if one not in chosen]
    choice.end(pending)
    assert not choice.slots
    assert not any(one.marks for one in pending.in_order())


@pytest.mark.parametrize("choice", [LowestPriority(), UniqueProperty("k", Conversions({"stomp": StompConversion()}))])
def test_nothing_is_remembered_of_what_left_the_queue(choice: IndexedChoice) -> None:
    pending = PendingSlots()
    for sequence in range(1, 11):
        pending.put_back(slot(sequence, 4, sequence % 3))
    assert not choice.learn(pending, 9)
    assert choice.learn(pending, 1)
    for one in pending.in_order():
        pending.remove(one)
    assert remembered(choice) == []


def test_what_came_back_goes_when_nothing_else_is_left() -> None:
    pending = PendingSlots()
    choice = LowestPriority()
    first, second = slot(1, 4, 0), slot(2, 4, 0)
    pending.put_back(first)
    assert chosen_by(choice, pending) == [first]
    pending.remove(first)
    first.delivery_count = 1
    pending.put_back(second)
    pending.put_back(first)
    assert chosen_by(choice, pending) == [second]
    pending.remove(second)
    assert chosen_by(choice, pending) == [first]


def test_a_value_that_is_gone_is_none() -> None:
    pending = PendingSlots()
    choice = UniqueProperty("k", Conversions({"stomp": StompConversion()}))
    valued, *others = slot(1, 4, 7), slot(2, 4, 0), slot(3, 4, 0)
    for one in (valued, others[0]):
        pending.put_back(one)
    assert chosen_by(choice, pending) == [others[0]]
    pending.remove(valued)
    pending.put_back(others[1])
    assert chosen_by(choice, pending) == [others[0]]


def test_the_lowest_priority_forgets_the_places_of_what_has_left() -> None:
    pending = PendingSlots()
    choice = LowestPriority()
    with measured() as grown:
        low = slot(1, 0, 0)
        pending.put_back(low)
        for sequence in range(2, 5_000):
            pending.put_back(slot(sequence, 9, 0))
            assert chosen_by(choice, pending) == [low]
            head = pending.head()
            assert head is not None
            pending.remove(head)  # dispatched
        assert grown() < 100_000
