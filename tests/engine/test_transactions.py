"""Transactions: sends and acknowledgements together or not at all, across every crash."""

import pytest

from delosmq.engine.base.events import EngineEvents
from delosmq.engine.base.jobs import JobWaiter
from delosmq.engine.base.slots import Slot
from delosmq.engine.broker import EngineBroker
from delosmq.engine.log.log import Batch
from delosmq.engine.log.records import PROMISED, TRANSACTION
from delosmq.engine.queues.consumer import Consumer
from delosmq.engine.queues.credit import MessageCredit
from delosmq.engine.routing.send_result import BLOCKED, DROPPED, ROUTED
from delosmq.engine.transactions.transaction import (
    COMMITTED,
    ROLLED_BACK,
    Transaction,
    TransactionError,
)
from delosmq.model.errors import BrokerError, LimitError, MisuseError
from delosmq.model.message import MULTICAST, Message
from delosmq.model.settings import AddressFullPolicy, QueueSettings
from tests.engine.support import Bench, Collector, RecordingStore, anycast

LARGE = 450


class Waiter(JobWaiter):
    def __init__(self) -> None:
        self.ended: list[BrokerError | None] = []

    def on_ended(self, error: BrokerError | None) -> None:
        self.ended.append(error)


class Ends(EngineEvents):
    def __init__(self) -> None:
        self.seen: list[str] = []

    def transaction_committed(self, transaction: int, sends: int, acknowledgements: int) -> None:
        self.seen.append(f"committed {sends} {acknowledgements}")

    def transaction_rolled_back(self, transaction: int, sends: int, acknowledgements: int) -> None:
        self.seen.append(f"rolled back {sends} {acknowledgements}")


def send(bench: Bench, transaction: Transaction, address: str, bodies: str, *, durable: bool = True) -> list[int]:
    return [
        bench.broker.transactions.send(transaction, bench.message(address, body, durable=durable))
        for body in bodies.split()
    ]


def promise(bench: Bench, transaction: Transaction, consumer: Consumer, slots: list[Slot]) -> None:
    for slot in slots:
        assert bench.broker.consumers.acknowledge(consumer, slot.sequence, transaction)


def recount(broker: EngineBroker) -> int:
    """What all messages in queues count, each once."""
    found: dict[int, Message] = {}
    for queue in broker.queues.values():
        for pending in queue.pending.in_order():
            found[id(pending.message)] = pending.message
        for consumer in queue.holders:
            slot = consumer.in_delivery.head
            while slot is not None:
                found[id(slot.message)] = slot.message
                slot = slot.next
    return sum(message.charge_bytes for message in found.values())


class CountingStore(RecordingStore):
    """Counts the places that messages take, as a journal counts what keeps its segments."""

    def __init__(
        self, batches: list[tuple[int, list[bytes], list[bytes]]] | None = None, changes: list[int] | None = None
    ) -> None:
        super().__init__(batches)
        self.changes = changes if changes is not None else []

    def append(self, batch: Batch) -> None:
        super().append(batch)
        self.changes.append(len(batch.stored) - len(batch.released))

    @property
    def live(self) -> int:
        return sum(self.changes)

    def upto(self, count: int) -> "CountingStore":
        return CountingStore(list(self.batches[:count]), list(self.changes[:count]))


def _policy(name: str) -> AddressFullPolicy:
    return AddressFullPolicy[name]


def drain(bench: Bench, queue: str) -> None:
    consumer, _ = bench.consume(queue)
    bench.run()
    while consumer.in_delivery.tail is not None:
        bench.broker.consumers.acknowledge_through(consumer, consumer.in_delivery.tail.sequence)
        bench.run()
    bench.broker.consumers.close(consumer)


def numbers(start: int, count: int) -> str:
    return " ".join(str(k) for k in range(start, start + count))


# -- small ones ----------------------------------------------------------------------------------------------------


