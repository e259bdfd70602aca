"""Which broker of a list a connection by ``failover:`` is made to: those of the URL, and those that brokers name."""

# TTL-6

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator

import pytest

import delosmq
from delosmq.client import AckMode, ClientOptionError, ConnectionLostError, TimedOutError, connect
from delosmq.client.aio import AsyncConnection
from delosmq.client.aio import connect as connect_async
from delosmq.client.aio_session import AsyncSession
from delosmq.client.options.urls import BrokerAddress, FailoverOptions, plan_of
from delosmq.client.transport.broker_list import BrokerList
from delosmq.testing import TcpProxy
from delosmq.wire.openwire.codec import encode_command
from delosmq.wire.openwire.commands import ConnectionControl
from delosmq.wire.openwire.negotiation import WireFormatInfo, agree
from tests.patience import PATIENCE_S

QUICK = "initialReconnectDelay=1&maxReconnectDelay=5&randomize=false"
A, B, C = (BrokerAddress("tcp", name, 1) for name in "abc")


@pytest.fixture
def two(broker: delosmq.Broker) -> Iterator[tuple[TcpProxy, TcpProxy]]:
    """Two ways to the broker, which pass for two brokers."""
    with TcpProxy(broker.openwire_port) as one, TcpProxy(broker.openwire_port) as other:
        yield one, other


def url_of(*proxies: TcpProxy, options: str = "") -> str:
    listed = ",".join(f"tcp://127.0.0.1:{proxy.port}" for proxy in proxies)
    return f"failover:({listed})?{QUICK}{options}"


def advice(*, brokers: str = "", rebalance: bool = False, reconnect_to: str = "") -> bytes:
    hello = WireFormatInfo(12)
    control = ConnectionControl()
    control.fault_tolerant = True
    control.connected_brokers = brokers or None
    control.rebalance_connection = rebalance
    control.reconnect_to = reconnect_to or None
    return encode_command(control, agree(hello, hello).form)


async def connected(broker: delosmq.Broker, url: str) -> AsyncConnection:
    return await connect_async(url, user=broker.user, password=broker.password)


async def until_accepted(proxy: TcpProxy, count: int, connection: AsyncConnection, name: str) -> None:
    """Lets the connection do something until the proxy was connected to so often."""
    async with asyncio.timeout(PATIENCE_S):
        while proxy.accepted < count:
            await connection.send(name, "x", persistent=False)
            await asyncio.sleep(0)
    await connection.send(name, "x")


async def send_in_the_end(connection: AsyncConnection, name: str, text: str) -> None:
    """However long the machine takes to connect again."""
    while True:
        try:
            await connection.send(name, text)
        except TimedOutError:
            continue
        return


def names(brokers: BrokerList) -> str:
    return "".join(one.host for one in brokers.in_order())


def test_the_one_that_failed_comes_last_and_named_ones_first() -> None:
    brokers = BrokerList((A, B), FailoverOptions(randomize=False), list.reverse)
    assert names(brokers) == "ab"
    brokers.note_connected(A)
    brokers.note_failed()
    assert names(brokers) == "ba"
    brokers.note_connected(B)
    assert brokers.name((C, A))
    assert not brokers.name((A, C))
    assert names(brokers) == "acb"
    brokers.prefer(B)
    assert names(brokers) == "bac"
    assert names(BrokerList((A, B), FailoverOptions(), list.reverse)) == "ba"


def test_those_with_priority_come_before_others() -> None:
    first = BrokerList((A, B), FailoverOptions(priority_backup=True), list.reverse)
    assert (first.priority, names(first)) == ((A,), "ab")
    plan = plan_of("failover:(tcp://a:1,tcp://b:1?keepAlive=true)?priorityURIs=tcp://b:1&randomize=false&timeout=5")
    assert plan.failover is not None
    second = BrokerList(plan.addresses, plan.failover, list.reverse)
    assert names(second) == "ba"
    assert [one.transport.keep_alive for one in second.in_order()] == [True, False]
    assert second.priority[0].transport.keep_alive
    assert plan.failover.timeout_ms == 5


@pytest.mark.parametrize("option", ["priorityURIs=b:1", "timeout=x", "priorityBackups=true", "backup=x"])
def test_a_wrong_option_is_refused(option: str) -> None:
    with pytest.raises(ClientOptionError, match=r"DMQ905[012]"):
        plan_of(f"failover:(tcp://a:1)?{option}")


