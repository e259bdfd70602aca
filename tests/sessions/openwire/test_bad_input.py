"""Everything a peer can do wrong gets the error that tells it so, and closes no more than it must.

Nine are promised by name, and each has a test that says so: an unknown command, a truncated frame, an oversized frame,
wrong types, an unknown destination option, an acknowledgement for a message never dispatched, a second connection with
the same client id, unsubscribing an active subscription, POISON inside a transaction. What Classic does in each case is
compared by the programs `bad-input`, `destinations` and `durable-subscribers` of `make interop`.
"""

# BROKER-4

from dataclasses import replace
from struct import pack

import pytest

from delosmq.wire.openwire.codec import encode_command
from delosmq.wire.openwire.commands import (
    POISON_ACK,
    STANDARD_ACK,
    BrokerInfo,
    ConnectionError,
    ConsumerInfo,
    ControlCommand,
    DestinationInfo,
    MessageAck,
    MessageCommand,
    MessageDispatch,
    ProducerInfo,
    RemoveInfo,
    RemoveSubscriptionInfo,
    Response,
)
from delosmq.wire.openwire.structures import (
    CONNECTION_ID,
    CONNECTION_INFO,
    TEMP_QUEUE,
    Command,
    ConnectionId,
    ConsumerId,
    Destination,
    LocalTransactionId,
    MessageId,
    ProducerId,
    SessionId,
)
from tests.sessions.openwire.support import ACCEPTOR, Client, OpenWireBench, code_of, queue, throwable, topic

A = queue("a")
FATAL_NAMES = ["negative size", "unknown type", "truncated", "left over", "nested as frame", "message without id"]


def frame(code: int, body: bytes) -> bytes:
    return pack(">iBi?", 6 + len(body), code, 1, True) + body


def fatal(name: str) -> bytes:
    return {
        "negative size": pack(">i", -5),
        "unknown type": frame(77, b""),
        "truncated": frame(22, b"\1"),
        "left over": frame(10, b"abc"),
        "nested as frame": frame(100, b"\1\0\1a"),
        "message without id": frame(28, bytes(120)),
    }[name]


@pytest.mark.parametrize("name", FATAL_NAMES)
def test_what_is_no_openwire_ends_that_connection_alone(name: str) -> None:
    """Unknown command ("unknown type"); truncated frame ("truncated", and with bytes left over)."""
    bench = OpenWireBench()
    other = bench.connect()
    client = bench.connect()
    client.send(fatal(name))
    error = client.error()
    assert error.class_name == "java.io.IOException"
    assert (error.message or "").startswith("DMQ52")
    assert client.host.finished
    other.publish(A, "fine")


def test_a_frame_over_the_limit_ends_the_connection_before_it_is_there() -> None:
    """Oversized frame."""
    bench = OpenWireBench()
    client = bench.connect()
    client.send(pack(">i", bench.acceptor.open_wire_max_frame_bytes + 1))
    assert code_of(client.error()) == "IOException DMQ5202"
    assert client.host.finished


def test_a_field_of_the_wrong_type_ends_the_connection() -> None:
    """Wrong types: a field that holds what does not belong there."""
    bench = OpenWireBench()
    other = bench.connect()
    client = bench.connect()
    named = encode_command(client.remove_info(ConnectionId("a")), client.form)
    kind, wrong = bytes([CONNECTION_ID]), bytes([CONNECTION_INFO])
    assert named.count(kind) == 1
    client.send(named.replace(kind, wrong))
    assert code_of(client.error()) == "IOException DMQ5208"
    assert client.host.finished
    other.publish(A, "fine")


def test_a_removal_of_what_is_never_removed_is_refused_alone() -> None:
    """Wrong types: an id, but not of anything that has an end of its own."""
    client = OpenWireBench().connect()
    assert code_of(client.refused(client.remove_info(LocalTransactionId()))) == "IOException DMQ5296"
    assert not client.host.finished


def test_what_only_a_broker_sends_is_refused() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    for command in (MessageDispatch(), BrokerInfo(), ControlCommand()):
        assert code_of(client.refused(command)) == "JMSException DMQ5233"
    client.publish(A, "fine")


def test_a_refused_command_without_an_answer_is_told_as_the_connection_s_error() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    client.tell(BrokerInfo())
    (error,) = client.take()
    assert isinstance(error, ConnectionError)
    assert not client.host.finished


