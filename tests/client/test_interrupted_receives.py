"""A `receive()` of the blocking client that a signal handler interrupts loses and doubles nothing."""

# ACK-1

import asyncio
import random
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import count
from types import FrameType
from typing import Any

import pytest

import delosmq
from delosmq.client import AckMode, ClientConnection, ClientSession, IllegalStateError, connect
from delosmq.client.aio import AsyncConnection
from delosmq.client.aio_consumer import AsyncConsumer
from delosmq.client.threads.loop_thread import LoopThread
from delosmq.client.threads.ordered_calls import NOT_YET, OrderedCalls
from delosmq.sessions.openwire.client.acknowledgement import Delivery
from tests.client.support import Counting, OpenSession, fill, settle, texts
from tests.patience import PATIENCE_S

MODES = pytest.mark.parametrize("mode", AckMode)


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
    longest_s = 1e-3
    before = 0
    while len(found) < len(sent):
        # Where a machine is too slow to receive anything in that time, it gets more.
        longest_s = longest_s * 2 if len(found) == before else 1e-3
        before = len(found)
        try:
            signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-5, longest_s))
            while len(found) < len(sent):
                found.append(consumer.receive(PATIENCE_S))
            signal.setitimer(signal.ITIMER_REAL, 0)
        except Interrupt:
            interrupts += 1
    assert [one.text for one in found if one] == sent
    assert consumer.receive(0) is None
    assert interrupts
    settle(session)