async def test_a_broker_that_another_one_names_is_used_when_that_one_is_gone(
    two: tuple[TcpProxy, TcpProxy], broker: delosmq.Broker, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    one, other = two
    async with await connected(broker, url_of(one)) as connection:
        one.inject(advice(brokers=f"tcp://127.0.0.1:{other.port}?x=y,ssl://127.0.0.1:1,nothing"))
        await connection.send(name, "over the first")
        one.close()
        await connection.send(name, "over the other")
        assert other.accepted == 1
    said = [record.message[:7] for record in caplog.records]
    assert said.count("DMQ9077") == 1
    assert said.count("DMQ9078") == 1


async def test_a_named_broker_that_no_resolver_takes_is_passed_over(
    two: tuple[TcpProxy, TcpProxy], broker: delosmq.Broker, name: str
) -> None:
    one, other = two
    async with await connected(broker, url_of(one, other)) as connection:
        one.inject(advice(brokers="tcp://a..b:61616"))
        await connection.send(name, "over the first")
        one.close()
        async with asyncio.timeout(PATIENCE_S):
            await connection.send(name, "over the other")
        assert other.accepted == 1


async def test_a_broker_that_is_named_may_be_ignored(
    two: tuple[TcpProxy, TcpProxy], broker: delosmq.Broker, name: str
) -> None:
    one, other = two
    options = "&updateURIsSupported=false&reconnectSupported=false&maxReconnectAttempts=2"
    async with await connected(broker, url_of(one, options=options)) as connection:
        address = f"tcp://127.0.0.1:{other.port}"
        one.inject(advice(brokers=address, rebalance=True, reconnect_to=address))
        await connection.send(name, "x")
        one.close()
        with pytest.raises(ConnectionLostError, match="2 rounds found no broker"):
            await connection.send(name, "y")
    assert other.accepted == 0


@pytest.mark.parametrize("sent", [False, True], ids=["spread", "sent"])
async def test_a_broker_sends_its_clients_to_another_one(
    two: tuple[TcpProxy, TcpProxy], broker: delosmq.Broker, name: str, sent: bool
) -> None:
    one, other = two
    async with await connected(broker, url_of(one)) as connection:
        session = await connection.create_session()
        consumer = await session.create_consumer(f"{name}.kept")
        address = f"tcp://127.0.0.1:{other.port}"
        one.inject(advice(reconnect_to=address) if sent else advice(brokers=address, rebalance=True))
        await until_accepted(other, 1, connection, name)
        await connection.send(f"{name}.kept", "there")
        message = await consumer.receive(PATIENCE_S)
        assert message is not None
        assert message.text == "there"
        assert (one.accepted, other.accepted) == (1, 1)


async def test_a_broker_with_priority_is_used_as_soon_as_it_is_there(
    two: tuple[TcpProxy, TcpProxy], broker: delosmq.Broker, name: str
) -> None:
    first, backup = two
    first.close()
    url = url_of(first, backup, options="&priorityBackup=true")
    async with await connected(broker, url) as connection:
        assert backup.accepted == 1
        await connection.send(name, "over the backup")
        first.start()
        await until_accepted(first, 2, connection, name)  # a look and the connection
        assert backup.accepted == 1


async def until_it_has_noticed(caplog: pytest.LogCaptureFixture) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while "DMQ9068" not in caplog.text:  # noqa: ASYNC110
            await asyncio.sleep(0)


async def test_a_message_waits_no_longer_than_the_timeout(
    two: tuple[TcpProxy, TcpProxy], broker: delosmq.Broker, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    one, _ = two
    async with await connected(broker, url_of(one, options="&timeout=40&warnAfterReconnectAttempts=1")) as connection:
        await connection.send(name, "x")
        one.close()
        await until_it_has_noticed(caplog)
        with pytest.raises(TimedOutError, match=r"DMQ9075: no broker of failover:.* was there for 40 ms"):
            await connection.send(name, "y")
        one.start()
        async with asyncio.timeout(PATIENCE_S):
            await send_in_the_end(connection, name, "z")
        async with await connection.create_session() as session:
            consumer = await session.create_consumer(name)
            found = [await consumer.receive(PATIENCE_S) for _ in range(2)]
        assert [None if one is None else one.text for one in found] == ["x", "z"]
    assert "DMQ9076" in caplog.text


async def test_nor_does_the_first_message(
    two: tuple[TcpProxy, TcpProxy], broker: delosmq.Broker, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    one, _ = two
    async with await connected(broker, url_of(one, options="&timeout=40")) as connection:
        one.close()
        await until_it_has_noticed(caplog)
        with pytest.raises(TimedOutError, match="DMQ9075"):
            await asyncio.wait_for(connection.send(name, "x"), PATIENCE_S)
        one.start()


ASKED: dict[str, Callable[[AsyncConnection, AsyncSession, str], Awaitable[object]]] = {
    "producer": lambda _, session, name: session.create_producer(name),
    "consumer": lambda _, session, name: session.create_consumer(name),
    "temporary": lambda _, session, name: session.create_temporary_queue(),
    "unsubscribe": lambda connection, _, name: connection.unsubscribe(name),
    "commit": lambda _, session, name: session.commit(),
}


@pytest.mark.parametrize("what", ASKED)
async def test_nor_does_what_else_asks_the_broker(
    two: tuple[TcpProxy, TcpProxy], broker: delosmq.Broker, name: str, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    one, _ = two
    async with await connected(broker, url_of(one, options="&timeout=40")) as connection:
        session = await connection.create_session(AckMode.TRANSACTED)
        producer = await session.create_producer(name)
        await producer.send("x")
        one.close()
        await until_it_has_noticed(caplog)
        with pytest.raises(TimedOutError, match="DMQ9075"):
            await asyncio.wait_for(ASKED[what](connection, session, name), PATIENCE_S)
        other = await connection.create_session(AckMode.TRANSACTED)
        await asyncio.wait_for(other.rollback(), PATIENCE_S)  # of which no broker needs to hear
        one.start()
        async with asyncio.timeout(PATIENCE_S):
            while True:
                try:
                    await session.commit()
                except TimedOutError:
                    continue
                break
        message = await (await other.create_consumer(name)).receive(PATIENCE_S)
        assert message is not None
        assert message.text == "x"


def test_a_message_of_the_blocking_client_waits_no_longer_either(name: str) -> None:
    with delosmq.Broker(ports=False) as gone:
        url = f"failover:({gone.vm_url})?{QUICK}&timeout=40"
        with connect(url, user=gone.user, password=gone.password) as connection:
            connection.send(name, "x")
            gone.stop()

            def send_until_it_has_noticed() -> None:
                deadline = time.monotonic() + PATIENCE_S
                while time.monotonic() < deadline:
                    connection.send(name, "y", persistent=False)

            with pytest.raises(TimedOutError, match="DMQ9075"):
                send_until_it_has_noticed()