@pytest.mark.parametrize(
    "command",
    [ConsumerInfo(), ProducerInfo(), DestinationInfo(), MessageAck(), RemoveInfo()],
    ids=lambda command: type(command).__name__,
)
def test_a_field_that_must_be_there(command: Command) -> None:
    bench = OpenWireBench()
    client = bench.connect()
    assert code_of(client.refused(command)) == "JMSException DMQ5234"
    client.publish(A, "fine")


def test_a_message_needs_a_destination() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    command = MessageCommand()
    command.message_id = MessageId(ProducerId("ID:c", 1, 1), 1)
    assert code_of(client.refused(command)) == "JMSException DMQ5234"


@pytest.mark.parametrize("name", ["", ",", " , ", "n" * 1_025, "::q", "a::", "a," + "n" * 1_025, "?consumer.x=1"])
def test_names_that_can_not_be(name: str) -> None:
    bench = OpenWireBench()
    client = bench.connect()
    destination = queue(name)
    infos: list[Command] = [client.text(destination, "x"), client.consumer_info(destination)]
    infos.append(client.producer_info(destination))
    for info in infos:
        assert code_of(client.refused(info)) == "InvalidDestinationException DMQ5240"
    assert bench.broker.queues == {}


def test_a_composite_name_of_very_many_parts() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    name = ",".join(map(str, range(101)))
    assert code_of(client.refused(client.text(queue(name), "x"))) == "InvalidDestinationException DMQ5240"


def test_an_acknowledgement_for_what_was_never_dispatched() -> None:
    """An acknowledgement for a message never dispatched; what was is still acknowledged after it."""
    bench = OpenWireBench()
    client = bench.connect()
    client.publish(A, "0 1")
    reader = client.consume(A, 1)
    reader.take()
    ack = reader.ack(STANDARD_ACK, MessageId(ProducerId("ID:x", 1, 1), 1, 4_711))
    assert code_of(client.refused(ack)) == "JMSException DMQ5260"
    client.tell(ack)
    (error,) = client.take()
    assert isinstance(error, ConnectionError)
    reader.done(0)
    assert reader.bodies() == "1"


def test_poison_inside_a_transaction() -> None:
    """POISON inside a transaction; the message stays with its consumer."""
    bench = OpenWireBench()
    client = bench.connect()
    client.publish(A, "0")
    reader = client.consume(A)
    reader.take()
    transaction = client.begin()
    wrong = reader.ack(POISON_ACK, 0, first=0, transaction=transaction)
    assert code_of(client.refused(wrong)) == "JMSException DMQ5262"
    reader.done(0)


def test_a_second_connection_with_the_same_client_id() -> None:
    """A second connection with the same client id; the first one goes on."""
    bench = OpenWireBench()
    first = bench.connect(client_id="me")
    second = bench.negotiate()
    assert code_of(throwable(second.log_in("ID:2", client_id="me"))) == "InvalidClientIDException DMQ5235"
    assert not first.host.finished
    first.publish(A, "fine")


def unsubscribe(client: Client, name: str, client_id: str) -> RemoveSubscriptionInfo:
    info = RemoveSubscriptionInfo()
    info.subscription_name = name
    info.client_id = client_id
    return info


def test_unsubscribing_an_active_subscription_and_one_that_is_not() -> None:
    """Unsubscribing an active subscription; it goes on."""
    bench = OpenWireBench()
    client = bench.connect(client_id="me")
    reader = client.durable("s", topic("t"))
    assert code_of(client.refused(unsubscribe(client, "s", "me"))) == "JMSException DMQ5254"
    exception = client.refused(unsubscribe(client, "other", "me"))
    assert code_of(exception) == "InvalidDestinationException DMQ5253"
    client.publish(topic("t"), "x")
    assert reader.bodies() == "x"


@pytest.mark.parametrize("selector", ["a ==", "1", "a = 'x", "((a = 1)"])
def test_selectors_that_are_none(selector: str) -> None:
    bench = OpenWireBench()
    client = bench.connect()
    info = client.consumer_info(A)
    info.selector = selector
    assert code_of(client.refused(info)) == "InvalidSelectorException DMQ5250"
    assert bench.broker.queues == {}


