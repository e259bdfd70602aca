"""Who waits for a reply hears that the connection is gone."""

import asyncio
import threading

import pytest

import delosmq
from delosmq.client import (
    ClientError,
    ClientOptionError,
    ConnectionLostError,
    IllegalStateError,
    TextMessage,
    TimedOutError,
    connect,
)
from delosmq.client.aio import AsyncConnection
from delosmq.client.aio import connect as connect_async
from delosmq.client.messages import JmsMessage
from delosmq.testing import TcpProxy
from tests.patience import PATIENCE_S


async def received(service: AsyncConnection, name: str) -> JmsMessage:
    """The request, once it has come to the service."""
    async with await service.create_session() as session:
        message = await (await session.create_consumer(name)).receive(PATIENCE_S)
        assert message is not None
        return message


async def test_of_a_connection_that_is_lost(broker: delosmq.Broker, aio: AsyncConnection, name: str) -> None:
    with TcpProxy(broker.openwire_port) as proxy:
        url = f"tcp://127.0.0.1:{proxy.port}"
        async with connect_async(url, user=broker.user, password=broker.password) as connection:
            asking = asyncio.ensure_future(connection.request(name, "x"))
            await received(aio, name)
            proxy.cut()
            with pytest.raises(ConnectionLostError, match="DMQ9009"):
                await asyncio.wait_for(asking, PATIENCE_S)


async def test_of_one_that_is_closed(broker: delosmq.Broker, aio: AsyncConnection, name: str) -> None:
    connection = await connect_async(broker.openwire_url, user=broker.user, password=broker.password)
    asking = asyncio.ensure_future(connection.request(name, "x"))
    await received(aio, name)
    await connection.close()
    with pytest.raises(IllegalStateError, match="DMQ9001"):
        await asyncio.wait_for(asking, PATIENCE_S)


async def test_but_not_of_one_that_is_made_again(broker: delosmq.Broker, aio: AsyncConnection, name: str) -> None:
    with TcpProxy(broker.openwire_port) as proxy:
        url = f"failover:(tcp://127.0.0.1:{proxy.port})?initialReconnectDelay=1"
        async with connect_async(url, user=broker.user, password=broker.password) as connection:
            asking = asyncio.ensure_future(connection.request(name, "tea"))
            request = await received(aio, name)
            proxy.cut()
            async with await connection.create_session() as session:
                await session.create_producer("asks.the.broker")
            await aio.reply(request, "2")
            assert (await asyncio.wait_for(asking, PATIENCE_S)).text == "2"


async def test_the_first_one_waits_no_longer_for_a_silent_broker(
    broker: delosmq.Broker, aio: AsyncConnection, name: str
) -> None:
    with TcpProxy(broker.openwire_port) as proxy:
        url = f"tcp://127.0.0.1:{proxy.port}"
        async with connect_async(url, user=broker.user, password=broker.password) as connection:
            proxy.blackhole()
            with pytest.raises(TimedOutError, match="DMQ9070"):
                await asyncio.wait_for(connection.request(name, "x", timeout_s=0.04), PATIENCE_S)
            proxy.restore()
            asking = asyncio.ensure_future(connection.request(name, "tea"))
            await aio.reply(await received(aio, name), "2")
            assert (await asyncio.wait_for(asking, PATIENCE_S)).text == "2"


def test_a_blocked_thread_is_told_of_a_close_by_another_one(broker: delosmq.Broker, name: str) -> None:
    heard: list[BaseException] = []
    connection = connect(broker.openwire_url, user=broker.user, password=broker.password)

    def ask() -> None:
        try:
            connection.request(name, "x", timeout_s=PATIENCE_S)
        except BaseException as error:
            heard.append(error)

    with connect(broker.openwire_url, user=broker.user, password=broker.password) as service:
        asking = threading.Thread(target=ask)
        asking.start()
        assert next(service.messages(name, timeout_s=PATIENCE_S)).text == "x"
        connection.close()
        asking.join(PATIENCE_S)
    assert [isinstance(error, ClientError) and error.code for error in heard] == ["DMQ9001"]


async def test_two_that_wait_under_one_correlation_id_could_not_be_told_apart(aio: AsyncConnection, name: str) -> None:
    asking = asyncio.ensure_future(aio.request(name, TextMessage("a", correlation_id="7")))
    request = await received(aio, name)
    with pytest.raises(ClientOptionError, match="DMQ9056: correlation_id is '7'"):
        await aio.request(name, TextMessage("b", correlation_id="7"))
    await aio.reply(request, "A")
    assert (await asyncio.wait_for(asking, PATIENCE_S)).text == "A"
