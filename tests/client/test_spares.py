"""``backup=true``: connections kept for later are used at once, watched, and closed with the client."""

# TTL-6

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager

import pytest

import delosmq
from delosmq.client import ClientConnection, ClientOptionError, ConnectionLostError, connect
from delosmq.client.aio import connect as connect_async
from delosmq.client.options.urls import BrokerAddress, FailoverOptions, plan_of
from delosmq.client.transport.broker_list import BrokerList
from delosmq.client.transport.clocks import LinkClock
from delosmq.client.transport.spares import SparePool
from delosmq.testing import BrokerFixture, TcpProxy
from tests.client.support import wait_for_forgotten
from tests.client.test_forgotten import forgotten
from tests.patience import PATIENCE_S

A, B, C = (BrokerAddress("tcp", name, 1) for name in "abc")


@pytest.fixture
def ways(broker: delosmq.Broker) -> Iterator[list[TcpProxy]]:
    """Three ways to the broker, which pass for three brokers."""
    with (
        TcpProxy(broker.openwire_port) as one,
        TcpProxy(broker.openwire_port) as other,
        TcpProxy(broker.openwire_port) as third,
    ):
        yield [one, other, third]


def url_of(*proxies: TcpProxy, options: str = "") -> str:
    listed = ",".join(f"tcp://127.0.0.1:{proxy.port}" for proxy in proxies)
    quick = "initialReconnectDelay=1&maxReconnectDelay=5&randomize=false&backup=true"
    return f"failover:({listed})?{quick}{options}"


Send = Callable[[str, str], Awaitable[object]]


@asynccontextmanager
async def blocking(url: str, broker: delosmq.Broker) -> AsyncIterator[Send]:
    connection: ClientConnection = await asyncio.to_thread(connect, url, user=broker.user, password=broker.password)
    try:
        yield lambda name, text: asyncio.to_thread(connection.send, name, text)
    finally:
        await asyncio.to_thread(connection.close)


@asynccontextmanager
async def in_loop(url: str, broker: delosmq.Broker) -> AsyncIterator[Send]:
    async with connect_async(url, user=broker.user, password=broker.password) as connection:
        yield lambda name, text: connection.send(name, text)


surfaces = pytest.mark.parametrize("opened", [blocking, in_loop])


@surfaces
async def test_a_spare_connection_is_used_when_the_one_in_use_breaks(
    ways: list[TcpProxy], broker: delosmq.Broker, name: str, opened: Callable[..., object]
) -> None:
    one, other, _ = ways
    async with opened(url_of(one, other), broker) as send:  # type: ignore[attr-defined]
        await other.wait_for_async(answered=1)
        await send(name, "over the first")  # which makes sure that the client has read what the other one has said
        for proxy in (one, other):
            proxy.refuse()
        one.cut()
        await send(name, "over the spare")
        assert (one.accepted, other.accepted) == (1, 1)
    await other.wait_for_async(ended=1)
    async with connect_async(broker.openwire_url, user=broker.user, password=broker.password) as reader:
        async with await reader.create_session() as session:
            consumer = await session.create_consumer(name)
            found = [await consumer.receive(PATIENCE_S) for _ in range(2)]
    assert [None if one is None else one.text for one in found] == ["over the first", "over the spare"]


@surfaces
async def test_a_spare_that_is_lost_is_replaced_and_all_are_closed_with_the_client(
    ways: list[TcpProxy], broker: delosmq.Broker, name: str, opened: Callable[..., object]
) -> None:
    one, other, third = ways
    async with opened(url_of(one, other, third, options="&backupPoolSize=2"), broker) as send:  # type: ignore[attr-defined]
        await other.wait_for_async(answered=1)
        await third.wait_for_async(answered=1)
        other.cut()
        await other.wait_for_async(ended=1)
        await other.wait_for_async(answered=2)
        await send(name, "x")
        assert [proxy.accepted for proxy in ways] == [1, 2, 1]
    for proxy in ways:
        await proxy.wait_for_async(ended=proxy.accepted)


async def test_a_pool_is_no_larger_than_was_asked_for_and_holds_no_second_connection_to_a_broker(
    ways: list[TcpProxy], broker: delosmq.Broker, name: str
) -> None:
    one, other, third = ways
    async with in_loop(url_of(one, other, third), broker) as send:
        await other.wait_for_async(answered=1)
        await send(name, "x")
        assert [proxy.accepted for proxy in ways] == [1, 1, 0]
    async with in_loop(url_of(one, options="&backupPoolSize=2"), broker) as send:
        await send(name, "x")
        assert one.accepted == 2


async def test_a_broker_that_comes_later_gets_its_spare(
    ways: list[TcpProxy], broker: delosmq.Broker, name: str
) -> None:
    one, other, third = ways
    other.close()
    async with in_loop(url_of(one, other, third, options="&backupPoolSize=2"), broker) as send:
        await third.wait_for_async(answered=1)
        other.start()
        await other.wait_for_async(answered=1)
        await send(name, "x")
        assert [proxy.accepted for proxy in ways] == [1, 1, 1]


