"""The asyncio client against a broker, over sockets."""

# ACK-1, ACK-3, ACK-5, TTL-4

import asyncio

import pytest

import delosmq
from delosmq.client import AckMode, ConnectionLostError, IllegalStateError, JmsMessage, TimedOutError
from delosmq.client.aio import AsyncConnection, AsyncConnectionFactory, connect
from delosmq.client.aio_consumer import AsyncConsumer
from delosmq.client.link import MOST_UNHEARD, Link
from delosmq.client.options.urls import plan_of
from delosmq.sessions.client_errors import ClientError
from delosmq.sessions.openwire.client.acknowledgement import Delivery
from delosmq.testing import BrokerFixture
from tests.client.support import OpenAsync
from tests.patience import PATIENCE_S


async def texts(consumer: AsyncConsumer, count: int) -> list[str]:
    found = []
    for _ in range(count):
        message = await consumer.receive(PATIENCE_S)
        assert message is not None
        found.append(message.text)
    return found


async def test_messages_are_sent_and_taken_in_a_loop(aio: AsyncConnection, name: str, open_async: OpenAsync) -> None:
    await aio.send(name, "one pot of tea")
    assert [message.text async for message in aio.messages(name, timeout_s=0.2)] == ["one pot of tea"]
    async with await open_async() as session:
        assert [message async for message in await session.create_browser(name)] == []


async def test_a_loop_of_sends_without_an_answer_lets_others_have_their_turn(aio: AsyncConnection, name: str) -> None:
    async with await aio.create_session() as session:
        producer = await session.create_producer(name)
        other = asyncio.ensure_future(asyncio.sleep(0))
        for _ in range(1_000):
            await producer.send("x", persistent=False)
        assert other.done()


async def test_a_message_whose_loop_has_ended_says_that_the_loop_acknowledges(aio: AsyncConnection, name: str) -> None:
    await aio.send(name, "one pot of tea")
    loop = aio.messages(name, timeout_s=PATIENCE_S)
    message = await anext(loop)
    await loop.aclose()
    with pytest.raises(IllegalStateError, match=r"DMQ9082: .*'async for message in connection\.messages\(\.\.\.\):'"):
        message.acknowledge()
    again = [message async for message in aio.messages(name, timeout_s=0.2)]
    assert [message.text for message in again] == ["one pot of tea"]
    with pytest.raises(IllegalStateError, match="DMQ9082"):
        again[0].acknowledge()


