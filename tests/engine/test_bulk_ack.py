"""Consumers that hold very much: what they answer or leave behind goes in slices, and nothing of it is half done."""

import gc

import pytest

from delosmq.engine.base.jobs import JobWaiter
from delosmq.engine.inspect import PROMISED, Search
from delosmq.engine.log import records
from delosmq.engine.log.log import Batch
from delosmq.engine.queues.consumer import Consumer
from delosmq.engine.queues.credit import Credit, MessageCredit, OpenCredit
from delosmq.model.errors import BrokerError, StorageError
from tests.engine.support import Bench, Collector, RecordingStore, anycast

pytestmark = pytest.mark.slow

MANY = 3_000
PER_TICK = 1_000


class Waiter(JobWaiter):
    def __init__(self) -> None:
        self.ended: list[BrokerError | None] = []

    def on_ended(self, error: BrokerError | None) -> None:
        self.ended.append(error)


class CountedCredit(Credit):
    """Counts what the engine does with single messages."""

    def __init__(self) -> None:
        self.count = 0

    def has_room(self) -> bool:
        return True

    def taken(self, size_bytes: int) -> None:
        self.count += 1

    def settled(self, size_bytes: int) -> None:
        self.count += 1

    def promised(self, size_bytes: int) -> None:
        self.count += 1

    def committed(self, size_bytes: int) -> None:
        self.count += 1


class RefusingStore(RecordingStore):
    """Takes no room for acknowledgements, so often."""

    refusals = 0

    def append(self, batch: Batch) -> None:
        if self.refusals and batch.metas[0][0] == records.PROMISED:
            self.refusals -= 1
            raise StorageError("DMQ3004", "no room")
        super().append(batch)


def holding(
    count: int = MANY, credit: Credit | None = None, store: RecordingStore | None = None
) -> tuple[Bench, Consumer, list[int]]:
    """A consumer that holds that many messages, and their sequences."""
    bench = Bench(queues=(anycast("q"),), store=store)
    for number in range(count):
        bench.broker.producers.send(bench.message("q", str(number)))
    port = Collector()
    consumer = bench.broker.consumers.subscribe("q", port, credit if credit is not None else OpenCredit())
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
    transaction = broker.transactions.begin("session") if what in ("roll back", "commit") else None
    credit.count = 0
    if what == "acknowledge" or transaction is not None:
        assert broker.consumers.acknowledge_through(consumer, sequences[-1], transaction)
    elif what == "reject":
        bench.broker.resources.update_queue("q", paused=True)
        assert broker.consumers.reject_through(consumer, sequences[-1])
    else:
        broker.consumers.close(consumer)
    if transaction is not None:
        while consumer.under_way is not None:
            assert credit.count <= PER_TICK
            credit.count = 0
            broker.tick()
        if what == "commit":
            broker.transactions.commit(transaction)
        else:
            bench.broker.resources.update_queue("q", paused=True)
            broker.transactions.rollback(transaction)
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
    assert bench.broker.consumers.acknowledge_through(consumer, sequences[-2])
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
    assert bench.broker.consumers.acknowledge_through(consumer, sequences[-1])
    waiter = Waiter()
    assert consumer.under_way is not None
    consumer.under_way.waiter = waiter
    while bench.broker.queues["q"].message_count:
        assert waiter.ended == []
        bench.broker.tick()
    settle(bench)
    assert waiter.ended == [None]
    assert bench.restart().pending("q") == ""
    assert bench.broker.transactions.open == {}


def test_a_thousand_messages_are_acknowledged_at_once() -> None:
    bench, consumer, sequences = holding()
    before = len(bench.store.batches)
    assert bench.broker.consumers.acknowledge_through(consumer, sequences[999])
    assert consumer.under_way is None
    assert len(bench.store.batches) == before + 1
    assert bench.broker.queues["q"].message_count == MANY - 1_000


def test_a_consumer_that_closes_amid_its_acknowledgement_gets_nothing_of_it_returned() -> None:
    bench, consumer, sequences = holding()
    broker = bench.broker
    broker.consumers.acknowledge_through(consumer, sequences[-11])
    broker.tick()
    broker.consumers.close(consumer)
    assert bench.pending("q") == ""  # order: nothing before it is known what returns
    bench.broker.producers.send(bench.message("q", "new"))
    later, port = bench.consume("q")
    assert later is not None
    while len(port.slots) < 11:
        broker.tick()
        assert broker.queues["q"].counters.acknowledged in range(MANY)
    settle(bench)
    assert port.bodies == words(MANY - 10, MANY) + " new"
    assert [slot.delivery_count for slot in port.slots] == [2] * 10 + [1]
    assert broker.queues["q"].message_count == 11


def test_acknowledgements_that_overlap_are_one_after_the_other() -> None:
    bench, consumer, sequences = holding(credit=MessageCredit(MANY))
    broker = bench.broker
    assert broker.consumers.acknowledge_through(consumer, sequences[1_500])
    assert broker.consumers.acknowledge_through(consumer, sequences[2_500])
    first = len(bench.store.batches)
    settle(bench)
    assert broker.queues["q"].counters.acknowledged == 2_501
    assert [slot.sequence for slot in consumer.held_newest_first()] == sequences[:2_500:-1]
    stops = range(first, len(bench.store.batches) + 1)
    found = {
        Bench(queues=(anycast("q"),), store=RecordingStore(list(bench.store.batches[:n]))).counts("q") for n in stops
    }
    assert {counts[0] for counts in found} == {MANY, MANY - 1_501, MANY - 2_501}


