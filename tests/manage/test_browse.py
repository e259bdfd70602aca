"""Looking through a large queue: in slices, one page at a time, while messages come and go."""

import pytest

from delosmq.engine.inspect import SLOTS_PER_MARK
from delosmq.manage.control.browse import SLOTS_PER_SLICE, Browse
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


def test_messages_that_come_back_while_leases_are_looked_through_are_found(bench: Bench):
    broker = bench.broker
    epoch = broker.lease_groups.open("g", queue="q", topic="", run="r", incarnation=None).epoch
    broker.leases.request("g", after=0, max_rows=5, max_bytes=ALL, epoch=epoch, until=None)
    consumer, port = bench.consume("q")
    bench.run()
    assert len(port.slots) == 15
    seen = page(bench)
    next(iter(seen))
    broker.consumers.close(consumer)
    bench.run()
    assert bodies(seen) == numbered(*range(20))


def looked_at_in_pages(bench: Bench, rows: int, per_slice: int = SLOTS_PER_SLICE) -> tuple[list[int], list[int]]:
    """What each page looks at, and the sequences of all."""
    looked: list[int] = []
    found: list[int] = []
    queue = bench.broker.queues["q"]
    while True:
        after = found[-1] if found else 0
        seen = Browse(bench.broker, queue, after=after, until=ALL, max_rows=rows, slots_per_slice=per_slice)
        for _ in seen:
            continue
        if not seen.found:
            return looked, found
        looked.append(seen.looked)
        found += [slot.sequence for slot in seen.found]


@pytest.fixture
def backlog() -> Bench:
    bench = Bench(queues=(anycast("q"),))
    bench.send("q", " ".join(["m"] * 20_000))
    return bench


def test_a_page_begins_where_the_last_one_ended(backlog: Bench):
    looked, found = looked_at_in_pages(backlog, 2_000)
    assert found == sorted(set(found))
    assert len(found) == 20_000
    assert max(looked) <= 2_000 + SLOTS_PER_MARK


def test_a_page_begins_nearby_although_the_messages_before_it_are_leased_away(backlog: Bench):
    broker = backlog.broker
    looked_at_in_pages(backlog, 2_000)
    epoch = broker.lease_groups.open("g", queue="q", topic="", run="r", incarnation=None).epoch
    lease(backlog, epoch, 1_000)
    seen = page(backlog, after=15_000, max_rows=10)
    bodies(seen)
    assert seen.looked <= 10 + SLOTS_PER_MARK
    assert seen.found[0].sequence == 15_001


def test_ranges_that_begin_amid_the_queue_share_their_way_there(backlog: Bench):
    looked = 0
    found: list[int] = []
    for part in range(100):
        seen = page(backlog, after=part * 200, until=part * 200 + 200, max_rows=200)
        bodies(seen)
        found += [slot.sequence for slot in seen.found]
        looked += seen.looked
    assert found == list(range(found[0], 20_001))
    assert looked <= 20_000 + 100 * (SLOTS_PER_MARK + 1)


def test_leases_before_and_behind_a_page_are_not_looked_at(backlog: Bench):
    epoch = backlog.broker.lease_groups.open("g", queue="q", topic="", run="r", incarnation=None).epoch
    for number in range(1, 11):
        lease(backlog, epoch, 2_000, number)
    looked, found = looked_at_in_pages(backlog, 1_500)
    assert found == sorted(set(found))
    assert len(found) == 20_000
    # A page looks into one lease, or into two.
    assert max(looked) <= 2 * SLOTS_PER_SLICE


def test_of_a_large_lease_a_page_looks_at_its_own_rows(backlog: Bench):
    epoch = backlog.broker.lease_groups.open("g", queue="q", topic="", run="r", incarnation=None).epoch
    lease(backlog, epoch, 20_000)
    looked, found = looked_at_in_pages(backlog, 2_000)
    assert found == sorted(set(found))
    assert len(found) == 20_000
    assert max(looked) <= SLOTS_PER_SLICE


def test_pages_of_leases_whose_rows_are_in_no_order_are_in_order():
    bench = Bench(queues=(anycast("q"),))
    for number in range(300):
        bench.send("q", f"m{number}", priority=number * 7 % 10)
    epoch = bench.broker.lease_groups.open("g", queue="q", topic="", run="r", incarnation=None).epoch
    # Each lease takes what has the highest priority by then, with more of it each time.
    for number in range(1, 31):
        lease(bench, epoch, 8, number)
        bench.send("q", "late", priority=9)
    rows = bench.broker.leases.groups["g"].leases
    for one in rows.values():
        for slot in one.slots:
            assert one.rows.find(slot.sequence) is slot
        assert one.rows.find(10_000) is None
    for size in (1, 5, 20, 100, 500):
        _, found = looked_at_in_pages(bench, size, 3)
        assert found == sorted(set(found))
        assert len(found) == 330


def test_pages_of_leases_that_lie_between_each_other_are_in_order(bench: Bench):
    """Messages of a high priority, which came last, are in the first lease, behind an old one of it."""
    bench.send("q", "old", priority=9)
    bench.send("q", " ".join(["m"] * 200))
    bench.send("q", " ".join(["high"] * 20), priority=9)
    epoch = bench.broker.lease_groups.open("g", queue="q", topic="", run="r", incarnation=None).epoch
    lease(bench, epoch, 21, 1)
    lease(bench, epoch, 100, 2)
    lease(bench, epoch, 120, 3)
    for size in (7, 30, 110, 130):
        _, found = looked_at_in_pages(bench, size, 3)
        assert found == sorted(set(found))
        assert len(found) == 241


def lease(bench: Bench, epoch: int, rows: int, number: int = 1) -> None:
    """Makes a lease without acknowledging those before."""
    leases = bench.broker.leases
    group = leases.groups["g"]
    acked, group.acked = group.acked, number - 1
    for _ in range(2 * rows):
        if leases.request("g", after=number - 1, max_rows=rows, max_bytes=ALL, epoch=epoch, until=None) is not None:
            break
    group.acked = acked
    assert len(group.leases[number].slots) == rows


def test_messages_that_stand_before_others_hide_none(bench: Bench):
    # m20 to m22 become due while others wait, and go first.
    for i in range(20, 23):
        bench.send("q", f"m{i}", due_in_ms=100)
    bench.send("q", "m23 m24")
    bench.clock.now_ms += 200
    bench.run()
    assert bodies(page(bench)) == numbered(*range(25))
    assert bodies(page(bench, max_rows=7)) == numbered(*range(7))
    found: list[str] = []
    after = 0
    while True:
        seen = page(bench, after=after, max_rows=3)
        text = bodies(seen)
        if not text:
            break
        found.append(text)
        after = seen.found[-1].sequence
    assert " ".join(found) == numbered(*range(25))
