"""What an address keeps for subscribers, and what expires, in a journal of small files: no decision outgrows its batch,
and what needs a file of its own waits for it."""

from random import Random
from typing import Any

import pytest

import tests.storage.test_compaction as compaction
from delosmq.engine.broker import EngineBroker
from delosmq.engine.lifecycle.subscriptions import SubscriptionOptions
from delosmq.engine.queues.credit import OpenCredit
from delosmq.engine.routing.send_result import BLOCKED, ROUTED
from delosmq.model.conversion import Conversions
from delosmq.model.message import MULTICAST, Message
from delosmq.wire.stomp.conversion import StompConversion, encode_lines
from delosmq.wire.stomp.versions import V12
from tests.simulation.disk import SimDisk
from tests.storage.test_compaction import Life, Reader
from tests.storage.test_large_batches import large, one_spare_left

HISTORY = "$delosmq.history.news"


def converting_broker(*arguments: Any, **named: Any) -> EngineBroker:
    return EngineBroker(*arguments, **named, conversions=Conversions({"stomp": StompConversion()}))


def publish(life: Life, body: bytes, **properties: str) -> int:
    head = encode_lines([("destination", "news"), *properties.items()], V12)
    message = Message("news", "stomp/12", head, body, durable=True, timestamp_ms=life.clock.wall_ms())
    return life.broker.producers.send(message, routing=MULTICAST)


def kept(life: Life) -> list[bytes]:
    return [slot.message.body for slot in life.broker.queues[HISTORY].pending.in_order()]


def fill(life: Life, count: int) -> None:
    for number in range(count):
        assert publish(life, str(number).encode()) == ROUTED
        life.turn(1)


@pytest.mark.parametrize("size", [9_900, 36_500])
def test_a_message_that_takes_the_place_of_very_many(size: int) -> None:
    life = Life(SimDisk(Random(1)), subscription_recovery_size=size + 100)
    fill(life, 1_000)
    life.turn()
    count = len(kept(life))
    while publish(life, bytes(size)) == BLOCKED:
        life.turn()
    assert len(kept(life)) > count - 10, "most go later"
    for _ in range(10):
        life.turn()
    history = life.broker.queues[HISTORY]
    assert 0 < history.total.bytes <= size + 100
    left = kept(life)
    assert left[-1] == bytes(size)
    life.disk.process_crash()
    assert kept(Life(life.disk, subscription_recovery_size=size + 100)) == left


def test_an_address_that_shall_keep_far_less_starts() -> None:
    life = Life(SimDisk(Random(1)), subscription_recovery_count=1_500)
    fill(life, 1_500)
    life.disk.process_crash()
    life = Life(life.disk, subscription_recovery_count=3)
    assert kept(life) == [b"1497", b"1498", b"1499"]
    life.turn()
    life.disk.process_crash()
    assert len(kept(Life(life.disk, subscription_recovery_count=3))) == 3


@pytest.fixture
def keeping(monkeypatch: pytest.MonkeyPatch) -> Life:
    """A marked message that needs most of a file, and no file for it."""
    monkeypatch.setattr(compaction, "EngineBroker", converting_broker)
    life = Life(SimDisk(Random(1)), subscription_recovery_retained=True)
    assert publish(life, bytes(36_000), **{"ActiveMQ.Retain": "true"}) == ROUTED
    life.turn()
    life.turn()
    one_spare_left(life)
    return life


def test_a_retained_message_waits_for_the_place_of_its_copy(keeping: Life) -> None:
    life = keeping
    reader = Reader()
    options = SubscriptionOptions(name="sub", durable=True, retroactive=True)
    life.broker.consumers.subscribe("news", reader, OpenCredit(), routing=MULTICAST, subscription=options)
    assert life.broker.queues["sub"].pending.count == 0
    assert publish(life, b"later") == BLOCKED
    life.turn()
    life.turn()
    assert publish(life, b"later") == ROUTED
    life.turn()
    assert [len(slot.message.body) for slot in reader.slots] == [36_000, 5]
    life.disk.process_crash()
    assert Life(life.disk, subscription_recovery_retained=True).broker.queues["sub"].message_count == 2


def test_a_subscription_that_ends_meanwhile_gets_none(keeping: Life) -> None:
    life = keeping
    options = SubscriptionOptions(name="sub", durable=True, retroactive=True)
    consumer = life.broker.consumers.subscribe("news", Reader(), OpenCredit(), routing=MULTICAST, subscription=options)
    life.broker.consumers.close(consumer)
    life.broker.resources.unsubscribe("sub")
    life.turn()
    life.turn()
    assert "sub" not in life.broker.queues
    assert not life.broker.tick(), "nothing is left to do"


def test_what_expired_is_not_delivered_while_its_copy_waits_for_a_file() -> None:
    life = Life(SimDisk(Random(1)), expiry_address="dead")
    expires_at_ms = life.clock.now_ms + 100_000
    for number in range(3):
        while life.broker.producers.send(large(life, number, expires_at_ms=expires_at_ms)) == BLOCKED:
            life.turn(1)
        life.turn(1)
    life.send("jobs", b"fresh")
    life.clock.now_ms = expires_at_ms + 1
    reader = Reader()
    life.broker.consumers.subscribe("jobs", reader, OpenCredit())
    life.broker.tick()
    assert reader.slots == []
    for _ in range(20):
        life.turn(10)
    assert [slot.message.body for slot in reader.slots] == [b"fresh"]
    assert life.broker.queues["dead"].message_count == 3
