"""What acknowledgements outside transactions do to messages and to the prefetch, frame by frame."""

# ACK-1, ACK-2

import pytest

from delosmq.wire.openwire.commands import (
    DELIVERED_ACK,
    EXPIRED_ACK,
    INDIVIDUAL_ACK,
    POISON_ACK,
    REDELIVERED_ACK,
    STANDARD_ACK,
    UNMATCHED_ACK,
)
from delosmq.wire.openwire.structures import MessageId, ProducerId, Throwable
from tests.sessions.openwire.support import Client, OpenWireBench, Reader, code_of, queue, topic

A = queue("a")
T = topic("t")
STRANGER = MessageId(ProducerId("ID:nobody", 1, 1), 1, 999_999)
CLASSIC = {
    "#": {
        "dead_letter_address": "ActiveMQ.DLQ",
        "auto_create_dead_letter_resources": True,
    }
}


def start(prefetch: int, bodies: str = "0 1 2 3 4 5 6 7 8 9") -> tuple[OpenWireBench, Client, Reader]:
    """A consumer of a queue with these messages."""
    bench = OpenWireBench()
    client = bench.connect()
    client.publish(A, bodies)
    return bench, client, client.consume(A, prefetch)


def left(bench: OpenWireBench) -> int:
    return bench.queue("a").message_count


# -- STANDARD ----------------------------------------------------------------------------------------------------------


def test_no_more_than_the_prefetch_is_dispatched() -> None:
    _, _, reader = start(3)
    assert reader.bodies() == "0 1 2"


def test_standard_for_one_message_ends_it_and_makes_room_for_one() -> None:
    bench, _, reader = start(3)
    reader.take()
    reader.done(0)
    assert reader.bodies() == "3"
    assert left(bench) == 9


def test_standard_for_one_in_the_midst_leaves_the_older_ones() -> None:
    bench, client, reader = start(3)
    reader.take()
    reader.done(1)
    assert left(bench) == 9
    client.drop()
    other = bench.connect().consume(A)
    assert other.bodies() == "0r1 2r1 3r1 4 5 6 7 8 9"


def test_standard_for_a_range_ends_all_of_it() -> None:
    bench, _, reader = start(5)
    reader.take()
    reader.done(1, 3)
    assert reader.bodies() == "5 6 7"
    assert left(bench) == 7


def test_a_range_without_a_first_begins_with_the_oldest() -> None:
    bench, client, reader = start(5)
    reader.take()
    client.ok(reader.ack(STANDARD_ACK, 2, count=3))
    assert reader.bodies() == "5 6 7"
    assert left(bench) == 7


@pytest.mark.parametrize(("first", "last", "count"), [(0, 0, 2), (0, 2, 2), (1, 2, 3), (None, 2, 2)])
def test_a_count_that_is_not_that_of_the_range_is_an_error(first: int | None, last: int, count: int) -> None:
    bench, client, reader = start(5)
    reader.take()
    exception = client.refused(reader.ack(STANDARD_ACK, last, first=first, count=count))
    assert code_of(exception) == "JMSException DMQ5261"
    assert left(bench) == 10
    assert reader.bodies() == ""


def test_a_range_must_end_in_what_was_dispatched() -> None:
    bench, client, reader = start(5)
    reader.take()
    exception = client.refused(reader.ack(STANDARD_ACK, STRANGER, first=0))
    assert code_of(exception) == "JMSException DMQ5260"
    assert "ID:nobody:1:1:1 (end of ack)" in (exception.message or "")
    assert left(bench) == 10


def test_a_range_must_begin_in_what_was_dispatched() -> None:
    bench, client, reader = start(5)
    reader.take()
    ack = reader.ack(STANDARD_ACK, 1, count=2)
    ack.first_message_id = STRANGER
    exception = client.refused(ack)
    assert code_of(exception) == "JMSException DMQ5260"
    assert "(start of ack)" in (exception.message or "")
    assert left(bench) == 10


def test_a_range_must_begin_before_it_ends() -> None:
    bench, client, reader = start(5)
    reader.take()
    exception = client.refused(reader.ack(STANDARD_ACK, 1, first=3, count=2))
    assert code_of(exception) == "JMSException DMQ5260"
    assert left(bench) == 10


