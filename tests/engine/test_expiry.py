"""Expiry: when messages expire, who finds them, where they go (ACK-4)."""

import pytest

from delosmq.engine.addresses.expiry_delay import apply_expiry, changes_expiry
from delosmq.engine.base.events import EngineEvents
from delosmq.engine.base.slots import Slot
from delosmq.engine.base.timers import Timers
from delosmq.engine.delivery.expiry import COPY_COST, EXPIRE_COST, SLICE_COST, SMALL_QUEUE, UNKNOWN_AGAIN_MS
from delosmq.engine.queues.consumer import ConsumerOptions
from delosmq.engine.queues.credit import MessageCredit
from delosmq.engine.routing.expiry_times import ExpiryTimes
from delosmq.engine.routing.held_messages import expired_count
from delosmq.model.message import ANYCAST
from delosmq.model.settings import AddressSettings, DispatchProfile, QueueSettings
from tests.engine.support import Bench, Collector, ManualClock, anycast

SCAN_MS = 30_000


class Expired(EngineEvents):
    def __init__(self) -> None:
        self.seen: list[tuple[str, str, str]] = []

    def message_expired(self, queue: str, slot: Slot, expiry_address: str) -> None:
        self.seen.append((queue, slot.message.body.decode(), expiry_address))


def bench_with(events: EngineEvents | None = None, **fields: object) -> Bench:
    return Bench(
        queues=(anycast("q"), anycast("EXP")), settings={"q": {"expiry_address": "EXP", **fields}}, events=events
    )


@pytest.mark.parametrize(
    ("fields", "sent", "kept"),
    [
        ({}, 0, 0),
        ({}, 500, 500),
        ({"expiry_delay": 100}, 0, 100),
        ({"expiry_delay": 100}, 500, 500),
        ({"expiry_delay": 0}, 0, 0),
        ({"expiry_delay": 100, "max_expiry_delay": 300}, 500, 500),  # expiry-delay makes the bounds void
        ({"min_expiry_delay": 200}, 0, 200),
        ({"min_expiry_delay": 200}, 100, 200),
        ({"min_expiry_delay": 200}, 300, 300),
        ({"max_expiry_delay": 300}, 0, 300),
        ({"max_expiry_delay": 300}, 500, 300),
        ({"max_expiry_delay": 300}, 200, 200),
        ({"min_expiry_delay": 200, "max_expiry_delay": 300}, 0, 300),
        ({"min_expiry_delay": 200, "max_expiry_delay": 300}, 100, 200),
        ({"min_expiry_delay": 200, "max_expiry_delay": 300}, 250, 250),
        ({"no_expiry": True, "expiry_delay": 100}, 500, None),
        ({"no_expiry": True}, 0, None),
    ],
)
def test_what_the_address_makes_of_an_expiry(fields: dict[str, object], sent: int, kept: int | None):
    settings = AddressSettings(**fields)  # type: ignore[arg-type]
    bench = Bench()
    message = bench.message("q", "A", expires_in_ms=sent)
    now = bench.clock.wall_ms()
    apply_expiry(settings, message, now)
    if kept is None or (kept == 0 and "expiry_delay" not in fields):
        assert message.expires_at_ms == 0
    else:
        assert message.expires_at_ms == now + kept
    assert changes_expiry(settings) is bool(fields)


def test_settings_count_once_at_the_send():
    bench = bench_with(expiry_delay=100)
    bench.send("q", "A")
    slot = bench.broker.queues["q"].pending.head()
    assert slot is not None
    assert slot.message.expires_at_ms == bench.clock.wall_ms() + 100
    kept = bench.restart().broker.queues["q"].pending.head()
    assert kept is not None
    assert kept.message.expires_at_ms == slot.message.expires_at_ms


def test_an_expired_message_goes_to_the_expiry_address_instead_of_a_consumer():
    events = Expired()
    bench = bench_with(events)
    bench.send("q", "A", expires_in_ms=100)
    bench.send("q", "B", expires_in_ms=101)
    bench.send("q", "C")
    bench.clock.now_ms += 100
    _, port = bench.consume("q")
    bench.run()
    assert (port.bodies, bench.pending("EXP"), events.seen) == ("B C", "A", [("q", "A", "EXP")])
    slot = bench.broker.queues["EXP"].pending.head()
    assert slot is not None
    assert slot.message.annotations is not None
    assert slot.message.expires_at_ms == 0
    assert slot.message.annotations["_AMQ_ACTUAL_EXPIRY"] == str(bench.clock.wall_ms())
    assert slot.message.annotations["_AMQ_ORIG_ADDRESS"] == "q"
    queue = bench.broker.queues["q"]
    assert (queue.counters.expired, queue.counters.killed, queue.message_count) == (1, 0, 2)
    again = bench.restart()
    assert (again.pending("q"), again.pending("EXP")) == ("B C", "A")


