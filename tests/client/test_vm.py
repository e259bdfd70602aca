"""``vm://``: a broker in this process, without a socket."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

import delosmq
from delosmq import in_process
from delosmq.client import (
    AckMode,
    ClientConnection,
    ClientOptionError,
    ClientSecurityError,
    ConnectionLostError,
    connect,
)
from delosmq.client.aio import AsyncConnection
from delosmq.client.aio import connect as connect_async
from delosmq.client.options.urls import BrokerAddress, plan_of
from delosmq.in_process import LocalPort, MemoryTransport
from delosmq.model.errors import ConfigurationError, LimitError, MisuseError
from delosmq.testing import BrokerFixture
from tests.patience import PATIENCE_S


@pytest.fixture
def local() -> Iterator[delosmq.Broker]:
    """A broker without ports."""
    with delosmq.Broker(name="Tests.local", ports=False) as running:
        yield running


def texts(connection: ClientConnection, count: int) -> list[str]:
    """So many of what is in the queue ``orders``."""
    with connection.create_session() as session, session.create_consumer("orders") as consumer:
        return [message.text for _ in range(count) if (message := consumer.receive(PATIENCE_S)) is not None]


def test_a_broker_is_found_by_its_name(local: delosmq.Broker) -> None:
    assert local.vm_url == "vm://Tests.local"
    with connect("vm://Tests.local?jms.useAsyncSend=true", user=local.user, password=local.password) as connection:
        connection.send("orders", "one pot of tea")
        connection.send("orders", b"x" * 1_000_000)
        with connection.create_session(AckMode.CLIENT) as session:
            consumer = session.create_consumer("orders")
            received = [consumer.receive(PATIENCE_S) for _ in range(2)]
            session.acknowledge()
        assert [None if one is None else one.body for one in received] == ["one pot of tea", b"x" * 1_000_000]
        assert list(connection.messages("orders", timeout_s=0)) == []
    with pytest.raises(MisuseError, match="DMQ6021"):
        _ = local.openwire_url


async def test_asyncio_finds_it_too(local: delosmq.Broker) -> None:
    async with connect_async(local.vm_url, user=local.user, password=local.password) as connection:
        await asyncio.gather(*(connection.send("orders", f"{number}") for number in range(100)))
        async with await connection.create_session() as session:
            consumer = await session.create_consumer("orders")
            found = [await consumer.receive(PATIENCE_S) for _ in range(100)]
        assert sorted(one.text for one in found if one is not None) == sorted(map(str, range(100)))


def test_a_name_that_no_broker_has_is_answered_with_those_there_are(local: delosmq.Broker) -> None:
    with pytest.raises(ConnectionLostError, match="DMQ9072: no broker of this process is named 'other'; there are:"):
        connect("vm://other", user="u")
    with pytest.raises(ConnectionLostError, match=r"Tests\.local"):
        connect("vm://other", user="u")
    local.stop()
    with pytest.raises(ConnectionLostError, match="DMQ9072"):
        connect(local.vm_url)
    local.start()


def test_a_wrong_password_is_refused_as_over_a_socket(local: delosmq.Broker) -> None:
    with pytest.raises(ClientSecurityError, match="DMQ9020"):
        connect(local.vm_url, user=local.user, password="wrong")


def test_two_brokers_of_one_name_do_not_run_at_once(local: delosmq.Broker) -> None:
    with pytest.raises(LimitError, match=r"DMQ6715: a broker named 'Tests\.local' runs in this process already"):
        delosmq.Broker(name="Tests.local", ports=False).start()
    with delosmq.Broker(ports=False) as one, delosmq.Broker(ports=False) as two:
        assert one.name != two.name


def test_a_connection_by_failover_outlives_the_broker_s_restart(local: delosmq.Broker) -> None:
    url = f"failover:({local.vm_url})?initialReconnectDelay=1&maxReconnectDelay=5"
    with connect(url, user=local.user, password=local.password) as connection:
        session = connection.create_session()
        consumer = session.create_consumer("orders")
        local.restart()
        connection.send("orders", "after")
        message = consumer.receive(PATIENCE_S)
        assert message is not None
        assert message.text == "after"


class EndingPort(LocalPort):
    """Of a broker whose loop never comes to those who connect."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.reached = threading.Event()
        super().__init__(self.loop, MemoryTransport.abort)

    def connect(self, protocol: asyncio.Protocol) -> MemoryTransport:
        transport = super().connect(protocol)
        self.reached.set()
        return transport


@pytest.fixture
def ending() -> Iterator[EndingPort]:
    port = EndingPort()
    in_process.enter("Tests.ending", port)
    yield port
    in_process.leave("Tests.ending", port)
    port.loop.close()


@pytest.mark.parametrize("blocking", [True, False])
async def test_a_broker_that_ends_before_it_accepts_is_noticed_at_once(ending: EndingPort, blocking: bool) -> None:
    connecting: asyncio.Future[ClientConnection] | asyncio.Future[AsyncConnection]
    if blocking:
        connecting = asyncio.ensure_future(asyncio.to_thread(connect, "vm://Tests.ending?connectionTimeout=0"))
    else:
        connecting = asyncio.ensure_future(opened("vm://Tests.ending?connectionTimeout=0"))
    assert await asyncio.to_thread(ending.reached.wait, PATIENCE_S)
    ending.loop.close()
    with pytest.raises(ConnectionLostError, match=r"DMQ9009: .* the other end is gone"):
        await asyncio.wait_for(connecting, PATIENCE_S)


async def opened(url: str) -> AsyncConnection:
    return await connect_async(url)


def test_the_test_kit_s_faults_reach_it() -> None:
    with BrokerFixture(ports=False) as broker:
        url = f"failover:({broker.vm_url})?initialReconnectDelay=1&maxReconnectDelay=5"
        with connect(url, user=broker.user, password=broker.password) as connection:
            connection.send("orders", "a")
            assert broker.cut_connections() == 1
            connection.send("orders", "b")
            broker.queue("orders").wait_for(messages=2)
        with broker.refusing_connections():
            with pytest.raises(ConnectionLostError, match="DMQ9072"):
                connect(broker.vm_url, user=broker.user, password=broker.password)
        with broker.connect() as connection:
            assert broker.connection_count == 1
            connection.send("orders", "c", time_to_live_ms=60_000)
            broker.clock.advance(minutes=2)
            connection.send("orders", "d", time_to_live_ms=60_000)
            assert texts(connection, 3) == ["a", "b", "d"]


def test_a_url_without_a_name_and_arguments_that_contradict_each_other() -> None:
    assert plan_of("vm://Orders-1.x?jms.useAsyncSend=true").addresses == (BrokerAddress("vm", "Orders-1.x", 0),)
    assert str(plan_of("failover:(vm://a,tcp://b)")) == "failover:(vm://a,tcp://b:61616)"
    with pytest.raises(ClientOptionError, match="DMQ9052: 'vm://' is no URL of a broker: it names no broker;"):
        plan_of("vm://")
    with pytest.raises(ConfigurationError, match="DMQ6025: Broker has both ports=False and stomp_port=61613"):
        delosmq.Broker(ports=False, stomp_port=61613)
    with pytest.raises(ConfigurationError, match="DMQ6025: name of Broker is 'a b'"):
        delosmq.Broker(name="a b")
