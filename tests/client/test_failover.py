"""A connection by ``failover:`` is made again, with all that was open in it."""

# ACK-1, ACK-5, TTL-6

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

import delosmq
from delosmq.client import (
    AckMode,
    ConnectionLostError,
    TextMessage,
    TransactionInDoubtError,
    TransactionRolledBackError,
    connect,
)
from delosmq.client.aio import AsyncConnection
from delosmq.client.aio import connect as connect_async
from delosmq.client.aio_consumer import AsyncConsumer
from delosmq.model.settings import AddressMatch, BrokerSettings, QueueSettings
from delosmq.sessions.client_errors import ClientError
from delosmq.testing import ProxiedPiece, TcpProxy
from tests.patience import PATIENCE_S


@pytest.fixture
def durable(tmp_path: Path) -> Iterator[delosmq.Broker]:
    with delosmq.Broker(tmp_path / "data", http=False) as running:
        yield running


@pytest.fixture
def proxy(broker: delosmq.Broker) -> Iterator[TcpProxy]:
    with TcpProxy(broker.openwire_port) as made:
        yield made


def through(proxy: TcpProxy, options: str = "") -> str:
    return f"failover:(tcp://127.0.0.1:{proxy.port})?initialReconnectDelay=1&maxReconnectDelay=5{options}"


async def cut(proxy: TcpProxy, connection: AsyncConnection) -> None:
    """The connection breaks, and is made again."""
    proxy.cut()
    async with await connection.create_session() as session:
        await session.create_producer("asks.the.broker")


async def texts(consumer: AsyncConsumer, count: int) -> list[str]:
    found = []
    for _ in range(count):
        message = await consumer.receive(PATIENCE_S)
        assert message is not None
        found.append(message.text)
    return found


def test_a_restart_of_the_broker_is_hardly_noticed(durable: delosmq.Broker) -> None:
    url = f"failover:({durable.openwire_url})?initialReconnectDelay=1"
    with connect(url, user=durable.user, password=durable.password) as connection:
        session = connection.create_session()
        consumer = session.create_consumer("orders")
        producer = session.create_producer("orders")
        replies = session.create_temporary_queue()
        answers = session.create_consumer(replies)
        seen = []
        for round_number in range(3):
            for number in range(3):
                producer.send(f"m{round_number}{number}")
            for _ in range(2):
                message = consumer.receive(PATIENCE_S)
                assert message is not None
                seen.append(message.text)
            durable.restart()
        producer.send(TextMessage("question", reply_to=replies))
        for _ in range(4):
            message = consumer.receive(PATIENCE_S)
            assert message is not None
            seen.append(message.text)
        connection.send(replies, "answer")
        answer = answers.receive(PATIENCE_S)
        assert answer is not None
        assert answer.text == "answer"
    assert sorted(seen) == sorted([f"m{r}{n}" for r in range(3) for n in range(3)] + ["question"])


async def test_who_waits_for_a_message_goes_on_waiting(proxy: TcpProxy, broker: delosmq.Broker, name: str) -> None:
    async with connect_async(through(proxy), user=broker.user, password=broker.password) as connection:
        session = await connection.create_session()
        for prefetch in (0, 10):
            consumer = await session.create_consumer(f"{name}?consumer.prefetchSize={prefetch}")
            receiving = asyncio.ensure_future(consumer.receive(PATIENCE_S))
            await asyncio.sleep(0)
            proxy.cut()
            await connection.send(name, "x")
            message = await receiving
            assert message is not None
            assert message.text == "x"
            await consumer.close()
        assert proxy.accepted == 3


async def test_who_asks_for_each_message_waits_no_longer_than_said_while_there_is_no_broker(
    proxy: TcpProxy, broker: delosmq.Broker, name: str
) -> None:  # ACK-2
    async with connect_async(through(proxy), user=broker.user, password=broker.password) as connection:
        session = await connection.create_session()
        consumer = await session.create_consumer(f"{name}?consumer.prefetchSize=0")
        proxy.refuse()
        proxy.cut()
        assert await asyncio.wait_for(consumer.receive(0.01), PATIENCE_S) is None
        proxy.start()
        await connection.send(name, "x")
        assert await texts(consumer, 1) == ["x"]


