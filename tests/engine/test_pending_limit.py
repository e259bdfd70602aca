"""The limit of what waits for the consumer of a topic: what the tests of sessions don't reach."""

# RING-5, RING-9, RING-11

from delosmq.engine.lifecycle.subscriptions import SubscriptionOptions
from delosmq.engine.queues.consumer import Consumer
from delosmq.engine.queues.credit import PrefetchCredit
from delosmq.engine.queues.eviction_strategy import EvictionChoice
from delosmq.engine.queues.pending_limit import PendingLimit
from delosmq.engine.queues.queue import Queue
from delosmq.model.message import MULTICAST
from tests.engine.support import Bench, Collector


def limited(size: int, prefetch: int) -> tuple[Bench, Consumer, Collector, Queue]:
    bench = Bench()
    port = Collector()
    limit = PendingLimit(size, EvictionChoice())
    consumer = bench.broker.consumers.subscribe(
        "t", port, PrefetchCredit(prefetch), routing=MULTICAST, subscription=SubscriptionOptions(pending_limit=limit)
    )
    assert consumer.queue is not None
    return bench, consumer, port, consumer.queue


def send(bench: Bench, bodies: str, due_in_ms: int = 0) -> None:
    for body in bodies.split():
        bench.send("t", body, routing=MULTICAST, due_in_ms=due_in_ms)
        bench.run()


def test_what_comes_back_is_not_lost_and_counts_with_the_next_message() -> None:
    bench, consumer, port, queue = limited(1, 2)
    send(bench, "A B C")
    bench.broker.resources.update_queue(queue.name, paused=True)
    assert bench.broker.consumers.reject(consumer, port.slots[1].sequence)
    assert (bench.pending(queue.name), queue.counters.replaced) == ("B C", 0)
    bench.broker.resources.update_queue(queue.name, paused=False)
    bench.run()
    assert (port.bodies, bench.pending(queue.name)) == ("A B B", "C")


def test_what_becomes_due_counts() -> None:
    bench, _, port, queue = limited(2, 1)
    send(bench, "A B")
    send(bench, "C D E F", due_in_ms=10)
    assert bench.counts(queue.name) == (6, 1, 4)
    bench.later(10)
    assert (bench.counts(queue.name), queue.counters.replaced) == ((3, 1, 0), 3)
    # What has become due stands before the others, as in every queue.
    assert (port.bodies, bench.pending(queue.name)) == ("A", "F B")


def test_a_closed_consumer_is_forgotten() -> None:
    bench, consumer, _, queue = limited(1, 2)
    send(bench, "A B C")
    bench.broker.consumers.close(consumer)
    assert not queue.ring.counts_waiting
    assert not isinstance(queue.ring, PendingLimit)
    assert queue.counters.replaced == 0


def test_new_address_settings_leave_it_alone() -> None:
    _, _, _, queue = limited(3, 2)
    queue.apply_settings(queue.settings)
    assert queue.ring_size == 3
