"""Whatever goes wrong is one of a few exceptions, and its sentence says what to do."""

import asyncio
import inspect
import math
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

import delosmq
from delosmq import client
from delosmq.client import (
    AckMode,
    ClientConnection,
    ClientError,
    ClientOptionError,
    ClientSecurityError,
    ClientSession,
    ConnectionLostError,
    IllegalStateError,
    Int,
    InvalidClientIdError,
    InvalidSelectorError,
    JmsMessage,
    Long,
    MessageConsumer,
    RefusedError,
    ResourceAllocationError,
    TextMessage,
    TimedOutError,
    connect,
)
from delosmq.client.aio import AsyncConnection
from delosmq.client.aio import connect as connect_async
from delosmq.client.aio_consumer import AsyncConsumer
from delosmq.client.aio_producer import AsyncProducer, SendOptions
from delosmq.model.settings import AcceptorSettings, BrokerSettings, TlsSettings
from tests.certificates import make_stores
from tests.client.support import OpenSession
from tests.patience import PATIENCE_S


def test_all_exceptions_are_of_one_family() -> None:
    kinds = [getattr(client, name) for name in client.__all__ if name.endswith("Error")]
    assert len(kinds) >= 13
    assert all(issubclass(kind, ClientError) for kind in kinds)


def refusal(connecting: Callable[[], object], kind: type[ClientError]) -> str:
    with pytest.raises(kind) as caught:
        connecting()
    return str(caught.value)


@pytest.fixture
def peer() -> Iterator[Callable[[bytes], int]]:
    """Makes a port whose answer to whoever connects is given; b"" stays silent."""
    listeners: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def make(answer: bytes) -> int:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def serve() -> None:
            made, _ = listener.accept()
            with made:
                made.sendall(answer)
                while made.recv(65536):
                    pass

        thread = threading.Thread(target=serve)
        threads.append(thread)
        thread.start()
        return int(listener.getsockname()[1])

    yield make
    for one in threads:
        one.join(PATIENCE_S)
    for listener in listeners:
        listener.close()


def test_nobody_is_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    said = refusal(lambda: connect(f"tcp://127.0.0.1:{port}"), ConnectionLostError)
    assert said.startswith(f"DMQ9063: tcp://127.0.0.1:{port} can't be reached: ")


def test_a_host_that_no_resolver_takes() -> None:
    said = refusal(lambda: connect("tcp://a..b:61616"), ConnectionLostError)
    assert said.startswith("DMQ9063: tcp://a..b:61616 can't be reached: ")


