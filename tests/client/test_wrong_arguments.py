"""An argument that can't be meant so is refused by its name before anything is done, and all goes on after it."""

import inspect
import math
import ssl
from collections.abc import Callable, Mapping
from typing import Any

import pytest

import delosmq
from delosmq.client import (
    AckMode,
    BytesMessage,
    ClientConnection,
    ClientOptionError,
    ConnectionFactory,
    JmsDestination,
    JmsMessage,
    MapMessage,
    RedeliveryPolicy,
    StreamMessage,
    TextMessage,
    connect,
)
from delosmq.client.aio import AsyncConnection, AsyncConnectionFactory
from delosmq.client.aio import connect as connect_async

Call = Callable[[Any], object]
SAID_BY_CONNECT = "connect() and ConnectionFactory() got an unexpected keyword argument"


def changed(**headers: object) -> TextMessage:
    """A message whose attributes were set after it was made."""
    message = TextMessage("x")
    for name, value in headers.items():
        setattr(message, name, value)
    return message


WRONG_IN_SEND: dict[str, Mapping[str, object]] = {
    "persistent is 1, but must be True or False": {"persistent": 1},
    "persistent is 'no'": {"persistent": "no"},
    "priority is 10, but must be a whole number from 0 to 9": {"priority": 10},
    "priority is -1": {"priority": -1},
    "priority is 4.5": {"priority": 4.5},
    "priority is 'high'": {"priority": "high"},
    "priority is True": {"priority": True},
    "time_to_live_ms is -1, but must be a whole number from 0 to 2**62": {"time_to_live_ms": -1},
    "time_to_live_ms is 1.5": {"time_to_live_ms": 1.5},
    "time_to_live_ms is nan": {"time_to_live_ms": math.nan},
    "time_to_live_ms is 9223372036854775807": {"time_to_live_ms": 2**63 - 1},
    "time_to_live_ms is '5'": {"time_to_live_ms": "5"},
    "delay_ms is -1": {"delay_ms": -1},
    "delay_ms is None": {"delay_ms": None},
    "delay_ms is '5'": {"delay_ms": "5"},
    "delay_ms is 9223372036854775808": {"delay_ms": 2**63},
    "properties is <class 'int'>, but must be a mapping": {"properties": 5},
    "properties is <class 'list'>": {"properties": [("a", 1)]},
    "destination is <class 'int'>": {"destination": 5},
    "destination is <class 'bytes'>": {"destination": b"orders"},
}
"""By the beginning of what is said."""

WRONG_MESSAGES: dict[str, Callable[[], object]] = {
    "text is <class 'int'>, but must be a str": lambda: TextMessage(5),  # type: ignore[arg-type]
    "body is <class 'str'>, but must be bytes": lambda: BytesMessage("x"),  # type: ignore[arg-type]
    "body is <class 'int'>": lambda: BytesMessage(5),  # type: ignore[arg-type]
    "body is <class 'int'>, but must be a mapping": lambda: MapMessage(5),  # type: ignore[arg-type]
    "body is <class 'int'>, but must be a list": lambda: StreamMessage(5),  # type: ignore[arg-type]
    "body is <class 'str'>, but must be a list": lambda: StreamMessage("tea"),  # a sequence of letters, for Python
    "properties is <class 'int'>": lambda: JmsMessage(properties=5),  # type: ignore[arg-type]
    "group_sequence is 4294967296": lambda: changed(group_sequence=2**32),
    "group_sequence is '1'": lambda: changed(group_sequence="1"),
    "group_id is <class 'int'>, but must be a str": lambda: changed(group_id=5),
    "correlation_id is <class 'int'>": lambda: TextMessage("x", correlation_id=5),
    "type is <class 'bytes'>": lambda: TextMessage("x", type=b"order"),
    "destination is <class 'int'>": lambda: TextMessage("x", reply_to=5),
    "destination is <class 'bytes'>": lambda: changed(reply_to=b"replies"),
    "properties is <class 'NoneType'>": lambda: changed(properties=None),
}

