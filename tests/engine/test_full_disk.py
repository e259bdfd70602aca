"""On a full disk what ends something goes on, what begins something is refused before anything has changed (0027)."""

from collections.abc import Callable

import pytest

from delosmq.engine.base.events import EngineEvents
from delosmq.engine.base.jobs import JobWaiter
from delosmq.engine.broker import EngineBroker
from delosmq.engine.leases.lease import Lease
from delosmq.engine.lifecycle.subscriptions import SubscriptionOptions
from delosmq.engine.log.log import IDS_RESERVED, IDS_RESERVED_WHEN_LOW, Batch, Log
from delosmq.engine.queues.consumer import Consumer
from delosmq.engine.queues.credit import OpenCredit
from delosmq.engine.transactions.xa import XaError
from delosmq.model.conversion import Conversions
from delosmq.model.errors import (
    XA_RBROLLBACK,
    BrokerError,
    LimitError,
    StorageError,
)
from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.settings import AddressMatch, BrokerSettings, QueueSettings
from delosmq.wire.stomp.conversion import StompConversion
from tests.engine.routing_support import RoutingBench
from tests.engine.support import Bench, Collector, CountingRandom, ManualClock, RecordingStore, anycast

X = b"branch"
SECOND_MS = 1_000


class FullStore(RecordingStore):
    """Takes what stores no message, and while it is full nothing else.

    Attributes:
        last_batch: the first so many batches find room all the same.
    """

    full = False
    last_batch = 0

    def append(self, batch: Batch) -> None:
        if self.full and batch.stored_count:
            raise StorageError("DMQ3004", "no room for messages")
        super().append(batch)

    def takes(self, size_bytes: int) -> bool:
        return not self.full or len(self.batches) < self.last_batch


class RetainingBench(RoutingBench):
    def __init__(self, store: RecordingStore) -> None:
        self.clock = ManualClock()
        self.store = store
        self.settings = BrokerSettings(
            address_settings=(AddressMatch("news", {"subscription_recovery_retained": True}),)
        )
        self.broker = EngineBroker(
            self.settings,
            store,
            clock=self.clock,
            random=CountingRandom(),
            events=EngineEvents(),
            conversions=Conversions({"stomp": StompConversion()}),
        )
        self.broker.start()


def bench_with(**fields: object) -> tuple[Bench, FullStore]:
    store = FullStore()
    queues = (anycast("q"), anycast("EXP"), QueueSettings("t.q", "t", MULTICAST))
    return Bench(queues=queues, settings={"q": fields}, store=store), store


def fill(bench: Bench, store: FullStore, full: bool = True) -> None:
    store.full = full
    if full:
        bench.broker.set_storage_full(True)
    else:
        bench.broker.set_storage_low(False)


def subscribe(bench: Bench, name: str = "me", *, durable: bool = True, selector: str = "") -> Consumer:
    options = SubscriptionOptions(name=name, durable=durable, filter=selector)
    return bench.broker.consumers.subscribe("t", Collector(), OpenCredit(), routing=MULTICAST, subscription=options)


BEGINNINGS: dict[str, Callable[[Bench], object]] = {
    "a queue": lambda bench: bench.broker.resources.create_queue(anycast("new")),
    "an address": lambda bench: bench.broker.resources.create_address("new", {ANYCAST}),
    "a routing type": lambda bench: bench.broker.resources.create_address("q", {MULTICAST}),
    "a durable subscription": subscribe,
    "a queue that a consumer needs": lambda bench: bench.consume("new"),
    "a queue that a message needs": lambda bench: bench.broker.producers.send(
        bench.message("new", "A"), routing=ANYCAST
    ),
    "other settings": lambda bench: bench.broker.resources.update_queue("q", ring_size=5),
    "a pause": lambda bench: bench.broker.resources.update_queue("q", paused=True),
    "a lease group": lambda bench: bench.broker.lease_groups.open("g", queue="q", topic="", run="r", incarnation=None),
    "one with a subscription": lambda bench: bench.broker.lease_groups.open(
        "g", queue="", topic="t", run="r", incarnation=None
    ),
}


def standing(bench: Bench) -> object:
    """What there is, and what is stored."""
    bench.broker.log.close()
    queues = {name: (queue.settings, len(queue.holders)) for name, queue in bench.broker.queues.items()}
    addresses = {name: sorted(known.routing_types) for name, known in bench.broker.addresses.items()}
    return queues, addresses, list(bench.broker.leases.groups), len(bench.store.batches)


@pytest.mark.parametrize("name", BEGINNINGS)
def test_what_begins_something_is_refused_and_changes_nothing(name: str) -> None:
    bench, store = bench_with()
    before = standing(bench)
    fill(bench, store)
    with pytest.raises(LimitError, match=r"DMQ2685: the disk is full.*free some space or consume messages"):
        BEGINNINGS[name](bench)
    assert standing(bench) == before
    fill(bench, store, False)
    BEGINNINGS[name](bench)
    assert standing(bench) != before


@pytest.mark.parametrize("name", BEGINNINGS)
def test_it_is_not_while_a_file_is_only_late(name: str) -> None:
    bench, _ = bench_with()
    bench.broker.set_storage_low(True)
    BEGINNINGS[name](bench)


