"""Ring queues, RING-1 to RING-6: each worked example, literally."""

import pytest

from delosmq.engine.base.events import EngineEvents
from delosmq.engine.base.slots import Slot
from delosmq.model.errors import MisuseError
from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.settings import QueueSettings
from tests.engine.support import Bench, anycast


def test_a_full_ring_pushes_out_the_message_at_the_head():  # RING-1
    bench = Bench(queues=(anycast("q", ring_size=3),))
    bench.send("q", "A B C D")
    assert bench.pending("q") == "B C D"
    queue = bench.broker.queues["q"]
    assert (queue.message_count, queue.counters.replaced, queue.counters.acknowledged) == (3, 1, 0)
    assert queue.counters.added == 4


def test_without_a_ring_a_queue_is_first_in_first_out():  # RING-1
    bench = Bench(queues=(anycast("q"),))
    bench.send("q", "A B C D")
    _, port = bench.consume("q")
    bench.run()
    assert port.bodies == "A B C D"


def test_each_multicast_queue_has_its_own_ring():  # RING-2
    queues = (
        QueueSettings("small", "news", MULTICAST, ring_size=1),
        QueueSettings("large", "news", MULTICAST, ring_size=3),
    )
    bench = Bench(queues=queues)
    bench.send("news", "A B C")
    assert (bench.pending("small"), bench.pending("large")) == ("C", "A B C")


def test_a_queue_without_ring_size_takes_the_default_of_its_address():  # RING-3
    bench = Bench(settings={"prices.#": {"default_ring_size": 2}}, queues=(anycast("prices.own", ring_size=1),))
    bench.send("prices.auto", "A B C", routing=ANYCAST)
    bench.send("prices.own", "A B C")
    assert bench.pending("prices.auto") == "B C"
    assert bench.pending("prices.own") == "C"


def test_shrinking_removes_nothing_and_the_queue_keeps_its_size_until_it_is_consumed():  # RING-4
    bench = Bench(queues=(anycast("q", ring_size=10),))
    bench.send("q", "1 2 3 4 5 6 7 8 9 10")
    bench.broker.resources.update_queue("q", ring_size=3, max_consumers=None)
    queue = bench.broker.queues["q"]
    assert queue.message_count == 10
    bench.send("q", "11")
    assert queue.message_count == 10
    assert bench.pending("q").startswith("2 3")
    consumer, port = bench.consume("q")
    bench.run()
    assert bench.broker.consumers.acknowledge_through(consumer, port.slots[7].sequence)
    bench.broker.consumers.close(consumer)
    bench.send("q", "12 13")
    assert bench.pending("q") == "11 12 13"


def test_enlarging_takes_effect_at_once():  # RING-4
    bench = Bench(queues=(anycast("q", ring_size=1),))
    bench.broker.resources.update_queue("q", ring_size=3, max_consumers=None)
    bench.send("q", "A B C")
    assert bench.pending("q") == "A B C"


def test_what_is_in_delivery_is_outside_the_ring():  # RING-5
    bench = Bench(queues=(anycast("q", ring_size=3),))
    _, port = bench.consume("q")
    for body in "ABCD":
        bench.send("q", body)
        bench.run()
    queue = bench.broker.queues["q"]
    assert (queue.message_count, queue.delivering.count, port.bodies) == (4, 4, "A B C D")
    assert queue.counters.replaced == 0


def test_a_closing_consumer_returns_the_newest_and_the_ring_drops_its_oldest():  # RING-6
    bench = Bench(queues=(anycast("q", ring_size=3),))
    consumer, _ = bench.consume("q")
    for body in "ABCD":
        bench.send("q", body)
        bench.run()
    bench.broker.consumers.close(consumer)
    assert bench.pending("q") == "B C D"
    assert bench.broker.queues["q"].counters.replaced == 1


def test_messages_of_two_consumers_go_back_to_their_places():  # RING-6
    bench = Bench(queues=(anycast("q"),))
    first, got1 = bench.consume("q")
    second, got2 = bench.consume("q")
    bench.send("q", "A B C D")
    bench.run()
    assert (got1.bodies, got2.bodies) == ("A C", "B D")
    bench.broker.consumers.close(second)
    bench.broker.consumers.close(first)
    assert bench.pending("q") == "A B C D"


def test_a_returning_message_never_pushes_out_one_that_is_queued():  # RING-6
    bench = Bench(queues=(anycast("q", ring_size=2),))
    consumer, _ = bench.consume("q")
    bench.send("q", "A")
    bench.run()
    bench.broker.consumers.close(consumer)
    consumer, _ = bench.consume("q")
    bench.run()
    bench.broker.queues["q"].rotation.popleft().full = True
    bench.send("q", "B C")
    bench.broker.consumers.close(consumer)
    assert bench.pending("q") == "B C"


def test_the_head_is_the_oldest_of_the_highest_priority():
    bench = Bench(queues=(anycast("q", ring_size=2),))
    bench.send("q", "low", priority=1)
    bench.send("q", "high", priority=9)
    bench.send("q", "mid", priority=5)
    assert bench.pending("q") == "mid low"


def test_ring_zero_keeps_nothing_pending():
    bench = Bench(queues=(anycast("q", ring_size=0),))
    bench.send("q", "A B")
    assert bench.pending("q") == ""
    assert bench.broker.queues["q"].counters.replaced == 2


def test_other_negative_rings_are_refused():
    bench = Bench(queues=(anycast("q"),))
    with pytest.raises(MisuseError, match="ring-size -2 of queue 'q'"):
        bench.broker.resources.update_queue("q", ring_size=-2, max_consumers=None)
    assert bench.broker.queues["q"].ring_size == -1


def test_after_a_restart_the_queue_is_trimmed_to_its_ring():
    bench = Bench(queues=(anycast("q", ring_size=10),))
    bench.send("q", "1 2 3 4 5 6")
    bench.broker.resources.update_queue("q", ring_size=2, max_consumers=None)
    bench.settings = Bench(queues=(anycast("q", ring_size=2),)).settings
    assert bench.restart().pending("q") == "5 6"


def test_an_eviction_is_an_event_and_never_a_dead_letter():  # RING-11 as far as it can be today
    class Replaced(EngineEvents):
        def __init__(self) -> None:
            self.seen: list[str] = []

        def message_replaced(self, queue: str, slot: Slot) -> None:
            self.seen.append(f"{queue}:{slot.message.body.decode()}")

    events = Replaced()
    bench = Bench(
        queues=(anycast("q", ring_size=1), anycast("DLQ")),
        settings={"#": {"dead_letter_address": "DLQ"}},
        events=events,
    )
    bench.send("q", "A B")
    assert events.seen == ["q:A"]
    assert bench.pending("DLQ") == ""
    assert bench.restart().pending("q") == "B"


def test_attempts_are_checked_before_the_ring():
    bench = Bench(
        queues=(anycast("q", ring_size=1), anycast("DLQ")),
        settings={"#": {"dead_letter_address": "DLQ", "max_delivery_attempts": 1}},
    )
    consumer, _ = bench.consume("q")
    for body in "AB":
        bench.send("q", body)
        bench.run()
    bench.broker.consumers.close(consumer)
    assert bench.pending("DLQ") == "B A"
    assert bench.pending("q") == ""
