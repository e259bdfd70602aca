"""All kinds of messages and of properties, as they come back from a broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from delosmq.client import (
    AckMode,
    Byte,
    BytesMessage,
    Char,
    Float,
    Int,
    JmsMessage,
    Long,
    MapMessage,
    ObjectMessage,
    Short,
    StreamMessage,
    TextMessage,
)
from interop.client.stage import WAIT_S, ClientScript, Stage

SCRIPT: Final = ClientScript("python-messages")
VALUES: Final[dict[str, Any]] = {
    "boolean": True,
    "byte": Byte(-128),
    "short": Short(32767),
    "int": Int(-7),
    "small": 7,
    "long": Long(7),
    "large": 1 << 40,
    "float": Float(1.5),
    "double": 0.1,
    "string": "tea, \u00fc, \U0001f375, \0",
    "empty": "",
}
KINDS: Final[dict[str, Callable[[], JmsMessage]]] = {
    "text": lambda: TextMessage("one pot, \u00fc, \U0001f375, \0"),
    "empty text": TextMessage,
    "bytes": lambda: BytesMessage(bytes(range(256))),
    "empty bytes": BytesMessage,
    "map": lambda: MapMessage({**VALUES, "char": Char("c"), "bytes": b"\0\1", "nothing": None}),
    "nested map": lambda: MapMessage({"inner": {"list": [1, "two", 3.0], "map": {"x": True}}}),
    "empty map": MapMessage,
    "stream": lambda: StreamMessage([*VALUES.values(), Char("c"), b"\0\1", None]),
    "empty stream": StreamMessage,
    "plain": JmsMessage,
    "object": lambda: ObjectMessage(b"\xac\xed\0\5t\0\3tea"),
    "large text": lambda: TextMessage("tea " * 300_000),
}


def typed(value: object) -> object:
    """With the names of types."""
    if isinstance(value, dict):
        return {name: typed(each) for name, each in sorted(value.items())}
    if isinstance(value, list):
        return [typed(each) for each in value]
    if isinstance(value, str | bytes) and len(value) > 1000:
        return f"{type(value).__name__} of {len(value)}"
    return f"{type(value).__name__} {value!r}"


def received(stage: Stage, message: JmsMessage, options: str = "", **how: Any) -> JmsMessage:
    connection = stage.connect(options)
    connection.send(stage.name(), message, **how)
    came = stage.session(connection).create_consumer(stage.name()).receive(WAIT_S)
    assert came is not None
    return came


def kind(make: Callable[[], JmsMessage], options: str) -> Callable[[Stage], None]:
    def play(stage: Stage) -> None:
        came = received(stage, make(), options)
        stage.say(type(came).__name__, typed(came.body))

    return play


for each_name, each_make in KINDS.items():
    SCRIPT.case(each_name)(kind(each_make, ""))
    SCRIPT.case(f"{each_name}, compressed")(kind(each_make, "jms.useCompression=true"))


@SCRIPT.case("properties")
def properties(stage: Stage) -> None:
    came = received(stage, TextMessage("x", properties={**VALUES, "nothing": None}))
    stage.say(typed(came.properties))


@SCRIPT.case("headers")
def headers(stage: Stage) -> None:
    sent = TextMessage(
        "x", correlation_id="c \u00fc", type="order", reply_to="topic://replies", group_id="g", group_sequence=3
    )
    came = received(stage, sent, priority=7, time_to_live_ms=600_000, persistent=False)
    stage.say(came.correlation_id, came.type, came.reply_to, came.group_id, came.group_sequence)
    stage.say(came.priority, came.persistent, came.expiration_ms - came.timestamp_ms, came.delivery_count)
    stage.say(came.destination, came.message_id == sent.message_id, came.timestamp_ms == sent.timestamp_ms)
    stage.say(came.properties)


@SCRIPT.case("defaults of headers")
def defaults(stage: Stage) -> None:
    came = received(stage, TextMessage("x"))
    stage.say(came.correlation_id, came.type, came.reply_to, came.group_id, came.group_sequence, came.user_id)
    stage.say(came.priority, came.persistent, came.expiration_ms, came.delivery_count, came.redelivered)


@SCRIPT.case("sent on")
def sent_on(stage: Stage) -> None:
    """A message that came is sent on with the types it came with."""
    came = received(stage, TextMessage("x", properties=VALUES))
    came.properties["more"] = 1
    connection = stage.connect()
    connection.send(stage.name("again"), came)
    again = stage.session(connection).create_consumer(stage.name("again")).receive(WAIT_S)
    assert again is not None
    stage.say(typed(again.properties))


@SCRIPT.case("asynchronous sends")
def asynchronous(stage: Stage) -> None:
    connection = stage.connect("jms.useAsyncSend=true&jms.producerWindowSize=1000")
    stage.send(connection, stage.name(), 50)
    consumer = stage.session(connection).create_consumer(stage.name())
    stage.say(stage.texts(consumer, 50) == [f"m{number}" for number in range(1, 51)])


@SCRIPT.case("sends of a transaction")
def transaction(stage: Stage) -> None:
    connection = stage.connect()
    with connection.create_session(AckMode.TRANSACTED) as session:
        producer = session.create_producer()
        producer.send("a", destination=stage.name("a"))
        producer.send("b", destination=stage.name("b"), persistent=False)
        stage.say("before", stage.left(stage.name("a")), stage.left(stage.name("b")))
        session.commit()
        stage.say("after", stage.left(stage.name("a")), stage.left(stage.name("b")))
        producer.send("never", destination=stage.name("a"))
        session.rollback()
        stage.say("rolled back", stage.left(stage.name("a")))
