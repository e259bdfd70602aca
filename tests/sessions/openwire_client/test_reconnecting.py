"""What the client's machine says when its connection is made again, and what it takes for a duplicate then."""

# ACK-1, ACK-5

import random

import pytest

from delosmq.sessions.client_errors import (
    ConnectionLostError,
    ResourceAllocationError,
    TransactionInDoubtError,
    TransactionRolledBackError,
)
from delosmq.sessions.openwire.client.connection import INTERRUPTED, OPEN
from delosmq.sessions.openwire.client.duplicates import SeenMessages
from delosmq.sessions.openwire.client.options import AckMode, ClientOptions, PrefetchPolicy, WireFormatOptions
from delosmq.wire.openwire.commands import (
    BEGIN,
    COMMIT_ONE_PHASE,
    TEXT_MESSAGE,
    ConnectionControl,
    ConnectionInfo,
    ConsumerInfo,
    DestinationInfo,
    MessageCommand,
    MessagePull,
    ProducerInfo,
    SessionInfo,
    TransactionInfo,
)
from delosmq.wire.openwire.negotiation import WireFormatInfo, encode_wire_format_info
from delosmq.wire.openwire.structures import MessageId, ProducerId, Structure
from tests.sessions.openwire_client.test_machine import QUEUE, Wire, consume

QUIET = ClientOptions(watch_topic_advisories=False)


def resumed(wire: Wire) -> list[Structure]:
    """What is said to the next broker, without the WireFormatInfo."""
    wire.machine.resume()
    wire.renew()
    wire.machine.take_output()
    wire.machine.receive(encode_wire_format_info(WireFormatInfo()))
    return wire.take()


def cut(wire: Wire) -> None:
    wire.machine.interrupt()
    assert wire.machine.state == INTERRUPTED


def message(body: bytes) -> MessageCommand:
    made = MessageCommand(TEXT_MESSAGE)
    made.content = body
    return made


def test_all_that_is_open_is_told_again_in_order() -> None:
    wire = Wire(ClientOptions(), fault_tolerant=True)
    wire.machine.temporaries.create(topic=False)
    session, consumer = wire.consumer(AckMode.TRANSACTED)
    producer, _ = session.add_producer(QUEUE)
    gone, _ = session.add_producer(QUEUE)
    session.close_producer(gone)
    producer.send(message(b"one"), QUEUE)
    wire.take()
    cut(wire)
    producer.send(message(b"two"), QUEUE)
    said = resumed(wire)
    assert [type(one) for one in said] == [
        ConnectionControl,
        ConnectionInfo,
        DestinationInfo,
        SessionInfo,
        ConsumerInfo,
        SessionInfo,
        ProducerInfo,
        ConsumerInfo,
        TransactionInfo,
        MessageCommand,
        MessageCommand,
    ]
    login = said[1]
    assert isinstance(login, ConnectionInfo)
    assert (login.fault_tolerant, login.failover_reconnect) == (True, True)
    assert wire.machine.state == OPEN
    assert wire.told.ends == []
    again = said[7]
    assert isinstance(again, ConsumerInfo)
    assert again.prefetch_size == consumer.info.prefetch_size


def test_what_waits_for_an_answer_is_asked_again_under_its_number() -> None:
    wire = Wire(QUIET, fault_tolerant=True)
    producer, _ = wire.machine.create_session(AckMode.AUTO).add_producer(QUEUE)
    wire.take()
    wire.answers = False
    sent = producer.send(message(b"x"), QUEUE)
    unsubscribed = wire.machine.unsubscribe("s")
    (first, _) = wire.take()
    cut(wire)
    made, request = wire.machine.create_session(AckMode.AUTO).add_producer(QUEUE)
    wire.answers = True
    said = resumed(wire)
    assert isinstance(first, MessageCommand)
    assert [one.command_id for one in said if isinstance(one, MessageCommand)] == [first.command_id]
    assert sent is not None
    assert [one.error for one in (sent, unsubscribed, request)] == [None, None, None]
    assert sent.done
    assert unsubscribed.done
    assert request.done
    assert not made.closed


def test_messages_that_wait_for_no_answer_and_pulls_are_said_later() -> None:
    options = ClientOptions(watch_topic_advisories=False, prefetch_policy=PrefetchPolicy(queue_prefetch=0))
    wire = Wire(options, fault_tolerant=True)
    session, consumer = wire.consumer()
    producer, _ = session.add_producer(QUEUE)
    wire.take()
    consumer.pull(5)
    wire.take()
    cut(wire)
    assert consumer.pull(7)
    assert producer.send(message(b"x"), QUEUE, persistent=False) is None
    said = resumed(wire)
    assert [type(one) for one in said][-2:] == [MessagePull, MessageCommand]