def test_nothing_happens_before_the_commit_and_all_of_it_with_one_batch() -> None:  # ACK-5
    events = Ends()
    bench = Bench(queues=(anycast("in"), anycast("out")), events=events)
    consumer, port = bench.consume("in")
    bench.send("in", "a b")
    bench.run()
    batches = len(bench.store.batches)
    transaction = bench.broker.transactions.begin("session")
    assert send(bench, transaction, "out", "x y") == [ROUTED, ROUTED]
    promise(bench, transaction, consumer, port.slots)
    assert len(bench.store.batches) == batches
    assert bench.pending("out") == ""
    assert bench.broker.queues["in"].delivering.count == 2
    assert bench.broker.transactions.commit(transaction)
    assert len(bench.store.batches) == batches + 1
    assert bench.pending("out") == "x y"
    assert bench.broker.queues["in"].message_count == 0
    assert bench.broker.queues["in"].counters.acknowledged == 2
    assert transaction.state == COMMITTED
    assert bench.broker.transactions.open == {}
    assert events.seen == ["committed 2 2"]


def test_a_commit_survives_a_restart_and_its_lack_leaves_nothing() -> None:  # ACK-5
    bench = Bench(queues=(anycast("in"), anycast("out")))
    consumer, port = bench.consume("in")
    bench.send("in", "a b")
    bench.run()
    transaction = bench.broker.transactions.begin("session")
    send(bench, transaction, "out", "x")
    promise(bench, transaction, consumer, port.slots[:1])
    before = bench.restart()
    assert (before.pending("in"), before.pending("out")) == ("a b", "")
    bench.broker.transactions.commit(transaction)
    after = bench.restart()
    assert (after.pending("in"), after.pending("out")) == ("b", "x")
    assert after.broker.used_bytes == recount(after.broker)


def test_a_rollback_gives_back_what_a_closing_consumer_would_in_its_order() -> None:  # RING-7
    bench = Bench(queues=(anycast("in", ring_size=4),))
    consumer, port = bench.consume("in")
    bench.send("in", "a b c")
    bench.run()
    transaction = bench.broker.transactions.begin("session")
    promise(bench, transaction, consumer, [port.slots[1], port.slots[0], port.slots[2]])
    port.room = False
    bench.send("in", "d e f")
    bench.broker.transactions.rollback(transaction)
    # Three are pending and one place is free: the newest of what returns gets it.
    assert bench.pending("in") == "c d e f"
    assert bench.broker.queues["in"].counters.replaced == 2
    assert transaction.state == ROLLED_BACK
    assert [slot.delivery_count for slot in bench.broker.queues["in"].pending.in_order()] == [1, 0, 0, 0]
    assert [slot.message.body for slot in bench.restart().broker.queues["in"].pending.in_order()] == [
        b"c", b"d", b"e", b"f"
    ]  # fmt: skip


def test_a_rollback_can_leave_messages_with_their_consumer() -> None:
    bench = Bench(queues=(anycast("in"),))
    consumer, port = bench.consume("in", MessageCredit(2))
    bench.send("in", "a b c d")
    bench.run()
    transaction = bench.broker.transactions.begin("session")
    promise(bench, transaction, consumer, port.slots)
    bench.run()
    assert port.bodies == "a b c d"  # a promised message takes no credit
    bench.broker.transactions.rollback(transaction, keep_delivered=True)
    assert consumer.held_count == 4
    assert not consumer.credit.has_room()
    assert bench.broker.consumers.acknowledge_through(consumer, port.slots[3].sequence)
    assert bench.broker.queues["in"].message_count == 0
    assert consumer.credit.has_room()


@pytest.mark.parametrize("keeps", [True, False])
def test_a_commit_that_fails_leaves_messages_with_a_consumer_that_delivers_them_again_itself(keeps: bool) -> None:
    bench = Bench(queues=(anycast("in"), anycast("gone")))
    consumer, port = bench.consume("in")
    bench.send("in", "a b")
    bench.run()
    transaction = bench.broker.transactions.begin("session")
    transaction.keeps_delivered = keeps
    promise(bench, transaction, consumer, port.slots)
    transaction.set_rollback_only(MisuseError("DMQ2104", "a message of it can't be sent"))
    with pytest.raises(MisuseError, match="can't be sent"):
        bench.broker.transactions.commit(transaction)
    assert consumer.held_count == (2 if keeps else 0)


