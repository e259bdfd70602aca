"""What another thread or task meets whose session, consumer or connection is closed."""

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from delosmq.client import ClientError, ConnectionLostError, IllegalStateError, TimedOutError
from delosmq.client.aio import AsyncConnection
from delosmq.client.aio import connect as connect_async
from delosmq.client.aio_session import AsyncSession
from delosmq.embedded.arguments import default_settings
from delosmq.model.settings import AddressMatch
from delosmq.model.values import AddressFullPolicy
from delosmq.testing import BrokerFixture, TcpProxy
from tests.patience import PATIENCE_S


@pytest.fixture
def full() -> Iterator[BrokerFixture]:
    """A broker whose queue "full" has a message, and no room for another one."""
    few = {"max_size_messages": 1, "address_full_policy": AddressFullPolicy.BLOCK}
    settings = default_settings()
    settings = replace(settings, address_settings=(*settings.address_settings, AddressMatch("full", few)))
    with BrokerFixture(settings=settings) as kit:
        with kit.connect() as connection:
            connection.send("full", "first")
        yield kit


async def connected(kit: BrokerFixture, options: str = "") -> AsyncConnection:
    """Its closes wait for longer than these tests."""
    url = f"{kit.openwire_url}?jms.closeTimeout=60000{options}"
    return await connect_async(url, user=kit.user, password=kit.password)


async def begin_to_send(connection: AsyncConnection, session: AsyncSession) -> "asyncio.Future[str]":
    """A message for which there is no room, and which the broker has got."""
    sending = asyncio.ensure_future((await session.create_producer("full")).send("second"))
    await asyncio.sleep(0)
    async with await connection.create_session() as other:
        await other.create_producer("asks.the.broker")
    return sending


@pytest.mark.parametrize("what", ["session", "connection"])
async def test_a_send_that_a_full_address_blocks_fails_when_it_is_closed(full: BrokerFixture, what: str) -> None:
    connection = await connected(full)
    session = await connection.create_session()
    sending = await begin_to_send(connection, session)
    await asyncio.wait_for(session.close() if what == "session" else connection.close(), PATIENCE_S)
    with pytest.raises(IllegalStateError, match=f"DMQ9019: the {what} was closed before the broker had answered"):
        await asyncio.wait_for(sending, PATIENCE_S)
    await asyncio.wait_for(connection.close(), PATIENCE_S)


async def test_its_message_is_stored_once_there_is_room(full: BrokerFixture) -> None:
    connection = await connected(full)
    sending = await begin_to_send(connection, await connection.create_session())
    await asyncio.wait_for(connection.close(), PATIENCE_S)
    with pytest.raises(IllegalStateError, match="DMQ9019"):
        await sending
    async with await connected(full) as other:
        found = [message.text async for message in other.messages("full", timeout_s=0.5)]
    assert found == ["first", "second"]


async def test_a_send_that_was_given_up_holds_up_no_close_either(full: BrokerFixture) -> None:
    connection = await connected(full, "&jms.sendTimeout=20")
    with pytest.raises(TimedOutError, match="DMQ9011"):
        await connection.send("full", "second")
    await asyncio.wait_for(connection.close(), PATIENCE_S)
    connection = await connected(full)
    sending = await begin_to_send(connection, await connection.create_session())
    sending.cancel()
    await asyncio.wait((sending,))
    await asyncio.wait_for(connection.close(), PATIENCE_S)


async def test_a_send_that_is_answered_meanwhile_is_as_it_was(full: BrokerFixture) -> None:
    connection = await connected(full)
    session = await connection.create_session()
    sending = asyncio.ensure_future((await session.create_producer("roomy")).send("stored"))
    await asyncio.sleep(0)
    await asyncio.gather(session.close(), connection.close())
    assert await sending
    assert full.queue("roomy").texts == ["stored"]


def test_a_thread_that_sends_is_told_as_well(full: BrokerFixture) -> None:
    heard: list[Exception] = []
    connection = full.connect(f"{full.openwire_url}?jms.closeTimeout=60000")
    begun = threading.Event()

    def send() -> None:
        begun.set()
        try:
            connection.send("full", "second")
        except ClientError as error:
            heard.append(error)

    thread = threading.Thread(target=send)
    thread.start()
    begun.wait(PATIENCE_S)
    closing = threading.Thread(target=connection.close)
    closing.start()
    closing.join(PATIENCE_S)
    thread.join(PATIENCE_S)
    assert not closing.is_alive()
    assert not thread.is_alive()
    assert [type(error) for error in heard] == [IllegalStateError]  # DMQ9001 when it came too late


async def test_a_loop_over_a_consumer_ends_when_that_is_closed_whether_it_waits_or_works(full: BrokerFixture) -> None:
    async with await connected(full) as connection:
        session = await connection.create_session()
        for what in ("consumer", "session"):
            consumer = await session.create_consumer("full")
            seen = []
            async for message in consumer:
                seen.append(message.text)
                await (consumer if what == "consumer" else session).close()
            assert seen == ["first"]
            assert [message async for message in consumer] == []
            await connection.send("full", "first")


def test_so_does_one_in_a_thread(full: BrokerFixture) -> None:
    with full.connect() as connection:
        session = connection.create_session()
        consumer = session.create_consumer("full")
        seen = []
        for message in consumer:
            seen.append(message.text)
            closing = threading.Thread(target=consumer.close)
            closing.start()
            closing.join(PATIENCE_S)
        assert seen == ["first"]
        assert list(consumer) == []
        with pytest.raises(IllegalStateError, match="DMQ9001"):
            consumer.receive(0)


def test_a_loop_does_not_end_quietly_when_the_connection_is_lost(full: BrokerFixture) -> None:
    connection = full.connect()
    consumer = connection.create_session().create_consumer("full")

    def take() -> None:
        for _ in consumer:
            full.cut_connections()

    with pytest.raises(ConnectionLostError):
        take()
    connection.close()


@pytest.mark.parametrize("what", ["create_producer", "send"])
@pytest.mark.parametrize("closes", ["session", "connection"])
async def test_what_waits_for_a_broker_ends_with_its_session(
    full: BrokerFixture, what: str, closes: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert full.openwire_port is not None
    with TcpProxy(full.openwire_port) as proxy:
        url = f"failover:(tcp://127.0.0.1:{proxy.port})?initialReconnectDelay=1"
        connection = await connect_async(url, user=full.user, password=full.password)
        session = await connection.create_session()
        producer = await session.create_producer("roomy")
        proxy.close()
        while not any("DMQ9068" in record.message for record in caplog.records):  # noqa: ASYNC110 - seen from outside
            await asyncio.sleep(0.01)
        waiting = asyncio.ensure_future(
            session.create_producer("x") if what == "create_producer" else producer.send("x")
        )
        await asyncio.wait((waiting,), timeout=0.2)
        await asyncio.wait_for(session.close() if closes == "session" else connection.close(), PATIENCE_S)
        with pytest.raises(IllegalStateError, match="DMQ9001"):
            await asyncio.wait_for(waiting, PATIENCE_S)
        await connection.close()