def test_what_the_next_broker_refuses_of_what_was_open_is_told() -> None:
    wire = Wire(QUIET, fault_tolerant=True)
    wire.consumer()
    cut(wire)
    (again,) = [one for one in resumed(wire) if isinstance(one, ConsumerInfo)]
    wire.refuse([again], "java.lang.SecurityException")
    assert [error.code for error in wire.told.troubles] == ["DMQ9020"]
    assert "what was open" in str(wire.told.troubles[0])


def test_a_broker_for_which_a_message_is_too_large_is_left_for_another_one() -> None:
    wire = Wire(QUIET, fault_tolerant=True)
    producer, _ = wire.machine.create_session(AckMode.AUTO).add_producer(QUEUE)
    wire.take()
    wire.answers = False
    sent = producer.send(message(bytes(5_000)), QUEUE)
    wire.take()
    cut(wire)
    producer.send(message(b"x"), QUEUE, persistent=False)
    wire.answers = True
    wire.machine.resume()
    wire.renew()
    wire.machine.take_output()
    theirs = WireFormatInfo()
    theirs.max_frame_bytes = 3_000
    wire.machine.receive(encode_wire_format_info(theirs))
    wire.take()
    assert wire.machine.state == INTERRUPTED
    assert "is larger than the 3000 that the broker takes" in str(wire.told.interruptions[-1])
    assert [one.content for one in resumed(wire) if isinstance(one, MessageCommand)] == [bytes(5_000), b"x"]
    assert sent is not None
    assert (sent.done, sent.error) == (True, None)


def test_a_producer_window_is_empty_when_the_connection_is_made_again() -> None:  # ACK-7
    """The broker that is gone answers nothing any more."""
    wire = Wire(ClientOptions(watch_topic_advisories=False, producer_window_size_bytes=1), fault_tolerant=True)
    producer, _ = wire.machine.create_session(AckMode.AUTO).add_producer(QUEUE)
    producer.waiter = "me"
    producer.send(message(b"x"), QUEUE, persistent=False)
    wire.take()
    assert not producer.has_room()
    cut(wire)
    assert "me" in wire.told.waiters
    resumed(wire)
    assert producer.has_room()


def test_what_a_producer_sends_meanwhile_fills_its_window() -> None:
    wire = Wire(ClientOptions(watch_topic_advisories=False, producer_window_size_bytes=1), fault_tolerant=True)
    producer, _ = wire.machine.create_session(AckMode.AUTO).add_producer(QUEUE)
    cut(wire)
    producer.send(message(b"x"), QUEUE, persistent=False)
    resumed(wire)
    assert not producer.has_room()


def test_a_commit_on_its_way_is_in_doubt_and_a_rollback_has_happened() -> None:
    wire = Wire(QUIET, fault_tolerant=True)
    session, consumer = wire.consumer(AckMode.TRANSACTED)
    for _ in range(2):
        wire.dispatch(consumer, 1)
    consume(consumer)
    wire.take()
    wire.answers = False
    commit = session.commit()
    wire.take()
    cut(wire)
    assert isinstance(commit.error, TransactionInDoubtError)
    wire.answers = True
    resumed(wire)
    wire.dispatch(consumer)
    consume(consumer)
    wire.answers = False
    wire.take()
    rollback = session.rollback()
    wire.take()
    cut(wire)
    assert rollback.done
    assert rollback.error is None
    # Nothing is delivered by the client itself: the broker sends it.
    wire.pass_ms(5_000)
    assert consumer.reserve() is None


def test_a_transaction_with_received_messages_can_t_be_committed_any_more() -> None:
    wire = Wire(QUIET, fault_tolerant=True)
    session, consumer = wire.consumer(AckMode.TRANSACTED)
    wire.dispatch(consumer)
    consume(consumer)
    wire.take()
    cut(wire)
    resumed(wire)
    request = session.commit()
    (said,) = wire.take()
    assert isinstance(said, TransactionInfo)
    assert said.type == 4
    assert isinstance(request.error, TransactionRolledBackError)
    assert session.transaction.transaction_id is None


def test_a_commit_meanwhile_is_told_with_all_of_its_transaction() -> None:
    wire = Wire(QUIET, fault_tolerant=True)
    session = wire.machine.create_session(AckMode.TRANSACTED)
    producer, _ = session.add_producer(QUEUE)
    producer.send(message(b"one"), QUEUE)
    wire.take()
    cut(wire)
    producer.send(message(b"two"), QUEUE)
    commit = session.commit()
    wire.machine.resume()
    wire.machine.interrupt()  # nothing of it was said to the second broker either
    assert not commit.done
    said = resumed(wire)
    assert commit.done
    assert commit.error is None
    assert [one.type for one in said if isinstance(one, TransactionInfo)] == [BEGIN, COMMIT_ONE_PHASE]
    assert [type(one) for one in said][-4:] == [TransactionInfo, MessageCommand, MessageCommand, TransactionInfo]


