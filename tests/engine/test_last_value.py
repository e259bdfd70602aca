"""Last-value queues: of the pending messages with the same key only the newest stays."""

import pytest

from delosmq.engine.base.slots import PendingSlots, Slot
from delosmq.engine.queues.last_value_index import LastValues
from delosmq.model.errors import MisuseError
from delosmq.model.ids import Sequence, WallMs
from delosmq.model.message import ANYCAST, Message
from delosmq.model.settings import BrokerSettings, QueueSettings
from tests.engine.routing_support import RoutingBench, projection, recount


def bench_with(**settings: object) -> RoutingBench:
    values: dict[str, object] = {"last_value_key": "key", **settings}
    return RoutingBench(BrokerSettings(queues=(QueueSettings("q", "q", ANYCAST, **values),)))  # type: ignore[arg-type]


def test_a_newer_message_replaces_the_pending_one_with_its_key():
    bench = bench_with()
    for body, key in (("A1", "a"), ("B1", "b"), ("A2", "a")):
        bench.put("q", body, key=key)
    bench.put("q", "none")
    bench.put("q", "none2")
    queue = bench.broker.queues["q"]
    assert bench.pending("q") == "B1 A2 none none2"
    assert (queue.counters.replaced, queue.counters.added, queue.message_count) == (1, 5, 4)
    recount(bench)


def test_what_is_in_delivery_stays_until_it_is_answered():
    bench = bench_with()
    bench.put("q", "A1", key="a")
    consumer, port = bench.consume("q")
    bench.run()
    port.room = False
    bench.put("q", "A2", key="a")
    assert (bench.pending("q"), bench.counts("q")) == ("A2", (2, 1, 0))
    assert bench.broker.consumers.acknowledge(consumer, port.slots[0].sequence)
    assert bench.pending("q") == "A2"


def test_a_returning_message_goes_when_a_newer_one_is_pending():
    bench = bench_with()
    bench.put("q", "A1", key="a")
    consumer, port = bench.consume("q")
    bench.run()
    port.room = False
    bench.put("q", "A2", key="a")
    bench.broker.consumers.close(consumer)
    assert (bench.pending("q"), bench.broker.queues["q"].counters.replaced) == ("A2", 1)
    recount(bench)


def test_a_returning_message_stays_when_no_newer_one_is_there():
    bench = bench_with()
    bench.put("q", "A1", key="a")
    consumer, _ = bench.consume("q")
    bench.run()
    bench.broker.consumers.close(consumer)
    assert bench.pending("q") == "A1"


def test_of_two_that_return_the_newer_stays_whichever_comes_first():
    for newest_first in (True, False):
        bench = bench_with()
        first, _ = bench.consume("q")
        second, _ = bench.consume("q")
        bench.put("q", "A1", key="a")
        bench.run()
        bench.put("q", "A2", key="a")
        bench.run()
        for consumer in (second, first) if newest_first else (first, second):
            bench.broker.consumers.close(consumer)
        assert bench.pending("q") == "A2"
        recount(bench)


def test_replacing_survives_a_restart_and_goes_on_after_it():
    bench = bench_with()
    for body, key in (("A1", "a"), ("B1", "b"), ("A2", "a")):
        bench.put("q", body, key=key)
    again = bench.restart()
    assert projection(again) == projection(bench)
    assert again.pending("q") == "B1 A2"
    again.broker.producers.send(bench.with_properties("q", "B2", {"key": "b"}))
    assert again.pending("q") == "A2 B2"


def test_a_scheduled_message_counts_when_it_is_due():
    bench = bench_with()
    message = bench.with_properties("q", "later", {"key": "a"})
    message.due_at_ms = bench.clock.wall_ms() + 1_000
    bench.broker.producers.send(message)
    bench.put("q", "now", key="a")
    assert (bench.pending("q"), bench.scheduled("q")) == ("now", "later")
    bench.later(1_000)
    assert (bench.pending("q"), bench.scheduled("q")) == ("later", "")


def test_of_those_due_together_the_newest_stays():
    bench = bench_with()
    for body in ("one", "two", "three"):
        message = bench.with_properties("q", body, {"key": "a"})
        message.due_at_ms = bench.clock.wall_ms() + 1_000
        bench.broker.producers.send(message)
    bench.later(1_000)
    assert bench.pending("q") == "three"


def test_with_a_ring_the_replaced_one_makes_room_first():
    bench = bench_with(ring_size=2)
    for body, key in (("A1", "a"), ("B1", "b"), ("A2", "a"), ("C1", "c")):
        bench.put("q", body, key=key)
    assert bench.pending("q") == "A2 C1"


@pytest.mark.parametrize(
    ("settings", "key"),
    [({"default_last_value_queue": True}, "_AMQ_LVQ_NAME"), ({"default_last_value_key": "code"}, "code")],
)
def test_addresses_make_last_value_queues(settings: dict[str, object], key: str):
    bench = RoutingBench(addresses={"#": settings})
    for body in ("A1", "A2"):
        bench.put("q", body, routing=ANYCAST, **{key: "a"})
    assert bench.pending("q") == "A2"
    assert bench.broker.queues["q"].in_force.last_value_key == key


def test_a_queue_may_stay_an_ordinary_one_where_its_address_makes_others():
    queues = (QueueSettings("q", "q", ANYCAST, last_value_key=""),)
    bench = RoutingBench(BrokerSettings(queues=queues), addresses={"#": {"default_last_value_queue": True}})
    again = bench.restart()
    for body in ("A1", "A2"):
        again.broker.producers.send(bench.with_properties("q", body, {"_AMQ_LVQ_NAME": "a"}))
    assert again.pending("q") == "A1 A2"


def test_the_key_of_a_queue_cannot_change():
    bench = bench_with()
    with pytest.raises(MisuseError, match="last-value-key of queue 'q' can't change while it exists"):
        bench.broker.resources.update_queue("q", last_value_key="other")


def test_keys_of_messages_that_left_are_forgotten():
    values = LastValues()
    pending = PendingSlots()
    for number in range(1, 1_001):
        message = Message("q", "stomp/12", b"", b"", timestamp_ms=WallMs(1))
        message.sequence = Sequence(number)
        slot = Slot(message, False)
        pending.put_back(slot)
        values.track(str(number), slot)
        if number % 10:
            pending.remove(slot)
            values.remove(slot)
    assert values.entry_count == pending.count
    assert values.current("1000", pending) is not None
    assert values.current("999", pending) is None
