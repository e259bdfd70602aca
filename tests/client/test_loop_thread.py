"""The blocking client's loop: signals reach those who wait for it, and never it itself."""

import asyncio
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

import delosmq
from delosmq.client import AckMode, ClientConnection, ClientSession, MessageProducer, connect
from delosmq.client.threads.loop_thread import LoopCall, LoopThread
from delosmq.sessions.client_errors import ClientError, IllegalStateError
from tests.patience import PATIENCE_S


@pytest.fixture
def thread() -> Iterator[LoopThread]:
    made = LoopThread()
    yield made
    made.end()


@pytest.fixture
def eager_threads() -> Iterator[None]:
    """Threads take turns after each few instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


OnSignal = Callable[[Callable[[], object]], None]


@pytest.fixture
def on_signal() -> Iterator[OnSignal]:
    """Has a function called in this thread, wherever it is, at SIGTERM."""
    before = signal.getsignal(signal.SIGTERM)
    yield lambda function: void(signal.signal(signal.SIGTERM, lambda *_: void(function())))
    signal.signal(signal.SIGTERM, before)


def signal_main_thread() -> None:
    ident = threading.main_thread().ident
    assert ident is not None
    signal.pthread_kill(ident, signal.SIGTERM)


def void(_: object) -> None: ...


def interrupt() -> None:
    raise KeyboardInterrupt


async def doubled(number: int) -> int:
    return 2 * number


def test_all_is_done_in_the_thread_of_the_loop(thread: LoopThread) -> None:
    async def here() -> int:
        return threading.get_ident()

    assert thread.run(here()) == thread.call(threading.get_ident) != threading.get_ident()
    assert thread.call(asyncio.get_running_loop) is thread.loop


def test_errors_come_to_the_caller(thread: LoopThread) -> None:
    async def fail() -> None:
        raise ValueError("at once")

    async def fail_later() -> None:
        await asyncio.sleep(0.001)
        raise ValueError("later")

    def fail_now() -> None:
        raise ValueError("called")

    with pytest.raises(ValueError, match="at once"):
        thread.run(fail())
    with pytest.raises(ValueError, match="later"):
        thread.run(fail_later())
    with pytest.raises(ValueError, match="called"):
        thread.call(fail_now)
    assert thread.run(doubled(1)) == 2


async def test_it_may_be_called_inside_of_another_loop(thread: LoopThread) -> None:
    ours = asyncio.get_running_loop()
    assert thread.run(doubled(3)) == 6
    assert asyncio.get_running_loop() is ours


def test_a_caller_that_waits_is_told_when_the_thread_ends() -> None:
    thread = LoopThread()
    waits, ended = threading.Event(), threading.Event()

    async def wait() -> None:
        waits.set()
        await asyncio.Event().wait()

    def ask() -> None:
        with pytest.raises(IllegalStateError, match="DMQ9001"):
            thread.run(wait())
        ended.set()

    waiting = threading.Thread(target=ask)
    waiting.start()
    assert waits.wait(PATIENCE_S)
    thread.end()
    assert ended.wait(PATIENCE_S)
    waiting.join()
    with pytest.raises(IllegalStateError, match="DMQ9001"):
        thread.run(doubled(1))
    with pytest.raises(IllegalStateError, match="DMQ9001"):
        thread.call(threading.get_ident)


def test_what_an_interrupted_caller_asked_for_is_cancelled(thread: LoopThread, on_signal: OnSignal) -> None:
    on_signal(interrupt)
    cancelled = threading.Event()

    async def wait() -> None:
        signal_main_thread()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    with pytest.raises(KeyboardInterrupt):
        thread.run(wait())
    assert cancelled.wait(PATIENCE_S)
    assert thread.run(doubled(2)) == 4


def test_a_call_that_is_cancelled_before_its_first_step_ends(thread: LoopThread) -> None:
    """As when the thread ends just after it was asked."""
    call = LoopCall(doubled(1))
    thread.soon(lambda: (call.start(), call.cancel()))  # type: ignore[func-returns-value]
    with pytest.raises(IllegalStateError, match="DMQ9001"):
        call.wait()


def signal_at_next_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes when a socket is about to write what it was given."""
    real = socket.socket.send

    def send(to: socket.socket, data: bytes) -> int:
        if len(data) > 1:  # else it wakes a loop
            monkeypatch.undo()
            signal_main_thread()
        return real(to, data)

    monkeypatch.setattr(socket.socket, "send", send)


def test_a_signal_handler_closes_the_connection_in_the_midst_of_a_send(
    broker: delosmq.Broker, name: str, on_signal: OnSignal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As services do at SIGTERM."""
    connection = connect(broker.openwire_url, user=broker.user, password=broker.password)
    on_signal(connection.close)
    signal_at_next_write(monkeypatch)
    with suppress(ClientError):  # the end came first
        connection.send(name, "x", persistent=False)
    assert connection.closed


def test_an_interrupt_in_the_midst_of_a_send_breaks_nothing_off(
    connection: ClientConnection, name: str, on_signal: OnSignal, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connection.create_session(AckMode.TRANSACTED) as session:
        on_signal(interrupt)
        producer = session.create_producer(name)
        signal_at_next_write(monkeypatch)
        with pytest.raises(KeyboardInterrupt):
            send_and_undo(session, producer)
        session.rollback()
        producer.send("y")
        session.commit()
    assert next(connection.messages(name)).text == "y"


def send_and_undo(session: ClientSession, producer: MessageProducer) -> None:
    """The message is written while this waits for the second."""
    producer.send("x")
    session.rollback()


@pytest.mark.usefixtures("eager_threads")
def test_threads_of_one_connection_lose_nothing(
    broker: delosmq.Broker, connection: ClientConnection, name: str
) -> None:
    threads, each = 4, 50
    received: list[str] = []

    def work(number: int) -> None:
        with connection.create_session() as session:
            producer = session.create_producer(name)
            consumer = session.create_consumer(f"{name}?consumer.prefetchSize=1")
            for at in range(each):
                producer.send(f"{number} {at}", persistent=at % 2 == 0)
                message = consumer.receive(PATIENCE_S)
                assert message is not None
                received.append(message.text)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(received) == sorted(f"{number} {at}" for number in range(threads) for at in range(each))


# Python warns of a fork while there are threads; this is about who does it all the same.
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_of_the_process_is_told_that_the_connection_is_its_parents(
    connection: ClientConnection, name: str
) -> None:
    with connection.create_session() as session:
        consumer = session.create_consumer(name)
        producer = session.create_producer(name)
        for text in "abc":
            producer.send(text)
        first = consumer.receive(PATIENCE_S)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            for call in (
                lambda: consumer.receive(0),
                lambda: producer.send("d", persistent=False),
                lambda: connection.send(name, "d"),
                lambda: session.recover(),
                lambda: connection.create_session(),
            ):
                try:
                    call()
                except IllegalStateError as error:
                    os.write(writing, f"{error.code} ".encode())
            for used in (consumer, producer, session, connection):
                used.close()
            os.write(writing, b"closed")
            os.kill(os.getpid(), signal.SIGKILL)
        os.close(writing)
        with os.fdopen(reading) as told:
            assert told.read() == "DMQ9084 " * 5 + "closed"
        os.waitpid(child, 0)
        rest = [consumer.receive(PATIENCE_S) for _ in range(2)]
        assert [one.text for one in (first, *rest) if one] == ["a", "b", "c"]
        assert consumer.receive(0) is None