def test_an_http_server_is_there(peer: Callable[[bytes], int]) -> None:
    port = peer(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    said = refusal(lambda: connect(f"tcp://127.0.0.1:{port}"), ConnectionLostError)
    assert said.startswith(f"DMQ9013: tcp://127.0.0.1:{port} does not speak OpenWire: ")


@pytest.mark.parametrize("scheme", ["tcp", "ssl"])
def test_a_port_that_says_nothing(peer: Callable[[bytes], int], scheme: str) -> None:
    url = f"{scheme}://127.0.0.1:{peer(b'')}?transport.connectionTimeout=100"
    assert refusal(lambda: connect(url), TimedOutError).startswith("DMQ9064: ")


def test_a_port_of_stomp(broker: delosmq.Broker) -> None:
    said = refusal(lambda: connect(broker.stomp_url), ConnectionLostError)
    assert "it closes the connection without a word" in said


def test_tls_where_there_is_none(broker: delosmq.Broker) -> None:
    url = broker.openwire_url.replace("tcp://", "ssl://")
    said = refusal(lambda: connect(url), ConnectionLostError)
    assert said.startswith(f"DMQ9063: {url} can't be reached: ")
    assert "reached: ." not in said


def test_tls_with_a_certificate_that_is_believed_or_not(tmp_path: Path) -> None:
    stores = make_stores(tmp_path)
    acceptor = AcceptorSettings("openwire", "127.0.0.1", 0, ("OPENWIRE",), tls=TlsSettings(str(stores.server)))
    with delosmq.Broker(settings=BrokerSettings(acceptors=(acceptor,)), http=False) as broker:
        url = broker.openwire_url.replace("tcp://", "ssl://")
        said = refusal(lambda: connect(url, user=broker.user, password=broker.password), ConnectionLostError)
        assert "certificate verify failed" in said
        trusting = f"{url}?transport.trustStore={stores.authority}"
        with connect(trusting, user=broker.user, password=broker.password) as connection:
            connection.send("x", "secret")


@pytest.mark.parametrize("option", ["transport.trustStore", "transport.keyStore"])
def test_a_file_of_tls_that_is_not_there_is_named_even_with_failover(tmp_path: Path, option: str) -> None:
    url = f"failover:(ssl://localhost:1?{option}={tmp_path}/none.pem)"
    said = refusal(lambda: connect(url), ClientOptionError)
    assert said.startswith(f"DMQ9051: ssl://localhost:1: '{option}' is '{tmp_path}/none.pem', but must be a PEM file")
    assert said.endswith("No such file or directory.")


def test_a_wrong_password(broker: delosmq.Broker) -> None:
    said = refusal(lambda: connect(broker.openwire_url, user=broker.user, password="tea"), ClientSecurityError)
    assert said.startswith("DMQ9020: the broker refused the login: ")
    assert "tea" not in said


def test_a_client_id_that_is_in_use(broker: delosmq.Broker, name: str) -> None:
    def again() -> ClientConnection:
        return connect(broker.openwire_url, user=broker.user, password=broker.password, client_id=name)

    with again():
        assert refusal(again, InvalidClientIdError).startswith("DMQ9023: ")


def test_what_is_closed_says_so(connection: ClientConnection, name: str, open_session: OpenSession) -> None:
    session = open_session(AckMode.CLIENT)
    consumer = session.create_consumer(name)
    producer = session.create_producer(name)
    producer.send("x")
    message = consumer.receive(10)
    assert message is not None
    consumer.close()
    producer.close()
    assert refusal(lambda: consumer.receive(0), IllegalStateError).startswith("DMQ9001: the consumer is closed")
    assert refusal(message.acknowledge, IllegalStateError).startswith("DMQ9001: the consumer is closed")
    assert refusal(lambda: producer.send("y"), IllegalStateError).startswith("DMQ9001: the producer is closed")
    session.close()
    session.close()
    assert refusal(lambda: session.create_consumer(name), IllegalStateError).startswith("DMQ9001: the session is")
    connection.close()
    connection.close()
    assert refusal(connection.create_session, IllegalStateError).startswith("DMQ9001: the connection is closed")
    assert refusal(lambda: connection.send(name, "y"), IllegalStateError).startswith("DMQ9001: the connection is")


def test_what_a_mode_has_no_use_for(open_session: OpenSession, name: str) -> None:
    auto, transacted = open_session(), open_session(AckMode.TRANSACTED)
    assert refusal(auto.commit, IllegalStateError).startswith("DMQ9002: commit()")
    assert refusal(auto.rollback, IllegalStateError).startswith("DMQ9002: rollback()")
    assert refusal(transacted.acknowledge, IllegalStateError).startswith("DMQ9003: acknowledge()")
    assert refusal(transacted.recover, IllegalStateError).startswith("DMQ9003: recover()")
    assert refusal(lambda: auto.create_durable_consumer(name, "s"), IllegalStateError).startswith("DMQ9004: ")


def test_wrong_arguments(open_session: OpenSession, name: str) -> None:
    session = open_session()
    producer, consumer = session.create_producer(name), session.create_consumer(name)
    for send in (
        lambda: producer.send("x", priority=10),
        lambda: producer.send("x", time_to_live_ms=-1),
        lambda: producer.send("x", delay_ms=-1),
        lambda: consumer.receive(-1),
    ):
        assert refusal(send, ClientOptionError).startswith("DMQ9056: ")
    assert refusal(lambda: producer.send("x", destination="other"), ClientOptionError).startswith("DMQ9054: ")
    assert refusal(lambda: session.create_producer().send("x"), ClientOptionError).startswith("DMQ9053: ")
    said = refusal(lambda: session.create_consumer(name, "price >"), InvalidSelectorError)
    assert said.startswith(f"DMQ9022: the broker refused a consumer of queue://{name}: ")
    # The session goes on.
    producer.send("still here")
    message = consumer.receive(10)
    assert message is not None
    assert message.text == "still here"


@pytest.mark.parametrize("timeout_s", [-1, math.nan, math.inf])
def test_a_timeout_that_is_none(
    connection: ClientConnection, open_session: OpenSession, name: str, timeout_s: float
) -> None:
    consumer = open_session().create_consumer(name)
    for wait in (lambda: consumer.receive(timeout_s), lambda: connection.request(name, "x", timeout_s=timeout_s)):
        assert refusal(wait, ClientOptionError).startswith(
            f"DMQ9056: timeout_s is {timeout_s}, but must be None, which"
        )


def test_a_selector_that_is_no_text(open_session: OpenSession, name: str) -> None:
    none: Any = None
    said = refusal(lambda: open_session().create_consumer(name, none), ClientOptionError)
    assert said == "DMQ9056: selector is <class 'NoneType'>, but must be a str, empty for all messages."


def test_an_option_of_send_that_is_none_is_named(
    connection: ClientConnection, name: str, open_session: OpenSession
) -> None:
    unknown: dict[str, Any] = {"prio": 3}
    with pytest.raises(TypeError, match="'prio'"):
        connection.send(name, "x", **unknown)
    with pytest.raises(TypeError, match="'prio'"):
        open_session().create_producer(name).send("x", **unknown)


async def test_so_it_is_by_the_client_for_asyncio(aio: AsyncConnection, name: str) -> None:
    unknown: dict[str, Any] = {"prio": 3}
    with pytest.raises(TypeError, match="'prio'"):
        await aio.send(name, "x", **unknown)


def test_the_options_of_send_are_those_of_a_producer() -> None:
    worked = set(inspect.signature(AsyncProducer.prepare).parameters) - {"self", "message", "destination", "unknown"}
    assert set(SendOptions.__annotations__) == worked


def test_a_message_that_is_too_large_is_refused_before_it_is_sent(broker: delosmq.Broker, name: str) -> None:
    url = f"{broker.openwire_url}?wireFormat.maxFrameSize=10000"
    with connect(url, user=broker.user, password=broker.password) as connection:
        said = refusal(lambda: connection.send(name, "x" * 10_000), ResourceAllocationError)
        assert said.startswith("DMQ9008: a message of 10")
        connection.send(name, "small")
        assert next(connection.messages(name)).text == "small"


def test_the_blocking_client_in_its_own_loop(connection: ClientConnection) -> None:
    from delosmq.client.threads import loop_thread

    thread = loop_thread.enter()
    try:
        said = thread.call(lambda: refusal(connection.create_session, IllegalStateError))
    finally:
        loop_thread.leave(thread)
    assert said.startswith("DMQ9065: ")


async def test_the_blocking_client_works_beside_a_running_loop(broker: delosmq.Broker, name: str) -> None:
    with connect(broker.openwire_url, user=broker.user, password=broker.password) as connection:
        connection.send(name, "x")
        await asyncio.sleep(0)


MISTAKES: dict[str, Callable[[ClientConnection, ClientSession, MessageConsumer], object]] = {
    "commit": lambda _, session, __: session.commit(),
    "rollback": lambda _, session, __: session.rollback(),
    "a negative time": lambda _, __, consumer: consumer.receive(-1),
    "a consumer with a wrong selector": lambda _, session, __: session.create_consumer("x", "price >"),
    "a consumer with a wrong option": lambda _, session, __: session.create_consumer("x?consumer.prefetch=1"),
    "a durable consumer without a client id": lambda _, session, __: session.create_durable_consumer("x", "s"),
    "a session of no mode": lambda connection, _, __: connection.create_session(cast("AckMode", "AUTO")),
    "a property without a type": lambda connection, _, __: connection.send("x", "x", properties={"a": cast(int, [])}),
    "a body without a kind": lambda connection, _, __: connection.send("x", cast(str, object())),
    "too large a message": lambda connection, _, __: connection.send("x", "x" * 20_000),
    "the end of no subscription": lambda connection, _, __: connection.unsubscribe("none"),
    "a reply that nobody wants": lambda connection, _, __: connection.reply(TextMessage("x"), "y"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_nothing_that_was_received_is_lost_by_a_mistake(broker: delosmq.Broker, name: str, mistake: str) -> None:
    url = f"{broker.openwire_url}?wireFormat.maxFrameSize=10000"
    with connect(url, user=broker.user, password=broker.password) as connection:
        for text in "abc":
            connection.send(name, text)
        with connection.create_session(AckMode.CLIENT) as session:
            consumer = session.create_consumer(name)
            assert received(consumer) == "a"
            with pytest.raises(ClientError):
                MISTAKES[mistake](connection, session, consumer)
            assert received(consumer) == "b"
            session.acknowledge()
        with connection.create_session() as session:
            assert received(session.create_consumer(name)) == "c"


def received(consumer: MessageConsumer) -> str:
    message = consumer.receive(10)
    assert message is not None
    assert message.delivery_count == 1
    return message.text


def test_a_second_listener_and_a_receive_beside_it_lose_nothing(
    connection: ClientConnection, name: str, open_session: OpenSession
) -> None:
    heard: list[str] = []
    all_heard = threading.Event()

    def listen(message: JmsMessage) -> None:
        heard.append(message.text)
        if len(heard) == 3:
            all_heard.set()

    consumer = open_session().create_consumer(name)
    consumer.set_listener(listen)
    for number in range(3):
        assert refusal(lambda: consumer.set_listener(print), IllegalStateError).startswith("DMQ9058: ")
        assert refusal(lambda: consumer.receive(0), IllegalStateError).startswith("DMQ9057: ")
        connection.send(name, f"m{number}")
    assert all_heard.wait(PATIENCE_S)
    assert heard == ["m0", "m1", "m2"]


def test_what_a_closed_consumer_has_not_handed_out_goes_to_the_next(
    connection: ClientConnection, name: str, open_session: OpenSession
) -> None:
    for text in "ab":
        connection.send(name, text)
    session = open_session(AckMode.CLIENT)
    consumer = session.create_consumer(name)
    message = consumer.receive(10)
    assert message is not None
    consumer.close()
    assert refusal(lambda: consumer.receive(0), IllegalStateError).startswith("DMQ9001: ")
    assert refusal(message.acknowledge, IllegalStateError).startswith("DMQ9001: ")
    other = session.create_consumer(name)
    assert [(one.text, one.delivery_count) for one in (other.receive(10), other.receive(10)) if one] == [
        ("a", 2),
        ("b", 1),
    ]


def test_a_foreign_loop_loses_nothing(broker: delosmq.Broker, name: str) -> None:
    async def main() -> None:
        async with connect_async(broker.openwire_url, user=broker.user, password=broker.password) as made:
            await made.send(name, "x")
            consumer = await (await made.create_session()).create_consumer(name)
            said = await asyncio.to_thread(lambda: asyncio.run(foreign(consumer)))
            assert said.startswith("DMQ9059: ")
            message = await consumer.receive(10)
            assert message is not None
            assert (message.text, message.delivery_count) == ("x", 1)

    async def foreign(consumer: AsyncConsumer) -> str:
        with pytest.raises(IllegalStateError) as caught:
            await consumer.receive(0)
        return str(caught.value)

    asyncio.run(main())


@pytest.mark.parametrize("there", ["an HTTP server", "silence", "no TLS", "a wrong password"])
def test_a_second_connection_that_fails_leaves_the_first_alone(
    connection: ClientConnection,
    broker: delosmq.Broker,
    peer: Callable[[bytes], int],
    name: str,
    open_session: OpenSession,
    there: str,
) -> None:
    for text in "ab":
        connection.send(name, text)
    consumer = open_session(AckMode.CLIENT).create_consumer(name)
    assert received(consumer) == "a"
    if there == "an HTTP server":
        url = f"tcp://127.0.0.1:{peer(b'HTTP/1.1 400 Bad Request')}"
    elif there == "silence":
        url = f"tcp://127.0.0.1:{peer(b'')}?transport.connectionTimeout=50"
    elif there == "no TLS":
        url = broker.openwire_url.replace("tcp://", "ssl://")
    else:
        url = broker.openwire_url
    with pytest.raises(ClientError):
        connect(url, user=broker.user, password="wrong")
    assert received(consumer) == "b"
    consumer.acknowledge()


def test_a_message_that_next_gave_says_that_the_loop_acknowledges(connection: ClientConnection, name: str) -> None:
    connection.send(name, "one pot of tea")
    message = next(connection.messages(name))
    with pytest.raises(IllegalStateError, match=r"DMQ9082: .* 'for message in connection\.messages\(\.\.\.\):'"):
        message.acknowledge()
    again = list(connection.messages(name, timeout_s=0.2))
    assert [message.text for message in again] == ["one pot of tea"]
    with pytest.raises(IllegalStateError, match="DMQ9082"):
        again[0].acknowledge()


@pytest.mark.parametrize(
    ("options", "kind", "value"),
    [
        ({"period_ms": 1_000}, Long, 1_000),
        ({"repeat": 9}, Int, 9),
        ({"cron": "0 * * * *"}, str, "0 * * * *"),
    ],
)
def test_a_delivery_that_is_to_be_repeated(
    connection: ClientConnection, name: str, options: SendOptions, kind: type, value: object
) -> None:
    (wish,) = options
    property_name = f"AMQ_SCHEDULED_{wish.removesuffix('_ms').upper()}"
    message = TextMessage("tea")
    said = refusal(lambda: connection.send(name, message, **options), RefusedError)
    assert f"DMQ5274: the property {property_name} asks for repeated delivery" in said
    assert "send once with AMQ_SCHEDULED_DELAY" in said
    set_property = message.properties[property_name]
    assert (type(set_property), set_property) == (kind, value)
    assert "cron is" in refusal(lambda: connection.send(name, "tea", cron=cast(str, 5)), ClientOptionError)
