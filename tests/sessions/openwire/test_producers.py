"""Sending: answers, windows, composite destinations, what the broker heeds of a message, resends after a failover."""

import pytest

from delosmq.model.properties import INT_KIND, LONG_KIND, STRING_KIND, TypedValue
from delosmq.wire.openwire.commands import (
    MESSAGE_COST_BYTES,
    ConnectionControl,
    ConnectionError,
    ConnectionInfo,
    MessageCommand,
    ProducerAck,
    Response,
)
from delosmq.wire.openwire.primitives import encode_map
from delosmq.wire.openwire.structures import QUEUE, TOPIC, ConnectionId, Destination, MessageId, ProducerId
from tests.engine.support import RecordingStore
from tests.sessions.openwire.support import Client, OpenWireBench, code_of, queue, topic
from tests.sessions.support import PASSWORD, USER

A = queue("a")


# -- answers -----------------------------------------------------------------------------------------------------------


def test_the_answer_to_a_persistent_send_waits_for_the_disk() -> None:
    bench = OpenWireBench(hold=True)
    client = bench.connect()
    command_id = client.feed(client.text(A, "x"), answer=True)
    bench.tick()
    assert client.answers(command_id) == []
    bench.sync()
    bench.tick()
    (answer,) = client.answers(command_id)
    assert type(answer) is Response


def test_a_send_without_an_answer_gets_none() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    client.tell(client.text(A, "x"))
    assert client.take() == []
    assert bench.queue("a").message_count == 1


def test_each_send_within_a_window_is_acknowledged_with_its_size() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    producer = client.producer_info(A, window=10_000)
    client.ok(producer)
    command = client.text(A, "x" * 100)
    command.producer_id = producer.producer_id
    command.marshalled_properties = encode_map({"n": TypedValue(INT_KIND, 1)})
    client.tell(command)
    (acknowledgement,) = client.take()
    assert isinstance(acknowledgement, ProducerAck)
    assert acknowledgement.producer_id is not None
    assert producer.producer_id is not None
    assert acknowledgement.producer_id.key() == producer.producer_id.key()
    assert acknowledgement.size == MESSAGE_COST_BYTES + 104 + len(command.marshalled_properties)


def test_a_send_that_waits_for_an_answer_gets_no_acknowledgement_besides() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    producer = client.producer_info(A, window=10_000)
    client.ok(producer)
    command = client.text(A, "x")
    command.producer_id = producer.producer_id
    client.ok(command)
    assert client.take() == []


def test_after_its_end_a_producer_s_window_counts_no_more() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    producer = client.producer_info(A, window=10_000)
    client.ok(producer)
    client.ok(client.remove_info(producer.producer_id))
    command = client.text(A, "x")
    command.producer_id = producer.producer_id
    client.tell(command)
    assert client.take() == []
    assert bench.queue("a").message_count == 1


def test_a_failed_send_without_an_answer_is_told_as_the_connection_s_error() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    client.tell(client.text(queue(""), "x"))
    (error,) = client.take()
    assert isinstance(error, ConnectionError)
    assert error.exception is not None
    assert code_of(error.exception) == "InvalidDestinationException DMQ5240"
    client.publish(A, "fine")


# -- composite destinations --------------------------------------------------------------------------------------------


def routes(client: Client, name: str, code: int = QUEUE) -> dict[str, str]:
    """Sends to a composite destination; what reached which of its parts, and what they say it was sent to."""
    readers = [client.consume(queue("a")), client.consume(queue("b")), client.consume(topic("t"))]
    client.ok(client.text(Destination(name, code), "x"))
    found: dict[str, str] = {}
    for reader in readers:
        for dispatch in reader.take():
            message = dispatch.message
            assert message is not None
            assert message.destination is not None
            assert message.original_destination is not None
            found[message.destination.qualified_name()] = message.original_destination.qualified_name()
    return found


@pytest.mark.parametrize(
    ("name", "code", "parts"),
    [
        ("a,b", QUEUE, ["queue://a", "queue://b"]),
        ("a, b", QUEUE, ["queue://a", "queue://b"]),
        ("a,topic://t", QUEUE, ["queue://a", "topic://t"]),
        ("queue://b,t", TOPIC, ["queue://b", "topic://t"]),
        ("queue://a,queue://b,topic://t", TOPIC, ["queue://a", "queue://b", "topic://t"]),
    ],
)
def test_a_composite_destination_gets_a_copy_for_each_part(name: str, code: int, parts: list[str]) -> None:
    found = routes(OpenWireBench().connect(), name, code)
    assert found == dict.fromkeys(parts, f"{'queue' if code == QUEUE else 'topic'}://{name}")


def test_copies_count_apart() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    client.ok(client.text(queue("a,b"), "x"))
    reader = client.consume(A)
    reader.take()
    reader.done(0)
    assert (bench.queue("a").message_count, bench.queue("b").message_count) == (0, 1)


def test_a_composite_send_is_answered_once() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    assert len(client.ask(client.text(queue("a,b,c"), "x"))) == 1
    producer = client.producer_info(None, window=10_000)
    client.ok(producer)
    command = client.text(queue("a,b"), "x")
    command.producer_id = producer.producer_id
    client.tell(command)
    (acknowledgement,) = client.take()
    assert isinstance(acknowledgement, ProducerAck)


# -- what the broker heeds ---------------------------------------------------------------------------------------------


def sent_with(client: Client, **properties: TypedValue) -> MessageCommand:
    command = client.text(A, "x")
    command.marshalled_properties = encode_map(properties)
    client.ok(command)
    return command


