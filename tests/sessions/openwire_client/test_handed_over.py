"""What is handed over to another thread and not taken is as if it still waited."""

# ACK-1, ACK-4, ACK-5

from collections.abc import Callable

import pytest

from delosmq.model.errors import TMSUCCESS
from delosmq.sessions.openwire.client.acknowledgement import Delivery
from delosmq.sessions.openwire.client.consumer import OpenWireConsumer
from delosmq.sessions.openwire.client.options import AckMode, ClientOptions, PrefetchPolicy, RedeliveryPolicy
from delosmq.sessions.openwire.client.session import ConsumerWish, OpenWireClientSession
from delosmq.wire.openwire.commands import ConsumerControl, RemoveInfo
from delosmq.wire.openwire.structures import XATransactionId
from tests.sessions.openwire_client.support import OPTIONS, first_of, take
from tests.sessions.openwire_client.test_machine import QUEUE, Wire
from tests.sessions.openwire_client.test_reconnecting import cut, resumed

QUIET = ClientOptions(watch_topic_advisories=False)
AT_ONCE = ClientOptions(watch_topic_advisories=False, redelivery_policy=RedeliveryPolicy(initial_redelivery_delay_ms=0))


def hand_over(consumer: OpenWireConsumer) -> None:
    delivery = consumer.reserve()
    assert delivery is not None
    consumer.hand_over(delivery)


def numbers(consumer: OpenWireConsumer) -> list[int]:
    """Of what is handed over."""
    return [one.message_id.producer_sequence_id for one in consumer.handed_over]


def receive(consumer: OpenWireConsumer, count: int = 1) -> None:
    """As the other thread, and then the loop."""
    for _ in range(count):
        consumer.consumed(take(consumer))


def counting(consumer: OpenWireConsumer, received: list[Delivery]) -> Callable[[], None]:
    """Counts what the other thread has received, once."""

    def count() -> None:
        while received:
            consumer.consumed(received.pop(0))

    return count


def waiting(consumer: OpenWireConsumer) -> list[int]:
    found = []
    while (delivery := consumer.reserve()) is not None:
        found.append(delivery.message_id.producer_sequence_id)
    return found


def test_all_that_waits_is_handed_over_and_acknowledged_one_by_one_as_it_is_received() -> None:
    wire = Wire()
    _, consumer = wire.consumer()
    wire.dispatch(consumer, 4)
    hand_over(consumer)
    assert numbers(consumer) == [1, 2, 3, 4]
    assert wire.acks() == []
    assert consumer.last_delivered_sequence == -1
    receive(consumer, 2)
    assert wire.acks() == ["STANDARD 1-1", "STANDARD 2-2"]
    assert consumer.last_delivered_sequence == 2
    consumer.take_back()
    assert numbers(consumer) == []
    assert waiting(consumer) == [3, 4]


ENDS: dict[str, Callable[[Wire, OpenWireClientSession, OpenWireConsumer], object]] = {
    "the consumer is closed": lambda _, session, consumer: session.close_consumer(consumer),
    "the session is closed": lambda wire, session, _: wire.machine.close_session(session),
    "the connection is closed": lambda wire, _, __: wire.machine.close(),
    "the connection is lost": lambda wire, _, __: wire.machine.lose(),
    "the connection is stopped": lambda wire, _, __: wire.machine.stop(),
}


@pytest.mark.parametrize("mode", AckMode)
@pytest.mark.parametrize("end", ENDS)
def test_nothing_is_handed_over_any_more(mode: AckMode, end: str) -> None:
    wire = Wire()
    session, consumer = wire.consumer(mode)
    wire.dispatch(consumer, 6)
    hand_over(consumer)
    receive(consumer, 2)
    ENDS[end](wire, session, consumer)
    assert numbers(consumer) == []
    assert consumer.last_delivered_sequence == 2


