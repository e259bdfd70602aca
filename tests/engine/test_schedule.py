"""Scheduled delivery: when messages are due, and what a clock that was set, a purge or a restart does to it."""

import pytest

from delosmq.engine.base.events import EngineEvents
from delosmq.engine.base.slots import Slot
from delosmq.engine.dispatch.schedule import SETTLED_MS, SLOTS_PER_SLICE
from delosmq.engine.log.log import NO_BODY
from delosmq.engine.log.records import encode_scheduled
from delosmq.engine.queues.scheduled_slots import ScheduledSlots
from delosmq.model.message import MULTICAST
from delosmq.model.ports import LONGEST_NAP_MS
from delosmq.model.settings import QueueSettings
from tests.engine.support import Bench, anycast


def test_a_message_waits_beside_its_queue_until_it_is_due():
    bench = Bench(queues=(anycast("q"),))
    _, port = bench.consume("q")
    bench.send("q", "A", due_in_ms=500)
    bench.run()
    assert (port.bodies, bench.counts("q"), bench.broker.queues["q"].counters.added) == ("", (1, 0, 1), 1)
    bench.later(499)
    assert port.bodies == ""
    bench.later(1)
    assert (port.bodies, bench.counts("q")) == ("A", (1, 1, 0))


def test_a_due_time_in_the_past_is_no_schedule():
    bench = Bench(queues=(anycast("q"),))
    bench.send("q", "A B", due_in_ms=-5)
    assert (bench.pending("q"), bench.counts("q")) == ("A B", (2, 0, 0))
    assert bench.restart().pending("q") == "A B"


def test_what_is_due_goes_to_the_head_and_together_in_the_order_of_sending():
    bench = Bench(queues=(anycast("q"),))
    bench.send("q", "A B", due_in_ms=100)
    bench.send("q", "C", due_in_ms=50)
    bench.send("q", "D E")
    bench.later(100)
    assert bench.pending("q") == "C A B D E"


def test_the_priority_counts_for_what_is_due_too():
    bench = Bench(queues=(anycast("q"),))
    bench.send("q", "low", priority=1, due_in_ms=10)
    bench.send("q", "high", priority=9, due_in_ms=10)
    bench.send("q", "mid")
    bench.later(10)
    assert bench.pending("q") == "high mid low"


def test_each_queue_of_a_topic_schedules_its_own_reference():
    queues = tuple(QueueSettings(name, "news", MULTICAST, ring_size=ring) for name, ring in (("a", -1), ("b", 0)))
    bench = Bench(queues=queues)
    bench.send("news", "A", due_in_ms=10)
    assert (bench.scheduled("a"), bench.scheduled("b")) == ("A", "A")
    bench.later(10)
    assert (bench.pending("a"), bench.pending("b")) == ("A", "")
    assert bench.broker.used_bytes > 0


def test_a_clock_set_forward_delivers_within_a_second():
    bench = Bench(queues=(anycast("q"),))
    bench.send("q", "A", due_in_ms=3_600_000)
    bench.clock.set_by_ms = 3_600_000
    bench.later(LONGEST_NAP_MS)
    assert bench.pending("q") == "A"


def test_a_clock_set_back_delays_but_loses_nothing():
    bench = Bench(queues=(anycast("q"),))
    bench.send("q", "A", due_in_ms=100)
    bench.clock.set_by_ms = -10_000
    bench.later(5_000)
    assert (bench.pending("q"), bench.scheduled("q")) == ("", "A")
    bench.later(5_100)
    assert bench.pending("q") == "A"


def test_an_earlier_message_is_not_kept_waiting_by_a_later_one():
    bench = Bench(queues=(anycast("q"),))
    bench.send("q", "late", due_in_ms=900)
    bench.send("q", "early", due_in_ms=10)
    bench.later(10)
    assert (bench.pending("q"), bench.scheduled("q")) == ("early", "late")
    bench.later(890)
    assert bench.pending("q") == "late early"


def test_a_restart_keeps_due_times():
    bench = Bench(queues=(anycast("q"),))
    bench.send("q", "A", due_in_ms=100)
    bench.send("q", "B", due_in_ms=1_000)
    bench.send("q", "C")
    bench.clock.now_ms += 200
    again = bench.restart()
    assert (again.pending("q"), again.scheduled("q")) == ("A C", "B")
    again.later(800)
    assert again.pending("q") == "B A C"


def test_deleting_a_queue_takes_what_is_not_due():
    bench = Bench(queues=(anycast("q"), anycast("other")))
    bench.send("q", "A B", due_in_ms=100)
    bench.send("q", "C")
    bench.broker.resources.delete_queue("q")
    bench.run()
    assert bench.broker.used_bytes == 0
    assert bench.store.released == 3
    bench.later(100)
    assert bench.restart().counts("q") == (0, 0, 0)