WRONG_CALLS: dict[str, tuple[str, Call]] = {
    "mode is 'AUTO'": ("connection", lambda one: one.create_session("AUTO")),
    "name is '', but must be a str of at least one character": ("connection", lambda one: one.unsubscribe("")),
    "name is 5": ("connection", lambda one: one.unsubscribe(5)),
    "listener is 5, but must be a function, or None": ("connection", lambda one: one.set_exception_listener(5)),
    "request is <class 'str'>, but must be a message": ("connection", lambda one: one.reply("x", "y")),
    "timeout_s is '5'": ("connection", lambda one: one.request("nowhere", "x", timeout_s="5")),
    "properties is <class 'int'>": ("connection", lambda one: one.request("nowhere", "x", properties=5)),
    "destination is <class 'int'>": ("session", lambda one: one.create_consumer(5)),
    "selector is <class 'int'>": ("session", lambda one: one.create_consumer("x", 5)),
    "no_local is 'no'": ("session", lambda one: one.create_consumer("x", no_local="no")),
    "name is ''": ("session", lambda one: one.create_durable_consumer("x", "")),
    "name is None": ("session", lambda one: one.create_durable_consumer("x", None)),
    "selector is <class 'bytes'>": ("session", lambda one: one.create_browser("x", b"a = 1")),
    "destination is <class 'bytes'>": ("session", lambda one: one.create_producer(b"x")),
    "destination is 'x', but must be a temporary JmsDestination": ("session", lambda one: one.delete_temporary("x")),
    "name is <class 'int'>": ("session", lambda one: one.create_producer(JmsDestination(5))),  # type: ignore[arg-type]
    "timeout_s is 'soon'": ("consumer", lambda one: one.receive("soon")),
    "timeout_s is -1": ("consumer", lambda one: one.receive(-1)),
    "listener is 7": ("consumer", lambda one: one.set_listener(7)),
    "on_completion is 5, but must be a function": ("producer", lambda one: one.send("x", on_completion=5)),
}


def calls() -> dict[str, tuple[str, Call]]:
    """What is called with a wrong argument, by what is said then."""
    found = dict(WRONG_CALLS)

    def sent_with(options: Mapping[str, object]) -> Call:
        return lambda one: one.send("x", **options)

    def sent(make: Callable[[], object]) -> Call:
        return lambda one: one.send(make())

    for said, options in WRONG_IN_SEND.items():
        found[f"{said} "] = ("producer", sent_with(options))
    for said, make in WRONG_MESSAGES.items():
        found[f"{said}  "] = ("producer", sent(make))
    return found


async def awaited(call: Call, thing: object) -> None:
    done = call(thing)
    assert inspect.isawaitable(done)
    await done


CALLS = calls()


@pytest.mark.parametrize("said", CALLS)
def test_a_wrong_argument_is_refused_by_name(connection: ClientConnection, name: str, said: str) -> None:
    with connection.create_session(AckMode.CLIENT) as session:
        producer, consumer = session.create_producer(name), session.create_consumer(name)
        things = {"connection": connection, "session": session, "producer": producer, "consumer": consumer}
        on, call = CALLS[said]
        with pytest.raises(ClientOptionError) as caught:
            call(things[on])
        assert str(caught.value).startswith(f"DMQ9056: {said.strip()}")
        producer.send("still here")
        message = consumer.receive(10)
        assert message is not None
        assert message.text == "still here"  # nothing was sent before it
        session.acknowledge()


@pytest.mark.parametrize("said", CALLS)
async def test_so_it_is_by_the_client_for_asyncio(aio: AsyncConnection, name: str, said: str) -> None:
    async with await aio.create_session(AckMode.CLIENT) as session:
        producer, consumer = await session.create_producer(name), await session.create_consumer(name)
        things = {"connection": aio, "session": session, "producer": producer, "consumer": consumer}
        on, call = CALLS[said]
        with pytest.raises(ClientOptionError) as caught:
            await awaited(call, things[on])
        assert str(caught.value).startswith(f"DMQ9056: {said.strip()}")
        await producer.send("still here")
        message = await consumer.receive(10)
        assert message is not None
        assert message.text == "still here"
        session.acknowledge()