async def test_what_is_sent_meanwhile_is_sent_later(proxy: TcpProxy, broker: delosmq.Broker, name: str) -> None:
    async with connect_async(through(proxy), user=broker.user, password=broker.password) as connection:
        session = await connection.create_session()
        consumer = await session.create_consumer(name)
        proxy.cut()
        sending = [asyncio.ensure_future(connection.send(name, f"m{number}")) for number in range(3)]
        await asyncio.gather(*sending)
        assert sorted(await texts(consumer, 3)) == ["m0", "m1", "m2"]


async def test_asyncio_says_nothing_of_what_is_written_to_a_broken_connection(
    proxy: TcpProxy, broker: delosmq.Broker, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with connect_async(through(proxy), user=broker.user, password=broker.password) as connection:
        await connection.send(name, "first")
        proxy.cut()
        await asyncio.gather(*(connection.send(name, f"m{number}") for number in range(20)))
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


async def test_a_completion_is_told_after_a_failover_and_of_the_end(
    proxy: TcpProxy, broker: delosmq.Broker, name: str
) -> None:
    told: list[ClientError | None] = []
    async with connect_async(through(proxy), user=broker.user, password=broker.password) as connection:
        session = await connection.create_session()
        producer = await session.create_producer(name)
        proxy.cut()
        for number in range(3):
            await producer.send(f"m{number}", on_completion=lambda _, error: told.append(error))
        await session.close()
        assert told == [None, None, None]
        session = await connection.create_session()
        assert sorted(await texts(await session.create_consumer(name), 3)) == ["m0", "m1", "m2"]


async def test_a_transaction_that_only_sent_is_told_again(proxy: TcpProxy, broker: delosmq.Broker, name: str) -> None:
    async with connect_async(through(proxy), user=broker.user, password=broker.password) as connection:
        session = await connection.create_session(AckMode.TRANSACTED)
        producer = await session.create_producer(name)
        await producer.send("a")
        await cut(proxy, connection)
        await producer.send("b")
        await session.commit()
        await cut(proxy, connection)
        await producer.send("never")
        await session.rollback()
        other = await connection.create_session()
        assert await texts(await other.create_consumer(name), 2) == ["a", "b"]
        assert await (await other.create_consumer(name)).receive(0) is None


async def test_a_transaction_that_has_received_is_rolled_back(
    proxy: TcpProxy, broker: delosmq.Broker, name: str
) -> None:
    async with connect_async(through(proxy), user=broker.user, password=broker.password) as connection:
        await connection.send(name, "x")
        session = await connection.create_session(AckMode.TRANSACTED)
        consumer = await session.create_consumer(name)
        producer = await session.create_producer(f"{name}.out")
        assert await texts(consumer, 1) == ["x"]
        await producer.send("half")
        await cut(proxy, connection)
        with pytest.raises(TransactionRolledBackError, match="DMQ9014"):
            await session.commit()
        again = await consumer.receive(PATIENCE_S)
        assert again is not None
        assert (again.text, again.redelivered) == ("x", True)
        await producer.send("whole")
        await session.commit()
        other = await connection.create_session()
        assert await texts(await other.create_consumer(f"{name}.out"), 1) == ["whole"]


async def test_a_commit_whose_answer_is_cut_off_is_in_doubt(proxy: TcpProxy, broker: delosmq.Broker, name: str) -> None:
    async with connect_async(through(proxy), user=broker.user, password=broker.password) as connection:
        session = await connection.create_session(AckMode.TRANSACTED)
        producer = await session.create_producer(name)
        await producer.send("x")
        proxy.blackhole(to_server=False)  # else the answer may overtake the end
        committing = asyncio.ensure_future(session.commit())
        await asyncio.sleep(0)
        proxy.cut()
        proxy.restore()
        with pytest.raises(TransactionInDoubtError, match="DMQ9012"):
            await committing
        await producer.send("y")
        await session.commit()


async def test_a_silent_broker_is_left(proxy: TcpProxy, broker: delosmq.Broker, name: str) -> None:  # TTL-6
    url = f"failover:(tcp://127.0.0.1:{proxy.port}?wireFormat.maxInactivityDuration=300"
    url += "&wireFormat.maxInactivityDurationInitalDelay=0&connectionTimeout=1000)?initialReconnectDelay=1"
    async with connect_async(url, user=broker.user, password=broker.password) as connection:
        consumer = await (await connection.create_session()).create_consumer(name)
        proxy.blackhole()
        receiving = asyncio.ensure_future(consumer.receive(PATIENCE_S))
        while proxy.accepted < 2:  # noqa: ASYNC110 - what the client does is seen from outside
            await asyncio.sleep(0.01)
        proxy.restore()
        await connection.send(name, "x")
        message = await receiving
        assert message is not None


async def test_a_silent_broker_is_told_of_without_failover(proxy: TcpProxy, broker: delosmq.Broker) -> None:  # TTL-6
    heard: asyncio.Queue[ClientError] = asyncio.Queue()
    url = f"tcp://127.0.0.1:{proxy.port}?wireFormat.maxInactivityDuration=300"
    url += "&wireFormat.maxInactivityDurationInitalDelay=0"
    async with connect_async(url, user=broker.user, password=broker.password) as connection:
        connection.set_exception_listener(heard.put_nowait)
        proxy.blackhole()
        error = await asyncio.wait_for(heard.get(), PATIENCE_S)
        assert str(error).startswith("DMQ9010: nothing came from tcp://127.0.0.1")


async def test_a_consumer_that_the_next_broker_refuses_says_so_when_it_receives() -> None:
    made: dict[str, object] = {"auto_create_queues": False, "auto_create_addresses": False}
    strict = BrokerSettings(address_settings=(AddressMatch("#", made),), queues=(QueueSettings("there", "there"),))
    heard: asyncio.Queue[ClientError] = asyncio.Queue()
    with (
        delosmq.Broker(password="secret", http=False) as one,
        delosmq.Broker(settings=strict, password="secret", http=False) as other,
    ):
        url = f"failover:({one.openwire_url},{other.openwire_url})?randomize=false&initialReconnectDelay=1"
        async with connect_async(url, user=one.user, password="secret") as connection:
            connection.set_exception_listener(heard.put_nowait)
            session = await connection.create_session()
            gone, there = await session.create_consumer("gone"), await session.create_consumer("there")
            other_session = await connection.create_session()
            receiving = asyncio.ensure_future((await other_session.create_consumer("gone, too")).receive())
            one.stop()
            await connection.send("there", "x")
            with pytest.raises(ClientError, match=r"refused what was open when the connection broke: .*gone"):
                await asyncio.wait_for(receiving, PATIENCE_S)
            with pytest.raises(ClientError, match=r"refused what was open when the connection broke: .*gone"):
                await gone.receive(PATIENCE_S)
            assert gone.closed
            assert await texts(there, 1) == ["x"]
            told = [await asyncio.wait_for(heard.get(), PATIENCE_S) for _ in range(2)]
            assert all("refused" in str(error) for error in told)


async def test_the_list_is_gone_through(broker: delosmq.Broker, name: str) -> None:
    with TcpProxy(broker.openwire_port) as gone:
        port = gone.port
    url = f"failover:(tcp://127.0.0.1:{port},{broker.openwire_url})?randomize=false&startupMaxReconnectAttempts=1"
    async with connect_async(url, user=broker.user, password=broker.password) as connection:
        await connection.send(name, "x")


async def test_there_is_an_end_to_it_if_one_is_wanted(proxy: TcpProxy, broker: delosmq.Broker, name: str) -> None:
    heard: asyncio.Queue[ClientError] = asyncio.Queue()
    connection = await connect_async(
        through(proxy, "&maxReconnectAttempts=2"), user=broker.user, password=broker.password
    )
    connection.set_exception_listener(heard.put_nowait)
    session = await connection.create_session()
    consumer = await session.create_consumer(name)
    receiving = asyncio.ensure_future(consumer.receive())
    proxy.close()
    with pytest.raises(ConnectionLostError, match="2 rounds found no broker"):
        await receiving
    assert isinstance(await asyncio.wait_for(heard.get(), PATIENCE_S), ConnectionLostError)
    assert connection.closed
    await connection.close()
    with pytest.raises(ConnectionLostError, match="DMQ9063"):
        await connect_async(through(proxy, "&startupMaxReconnectAttempts=2"))


async def test_rounds_for_the_first_connection_are_told_of(
    broker: delosmq.Broker, caplog: pytest.LogCaptureFixture
) -> None:
    url = "failover:(vm://misspelled)?initialReconnectDelay=1&warnAfterReconnectAttempts=2&startupMaxReconnectAttempts="
    with pytest.raises(ConnectionLostError, match="DMQ9072"):
        await connect_async(f"{url}5", user=broker.user, password=broker.password)
    told = [record.getMessage() for record in caplog.records if "DMQ9076" in record.getMessage()]
    assert [line[9:17] for line in told] == ["2 rounds", "4 rounds"]
    assert all("vm://misspelled" in line for line in told)


async def test_a_connection_that_is_lost_with_the_answer_to_its_login_is_made_again(
    broker: delosmq.Broker, name: str
) -> None:
    def spoil(piece: ProxiedPiece) -> bytes:
        """No frame comes behind the first thing that the broker says on the second connection, behind the second thing
        on the third one, and so on."""
        spoilt = piece.to_client and piece.number == piece.connection - 1
        return piece.content + b"\xff" * 8 if spoilt else piece.content

    with TcpProxy(broker.openwire_port, change=spoil) as proxy:
        async with connect_async(through(proxy), user=broker.user, password=broker.password) as connection:
            proxy.cut()
            async with asyncio.timeout(PATIENCE_S):
                while proxy.accepted < 6:
                    await connection.send(name, "x")
                    proxy.cut()


async def test_it_can_be_closed_while_there_is_no_broker(proxy: TcpProxy, broker: delosmq.Broker) -> None:
    connection = await connect_async(through(proxy), user=broker.user, password=broker.password)
    proxy.close()
    closing = asyncio.ensure_future(connection.send("x", "y"))
    for _ in range(20):
        await asyncio.sleep(0)
    await connection.close()
    with pytest.raises(ClientError):
        await closing


@pytest.mark.parametrize("mode", list(AckMode))
async def test_cuts_at_any_time_lose_nothing(proxy: TcpProxy, broker: delosmq.Broker, name: str, mode: AckMode) -> None:
    """Twenty cuts while messages flow. What is acknowledged does not come again, unless the acknowledgement itself was
    cut off: then the next delivery says that it is one."""
    count = 60
    chance = random.Random(7)
    done: set[str] = set()

    async def send(connection: AsyncConnection) -> None:
        for number in range(count):
            await connection.send(name, f"m{number}")

    async def cut_now_and_then() -> None:
        for _ in range(20):
            for _ in range(chance.randrange(200)):
                await asyncio.sleep(0)
            proxy.cut()

    url = through(proxy, "&jms.redeliveryPolicy.initialRedeliveryDelay=1&jms.redeliveryPolicy.maximumRedeliveries=-1")
    async with connect_async(url, user=broker.user, password=broker.password) as connection:
        session = await connection.create_session(mode)
        consumer = await session.create_consumer(name)
        tasks = [asyncio.ensure_future(send(connection)), asyncio.ensure_future(cut_now_and_then())]
        received: list[str] = []
        while len(done) < count:
            message = await consumer.receive(PATIENCE_S)
            assert message is not None, f"{count - len(done)} are missing"
            received.append(message.text)
            message.acknowledge()
            if mode == AckMode.TRANSACTED:
                try:
                    await session.commit()
                except TransactionRolledBackError:
                    continue
                except TransactionInDoubtError:
                    pass  # it may have happened
            done.add(message.text)
        await asyncio.gather(*tasks)
        await session.close()
    assert done == {f"m{number}" for number in range(count)}
    assert len(received) < 2 * count
