"""The blocking client is handed what is there together, and each message counts as received when it is."""

# ACK-1, ACK-4, ACK-5

import threading
from typing import Any, TypeVar

import pytest

import delosmq
from delosmq.client import (
    AckMode,
    ClientConnection,
    ClientOptionError,
    ClientSession,
    IllegalStateError,
    MessageConsumer,
    connect,
)
from delosmq.client.aio import AsyncConnection
from delosmq.testing import BrokerFixture, TcpProxy
from tests.client.support import Counting, OpenSession, fill, settle, texts
from tests.patience import PATIENCE_S

T = TypeVar("T")
MODES = pytest.mark.parametrize("mode", AckMode)


def receive_some(session: ClientSession, consumer: MessageConsumer, count: int) -> list[str]:
    """And settles it."""
    found = []
    for _ in range(count):
        message = consumer.receive(PATIENCE_S)
        assert message is not None
        found.append(message.text)
        if session.mode == AckMode.INDIVIDUAL:
            message.acknowledge()
    settle(session)
    return found


@MODES
def test_what_is_there_is_received_without_waiting_for_the_loop(
    mode: AckMode, connection: ClientConnection, counting: tuple[Counting, AsyncConnection], name: str
) -> None:
    sent = fill(connection, name, 100)
    thread, inner = counting
    session = ClientSession(thread, thread.run(inner.create_session(mode)), inner)
    consumer = session.create_consumer(name)
    session.create_temporary_queue()  # the broker's answer comes behind the messages
    session.create_temporary_queue()
    thread.call(inner.start)
    before = thread.runs
    assert texts(consumer, 100) == sent
    assert thread.runs - before == 1
    settle(session)
    session.close()


def test_a_browser_sees_what_is_there_without_waiting_for_the_loop_each_time(
    connection: ClientConnection, counting: tuple[Counting, AsyncConnection], name: str
) -> None:
    sent = fill(connection, name, 1200)  # more than twice what is sent ahead
    thread, inner = counting
    thread.call(inner.start)
    session = ClientSession(thread, thread.run(inner.create_session()), inner)
    browser = session.create_browser(name)
    before = thread.runs
    assert [message.text for message in browser] == sent
    assert thread.runs - before < 120
    assert [message.text for message in browser] == sent
    session.close()


@pytest.mark.parametrize("prefetch", [0, 1, 7])
def test_a_browser_sees_all_whatever_is_sent_ahead(
    connection: ClientConnection, open_session: OpenSession, name: str, prefetch: int
) -> None:
    sent = fill(connection, name, 20)
    session = open_session()
    browser = session.create_browser(f"{name}?consumer.prefetchSize={prefetch}")
    assert [message.text for message in browser] == sent
    assert next(iter(browser)).text == "0"
    assert texts(session.create_consumer(name), 20) == sent


@MODES
@pytest.mark.parametrize("what", ["consumer", "session", "connection"])
def test_what_was_not_received_goes_back_as_if_it_had_never_been_seen(
    broker: delosmq.Broker, connection: ClientConnection, name: str, mode: AckMode, what: str
) -> None:
    sent = fill(connection, name, 20)
    other = connect(broker.openwire_url, user=broker.user, password=broker.password)
    session = other.create_session(mode)
    consumer = session.create_consumer(name)
    assert receive_some(session, consumer, 7) == sent[:7]
    {"consumer": consumer, "session": session, "connection": other}[what].close()
    with connection.create_session() as next_session:
        receiver = next_session.create_consumer(name)
        rest = [receiver.receive(PATIENCE_S) for _ in range(13)]
        assert [(one.text, one.delivery_count) for one in rest if one] == [(text, 1) for text in sent[7:]]
        assert receiver.receive(0) is None
    other.close()


@pytest.mark.parametrize("what", ["consumer", "session", "connection"])
def test_what_is_received_until_another_thread_closes_is_acknowledged(
    connection: ClientConnection, counting: tuple[Counting, AsyncConnection], name: str, what: str
) -> None:
    sent = fill(connection, name, 40)
    thread, inner = counting
    session_inner = thread.run(inner.create_session())
    session = ClientSession(thread, session_inner, inner)
    consumer_inner = thread.run(session_inner.create_consumer(name))
    consumer = MessageConsumer(thread, consumer_inner, session)
    session.create_temporary_queue()  # the broker's answer comes behind the messages
    thread.call(inner.start)
    closes, received = threading.Event(), threading.Event()

    async def close() -> None:
        closes.set()
        assert received.wait(PATIENCE_S)  # the loop does nothing meanwhile
        await {"consumer": consumer_inner.close, "session": session_inner.close, "connection": inner.close}[what]()

    assert texts(consumer, 1) == sent[:1]
    closer = threading.Thread(target=lambda: thread.run(close()))
    closer.start()
    assert closes.wait(PATIENCE_S)
    try:
        assert texts(consumer, 19) == sent[1:20]
    finally:
        received.set()
        closer.join()
    with connection.create_session() as next_session:
        receiver = next_session.create_consumer(name)
        rest = [receiver.receive(PATIENCE_S) for _ in range(20)]
        assert [(one.text, one.delivery_count) for one in rest if one] == [(text, 1) for text in sent[20:]]
        assert receiver.receive(0) is None
    session.close()


@MODES
def test_nothing_is_delivered_between_stop_and_start(
    connection: ClientConnection, open_session: OpenSession, name: str, mode: AckMode
) -> None:
    sent = fill(connection, name, 10)
    session = open_session(mode)
    consumer = session.create_consumer(name)
    assert texts(consumer, 3) == sent[:3]
    connection.stop()
    assert consumer.receive(0) is None
    connection.start()
    assert texts(consumer, 7) == sent[3:]
    settle(session)


