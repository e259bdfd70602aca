"""Turning a broker's clock turns those of the clients in the same process: redelivery delays and lives of messages."""

from dataclasses import replace

import delosmq
from delosmq.client import AckMode, ClientConnection, RedeliveryPolicy
from delosmq.client.aio import connect as connect_async
from delosmq.embedded.arguments import default_settings
from delosmq.model.settings import BrokerSettings
from delosmq.testing import BrokerFixture
from tests.patience import PATIENCE_S

FIVE_MINUTES = "jms.redeliveryPolicy.initialRedeliveryDelay=300000&jms.redeliveryPolicy.redeliveryDelay=300000"


def connect(broker: BrokerFixture, options: str = FIVE_MINUTES) -> ClientConnection:
    return delosmq.connect(f"{broker.openwire_url}?{options}", user=broker.user, password=broker.password)


def test_a_message_rolled_back_comes_again_after_its_delay(broker: BrokerFixture) -> None:
    with connect(broker) as connection, connection.create_session(AckMode.TRANSACTED) as session:
        connection.send("orders", "tea")
        consumer = session.create_consumer("orders")
        assert consumer.receive(PATIENCE_S) is not None
        session.rollback()
        broker.clock.advance(minutes=4, seconds=59)
        assert consumer.receive(0) is None
        broker.clock.advance(seconds=1)
        again = consumer.receive(0)
        assert again is not None
        assert again.delivery_count == 2
        session.commit()


def test_a_connection_of_the_kit_takes_redelivery_policies(broker: BrokerFixture) -> None:
    policies = {"orders": RedeliveryPolicy(maximum_redeliveries=1, initial_redelivery_delay_ms=300_000)}
    with (
        broker.connect(redelivery_policies=policies) as connection,
        connection.create_session(AckMode.TRANSACTED) as session,
    ):
        connection.send("orders", "tea")
        consumer = session.create_consumer("orders")
        assert consumer.receive(PATIENCE_S) is not None
        session.rollback()
        broker.clock.advance(seconds=299)
        assert consumer.receive(0) is None
        broker.clock.advance(seconds=1)
        assert consumer.receive(0) is not None
        session.rollback()
    broker.queue("DLQ").assert_has(messages=1)


async def test_so_does_one_of_a_client_for_asyncio(broker: BrokerFixture) -> None:
    policies = {"orders": RedeliveryPolicy(maximum_redeliveries=0)}
    async with broker.connect_async(redelivery_policies=policies) as connection:
        await connection.send("orders", "tea")
        async with await connection.create_session(AckMode.TRANSACTED) as session:
            consumer = await session.create_consumer("orders")
            assert await consumer.receive(PATIENCE_S) is not None
            await session.rollback()
    broker.queue("DLQ").assert_has(messages=1)


async def test_so_does_one_of_a_client_in_the_loop_of_the_test(broker: BrokerFixture) -> None:
    url = f"{broker.openwire_url}?{FIVE_MINUTES}"
    async with connect_async(url, user=broker.user, password=broker.password) as connection:
        await connection.send("orders", "tea")
        async with await connection.create_session(AckMode.TRANSACTED) as session:
            consumer = await session.create_consumer("orders")
            assert await consumer.receive(PATIENCE_S) is not None
            await session.rollback()
            broker.clock.advance(minutes=5)
            assert await consumer.receive(0) is not None
            await session.commit()


def test_the_broker_is_not_taken_for_silent(broker: BrokerFixture) -> None:
    with connect(broker, "wireFormat.maxInactivityDuration=30000") as connection:
        broker.clock.advance(hours=1)
        connection.send("orders", "tea")
        assert not connection.closed
    broker.queue("orders").assert_has(messages=1)


def test_a_later_connection_has_the_brokers_time(durable_broker: BrokerFixture) -> None:
    durable_broker.clock.advance(days=1)
    for _ in range(2):
        with connect(durable_broker) as connection:
            connection.send("orders", "tea", time_to_live_ms=60_000)
        (tea,) = durable_broker.queue("orders").messages
        assert abs(durable_broker.clock.now.timestamp() - tea.timestamp_ms / 1_000) < 60
        durable_broker.stop()
        durable_broker.clock.advance(minutes=2)
        durable_broker.start()


def test_a_new_broker_has_the_right_time_and_so_have_its_clients(broker: BrokerFixture) -> None:
    broker.clock.advance(days=1)
    with connect(broker) as connection:
        connection.send("orders", "tea")
    broker.reset()
    with connect(broker) as connection:
        connection.send("orders", "tea", time_to_live_ms=60_000)
        broker.queue("orders").assert_has(messages=1)
        broker.clock.advance(minutes=2)
        broker.queue("orders").wait_for(messages=0)


def listening_on(host: str, port: int) -> BrokerSettings:
    settings = default_settings()
    acceptors = tuple(replace(one, host=host) for one in settings.acceptors if one.name == "openwire")
    return replace(settings, acceptors=tuple(replace(one, port=port) for one in acceptors))


def test_a_broker_on_another_address_with_the_same_port_turns_no_clock_of_this_one_s_clients() -> None:
    with BrokerFixture(settings=listening_on("127.0.0.2", 0)) as other:
        port = int(other.openwire_url.rpartition(":")[2])
        with (
            BrokerFixture(settings=listening_on("127.0.0.1", port)) as broker,
            delosmq.connect(f"tcp://localhost:{port}", user=broker.user, password=broker.password) as connection,
        ):
            other.clock.advance(days=1)
            connection.send("orders", "tea")
            (tea,) = broker.queue("orders").messages
            assert abs(broker.clock.now.timestamp() - tea.timestamp_ms / 1_000) < 60


def test_a_broker_on_all_addresses_turns_the_clocks_of_its_clients() -> None:
    with BrokerFixture(settings=listening_on("0.0.0.0", 0)) as broker, connect(broker) as connection:
        broker.clock.advance(days=1)
        connection.send("orders", "tea")
        (tea,) = broker.queue("orders").messages
        assert abs(broker.clock.now.timestamp() - tea.timestamp_ms / 1_000) < 60


def test_a_message_waits_for_the_delay_that_its_sender_asked_for() -> None:
    with BrokerFixture(ports=False) as broker, broker.connect() as connection:
        broker.clock.freeze()
        connection.send("x", "later", delay_ms=50)
        connection.send("x", "now")
        consumer = connection.create_session().create_consumer("x")
        first = consumer.receive(PATIENCE_S)
        broker.clock.advance(milliseconds=49)
        assert consumer.receive(0) is None
        broker.clock.advance(milliseconds=1)
        second = consumer.receive(PATIENCE_S)
        assert [None if one is None else one.text for one in (first, second)] == ["now", "later"]