def test_a_non_destructive_queue_hands_out_no_expired_message():
    bench = Bench(
        queues=(QueueSettings("q", "q", ANYCAST, non_destructive=True), anycast("EXP")),
        settings={"q": {"expiry_address": "EXP"}},
    )
    bench.send("q", "A B", expires_in_ms=100)
    bench.send("q", "C " * SMALL_QUEUE)  # so that its turn, or a scan, is what finds an expired message
    _, early = bench.consume("q", MessageCredit(3))
    bench.run()
    bench.clock.now_ms += 100
    _, late = bench.consume("q", MessageCredit(1))
    bench.run()
    assert (early.bodies, late.bodies, bench.pending("EXP")) == ("A B C", "C", "A B")


def test_a_browser_shows_what_is_still_there_though_it_has_expired():
    bench = bench_with()
    bench.send("q", "A", expires_in_ms=100)
    bench.send("q", "B " * SMALL_QUEUE)
    bench.clock.now_ms += 100
    port = Collector()
    bench.broker.consumers.subscribe("q", port, MessageCredit(2), options=ConsumerOptions(browser=True))
    bench.run()
    assert (port.bodies, bench.pending("EXP")) == ("A B", "")


def test_a_lease_takes_no_expired_message():
    bench = bench_with()
    bench.send("q", "A", expires_in_ms=100)
    bench.send("q", "B")
    bench.send("q", "C", expires_in_ms=101)
    bench.send("q", "D", expires_in_ms=100)
    bench.clock.now_ms += 100
    group = bench.broker.lease_groups.open("g", queue="q", topic="", run="run", incarnation=None)
    lease = bench.broker.leases.request("g", after=0, max_rows=9, max_bytes=1_000, epoch=group.epoch, until=None)
    assert lease is not None
    assert [slot.message.body.decode() for slot in lease.slots] == ["B", "C"]
    assert (bench.pending("q"), bench.pending("EXP")) == ("", "A D")


def test_classic_says_that_it_expired_and_keeps_it_safe():
    bench = bench_with(dispatch_profile=DispatchProfile.CLASSIC)
    bench.send("q", "A", durable=False, expires_in_ms=100)
    expires_at_ms = bench.clock.wall_ms() + 100
    bench.clock.now_ms += 100
    bench.consume("q")
    bench.run()
    slot = bench.broker.queues["EXP"].pending.head()
    assert slot is not None
    assert slot.message.durable
    assert slot.message.annotations is not None
    assert slot.message.annotations["originalExpiration"] == str(expires_at_ms)
    cause = f"java.lang.Throwable: Message Expired. Expiration:{expires_at_ms}"
    assert slot.message.annotations["dlqDeliveryFailureCause"] == cause


def test_what_is_not_durable_may_expire_without_a_trace():
    bench = bench_with(dead_letter_non_durable=False)
    bench.send("q", "A", durable=False, expires_in_ms=100)
    bench.send("q", "B", expires_in_ms=100)
    bench.clock.now_ms += 100
    bench.consume("q")
    bench.run()
    assert bench.pending("EXP") == "B"


def test_without_an_expiry_address_it_is_dropped():
    events = Expired()
    bench = bench_with(events, expiry_address="")
    bench.send("q", "A", expires_in_ms=10)
    bench.clock.now_ms += 10
    bench.consume("q")
    bench.run()
    assert events.seen == [("q", "A", "")]
    assert (bench.broker.used_bytes, bench.restart().counts("q")) == (0, (0, 0, 0))


def test_what_no_consumer_asks_for_expires_at_its_time():
    bench = bench_with()
    bench.send("q", "A", expires_in_ms=100)
    bench.send("q", "B")
    bench.send("q", "C", expires_in_ms=250, priority=9)
    bench.later(99)
    assert bench.pending("q") == "C A B"
    bench.later(1)
    assert (bench.pending("q"), bench.pending("EXP")) == ("C B", "A")
    bench.later(150)
    assert (bench.pending("q"), bench.pending("EXP")) == ("B", "C A")
    bench.send("q", "D", expires_in_ms=5_000)
    bench.send("q", "E", expires_in_ms=1_000)
    bench.later(1_000)
    assert (bench.pending("q"), bench.pending("EXP")) == ("B D", "C A E")
    bench.later(4_000)
    assert (bench.pending("q"), bench.pending("EXP")) == ("B", "C A E D")


