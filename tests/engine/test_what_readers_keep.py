"""Who reads and answers nothing keeps no message alive that has left its queue: it would be counted nowhere."""

# BROKER-4, EXCL-3

import pytest

from delosmq.engine.base.slots import PendingSlots, Slot
from delosmq.engine.queues.consumer import ConsumerOptions, ConsumerPort
from delosmq.engine.queues.credit import MessageCredit, OpenCredit
from delosmq.engine.queues.loans import MOST_LENT
from delosmq.model.errors import BrokerError
from delosmq.model.ids import Sequence, WallMs
from delosmq.model.message import Message
from tests.engine.dispatch_support import Field
from tests.engine.support import Bench
from tests.memory import measured

pytestmark = pytest.mark.slow

READERS = 20
LARGE = "x" * 100_000
MANY = 1_000
# Of each message lent: its sequence, its size and what a dictionary takes; 152 measured on CPython 3.11.
LENT_BYTES = 200
# Of each message that a browser has seen; a set of sequences takes 32 and more.
SEEN_BYTES = 8


class Written(ConsumerPort):
    """What is delivered leaves at once, and is counted."""

    def __init__(self) -> None:
        self.count = 0

    def deliver(self, slot: Slot) -> None:
        self.count += 1

    def has_room(self) -> bool:
        return True

    def closed_by_broker(self, reason: BrokerError) -> None:
        pass


def purge(bench: Bench) -> None:
    bench.broker.resources.purge_queue("q")
    bench.run()
    assert (bench.counts("q"), bench.broker.used_bytes) == ((0, 0, 0), 0)


def fill(bench: Bench, count: int, body: str) -> None:
    for _ in range(count):
        bench.broker.producers.send(bench.message("q", body, durable=False))
    bench.run()


def made(sequence: int) -> Slot:
    message = Message("q", "stomp/12", b"", b"", timestamp_ms=WallMs(0))
    message.sequence = Sequence(sequence)
    return Slot(message, False)


@pytest.mark.parametrize("kind", ["browsers", "consumers of a non-destructive queue"])
@pytest.mark.parametrize(("count", "body"), [(100, LARGE), (MANY, "small")])
def test_messages_that_readers_never_answered_go_with_their_queue(kind: str, count: int, body: str) -> None:
    field = Field(queue={"non_destructive": kind != "browsers"})
    options = ConsumerOptions(browser=kind == "browsers")
    ports = [Written() for _ in range(READERS)]
    with measured() as grown:
        fill(field, count, body)
        for port in ports:
            field.broker.consumers.subscribe("q", port, MessageCredit(65_536), options=options)
        field.run()
        assert all(port.count == count for port in ports)
        purge(field)
        assert grown() < READERS * (count * LENT_BYTES + 10_000)


def test_a_browser_without_room_keeps_nothing_that_others_acknowledge() -> None:
    field = Field()
    with measured() as grown:
        consumer = field.peer()
        fill(field, 100, LARGE)
        sequences = [slot.sequence for slot in consumer.port.slots]
        consumer.port.slots.clear()
        browser = field.broker.consumers.subscribe(
            "q", Written(), MessageCredit(1), options=ConsumerOptions(browser=True)
        )
        field.run()
        for sequence in sequences:
            assert field.broker.consumers.acknowledge(consumer.consumer, sequence)
        field.run()
        assert field.broker.used_bytes == 0
        assert grown() < 500_000
        assert field.broker.consumers.acknowledge(browser, sequences[0])


def test_nor_what_came_back_and_left_again() -> None:
    field = Field()
    port = Written()
    with measured() as grown:
        fill(field, 100, LARGE)
        field.broker.consumers.subscribe("q", port, MessageCredit(100), options=ConsumerOptions(browser=True))
        field.put("last", durable=False)
        assert port.count == 100
        consumer = field.peer()
        field.run()
        consumer.port.slots.clear()
        consumer.close()
        field.run()
        purge(field)
        assert grown() < 500_000


def test_a_cursor_that_nobody_moves_keeps_few_places() -> None:
    pending = PendingSlots()
    slots = [made(number) for number in range(1, 4)]
    for slot in slots:
        pending.put_back(slot)
    cursor = pending.cursor()
    for slot in slots:
        cursor.advance(slot)
    with measured() as grown:
        for _ in range(10_000):
            last = pending.in_order()[-1]
            pending.remove(last)
            pending.put_first(last)
        assert grown() < 100_000
    seen = []
    while (found := cursor.peek()) is not None:
        seen.append(found)
        cursor.advance(found)
    assert seen == pending.in_order()
    assert len(seen) == 3
    pending.drop(cursor)
    assert [slot.marks for slot in slots] == [0, 0, 0]


def test_a_message_that_moves_to_another_consumer_is_browsed_all_the_same() -> None:
    field = Field()
    first = field.peer(3)
    field.put("1 2 3")
    browser = field.peer(1, browser=True)
    field.run()
    assert browser.got == "1"
    second = field.peer(3)
    first.close()
    field.run()
    assert second.got == "1 2 3"
    browser.ack("1")
    field.run()
    browser.ack("2")
    field.run()
    browser.ack("3")
    field.run()
    assert (browser.got, browser.port.ends) == ("1 2 3", 1)


def test_of_very_much_that_is_not_answered_the_oldest_counts_as_answered() -> None:
    field = Field()
    for _ in range(MOST_LENT + 2):
        field.broker.producers.send(field.message("q", "m", durable=False))
    sequences = [int(slot.sequence) for slot in field.broker.queues["q"].pending.in_order()]
    port = Written()
    browser = field.broker.consumers.subscribe("q", port, OpenCredit(), options=ConsumerOptions(browser=True))
    field.run()
    assert port.count == MOST_LENT + 2
    assert [browser.holds(sequence) for sequence in sequences[:3]] == [False, False, True]
    assert not field.broker.consumers.acknowledge(browser, sequences[1])
    assert field.broker.consumers.acknowledge_through(browser, sequences[-1])
    field.run()
    assert not browser.holds(sequences[-2])


def test_a_browser_keeps_a_few_bits_of_each_message_that_it_has_seen():
    count = 4_000
    field = Field()
    field.put(" ".join(str(k) for k in range(count + 2 * MANY)), run=False)
    port = Written()
    options = ConsumerOptions(browser=True)
    consumer = field.broker.consumers.subscribe("q", port, MessageCredit(MANY), options=options)
    sequences = [int(slot.sequence) for slot in field.broker.queues["q"].pending.in_order()]
    field.run()
    with measured() as grown:
        while port.count <= count:
            assert field.broker.consumers.acknowledge_through(consumer, sequences[port.count - 1])
            field.run()
        kept = grown()
    assert kept < LENT_BYTES * MANY + SEEN_BYTES * count