def test_a_subscription_that_can_not_become_another_one_stays_what_it_is() -> None:
    bench, store = bench_with()
    bench.broker.consumers.close(subscribe(bench))
    bench.broker.producers.send(bench.message("t", "kept"), routing=MULTICAST)
    fill(bench, store)
    with pytest.raises(LimitError, match="DMQ2685"):
        subscribe(bench, selector="a = 1")
    assert bench.pending("me") == "kept"


def test_a_subscription_that_may_become_another_one_is_not_refused_once_the_old_one_has_ended() -> None:
    bench, store = bench_with()
    bench.broker.consumers.close(subscribe(bench))
    fill(bench, store)
    store.last_batch = len(store.batches) + 1
    subscribe(bench, selector="a = 1")
    assert bench.broker.queues["me"].settings.filter == "a = 1"


def test_what_is_not_recorded_goes_on() -> None:
    bench, store = bench_with()
    fill(bench, store)
    before = len(bench.store.batches)
    subscribe(bench, durable=False)
    bench.broker.consumers.subscribe("t", Collector(), OpenCredit(), routing=MULTICAST)
    bench.broker.resources.create_temporary("mine", ANYCAST, "me")
    assert len(bench.store.batches) == before


def test_what_ends_something_goes_on() -> None:
    bench, store = bench_with()
    bench.broker.consumers.close(subscribe(bench))
    bench.broker.lease_groups.open("g", queue="q", topic="", run="r", incarnation=None)
    bench.broker.resources.create_queue(anycast("other"))
    bench.send("q", "A B C D")
    fill(bench, store)
    bench.broker.resources.unsubscribe("me")
    bench.broker.lease_groups.release("g")
    bench.run()
    consumer, port = bench.consume("q")
    bench.run()
    assert bench.broker.consumers.acknowledge(consumer, port.slots[0].sequence)
    bench.broker.consumers.close(consumer)
    bench.broker.resources.purge_queue("q")
    bench.run()
    bench.broker.resources.delete_queue("other")
    queues = bench.restart().broker.queues
    assert (queues["q"].message_count, "other" in queues, "me" in queues) == (0, False, False)


# -- branches ------------------------------------------------------------------------------------------------------


def test_a_branch_is_not_prepared_but_rolled_back() -> None:
    bench, store = bench_with()
    bench.send("q", "A")
    consumer, port = bench.consume("q")
    bench.run()
    branch = bench.broker.branches.start(X)
    bench.broker.consumers.acknowledge(consumer, port.slots[0].sequence, branch)
    bench.broker.branches.end(X)
    fill(bench, store)
    before = len(store.batches)
    with pytest.raises(XaError, match="the disk is full") as error:
        bench.broker.branches.prepare(X)
    bench.run()
    assert error.value.xa_code == XA_RBROLLBACK
    assert (len(store.batches), bench.broker.branches.recover(), len(port.slots)) == (before, [], 2)


@pytest.mark.parametrize("commit", [True, False])
def test_one_that_is_prepared_ends(commit: bool) -> None:
    bench, store = bench_with()
    bench.send("q", "A")
    consumer, port = bench.consume("q")
    bench.run()
    branch = bench.broker.branches.start(X)
    bench.broker.consumers.acknowledge(consumer, port.slots[0].sequence, branch)
    bench.broker.branches.end(X)
    bench.broker.branches.prepare(X)
    bench.run()
    fill(bench, store)
    bench.broker.consumers.close(consumer)
    if commit:
        bench.broker.branches.commit(X, False)
    else:
        bench.broker.branches.rollback(X)
    bench.run()
    again = bench.restart()
    assert (again.pending("q"), again.broker.branches.recover()) == ("" if commit else "A", [])


# -- leases --------------------------------------------------------------------------------------------------------


def test_a_lease_is_not_made_and_what_it_would_hold_is_in_the_next() -> None:
    bench, store = bench_with()
    group = bench.broker.lease_groups.open("g", queue="q", topic="", run="r", incarnation=None)
    bench.send("q", "A B")
    fill(bench, store)

    def request() -> Lease | None:
        return bench.broker.leases.request("g", after=0, max_rows=2, max_bytes=1 << 20, epoch=group.epoch, until=None)

    with pytest.raises(LimitError, match=r"DMQ2685.*another lease of group 'g'"):
        request()
    fill(bench, store, False)
    lease = request()
    assert lease is not None
    assert [slot.message.body for slot in lease.slots] == [b"A", b"B"]


# -- what a client finds expired -----------------------------------------------------------------------------------


def test_without_room_for_its_copy_it_stays_with_the_client_till_there_is() -> None:
    bench, store = bench_with(expiry_address="EXP")
    bench.send("q", "A", expires_in_ms=10)
    consumer, port = bench.consume("q")
    bench.run()
    bench.clock.now_ms += 20
    fill(bench, store)
    assert bench.broker.consumers.expire_delivered(consumer, port.slots[0].sequence)
    bench.later(SECOND_MS)
    assert (bench.counts("q"), bench.pending("EXP"), len(port.slots)) == ((1, 1, 0), "", 1)
    again = bench.restart()
    assert (again.pending("q"), again.pending("EXP")) == ("A", "")
    fill(bench, store, False)
    bench.later(SECOND_MS)
    assert (bench.counts("q"), bench.pending("EXP"), len(port.slots)) == ((0, 0, 0), "A", 1)
    again = bench.restart()
    assert (again.pending("q"), again.pending("EXP")) == ("", "A")


