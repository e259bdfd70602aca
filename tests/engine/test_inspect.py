"""Walks that look for messages go on whatever happens between their slices."""

from delosmq.engine.base.slots import Slot
from delosmq.engine.inspect import walk_scheduled
from tests.engine.support import Bench, anycast


def scheduled(count: int, *, due_times: int = 1) -> Bench:
    bench = Bench(queues=(anycast("q"),))
    for number in range(count):
        bench.send("q", "m", due_in_ms=1_000 + number % due_times)
    return bench


def finish(found: list[Slot], walk) -> None:  # type: ignore[no-untyped-def]
    found.extend(slot for slot in walk if slot is not None)


def first_slice(found: list[Slot], walk) -> None:  # type: ignore[no-untyped-def]
    for slot in walk:
        if slot is None:
            return
        found.append(slot)


def test_a_slot_that_leaves_where_the_walk_stands_does_not_end_it() -> None:
    queue = scheduled(3_000).broker.queues["q"]
    found: list[Slot] = []
    walk = walk_scheduled(queue)
    first_slice(found, walk)
    queue.scheduled.remove(found[-1])
    finish(found, walk)
    assert [slot.sequence for slot in found] == sorted({slot.sequence for slot in found})
    assert len(found) == 3_000


def test_buckets_that_leave_where_the_walk_stands_lead_on_to_those_that_stay() -> None:
    queue = scheduled(2_500, due_times=250).broker.queues["q"]
    slots = queue.scheduled.in_order()
    staying = {slot.sequence for slot in slots if slot.due_at_ms % 2 == 0}
    found: list[Slot] = []
    walk = walk_scheduled(queue)
    first_slice(found, walk)
    for slot in slots:
        if slot.sequence not in staying:
            queue.scheduled.remove(slot)
    finish(found, walk)
    assert staying <= {slot.sequence for slot in found}
    assert {slot.sequence for slot in walk_scheduled(queue) if slot is not None} == staying


def test_the_buckets_are_chained_as_they_come_and_go() -> None:
    queue = scheduled(30, due_times=3).broker.queues["q"]
    for slot in queue.scheduled.in_order():
        queue.scheduled.remove(slot)
    assert queue.scheduled.first is None
    assert list(walk_scheduled(queue)) == []
    queue.scheduled.add(Slot(Bench().message("q", "m"), False), 5)
    assert len(list(walk_scheduled(queue))) == 1