@pytest.mark.parametrize("commit", [True, False])
def test_acknowledgements_stay_with_the_transaction_when_their_consumer_closes(commit: bool) -> None:  # ACK-5
    bench = Bench(queues=(anycast("in"),))
    consumer, port = bench.consume("in")
    bench.send("in", "a b c")
    bench.run()
    transaction = bench.broker.transactions.begin("session")
    promise(bench, transaction, consumer, port.slots[:2])
    bench.broker.consumers.close(consumer)
    assert bench.pending("in") == "c"
    assert bench.broker.queues["in"].delivering.count == 2
    if commit:
        bench.broker.transactions.commit(transaction)
        assert bench.pending("in") == "c"
    else:
        bench.broker.transactions.rollback(transaction, keep_delivered=True)
        assert bench.pending("in") == "a b c"
    assert bench.broker.queues["in"].delivering.count == 0


def test_a_promised_message_cannot_be_answered_again() -> None:
    bench = Bench(queues=(anycast("in"),))
    consumer, port = bench.consume("in")
    bench.send("in", "a b c")
    bench.run()
    transaction = bench.broker.transactions.begin("session")
    assert bench.broker.consumers.acknowledge(consumer, port.slots[1].sequence, transaction)
    assert not bench.broker.consumers.acknowledge(consumer, port.slots[1].sequence, transaction)
    assert not bench.broker.consumers.acknowledge(consumer, port.slots[1].sequence)
    assert not bench.broker.consumers.reject(consumer, port.slots[1].sequence)
    assert bench.broker.consumers.acknowledge_through(consumer, port.slots[2].sequence, transaction)
    bench.broker.transactions.rollback(transaction)
    bench.run()
    assert port.bodies == "a b c a b c"


@pytest.mark.parametrize("commit", [True, False])
def test_a_deleted_queue_takes_the_acknowledgements_with_it(commit: bool) -> None:
    bench = Bench(queues=(anycast("in"), anycast("out")))
    consumer, port = bench.consume("in")
    bench.send("in", "a b")
    bench.run()
    transaction = bench.broker.transactions.begin("session")
    promise(bench, transaction, consumer, port.slots)
    send(bench, transaction, "out", "x")
    bench.broker.resources.delete_queue("in")
    if commit:
        bench.broker.transactions.commit(transaction)
    else:
        bench.broker.transactions.rollback(transaction)
    bench.run()
    assert bench.pending("out") == ("x" if commit else "")
    assert bench.broker.used_bytes == recount(bench.broker)
    assert bench.store.released == 2
    assert bench.restart().pending("out") == bench.pending("out")


def test_a_message_that_cannot_be_routed_at_the_commit_rolls_all_back() -> None:  # ACK-5
    bench = Bench(queues=(anycast("in"), anycast("out")), settings={"out": {"auto_create_addresses": False}})
    consumer, port = bench.consume("in")
    bench.send("in", "a")
    bench.run()
    transaction = bench.broker.transactions.begin("session")
    bench.broker.transactions.send(transaction, bench.message("in", "b"))
    bench.broker.transactions.send(transaction, bench.message("out", "x"), queue_name="out")
    promise(bench, transaction, consumer, port.slots)
    port.room = False
    bench.broker.resources.delete_queue("out")
    with pytest.raises(TransactionError, match=r"DMQ2661.*out"):
        bench.broker.transactions.commit(transaction)
    assert bench.pending("in") == "a"
    assert bench.broker.used_bytes == recount(bench.broker)
    assert transaction.state == ROLLED_BACK
    assert all(queue.pending_commits == 0 for queue in bench.broker.queues.values())


def test_what_nobody_takes_is_no_error() -> None:
    bench = Bench(settings={"news": {"auto_create_queues": False}})
    transaction = bench.broker.transactions.begin("session")
    bench.broker.transactions.send(transaction, bench.message("news", "x"), routing=MULTICAST)
    assert bench.broker.transactions.commit(transaction)
    assert bench.broker.used_bytes == 0


def test_a_message_for_several_queues_is_stored_once() -> None:
    queues = tuple(QueueSettings(name, "news", MULTICAST, True) for name in ("one", "two"))
    bench = Bench(queues=queues)
    transaction = bench.broker.transactions.begin("session")
    send(bench, transaction, "news", "x")
    used = bench.broker.used_bytes
    bench.broker.transactions.commit(transaction)
    assert bench.broker.used_bytes == used == recount(bench.broker)
    again = bench.restart()
    assert (again.pending("one"), again.pending("two")) == ("x", "x")