def test_a_rollback_meanwhile_needs_no_broker() -> None:
    wire = Wire(QUIET, fault_tolerant=True)
    session, consumer = wire.consumer(AckMode.TRANSACTED)
    producer, _ = session.add_producer(QUEUE)
    producer.send(message(b"one"), QUEUE)
    wire.take()
    cut(wire)
    rollback = session.rollback()
    wire.dispatch(consumer)
    assert [one for one in resumed(wire) if isinstance(one, TransactionInfo | MessageCommand)] == []
    assert rollback.done
    assert rollback.error is None
    wire.dispatch(consumer)
    consume(consumer)
    wire.take()
    cut(wire)
    commit = session.commit()
    assert [one for one in resumed(wire) if isinstance(one, TransactionInfo)] == []
    assert isinstance(commit.error, TransactionRolledBackError)


def test_one_that_was_acknowledged_alone_is_known_after_a_break() -> None:
    wire = Wire(QUIET, fault_tolerant=True)
    _, consumer = wire.consumer(AckMode.INDIVIDUAL)
    wire.dispatch(consumer)
    delivery = consumer.reserve()
    assert delivery is not None
    consumer.consumed(delivery)
    consumer.acknowledge_one(delivery)
    cut(wire)
    resumed(wire)
    wire.dispatch(consumer, number=1, redelivered=1)
    assert wire.acks() == ["POISON 1-1"]


@pytest.mark.parametrize("mode", AckMode)
def test_what_the_application_was_about_to_get_comes_again_or_is_known(mode: AckMode) -> None:
    """In the blocking client there is a moment between the message's way out of the machine and the news of it."""
    wire = Wire(QUIET, fault_tolerant=True)
    session, consumer = wire.consumer(mode)
    wire.dispatch(consumer)
    delivery = consumer.reserve()
    assert delivery is not None
    cut(wire)
    resumed(wire)
    consumer.consumed(delivery)
    assert wire.acks() == []
    wire.dispatch(consumer, number=1, redelivered=1)
    comes_again = mode not in (AckMode.AUTO, AckMode.DUPS_OK)
    assert wire.acks() == ([] if comes_again else ["POISON 1-1"])
    assert (consumer.reserve() is not None) == comes_again
    if mode == AckMode.TRANSACTED:
        commit = session.commit()
        wire.take()
        assert isinstance(commit.error, TransactionRolledBackError)


def test_what_the_application_went_away_from_comes_again() -> None:
    wire = Wire(QUIET, fault_tolerant=True)
    _, consumer = wire.consumer()
    wire.dispatch(consumer)
    delivery = consumer.reserve()
    assert delivery is not None
    cut(wire)
    consumer.put_back(delivery)
    resumed(wire)
    assert consumer.reserve() is None
    wire.dispatch(consumer, number=1, redelivered=1)
    assert consumer.reserve() is not None
    assert wire.acks() == []


def test_a_redelivery_that_was_waiting_is_the_broker_s() -> None:
    for options in (QUIET, ClientOptions(watch_topic_advisories=False, non_blocking_redelivery=True)):
        wire = Wire(options, fault_tolerant=True)
        _, consumer = wire.consumer()
        wire.dispatch(consumer)
        delivery = consumer.reserve()
        assert delivery is not None
        consumer.before(delivery)
        consumer.failed(delivery)
        cut(wire)
        resumed(wire)
        wire.pass_ms(5_000)
        assert consumer.reserve() is None
        wire.dispatch(consumer, number=1, redelivered=1)
        assert consumer.reserve() is not None


def test_a_message_that_was_acknowledged_is_not_delivered_again() -> None:
    """Its acknowledgement was cut off; the Java client makes a dead letter of it as well."""
    wire = Wire(QUIET, fault_tolerant=True)
    _, consumer = wire.consumer()
    wire.dispatch(consumer, 2)
    consume(consumer)
    assert wire.acks() == ["STANDARD 1-1"]
    cut(wire)
    resumed(wire)
    wire.dispatch(consumer, number=1, redelivered=1)
    wire.dispatch(consumer, number=2, redelivered=1)
    assert wire.acks() == ["POISON 1-1"]
    delivery = consumer.reserve()
    assert delivery is not None
    assert delivery.message_id.producer_sequence_id == 2