def test_what_was_acknowledged_already_is_not_dispatched_any_more() -> None:
    _, client, reader = start(5)
    reader.take()
    reader.done(0)
    assert code_of(client.refused(reader.ack(STANDARD_ACK, 0, first=0))) == "JMSException DMQ5260"


def test_an_acknowledgement_names_the_consumer_and_the_last_message() -> None:
    _, client, reader = start(5)
    reader.take()
    ack = reader.ack(STANDARD_ACK, 0, first=0)
    ack.last_message_id = None
    assert code_of(client.refused(ack)) == "JMSException DMQ5234"
    ack = reader.ack(STANDARD_ACK, 0, first=0)
    ack.consumer_id = None
    assert code_of(client.refused(ack)) == "JMSException DMQ5234"


def test_a_client_that_gives_back_no_sequence_is_understood_by_the_id() -> None:
    bench, client, reader = start(5)
    reader.take()
    last = reader.message_id(1)
    client.ok(reader.ack(STANDARD_ACK, MessageId(last.producer_id, last.producer_sequence_id), count=2))
    assert left(bench) == 8


# -- DELIVERED ---------------------------------------------------------------------------------------------------------


def test_delivered_extends_the_prefetch_and_ends_nothing() -> None:
    bench, client, reader = start(3)
    reader.take()
    client.ok(reader.ack(DELIVERED_ACK, 1, first=0, count=2))
    assert reader.bodies() == "3 4"
    assert left(bench) == 10


def test_the_extension_shrinks_by_each_message_that_is_acknowledged_later() -> None:
    _, client, reader = start(3)
    reader.take()
    client.ok(reader.ack(DELIVERED_ACK, 1, first=0, count=2))
    reader.take()
    # Of 5 in delivery 2 end, and the extension goes from 2 to 0: still full.
    reader.done(0, 1)
    assert reader.bodies() == ""
    reader.done(2)
    assert reader.bodies() == "5"


def test_the_extension_does_not_fall_below_nothing() -> None:
    _, client, reader = start(4)
    reader.take()
    client.ok(reader.ack(DELIVERED_ACK, 0, first=0, count=1))
    assert reader.bodies() == "4"
    # 5 in delivery, extension 1; then 2 and 0.
    reader.done(0, 2)
    assert reader.bodies() == "5 6"


def test_delivered_for_what_was_never_dispatched_is_an_error() -> None:
    _, client, reader = start(3)
    reader.take()
    assert code_of(client.refused(reader.ack(DELIVERED_ACK, STRANGER, first=0, count=2))) == "JMSException DMQ5260"
    assert reader.bodies() == ""


# -- INDIVIDUAL --------------------------------------------------------------------------------------------------------


def test_individual_ends_the_one_message_that_is_named_last() -> None:
    bench, client, reader = start(3)
    reader.take()
    client.ok(reader.ack(INDIVIDUAL_ACK, 1))
    assert reader.bodies() == "3"
    client.drop()
    assert bench.connect().consume(A, 4).bodies() == "0r1 2r1 3r1 4"


def test_individual_shrinks_the_extension_too() -> None:
    _, client, reader = start(3)
    reader.take()
    client.ok(reader.ack(DELIVERED_ACK, 1, first=0, count=2))
    reader.take()
    client.ok(reader.ack(INDIVIDUAL_ACK, 0))
    client.ok(reader.ack(INDIVIDUAL_ACK, 1))
    assert reader.bodies() == ""
    client.ok(reader.ack(INDIVIDUAL_ACK, 2))
    assert reader.bodies() == "5"


def test_individual_of_a_topic_leaves_the_extension_alone() -> None:
    # Or the first message, seen and not acknowledged, would fill the prefetch for good.
    client = OpenWireBench().connect()
    reader = client.consume(topic("t"), 1)
    client.publish(topic("t"), "0 1 2 3")
    assert reader.bodies() == "0"
    client.ok(reader.ack(DELIVERED_ACK, 0, first=0))
    assert reader.bodies() == "1"
    client.ok(reader.ack(INDIVIDUAL_ACK, 1))
    assert reader.bodies() == "2"


def test_individual_for_what_was_never_dispatched_is_passed_over() -> None:
    bench, client, reader = start(3)
    reader.take()
    client.ok(reader.ack(INDIVIDUAL_ACK, STRANGER))
    assert left(bench) == 10


# -- EXPIRED -----------------------------------------------------------------------------------------------------------