def test_it_does_so_after_a_restart():
    bench = bench_with()
    bench.send("q", "A", expires_in_ms=500)
    again = bench.restart()
    again.later(500)
    assert (again.pending("q"), again.pending("EXP")) == ("", "A")


def test_what_came_back_to_a_small_queue_expires_within_a_second():
    bench = bench_with()
    bench.send("q", "A", expires_in_ms=200)
    bench.send("q", "B", expires_in_ms=100)
    consumer, _ = bench.consume("q", MessageCredit(1))
    bench.run()
    bench.later(100)
    assert (bench.counts("q"), bench.pending("EXP")) == ((1, 1, 0), "B")
    bench.later(200)
    bench.broker.consumers.close(consumer)
    bench.later(UNKNOWN_AGAIN_MS)
    assert (bench.pending("q"), bench.pending("EXP")) == ("", "B A")


def test_in_a_large_queue_a_scan_finds_what_no_consumer_asks_for():
    bench = bench_with()
    bench.send("q", " ".join(["m"] * SMALL_QUEUE))
    bench.send("q", "A", expires_in_ms=100)
    bench.later(SCAN_MS - 1)
    assert bench.pending("EXP") == ""
    bench.later(1)
    assert bench.pending("EXP") == "A"


def test_in_a_large_queue_it_goes_when_somebody_looks():
    bench = bench_with()
    bench.send("q", " ".join(["m"] * SMALL_QUEUE))
    bench.send("q", "A", expires_in_ms=100)
    bench.later(100)
    queue = bench.broker.queues["q"]
    assert queue.expiring_count == 1
    bench.broker.expiry_scan.look(queue)
    bench.run()
    assert bench.pending("EXP") == "A"


def test_a_short_queue_shows_nothing_expired_to_who_looks():
    bench = bench_with()
    bench.send("q", "A B C", expires_in_ms=100)
    bench.clock.now_ms += 100  # and no tick since
    queue = bench.broker.queues["q"]
    bench.broker.expiry_scan.look(queue)
    assert queue.message_count == 0