@pytest.mark.parametrize("mode", AckMode)
def test_the_broker_hears_the_last_one_that_was_received_and_not_what_was_handed_over(mode: AckMode) -> None:
    wire = Wire()
    session, consumer = wire.consumer(mode)
    wire.dispatch(consumer, 6)
    hand_over(consumer)
    receive(consumer, 2)
    session.close_consumer(consumer)
    if mode == AckMode.TRANSACTED:
        assert numbers(consumer) == []
        session.commit()
    (remove,) = [one for one in wire.take() if isinstance(one, RemoveInfo)]
    assert remove.last_delivered_sequence_id == 2


def test_a_consumer_that_the_broker_closes_has_nothing_handed_over() -> None:
    wire = Wire()
    _, consumer = wire.consumer()
    wire.dispatch(consumer, 3)
    hand_over(consumer)
    control = ConsumerControl()
    control.consumer_id = consumer.consumer_id
    control.close = True
    wire.say(control)
    assert numbers(consumer) == []


def test_after_a_stop_it_comes_in_the_same_order() -> None:
    wire = Wire()
    _, consumer = wire.consumer()
    wire.dispatch(consumer, 3)
    hand_over(consumer)
    receive(consumer)
    wire.machine.stop()
    assert waiting(consumer) == []
    wire.machine.start()
    assert waiting(consumer) == [2, 3]


@pytest.mark.parametrize("delay_ms", [0, 1000])
def test_what_is_delivered_again_comes_before_what_was_handed_over(delay_ms: int) -> None:
    policy = RedeliveryPolicy(initial_redelivery_delay_ms=delay_ms)
    wire = Wire(ClientOptions(watch_topic_advisories=False, redelivery_policy=policy))
    for mode in (AckMode.TRANSACTED, AckMode.CLIENT, AckMode.INDIVIDUAL):
        session, consumer = wire.consumer(mode)
        wire.dispatch(consumer, 4)
        hand_over(consumer)
        first = numbers(consumer)[0]
        receive(consumer, 2)
        if mode == AckMode.TRANSACTED:
            session.rollback()
            wire.take()
        else:
            session.recover()
        assert numbers(consumer) == []
        if delay_ms:
            assert waiting(consumer) == []
            wire.pass_ms(delay_ms)
        assert waiting(consumer) == list(range(first, first + 4))


def test_a_batch_ends_before_what_is_too_old() -> None:
    wire = Wire()
    _, consumer = wire.consumer()
    wire.dispatch(consumer)
    wire.dispatch(consumer, expires_ms=wire.clock.wall_ms() + 50)
    wire.dispatch(consumer)
    wire.pass_ms(100)
    hand_over(consumer)
    assert numbers(consumer) == [1]
    receive(consumer)
    hand_over(consumer)
    receive(consumer)
    assert wire.acks() == ["STANDARD 1-1", "EXPIRED 2-2", "STANDARD 3-3"]


def test_what_grows_too_old_where_it_was_handed_over_to_is_told_in_its_turn() -> None:
    wire = Wire()
    _, consumer = wire.consumer()
    wire.dispatch(consumer)
    wire.dispatch(consumer, expires_ms=wire.clock.wall_ms() + 50)
    wire.dispatch(consumer)
    hand_over(consumer)
    assert numbers(consumer) == [1, 2, 3]
    wire.pass_ms(100)
    receive(consumer)
    assert consumer.is_expired(first_of(consumer))
    consumer.take_back()
    hand_over(consumer)
    receive(consumer)
    assert wire.acks() == ["STANDARD 1-1", "EXPIRED 2-2", "STANDARD 3-3"]


def test_a_batch_ends_before_poison() -> None:
    wire = Wire()
    session, consumer = wire.consumer(AckMode.TRANSACTED)
    wire.dispatch(consumer)
    wire.dispatch(consumer, redelivered=7)
    wire.dispatch(consumer)
    hand_over(consumer)
    assert numbers(consumer) == [1]
    receive(consumer)
    assert wire.acks() == []
    hand_over(consumer)
    receive(consumer)
    assert wire.acks() == ["POISON 2-2"]
    session.commit()
    assert wire.acks() == ["STANDARD 1-3"]


