"""``persist-delivery-count-before-delivery``: a delivery counts even when the broker dies during it."""

# ACK-4

import pytest

from delosmq.engine.log.records import COUNTED
from delosmq.model.settings import UNLIMITED
from tests.engine.support import Bench, anycast


def start(**fields: object) -> Bench:
    settings = {"persist_delivery_count_before_delivery": True, "max_delivery_attempts": 3, **fields}
    return Bench(queues=(anycast("q"), anycast("DLQ")), settings={"q": settings})


def counts(bench: Bench) -> list[int]:
    slots = bench.broker.queues["q"].pending
    found: list[int] = []
    cursor = slots.cursor()
    while (slot := cursor.peek()) is not None:
        cursor.advance(slot)
        found.append(slot.delivery_count)
    slots.drop(cursor)
    return found


@pytest.mark.parametrize(("first", "counted"), [(True, [1, 1, 0]), (False, [0, 0, 0])])
def test_a_delivery_counts_after_a_crash(first: bool, counted: list[int]):
    bench = start(persist_delivery_count_before_delivery=first)
    bench.send("q", "A B")
    bench.consume("q")
    bench.run()
    bench.broker.resources.update_queue("q", paused=True)
    bench.send("q", "C")
    assert counts(bench.restart()) == counted


def test_what_leaves_waits_for_the_record():
    bench = start()
    bench.send("q", "A")
    stored = bench.broker.log.position
    _, port = bench.consume("q")
    bench.run()
    (slot,) = port.slots
    assert slot.message.position == bench.broker.log.position > stored


def test_what_nobody_has_seen_does_not_count():
    bench = start()
    bench.send("q", "A B")
    consumer, port = bench.consume("q")
    bench.run()
    bench.broker.consumers.close(consumer, unseen={port.slots[1].sequence})
    assert counts(bench) == [1, 0]
    assert counts(bench.restart()) == [1, 0]


def test_messages_that_are_not_durable_are_not_recorded():
    bench = start()
    bench.send("q", "A", durable=False)
    before = len(bench.store.batches)
    bench.consume("q")
    bench.run()
    assert len(bench.store.batches) == before


def test_without_it_nothing_is_recorded_when_a_message_leaves():
    bench = start(persist_delivery_count_before_delivery=False)
    bench.send("q", "A")
    before = len(bench.store.batches)
    bench.consume("q")
    bench.run()
    assert len(bench.store.batches) == before
    assert not bench.broker.queues["q"].needs_rules


def test_one_record_for_each_delivery():
    bench = start()
    bench.send("q", "A B")
    before = len(bench.store.batches)
    bench.consume("q")
    bench.run()
    kinds = [meta[0] for _, metas, _ in bench.store.batches[before:] for meta in metas]
    assert kinds == [COUNTED, COUNTED]


def test_attempts_that_crashes_ended_are_used_up():
    bench = start(dead_letter_address="DLQ", max_delivery_attempts=3)
    bench.send("q", "A")
    for _ in range(2):
        bench.consume("q")
        bench.run()
        bench = bench.restart()
    consumer, port = bench.consume("q")
    bench.run()
    bench.broker.consumers.reject_through(consumer, port.slots[0].sequence)
    assert (bench.pending("q"), bench.pending("DLQ")) == ("", "A")


def test_while_the_store_is_full_messages_leave_without_a_record():
    bench = start(max_delivery_attempts=UNLIMITED)
    bench.send("q", "A")
    bench.broker.set_storage_full(True)
    before = len(bench.store.batches)
    _, port = bench.consume("q")
    bench.run()
    assert (port.bodies, len(bench.store.batches)) == ("A", before)