# -- limits --------------------------------------------------------------------------------------------------------


def test_what_is_sent_counts_from_the_send_on() -> None:
    bench = Bench(
        queues=(anycast("q"),), settings={"q": {"max_size_messages": 2, "address_full_policy": _policy("FAIL")}}
    )
    transaction = bench.broker.transactions.begin("session")
    assert send(bench, transaction, "q", "a b") == [ROUTED, ROUTED]
    used = bench.broker.used_bytes
    assert used > 0
    with pytest.raises(LimitError, match="DMQ2201"):
        send(bench, transaction, "q", "c")
    with pytest.raises(LimitError, match="DMQ2201"):
        bench.send("q", "c")
    assert bench.broker.transactions.commit(transaction)  # the send was refused, not the transaction
    assert bench.pending("q") == "a b"
    assert bench.broker.used_bytes == used == recount(bench.broker)


def test_a_rollback_gives_the_memory_back() -> None:
    bench = Bench(
        queues=(anycast("q"),), settings={"q": {"max_size_messages": 2, "address_full_policy": _policy("DROP")}}
    )
    transaction = bench.broker.transactions.begin("session")
    assert send(bench, transaction, "q", "a b c") == [ROUTED, ROUTED, DROPPED]
    bench.broker.transactions.rollback(transaction)
    assert bench.broker.used_bytes == 0
    assert bench.send("q", "d e f") == [ROUTED, ROUTED, DROPPED]


def test_a_transaction_waits_for_others_but_never_for_itself() -> None:
    bench = Bench(
        queues=(anycast("q"),), settings={"q": {"max_size_messages": 2, "address_full_policy": _policy("BLOCK")}}
    )
    bench.send("q", "a")
    transaction = bench.broker.transactions.begin("session")
    assert send(bench, transaction, "q", "b c") == [ROUTED, BLOCKED]
    bench.consume("q")
    bench.run()
    for holder in bench.broker.queues["q"].holders:
        bench.broker.consumers.acknowledge_through(
            holder, 0 if holder.in_delivery.head is None else holder.in_delivery.head.sequence
        )
    assert send(bench, transaction, "q", "c") == [ROUTED]
    with pytest.raises(LimitError, match=r"DMQ2664.*'q'"):
        send(bench, transaction, "q", "d")
    assert bench.broker.transactions.commit(transaction)


def test_an_owner_has_a_bound_of_open_transactions() -> None:
    bench = Bench()
    first = bench.broker.transactions.begin("session", 2)
    bench.broker.transactions.begin("session", 2)
    with pytest.raises(LimitError, match=r"DMQ2662.*'session' has 2"):
        bench.broker.transactions.begin("session", 2)
    bench.broker.transactions.begin("other", 2)
    bench.broker.transactions.rollback(first)
    bench.broker.transactions.begin("session", 2)


def test_an_ended_transaction_takes_nothing_more() -> None:
    bench = Bench(queues=(anycast("q"),))
    transaction = bench.broker.transactions.begin("session")
    bench.broker.transactions.commit(transaction)
    with pytest.raises(MisuseError, match=r"DMQ2663.*committed"):
        send(bench, transaction, "q", "a")
    with pytest.raises(MisuseError, match="DMQ2663"):
        bench.broker.transactions.commit(transaction)
    with pytest.raises(MisuseError, match="DMQ2663"):
        bench.broker.transactions.rollback(transaction)


# -- large ones ----------------------------------------------------------------------------------------------------


def large(store: RecordingStore | None = None) -> tuple[Bench, Transaction, Waiter, Collector]:
    """A transaction of many sends and acknowledgements, not committed yet."""
    bench = Bench(queues=(anycast("in"), anycast("out")), store=store)
    consumer, port = bench.consume("in")
    bench.send("in", numbers(0, LARGE))
    bench.run()
    transaction = bench.broker.transactions.begin("session")
    send(bench, transaction, "out", numbers(1000, LARGE))
    assert bench.broker.consumers.acknowledge_through(consumer, port.slots[-1].sequence, transaction)
    return bench, transaction, Waiter(), port


