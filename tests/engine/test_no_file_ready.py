"""While the store's next file is not ready, what must not change is exact, and what can waits a moment (0027)."""

import pytest

from delosmq.engine.leases.lease import ROOM, Lease
from delosmq.engine.queues.consumer import Consumer, ConsumerOptions
from delosmq.engine.queues.credit import OpenCredit, PrefetchCredit
from delosmq.engine.routing.send_result import BLOCKED, ROUTED
from delosmq.model.errors import LimitError
from delosmq.model.message import ANYCAST
from delosmq.model.settings import AddressFullPolicy, DispatchProfile, QueueSettings
from delosmq.selectors.selector import parse_selector
from tests.engine.support import Bench, Collector, RecordingStore, anycast
from tests.engine.test_queue import Waiter

ATTEMPTS = 2
MOMENT_MS = 10
SCAN_MS = 30_000


class FullSegment(RecordingStore):
    """Has no room but for removals, until a file is ready."""

    room = 0

    def takes(self, size_bytes: int) -> bool:
        return size_bytes <= self.room


def bench_with(**settings: object) -> tuple[Bench, FullSegment]:
    store = FullSegment()
    bench = Bench(
        queues=(anycast("q"), anycast("DLQ")),
        settings={"q": {"dead_letter_address": "DLQ", "max_delivery_attempts": ATTEMPTS, **settings}},
        store=store,
    )
    return bench, store


def refuse(bench: Bench, consumer: Consumer, port: Collector) -> None:
    assert bench.broker.consumers.reject(consumer, port.slots[-1].sequence)


def test_what_used_up_its_attempts_is_a_dead_letter_at_once_while_there_is_room_for_it():
    bench, store = bench_with()
    store.room = 1 << 20
    bench.send("q", "A")
    consumer, port = bench.consume("q")
    bench.broker.set_storage_low(True)
    for _ in range(ATTEMPTS):
        bench.run()
        refuse(bench, consumer, port)
    assert (bench.pending("q"), bench.pending("DLQ"), len(port.slots)) == ("", "A", ATTEMPTS)


def test_without_it_the_dead_letter_waits_and_is_delivered_no_more():
    bench, store = bench_with()
    bench.send("q", "A B")
    consumer, port = bench.consume("q")
    bench.run()
    for slot in port.slots[:]:
        bench.broker.consumers.reject(consumer, slot.sequence)
    bench.run()
    first, second = port.slots[2:]
    bench.broker.set_storage_low(True)
    bench.broker.consumers.reject(consumer, first.sequence)
    bench.later(MOMENT_MS)
    bench.later(MOMENT_MS)
    assert (bench.pending("DLQ"), bench.counts("q"), len(port.slots)) == ("", (2, 2, 0), 4)
    assert bench.broker.consumers.acknowledge(consumer, second.sequence)
    store.room = 1 << 20
    bench.later(MOMENT_MS)
    assert (bench.pending("DLQ"), bench.counts("q"), len(port.slots)) == ("A", (0, 0, 0), 4)


def test_counts_and_delays_wait_too_and_are_recorded():
    bench, store = bench_with(redelivery_delay=100)
    bench.send("q", "A")
    consumer, port = bench.consume("q")
    bench.run()
    bench.broker.set_storage_low(True)
    refuse(bench, consumer, port)
    bench.later(MOMENT_MS)
    assert bench.scheduled("q") == ""
    store.room = 1 << 20
    bench.later(MOMENT_MS)
    assert bench.scheduled("q") == "A"
    again = bench.restart()
    assert again.scheduled("q") == "A"
    _, port = again.consume("q")
    again.later(100)
    assert [slot.delivery_count for slot in port.slots] == [2]


@pytest.mark.parametrize("consumers", ["one", "by selector", "exclusive", "of a group"])
def test_what_expired_is_not_delivered_while_its_copy_waits(consumers: str):
    bench, store = bench_with(expiry_address="DLQ")
    if consumers == "exclusive":
        bench.broker.resources.update_queue("q", exclusive=True)
    bench.send("q", "A", expires_in_ms=10)
    bench.send("q", "B C")
    if consumers == "of a group":
        for slot in bench.broker.queues["q"].pending.in_order():
            slot.message.group_id = "g"
    bench.clock.now_ms += 20
    bench.broker.set_storage_low(True)
    options = ConsumerOptions(selector=parse_selector("TRUE")) if consumers == "by selector" else ConsumerOptions()
    port = Collector()
    bench.broker.consumers.subscribe("q", port, OpenCredit(), options=options)
    bench.run()
    bench.later(MOMENT_MS)
    assert (port.bodies, bench.pending("DLQ")) == ("", "")
    store.room = 1 << 20
    bench.later(MOMENT_MS)
    assert (port.bodies, bench.pending("DLQ")) == ("B C", "A")
    assert bench.broker.queues["q"].suspensions == 0


def test_nor_is_it_lent_or_leased_then():
    store = FullSegment()
    bench = Bench(
        queues=(QueueSettings("q", "q", ANYCAST, non_destructive=True), anycast("r"), anycast("EXP")),
        settings={name: {"expiry_address": "EXP"} for name in "qr"},
        store=store,
    )
    for name in "qr":
        bench.send(name, "A", expires_in_ms=10)
        bench.send(name, "B")
    bench.clock.now_ms += 10
    bench.broker.set_storage_low(True)
    _, port = bench.consume("q")
    bench.run()
    group = bench.broker.lease_groups.open("g", queue="r", topic="", run="run", incarnation=None)

    def request() -> Lease | None:
        limits = {"max_rows": 9, "max_bytes": 1_000, "epoch": group.epoch}
        return bench.broker.leases.request("g", after=0, until=None, **limits)

    assert request() is None
    assert (port.bodies, group.waits_for == ROOM, bench.pending("r")) == ("B", True, "A B")
    store.room = 1 << 20
    bench.broker.set_storage_low(False)
    lease = request()
    assert lease is not None
    assert [slot.message.body.decode() for slot in lease.slots] == ["B"]
    bench.later(SCAN_MS)
    assert (port.bodies, bench.pending("q"), bench.pending("EXP")) == ("B", "B", "A A")