async def test_a_spare_whose_broker_is_silent_is_replaced(
    ways: list[TcpProxy], broker: delosmq.Broker, name: str
) -> None:
    one, other, _ = ways
    async with in_loop(
        url_of(
            one, other, options="&wireFormat.maxInactivityDuration=400&wireFormat.maxInactivityDurationInitalDelay=0"
        ),
        broker,
    ) as send:
        await other.wait_for_async(answered=1)
        other.blackhole()
        async with asyncio.timeout(PATIENCE_S):
            while other.accepted < 2:
                await send(name, "x")
        other.restore()
        await other.wait_for_async(ended=1)


async def test_the_pool_is_filled_again_after_a_break(ways: list[TcpProxy], broker: delosmq.Broker, name: str) -> None:
    one, other, _ = ways
    async with in_loop(url_of(one, other), broker) as send:
        await other.wait_for_async(answered=1)
        await send(name, "x")
        await one.wait_for_async(answered=1)
        one.cut()
        await send(name, "over the spare")
        await one.wait_for_async(answered=2)  # now it is the spare
        for _ in range(3):
            await send(name, "y")  # the client has read what the spare's broker has said
        other.cut()
        await send(name, "z")
        assert one.accepted == 2


async def test_spares_are_closed_when_the_connection_is_given_up_or_cannot_be_made(
    ways: list[TcpProxy], broker: delosmq.Broker, name: str
) -> None:
    one, other, third = ways
    options = "&maxReconnectAttempts=1&backupPoolSize=2"
    async with connect_async(
        url_of(one, other, third, options=options), user=broker.user, password=broker.password
    ) as connection:
        await other.wait_for_async(answered=1)
        await third.wait_for_async(answered=1)
        await connection.send(name, "x")
        third.blackhole()  # it is there, and lets no one in
        for proxy in ways:
            proxy.refuse()
        one.cut()
        other.cut()
        third.restore()
        third.cut()
        with pytest.raises(ConnectionLostError):
            await connection.send(name, "y")
    for proxy in ways:
        await proxy.wait_for_async(ended=proxy.accepted)


async def test_a_spare_that_is_being_made_when_the_pool_rests_is_waited_for_at_its_end(ways: list[TcpProxy]) -> None:
    one, other, _ = ways
    other.blackhole()  # it says nothing, and so is no spare yet
    plan = plan_of(url_of(one, other))
    before = asyncio.all_tasks()
    pool = SparePool(plan, LinkClock(), lambda: list(plan.addresses[1:]))
    pool.fill()
    async with asyncio.timeout(PATIENCE_S):
        while not other.accepted:  # noqa: ASYNC110 - the pool goes on meanwhile
            await asyncio.sleep(0)
    (filling,) = (task for task in asyncio.all_tasks() - before if "_fill" in repr(task))
    pool.rest()
    await pool.close()
    assert filling.done()
    other.restore()
    await other.wait_for_async(ended=1)


@pytest.fixture
def local() -> Iterator[tuple[BrokerFixture, BrokerFixture]]:
    with BrokerFixture(ports=False, password="tea") as one, BrokerFixture(ports=False, password="tea") as other:
        yield one, other


async def test_brokers_of_the_test_kit_have_spares_as_well(local: tuple[BrokerFixture, BrokerFixture]) -> None:
    one, other = local
    url = f"failover:({one.vm_url},{other.vm_url})?randomize=false&backup=true&initialReconnectDelay=1"
    async with connect_async(url, user=one.user, password=one.password) as connection:
        async with asyncio.timeout(PATIENCE_S):
            while not other.connection_count:
                await connection.send("orders", "a")
        await connection.send("orders", "a")
        for broker in local:
            broker.clock.advance(minutes=5)
        with other.refusing_connections():
            await asyncio.to_thread(one.stop)
            await connection.send("orders", "b")
    assert other.queue("orders").texts == ["b"]


def test_a_forgotten_connection_is_closed_with_its_spares(local: tuple[BrokerFixture, BrokerFixture]) -> None:
    one, other = local

    def make() -> int:
        url = f"failover:({one.vm_url},{other.vm_url})?randomize=false&backup=true"
        connection = connect(url, user=one.user, password=one.password)
        deadline = time.monotonic() + PATIENCE_S
        while not other.connection_count and time.monotonic() < deadline:
            connection.send("orders", "a")
        return other.connection_count

    said, spares = forgotten(make)
    assert (len(said), spares) == (1, 1)
    wait_for_forgotten()


def test_which_brokers_may_have_spares() -> None:
    brokers = BrokerList((A, B, C), FailoverOptions(randomize=False, priority_backup=True), list.reverse)
    brokers.note_connected(B)
    assert [one.host for one in brokers.others()] == ["a", "c"]
    preferences = [brokers.has_preference]
    brokers.prefer(C)
    preferences.append(brokers.has_preference)
    assert preferences == [False, True]
    assert [one.host for one in brokers.others()] == ["c", "a"]


def test_what_is_asked_for_is_read_from_the_url() -> None:
    failover = plan_of("failover:(tcp://a,tcp://b)?backup=true&backupPoolSize=3").failover
    assert failover is not None
    assert (failover.backup, failover.backup_pool_size) == (True, 3)
    for wrong in ("0", "-1", "x"):
        with pytest.raises(ClientOptionError, match=r"DMQ9051.*backupPoolSize"):
            plan_of(f"failover:(tcp://a,tcp://b)?backup=true&backupPoolSize={wrong}")
    default = plan_of("failover:(tcp://a)").failover
    assert default is not None
    assert (default.backup, default.backup_pool_size) == (False, 1)