def test_fields_and_properties_arrive_as_they_were_sent() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    reader = client.consume(A)
    command = client.text(A, "x")
    command.correlation_id = "c"
    command.reply_to = queue("answers")
    command.type = "kind"
    command.priority = 7
    command.group_id, command.group_sequence = "g", 3
    command.marshalled_properties = encode_map({"p": TypedValue(STRING_KIND, "v")})
    client.ok(command)
    (dispatch,) = reader.take()
    got = dispatch.message
    assert got is not None
    assert got.reply_to is not None
    assert got.reply_to.qualified_name() == "queue://answers"
    assert (got.correlation_id, got.type, got.priority, got.persistent) == ("c", "kind", 7, True)
    assert (got.group_id, got.group_sequence) == ("g", 3)
    assert got.marshalled_properties == command.marshalled_properties
    assert got.message_id is not None
    assert command.message_id is not None
    assert got.message_id.key() == command.message_id.key()
    assert got.broker_in_time == bench.clock.wall_ms()


def test_an_expired_message_is_not_delivered() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    command = client.text(A, "short")
    command.expiration = bench.clock.wall_ms() + 1_000
    client.ok(command)
    bench.pass_time(2_000)
    assert client.consume(A).bodies() == ""


def test_a_durable_message_may_be_dated_before_1970() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    command = client.text(A, "old")
    command.timestamp = -5
    client.ok(command)
    reader = client.consume(A)
    assert reader.bodies() == "old"
    message = reader.got[0].message
    assert message is not None
    assert message.timestamp == -5


def test_a_delayed_message_comes_later() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    reader = client.consume(A)
    sent_with(client, AMQ_SCHEDULED_DELAY=TypedValue(LONG_KIND, 5_000))
    bench.pass_time(4_999)
    assert reader.bodies() == ""
    bench.pass_time(1)
    assert reader.bodies() == "x"


def test_a_duplicate_id_is_stored_once() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    for _ in range(2):
        sent_with(client, _AMQ_DUPL_ID=TypedValue(STRING_KIND, "once"))
    assert bench.queue("a").message_count == 1


# -- resends after a failover ------------------------------------------------------------------------------------------


def reconnect(bench: OpenWireBench, name: str, how: str = "failover_reconnect") -> Client:
    client = bench.negotiate()
    client.name = name
    info = ConnectionInfo()
    info.connection_id = ConnectionId(name)
    info.client_id = name
    info.user_name, info.password = USER, PASSWORD
    if how == "control":
        control = ConnectionControl()
        control.fault_tolerant = True
        client.tell(control)
    else:
        setattr(info, how, True)
    client.ok(info)
    return client


def same_again(client: Client, body: str, number: int, *, persistent: bool = True) -> None:
    command = client.text(A, body, persistent=persistent)
    command.producer_id = ProducerId("ID:c", 1, 1)
    command.message_id = MessageId(command.producer_id, number)
    client.ok(command)


@pytest.mark.parametrize("how", ["failover_reconnect", "fault_tolerant", "control"])
def test_what_a_failover_sends_again_is_confirmed_and_not_stored_twice(how: str) -> None:
    bench = OpenWireBench()
    first = reconnect(bench, "ID:c", "fault_tolerant")
    same_again(first, "one", 1)
    same_again(first, "two", 2)
    first.drop()
    second = reconnect(bench, "ID:c", how)
    same_again(second, "two", 2)
    same_again(second, "three", 3)
    assert second.consume(A).bodies() == "one two three"


def test_what_a_failover_sends_again_after_a_restart_is_not_stored_twice() -> None:
    store = RecordingStore()
    first = reconnect(OpenWireBench(store=store), "ID:c", "fault_tolerant")
    same_again(first, "one", 1)
    bench = OpenWireBench(store=RecordingStore(store.batches))
    second = reconnect(bench, "ID:c")
    same_again(second, "one", 1)
    same_again(second, "two", 2)
    assert bench.queue("a").message_count == 2


def test_connections_that_never_fail_over_are_not_audited() -> None:
    bench = OpenWireBench()
    client = bench.connect("ID:c")
    same_again(client, "one", 1)
    same_again(client, "one", 1)
    assert bench.queue("a").message_count == 2


def test_each_copy_of_a_composite_send_is_audited_apart() -> None:
    bench = OpenWireBench()
    client = reconnect(bench, "ID:c")
    for _ in range(2):
        command = client.text(queue("a,b"), "x")
        command.producer_id = ProducerId("ID:c", 1, 1)
        command.message_id = MessageId(command.producer_id, 1)
        client.ok(command)
    assert (bench.queue("a").message_count, bench.queue("b").message_count) == (1, 1)


def test_copies_for_two_queues_of_one_address_are_audited_apart() -> None:
    bench = OpenWireBench()
    client = reconnect(bench, "ID:c")
    names = ("Consumer.A.VirtualTopic.T", "Consumer.B.VirtualTopic.T")
    readers = [client.consume(queue(name)) for name in names]
    for _ in range(2):
        command = client.text(queue(",".join(names)), "x")
        command.producer_id = ProducerId("ID:c", 1, 1)
        command.message_id = MessageId(command.producer_id, 1)
        client.ok(command)
    assert [reader.bodies() for reader in readers] == ["x", "x"]


def test_a_composite_destination_has_a_hundred_parts_at_most() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    names = [f"q{number}" for number in range(101)]
    client.ok(client.text(queue(",".join(names[:100])), "x"))
    assert code_of(client.refused(client.text(queue(",".join(names)), "x"))) == "InvalidDestinationException DMQ5240"
    assert len(bench.broker.queues) == 100
