"""The blocking client is handed what is there together, and each message counts as received when it is."""

# ACK-1, ACK-4, ACK-5

import asyncio
import random
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
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
from delosmq.client.aio_consumer import AsyncConsumer
from delosmq.client.options.connect_options import plan_for
from delosmq.client.threads.loop_thread import LoopThread
from delosmq.client.threads.ordered_calls import NOT_YET, OrderedCalls
from delosmq.sessions.openwire.client.acknowledgement import Delivery
from delosmq.testing import BrokerFixture
from tests.client.proxy import Proxy
from tests.client.support import WAIT_S, OpenSession

T = TypeVar("T")
MODES = pytest.mark.parametrize("mode", AckMode)


def fill(connection: ClientConnection, name: str, count: int) -> list[str]:
    """Texts that were sent to a queue."""
    texts = [f"{number}" for number in range(count)]
    with connection.create_session(AckMode.TRANSACTED) as session:
        producer = session.create_producer(name)
        for text in texts:
            producer.send(text)
        session.commit()
    return texts


def texts(consumer: MessageConsumer, count: int) -> list[str]:
    found = []
    for _ in range(count):
        message = consumer.receive(WAIT_S)
        assert message is not None
        found.append(message.text)
    return found


def settle(session: ClientSession) -> None:
    """What was received is done."""
    if session.mode == AckMode.TRANSACTED:
        session.commit()
    elif session.mode == AckMode.CLIENT:
        session.acknowledge()


def receive_some(session: ClientSession, consumer: MessageConsumer, count: int) -> list[str]:
    """And settles it."""
    found = []
    for _ in range(count):
        message = consumer.receive(WAIT_S)
        assert message is not None
        found.append(message.text)
        if session.mode == AckMode.INDIVIDUAL:
            message.acknowledge()
    settle(session)
    return found


class Counting(LoopThread):
    """Counts what is waited for."""

    runs = 0

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        self.runs += 1
        return super().run(work)


@pytest.fixture
def counting(broker: delosmq.Broker) -> Iterator[tuple[Counting, AsyncConnection]]:
    """A connection that is not started."""
    thread = Counting()
    inner = thread.run(AsyncConnection.open(plan_for(broker.openwire_url, user=broker.user, password=broker.password)))
    yield thread, inner
    thread.run(inner.close())
    thread.end()


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
        rest = [receiver.receive(WAIT_S) for _ in range(13)]
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
        assert received.wait(WAIT_S)  # the loop does nothing meanwhile
        await {"consumer": consumer_inner.close, "session": session_inner.close, "connection": inner.close}[what]()

    assert texts(consumer, 1) == sent[:1]
    closer = threading.Thread(target=lambda: thread.run(close()))
    closer.start()
    assert closes.wait(WAIT_S)
    try:
        assert texts(consumer, 19) == sent[1:20]
    finally:
        received.set()
        closer.join()
    with connection.create_session() as next_session:
        receiver = next_session.create_consumer(name)
        rest = [receiver.receive(WAIT_S) for _ in range(20)]
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
            again = [consumer.receive(WAIT_S) for _ in range(6)]
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
    assert done.wait(WAIT_S)
    assert heard == sent[3:]


def test_two_consumers_of_a_session_are_acknowledged_in_the_order_of_receiving(
    connection: ClientConnection, open_session: OpenSession, name: str
) -> None:
    for part in ("a", "b"):
        fill(connection, f"{name}.{part}", 10)
    with connection.create_session(AckMode.CLIENT) as session:
        first, second = (session.create_consumer(f"{name}.{part}") for part in ("a", "b"))
        for consumer in (first, second, first, second):
            message = consumer.receive(WAIT_S)
            assert message is not None
        message.acknowledge()
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


# --- interrupted


class Interrupt(Exception):
    """What a signal handler raises."""


@pytest.fixture
def at_signal() -> Iterator[Callable[[Callable[[], object]], None]]:
    before = signal.getsignal(signal.SIGALRM)

    def set_handler(function: Callable[[], object]) -> None:
        def handle(*_: object) -> None:
            function()

        signal.signal(signal.SIGALRM, handle)

    yield set_handler
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


# Python swallows what a handler raises while a weak reference is told of the end of what it refers to.
@pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning")
@MODES
def test_a_signal_handler_that_raises_anywhere_loses_and_doubles_nothing(
    connection: ClientConnection, open_session: OpenSession, name: str, mode: AckMode, at_signal: Any
) -> None:
    def raise_it() -> None:
        raise Interrupt

    sent = fill(connection, name, 1_000)
    at_signal(raise_it)
    chance = random.Random(17)
    found: list[delosmq.client.JmsMessage | None] = []
    interrupts = 0
    session = open_session(mode)
    consumer = session.create_consumer(name)
    while len(found) < len(sent):
        try:
            signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-5, 1e-3))
            while len(found) < len(sent):
                found.append(consumer.receive(WAIT_S))
            signal.setitimer(signal.ITIMER_REAL, 0)
        except Interrupt:
            interrupts += 1
    assert [one.text for one in found if one] == sent
    assert consumer.receive(0) is None
    assert interrupts
    settle(session)