@pytest.mark.parametrize("attribute, value", [("persistent", 1), ("priority", 10), ("time_to_live_ms", -1)])
def test_what_a_producer_was_given_wrongly_is_refused_with_the_message(
    connection: ClientConnection, name: str, attribute: str, value: int
) -> None:
    with connection.create_session() as session, session.create_producer(name) as producer:
        setattr(producer, attribute, value)
        with pytest.raises(ClientOptionError, match=f"^DMQ9056: {attribute} is {value}, but must be "):
            producer.send("x")


@pytest.mark.parametrize("key", [5, b"a", "", None])
def test_a_property_whose_name_is_none_is_refused(connection: ClientConnection, name: str, key: object) -> None:
    wrong: Any = {key: 1}
    with pytest.raises(delosmq.client.MessageFormatError, match=r"^DMQ9060: "):
        connection.send(name, "x", properties=wrong)
    connection.send(name, "still here")
    assert [message.text for message in connection.messages(name, timeout_s=0.1)] == ["still here"]


WRONG_CONNECTIONS: dict[str, Mapping[str, object]] = {
    "user is <class 'int'>": {"user": 5},
    "user is <class 'bytes'>": {"user": b""},
    "client_id is <class 'int'>": {"client_id": 5},
    "ssl_context is True, but must be an ssl.SSLContext": {"ssl_context": True},
    "ssl_context is 'cert.pem'": {"ssl_context": "cert.pem"},
    "redelivery_policies is <class 'list'>, but must be a mapping": {"redelivery_policies": ["orders"]},
    "destination is <class 'int'>": {"redelivery_policies": {5: RedeliveryPolicy()}},
    "redelivery_policies['orders'].redelivery_delay_ms is -1": {
        "redelivery_policies": {"orders": RedeliveryPolicy(redelivery_delay_ms=-1)}
    },
    "redelivery_policies['orders'].back_off_multiplier is nan": {
        "redelivery_policies": {"orders": RedeliveryPolicy(back_off_multiplier=math.nan)}
    },
}


@pytest.mark.parametrize("said", WRONG_CONNECTIONS)
def test_a_connection_that_can_t_be_meant_so_is_not_made(said: str) -> None:
    options: Any = WRONG_CONNECTIONS[said]
    for make in (connect, connect_async, ConnectionFactory, AsyncConnectionFactory):
        with pytest.raises(ClientOptionError) as caught:
            make("vm://none", **options)
        assert str(caught.value).startswith(f"DMQ9056: {said}")


def test_a_flag_of_a_policy_that_is_none_is_refused() -> None:
    # Compiled, a policy takes no other type in the first place.
    no: Any = "no"
    with pytest.raises((ClientOptionError, TypeError), match=r"must be True or False|bool object expected"):
        connect("vm://none", redelivery_policies={"orders": RedeliveryPolicy(use_exponential_back_off=no)})


def test_a_context_of_tls_is_taken() -> None:
    ConnectionFactory("ssl://localhost", ssl_context=ssl.create_default_context())


def test_a_coroutine_function_is_no_listener_of_the_blocking_client(connection: ClientConnection, name: str) -> None:
    async def listen(message: JmsMessage) -> None:
        raise AssertionError(message)

    wrong: Any = listen
    with connection.create_session() as session, session.create_consumer(name) as consumer:
        with pytest.raises(ClientOptionError, match=r"^DMQ9056: listener is .*coroutine function.*delosmq.client.aio"):
            consumer.set_listener(wrong)


def test_an_argument_that_is_none_of_connect_is_named_with_the_nearest() -> None:
    wrong: Any = {"username": "tea"}
    for make in (connect, connect_async, ConnectionFactory, AsyncConnectionFactory):
        with pytest.raises(TypeError) as caught:
            make("vm://none", **wrong)
        assert str(caught.value) == f"{SAID_BY_CONNECT} 'username'; did you mean 'user'?"


async def test_so_is_one_of_send(connection: ClientConnection, aio: AsyncConnection, name: str) -> None:
    said = r"^send\(\) got an unexpected keyword argument 'time_to_live'; did you mean 'time_to_live_ms'\?"
    wrong: Any = {"time_to_live": 3}
    with pytest.raises(TypeError, match=said):
        connection.send(name, "x", **wrong)
    with connection.create_session() as session, pytest.raises(TypeError, match=said):
        session.create_producer(name).send("x", **wrong)
    with pytest.raises(TypeError, match=said):
        await aio.send(name, "x", **wrong)