def test_many_due_at_once_take_several_slices_and_keep_their_order():
    bench = Bench(queues=(anycast("q"),))
    words = [f"m{number:05}" for number in range(3 * SLOTS_PER_SLICE)]
    bench.send("q", " ".join(words), due_in_ms=10, durable=False)
    bench.send("q", "first", due_in_ms=9)
    _, port = bench.consume("q")
    bench.clock.now_ms += 10
    bench.broker.tick()
    assert (port.bodies, bench.broker.queues["q"].scheduled.count > 0) == ("", True)
    bench.run()
    assert port.bodies.split() == ["first", *words]


@pytest.mark.parametrize("number", [0, SLOTS_PER_SLICE])
def test_after_a_slice_that_raised_what_else_is_due_becomes_pending(number: int):
    class DueError(Exception):
        """Nothing that the engine expects."""

    class Raising(EngineEvents):
        left = number

        def message_due(self, queue: str, slot: Slot) -> None:
            self.left -= 1
            if self.left == -1:
                raise DueError

    bench = Bench(queues=(anycast("q"), anycast("other")), events=Raising())
    bench.send("q", " ".join(["m"] * 3 * SLOTS_PER_SLICE), due_in_ms=10)
    bench.send("other", "A", due_in_ms=20)
    with pytest.raises(DueError):
        bench.later(10)
    bench.later(10)
    assert bench.pending("other") == "A"


def test_a_queue_deleted_while_its_messages_become_due_leaves_nothing_behind():
    bench = Bench(queues=(anycast("q"),))
    bench.send("q", " ".join(["m"] * 3 * SLOTS_PER_SLICE), due_in_ms=10)
    bench.clock.now_ms += 10
    bench.broker.tick()
    bench.broker.resources.delete_queue("q")
    bench.run()
    assert bench.broker.used_bytes == 0
    bench.later(1_000)


def test_taking_out_frees_its_time():
    bench = Bench(queues=(anycast("q"),))
    bench.send("q", "A B", due_in_ms=100)
    bench.send("q", "C", due_in_ms=200)
    held: ScheduledSlots = bench.broker.queues["q"].scheduled
    slots = held.in_order()
    assert [slot.message.body for slot in slots] == [b"A", b"B", b"C"]
    for slot in slots:
        assert held.holds(slot)
        held.remove(slot)
        assert not held.holds(slot)
    assert (held.count, held.bytes, held.durable_count, held.durable_bytes, held.times()) == (0, 0, 0, 0, [])
    assert held.any() is None


def test_what_was_due_and_is_leased_is_leased_after_a_restart():
    bench = Bench(queues=(anycast("q"),))
    bench.send("q", "A", due_in_ms=100)
    bench.send("q", "B", due_in_ms=200)
    bench.later(100)
    group = bench.broker.lease_groups.open("g", queue="q", topic="", run="run", incarnation=None)
    bench.broker.leases.request("g", after=0, max_rows=5, max_bytes=1_000, epoch=group.epoch, until=None)
    again = bench.restart()
    assert (again.counts("q"), again.scheduled("q"), again.pending("q")) == ((2, 1, 1), "B", "")


# -- the wall clock is set ---------------------------------------------------------------------------------------------

DAYS_400_MS = 400 * 86_400_000


@pytest.mark.parametrize("set_by_ms", [DAYS_400_MS, -DAYS_400_MS])
def test_a_delay_goes_on_while_the_wall_clock_is_set(set_by_ms: int):
    bench = Bench(queues=(anycast("q"),))
    bench.send("q", "A", due_in_ms=5_000, delayed=True)
    bench.clock.set_by_ms = set_by_ms
    bench.send("q", "B", due_in_ms=5_000, delayed=True)
    bench.later(4_999)
    assert (bench.pending("q"), bench.scheduled("q")) == ("", "A B")
    bench.later(1)
    assert bench.pending("q") == "A B"


def test_a_machine_that_stops_between_its_clocks_has_set_none():
    bench = Bench(queues=(anycast("q"),))
    start_ms = bench.clock.now_ms
    message = bench.message("q", "A", due_in_ms=60_000, delayed=True)
    bench.clock.around_wall_ms = 10 * SETTLED_MS
    bench.broker.producers.send(message)
    bench.clock.around_wall_ms = 0
    bench.clock.now_ms = start_ms + 60_000 - 1
    bench.run()
    assert (bench.pending("q"), bench.scheduled("q")) == ("", "A")
    bench.later(1)
    assert bench.pending("q") == "A"


