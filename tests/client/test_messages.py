"""What is sent comes as it was, with the types of JMS."""

from typing import Any

import pytest

from delosmq.client import (
    Byte,
    BytesMessage,
    Char,
    ClientConnection,
    ClientOptionError,
    Float,
    Int,
    JmsMessage,
    Long,
    MapMessage,
    MessageFormatError,
    ObjectMessage,
    Short,
    StreamMessage,
    TextMessage,
    connect,
)
from delosmq.client.messages import Sendable, command_of, message_of, received
from delosmq.wire.openwire.commands import MAP_MESSAGE, TEXT_MESSAGE, MessageCommand
from tests.patience import PATIENCE_S

BODIES: dict[str, tuple[Sendable, type[JmsMessage], Any]] = {
    "text": ("Grüße \N{PILE OF POO} \0", TextMessage, "Grüße \N{PILE OF POO} \0"),
    "no text": ("", TextMessage, ""),
    "bytes": (b"\0\xff", BytesMessage, b"\0\xff"),
    "no bytes": (b"", BytesMessage, b""),
    "map": ({"a": 1, "b": [True, None, {"c": b"x"}], "d": 1 << 40}, MapMessage, None),
    "no map": ({}, MapMessage, {}),
    "stream": ([1, 2.5, "x", b"y", None, False], StreamMessage, None),
    "nothing": (None, JmsMessage, None),
    "object": (ObjectMessage(b"\xac\xed\0\5"), ObjectMessage, b"\xac\xed\0\5"),
}


def there_and_back(message: JmsMessage, *, compresses: bool = False) -> JmsMessage:
    return received(command_of(message, compresses=compresses), None)


@pytest.mark.parametrize("compresses", [False, True])
@pytest.mark.parametrize("kind", BODIES)
def test_a_body_comes_as_it_was(kind: str, compresses: bool) -> None:
    body, expected_class, expected = BODIES[kind]
    came = there_and_back(message_of(body), compresses=compresses)
    assert type(came) is expected_class
    assert came.body == (body if expected is None and body is not None and kind != "nothing" else expected)


@pytest.mark.parametrize(
    "value", [Byte(-128), Short(300), Int(7), Long(7), Float(0.5), Char("x"), True, 5, 1 << 40, 2.5, "text", None]
)
def test_a_property_keeps_its_type(value: Any) -> None:
    came = there_and_back(TextMessage("", properties={"p": value})).properties["p"]
    assert came == value
    expected = int if type(value) is Int or value == 1 << 40 else type(value)
    assert type(came) is expected
    again = there_and_back(TextMessage("", properties={"p": came})).properties["p"]
    assert (type(again), again) == (type(came), came)


def test_a_property_may_be_changed_and_read_as_an_ordinary_number() -> None:
    assert Byte(3) + 1 == 4
    assert f"{Float(0.5)} {Char('x')}" == "0.5 x"


@pytest.mark.parametrize(
    "properties, said",
    [
        ({"p": 1 << 63}, "DMQ9060: 'p' can't be sent: 9223372036854775808 has more than 64 bits."),
        ({"p": Byte(128)}, "DMQ9060: 'p' can't be sent: 128 has more than 8 bits."),
        ({"p": b"x"}, "DMQ9060: 'p' can't be sent: JMS has no type for a bytes."),
        ({"p": object()}, "DMQ9060: 'p' can't be sent: JMS has no type for a object."),
        ({"p": Char("xy")}, "DMQ9060: 'p' can't be sent: a Char is one character of 16 bits."),
        ({"": 1}, "DMQ9060: '' can't be sent: a name is a string of at least one character."),
    ],
)
def test_a_property_without_a_type_is_refused(properties: dict[str, Any], said: str) -> None:
    with pytest.raises(MessageFormatError) as caught:
        command_of(TextMessage("x", properties=properties), compresses=False)
    assert str(caught.value).startswith(said)


def test_a_body_without_a_kind_is_refused() -> None:
    with pytest.raises(MessageFormatError, match="DMQ9060: 'body' can't be sent: JMS has no message for a int"):
        message_of(5)  # type: ignore[arg-type]


def test_only_a_text_message_has_text() -> None:
    with pytest.raises(MessageFormatError, match="DMQ9061: a MapMessage has no text"):
        _ = MapMessage({"a": 1}).text


@pytest.mark.parametrize("code", [TEXT_MESSAGE, MAP_MESSAGE])
def test_what_can_t_be_read_is_told_when_it_is_read(code: int) -> None:
    command = MessageCommand(code)
    command.content = b"\0\0\0\1\xff\xff\xff"
    message = received(command, None)
    with pytest.raises(MessageFormatError, match="DMQ9062"):
        _ = message.body


