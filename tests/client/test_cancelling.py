"""What waits may be cancelled at each of its awaits, before the answer and when it is there: no message is lost."""

# ACK-1, ACK-5

import asyncio
from collections.abc import AsyncIterator, Coroutine, Generator, Iterator
from functools import partial
from itertools import count
from typing import Any

import pytest

from delosmq.client import AckMode, JmsMessage
from delosmq.client.aio import AsyncConnection
from delosmq.client.aio_session import AsyncSession
from delosmq.sessions.client_errors import ClientError
from delosmq.testing import BrokerFixture
from tests.patience import PATIENCE_S

FAST = "?jms.redeliveryPolicy.initialRedeliveryDelay=0"


class Step:
    """Work that is cancelled at one of its awaits.

    Attributes:
        at: its number.
        answered: cancelled when what is awaited has come, and before the work goes on; else when it begins to wait.
        reached: there was such an await.
    """

    def __init__(self, at: int, *, answered: bool) -> None:
        self.at = at
        self.answered = answered
        self.reached = False

    def _cancel(self, awaited: object) -> None:
        self.reached = True
        task = asyncio.current_task()
        assert task is not None
        if self.answered and isinstance(awaited, asyncio.Future):
            awaited.add_done_callback(lambda _: task.cancel())
        else:
            task.cancel()

    async def run(self, work: Coroutine[Any, Any, object]) -> bool:
        """Whether the work came to its end in spite of it."""
        try:
            await asyncio.ensure_future(_stepped(self, work))
        except asyncio.CancelledError:
            return False
        return True

    def drive(self, work: Coroutine[Any, Any, object]) -> Generator[Any, None, object]:
        go_on = partial(work.send, None)
        for number in count():
            try:
                awaited = go_on()
            except StopIteration as end:
                return end.value
            if number == self.at:
                self._cancel(awaited)
            try:
                yield awaited
            except BaseException as error:
                go_on = partial(work.throw, error)
            else:
                go_on = partial(work.send, None)
        raise AssertionError


class _Stepping:
    def __init__(self, step: Step, work: Coroutine[Any, Any, object]) -> None:
        self._step = step
        self._work = work

    def __await__(self) -> Generator[Any, None, object]:
        return self._step.drive(self._work)


async def _stepped(step: Step, work: Coroutine[Any, Any, object]) -> object:
    return await _Stepping(step, work)


@pytest.fixture(scope="module")
def kit() -> Iterator[BrokerFixture]:
    with BrokerFixture() as broker:
        yield broker


@pytest.fixture
async def connection(kit: BrokerFixture) -> AsyncIterator[AsyncConnection]:
    async with kit.connect_async(kit.openwire_url + FAST) as made:
        yield made