def test_expired_ends_the_messages_of_its_range() -> None:
    bench, client, reader = start(3)
    reader.take()
    client.ok(reader.ack(EXPIRED_ACK, 0, first=0))
    assert reader.bodies() == "3"
    assert left(bench) == 9
    assert bench.queue("a").counters.expired == 1


def test_expired_shrinks_the_extension_once_for_its_whole_range() -> None:
    _, client, reader = start(4)
    reader.take()
    client.ok(reader.ack(DELIVERED_ACK, 2, first=0, count=3))
    assert reader.bodies() == "4 5 6"
    # 7 in delivery, extension 3; then 4 and 2: room for 2.
    client.ok(reader.ack(EXPIRED_ACK, 2, first=0, count=3))
    assert reader.bodies() == "7 8"


def test_an_expired_message_goes_to_the_expiry_address() -> None:
    bench = OpenWireBench(address_settings={"#": {"expiry_address": "old", "auto_create_expiry_resources": True}})
    client = bench.connect()
    client.publish(A, "x")
    reader = client.consume(A)
    reader.take()
    client.ok(reader.ack(EXPIRED_ACK, 0, first=0))
    assert left(bench) == 0
    assert [q.message_count for name, q in bench.broker.queues.items() if name != "a"] == [1]


@pytest.mark.parametrize("kind", [EXPIRED_ACK, POISON_ACK, REDELIVERED_ACK])
def test_what_was_never_dispatched_can_neither_expire_nor_be_poison_nor_redelivered(kind: int) -> None:
    bench, client, reader = start(3)
    reader.take()
    assert code_of(client.refused(reader.ack(kind, STRANGER, first=0))) == "JMSException DMQ5260"
    assert left(bench) == 10


# -- POISON ------------------------------------------------------------------------------------------------------------


def test_poison_makes_dead_letters_of_its_range() -> None:  # ACK-4
    bench = OpenWireBench(address_settings=CLASSIC)
    client = bench.connect()
    client.publish(A, "0 1 2 3")
    reader = client.consume(A, 3)
    reader.take()
    client.ok(reader.ack(POISON_ACK, 1, first=0, count=2, cause=Throwable("java.lang.Throwable", "Exceeded")))
    assert reader.bodies() == "3"
    (dead,) = [name for name in bench.broker.queues if name != "a"]
    assert bench.queue(dead).message_count == 2
    assert left(bench) == 2


def test_poison_shrinks_the_extension_once_for_its_whole_range() -> None:  # ACK-4
    _, client, reader = start(4)
    reader.take()
    client.ok(reader.ack(DELIVERED_ACK, 2, first=0, count=3))
    assert reader.bodies() == "4 5 6"
    client.ok(reader.ack(POISON_ACK, 2, first=0, count=3))
    assert reader.bodies() == "7 8"


# -- REDELIVERED, UNMATCHED, others ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [REDELIVERED_ACK, UNMATCHED_ACK])
def test_redelivered_and_unmatched_change_nothing(kind: int) -> None:
    bench, client, reader = start(3)
    reader.take()
    client.ok(reader.ack(kind, 1, first=0, count=2))
    assert reader.bodies() == ""
    assert left(bench) == 10


def test_a_type_that_does_not_exist_is_an_error() -> None:
    _, client, reader = start(3)
    reader.take()
    assert code_of(client.refused(reader.ack(7, 1, first=0, count=2))) == "JMSException DMQ5263"


# -- who is meant ------------------------------------------------------------------------------------------------------


def test_before_anything_was_dispatched_an_acknowledgement_is_ignored() -> None:
    bench, client, reader = start(1)
    waiting = client.consume(queue("empty"))
    client.ok(waiting.ack(STANDARD_ACK, STRANGER, count=5))
    client.ok(waiting.ack(DELIVERED_ACK, STRANGER, count=5))
    assert reader.bodies() == "0"
    assert left(bench) == 10


def test_of_a_consumer_that_is_gone_an_acknowledgement_is_ignored() -> None:
    bench, client, reader = start(1)
    reader.take()
    reader.close()
    client.ok(reader.ack(STANDARD_ACK, 0, first=0))
    assert left(bench) == 10