@pytest.mark.parametrize("delay_ms", [0, 60_000])
@pytest.mark.parametrize("mode", [AckMode.TRANSACTED, AckMode.CLIENT, AckMode.INDIVIDUAL])
def test_what_is_delivered_again_comes_first(
    broker: delosmq.Broker, connection: ClientConnection, name: str, mode: AckMode, delay_ms: int
) -> None:
    sent = fill(connection, name, 6)
    url = f"{broker.openwire_url}?jms.redeliveryPolicy.initialRedeliveryDelay={delay_ms}"
    with connect(url, user=broker.user, password=broker.password) as other:
        session = other.create_session(mode)
        consumer = session.create_consumer(name)
        assert texts(consumer, 2) == sent[:2]
        if mode == AckMode.TRANSACTED:
            session.rollback()
        else:
            session.recover()
        if delay_ms:
            assert consumer.receive(0) is None
        else:
            again = [consumer.receive(PATIENCE_S) for _ in range(6)]
            assert [(one.text, one.delivery_count) for one in again if one] == [
                (text, 2 if text in sent[:2] else 1) for text in sent
            ]


def test_a_listener_hears_what_was_not_received(
    connection: ClientConnection, open_session: OpenSession, name: str
) -> None:
    sent = fill(connection, name, 10)
    fill(connection, f"{name}.other", 10)
    heard: list[str] = []
    done = threading.Event()

    def hear(message: delosmq.client.JmsMessage) -> None:
        heard.append(message.text)
        if len(heard) == 7:
            done.set()

    session = open_session()
    consumer = session.create_consumer(name)
    beside = session.create_consumer(f"{name}.other")
    assert texts(consumer, 3) == sent[:3]
    assert texts(beside, 3) == ["0", "1", "2"]
    consumer.set_listener(hear)
    for one in (consumer, beside):
        with pytest.raises(IllegalStateError, match="DMQ9057"):
            one.receive(0)
    assert done.wait(PATIENCE_S)
    assert heard == sent[3:]


def test_two_consumers_of_a_session_are_acknowledged_in_the_order_of_receiving(
    connection: ClientConnection, open_session: OpenSession, name: str
) -> None:
    for part in ("a", "b"):
        fill(connection, f"{name}.{part}", 10)
    with connection.create_session(AckMode.CLIENT) as session:
        first, second = (session.create_consumer(f"{name}.{part}") for part in ("a", "b"))
        for consumer in (first, second, first, second):
            message = consumer.receive(PATIENCE_S)
            assert message is not None
            last = message
        last.acknowledge()
    with open_session() as session:
        for part, left in (("a", ["2", "3"]), ("b", ["2", "3"])):
            consumer = session.create_consumer(f"{name}.{part}")
            assert texts(consumer, 2) == left


def test_a_message_that_grows_too_old_before_it_is_received_is_not(name: str) -> None:
    with BrokerFixture() as broker, connect(broker.url, user=broker.user, password=broker.password) as connection:
        with connection.create_session() as session:
            producer = session.create_producer(name)
            for text, life_ms in (("a", 0), ("old", 60_000), ("old", 60_000), ("b", 0)):
                producer.send(text, time_to_live_ms=life_ms)
            consumer = session.create_consumer(name)
            assert texts(consumer, 1) == ["a"]
            broker.clock.advance(minutes=2)
            assert texts(consumer, 1) == ["b"]
            assert consumer.receive(0) is None


@pytest.mark.parametrize("timeout_s", [-1, float("nan"), True, "1"])
def test_a_wrong_timeout_is_refused_when_there_is_a_message_too(
    connection: ClientConnection, open_session: OpenSession, name: str, timeout_s: Any
) -> None:
    sent = fill(connection, name, 10)
    consumer = open_session().create_consumer(name)
    assert texts(consumer, 5) == sent[:5]
    with pytest.raises(ClientOptionError, match="DMQ9056"):
        consumer.receive(timeout_s)
    assert texts(consumer, 5) == sent[5:]


def test_a_thread_that_stops_the_connection_again_and_again_loses_and_doubles_nothing(
    connection: ClientConnection, open_session: OpenSession, name: str
) -> None:
    sent = fill(connection, name, 2_000)
    over = threading.Event()

    def interfere() -> None:
        while not over.is_set():
            connection.stop()
            connection.start()

    consumer = open_session().create_consumer(name)
    thread = threading.Thread(target=interfere)
    thread.start()
    try:
        found = texts(consumer, 2_000)
    finally:
        over.set()
        thread.join()
    assert found == sent
    assert consumer.receive(0) is None


# --- breaks


@MODES
def test_a_break_amid_a_batch_loses_nothing(
    broker: delosmq.Broker, connection: ClientConnection, name: str, mode: AckMode
) -> None:
    """What was received and not settled comes again; in AUTO and DUPS_OK it was settled."""
    sent = fill(connection, name, 50)
    with TcpProxy(broker.openwire_port) as proxy:
        url = f"failover:(tcp://127.0.0.1:{proxy.port})?initialReconnectDelay=1&maxReconnectDelay=5"
        with connect(url, user=broker.user, password=broker.password) as other, other.create_session(mode) as session:
            consumer = session.create_consumer(name)
            first = receive_some(session, consumer, 10)
            session.create_temporary_queue()  # the broker has heard of them
            proxy.cut()
            proxy.wait_for(ended=1)
            session.create_temporary_queue()  # by the new connection
            assert first == sent[:10]
            assert receive_some(session, consumer, 40) == sent[10:]
            assert consumer.receive(0) is None