@pytest.mark.parametrize("set_by_ms", [DAYS_400_MS, -DAYS_400_MS])
def test_a_setting_is_seen_by_a_machine_that_stops_between_its_clocks(set_by_ms: int):
    bench = Bench(queues=(anycast("q"),))
    start_ms = bench.clock.now_ms
    bench.clock.set_by_ms = set_by_ms
    message = bench.message("q", "A", due_in_ms=60_000, delayed=True)
    bench.clock.around_wall_ms = stops_ms = 10 * SETTLED_MS
    bench.broker.producers.send(message)
    bench.clock.around_wall_ms = 0
    bench.clock.now_ms = start_ms + 60_000 - 2 * stops_ms
    bench.run()
    assert (bench.pending("q"), bench.scheduled("q")) == ("", "A")
    bench.later(4 * stops_ms)
    assert bench.pending("q") == "A"


def test_what_has_a_time_of_day_goes_by_the_wall_clock_beside_what_has_a_delay():
    bench = Bench(queues=(anycast("q"),))
    bench.send("q", "at", due_in_ms=60_000)
    bench.send("q", "after", due_in_ms=60_000, delayed=True)
    bench.clock.set_by_ms = 60_000
    bench.later(LONGEST_NAP_MS)
    assert (bench.pending("q"), bench.scheduled("q")) == ("at", "after")
    bench.later(59_000)
    assert bench.pending("q") == "after at"


def test_times_and_delays_that_end_together_come_in_the_order_of_sending():
    bench = Bench(queues=(anycast("q"),))
    for body in "ABCD":
        bench.send("q", body, due_in_ms=50 if body != "A" else 40, delayed=body in "BD")
    bench.later(50)
    assert sorted(bench.pending("q").split()) == list("ABCD")
    assert bench.pending("q").startswith("A")


@pytest.mark.parametrize(("set_by_ms", "waits_ms"), [(DAYS_400_MS, 0), (-DAYS_400_MS, 5_000), (2_000, 3_000)])
def test_after_a_restart_a_sender_s_delay_is_never_longer_than_it_was(set_by_ms: int, waits_ms: int):
    bench = Bench(queues=(anycast("q"),))
    bench.send("q", "delayed", due_in_ms=5_000, delayed=True)
    bench.send("q", "at", due_in_ms=500 * 86_400_000)
    bench.clock.set_by_ms = set_by_ms
    again = bench.restart()
    again.run()
    if waits_ms:
        again.later(waits_ms - 1)
        assert again.scheduled("q") == "delayed at"
        again.later(1)
    assert (again.pending("q"), again.scheduled("q")) == ("delayed", "at")


@pytest.mark.parametrize("set_by_ms", [DAYS_400_MS, -DAYS_400_MS])
def test_the_delay_of_a_redelivery_goes_on_while_the_wall_clock_is_set(set_by_ms: int):
    bench = Bench(queues=(anycast("q"),), settings={"q": {"redelivery_delay": 5_000}})
    consumer, port = bench.consume("q")
    bench.send("q", "A")
    bench.run()
    bench.broker.consumers.reject(consumer, port.slots[0].sequence)
    bench.clock.set_by_ms = set_by_ms
    bench.later(4_999)
    assert port.bodies == "A"
    bench.later(1)
    assert port.bodies == "A A"


@pytest.mark.parametrize(("set_by_ms", "waits_ms"), [(DAYS_400_MS, 0), (-DAYS_400_MS, 50_000), (2_000, 3_000)])
def test_after_a_restart_a_delay_goes_by_the_wall_clock_and_has_its_bound(set_by_ms: int, waits_ms: int):
    bench = Bench(queues=(anycast("q"),), settings={"q": {"redelivery_delay": 5_000}})
    consumer, port = bench.consume("q")
    bench.send("q", "A")
    bench.run()
    bench.broker.consumers.reject(consumer, port.slots[0].sequence)
    bench.run()
    bench.clock.set_by_ms = set_by_ms
    again = bench.restart()
    again.run()
    if waits_ms:
        again.later(waits_ms - 1)
        assert again.pending("q") == ""
        again.later(1)
    assert again.pending("q") == "A"


def test_a_time_of_day_that_compaction_repeated_is_no_delay_after_a_delivery():
    fields = {"persist_delivery_count_before_delivery": True}
    bench = Bench(queues=(anycast("q"),), settings={"q": fields})
    bench.send("q", "A", due_in_ms=5_000)
    queue = bench.broker.queues["q"]
    _, metas, bodies = bench.store.batches[-1]
    metas.append(encode_scheduled(queue.id, queue.scheduled.in_order()))
    bodies.append(NO_BODY)
    _, port = bench.consume("q")
    bench.later(5_000)
    assert port.bodies == "A"
    bench.clock.set_by_ms = -DAYS_400_MS
    again = bench.restart()
    again.run()
    assert again.pending("q") == ""
    again.clock.set_by_ms = 0
    again.later(1_000)
    assert again.pending("q") == "A"
