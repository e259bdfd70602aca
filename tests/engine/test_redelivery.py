"""What becomes of a message whose delivery failed: its count, its delay, its place (ACK-4, broker side)."""

import pytest

from delosmq.engine.delivery.acknowledgements import SLICE_COST
from delosmq.engine.delivery.redelivery import redelivery_delay_ms
from delosmq.model.settings import AddressSettings
from tests.engine.support import Bench, CountingRandom, anycast


def delayed(**fields: object) -> Bench:
    settings: dict[str, object] = {"redelivery_delay": 100, **fields}
    return Bench(queues=(anycast("q"),), settings={"q": settings})


@pytest.mark.parametrize(
    ("multiplier", "longest", "delays"),
    [
        (1.0, -1, [100, 100, 100]),
        (2.0, -1, [100, 200, 400]),
        (2.0, 250, [100, 200, 250]),
        (4.0, -1, [100, 400, 1000]),  # ten times the delay, where no maximum is set
        (1e300, 5_000, [100, 5_000, 5_000]),
    ],
)
def test_delays_grow_up_to_their_maximum(multiplier: float, longest: int, delays: list[int]):
    settings = AddressSettings(
        redelivery_delay=100, redelivery_delay_multiplier=multiplier, max_redelivery_delay=longest
    )
    assert [redelivery_delay_ms(settings, count, CountingRandom()) for count in (1, 2, 3)] == delays


def test_without_a_delay_nothing_waits():
    assert redelivery_delay_ms(AddressSettings(redelivery_delay_multiplier=9.0), 5, CountingRandom()) == 0


def test_collision_avoidance_spreads_delays_both_ways_below_the_maximum():
    settings = AddressSettings(redelivery_delay=1_000, redelivery_collision_avoidance_factor=0.5)
    random = CountingRandom()  # 0.25, 0.5, 0.75, 0
    assert [redelivery_delay_ms(settings, 1, random) for _ in range(4)] == [750, 1_000, 1_250, 500]
    settings = AddressSettings(
        redelivery_delay=1_000, redelivery_collision_avoidance_factor=0.5, max_redelivery_delay=1_100
    )
    assert max(redelivery_delay_ms(settings, 1, random) for _ in range(4)) == 1_100


def test_a_rejected_message_waits_and_the_others_keep_their_order():
    bench = delayed(redelivery_delay_multiplier=2.0)
    consumer, port = bench.consume("q")
    bench.send("q", "A B C")
    bench.run()
    bench.broker.consumers.reject(consumer, port.slots[1].sequence)
    bench.run()
    assert (bench.counts("q"), port.bodies) == ((3, 2, 1), "A B C")
    bench.later(100)
    assert port.bodies == "A B C B"
    bench.broker.consumers.reject(consumer, port.slots[3].sequence)
    bench.later(199)
    assert port.bodies == "A B C B"
    bench.later(1)
    assert (port.bodies, port.slots[4].delivery_count) == ("A B C B B", 3)


def test_what_is_rejected_together_comes_again_in_order():
    bench = delayed()
    consumer, port = bench.consume("q")
    bench.send("q", "A B C")
    bench.run()
    bench.broker.consumers.reject_through(consumer, port.slots[1].sequence)
    bench.broker.consumers.close(consumer)
    bench.later(100)
    assert bench.pending("q") == "A B C"


def test_closing_a_consumer_delays_nothing():
    bench = delayed()
    consumer, _ = bench.consume("q")
    bench.send("q", "A B")
    bench.run()
    bench.broker.consumers.close(consumer)
    assert (bench.pending("q"), bench.counts("q")) == ("A B", (2, 0, 0))


def test_a_message_that_was_not_looked_at_does_not_count():
    bench = Bench(queues=(anycast("q"), anycast("DLQ")), settings={"#": {"max_delivery_attempts": 1}})
    consumer, port = bench.consume("q")
    bench.send("q", "A B")
    bench.run()
    bench.broker.consumers.reject_through(consumer, port.slots[1].sequence, count_delivery=False)
    bench.run()
    assert [slot.delivery_count for slot in port.slots] == [1, 1, 1, 1]
    assert port.bodies == "A B A B"