@pytest.fixture(params=[False, True], ids=["before the answer", "with the answer"])
def answered(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def steps(*, answered: bool, least: int) -> Iterator[Step]:
    """One for each await, and one behind the last."""
    for at in count():
        step = Step(at, answered=answered)
        yield step
        if not step.reached:
            assert at >= least
            return


async def received(session: AsyncSession, name: str, many: int) -> list[str]:
    async with await session.create_consumer(name) as consumer:
        found = [await consumer.receive(PATIENCE_S) for _ in range(many)]
    return [message.text for message in found if message is not None]


async def synced(session: AsyncSession) -> None:
    """The broker has done all that it was told before."""
    await session.delete_temporary(await session.create_temporary_queue())


async def test_a_loop_over_messages(kit: BrokerFixture, connection: AsyncConnection, name: str, answered: bool) -> None:
    """In the wait for the next one and in a turn; what a turn did not end comes again."""
    texts = ["a", "b", "c"]
    for step in steps(answered=answered, least=3 + 2 * len(texts)):
        queue = f"{name}.{step.at}"
        for text in texts:
            await connection.send(queue, text)
        done: list[str] = []

        async def work(queue: str = queue, done: list[str] = done) -> None:
            async for message in connection.messages(queue, timeout_s=0.01):
                await asyncio.sleep(0)
                done.append(message.text)
                await asyncio.sleep(0)

        await step.run(work())
        await kit.queue(queue).wait_for_async(consumers=0, delivering=0)
        left = kit.queue(queue).texts
        # Only the last one may come again, whose turn had done its work and was not over.
        assert [*done, *left] == texts or [*done[:-1], *left] == texts


async def test_a_commit(kit: BrokerFixture, connection: AsyncConnection, name: str, answered: bool) -> None:
    """It happens as a whole or not at all, and its session goes on."""
    session = await connection.create_session(AckMode.TRANSACTED)
    producer = await session.create_producer()
    for step in steps(answered=answered, least=1):
        source, target = f"{name}.source.{step.at}", f"{name}.target.{step.at}"
        await connection.send(source, "x")
        assert await received(session, source, 1) == ["x"]
        await producer.send("x", destination=target)
        await step.run(session.commit())
        await synced(session)
        assert (kit.queue(source).counts.messages, kit.queue(target).counts.messages) == (0, 1)
        await producer.send("next", destination=target)
        await session.commit()
        assert kit.queue(target).texts == ["x", "next"]
    await session.close()


async def test_a_rollback(kit: BrokerFixture, connection: AsyncConnection, name: str, answered: bool) -> None:
    """What was received comes again, and what was sent is not there."""
    session = await connection.create_session(AckMode.TRANSACTED)
    producer = await session.create_producer()
    for step in steps(answered=answered, least=1):
        source, target = f"{name}.source.{step.at}", f"{name}.target.{step.at}"
        await connection.send(source, "x")
        consumer = await session.create_consumer(source)
        assert await consumer.receive(PATIENCE_S) is not None
        await producer.send("x", destination=target)
        await step.run(session.rollback())
        again = await consumer.receive(PATIENCE_S)
        assert again is not None
        assert (again.text, again.delivery_count) == ("x", 2)
        await session.commit()
        assert kit.queue(source).counts.messages == kit.queue(target).counts.messages == 0
    await session.close()


@pytest.mark.parametrize("mode", [AckMode.AUTO, AckMode.TRANSACTED])
async def test_a_send(
    kit: BrokerFixture, connection: AsyncConnection, name: str, mode: AckMode, answered: bool
) -> None:
    """It is sent once or not at all, and the next one follows it."""
    session = await connection.create_session(mode)
    producer = await session.create_producer(name)
    sure, least = [], 0 if mode == AckMode.TRANSACTED else 1  # in a transaction it waits for nothing
    for step in steps(answered=answered, least=least):
        if await step.run(producer.send(f"m{step.at}")):
            sure.append(f"m{step.at}")
        await producer.send("next")
        if mode == AckMode.TRANSACTED:
            await session.commit()
        texts = kit.queue(name).texts
        assert set(sure) <= set(texts)
        assert [text for text in texts if text != "next"] == [f"m{number}" for number in range(step.at + 1)]
        assert texts[-1] == "next"
    await session.close()


async def test_the_first_send_of_a_connection(kit: BrokerFixture, name: str, answered: bool) -> None:
    for step in steps(answered=answered, least=2):
        queue = f"{name}.{step.at}"
        async with kit.connect_async() as connection:
            sent = await step.run(connection.send(queue, "x"))
            await connection.send(queue, "next")
        texts = kit.queue(queue).texts
        assert texts in (["x", "next"], *([] if sent else [["next"]]))


async def test_a_request(kit: BrokerFixture, name: str, answered: bool) -> None:
    """The next one has its own reply, and all share one queue for them."""
    queues = set(kit.queue_names)
    for step in steps(answered=answered, least=2):
        async with kit.connect_async() as connection, kit.connect_async() as service:

            async def serve(service: AsyncConnection = service) -> None:
                async for request in service.messages(name):
                    await service.reply(request, request.text.upper())

            serving = asyncio.ensure_future(serve())
            await step.run(connection.request(name, "first", timeout_s=PATIENCE_S))
            reply = await connection.request(name, "second", timeout_s=PATIENCE_S)
            assert reply.text == "SECOND"
            assert len(set(kit.queue_names) - queues - {name}) == 1
            serving.cancel()
            await asyncio.wait((serving,))


@pytest.mark.parametrize("what", ["session", "connection"])
@pytest.mark.parametrize("listens", [False, True])
async def test_a_close(kit: BrokerFixture, name: str, what: str, listens: bool, answered: bool) -> None:
    """It ends all the same: what was sent ahead, and what a listener was at work on, goes back."""
    for step in steps(answered=answered, least=2 if listens else 1):
        queue = f"{name}.{step.at}"
        async with kit.connect_async() as connection:
            for text in ("a", "b", "c"):
                await connection.send(queue, text)
            session = await connection.create_session(AckMode.CLIENT)
            consumer = await session.create_consumer(queue)
            at_work, may_end = asyncio.Event(), asyncio.Event()

            async def listen(
                message: JmsMessage, at_work: asyncio.Event = at_work, may_end: asyncio.Event = may_end
            ) -> None:
                at_work.set()
                await may_end.wait()

            if listens:
                await consumer.set_listener(listen)
                await asyncio.wait_for(at_work.wait(), PATIENCE_S)
                if answered or step.at > 0:  # the first await is for the end of the listener
                    may_end.set()
            await step.run(session.close() if what == "session" else connection.close())
            await kit.queue(queue).wait_for_async(consumers=0, messages=3, delivering=0)
            assert session.closed
            assert connection.closed == (what == "connection")
            may_end.set()


async def test_a_close_amid_what_hears_of_sends(kit: BrokerFixture, connection: AsyncConnection, name: str) -> None:
    """It waits for those that hear of sent messages; cancelled there, it ends all the same."""
    session = await connection.create_session()
    producer = await session.create_producer(name)
    await session.create_consumer(name)
    told, may_end = asyncio.Event(), asyncio.Event()

    async def hear(_: str, error: ClientError | None) -> None:
        assert error is None
        told.set()
        await may_end.wait()

    await producer.send("x", on_completion=hear)
    await asyncio.wait_for(told.wait(), PATIENCE_S)
    assert not await Step(0, answered=False).run(session.close())
    await kit.queue(name).wait_for_async(consumers=0, messages=1)
    may_end.set()


async def test_a_listener_for_which_something_was_cancelled_has_failed(
    connection: AsyncConnection, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """As by any other exception: the message is delivered again, and others after it."""
    heard: list[str] = []
    last = asyncio.Event()

    async def listen(message: JmsMessage) -> None:
        heard.append(message.text)
        if len(heard) == 1:
            other = asyncio.ensure_future(asyncio.sleep(PATIENCE_S))
            other.cancel()
            await other
        if message.text == "b":
            last.set()

    async with await connection.create_session() as session:
        await (await session.create_consumer(name)).set_listener(listen)
        await connection.send(name, "a")
        await connection.send(name, "b")
        await asyncio.wait_for(last.wait(), PATIENCE_S)
    assert heard == ["a", "a", "b"]
    assert "DMQ9066: the listener of queue" in caplog.text


async def test_an_exception_listener_for_which_something_was_cancelled_hears_of_the_next_error(
    connection: AsyncConnection, caplog: pytest.LogCaptureFixture
) -> None:
    heard: asyncio.Queue[ClientError] = asyncio.Queue()

    async def listen(error: ClientError) -> None:
        heard.put_nowait(error)
        raise asyncio.CancelledError

    connection.set_exception_listener(listen)
    async with await connection.create_session() as session:
        producer = await session.create_producer()
        for _ in range(2):
            await producer.send("x", destination="topic://ActiveMQ.Advisory.Connection", persistent=False)
            await asyncio.wait_for(heard.get(), PATIENCE_S)
    assert "DMQ9080: the exception listener failed" in caplog.text