def test_a_destination_option_never_reaches_the_broker_s_names() -> None:
    """Unknown destination option: real clients refuse it, and cut off those they know; here all are cut off."""
    bench = OpenWireBench()
    client = bench.connect()
    client.publish(queue("a?consumer.prefetchSize=5"), "x")
    assert list(bench.broker.queues) == ["a"]
    assert client.consume(queue("a?consumer.unknown=5")).bodies() == "x"


def test_a_temporary_destination_that_does_not_exist() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    gone = Destination("ID:gone:1", TEMP_QUEUE)
    assert code_of(client.refused(client.text(gone, "x"))) == "DestinationDoesNotExistException DMQ5241"
    assert code_of(client.refused(client.consumer_info(gone))) == "DestinationDoesNotExistException DMQ5241"


def test_too_many_consumers_and_producers() -> None:
    bench = OpenWireBench(acceptor=replace(ACCEPTOR, max_subscriptions=3))
    client = bench.connect()
    for _ in range(bench.acceptor.max_subscriptions):
        client.feed(client.producer_info(A))
        client.feed(client.consumer_info(A))
    bench.tick()
    assert client.take() == []
    for info in (client.producer_info(A), client.consumer_info(A)):
        assert code_of(client.refused(info)) == "ResourceAllocationException DMQ5244"
    client.ok(client.remove_info(SessionId(client.name, 1)))
    client.ok(client.session_info())
    client.ok(client.consumer_info(A))


def test_too_many_sessions() -> None:
    bench = OpenWireBench(acceptor=replace(ACCEPTOR, max_subscriptions=2))
    client = bench.connect()
    client.ok(client.session_info(1))
    client.ok(client.session_info(2))
    client.ok(client.session_info(2))
    assert code_of(client.refused(client.session_info(3))) == "ResourceAllocationException DMQ5244"
    client.ok(client.remove_info(SessionId(client.name, 1)))
    client.ok(client.session_info(3))


def test_an_answer_to_nothing_is_passed_over() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    client.tell(Response(99))
    assert client.take() == []
    assert not client.host.finished


@pytest.mark.parametrize("value", [99, 0, -2])
def test_consumers_and_producers_need_a_session_that_is_there(value: int) -> None:
    bench = OpenWireBench()
    client = bench.connect()
    consumer, producer = client.consumer_info(A), client.producer_info(A)
    assert consumer.consumer_id is not None
    assert producer.producer_id is not None
    consumer.consumer_id.session_id = producer.producer_id.session_id = value
    for info in (consumer, producer):
        assert code_of(client.refused(info)) == "JMSException DMQ5257"
    assert bench.broker.queues == {}


def test_the_clients_own_session_needs_no_opening() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    info = client.consumer_info(A)
    assert info.consumer_id is not None
    info.consumer_id.session_id = -1
    client.ok(info)
    client.ok(client.remove_info(SessionId(client.name, -1)))
    assert bench.queue("a").holders == []


def test_a_session_of_another_connection_is_none() -> None:
    bench = OpenWireBench()
    other = bench.connect()
    other.ok(other.session_info())
    client = bench.connect()
    info = client.consumer_info(A)
    assert info.consumer_id is not None
    info.consumer_id.connection_id = other.name
    assert code_of(client.refused(info)) == "JMSException DMQ5257"


def test_what_belonged_to_a_session_that_is_closed_can_not_be_added() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    client.consume(A)
    client.ok(client.remove_info(SessionId(client.name, 1)))
    assert code_of(client.refused(client.consumer_info(A))) == "JMSException DMQ5257"


@pytest.mark.parametrize("of", ["nobody", "own"])
def test_removing_what_is_not_there(of: str) -> None:
    bench = OpenWireBench()
    client = bench.connect()
    name = "ID:nobody" if of == "nobody" else client.name
    for gone in (ConsumerId(name, 1, 99), ProducerId(name, 1, 99), SessionId(name, 99)):
        assert code_of(client.refused(client.remove_info(gone))) == "JMSException DMQ5258"
    client.publish(A, "fine")


def test_a_second_wrong_command_is_refused_as_the_first() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    for _ in range(3):
        assert code_of(client.refused(client.text(queue(""), "x"))) == "InvalidDestinationException DMQ5240"


def test_commands_behind_a_fatal_one_are_not_carried_out() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    client.send(fatal("unknown type") + encode_command(client.text(A, "x"), client.form))
    assert client.host.finished
    assert bench.broker.queues == {}