def test_a_large_commit_goes_in_slices_and_happens_as_one() -> None:  # ACK-5
    bench, transaction, waiter, _ = large()
    used = bench.broker.used_bytes
    assert not bench.broker.transactions.commit(transaction, waiter)
    assert bench.pending("out") == ""
    ticks = 0
    while not waiter.ended:
        bench.broker.tick()
        ticks += 1
    assert waiter.ended == [None]
    assert ticks > 5
    assert bench.pending("out") == numbers(1000, LARGE)
    assert bench.broker.queues["in"].message_count == 0
    assert bench.broker.used_bytes == recount(bench.broker) < used
    assert bench.broker.queues["out"].barrier_sequence == 0
    assert all(queue.pending_commits == 0 for queue in bench.broker.queues.values())


def test_a_crash_anywhere_in_a_large_commit_leaves_all_or_nothing() -> None:  # ACK-5
    bench, transaction, waiter, _ = large()
    before = len(bench.store.batches)
    bench.broker.transactions.commit(transaction, waiter)
    bench.run()
    everything = bench.store.batches
    outcomes: list[bool] = []
    for count in range(before, len(everything) + 1):
        cut = Bench(queues=(anycast("in"), anycast("out")), store=RecordingStore(list(everything[:count])))
        there = cut.pending("out")
        left = cut.pending("in")
        assert (left, there) in ((numbers(0, LARGE), ""), ("", numbers(1000, LARGE))), count
        outcomes.append(there != "")
        assert cut.broker.used_bytes == recount(cut.broker)
        # What was given up, or ended, at this start is so for the next one too.
        again = cut.restart()
        assert (again.pending("in"), again.pending("out")) == (left, there)
        for held in (*cut.broker.queues.values(), *again.broker.queues.values()):
            assert held.barrier_sequence == 0
    assert outcomes == sorted(outcomes)
    assert (outcomes[0], outcomes[-1]) == (False, True)


def test_every_place_in_the_store_is_given_back_once_whenever_it_crashed() -> None:  # ACK-5
    kept = CountingStore()
    bench, transaction, waiter, _ = large(kept)
    before = len(kept.batches)
    bench.broker.transactions.commit(transaction, waiter)
    bench.run()
    for count in range(before, len(kept.batches) + 1):
        store = kept.upto(count)
        cut = Bench(queues=(anycast("in"), anycast("out")), store=store)
        for name in ("in", "out"):
            drain(cut, name)
        assert cut.broker.used_bytes == 0
        assert store.live == 0, count


def test_messages_of_a_large_commit_stand_before_later_sends() -> None:  # ACK-5
    bench, transaction, waiter, _ = large()
    _, port = bench.consume("out")
    bench.broker.transactions.commit(transaction, waiter)
    late = 0
    while not waiter.ended:
        bench.broker.tick()
        if transaction.position and not late:
            bench.send("out", "late", priority=4)
            late = 1
    bench.run()
    assert late
    assert port.bodies == numbers(1000, LARGE) + " late"


def test_large_commits_on_one_queue_follow_each_other_whole() -> None:  # ACK-5
    bench = Bench(queues=(anycast("out"),))
    waiters = [Waiter(), Waiter(), Waiter()]
    sizes = (4 * LARGE, LARGE, LARGE)
    for k, waiter in enumerate(waiters):
        transaction = bench.broker.transactions.begin("session")
        send(bench, transaction, "out", numbers(10_000 * k, sizes[k]))
        bench.broker.transactions.commit(transaction, waiter)
        while not transaction.position and k == 0:
            bench.broker.tick()  # the others come while this one is linked
    _, port = bench.consume("out")
    bench.run()
    got = [int(body) for body in port.bodies.split()]
    assert [waiter.ended for waiter in waiters] == [[None]] * 3
    assert sorted(got) == got
    assert len(got) == 6 * LARGE


def test_other_traffic_goes_on_during_a_large_commit() -> None:
    bench, transaction, waiter, _ = large()
    bench.broker.resources.create_queue(anycast("else"))
    _, port = bench.consume("else")
    bench.broker.transactions.commit(transaction, waiter)
    served = 0
    while not waiter.ended:
        bench.send("else", "m")
        bench.broker.tick()
        served += 1
        assert len(port.slots) == served