def test_what_another_consumer_has_can_not_be_acknowledged() -> None:
    bench, client, reader = start(1)
    other = client.consume(A, 1)
    reader.take()
    assert other.bodies() == "1"
    assert code_of(client.refused(reader.ack(STANDARD_ACK, other.message_id(0), count=1))) == "JMSException DMQ5260"
    assert left(bench) == 10


# -- topics ------------------------------------------------------------------------------------------------------------


def test_a_topic_s_consumer_may_acknowledge_what_it_likes() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    reader = client.consume(T, 4)
    client.publish(T, "0 1 2 3 4 5 6 7")
    assert reader.bodies() == "0 1 2 3"
    for kind in (STANDARD_ACK, DELIVERED_ACK, INDIVIDUAL_ACK, EXPIRED_ACK, REDELIVERED_ACK):
        client.ok(reader.ack(kind, STRANGER, first=0, count=7))
    assert not client.host.finished


def test_a_topic_s_consumer_acknowledges_a_range_without_a_first() -> None:
    """As the consumer of advisories does: 751 of 1000."""
    bench = OpenWireBench()
    client = bench.connect()
    reader = client.consume(T, 4)
    client.publish(T, "0 1 2 3 4 5 6 7")
    reader.take()
    client.ok(reader.ack(STANDARD_ACK, 2, count=3))
    assert reader.bodies() == "4 5 6"


def test_poison_is_a_plain_acknowledgement_on_a_topic() -> None:
    bench = OpenWireBench(address_settings=CLASSIC)
    client = bench.connect()
    reader = client.consume(T, 2)
    client.publish(T, "0 1 2")
    reader.take()
    client.ok(reader.ack(POISON_ACK, 0, first=0))
    assert reader.bodies() == "2"
    assert "ActiveMQ.DLQ" not in bench.broker.addresses


def test_a_durable_subscription_checks_as_a_queue_does() -> None:
    bench = OpenWireBench()
    client = bench.connect(client_id="me")
    reader = client.durable("s", T, 2)
    client.publish(T, "0 1 2")
    assert reader.bodies() == "0 1"
    assert code_of(client.refused(reader.ack(STANDARD_ACK, STRANGER, count=1))) == "JMSException DMQ5260"
    assert code_of(client.refused(reader.ack(STANDARD_ACK, 1, first=0, count=1))) == "JMSException DMQ5261"
    client.ok(reader.ack(DELIVERED_ACK, 0, first=0))
    assert reader.bodies() == "2"


# -- what applications' modes send -------------------------------------------------------------------------------------


def test_optimized_acknowledgements_of_a_prefetch_of_10_come_at_7_and_14() -> None:
    bench, client, reader = start(10, " ".join(str(n) for n in range(20)))
    assert reader.bodies() == "0 1 2 3 4 5 6 7 8 9"
    reader.done(0, 6)
    assert reader.bodies() == "10 11 12 13 14 15 16"
    reader.done(7, 13)
    assert reader.bodies() == "17 18 19"
    assert left(bench) == 6
    assert not client.host.finished


def test_a_session_with_client_acknowledge_reads_on_by_delivered_and_ends_all_at_once() -> None:
    bench, client, reader = start(4)
    reader.take()
    client.tell(reader.ack(DELIVERED_ACK, 1, first=0, count=2))
    assert reader.bodies() == "4 5"
    client.tell(reader.ack(DELIVERED_ACK, 3, first=2, count=2))
    assert reader.bodies() == "6 7"
    reader.done(0, 3)
    assert left(bench) == 6
    # Extension and deliveries have shrunk alike.
    assert reader.bodies() == ""
    reader.done(4, 7)
    assert reader.bodies() == "8 9"


# -- when it is stored -------------------------------------------------------------------------------------------------


def test_nobody_waits_for_an_acknowledgement_without_an_answer() -> None:
    bench, client, reader = start(10)
    reader.take()
    bench.hold = True
    before = bench.gate.awaited
    client.tell(reader.ack(STANDARD_ACK, 0))
    assert left(bench) == 9
    assert bench.broker.log.position > before
    assert bench.gate.awaited == before, "it asks for no sync of its own"
    command_id = client.feed(reader.ack(STANDARD_ACK, 1), answer=True)
    bench.tick()
    assert bench.gate.awaited == bench.broker.log.position, "and the answer to a later one covers it"
    assert client.answers(command_id) == []
    bench.sync()
    bench.tick()
    assert len(client.answers(command_id)) == 1
