"""The rows of a lease: found without a walk, and put into parts once."""

from delosmq.engine.leases.lease import Lease
from delosmq.engine.leases.rows import part_of
from tests.engine.support import Bench, anycast

ALL = 1 << 62


def leased(bench: Bench, rows: int) -> Lease:
    """One lease of so many messages, of two message groups and of none by turns."""
    for number in range(rows):
        message = bench.message("q", f"m{number}")
        message.group_id = ("red", "blue", "")[number % 3]
        bench.broker.producers.send(message)
    epoch = bench.broker.lease_groups.open("g", queue="q", topic="", run="r", incarnation=None).epoch
    while True:
        lease = bench.broker.leases.request("g", after=0, max_rows=rows, max_bytes=ALL, epoch=epoch, until=None)
        if lease is not None:
            return lease


def test_the_parts_of_a_lease_are_found_once_for_all_who_ask():
    lease = leased(Bench(queues=(anycast("q"),)), 300)
    parts = lease.parts(7)
    steps = 0
    while not parts.is_complete:
        parts.step(100)
        steps += 1
    assert steps == 3
    # Nobody else looks at the rows again, as long as it asks for parts of as many.
    assert lease.parts(7) is parts
    for number in range(7):
        assert parts.part(number, 0, 300) == [slot for slot in lease.slots if part_of(slot, 7) == number]
        assert parts.part(number, 50, 60) == [slot for slot in lease.slots[50:60] if part_of(slot, 7) == number]
    assert not lease.parts(8).is_complete


def test_a_row_is_found_where_it_is_without_a_walk():
    lease = leased(Bench(queues=(anycast("q"),)), 300)
    for at, slot in enumerate(lease.slots):
        assert lease.rows.stretches(slot.sequence - 1, slot.sequence) == [(at, at + 1)]
        assert lease.rows.find(slot.sequence) is slot
    assert lease.rows.find(lease.last_sequence + 1) is None