def test_a_large_commit_of_non_durable_messages_writes_nothing() -> None:
    bench = Bench(queues=(anycast("out"),))
    transaction = bench.broker.transactions.begin("session")
    send(bench, transaction, "out", numbers(0, LARGE), durable=False)
    batches = len(bench.store.batches)
    waiter = Waiter()
    bench.broker.transactions.commit(transaction, waiter)
    bench.run()
    assert bench.pending("out") == numbers(0, LARGE)
    assert len(bench.store.batches) == batches


def test_a_queue_deleted_while_a_large_commit_is_linked_ends_its_part() -> None:
    queues = tuple(QueueSettings(name, "news", MULTICAST, True) for name in ("one", "two"))
    store = CountingStore()
    bench = Bench(queues=queues, store=store)
    transaction = bench.broker.transactions.begin("session")
    send(bench, transaction, "news", numbers(0, LARGE))
    waiter = Waiter()
    bench.broker.transactions.commit(transaction, waiter)
    while not transaction.position:
        bench.broker.tick()
    bench.broker.tick()
    bench.broker.resources.delete_queue("two")
    bench.run()
    assert waiter.ended == [None]
    assert bench.pending("one") == numbers(0, LARGE)
    assert bench.restart().pending("one") == numbers(0, LARGE)
    drain(bench, "one")
    assert store.live == 0
    assert bench.broker.used_bytes == 0


def test_a_large_rollback_gives_everything_back_in_order() -> None:  # RING-7
    bench, transaction, _, port = large()
    port.room = False
    bench.broker.transactions.rollback(transaction)
    bench.run()
    assert bench.pending("in") == numbers(0, LARGE)
    assert bench.pending("out") == ""
    assert bench.broker.used_bytes == recount(bench.broker)
    assert transaction.state == ROLLED_BACK


def test_a_large_commit_that_fails_on_its_way_is_undone() -> None:  # ACK-5
    bench, transaction, waiter, port = large()
    bench.broker.transactions.send(transaction, bench.message("in", "named"), queue_name="in")
    bench.broker.resources.create_queue(anycast("gone"))
    bench.broker.transactions.send(transaction, bench.message("gone", "x"), queue_name="gone")
    port.room = False
    bench.broker.resources.delete_queue("gone")
    bench.broker.transactions.commit(transaction, waiter)
    bench.run()
    [error] = waiter.ended
    assert isinstance(error, TransactionError)
    assert error.condition == "NOT_ROUTED"
    assert bench.pending("in") == numbers(0, LARGE)
    assert bench.pending("out") == ""
    assert bench.broker.used_bytes == recount(bench.broker)
    assert all(queue.pending_commits == 0 for queue in bench.broker.queues.values())


def test_many_bytes_make_a_transaction_large_too() -> None:
    bench = Bench(queues=(anycast("out"),))
    transaction = bench.broker.transactions.begin("session")
    body = "x" * (3 << 20)
    for _ in range(4):
        bench.broker.transactions.send(transaction, bench.message("out", body))
    batches = len(bench.store.batches)
    waiter = Waiter()
    assert not bench.broker.transactions.commit(transaction, waiter)
    bench.run()
    assert waiter.ended == [None]
    assert len(bench.store.batches) > batches + 1
    assert bench.broker.queues["out"].pending.count == 4
    assert bench.restart().broker.queues["out"].pending.count == 4


class SpreadStore(CountingStore):
    """Gives each batch a segment of its own, and remembers in which segments the targets of each kind of record lie."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: dict[int, set[int]] = {}

    def append(self, batch: Batch) -> None:
        segments = {home.segment for home in batch.targets}
        super().append(batch)
        for meta in batch.metas:
            self.targets.setdefault(meta[0], set()).update(segments)
        for _, home in batch.stored:
            home.segment = len(self.batches)


def test_records_of_a_large_commit_stay_as_long_as_the_messages_they_are_about() -> None:  # ACK-5
    store = SpreadStore()
    bench, transaction, waiter, port = large(store)
    acknowledged = {slot.message.home.segment for slot in port.slots if slot.message.home is not None}
    bench.broker.transactions.commit(transaction, waiter)
    bench.run()
    sent = {
        slot.message.home.segment
        for slot in bench.broker.queues["out"].pending.in_order()
        if slot.message.home is not None
    }
    assert len(acknowledged) > 100
    assert len(sent) > 1
    assert store.targets[PROMISED] == acknowledged
    assert store.targets[TRANSACTION] == acknowledged | sent