def test_a_message_whose_receive_is_interrupted_at_its_end_is_not_acknowledged(
    connection: ClientConnection, open_session: OpenSession, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = fill(connection, name, 5)
    session = open_session()
    consumer = session.create_consumer(name)
    assert texts(consumer, 2) == sent[:2]
    add = OrderedCalls.add

    def interrupted(calls: OrderedCalls, function: Callable[[], object]) -> None:
        add(calls, function)
        for _ in range(3):
            calls.ask()
            connection.start()  # waits for the loop, which has looked
        monkeypatch.undo()
        raise Interrupt

    monkeypatch.setattr(OrderedCalls, "add", interrupted)
    with pytest.raises(Interrupt):
        consumer.receive(PATIENCE_S)
    assert texts(consumer, 3) == sent[2:]


def test_a_handler_that_receives_from_the_same_consumer_amid_a_receive_is_refused(
    connection: ClientConnection,
    open_session: OpenSession,
    name: str,
    at_signal: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent = fill(connection, name, 5)
    fill(connection, f"{name}.other", 1)
    session = open_session()
    consumer = session.create_consumer(name)
    other = session.create_consumer(f"{name}.other")
    assert texts(consumer, 1) == sent[:1]
    real = AsyncConsumer.message_of
    seen: list[str] = []

    def message_of(inner: AsyncConsumer, delivery: Delivery) -> object:
        message = real(inner, delivery)
        monkeypatch.undo()
        signal.raise_signal(signal.SIGALRM)
        return message

    def receive() -> None:
        with pytest.raises(IllegalStateError, match="DMQ9083"):
            consumer.receive(0)
        seen.extend(texts(other, 1))

    at_signal(receive)
    monkeypatch.setattr(AsyncConsumer, "message_of", message_of)
    assert texts(consumer, 4) == sent[1:]
    assert seen == ["0"]


class Late(ValueError, IndexError):
    """What a signal handler raises, and the client might take for what it caught there."""


def raising_at(moment: int) -> Callable[[FrameType, str, object], None]:
    """Raises at one of the moments at which the thread that receives would run a signal handler: a call begins, or one
    of something written in C ends."""
    moments = count(1)

    def profile(frame: FrameType, event: str, _: object) -> None:
        ours = frame.f_code.co_filename.endswith(("hand_over.py", "ordered_calls.py"))
        if ours and event in ("call", "c_return") and next(moments) == moment:
            raise Late

    return profile


@pytest.mark.parametrize("mode", [AckMode.AUTO, AckMode.TRANSACTED])
def test_an_exception_at_any_moment_of_a_receive_loses_and_doubles_nothing(
    connection: ClientConnection, open_session: OpenSession, name: str, mode: AckMode
) -> None:
    sent = fill(connection, name, 200)
    session = open_session(mode)
    consumer = session.create_consumer(name)
    found: list[str] = []
    moment, interrupts = 1, 0
    while interrupts == moment - 1:
        found += texts(consumer, 1)  # the next one is there without waiting
        sys.setprofile(raising_at(moment))
        try:
            found += texts(consumer, 1)
        except Late:
            interrupts += 1
        finally:
            sys.setprofile(None)
        moment += 1
    assert interrupts > 5
    found += texts(consumer, len(sent) - len(found))
    assert found == sent
    assert consumer.receive(0) is None
    settle(session)


def test_a_receive_that_is_interrupted_twice_is_undone_before_the_next_one(
    connection: ClientConnection,
    counting: tuple[Counting, AsyncConnection],
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent = fill(connection, name, 5)
    thread, inner = counting
    with ClientSession(thread, thread.run(inner.create_session()), inner) as session:
        consumer = session.create_consumer(name)
        session.create_temporary_queue()  # the broker's answer comes behind the messages
        thread.call(inner.start)
        assert texts(consumer, 1) == sent[:1]
        for _ in range(2):
            thread.call(lambda: None)  # that one is counted
        goes_on = threading.Event()
        thread.soon(lambda: goes_on.wait(PATIENCE_S))

        def raise_again() -> None:
            thread.at_run = goes_on.set
            raise Interrupt

        def message_of(*_: object) -> object:
            monkeypatch.undo()
            thread.at_run = raise_again
            raise Interrupt

        monkeypatch.setattr(AsyncConsumer, "message_of", message_of)
        with pytest.raises(Interrupt):
            consumer.receive(PATIENCE_S)
        found = texts(consumer, 1)
        goes_on.set()
        thread.call(lambda: None)
        assert found + texts(consumer, 3) == sent[1:]
        assert consumer.receive(0) is None


def test_a_receive_has_a_send_go_out_that_was_interrupted(
    broker: delosmq.Broker, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{broker.openwire_url}?jms.useAsyncSend=true"
    with connect(url, user=broker.user, password=broker.password) as connection, connection.create_session() as session:
        consumer = session.create_consumer(name)
        producer = session.create_producer(name)

        def interrupted() -> None:
            monkeypatch.undo()
            raise KeyboardInterrupt

        monkeypatch.setattr(session.calls, "ask", interrupted)
        with pytest.raises(KeyboardInterrupt):
            producer.send("sent")
        assert texts(consumer, 1) == ["sent"]


def test_what_a_handler_commits_amid_a_receive_is_without_that_message(
    connection: ClientConnection,
    open_session: OpenSession,
    name: str,
    at_signal: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent = fill(connection, name, 5)
    with connection.create_session(AckMode.TRANSACTED) as session:
        consumer = session.create_consumer(name)
        assert texts(consumer, 2) == sent[:2]
        add = OrderedCalls.add

        def interrupted(calls: OrderedCalls, function: Callable[[], object]) -> None:
            add(calls, function)
            monkeypatch.undo()
            signal.raise_signal(signal.SIGALRM)

        monkeypatch.setattr(OrderedCalls, "add", interrupted)
        at_signal(session.commit)
        assert texts(consumer, 1) == sent[2:3]
    with open_session() as session:
        assert texts(session.create_consumer(name), 3) == sent[2:]


def test_what_is_not_decided_yet_is_looked_at_again_and_leaves_the_loop_idle() -> None:
    thread = LoopThread()
    calls = OrderedCalls(thread)
    decided, done = threading.Event(), threading.Event()
    looks = count(1)
    last = [0]

    def look() -> object:
        last[0] = next(looks)
        if not decided.is_set():
            return NOT_YET
        done.set()
        return None

    async def turns() -> None:
        for _ in range(1_000):
            await asyncio.sleep(0)

    calls.add(look)
    thread.run(turns())
    assert last[0] < 500
    decided.set()
    assert done.wait(PATIENCE_S)
    thread.end()


def test_what_is_not_decided_yet_stays_before_what_is_given_later_and_holds_up_nothing() -> None:
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
    thread.call(lambda: waits.__setitem__(0, False))
    calls.add(lambda: said.append("behind it"))
    thread.call(lambda: None)
    thread.end()
    assert said == ["beside it", "later", "behind it"]


def test_what_is_decided_by_now_has_its_turn_before_what_the_thread_asks_for_elsewhere() -> None:
    thread = LoopThread()
    calls = OrderedCalls(thread)
    for _ in range(10):  # the timer that looks again might come in between once
        decided: list[bool] = []
        said: list[str] = []

        def receipt(decided: list[bool] = decided, said: list[str] = said) -> object:
            if not decided:
                return NOT_YET
            said.append("received")
            return None

        calls.add(receipt)
        thread.call(lambda: None)
        decided.append(True)
        assert thread.call(lambda said=said: list(said)) == ["received"]  # type: ignore[misc]
    thread.end()
