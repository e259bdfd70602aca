"""Consumers that hold very much: what they answer or leave behind goes in slices, and nothing of it is half done."""

import pytest

from delosmq.engine.consumer import Consumer
from delosmq.engine.credit import Credit, MessageCredit, OpenCredit
from delosmq.engine.transactions import TransactionWaiter
from delosmq.model.errors import BrokerError
from tests.engine.support import Bench, Collector, RecordingStore, anycast

MANY = 3_000
PER_TICK = 1_000


class Waiter(TransactionWaiter):
    def __init__(self) -> None:
        self.ended: list[BrokerError | None] = []

    def on_ended(self, error: BrokerError | None) -> None:
        self.ended.append(error)


class CountedCredit(OpenCredit):
    """Counts what the engine does with single messages."""

    def __init__(self) -> None:
        self.count = 0

    def taken(self, size_bytes: int) -> None:
        self.count += 1

    def settled(self, size_bytes: int) -> None:
        self.count += 1

    def promised(self, size_bytes: int) -> None:
        self.count += 1

    def committed(self, size_bytes: int) -> None:
        self.count += 1


def holding(count: int = MANY, credit: Credit | None = None) -> tuple[Bench, Consumer, list[int]]:
    """A consumer that holds that many messages, and their sequences."""
    bench = Bench(queues=(anycast("q"),))
    for number in range(count):
        bench.broker.send(bench.message("q", str(number)))
    port = Collector()
    consumer = bench.broker.subscribe("q", port, credit if credit is not None else OpenCredit())
    while len(port.slots) < count:
        bench.broker.tick()
    return bench, consumer, [slot.sequence for slot in port.slots]


def words(start: int, stop: int) -> str:
    return " ".join(str(number) for number in range(start, stop))


def settle(bench: Bench) -> None:
    while bench.broker.tick():
        pass


@pytest.mark.parametrize("what", ["acknowledge", "reject", "close", "roll back", "commit"])
def test_a_tick_does_a_bounded_part_of_what_concerns_very_many_messages(what: str) -> None:
    credit = CountedCredit()
    bench, consumer, sequences = holding(credit=credit)
    broker = bench.broker
    transaction = broker.begin("session") if what in ("roll back", "commit") else None
    credit.count = 0
    if what == "acknowledge" or transaction is not None:
        assert broker.acknowledge_through(consumer, sequences[-1], transaction)
    elif what == "reject":
        bench.broker.pause_queue("q")
        assert broker.reject_through(consumer, sequences[-1])
    else:
        broker.close_consumer(consumer)
    if transaction is not None:
        while consumer.under_way is not None:
            assert credit.count <= PER_TICK
            credit.count = 0
            broker.tick()
        if what == "commit":
            broker.commit(transaction)
        else:
            bench.broker.pause_queue("q")
            broker.rollback(transaction)
    while consumer.held_count:
        assert credit.count <= PER_TICK
        credit.count = 0
        broker.tick()
    settle(bench)
    assert broker.queues["q"].message_count == (0 if what in ("acknowledge", "commit") else MANY)
    assert bench.pending("q") == ("" if what in ("acknowledge", "commit") else words(0, MANY))


def test_of_a_large_cumulative_acknowledgement_a_crash_leaves_all_or_nothing() -> None:  # ACK-5
    bench, consumer, sequences = holding()
    before = len(bench.store.batches)
    assert bench.broker.acknowledge_through(consumer, sequences[-2])
    settle(bench)
    assert bench.broker.queues["q"].message_count == 1
    batches = bench.store.batches
    found = set()
    for stop in range(before, len(batches) + 1):
        again = Bench(queues=(anycast("q"),), store=RecordingStore(list(batches[:stop])))
        found.add(again.pending("q"))
    assert found == {words(0, MANY), words(MANY - 1, MANY)}