def test_appointments_for_expiries_are_bounded_and_not_closer_than_a_gap():
    clock, timers = ManualClock(), Timers()
    times = ExpiryTimes(clock, timers)

    looks: list[int] = []
    times.when_due = lambda: looks.append(clock.now_ms)
    now_ms = clock.wall_ms()
    for left_ms in range(10_000, 0, -1):
        times.note(now_ms + left_ms)
    appointments = 0
    while timers.next_at:
        clock.now_ms = -(-timers.next_at // 1_000_000)
        timers.run(timers.next_at)
        appointments += 1
    assert (appointments <= 11, len(looks)) == (True, 1)
    for _ in range(1_000):  # each ms one expires
        clock.now_ms += 1
        times.note(clock.wall_ms())
        timers.run(clock.monotonic_ns())
    assert 1_000 // 100 <= len(looks) <= 1_000 // 100 + 2


def test_a_wall_clock_that_goes_back_expires_nothing_early():
    bench = bench_with()
    bench.send("q", "A", expires_in_ms=100)
    bench.clock.set_by_ms = -5_000
    bench.later(4_000)
    assert bench.pending("q") == "A"
    bench.later(1_200)
    assert bench.pending("EXP") == "A"


def test_a_scan_remembers_when_to_look_again():
    bench = bench_with()
    bench.send("q", "A", expires_in_ms=3 * SCAN_MS)
    bench.later(SCAN_MS)
    queue = bench.broker.queues["q"]
    assert queue.next_expiry_ms == bench.clock.wall_ms() + 2 * SCAN_MS
    bench.send("q", "B", expires_in_ms=SCAN_MS)
    assert queue.next_expiry_ms == bench.clock.wall_ms() + SCAN_MS
    bench.later(SCAN_MS)
    assert bench.pending("q") == "A"
    bench.later(SCAN_MS)
    assert bench.pending("q") == ""


def test_what_is_held_as_no_queue_takes_it_makes_no_scan_look_at_the_others():
    nowhere = {"auto_create_queues": False, "auto_create_addresses": False}
    bench = Bench(queues=(anycast("q"),), settings={"q": {"expiry_address": "EXP"}, "EXP": nowhere})
    bench.send("q", "A", expires_in_ms=100)
    bench.send("q", "B")
    bench.later(SCAN_MS)
    queue = bench.broker.queues["q"]
    assert (bench.pending("q"), expired_count(queue)) == ("B", 1)
    bench.later(SCAN_MS)
    assert queue.next_expiry_ms > bench.clock.wall_ms()
    bench.send("q", "C", expires_in_ms=SCAN_MS // 2)
    bench.later(SCAN_MS)
    assert (bench.pending("q"), expired_count(queue)) == ("B", 2)


def test_what_came_back_between_two_scans_is_found():
    bench = bench_with()
    bench.send("q", "A", expires_in_ms=100)
    bench.send("q", "B", expires_in_ms=10 * SCAN_MS)
    consumer, _ = bench.consume("q")
    bench.run()
    bench.later(SCAN_MS)
    assert bench.counts("q") == (2, 2, 0)  # in delivery nothing expires
    bench.broker.consumers.close(consumer)
    bench.later(SCAN_MS)
    assert (bench.pending("q"), bench.pending("EXP")) == ("B", "A")


def test_a_scheduled_message_expires_only_when_it_was_due():
    bench = bench_with()
    bench.send("q", "A", expires_in_ms=100, due_in_ms=2 * SCAN_MS)
    bench.later(SCAN_MS)
    assert bench.scheduled("q") == "A"
    bench.later(SCAN_MS)
    bench.later(SCAN_MS)
    assert (bench.scheduled("q"), bench.pending("q"), bench.pending("EXP")) == ("", "", "A")


@pytest.mark.parametrize(("address", "cost"), [("EXP", COPY_COST), ("", EXPIRE_COST)])
def test_a_scan_goes_on_slice_by_slice(address: str, cost: int):
    bench = bench_with(expiry_address=address)
    count = 3 * SLICE_COST // cost
    bench.send("q", " ".join(["m"] * count), expires_in_ms=100)
    bench.clock.now_ms += SCAN_MS
    bench.broker.tick()
    queue = bench.broker.queues["q"]
    assert 0 < queue.counters.expired <= SLICE_COST // cost + 1
    bench.send("q", "new")
    bench.run()
    assert (queue.counters.expired, bench.pending("q")) == (count, "new")
    assert queue.expiring_count == 0


def test_dispatch_of_expired_messages_is_bounded_per_tick():
    bench = bench_with()
    bench.send("q", " ".join(["m"] * 100), expires_in_ms=100)
    bench.clock.now_ms += 100
    bench.consume("q")
    bench.broker.tick()
    assert 0 < bench.broker.queues["q"].counters.expired < 40
    bench.run()
    assert bench.broker.queues["EXP"].message_count == 100


def test_a_queue_deleted_during_a_scan_leaves_nothing_behind():
    bench = bench_with()
    bench.send("q", " ".join(["m"] * 100), expires_in_ms=100)
    bench.clock.now_ms += SCAN_MS
    bench.broker.tick()
    bench.broker.resources.delete_queue("q")
    bench.run()
    expired = bench.broker.queues["EXP"].message_count
    assert 0 < expired < 100
    bench.broker.resources.delete_queue("EXP")
    bench.run()
    assert bench.broker.used_bytes == 0


def test_a_queue_for_each_origin_is_created_where_settings_say_so():
    bench = Bench(
        queues=(anycast("q"),),
        settings={"q": {"expiry_address": "expired", "auto_create_expiry_resources": True}},
    )
    bench.send("q", "A", expires_in_ms=10)
    bench.later(SCAN_MS)
    assert bench.pending("EXP.q") == "A"
    assert bench.broker.queues["EXP.q"].settings.filter == "_AMQ_ORIG_ADDRESS = 'q'"


def test_a_client_reports_an_expired_message():
    bench = bench_with()
    bench.send("q", "A B")
    consumer, port = bench.consume("q")
    bench.run()
    assert bench.broker.consumers.expire_delivered(consumer, port.slots[0].sequence)
    assert not bench.broker.consumers.expire_delivered(consumer, port.slots[0].sequence)
    queue = bench.broker.queues["q"]
    assert (queue.counters.expired, queue.delivering.count, bench.pending("EXP")) == (1, 1, "A")


def test_on_a_full_disk_an_expired_message_is_delivered_rather_than_lost():
    bench = bench_with()
    bench.send("q", "A", expires_in_ms=10)
    bench.broker.set_storage_full(True)
    bench.later(SCAN_MS)
    _, port = bench.consume("q")
    bench.run()
    assert (port.bodies, bench.pending("EXP")) == ("A", "")


def test_what_expires_in_the_expiry_address_stays_there_without_an_expiry():
    bench = Bench(
        queues=(anycast("EXP"),),
        settings={"#": {"expiry_address": "EXP", "auto_create_expiry_resources": True}},
    )
    bench.send("EXP", "A", expires_in_ms=10)
    bench.later(SCAN_MS)
    bench.later(SCAN_MS)
    assert (bench.pending("EXP"), sorted(bench.broker.queues)) == ("A", ["EXP"])
    assert bench.broker.queues["EXP"].counters.expired == 1