def test_without_failover_nothing_is_taken_for_a_duplicate() -> None:
    wire = Wire(QUIET)
    _, consumer = wire.consumer()
    for _ in range(2):
        wire.dispatch(consumer, number=1)
        consume(consumer)
    assert wire.acks() == ["STANDARD 1-1", "STANDARD 1-1"]


def test_a_broken_connection_without_failover_is_over() -> None:
    wire = Wire(QUIET)
    wire.machine.interrupt()
    assert isinstance(wire.told.ends[0], ConnectionLostError)


def test_a_login_that_is_refused_the_second_time_is_tried_elsewhere_unless_the_password_is_wrong() -> None:
    for class_name, ends in (("javax.jms.JMSException", False), ("java.lang.SecurityException", True)):
        wire = Wire(QUIET, fault_tolerant=True)
        cut(wire)
        wire.answers = False
        said = resumed(wire)
        wire.refuse(said, class_name)
        assert bool(wire.told.ends) == ends
        assert (wire.machine.state == INTERRUPTED) != ends


def test_it_can_be_closed_while_it_is_broken() -> None:
    wire = Wire(QUIET, fault_tolerant=True)
    session, _ = wire.consumer()
    cut(wire)
    wire.machine.close()
    assert wire.told.ends == [None]
    assert session.closed


# --- what was seen


def identified(number: int, producer: str = "p") -> MessageId:
    return MessageId(ProducerId(producer, 1, 1), number)


def test_what_was_seen_is_known_until_it_goes_back() -> None:
    seen = SeenMessages(8, 2)
    assert [seen.add("q", identified(number)) for number in (1, 3, 2, 3, 1)] == [False, False, False, True, True]
    seen.forget("q", identified(3))
    assert [seen.add("q", identified(3)), seen.add("q", identified(3))] == [False, True]
    assert not seen.add("other", identified(3))


def test_only_the_latest_are_remembered_and_what_is_older_counts_as_seen() -> None:
    seen = SeenMessages(8, 2)
    seen.add("q", identified(100))
    assert [seen.add("q", identified(number)) for number in (93, 92)] == [False, True]
    seen.add("q", identified(1000))
    assert seen.add("q", identified(100))
    # Of three producers the one that was heard of least lately is forgotten.
    for producer in ("a", "b", "a", "c"):
        seen.add("q", identified(1, producer))
    assert [seen.add("q", identified(1, producer)) for producer in ("a", "c", "b")] == [True, True, False]


@pytest.mark.parametrize("mode", [AckMode.CLIENT, AckMode.TRANSACTED])
def test_what_a_closed_session_gives_back_is_no_duplicate(mode: AckMode) -> None:
    wire = Wire(QUIET, fault_tolerant=True)
    session, consumer = wire.consumer(mode)
    wire.dispatch(consumer, number=1)
    consume(consumer)
    wire.machine.close_session(session)
    wire.take()
    _, other = wire.consumer()
    wire.dispatch(other, number=1)
    assert other.waiting_count == 1


def test_the_window_is_that_of_a_set() -> None:
    chance = random.Random(3)
    depth = 16
    seen, model, newest = SeenMessages(depth, 1), set[int](), 0
    for _ in range(2000):
        number = max(1, newest + chance.randrange(-20, 6))
        if chance.random() < 0.2:
            seen.forget("q", identified(number))
            if newest - number < depth:
                model.discard(number)
            continue
        expected = number in model or newest - number >= depth
        assert seen.add("q", identified(number)) == expected
        newest = max(newest, number)
        model.add(number)


@pytest.mark.parametrize("mode", [AckMode.AUTO, AckMode.TRANSACTED])
@pytest.mark.parametrize("persistent", [True, False])
def test_a_message_that_is_too_large_is_refused_meanwhile_as_well_and_is_not_told_again(
    mode: AckMode, persistent: bool
) -> None:
    options = ClientOptions(watch_topic_advisories=False, wire_format=WireFormatOptions(max_frame_size_bytes=2_000))
    wire = Wire(options, fault_tolerant=True)
    session = wire.machine.create_session(mode)
    producer, _ = session.add_producer(QUEUE)
    wire.take()
    for broken in (False, True):
        if broken:
            cut(wire)
        with pytest.raises(ResourceAllocationError, match="DMQ9008"):
            producer.send(message(b"x" * 3_000), QUEUE, persistent=persistent)
    producer.send(message(b"small"), QUEUE)
    said = resumed(wire)
    assert [one.content for one in said if isinstance(one, MessageCommand)] == [b"small"]
    assert wire.machine.state == OPEN