async def test_a_send_that_is_not_waited_for_tells_a_function_or_a_coroutine(
    aio: AsyncConnection, name: str, open_async: OpenAsync, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[str] = []

    async def note(message_id: str, error: ClientError | None) -> None:
        assert error is None
        await asyncio.sleep(0)
        told.append(message_id)

    async def fail(message_id: str, error: ClientError | None) -> None:
        raise ValueError(message_id)

    session = await open_async(AckMode.TRANSACTED)
    producer = await session.create_producer(name)
    sent = [await producer.send("a", on_completion=note)]
    sent.append(await producer.send("b", on_completion=lambda message_id, _: told.append(message_id)))
    await producer.send("c", on_completion=fail)
    await session.commit()
    await session.close()
    assert sorted(told) == sorted(sent)
    assert [one.levelname for one in caplog.records if "DMQ9074" in one.message] == ["ERROR"]
    async with await open_async() as other:
        assert sorted(await texts(await other.create_consumer(name), 3)) == ["a", "b", "c"]


async def test_a_completion_hears_of_a_refusal(broker: delosmq.Broker, name: str) -> None:
    told: asyncio.Queue[ClientError | None] = asyncio.Queue()
    async with connect(broker.openwire_url, user=broker.user, password=broker.password) as connection:
        session = await connection.create_session()
        producer = await session.create_producer()
        await producer.send("x", destination=f"{name}.*", on_completion=lambda _, error: told.put_nowait(error))
        error = await asyncio.wait_for(told.get(), PATIENCE_S)
        assert isinstance(error, ClientError)
        assert "DMQ5240" in str(error)


async def test_a_message_goes_back_when_its_turn_raises(aio: AsyncConnection, name: str, open_async: OpenAsync) -> None:
    await aio.send(name, "bad")

    async def work() -> None:
        async for message in aio.messages(name, timeout_s=PATIENCE_S):
            raise ValueError(message.text)

    with pytest.raises(ValueError, match="bad"):
        await work()
    consumer = await (await open_async()).create_consumer(name)
    message = await consumer.receive(PATIENCE_S)
    assert message is not None
    assert message.delivery_count == 2


@pytest.mark.parametrize("mode", list(AckMode))
@pytest.mark.parametrize("prefetch", [0, 1, 100])
async def test_cancelling_a_receive_at_any_time_loses_no_message(
    aio: AsyncConnection, name: str, mode: AckMode, prefetch: int, open_async: OpenAsync
) -> None:
    count = 40
    producer = await (await open_async()).create_producer(name)
    session = await open_async(mode)
    consumer = await session.create_consumer(f"{name}?consumer.prefetchSize={prefetch}")
    seen: list[str] = []
    for number in range(count):
        await producer.send(f"m{number}")
        receiving = asyncio.ensure_future(consumer.receive(PATIENCE_S))
        for _ in range(number % 9):
            await asyncio.sleep(0)
        receiving.cancel()
        try:
            message = await receiving
        except asyncio.CancelledError:
            continue
        assert message is not None
        seen.append(message.text)
    seen += await texts(consumer, count - len(seen))
    assert seen == [f"m{number}" for number in range(count)]


async def test_a_cancelled_create_leaves_no_consumer(aio: AsyncConnection, name: str, open_async: OpenAsync) -> None:
    session = await open_async()
    await aio.send(name, "x")
    for steps in range(3):
        creating = asyncio.ensure_future(session.create_consumer(name))
        for _ in range(steps):
            await asyncio.sleep(0)
        creating.cancel()
        with pytest.raises(asyncio.CancelledError):
            await creating
    assert await texts(await session.create_consumer(name), 1) == ["x"]


async def test_a_coroutine_may_be_a_listener(aio: AsyncConnection, name: str, open_async: OpenAsync) -> None:  # ACK-3
    heard: list[str] = []
    all_heard = asyncio.Event()

    async def listen(message: JmsMessage) -> None:
        await asyncio.sleep(0)
        heard.append(message.text)
        if len(heard) == 3:
            all_heard.set()

    session = await open_async()
    consumer = await session.create_consumer(name)
    await consumer.set_listener(listen)
    for text in "abc":
        await aio.send(name, text)
    await asyncio.wait_for(all_heard.wait(), PATIENCE_S)
    assert heard == ["a", "b", "c"]
    await session.close()


async def test_what_a_listener_raises_is_delivered_again(
    broker: delosmq.Broker, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[tuple[str, int]] = []
    last = asyncio.Event()

    def listen(message: JmsMessage) -> None:
        heard.append((message.text, message.delivery_count))
        if len(heard) == 1:
            raise ValueError("no tea")
        if message.text == "b":
            last.set()

    url = f"{broker.openwire_url}?jms.redeliveryPolicy.initialRedeliveryDelay=1"
    async with connect(url, user=broker.user, password=broker.password) as connection:
        session = await connection.create_session()
        consumer = await session.create_consumer(name)
        await consumer.set_listener(listen)
        await connection.send(name, "a")
        await connection.send(name, "b")
        await asyncio.wait_for(last.wait(), PATIENCE_S)
        await session.close()
    assert heard == [("a", 1), ("a", 2), ("b", 1)]
    assert "DMQ9066: the listener of queue" in caplog.text


async def test_a_closed_consumer_ends_its_loop(aio: AsyncConnection, name: str, open_async: OpenAsync) -> None:
    session = await open_async()
    consumer = await session.create_consumer(name)

    seen = asyncio.Event()

    async def take() -> list[str]:
        found = []
        async for message in consumer:
            found.append(message.text)
            seen.set()
        return found

    taking = asyncio.ensure_future(take())
    await aio.send(name, "x")
    await asyncio.wait_for(seen.wait(), PATIENCE_S)
    await consumer.close()
    assert await taking == ["x"]
    with pytest.raises(IllegalStateError, match="DMQ9001"):
        await consumer.receive(0)


async def test_a_lost_connection_wakes_all_who_wait() -> None:
    heard: list[ClientError] = []
    told = asyncio.Event()

    def listen(error: ClientError) -> None:
        if isinstance(error, ConnectionLostError):  # and before it, that the broker is stopping
            heard.append(error)
            told.set()

    broker = delosmq.Broker(http=False)
    broker.start()
    try:
        connection = await connect(broker.openwire_url, user=broker.user, password=broker.password)
        connection.set_exception_listener(listen)
        consumer = await (await connection.create_session()).create_consumer("x")
        receiving = asyncio.ensure_future(consumer.receive())
        await asyncio.sleep(0)
    finally:
        await asyncio.to_thread(broker.stop)
    with pytest.raises(ConnectionLostError):
        await receiving
    await asyncio.wait_for(told.wait(), PATIENCE_S)
    assert len(heard) == 1
    with pytest.raises(ConnectionLostError):
        await connection.create_session()
    await connection.close()


async def test_a_broker_that_reads_nothing_more_holds_up_no_close() -> None:
    with BrokerFixture() as kit:
        url = f"{kit.openwire_url}?jms.closeTimeout=1"
        connection = await connect(url, user=kit.user, password=kit.password)
        producer = await (await connection.create_session()).create_producer("x")
        with kit.silent():
            sending = [asyncio.ensure_future(producer.send(bytes(8 << 20), persistent=False)) for _ in range(4)]
            await asyncio.wait(sending, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait_for(connection.close(), PATIENCE_S)
            await asyncio.wait(sending)


async def test_a_factory_makes_connections(broker: delosmq.Broker, name: str) -> None:
    factory = AsyncConnectionFactory(broker.openwire_url, user=broker.user, password=broker.password)
    async with await factory.create_connection() as connection:
        connection.start()
        await connection.send(name, "x")


def test_a_connection_belongs_to_its_loop(broker: delosmq.Broker) -> None:
    with asyncio.Runner() as runner:
        connection = runner.run(_open(broker))
        with pytest.raises(IllegalStateError, match="DMQ9059"):
            connection.start()
        runner.run(connection.close())


async def _open(broker: delosmq.Broker) -> AsyncConnection:
    return await connect(broker.openwire_url, user=broker.user, password=broker.password)


async def test_a_refused_message_without_an_answer_is_told(broker: delosmq.Broker) -> None:
    heard: asyncio.Queue[ClientError] = asyncio.Queue()
    async with connect(broker.openwire_url, user=broker.user, password=broker.password) as connection:
        connection.set_exception_listener(heard.put_nowait)
        producer = await (await connection.create_session()).create_producer()
        await producer.send("x", destination="topic://ActiveMQ.Advisory.Connection", persistent=False)
        error = await asyncio.wait_for(heard.get(), PATIENCE_S)
        assert str(error).startswith("DMQ90")


async def test_a_listener_that_closes_its_session_is_through_with_its_message(
    aio: AsyncConnection, name: str, open_async: OpenAsync
) -> None:
    closed = asyncio.Event()
    session = await open_async()

    async def listen(_: JmsMessage) -> None:
        await session.close()
        closed.set()

    await (await session.create_consumer(name)).set_listener(listen)
    for text in ("a", "b"):
        await aio.send(name, text)
    await asyncio.wait_for(closed.wait(), PATIENCE_S)
    assert await texts(await (await open_async()).create_consumer(name), 1) == ["b"]


async def test_a_message_whose_listener_fails_after_a_close_goes_back(
    aio: AsyncConnection, name: str, open_async: OpenAsync
) -> None:  # ACK-1
    began, goes_on = asyncio.Event(), asyncio.Event()

    async def listen(_: JmsMessage) -> None:
        began.set()
        await goes_on.wait()
        raise ValueError("out of tea")

    consumer = await (await open_async()).create_consumer(name)
    await consumer.set_listener(listen)
    await aio.send(name, "x")
    await asyncio.wait_for(began.wait(), PATIENCE_S)
    await consumer.close()
    goes_on.set()
    other = await (await open_async()).create_consumer(name)
    message = await other.receive(PATIENCE_S)
    assert message is not None
    assert message.text == "x"


async def test_a_listener_that_raises_hears_of_the_next_error_too(
    broker: delosmq.Broker, caplog: pytest.LogCaptureFixture
) -> None:
    heard: asyncio.Queue[ClientError] = asyncio.Queue()

    def listen(error: ClientError) -> None:
        heard.put_nowait(error)
        raise ValueError("out of tea")

    async with connect(broker.openwire_url, user=broker.user, password=broker.password) as connection:
        connection.set_exception_listener(listen)
        producer = await (await connection.create_session()).create_producer()
        for _ in range(2):
            await producer.send("x", destination="topic://ActiveMQ.Advisory.Connection", persistent=False)
            await asyncio.wait_for(heard.get(), PATIENCE_S)
    assert "DMQ9080: the exception listener failed" in caplog.text


async def test_of_errors_that_no_listener_hears_the_newest_are_kept() -> None:
    link = Link(plan_of("tcp://localhost:1"))
    for number in range(MOST_UNHEARD + 2):
        link.troubled(ClientError("DMQ0000", f"{number}"))
    assert link.on_error.qsize() == MOST_UNHEARD
    assert str(link.on_error.get_nowait()) == "DMQ0000: 2"


async def test_requests_are_answered_each_by_its_own_reply(aio: AsyncConnection, name: str) -> None:
    async def serve() -> None:
        waiting = []
        async for request in aio.messages(name, timeout_s=PATIENCE_S):
            waiting.append(request)
            if len(waiting) == 3:
                break
        for request in reversed(waiting):
            await aio.reply(request, request.text.upper())

    serving = asyncio.ensure_future(serve())
    replies = await asyncio.gather(*(aio.request(name, text, timeout_s=PATIENCE_S) for text in "abc"))
    assert [reply.text for reply in replies] == ["A", "B", "C"]
    await serving


async def test_a_request_without_a_reply_ends_with_its_time(aio: AsyncConnection, name: str) -> None:
    with pytest.raises(TimedOutError, match="DMQ9070: no reply to a request to queue://"):
        await aio.request(name, "x", timeout_s=0.02)
    with pytest.raises(IllegalStateError, match="DMQ9071"):
        await aio.reply(JmsMessage(), "x")


async def test_a_browser_of_a_stopped_connection_waits_for_its_start(
    aio: AsyncConnection, open_async: OpenAsync, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in "abc":
        await aio.send(name, text)
    reserve, looks = AsyncConsumer.reserve, [0]

    async def counted(consumer: AsyncConsumer, timeout_s: float | None) -> Delivery | None:
        looks[0] += 1
        return await reserve(consumer, timeout_s)

    monkeypatch.setattr(AsyncConsumer, "reserve", counted)
    session, other = await open_async(), await open_async()
    browser = await session.create_browser(name)
    aio.stop()

    async def browse() -> list[str]:
        return [message.text async for message in browser]

    browsing = asyncio.ensure_future(browse())
    for _ in range(5):
        await other.create_temporary_queue()  # the broker's answer comes behind the messages
    assert looks == [0]
    aio.start()
    assert await browsing == ["a", "b", "c"]
