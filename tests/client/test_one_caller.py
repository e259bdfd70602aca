"""A session is for one thread, or one task, at a time: two that use it at once are told so."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Self

import pytest

import delosmq
from delosmq.client import AckMode, ClientConnection, ClientSession, IllegalStateError, Xid
from delosmq.client.aio import AsyncConnection
from delosmq.client.aio_session import AsyncSession
from delosmq.testing import BrokerFixture
from tests.client.support import OpenAsync, OpenSession
from tests.patience import PATIENCE_S

TWO = pytest.raises(IllegalStateError, match=r"DMQ9081: another (thread|task) is at work in this session")


@pytest.fixture
def threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor()


class Timeout(float):
    """Notices that it is looked at: the call that has it is under way."""

    def __new__(cls, value: float, looked_at: threading.Event) -> Self:
        made = super().__new__(cls, value)
        made.looked_at = looked_at
        return made

    looked_at: threading.Event

    def __lt__(self, other: float) -> bool:
        self.looked_at.set()
        return float(self) < other

    __hash__ = float.__hash__


class Receiving:
    """A thread that waits for a message."""

    def __init__(self, session: ClientSession, name: str, threads: ThreadPoolExecutor) -> None:
        self.session = session
        self.consumer = session.create_consumer(name)
        self.producer = session.create_producer(name)
        self.browser = session.create_browser(f"{name}.browsed")
        waits = threading.Event()
        self.received = threads.submit(self.consumer.receive, Timeout(PATIENCE_S, waits))
        assert waits.wait(PATIENCE_S)

    def text(self) -> str:
        message = self.received.result(PATIENCE_S)
        return "" if message is None else message.text


CALLS: list[Callable[[Receiving], object]] = [
    lambda work: work.producer.send("x"),
    lambda work: work.consumer.receive(0),
    lambda work: work.session.create_producer("other"),
    lambda work: work.session.create_consumer("other"),
    lambda work: work.session.create_temporary_queue(),
    lambda work: work.session.acknowledge(),
    lambda work: work.session.recover(),
    lambda work: work.consumer.acknowledge(),
    lambda work: work.consumer.set_listener(print),
    lambda work: list(work.session.create_browser("other")),
    lambda work: list(work.browser),
]


def test_a_thread_that_uses_a_session_while_another_one_waits_in_it_is_told(
    connection: ClientConnection, open_session: OpenSession, name: str, threads: ThreadPoolExecutor
) -> None:
    session = open_session(AckMode.CLIENT)
    work = Receiving(session, name, threads)
    for call in CALLS:
        with TWO:
            call(work)
    assert not work.received.done()
    connection.send(name, "for the one that waits")
    assert work.text() == "for the one that waits"
    session.acknowledge()  # now it is free


def test_a_thread_that_starts_or_ends_a_branch_while_another_one_waits_in_it_is_told(
    connection: ClientConnection, name: str, threads: ThreadPoolExecutor
) -> None:
    with connection.create_xa_session() as session:
        mine, other = Xid(7, name.encode()[-64:]), Xid(8, name.encode()[-64:])
        resource = session.xa_resource
        resource.start(mine)
        work = Receiving(session, name, threads)
        with TWO:
            resource.end(mine)
        with TWO:
            resource.start(other)
        connection.send(name, "for the one that waits")
        assert work.text() == "for the one that waits"
        resource.end(mine)
        resource.rollback(mine)


def test_a_coordinator_completes_branches_whatever_a_session_of_another_thread_does(
    connection: ClientConnection, name: str, threads: ThreadPoolExecutor
) -> None:
    with connection.create_xa_session() as session:
        done, mine = Xid(7, name.encode()[-64:]), Xid(8, name.encode()[-64:])
        resource = session.xa_resource
        resource.start(done)
        session.create_producer(f"{name}.out").send("x")
        resource.end(done)
        resource.start(mine)
        work = Receiving(session, name, threads)
        assert resource.prepare(done)
        assert done in resource.recover()
        resource.commit(done)
        connection.send(name, "for the one that waits")
        assert work.text() == "for the one that waits"
        resource.end(mine)
        resource.rollback(mine)
        assert [message.text for message in connection.messages(f"{name}.out", timeout_s=0)] == ["x"]


@pytest.mark.parametrize("whole", [True, False], ids=["session", "consumer"])
def test_any_thread_may_close(open_session: OpenSession, name: str, threads: ThreadPoolExecutor, whole: bool) -> None:
    session = open_session()
    work = Receiving(session, name, threads)
    (session if whole else work.consumer).close()
    assert work.text() == ""


def test_a_message_may_be_acknowledged_by_the_thread_that_works_on_it(
    connection: ClientConnection, open_session: OpenSession, name: str, threads: ThreadPoolExecutor
) -> None:
    session = open_session(AckMode.INDIVIDUAL)
    consumer = session.create_consumer(name)
    connection.send(name, "a")
    message = consumer.receive(PATIENCE_S)
    assert message is not None
    work = Receiving(session, f"{name}.other", threads)
    message.acknowledge()
    connection.send(f"{name}.other", "b")
    assert work.text() == "b"
    session.close()
    assert list(connection.messages(name, timeout_s=0)) == []


def test_listeners_use_their_session_whatever_others_do(
    connection: ClientConnection, open_session: OpenSession, name: str
) -> None:
    session = open_session(AckMode.TRANSACTED)
    producer = session.create_producer(f"{name}.out")
    failures: list[BaseException] = []
    heard = threading.Semaphore(0)

    def listen(message: delosmq.client.JmsMessage) -> None:
        try:
            producer.send(message.text)
            session.commit()
        except BaseException as error:
            failures.append(error)
        heard.release()

    session.create_consumer(name).set_listener(listen)
    for number in range(50):
        connection.send(name, f"m{number}")
        session.create_producer("other").close()
    for _ in range(50):
        assert heard.acquire(timeout=PATIENCE_S)
    assert failures == []


def test_a_completion_uses_its_session_whatever_others_do(open_session: OpenSession, name: str) -> None:
    session = open_session()
    producer = session.create_producer(name)
    again = session.create_producer(f"{name}.again")
    failures: list[BaseException] = []

    def complete(message_id: str, error: BaseException | None) -> None:
        try:
            again.send(message_id)
        except BaseException as failure:
            failures.append(failure)

    for number in range(50):
        producer.send(f"m{number}", on_completion=complete)
        producer.send("waits for the broker")
    session.close()
    assert failures == []


def test_threads_share_a_connection(connection: ClientConnection, name: str, threads: ThreadPoolExecutor) -> None:
    for sent in [threads.submit(connection.send, name, f"m{number}") for number in range(50)]:
        assert sent.result(PATIENCE_S)


def test_threads_use_a_session_one_after_the_other(open_session: OpenSession, name: str) -> None:
    producer = open_session().create_producer(name)
    for number in range(3):
        with ThreadPoolExecutor(1) as other:
            assert other.submit(producer.send, f"m{number}").result(PATIENCE_S)


# --- asyncio


async def test_a_task_that_uses_a_session_while_another_one_waits_in_it_is_told(
    aio: AsyncConnection, open_async: OpenAsync, name: str
) -> None:
    session = await open_async(AckMode.CLIENT)
    consumer = await session.create_consumer(name)
    producer = await session.create_producer(name)
    waiting = asyncio.ensure_future(consumer.receive(PATIENCE_S))
    await asyncio.sleep(0)
    for call in (
        lambda: producer.send("x"),
        lambda: consumer.receive(0),
        lambda: session.create_producer("other"),
        lambda: session.create_consumer("other"),
        lambda: session.create_temporary_queue(),
        lambda: session.recover(),
        lambda: consumer.set_listener(print),
    ):
        with TWO:
            await call()
    for plain in (session.acknowledge, consumer.acknowledge):
        with TWO:
            plain()
    await aio.send(name, "for the one that waits")
    message = await waiting
    assert message is not None
    assert message.text == "for the one that waits"
    message.acknowledge()
    await session.recover()


async def test_a_task_that_starts_or_ends_a_branch_while_another_one_waits_in_it_is_told(
    aio: AsyncConnection, name: str
) -> None:
    async with await aio.create_xa_session() as session:
        branch = Xid(7, name.encode()[-64:])
        resource = session.xa_resource
        await resource.start(branch)
        consumer = await session.create_consumer(name)
        waiting = asyncio.ensure_future(consumer.receive(PATIENCE_S))
        await asyncio.sleep(0)
        with TWO:
            await resource.end(branch)
        with TWO:
            await resource.start(Xid(8, name.encode()[-64:]))
        assert branch not in await resource.recover()
        await aio.send(name, "x")
        assert await waiting is not None
        ending = asyncio.ensure_future(resource.end(branch))
        await asyncio.sleep(0)
        with TWO:
            await session.create_producer(name)
        await ending
        await resource.rollback(branch)


@pytest.mark.parametrize("mode", [AckMode.AUTO, AckMode.TRANSACTED])
async def test_two_tasks_that_send_or_commit_at_once_are_told(open_async: OpenAsync, name: str, mode: AckMode) -> None:
    session = await open_async(mode)
    producer = await session.create_producer(name)
    first: asyncio.Future[None] | asyncio.Future[str]
    second: asyncio.Future[None] | asyncio.Future[str]
    if mode == AckMode.TRANSACTED:
        await producer.send("x")
        first, second = asyncio.ensure_future(session.commit()), asyncio.ensure_future(session.rollback())
    else:
        first, second = asyncio.ensure_future(producer.send("x")), asyncio.ensure_future(producer.send("y"))
    with TWO:
        await second
    await first
    await producer.send("z")


async def test_what_was_cancelled_leaves_the_session_to_others(open_async: OpenAsync, name: str) -> None:
    session = await open_async()
    consumer = await session.create_consumer(name)
    for _ in range(3):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(consumer.receive(), 0.001)
    waiting = asyncio.ensure_future(consumer.receive())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait((waiting,))
    assert await consumer.receive(0) is None


@pytest.mark.parametrize("whole", [True, False], ids=["session", "consumer"])
async def test_any_task_may_close(open_async: OpenAsync, name: str, whole: bool) -> None:
    session = await open_async()
    consumer = await session.create_consumer(name)
    waiting = asyncio.ensure_future(consumer.receive(PATIENCE_S))
    await asyncio.sleep(0)
    await (session if whole else consumer).close()
    assert await waiting is None


async def test_listeners_and_completions_use_their_session_whatever_others_do() -> None:
    with BrokerFixture(ports=False) as kit:
        async with kit.connect_async() as connection, await connection.create_session() as session:
            await _listen(session)
            for number in range(20):
                await connection.send("orders", f"m{number}")
                await (await session.create_producer("other")).close()
            await kit.queue("out").wait_for_async(messages=40)


async def _listen(session: AsyncSession) -> None:
    out = await session.create_producer("out")

    async def completed(message_id: str, error: Exception | None) -> None:
        await out.send(message_id)

    async def listen(message: delosmq.client.JmsMessage) -> None:
        await out.send(message.text, on_completion=completed)

    await (await session.create_consumer("orders")).set_listener(listen)