def test_it_returns_with_its_consumer() -> None:
    bench, store = bench_with(expiry_address="EXP")
    bench.send("q", "A", expires_in_ms=10)
    consumer, port = bench.consume("q")
    bench.run()
    bench.clock.now_ms += 20
    fill(bench, store)
    assert bench.broker.consumers.expire_delivered(consumer, port.slots[0].sequence)
    bench.broker.consumers.close(consumer)
    assert bench.counts("q") == (1, 0, 0)
    fill(bench, store, False)
    bench.later(2 * SECOND_MS)
    _, port = bench.consume("q")
    bench.run()
    assert (port.bodies, bench.pending("EXP")) == ("", "A")


def test_without_an_expiry_address_it_just_ends() -> None:
    bench, store = bench_with()
    bench.send("q", "A", expires_in_ms=10)
    consumer, port = bench.consume("q")
    bench.run()
    bench.clock.now_ms += 20
    fill(bench, store)
    assert bench.broker.consumers.expire_delivered(consumer, port.slots[0].sequence)
    assert bench.restart().pending("q") == ""


# -- ids -----------------------------------------------------------------------------------------------------------


def test_ids_take_no_room_however_many_are_asked_for() -> None:
    store = RecordingStore()
    log = Log(store)
    log.reserve_ids()
    log.close()
    log.take_ids(IDS_RESERVED)
    log.close()
    log.storage_low = True
    log.take_ids(IDS_RESERVED)
    log.close()
    written = len(store.batches)
    assert log.ids_reserved_below > IDS_RESERVED_WHEN_LOW
    for _ in range(64):
        log.take_ids(IDS_RESERVED)
        log.close()
    assert len(store.batches) == written


# -- transactions --------------------------------------------------------------------------------------------------


class Told(JobWaiter):
    def __init__(self) -> None:
        self.ended: list[BrokerError | None] = []

    def on_ended(self, error: BrokerError | None) -> None:
        self.ended.append(error)


def test_a_large_one_that_is_refused_has_promised_nothing() -> None:
    bench, store = bench_with()
    bench.send("q", " ".join(map(str, range(300))))
    consumer, port = bench.consume("q")
    bench.run()
    transaction = bench.broker.transactions.begin("me")
    for slot in port.slots:
        bench.broker.consumers.acknowledge(consumer, slot.sequence, transaction)
    for in_transaction in (True, False):
        message = bench.message("EXP", "twice", durable=False)
        message.duplicate_id = b"id"
        if in_transaction:
            bench.broker.transactions.send(transaction, message)
        else:
            bench.broker.producers.send(message)
    fill(bench, store)
    before = len(store.batches)
    told = Told()
    assert not bench.broker.transactions.commit(transaction, told)
    bench.run()
    assert [error is None for error in told.ended] == [False]
    assert len(store.batches) == before


def test_what_is_kept_for_queues_to_come_expires_without_room_for_a_copy():
    store = FullStore()
    settings = {"news": {"retroactive_message_count": 5, "expiry_address": "EXP"}}
    bench = Bench(queues=(anycast("EXP"),), settings=settings, store=store)
    bench.broker.producers.send(bench.message("news", "A", expires_in_ms=10), routing=MULTICAST)
    history = bench.broker.queues["$delosmq.history.news"]
    assert history.message_count == 1
    fill(bench, store)
    bench.later(40_000)
    assert (history.message_count, bench.pending("EXP")) == (0, "")


class SomeRoom(FullStore):
    """A full disk with room for small things."""

    def takes(self, size_bytes: int) -> bool:
        return not self.full or size_bytes <= 4_096


def test_a_subscription_begins_and_what_is_retained_for_it_waits_for_room():
    store = SomeRoom()
    bench = RetainingBench(store)
    head = bench.with_properties("news", "x" * 5_000, {"ActiveMQ.Retain": "true"})
    bench.broker.producers.send(head, routing=MULTICAST)
    fill(bench, store)
    ports: list[Collector] = []
    for name, selector in (("wants", "TRUE"), ("rejects", "FALSE")):
        ports.append(Collector())
        options = SubscriptionOptions(name=name, durable=True, filter=selector, retroactive=True)
        bench.broker.consumers.subscribe("news", ports[-1], OpenCredit(), routing=MULTICAST, subscription=options)
    bench.later(SECOND_MS)
    assert [len(port.slots) for port in ports] == [0, 0]
    assert [bench.broker.queues[name].suspensions for name in ("wants", "rejects")] == [1, 0]
    fill(bench, store, full=False)
    bench.later(SECOND_MS)
    assert [len(port.slots) for port in ports] == [1, 0]
    assert bench.pending("wants") == ""