@pytest.mark.parametrize("transacted", [False, True])
def test_what_a_client_rejected_before_stays_out_of_its_acknowledgement(transacted: bool) -> None:  # ACK-5
    bench, consumer, sequences = holding()
    broker = bench.broker
    assert broker.consumers.acknowledge_through(consumer, sequences[1_499])
    assert broker.consumers.reject(consumer, sequences[1_500])
    transaction = broker.transactions.begin("session") if transacted else None
    assert broker.consumers.acknowledge_through(consumer, sequences[-1], transaction)
    settle(bench)
    if transaction is not None:
        broker.transactions.commit(transaction)
        settle(bench)
    assert [(slot.sequence, slot.delivery_count) for slot in consumer.held_newest_first()] == [(sequences[1_500], 2)]


def test_what_was_rejected_and_is_delivered_again_amid_an_acknowledgement_stays_out_of_it() -> None:  # ACK-5
    bench, consumer, sequences = holding()
    broker = bench.broker
    assert broker.consumers.acknowledge_through(consumer, sequences[1_000])
    assert broker.consumers.reject(consumer, sequences[2_500])
    while consumer.under_way is not None:
        broker.tick()
    assert broker.consumers.acknowledge_through(consumer, sequences[-1])
    settle(bench)
    assert [(slot.sequence, slot.delivery_count) for slot in consumer.held_newest_first()] == [(sequences[2_500], 2)]


@pytest.mark.parametrize("count", [2_900, 1_300])
def test_so_does_what_is_still_on_its_way_back(count: int) -> None:  # ACK-5
    bench, consumer, sequences = holding(count)
    broker = bench.broker
    assert broker.consumers.reject_through(consumer, sequences[-101])
    assert consumer.held_count > 100, "all of it is back at once"
    assert broker.consumers.acknowledge_through(consumer, sequences[-1])
    settle(bench)
    assert sorted(slot.sequence for slot in consumer.held_newest_first()) == sequences[:-100]
    assert broker.consumers.acknowledge_through(consumer, sequences[-101]), (
        "it was delivered again, and can be acknowledged"
    )
    settle(bench)
    assert consumer.held_count == bench.broker.queues["q"].message_count == 0


def test_an_acknowledgement_is_not_recorded_before_an_earlier_one_that_it_includes() -> None:  # ACK-5
    bench, consumer, sequences = holding()
    broker = bench.broker
    assert broker.consumers.acknowledge_through(consumer, sequences[2_500])
    assert broker.consumers.acknowledge_through(consumer, sequences[2_510])
    first = len(bench.store.batches)
    settle(bench)
    batches = bench.store.batches
    stores = [RecordingStore(list(batches[:stop])) for stop in range(first, len(batches) + 1)]
    found = {Bench(queues=(anycast("q"),), store=store).pending("q") for store in stores}
    assert found == {words(0, MANY), words(2_501, MANY), words(2_511, MANY)}


def test_and_comes_to_nothing_when_that_one_does() -> None:  # ACK-5
    store = RefusingStore()
    bench, consumer, sequences = holding(store=store)
    broker = bench.broker
    told = []
    for sequence in (sequences[1_500], sequences[2_900]):
        assert broker.consumers.acknowledge_through(consumer, sequence)
        waiter = Waiter()
        assert consumer.under_way is not None
        consumer.under_way.waiter = waiter
        told.append(waiter)
    store.refusals = 1
    settle(bench)
    assert [error is None for waiter in told for error in waiter.ended] == [False, False]
    assert consumer.held_count == MANY
    assert len(consumer.held_newest_first()) == MANY
    assert broker.consumers.acknowledge_through(consumer, sequences[-1])
    settle(bench)
    assert bench.restart().pending("q") == ""


def test_a_rollback_amid_a_large_acknowledgement_keeps_the_order() -> None:  # RING-7
    bench, consumer, sequences = holding()
    broker = bench.broker
    transaction = broker.transactions.begin("session")
    assert broker.consumers.acknowledge_through(consumer, sequences[2_000], transaction)
    broker.tick()
    broker.transactions.rollback(transaction)
    broker.consumers.close(consumer)
    _, port = bench.consume("q")
    settle(bench)
    while len(port.slots) < MANY:
        broker.tick()
    assert port.bodies == words(0, MANY)


@pytest.mark.parametrize("count", [900, MANY])
def test_a_rollback_amid_an_acknowledgement_returns_all_of_it(count: int) -> None:  # RING-7
    bench, consumer, sequences = holding(count)
    broker = bench.broker
    transaction = broker.transactions.begin("session")
    assert broker.consumers.acknowledge_through(consumer, sequences[-2], transaction)
    broker.tick()
    bench.broker.resources.update_queue("q", paused=True)
    broker.transactions.rollback(transaction)
    settle(bench)
    assert bench.pending("q") == words(0, count - 1)
    assert consumer.held_count == 1