def test_whoever_waits_for_a_large_acknowledgement_is_told_when_all_is_recorded() -> None:
    bench, consumer, sequences = holding()
    assert bench.broker.acknowledge_through(consumer, sequences[-1])
    waiter = Waiter()
    assert consumer.under_way is not None
    consumer.under_way.waiter = waiter
    while bench.broker.queues["q"].message_count:
        assert waiter.ended == []
        bench.broker.tick()
    settle(bench)
    assert waiter.ended == [None]
    assert bench.restart().pending("q") == ""
    assert bench.broker.transactions == {}


def test_a_thousand_messages_are_acknowledged_at_once() -> None:
    bench, consumer, sequences = holding()
    before = len(bench.store.batches)
    assert bench.broker.acknowledge_through(consumer, sequences[999])
    assert consumer.under_way is None
    assert len(bench.store.batches) == before + 1
    assert bench.broker.queues["q"].message_count == MANY - 1_000


def test_a_consumer_that_closes_amid_its_acknowledgement_gets_nothing_of_it_returned() -> None:
    bench, consumer, sequences = holding()
    broker = bench.broker
    broker.acknowledge_through(consumer, sequences[-11])
    broker.tick()
    broker.close_consumer(consumer)
    assert bench.pending("q") == ""  # order: nothing before it is known what returns
    bench.broker.send(bench.message("q", "new"))
    later, port = bench.consume("q")
    assert later is not None
    while len(port.slots) < 11:
        broker.tick()
        assert broker.queues["q"].messages_acknowledged in range(MANY)
    settle(bench)
    assert port.bodies == words(MANY - 10, MANY) + " new"
    assert [slot.delivery_count for slot in port.slots] == [2] * 10 + [1]
    assert broker.queues["q"].message_count == 11


def test_acknowledgements_that_overlap_are_one_after_the_other() -> None:
    bench, consumer, sequences = holding(credit=MessageCredit(MANY))
    broker = bench.broker
    assert broker.acknowledge_through(consumer, sequences[1_500])
    assert broker.acknowledge_through(consumer, sequences[2_500])
    first = len(bench.store.batches)
    settle(bench)
    assert broker.queues["q"].messages_acknowledged == 2_501
    assert [slot.sequence for slot in consumer.held_newest_first()] == sequences[:2_500:-1]
    stops = range(first, len(bench.store.batches) + 1)
    found = {
        Bench(queues=(anycast("q"),), store=RecordingStore(list(bench.store.batches[:n]))).counts("q") for n in stops
    }
    assert {counts[0] for counts in found} == {MANY, MANY - 1_501, MANY - 2_501}


def test_a_rollback_amid_a_large_acknowledgement_keeps_the_order() -> None:  # RING-7
    bench, consumer, sequences = holding()
    broker = bench.broker
    transaction = broker.begin("session")
    assert broker.acknowledge_through(consumer, sequences[2_000], transaction)
    broker.tick()
    broker.rollback(transaction)
    broker.close_consumer(consumer)
    _, port = bench.consume("q")
    settle(bench)
    while len(port.slots) < MANY:
        broker.tick()
    assert port.bodies == words(0, MANY)


def test_a_commit_waits_for_what_its_transaction_is_taking() -> None:
    bench, consumer, sequences = holding()
    broker = bench.broker
    transaction = broker.begin("session")
    assert broker.acknowledge_through(consumer, sequences[2_000], transaction)
    waiter = Waiter()
    assert not broker.commit(transaction, waiter)
    broker.close_consumer(consumer)
    settle(bench)
    assert waiter.ended == [None]
    assert bench.pending("q") == words(2_001, MANY)
    assert bench.restart().pending("q") == words(2_001, MANY)
    assert broker.queues["q"].returning == 0


def test_a_queue_deleted_amid_a_large_acknowledgement_keeps_nothing() -> None:
    bench, consumer, sequences = holding()
    broker = bench.broker
    queue = broker.queues["q"]
    broker.acknowledge_through(consumer, sequences[2_000])
    broker.tick()
    broker.delete_queue("q")
    settle(bench)
    assert queue.message_count == 0
    assert broker.used_bytes == 0
