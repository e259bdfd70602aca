"""``vm://``: who writes faster than the other end reads waits, as with a socket, and goes on when there is room."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import pytest

from delosmq.client.aio import AsyncConnection
from delosmq.client.aio_producer import AsyncProducer
from delosmq.embedded.arguments import default_settings
from delosmq.model.settings import AddressMatch
from delosmq.model.values import AddressFullPolicy
from delosmq.testing import BrokerFixture
from tests.patience import PATIENCE_S

MESSAGE_BYTES: Final = 10_000
MESSAGES: Final = 2_000
"""20 MB in all."""
MOST_ON_THE_WAY: Final = 60
"""600 kB: twice what a connection within the process takes, and more."""
MOST_IN_THE_BROKER: Final = 200
"""2 MB: what a connection may park and has read, or has to write."""
ROOM: Final = 5


@pytest.fixture
def kit() -> Iterator[BrokerFixture]:
    settings = default_settings()
    few = {"max_size_messages": ROOM, "address_full_policy": AddressFullPolicy.BLOCK}
    settings = replace(settings, address_settings=(*settings.address_settings, AddressMatch("narrow", few)))
    with BrokerFixture(settings=settings, ports=False) as running:
        yield running


class Sending:
    """Sends all messages, and waits for no answers.

    Attributes:
        sent: how many it was let send.
    """

    def __init__(self, kit: BrokerFixture, name: str) -> None:
        self.sent = 0
        self.most_on_the_way = 0
        self._queue = kit.queue(name)

    async def send_all(self, producer: AsyncProducer, *, looks: bool = True) -> None:
        for number in range(MESSAGES):
            await producer.send(bytes(MESSAGE_BYTES), properties={"number": number}, persistent=False)
            self.sent += 1
            if looks and number % 20 == 0:
                self.most_on_the_way = max(self.most_on_the_way, self.sent - self._queue.counts.added)


async def consume_all(connection: AsyncConnection, name: str) -> list[object]:
    """The numbers of all messages."""
    async with await connection.create_session() as session:
        consumer = await session.create_consumer(f"{name}?consumer.prefetchSize=10")
        found = [await consumer.receive(PATIENCE_S) for _ in range(MESSAGES)]
        return [None if one is None else one.properties["number"] for one in found]


async def test_a_producer_waits_for_a_broker_that_does_not_read(kit: BrokerFixture) -> None:
    async with kit.connect_async() as connection, await connection.create_session() as session:
        producer = await session.create_producer("wide")
        sending = Sending(kit, "wide")
        with kit.silent():
            task = asyncio.create_task(sending.send_all(producer, looks=False))
            await asyncio.sleep(0)  # until it waits
            assert 0 < sending.sent < MOST_ON_THE_WAY
        await task
        await kit.queue("wide").wait_for_async(messages=MESSAGES)


async def test_a_producer_waits_for_room_at_a_full_address_and_goes_on(kit: BrokerFixture) -> None:
    async with kit.connect_async() as one, kit.connect_async() as other, await one.create_session() as session:
        producer = await session.create_producer("narrow")
        sending = Sending(kit, "narrow")
        task = asyncio.create_task(sending.send_all(producer))
        await kit.queue("narrow").wait_for_async(messages=ROOM)
        assert await consume_all(other, "narrow") == list(range(MESSAGES))
        await task
        assert 0 < sending.most_on_the_way < MOST_ON_THE_WAY + MOST_IN_THE_BROKER


async def test_the_broker_waits_for_a_consumer_that_does_not_read(kit: BrokerFixture) -> None:
    queue = kit.queue("wide")
    with kit.connect() as connection, connection.create_session() as session:
        producer = session.create_producer("wide")
        for number in range(MESSAGES):
            producer.send(bytes(MESSAGE_BYTES), properties={"number": number}, persistent=False)
    queue.wait_for(messages=MESSAGES)
    async with kit.connect_async() as reader, await reader.create_session() as reading:
        consumer = await reading.create_consumer("wide?consumer.prefetchSize=2000")
        # The loop of this client does nothing from here on.
        with kit.connect() as other:
            for _ in range(50):
                other.send("turns", "x")
        assert 0 < queue.counts.delivering < MOST_ON_THE_WAY + MOST_IN_THE_BROKER
        found = [await consumer.receive(PATIENCE_S) for _ in range(MESSAGES)]
        assert [None if one is None else one.properties["number"] for one in found] == list(range(MESSAGES))