def test_a_message_whose_receive_is_interrupted_at_its_end_is_not_acknowledged(
    connection: ClientConnection, open_session: OpenSession, name: str
) -> None:
    sent = fill(connection, name, 5)
    session = open_session()
    consumer = session.create_consumer(name)
    assert texts(consumer, 2) == sent[:2]
    ask = session.done.ask
    add = session.done.add

    def interrupted(function: Callable[[], object]) -> None:
        add(function)
        for _ in range(3):
            ask()
            connection.start()  # waits for the loop, which has looked
        session.done.add = add  # type: ignore[method-assign]
        raise Interrupt

    session.done.add = interrupted  # type: ignore[method-assign]
    with pytest.raises(Interrupt):
        consumer.receive(WAIT_S)
    assert texts(consumer, 3) == sent[2:]


def test_a_handler_that_receives_amid_a_receive_gets_another_message(
    connection: ClientConnection,
    open_session: OpenSession,
    name: str,
    at_signal: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent = fill(connection, name, 5)
    consumer = open_session().create_consumer(name)
    assert texts(consumer, 1) == sent[:1]
    real = AsyncConsumer.message_of

    def message_of(inner: AsyncConsumer, delivery: Delivery) -> object:
        message = real(inner, delivery)
        monkeypatch.undo()
        signal.raise_signal(signal.SIGALRM)
        return message

    seen: list[str] = []
    at_signal(lambda: seen.extend(texts(consumer, 1)))
    monkeypatch.setattr(AsyncConsumer, "message_of", message_of)
    seen += texts(consumer, 3)
    assert seen == sent[1:]


def test_what_a_handler_commits_amid_a_receive_is_without_that_message(
    connection: ClientConnection, open_session: OpenSession, name: str, at_signal: Any
) -> None:
    sent = fill(connection, name, 5)
    with connection.create_session(AckMode.TRANSACTED) as session:
        consumer = session.create_consumer(name)
        assert texts(consumer, 2) == sent[:2]
        add = session.done.add

        def interrupted(function: Callable[[], object]) -> None:
            add(function)
            session.done.add = add  # type: ignore[method-assign]
            signal.raise_signal(signal.SIGALRM)

        session.done.add = interrupted  # type: ignore[method-assign]
        at_signal(session.commit)
        assert texts(consumer, 1) == sent[2:3]
    with open_session() as session:
        assert texts(session.create_consumer(name), 3) == sent[2:]


def test_what_wants_its_turn_later_keeps_its_place_and_holds_up_nothing() -> None:
    thread = LoopThread()
    calls = OrderedCalls(thread)
    said: list[str] = []
    waits = [True]

    def later() -> object:
        if waits[0]:
            return NOT_YET
        said.append("later")
        return None

    def begin() -> None:
        calls.add(later)
        calls.add(lambda: said.append("beside it"))

    thread.call(begin)
    thread.call(lambda: None)
    thread.call(lambda: waits.clear() or waits.append(False))  # type: ignore[func-returns-value]
    calls.add(lambda: said.append("behind it"))
    thread.call(lambda: None)
    thread.end()
    assert said == ["beside it", "later", "behind it"]


# --- breaks


@MODES
def test_a_break_amid_a_batch_loses_nothing(
    broker: delosmq.Broker, connection: ClientConnection, name: str, mode: AckMode
) -> None:
    """What was received and not settled comes again; in AUTO and DUPS_OK it was settled."""
    sent = fill(connection, name, 50)
    loop = asyncio.new_event_loop()
    running = threading.Thread(target=loop.run_forever)
    running.start()
    proxy = Proxy(broker.openwire_port)
    asyncio.run_coroutine_threadsafe(proxy.open(), loop).result(WAIT_S)
    url = f"failover:(tcp://127.0.0.1:{proxy.port})?initialReconnectDelay=1&maxReconnectDelay=5"
    with connect(url, user=broker.user, password=broker.password) as other, other.create_session(mode) as session:
        consumer = session.create_consumer(name)
        first = receive_some(session, consumer, 10)
        session.create_temporary_queue()  # the broker has heard of them
        loop.call_soon_threadsafe(proxy.cut)
        asyncio.run_coroutine_threadsafe(proxy.ended.get(), loop).result(WAIT_S)
        session.create_temporary_queue()  # by the new connection
        assert first == sent[:10]
        assert receive_some(session, consumer, 40) == sent[10:]
        assert consumer.receive(0) is None
    asyncio.run_coroutine_threadsafe(proxy.close(), loop).result(WAIT_S)
    loop.call_soon_threadsafe(loop.stop)
    running.join()
    loop.close()