def test_one_that_waited_for_the_owner_of_its_group_is_not_lost_when_its_copy_waits_too():
    bench, store = bench_with(expiry_address="DLQ", dispatch_profile=DispatchProfile.CLASSIC)
    port = Collector()
    consumer = bench.broker.consumers.subscribe("q", port, PrefetchCredit(1))
    for body, expires_in_ms in (("A", 0), ("B", 10), ("C", 0)):
        message = bench.message("q", body, expires_in_ms=expires_in_ms)
        message.group_id = "g"
        bench.broker.producers.send(message)
        bench.run()
    _, other = bench.consume("q")
    bench.send("q", "free")
    bench.run()
    assert (port.bodies, other.bodies) == ("A", "free"), "B and C are passed over"
    bench.clock.now_ms += 20
    bench.broker.set_storage_low(True)
    bench.broker.consumers.acknowledge(consumer, port.slots[0].sequence)
    bench.run()
    bench.later(MOMENT_MS)
    assert (port.bodies, bench.pending("q"), bench.pending("DLQ")) == ("A", "B C", "")
    store.room = 1 << 20
    bench.later(MOMENT_MS)
    assert (port.bodies, bench.pending("DLQ")) == ("A C", "B")


def test_a_delivery_is_counted_first_all_the_same():  # ACK-4
    bench, _ = bench_with(persist_delivery_count_before_delivery=True)
    bench.send("q", "A")
    bench.broker.set_storage_low(True)
    bench.consume("q")
    bench.run()
    (slot,) = bench.restart().broker.queues["q"].pending.in_order()
    assert slot.delivery_count == 1


def test_what_is_not_stored_waits_for_nothing():
    bench, _ = bench_with()
    bench.send("q", "A", durable=False)
    consumer, port = bench.consume("q")
    bench.broker.set_storage_low(True)
    for _ in range(ATTEMPTS):
        bench.run()
        refuse(bench, consumer, port)
    assert (bench.pending("q"), bench.pending("DLQ")) == ("", "A")


def test_what_waits_stays_in_its_queue_when_the_disk_turns_out_to_be_full():
    bench, _ = bench_with()
    bench.send("q", "A")
    consumer, port = bench.consume("q")
    bench.run()
    refuse(bench, consumer, port)
    bench.run()
    bench.broker.set_storage_low(True)
    refuse(bench, consumer, port)
    assert bench.counts("q") == (1, 1, 0)
    bench.broker.set_storage_full(True)
    bench.later(MOMENT_MS)
    assert (len(port.slots), bench.pending("DLQ")) == (ATTEMPTS + 1, "")


def test_a_queue_deleted_meanwhile_leaves_nothing_behind():
    bench, store = bench_with()
    bench.send("q", "A")
    consumer, _ = bench.consume("q")
    bench.run()
    bench.broker.set_storage_low(True)
    bench.broker.consumers.close(consumer)
    bench.broker.resources.delete_queue("q")
    bench.later(MOMENT_MS)
    assert (bench.broker.used_bytes, store.released) == (0, 1)


def test_senders_wait_for_the_file_even_when_a_full_address_would_refuse_them():
    bench, _ = bench_with(address_full_policy=AddressFullPolicy.FAIL)
    bench.broker.set_storage_low(True)
    assert bench.send("q", "A") == [BLOCKED]
    waiter = Waiter()
    bench.broker.blocked_producers.wait("q", waiter)
    bench.broker.set_storage_full(True)
    bench.run()
    assert waiter.called == 1
    with pytest.raises(LimitError, match=r"DMQ2201.*no room for durable messages"):
        bench.send("q", "A")
    bench.broker.set_storage_low(False)
    assert bench.send("q", "A") == [ROUTED]


def test_what_expires_goes_to_its_address_while_there_is_room():
    bench = Bench(queues=(anycast("q"), anycast("EXP")), settings={"q": {"expiry_address": "EXP"}})
    bench.send("q", "A", expires_in_ms=10)
    bench.broker.set_storage_low(True)
    bench.later(20)
    _, port = bench.consume("q")
    bench.run()
    assert (port.bodies, bench.pending("EXP")) == ("", "A")


def test_a_purge_rests_while_what_it_waits_for_waits_for_a_file():
    bench, store = bench_with()
    bench.send("q", "A B")
    consumer, _ = bench.consume("q")
    bench.run()
    bench.broker.set_storage_low(True)
    bench.broker.consumers.close(consumer)
    first, second = bench.broker.resources.purge_queue("q"), bench.broker.resources.purge_queue("q")
    assert not bench.broker.tick()
    assert not bench.broker.tick()
    assert not first.done
    store.room = 1 << 20
    bench.later(MOMENT_MS)
    assert first.done
    assert second.done
    assert bench.counts("q") == (0, 0, 0)
    assert bench.broker.queues["q"].suspensions == 0
    bench.broker.set_storage_low(False)
    bench.send("q", "C")
    bench.consume("q")
    bench.run()
    assert bench.counts("q") == (1, 1, 0)