def test_headers_come_as_they_were(connection: ClientConnection, name: str) -> None:
    sent = TextMessage("x", correlation_id="c", reply_to="topic://answers", type="t", group_id="g", group_sequence=3)
    with connection.create_session() as session:
        message_id = session.create_producer(name).send(
            sent, persistent=False, priority=7, time_to_live_ms=60_000, properties={"p": 1}
        )
        came = session.create_consumer(name).receive(10)
    assert came is not None
    assert (came.message_id, sent.message_id) == (message_id, message_id)
    assert str(came.reply_to) == "topic://answers"
    assert str(came.destination) == f"queue://{name}"
    assert (came.correlation_id, came.type, came.group_id, came.group_sequence) == ("c", "t", "g", 3)
    assert (came.persistent, came.priority, came.properties["p"]) == (False, 7, 1)
    assert came.expiration_ms == came.timestamp_ms + 60_000
    assert (came.delivery_count, came.redelivered) == (1, False)


def test_the_properties_of_a_group_are_its_headers_as_in_jms(connection: ClientConnection, name: str) -> None:
    connection.send(name, "x", properties={"JMSXGroupID": "g", "JMSXGroupSeq": 3, "p": 1})
    connection.send(name, TextMessage("y", group_id="h", properties={"JMSXGroupID": None}))
    came, other = connection.messages(name, timeout_s=0.5)
    assert (came.group_id, came.group_sequence, came.properties) == ("g", 3, {"p": 1})
    assert (other.group_id, other.properties) == ("h", {})
    for wrong in ({"JMSXGroupID": 5}, {"JMSXGroupSeq": "3"}):
        with pytest.raises(ClientOptionError, match="DMQ9056: JMSXGroup"):
            connection.send(name, "x", properties=wrong)


def test_headers_that_are_given_as_properties_are_headers_as_in_jms(connection: ClientConnection, name: str) -> None:
    headers = {"JMSType": "t", "JMSCorrelationID": "c", "JMSReplyTo": "topic://answers"}
    connection.send(name, "x", properties={**headers, "p": 1})
    connection.send(name, TextMessage("y", type="t", properties={"JMSType": None}))
    came, other = connection.messages(name, timeout_s=0.5)
    assert (came.type, came.correlation_id, str(came.reply_to)) == ("t", "c", "topic://answers")
    assert (came.properties, other.type, other.properties) == ({"p": 1}, "t", {})
    for wrong in ({"JMSType": 5}, {"JMSCorrelationID": 5}, {"JMSReplyTo": 5}):
        with pytest.raises(ClientOptionError, match="DMQ9056"):
            connection.send(name, "x", properties=wrong)


def test_a_request_is_answered_whatever_its_properties_say(connection: ClientConnection, name: str) -> None:
    def answer(request: JmsMessage) -> None:
        connection.reply(request, TextMessage(request.correlation_id or "", properties={"JMSCorrelationID": "other"}))

    with connection.create_session() as session:
        session.create_consumer(name).set_listener(answer)
        asked = TextMessage("x", properties={"JMSCorrelationID": "c", "JMSReplyTo": "nowhere"})
        assert connection.request(name, asked, timeout_s=PATIENCE_S).text == "c"


@pytest.mark.parametrize("property_name", ["DELAY", "PERIOD", "REPEAT"])
@pytest.mark.parametrize("value", ["abc", "", "1.5", 1.5, True, -2, 1 << 63])
def test_a_schedule_that_is_no_number_is_refused(connection: ClientConnection, property_name: str, value: Any) -> None:
    with pytest.raises(ClientOptionError, match=f"DMQ9056: AMQ_SCHEDULED_{property_name} is"):
        connection.send("any", "x", properties={f"AMQ_SCHEDULED_{property_name}": value})


def test_a_schedule_in_text_is_its_number() -> None:
    properties = {"AMQ_SCHEDULED_DELAY": "60000", "AMQ_SCHEDULED_REPEAT": "2", "AMQ_SCHEDULED_CRON": None}
    sent = received(command_of(TextMessage("x", properties=properties), compresses=False), None)
    assert (sent.properties["AMQ_SCHEDULED_DELAY"], sent.properties["AMQ_SCHEDULED_REPEAT"]) == (60_000, 2)
    assert type(sent.properties["AMQ_SCHEDULED_DELAY"]) is Long


def test_a_compressed_message_crosses_a_broker(broker: Any, name: str) -> None:
    url = f"{broker.openwire_url}?jms.useCompression=true"
    with connect(url, user=broker.user, password=broker.password) as connection:
        connection.send(name, "tea " * 1000)
        assert next(connection.messages(name)).text == "tea " * 1000


@pytest.mark.parametrize("value", [Float(1e300), Float(-3.5e38)])
def test_a_float_that_is_too_large_for_its_mark_is_refused(
    connection: ClientConnection, name: str, value: Float
) -> None:
    with pytest.raises(MessageFormatError, match=r"DMQ9060: 'weight' can't be sent: .* more than a Float of 32 bits"):
        connection.send(name, "x", properties={"weight": value})
    connection.send(name, {"weight": Float("inf")})
