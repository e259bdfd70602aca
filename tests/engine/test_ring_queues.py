"""Ring queues whole: schedules, returns, priorities, restarts, many producers. The first six are in test_ring."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delosmq.engine.base.events import EngineEvents
from delosmq.engine.base.slots import Slot
from delosmq.engine.queues.consumer import Consumer
from delosmq.engine.queues.credit import ByteCredit
from delosmq.engine.routing.send_result import BLOCKED, DROPPED, ROUTED
from delosmq.model.errors import LimitError
from delosmq.model.settings import AddressFullPolicy, QueueSettings, RingEviction
from tests.engine.support import Bench, Collector, anycast


class Replaced(EngineEvents):
    def __init__(self) -> None:
        self.seen: list[str] = []

    def message_replaced(self, queue: str, slot: Slot) -> None:
        self.seen.append(slot.message.body.decode())


def ring(size: int, events: EngineEvents | None = None, **fields: object) -> Bench:
    return Bench(queues=(anycast("q", ring_size=size), anycast("DLQ")), settings={"#": fields}, events=events)


def test_four_sent_to_a_ring_of_three():  # RING-1, worked example
    bench = ring(3)
    bench.send("q", "A B C D")
    assert (bench.pending("q"), bench.counts("q")) == ("B C D", (3, 0, 0))


def test_four_dispatched_to_a_consumer_that_then_closes():  # RING-5, RING-6, worked example
    bench = ring(3)
    consumer, _ = bench.consume("q")
    for body in "ABCD":
        bench.send("q", body)
        bench.run()
    assert bench.counts("q") == (4, 4, 0)
    bench.broker.consumers.close(consumer)
    assert (bench.pending("q"), bench.counts("q")) == ("B C D", (3, 0, 0))


def test_a_scheduled_message_finds_the_ring_full_when_it_is_due():  # RING-9, worked example
    events = Replaced()
    bench = ring(3, events, dead_letter_address="DLQ")
    bench.send("q", "A", due_in_ms=300_000)
    bench.send("q", "B C D")
    assert bench.counts("q") == (4, 0, 1)
    bench.later(300_000)
    assert (bench.pending("q"), bench.counts("q"), events.seen) == ("B C D", (3, 0, 0), ["A"])
    assert (bench.pending("DLQ"), bench.broker.queues["q"].counters.replaced) == ("", 1)
    assert bench.restart().pending("q") == "B C D"


def test_two_scheduled_messages_become_due_together():  # RING-9: newest first
    bench = ring(1)
    bench.send("q", "A B", due_in_ms=100)
    bench.later(100)
    assert (bench.pending("q"), bench.broker.queues["q"].counters.replaced) == ("B", 1)


def test_a_shrunk_ring_keeps_its_size_until_it_is_consumed():  # RING-4, worked example
    bench = ring(10)
    bench.send("q", "1 2 3 4 5 6 7 8 9 10")
    bench.broker.resources.update_queue("q", ring_size=3)
    bench.send("q", "11")
    assert bench.counts("q") == (10, 0, 0)
    consumer, port = bench.consume("q")
    bench.run()
    bench.broker.consumers.acknowledge_through(consumer, port.slots[-1].sequence)
    bench.broker.consumers.close(consumer)
    bench.send("q", "12 13 14 15")
    assert bench.pending("q") == "13 14 15"


def test_the_messages_of_two_consumers_return_to_their_places():  # RING-6
    bench = ring(-1)
    first, got1 = bench.consume("q")
    second, got2 = bench.consume("q")
    bench.send("q", "A B C D")
    bench.run()
    assert (got1.bodies, got2.bodies) == ("A C", "B D")
    bench.broker.consumers.close(second)
    assert bench.pending("q") == "B D"
    bench.broker.consumers.close(first)
    assert bench.pending("q") == "A B C D"


def test_each_of_two_consumers_loses_its_oldest_to_the_ring():  # RING-6
    bench = ring(3)
    first, _ = bench.consume("q")
    second, _ = bench.consume("q")
    bench.send("q", "A B")
    bench.run()
    bench.send("q", "C D")
    bench.run()
    first.port.room = False  # type: ignore[attr-defined]
    bench.broker.consumers.close(second)
    bench.broker.consumers.close(first)
    assert bench.pending("q") == "B C D"


@pytest.mark.parametrize("how", ["close", "reject"])
def test_returning_messages_are_checked_newest_first(how: str):  # RING-6
    bench = ring(2)
    consumer, port = bench.consume("q")
    for body in "ABC":
        bench.send("q", body)
        bench.run()
    port.room = False
    bench.send("q", "D")
    if how == "close":
        bench.broker.consumers.close(consumer)
    else:
        bench.broker.consumers.reject_through(consumer, port.slots[-1].sequence)
    assert bench.pending("q") == "C D"


def test_a_delayed_return_is_checked_before_its_delay_and_when_it_is_due():  # RING-9
    events = Replaced()
    bench = ring(2, events, redelivery_delay=100)
    consumer, port = bench.consume("q")
    for body in "ABC":
        bench.send("q", body)
        bench.run()
    port.room = False
    bench.broker.consumers.reject(consumer, port.slots[2].sequence)
    assert (bench.scheduled("q"), events.seen) == ("C", [])
    bench.send("q", "D E")
    bench.broker.consumers.reject(consumer, port.slots[0].sequence)  # no room: dropped at once
    assert (bench.scheduled("q"), events.seen) == ("C", ["A"])
    bench.later(100)  # no room either
    assert (bench.pending("q"), events.seen) == ("D E", ["A", "C"])
    bench.broker.consumers.close(consumer)
    assert events.seen == ["A", "C", "B"]


def test_attempts_are_checked_before_the_ring():  # RING-11: a ring makes no dead letters, attempts do
    bench = ring(1, dead_letter_address="DLQ", max_delivery_attempts=1)
    consumer, port = bench.consume("q")
    bench.send("q", "A")
    bench.run()
    port.room = False
    bench.send("q", "B")
    bench.broker.consumers.reject(consumer, port.slots[0].sequence)
    assert (bench.pending("q"), bench.pending("DLQ")) == ("B", "A")
    assert bench.broker.queues["q"].counters.replaced == 0


def test_the_head_goes_first_which_is_of_the_highest_priority():
    bench = ring(3)
    for body, priority in (("low", 1), ("high1", 9), ("high2", 9), ("mid", 5)):
        bench.send("q", body, priority=priority)
    assert bench.pending("q") == "high2 mid low"


def test_settings_may_let_the_lowest_priority_go_first():
    bench = ring(3, ring_eviction=RingEviction.LOWEST_PRIORITY)
    for body, priority in (("low1", 1), ("low2", 1), ("high", 9), ("mid", 5), ("last", 0)):
        bench.send("q", body, priority=priority)
    assert bench.pending("q") == "high mid low2"


def test_the_order_of_eviction_is_the_same_after_a_restart():
    bench = ring(3, ring_eviction=RingEviction.LOWEST_PRIORITY)
    bench.send("q", "low", priority=1)
    bench.send("q", "A B")
    again = bench.restart()
    again.send("q", "C")
    assert again.pending("q") == "A B C"


def test_a_restart_trims_a_queue_to_a_ring_that_was_shrunk():  # RING-10 without paging
    bench = ring(10)
    bench.send("q", "1 2 3 4 5 6")
    bench.send("q", "7", due_in_ms=100)
    bench.settings = ring(2).settings
    again = bench.restart()
    assert (again.pending("q"), again.counts("q")) == ("5 6", (3, 0, 1))
    assert again.restart().pending("q") == "5 6"


def test_a_new_ring_size_survives_a_restart():  # RING-4
    bench = Bench(queues=(anycast("other"),))
    bench.broker.resources.create_queue(QueueSettings("q", "q", ring_size=5))
    bench.broker.resources.update_queue("q", ring_size=2)
    bench.send("q", "A B C")
    again = bench.restart()
    again.send("q", "D")
    assert (again.broker.queues["q"].ring_size, again.pending("q")) == (2, "C D")


def test_ring_zero_drops_what_is_due_and_what_returns():
    bench = ring(0)
    bench.send("q", "A", due_in_ms=10)
    assert bench.counts("q") == (1, 0, 1)
    bench.later(10)
    assert bench.counts("q") == (0, 0, 0)


def test_evictions_free_memory_and_count_as_nothing_else():  # RING-11
    bench = ring(1, max_size_messages=2)
    bench.send("q", "A B C D E")
    queue = bench.broker.queues["q"]
    assert (queue.counters.added, queue.counters.replaced, queue.counters.acknowledged) == (5, 4, 0)
    assert (queue.counters.killed, queue.counters.expired) == (0, 0)
    assert queue.address.account.used_messages == 1
    assert bench.store.released == 4


def test_a_rollback_returns_as_a_closing_consumer_does():  # RING-7
    bench = ring(3)
    consumer, port = bench.consume("q")
    for body in "ABCD":
        bench.send("q", body)
        bench.run()
    transaction = bench.broker.transactions.begin("session")
    assert bench.broker.consumers.acknowledge_through(consumer, port.slots[-1].sequence, transaction)
    assert bench.counts("q") == (4, 4, 0)
    port.room = False
    bench.broker.transactions.rollback(transaction)
    bench.run()
    assert (bench.pending("q"), bench.broker.queues["q"].counters.replaced) == ("B C D", 1)


def test_a_rollback_waits_for_its_redelivery_delay():  # RING-7, RING-9
    bench = ring(3, redelivery_delay=100)
    consumer, port = bench.consume("q")
    bench.send("q", "A")
    bench.run()
    transaction = bench.broker.transactions.begin("session")
    bench.broker.consumers.acknowledge(consumer, port.slots[0].sequence, transaction)
    port.room = False
    bench.broker.transactions.rollback(transaction)
    bench.run()
    assert (bench.pending("q"), bench.scheduled("q")) == ("", "A")
    bench.later(100)
    assert bench.pending("q") == "A"


def test_a_window_of_bytes_bounds_what_is_outside_the_ring():  # RING-8
    bench = ring(2)
    consumer, port = bench.consume("q", ByteCredit(3))
    for body in "ABCDEF":
        bench.send("q", body)
        bench.run()
    assert (port.bodies, bench.pending("q")) == ("A B C", "E F")
    bench.broker.consumers.acknowledge(consumer, port.slots[0].sequence)
    bench.run()
    assert (port.bodies, bench.pending("q")) == ("A B C E", "F")


@pytest.mark.parametrize(("policy", "outcome"), [(AddressFullPolicy.DROP, DROPPED), (AddressFullPolicy.BLOCK, BLOCKED)])
def test_a_full_address_answers_before_the_ring_does(policy: AddressFullPolicy, outcome: int):  # RING-10
    bench = ring(5, max_size_messages=2, address_full_policy=policy)
    assert bench.send("q", "A B C") == [ROUTED, ROUTED, outcome]
    assert (bench.pending("q"), bench.broker.queues["q"].counters.replaced) == ("A B", 0)


def test_a_ring_below_the_limit_of_its_address_never_fills_it():  # RING-10
    bench = ring(1, max_size_messages=2, address_full_policy=AddressFullPolicy.FAIL)
    assert bench.send("q", "A B C D") == [ROUTED] * 4
    with pytest.raises(LimitError, match="DMQ2201"):
        ring(5, max_size_messages=2, address_full_policy=AddressFullPolicy.FAIL).send("q", "A B C")


class World:
    """25 producers of 25 messages each and a few consumers, whose steps somebody else chooses."""

    def __init__(self) -> None:
        self.bench = ring(25, max_delivery_attempts=-1)
        self.queue = self.bench.broker.queues["q"]
        self.left = [25] * 25
        self.consumers: list[tuple[Consumer, Collector]] = []

    def produce(self, producer: int) -> None:
        if self.left[producer]:
            self.left[producer] -= 1
            self.bench.send("q", f"{producer}.{self.left[producer]}", durable=producer % 2 == 0)

    def step(self, choice: int) -> None:
        kind = choice % 30
        if kind == 25 and len(self.consumers) < 3:
            self.consumers.append(self.bench.consume("q"))
        elif kind == 26 and self.consumers:
            self.bench.broker.consumers.close(self.consumers.pop(choice // 30 % len(self.consumers))[0])
        elif kind == 27 and self.consumers:
            consumer, port = self.consumers[choice // 30 % len(self.consumers)]
            if port.slots:
                self.bench.broker.consumers.reject_through(
                    consumer, port.slots[choice // 30 % len(port.slots)].sequence
                )
        elif kind == 28:
            self.bench.run()
        else:
            self.produce(choice % 25)
        assert self.queue.pending.count <= 25

    def finish(self) -> None:
        for producer in range(25):
            while self.left[producer]:
                self.produce(producer)
        for consumer, _ in self.consumers:
            self.bench.broker.consumers.close(consumer)
        self.bench.run()
        queue = self.queue
        assert self.bench.counts("q") == (25, 0, 0)
        assert (queue.counters.added, queue.counters.replaced) == (625, 600)
        assert self.bench.broker.used_bytes == sum(s.message.charge_bytes for s in queue.pending.in_order())


@pytest.mark.slow
@given(st.lists(st.integers(0, 899), max_size=120))
def test_twenty_five_producers_settle_at_exactly_twenty_five(choices: list[int]):  # RING-1, RING-5
    world = World()
    for choice in choices:
        world.step(choice)
    world.finish()


@pytest.mark.parametrize("seed", range(5))
def test_long_interleavings_settle_at_exactly_twenty_five(seed: int):  # RING-1, RING-5
    chance = random.Random(seed)
    world = World()
    for _ in range(1_500):
        world.step(chance.randrange(900))
    world.finish()
