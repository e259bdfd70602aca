"""Looking through a large queue: in slices, one page at a time, while messages come and go."""

import pytest

from delosmq.manage.control.browse import Browse
from tests.engine.support import Bench, anycast

ALL = 1 << 62


@pytest.fixture
def bench() -> Bench:
    bench = Bench(queues=(anycast("q"),))
    bench.send("q", " ".join(f"m{i}" for i in range(20)))
    return bench


def page(bench: Bench, *, after: int = 0, until: int = ALL, max_rows: int = 100) -> Browse:
    queue = bench.broker.queues["q"]
    return Browse(bench.broker, queue, after=after, until=until, max_rows=max_rows, slots_per_slice=3)


def bodies(seen: Browse) -> str:
    for _ in seen:
        continue
    return words(seen)


def words(seen: Browse) -> str:
    return " ".join(slot.message.body.decode() for slot in seen.found)


def numbered(*numbers: int) -> str:
    return " ".join(f"m{i}" for i in numbers)


def test_a_page_is_found_in_slices(bench: Bench):
    seen = page(bench)
    slices = sum(1 for _ in seen)
    assert slices >= 20 // 3
    assert words(seen) == numbered(*range(20))


def test_what_lies_beyond_the_page_is_not_looked_at(bench: Bench):
    seen = page(bench, max_rows=2)
    assert sum(1 for _ in seen) == 0
    assert words(seen) == "m0 m1"


def test_pages_follow_each_other(bench: Bench):
    bench.send("q", "high", priority=9)
    found: list[str] = []
    after = 0
    while True:
        seen = page(bench, after=after, max_rows=7)
        text = bodies(seen)
        if not text:
            break
        after = seen.found[-1].sequence
        found.append(text)
    assert " ".join(found) == numbered(*range(20)) + " high"
    assert len(found) == 3


def test_leased_and_delivered_messages_are_found_in_their_place(bench: Bench):
    broker = bench.broker
    epoch = broker.lease_groups.open("g", queue="q", topic="", run="r", incarnation=None).epoch
    broker.leases.request("g", after=0, max_rows=5, max_bytes=ALL, epoch=epoch, until=None)
    _, port = bench.consume("q")
    port.room = False
    bench.run()
    assert bodies(page(bench)) == numbered(*range(20))


def test_slots_that_leave_under_the_look_do_not_end_it(bench: Bench):
    seen = page(bench)
    pending = bench.broker.queues["q"].pending
    steps = iter(seen)
    next(steps)
    for _ in range(5):  # the slot at which the look stands is among them
        slot = pending.head()
        assert slot is not None
        pending.remove(slot)
    found = bodies(seen).split()
    assert len(found) == len(set(found))
    assert set(numbered(*range(5, 20)).split()) <= set(found)


def test_messages_delivered_under_the_look_are_found_once(bench: Bench):
    seen = page(bench)
    next(iter(seen))
    bench.consume("q")
    bench.run()
    assert bodies(seen) == numbered(*range(20))


def test_messages_that_a_released_group_returns_are_found(bench: Bench):
    broker = bench.broker
    bench.send("q", " ".join(f"m{i}" for i in range(20, 1200)))
    broker.lease_groups.open("g", queue="q", topic="", run="r", incarnation=None)
    for _ in range(3):
        broker.leases.request("g", after=0, max_rows=1200, max_bytes=ALL, epoch=1, until=None)
    broker.lease_groups.release("g")
    assert broker.queues["q"].suspensions == 1
    assert bodies(page(bench, max_rows=2000)) == numbered(*range(1200))
