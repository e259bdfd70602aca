"""What the blocking client sends without waiting: in order, told by its id, within bounds, and never lost unnoticed."""

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

import pytest

import delosmq
from delosmq.client import (
    AckMode,
    ClientConnection,
    ClientError,
    ClientSession,
    IllegalStateError,
    ResourceAllocationError,
    TextMessage,
    Xid,
    connect,
)
from delosmq.client.aio import AsyncConnection
from delosmq.client.aio_producer import AsyncProducer, PreparedMessage
from delosmq.client.options.connect_options import plan_for
from delosmq.client.threads.loop_thread import LoopThread
from delosmq.client.threads.ordered_calls import OrderedCalls
from delosmq.client.threads.wake_up import WakeUp
from delosmq.client.transport.clocks import LinkClock
from delosmq.model.ids import WallMs
from tests.client.support import OpenSession
from tests.patience import PATIENCE_S

T = TypeVar("T")


def test_many_that_ask_for_one_look_wake_the_loop_once() -> None:
    scheduled: list[Callable[[], None]] = []
    looks: list[None] = []
    wake_up = WakeUp(scheduled.append, lambda: looks.append(None))
    for _ in range(1_000):
        wake_up.ask()
    assert len(scheduled) == 1
    scheduled.pop()()
    wake_up.ask()
    assert (len(looks), len(scheduled)) == (1, 1)


def test_what_is_asked_for_while_the_loop_looks_is_looked_at_again() -> None:
    scheduled: list[Callable[[], None]] = []
    wake_up = WakeUp(scheduled.append, lambda: wake_up.ask() if not scheduled else None)
    wake_up.ask()
    scheduled.pop()()
    assert len(scheduled) == 1


def test_an_interrupt_of_the_one_that_wakes_the_loop_leaves_it_to_the_next() -> None:
    scheduled: list[Callable[[], None]] = []

    def schedule(function: Callable[[], None]) -> None:
        scheduled.append(function)
        if len(scheduled) == 1:
            raise KeyboardInterrupt

    wake_up = WakeUp(schedule, lambda: None)
    with pytest.raises(KeyboardInterrupt):
        wake_up.ask()
    wake_up.ask()
    assert len(scheduled) == 2


def test_messages_come_in_order_with_the_ids_that_were_told(
    connection: ClientConnection, name: str, open_session: OpenSession
) -> None:
    with open_session() as session:
        producer = session.create_producer(name)
        sent = [producer.send(f"{number}", persistent=number % 10 == 9) for number in range(600)]
        consumer = session.create_consumer(name)
        found = [consumer.receive(PATIENCE_S) for _ in sent]
    assert [(one.message_id, one.text) for one in found if one] == [(one, f"{at}") for at, one in enumerate(sent)]


def test_a_message_that_was_sent_is_told_all_about_it(open_session: OpenSession, name: str) -> None:
    message = TextMessage("x")
    with open_session() as session:
        told = session.create_producer(name).send(message, persistent=False, priority=7, time_to_live_ms=60_000)
    assert (message.message_id, message.priority, message.persistent) == (told, 7, False)
    assert message.expiration_ms == message.timestamp_ms + 60_000
    assert str(message.destination) == f"queue://{name}"


def test_a_message_may_be_changed_and_sent_again_at_once(open_session: OpenSession, name: str) -> None:
    with open_session() as session:
        producer = session.create_producer(name)
        message = TextMessage("x")
        for number in range(50):
            message.properties["number"] = number
            producer.send(message, persistent=False)
        consumer = session.create_consumer(name)
        found = [consumer.receive(PATIENCE_S) for _ in range(50)]
    assert [one.properties["number"] for one in found if one] == list(range(50))


def test_a_transaction_has_all_that_was_sent_before_its_end(
    connection: ClientConnection, name: str, open_session: OpenSession
) -> None:
    with open_session(AckMode.TRANSACTED) as session:
        producer = session.create_producer(name)
        for batch in range(4):
            for number in range(25):
                producer.send(f"{batch} {number}")
            if batch % 2:
                session.rollback()
            else:
                session.commit()
    seen = [message.text for message in connection.messages(name, timeout_s=0.1)]
    assert seen == [f"{batch} {number}" for batch in (0, 2) for number in range(25)]


@pytest.mark.parametrize("persistent", [False, True])
def test_what_can_not_be_sent_is_refused_at_once(broker: delosmq.Broker, name: str, persistent: bool) -> None:
    url = f"{broker.openwire_url}?wireFormat.maxFrameSize=5000"
    with connect(url, user=broker.user, password=broker.password) as connection:
        session = connection.create_session(AckMode.TRANSACTED)
        producer = session.create_producer(name)
        with pytest.raises(ResourceAllocationError, match="DMQ9008"):
            producer.send("x" * 10_000, persistent=persistent)
        producer.send("small", persistent=persistent)
        session.commit()
        session.close()
        with pytest.raises(IllegalStateError, match="DMQ9001"):
            producer.send("late", persistent=persistent)
        assert [message.text for message in connection.messages(name, timeout_s=0.1)] == ["small"]