def test_a_restart_keeps_delay_and_count_with_one_record():
    bench = delayed()
    consumer, port = bench.consume("q")
    bench.send("q", "A")
    bench.run()
    before = len(bench.store.batches)
    bench.broker.consumers.reject(consumer, port.slots[0].sequence)
    assert [len(metas) for _, metas, _ in bench.store.batches[before:]] == [1]
    again = bench.restart()
    assert (again.pending("q"), again.scheduled("q")) == ("", "A")
    again.later(99)
    assert again.scheduled("q") == "A"
    _, port = again.consume("q")
    again.later(1)
    assert [slot.delivery_count for slot in port.slots] == [2]


def test_a_delay_of_a_non_durable_message_is_not_recorded():
    bench = delayed()
    consumer, port = bench.consume("q")
    bench.send("q", "A", durable=False)
    bench.run()
    before = len(bench.store.batches)
    bench.broker.consumers.reject(consumer, port.slots[0].sequence)
    assert len(bench.store.batches) == before
    bench.later(100)
    assert port.bodies == "A A"


def test_on_a_full_disk_delays_are_kept_but_not_recorded():
    bench = delayed()
    consumer, port = bench.consume("q")
    bench.send("q", "A")
    bench.run()
    bench.broker.set_storage_full(True)
    before = len(bench.store.batches)
    bench.broker.consumers.reject(consumer, port.slots[0].sequence)
    assert len(bench.store.batches) == before
    assert bench.scheduled("q") == "A"


def test_many_returns_take_several_ticks_and_nobody_overtakes():
    bench = Bench(queues=(anycast("q"),))
    consumer, port = bench.consume("q")
    words = [f"m{number:05}" for number in range(2 * SLICE_COST)]
    bench.send("q", " ".join(words), durable=False)
    bench.run()
    assert len(port.slots) == len(words)
    _, other = bench.consume("q")
    bench.broker.consumers.close(consumer)
    queue = bench.broker.queues["q"]
    assert 0 < queue.delivering.count < len(words)
    bench.send("q", "last", durable=False)
    bench.run()
    assert other.bodies.split() == [*words, "last"]


def test_what_is_acknowledged_while_it_returns_stays_acknowledged():
    bench = Bench(queues=(anycast("q"),))
    consumer, port = bench.consume("q")
    bench.send("q", " ".join(["m"] * 2 * SLICE_COST), durable=False)
    bench.run()
    first = port.slots[0].sequence
    bench.broker.consumers.reject_through(consumer, port.slots[-1].sequence)
    assert bench.broker.consumers.acknowledge(consumer, first)
    bench.run()
    queue = bench.broker.queues["q"]
    assert (queue.message_count, queue.counters.acknowledged) == (2 * SLICE_COST - 1, 1)


def test_a_queue_deleted_while_messages_return_to_it_leaves_nothing_behind():
    bench = Bench(queues=(anycast("q"),))
    consumer, _ = bench.consume("q")
    bench.send("q", " ".join(["m"] * 2 * SLICE_COST))
    bench.run()
    bench.broker.consumers.close(consumer)
    bench.broker.resources.delete_queue("q")
    bench.run()
    assert bench.broker.used_bytes == 0
    assert bench.store.released == 2 * SLICE_COST


def test_the_credit_of_a_rejected_message_comes_back():
    bench = delayed()
    consumer, port = bench.consume("q")
    bench.send("q", "A B")
    bench.run()
    bench.broker.consumers.reject(consumer, port.slots[0].sequence)
    assert not bench.broker.consumers.acknowledge(consumer, port.slots[0].sequence)
    assert not bench.broker.consumers.reject(consumer, port.slots[0].sequence)
    assert bench.broker.consumers.acknowledge(consumer, port.slots[1].sequence)
    assert consumer.held_count == 0


def test_what_returns_after_its_queue_was_emptied_is_ended_too():
    bench = Bench(queues=(anycast("q"),))
    consumer, port = bench.consume("q")
    bench.send("q", " ".join(["m"] * 2 * SLICE_COST))
    bench.run()
    bench.broker.consumers.reject_through(consumer, port.slots[-1].sequence)
    for slot in port.slots[:SLICE_COST:2]:
        assert bench.broker.consumers.acknowledge(consumer, slot.sequence)
    bench.broker.resources.delete_queue("q")
    bench.run()
    assert bench.broker.used_bytes == 0
    assert bench.store.released == 2 * SLICE_COST