@pytest.mark.parametrize("mode", AckMode)
def test_what_was_handed_over_comes_again_after_a_break_and_is_no_duplicate(mode: AckMode) -> None:
    wire = Wire(QUIET, fault_tolerant=True)
    _, consumer = wire.consumer(mode)
    wire.dispatch(consumer, 3)
    hand_over(consumer)
    taken = take(consumer)
    wire.take()
    cut(wire)
    assert numbers(consumer) == []
    resumed(wire)
    consumer.consumed(taken)
    wire.take()
    for number in (1, 2, 3):
        wire.dispatch(consumer, number=number, redelivered=1)
    known = mode in (AckMode.AUTO, AckMode.DUPS_OK)  # as without batches
    assert wire.acks() == (["POISON 1-1"] if known else [])
    hand_over(consumer)
    assert numbers(consumer) == ([2, 3] if known else [1, 2, 3])


@pytest.mark.parametrize("mode", AckMode)
def test_what_was_received_before_a_break_counts_before_it(mode: AckMode) -> None:
    wire = Wire(QUIET, fault_tolerant=True)
    session, consumer = wire.consumer(mode)
    wire.dispatch(consumer, 3)
    hand_over(consumer)
    taken = [take(consumer) for _ in range(2)]
    session.count_received = counting(consumer, taken)
    wire.take()
    cut(wire)
    assert consumer.last_delivered_sequence == 2
    assert taken == []


@pytest.mark.parametrize("ends", ["end", "rollback"])
def test_a_branch_has_what_was_received_in_it_and_not_what_was_handed_over(ends: str) -> None:
    wire = Wire(AT_ONCE)
    session = wire.machine.create_session(AckMode.TRANSACTED, xa=True)
    resource = session.xa
    assert resource is not None
    consumer, _ = session.add_consumer(ConsumerWish(QUEUE, OPTIONS))
    branch = XATransactionId(7, b"g", b"q")
    resource.start(branch)
    wire.dispatch(consumer, 2)
    hand_over(consumer)
    taken = [take(consumer)]
    hand_over(consumer)
    session.count_received = counting(consumer, taken)
    wire.take()
    if ends == "end":
        resource.end(branch, TMSUCCESS)
    else:
        resource.rollback(branch)
    assert numbers(consumer) == []
    assert wire.acks() == ["STANDARD 1-1"]
    resource.start(XATransactionId(8, b"g", b"q"))
    assert waiting(consumer) == ([2] if ends == "end" else [1, 2])


def test_what_the_other_thread_took_and_did_not_get_comes_before_the_rest() -> None:
    wire = Wire()
    _, consumer = wire.consumer()
    wire.dispatch(consumer, 3)
    hand_over(consumer)
    taken = take(consumer)
    consumer.put_back(taken)
    assert waiting(consumer) == [1, 2, 3]
    assert wire.acks() == []


def test_what_it_only_looked_at_stays_where_it_was() -> None:
    wire = Wire(QUIET, fault_tolerant=True)
    _, consumer = wire.consumer()
    wire.dispatch(consumer, 3)
    hand_over(consumer)
    seen = first_of(consumer)
    consumer.take_back()
    consumer.put_back(seen)
    assert waiting(consumer) == [1, 2, 3]
    wire.dispatch(consumer, number=1)
    assert wire.acks() == ["POISON 1-1"]


def test_credit_and_thresholds_count_what_was_received() -> None:
    wire = Wire(ClientOptions(watch_topic_advisories=False, prefetch_policy=PrefetchPolicy(queue_prefetch=4)))
    session, consumer = wire.consumer(AckMode.CLIENT)
    wire.dispatch(consumer, 4)
    hand_over(consumer)
    receive(consumer)
    assert wire.acks() == []
    receive(consumer)
    assert wire.acks() == ["DELIVERED 1-2"]
    receive(consumer)
    session.acknowledge()
    assert wire.acks() == ["STANDARD 1-3"]
    assert numbers(consumer) == [4]