def test_a_commit_waits_for_what_its_transaction_is_taking() -> None:
    bench, consumer, sequences = holding()
    broker = bench.broker
    transaction = broker.transactions.begin("session")
    assert broker.consumers.acknowledge_through(consumer, sequences[2_000], transaction)
    waiter = Waiter()
    assert not broker.transactions.commit(transaction, waiter)
    broker.consumers.close(consumer)
    settle(bench)
    assert waiter.ended == [None]
    assert bench.pending("q") == words(2_001, MANY)
    assert bench.restart().pending("q") == words(2_001, MANY)
    assert broker.queues["q"].suspensions == 0


def test_a_queue_deleted_amid_a_large_acknowledgement_keeps_nothing() -> None:
    bench, consumer, sequences = holding()
    broker = bench.broker
    queue = broker.queues["q"]
    broker.consumers.acknowledge_through(consumer, sequences[2_000])
    broker.tick()
    broker.resources.delete_queue("q")
    settle(bench)
    assert queue.message_count == 0
    assert broker.used_bytes == 0


@pytest.mark.parametrize("count", [900, MANY])
@pytest.mark.parametrize("through", [True, False])
def test_what_another_transaction_has_when_an_acknowledgement_comes_stays_out_of_it(count: int, through: bool) -> None:
    bench, consumer, sequences = holding(count)
    broker = bench.broker
    transaction = broker.transactions.begin("session")
    for sequence in [sequences[-3]] if not through else sequences[-12:-2]:
        assert broker.consumers.acknowledge(consumer, sequence, transaction)
    assert broker.consumers.acknowledge_through(consumer, sequences[-1])
    broker.transactions.rollback(transaction)
    settle(bench)
    left = words(count - 12, count - 2) if through else words(count - 3, count - 2)
    broker.consumers.close(consumer)
    settle(bench)
    assert bench.pending("q") == left
    assert bench.restart().pending("q") == left


def test_what_a_transaction_is_still_taking_stays_out_of_a_later_acknowledgement() -> None:
    bench, consumer, sequences = holding()
    broker = bench.broker
    transaction = broker.transactions.begin("session")
    assert broker.consumers.acknowledge_through(consumer, sequences[1_500], transaction)
    assert broker.consumers.acknowledge_through(consumer, sequences[2_900])
    broker.tick()
    broker.transactions.rollback(transaction)
    broker.consumers.close(consumer)
    settle(bench)
    assert bench.pending("q") == words(0, 1_501) + " " + words(2_901, MANY)


@pytest.mark.parametrize("count", [900, MANY])
def test_an_acknowledgement_of_what_others_acknowledge_is_refused_however_large(count: int) -> None:
    bench, consumer, sequences = holding(count)
    broker = bench.broker
    transaction = broker.transactions.begin("session")
    for sequence in sequences:
        assert broker.consumers.acknowledge(consumer, sequence, transaction)
    assert not broker.consumers.acknowledge_through(consumer, sequences[-1])
    assert not broker.consumers.acknowledge_through(consumer, sequences[-1], broker.transactions.begin("session"))
    assert consumer.under_way is None


def test_what_is_acknowledged_in_slices_is_found_after_its_consumer_left() -> None:
    bench, consumer, sequences = holding()
    broker = bench.broker
    queue = broker.queues["q"]
    broker.consumers.acknowledge_through(consumer, sequences[-1])
    for _ in range(4):
        broker.tick()
    broker.consumers.close(consumer)
    search = Search(broker.inspector, queue, sequences[5])
    assert list(search.steps()) is not None
    assert search.found is not None
    assert search.found.standing == PROMISED
    settle(bench)
    gone = Search(broker.inspector, queue, sequences[5])
    assert list(gone.steps()) == []
    assert gone.found is None
    assert list(broker.inspector.promised(queue)) == []


@pytest.mark.parametrize("what", ["acknowledge", "reject", "close", "roll back"])
def test_what_is_under_way_gives_the_garbage_collector_nothing_to_look_at(what: str) -> None:
    bench, consumer, sequences = holding()
    broker = bench.broker
    slot = consumer.slot_of(sequences[0])
    before = long_lists_with(slot)
    if what == "acknowledge":
        assert broker.consumers.acknowledge_through(consumer, sequences[-1])
    elif what == "reject":
        assert broker.consumers.reject_through(consumer, sequences[-1])
    elif what == "close":
        broker.consumers.close(consumer)
    else:
        transaction = broker.transactions.begin("session")
        assert broker.consumers.acknowledge_through(consumer, sequences[-1], transaction)
        while consumer.under_way is not None:
            broker.tick()
        broker.transactions.rollback(transaction)
        while consumer.held_count == MANY:
            broker.tick()
    assert consumer.held_count > PER_TICK
    assert long_lists_with(slot) == before


def long_lists_with(slot: object) -> int:
    return len([one for one in gc.get_referrers(slot) if isinstance(one, list) and len(one) > PER_TICK])