def test_a_transaction_whose_message_could_not_be_sent_is_not_committed_as_if_it_were(
    broker: delosmq.Broker, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when another broker, found after a break, takes smaller messages."""
    url = f"{broker.openwire_url}?wireFormat.maxFrameSize=5000"
    heard: list[str] = []
    told = threading.Event()

    def hear(error: ClientError) -> None:
        heard.append(error.code)
        told.set()

    with connect(url, user=broker.user, password=broker.password) as connection:
        connection.set_exception_listener(hear)
        session = connection.create_session(AckMode.TRANSACTED)
        producer = session.create_producer(name)
        monkeypatch.setattr(PreparedMessage, "fits_into", lambda *_: True)
        producer.send("good")
        producer.send("x" * 10_000)
        with pytest.raises(ResourceAllocationError, match="DMQ9008"):
            session.commit()
        session.rollback()
        producer.send("better")
        session.commit()
        assert [message.text for message in connection.messages(name, timeout_s=0.1)] == ["better"]
        assert told.wait(PATIENCE_S)
    assert heard == ["DMQ9008"]


class Busy(LoopThread):
    """Tells when a caller waits."""

    waits = threading.Event()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        self.waits.set()
        return super().run(work)


def test_so_many_are_on_their_way_then_the_next_one_waits(broker: delosmq.Broker, name: str) -> None:
    thread = Busy()
    connection = thread.run(
        AsyncConnection.open(plan_for(broker.openwire_url, user=broker.user, password=broker.password))
    )
    inner = thread.run(connection.create_session())
    session = ClientSession(thread, inner, connection)
    producer = session.create_producer(name)
    go_on = threading.Event()
    thread.soon(go_on.wait)
    thread.waits.clear()
    sent: list[str] = []
    sender = threading.Thread(
        target=lambda: sent.extend(producer.send(f"{at}", persistent=False) for at in range(1_000))
    )
    sender.start()
    assert thread.waits.wait(PATIENCE_S)
    on_their_way = len(session.calls)
    go_on.set()
    sender.join()
    session.close()
    thread.run(connection.close())
    thread.end()
    assert on_their_way == 256
    with connect(broker.openwire_url, user=broker.user, password=broker.password) as other:
        assert [one.message_id for one in other.messages(name, timeout_s=0.1)] == sent


@pytest.fixture
def at_sigterm() -> Iterator[Callable[[Callable[[], object]], None]]:
    before = signal.getsignal(signal.SIGTERM)

    def set_handler(function: Callable[[], object]) -> None:
        def handle(*_: object) -> None:
            function()

        signal.signal(signal.SIGTERM, handle)

    yield set_handler
    signal.signal(signal.SIGTERM, before)


def test_a_signal_handler_that_sends_amid_a_send_keeps_numbers_in_the_order_of_messages(
    open_session: OpenSession,
    name: str,
    at_sigterm: Callable[[Callable[[], object]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A broker may take a lower number after a higher one for a message that came already."""
    real = AsyncProducer.stamp_to_post

    def stamp(producer: AsyncProducer, prepared: PreparedMessage) -> int:
        number = real(producer, prepared)
        monkeypatch.undo()
        signal.raise_signal(signal.SIGTERM)
        return number

    with open_session() as session:
        producer = session.create_producer(name)
        at_sigterm(lambda: producer.send("by the handler", persistent=False))
        monkeypatch.setattr(AsyncProducer, "stamp_to_post", stamp)
        told = producer.send("by the program", persistent=False)
        consumer = session.create_consumer(name)
        found = [consumer.receive(PATIENCE_S) for _ in range(2)]
    assert [one.text for one in found if one] == ["by the handler", "by the program"]
    numbers = [int(one.message_id.rpartition(":")[2]) for one in found if one]
    assert numbers == sorted(numbers)
    assert found[1] is not None
    assert found[1].message_id == told


def test_a_handler_that_sends_while_a_number_is_given_gets_another_one(
    open_session: OpenSession,
    name: str,
    at_sigterm: Callable[[Callable[[], object]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = LinkClock.wall_ms

    def wall_ms(clock: LinkClock) -> WallMs:
        if threading.current_thread() is threading.main_thread():
            monkeypatch.undo()
            signal.raise_signal(signal.SIGTERM)
        return real(clock)

    ids: list[str] = []
    with open_session() as session:
        producer = session.create_producer(name)
        at_sigterm(lambda: ids.append(producer.send("by the handler", persistent=False)))
        monkeypatch.setattr(LinkClock, "wall_ms", wall_ms)
        ids.append(producer.send("by the program", persistent=False))
        consumer = session.create_consumer(name)
        found = [consumer.receive(PATIENCE_S) for _ in range(2)]
    assert len(set(ids)) == 2
    assert [one.message_id for one in found if one] == ids


def test_threads_that_send_in_one_session_are_told_so_and_no_two_messages_have_one_id(
    open_session: OpenSession, name: str
) -> None:
    ids: list[str] = []
    refused: list[str] = []
    before = sys.getswitchinterval()

    def send() -> None:
        for _ in range(500):
            try:
                ids.append(producer.send("x", persistent=False))
            except IllegalStateError as error:
                refused.append(error.code)

    with open_session() as session:
        producer = session.create_producer(name)
        threads = [threading.Thread(target=send) for _ in range(4)]
        sys.setswitchinterval(1e-5)
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            sys.setswitchinterval(before)
        producer.send("the session is free again", persistent=False)
    assert len(ids) == len(set(ids))
    assert set(refused) <= {"DMQ9081"}


@pytest.mark.parametrize("commits", [True, False])
def test_an_interrupted_send_belongs_to_the_transaction_that_it_interrupted(
    open_session: OpenSession, name: str, *, commits: bool
) -> None:
    with open_session(AckMode.TRANSACTED) as session:
        producer = session.create_producer(name)
        put = session.calls.put

        def interrupted(function: Callable[[], object]) -> None:
            put(function)
            session.calls.put = put
            raise KeyboardInterrupt

        session.calls.put = interrupted
        with pytest.raises(KeyboardInterrupt):
            producer.send("interrupted")
        if commits:
            session.commit()
        else:
            session.rollback()
        producer.send("next")
        session.rollback()
        producer.send("last")
        session.commit()
    with open_session() as other:
        consumer = other.create_consumer(name)
        expected = ["interrupted", "last"] if commits else ["last"]
        assert [one.text for one in (consumer.receive(PATIENCE_S) for _ in expected) if one] == expected
        assert consumer.receive(0) is None


def test_a_transaction_that_lacks_a_message_stays_uncommitted_however_often_it_is_tried(
    broker: delosmq.Broker, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{broker.openwire_url}?wireFormat.maxFrameSize=5000"
    with connect(url, user=broker.user, password=broker.password) as connection:
        session = connection.create_session(AckMode.TRANSACTED)
        producer = session.create_producer(name)
        monkeypatch.setattr(PreparedMessage, "fits_into", lambda *_: True)
        producer.send("good")
        producer.send("x" * 10_000)
        for _ in range(2):
            with pytest.raises(ResourceAllocationError, match="DMQ9008"):
                session.commit()
        assert [*connection.messages(name, timeout_s=0.1)] == []


def test_a_branch_of_a_distributed_transaction_waits_for_each_message(broker: delosmq.Broker, name: str) -> None:
    url = f"{broker.openwire_url}?jms.useAsyncSend=true"
    with connect(url, user=broker.user, password=broker.password) as connection:
        session = connection.create_xa_session()
        producer = session.create_producer(name)
        branch = Xid(1, b"transaction", b"branch")
        session.xa_resource.start(branch)
        for persistent in (True, False):
            producer.send("one", persistent=persistent)
            assert len(session.calls) == 0
        session.xa_resource.end(branch)
        session.xa_resource.commit(branch, one_phase=True)
        assert len([*connection.messages(name, timeout_s=0.1)]) == 2


def test_one_call_that_fails_leaves_the_others_their_order() -> None:
    thread = LoopThread()
    calls = OrderedCalls(thread)
    said: list[str] = []

    def fail() -> None:
        raise LookupError("on purpose")

    def begin() -> None:
        calls.add(lambda: said.append("first"))
        calls.add(fail)
        calls.add(lambda: said.append("second"))
        thread.soon(lambda: said.append("what was asked for later"))

    errors: list[object] = []
    thread.call(lambda: thread.loop.set_exception_handler(lambda _, context: errors.append(context.get("exception"))))
    thread.call(begin)
    thread.call(lambda: None)
    thread.call(lambda: None)
    thread.end()
    assert said == ["first", "second", "what was asked for later"]
    assert [type(error) for error in errors] == [LookupError]


def test_a_program_that_ends_without_a_close_has_sent_what_it_sent(broker: delosmq.Broker, name: str) -> None:
    program = (
        "import sys, delosmq.client as client\n"
        "connection = client.connect(sys.argv[1], user=sys.argv[2], password=sys.argv[3])\n"
        "producer = connection.create_session().create_producer(sys.argv[4])\n"
        "for number in range(50):\n"
        "    producer.send(str(number), persistent=False)\n"
        "sys.exit()\n"
    )
    words = [broker.openwire_url, broker.user, broker.password, name]
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, *words], timeout=60, check=False, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    with connect(broker.openwire_url, user=broker.user, password=broker.password) as connection:
        texts = [one.text for one in connection.messages(name, timeout_s=0.1)]
    assert texts == [str(number) for number in range(50)]
