"""What a queue counts, read in constant time, equals a recount after any history."""

from hypothesis import given, settings
from hypothesis import strategies as st

from delosmq.engine.base.slots import Slot
from delosmq.engine.queues.consumer import Consumer
from delosmq.engine.queues.queue import Queue
from delosmq.model.settings import AddressSettings
from tests.chance import tries
from tests.engine.support import Bench, Collector, anycast


def held_slots(queue: Queue) -> list[Slot]:
    found: list[Slot] = []
    for consumer in queue.holders:
        slot = consumer.in_delivery.head
        while slot is not None:
            found.append(slot)
            slot = slot.next
    return found


def measure(slots: list[Slot]) -> tuple[int, int, int, int]:
    """Messages, bytes, and of those that are durable."""
    durable = [slot for slot in slots if slot.recorded]
    return (
        len(slots),
        sum(slot.message.encoded_size_bytes for slot in slots),
        len(durable),
        sum(slot.message.encoded_size_bytes for slot in durable),
    )


def check(queue: Queue) -> None:
    pending, held, scheduled = queue.pending.in_order(), held_slots(queue), queue.scheduled.in_order()
    everything = pending + held + scheduled
    assert (queue.message_count, queue.total.bytes, queue.total.durable_count, queue.total.durable_bytes) == measure(
        everything
    )
    assert (
        queue.delivering.count,
        queue.delivering.bytes,
        queue.delivering.durable_count,
        queue.delivering.durable_bytes,
    ) == measure(held)
    kept = queue.scheduled
    assert (kept.count, kept.bytes, kept.durable_count, kept.durable_bytes) == measure(scheduled)
    assert queue.expiring_count == sum(1 for slot in everything if slot.message.expires_at_ms)
    gone = queue.counters.acknowledged + queue.counters.replaced + queue.counters.killed + queue.counters.expired
    assert queue.counters.added == queue.message_count + gone
    assert queue.counters.acknowledge_attempts == gone


class History:
    def __init__(self) -> None:
        self.bench = Bench(
            queues=(anycast("q", ring_size=6), anycast("volatile", durable=False), anycast("DLQ"), anycast("EXP")),
            settings={
                "#": {
                    "dead_letter_address": "DLQ",
                    "expiry_address": "EXP",
                    "max_delivery_attempts": 3,
                    "redelivery_delay": 40,
                }
            },
        )
        self.consumers: list[tuple[Consumer, Collector]] = []
        self.sent = 0

    def step(self, kind: int, value: int) -> None:
        bench = self.bench
        name = ("q", "volatile")[value % 2]
        if kind == 0:
            self.sent += 1
            bench.send(
                name,
                "x" * (value % 7 + 1),
                durable=value % 3 > 0,
                priority=value % 10,
                due_in_ms=(0, 0, 25, 60)[value % 4],
                expires_in_ms=(0, 50, 90_000)[value % 3],
            )
        elif kind == 1 and len(self.consumers) < 3:
            self.consumers.append(bench.consume(name))
        elif kind == 2:
            bench.later((1, 30, 1_000, 30_000)[value % 4])
        elif self.consumers:
            self.answer(kind, value)

    def answer(self, kind: int, value: int) -> None:
        broker = self.bench.broker
        consumer, port = self.consumers[value % len(self.consumers)]
        if kind == 3:
            self.consumers.remove((consumer, port))
            broker.consumers.close(consumer)
        elif port.slots:
            sequence = port.slots[value % len(port.slots)].sequence
            if kind == 4:
                broker.consumers.acknowledge(consumer, sequence)
            elif kind == 5:
                broker.consumers.acknowledge_through(consumer, sequence)
            elif kind == 6:
                broker.consumers.reject(consumer, sequence, poison=value % 5 == 0, count_delivery=value % 4 > 0)
            elif kind == 7:
                broker.consumers.expire_delivered(consumer, sequence)


@settings(max_examples=tries(150))
@given(st.lists(st.tuples(st.sampled_from([0, 0, 0, 1, 2, 2, 3, 4, 5, 6, 6, 7]), st.integers(0, 999)), max_size=60))
def test_counters_equal_a_recount(steps: list[tuple[int, int]]):
    history = History()
    broker = history.bench.broker
    for kind, value in steps:
        history.step(kind, value)
        for queue in broker.queues.values():
            check(queue)
    assert broker.used_bytes == sum(
        slot.message.charge_bytes
        for queue in broker.queues.values()
        for slot in queue.pending.in_order() + held_slots(queue) + queue.scheduled.in_order()
    )
    again = history.bench.restart()
    for name, queue in again.broker.queues.items():
        before = broker.queues[name]
        assert (queue.total.durable_count, queue.total.durable_bytes) == (
            before.total.durable_count,
            before.total.durable_bytes,
        ), name


def test_leasing_makes_a_message_durable():
    bench = Bench(queues=(anycast("q"),))
    bench.send("q", "A B", durable=False)
    queue = bench.broker.queues["q"]
    assert (queue.total.durable_count, queue.total.bytes) == (0, 2)
    group = bench.broker.lease_groups.open("g", queue="q", topic="", run="run", incarnation=None)
    bench.broker.leases.request("g", after=0, max_rows=1, max_bytes=1_000, epoch=group.epoch, until=None)
    assert (queue.total.durable_count, queue.delivering.durable_count, queue.delivering.count) == (1, 1, 1)


def test_attempts_of_a_rolled_back_transaction_count_as_attempts():
    bench = Bench(queues=(anycast("q"),))
    consumer, port = bench.consume("q")
    bench.send("q", "A B")
    bench.run()
    transaction = bench.broker.transactions.begin("session")
    bench.broker.consumers.acknowledge(consumer, port.slots[0].sequence, transaction)
    bench.broker.transactions.rollback(transaction)
    bench.run()
    queue = bench.broker.queues["q"]
    assert (queue.counters.acknowledged, queue.counters.acknowledge_attempts) == (0, 1)
    bench.broker.consumers.acknowledge(consumer, port.slots[1].sequence)
    assert (queue.counters.acknowledged, queue.counters.acknowledge_attempts) == (1, 2)


def test_defaults_are_those_of_artemis():
    settings = AddressSettings()
    assert (settings.max_delivery_attempts, settings.redelivery_delay, settings.ring_eviction.value) == (10, 0, "head")
