"""A whole broker on a disk that is full, with what the journal keeps for removals used up, or nearly."""

import logging
from random import Random

import pytest

from delosmq.engine.base.jobs import JobWaiter
from delosmq.engine.lifecycle.subscriptions import SubscriptionOptions
from delosmq.engine.log.records import TRANSACTION, encode_json
from delosmq.engine.queues.credit import OpenCredit
from delosmq.engine.routing.send_result import BLOCKED
from delosmq.model.errors import BrokerError, LimitError
from delosmq.model.ids import MonotonicNs, WallMs
from delosmq.model.message import ANYCAST, MULTICAST, Message
from delosmq.model.settings import QueueSettings
from tests.simulation.disk import SimDisk
from tests.storage.on_disk import RESERVE
from tests.storage.test_compaction import FILE_BYTES, Life, Reader

MANY = 1_000


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)


class Told(JobWaiter):
    def __init__(self) -> None:
        self.ended: list[BrokerError | None] = []

    def on_ended(self, error: BrokerError | None) -> None:
        self.ended.append(error)


def life_with(count: int = MANY) -> Life:
    life = Life(SimDisk(Random(1)))
    for _ in range(count):
        life.send("jobs", b"x" * 20)
        life.turn()
    return life


def fill(life: Life) -> None:
    life.disk.free_bytes = 0
    if "fill" not in life.broker.queues:
        life.broker.resources.create_queue(QueueSettings("fill", "fill", ANYCAST))
    while not life.broker.storage_full:
        if not life.broker.storage_low:
            life.send("fill", bytes(2000))
        life.turn(0)


def use_up(life: Life) -> None:
    """The disk is full and the reserve is gone."""
    fill(life)
    while life.broker.log.synced == life.broker.log.position:
        life.broker.log.record(encode_json(TRANSACTION, {"op": "forget", "xid": "00" * 300}))
        life.broker.log.close()
        life.turn(0)


def more_space(life: Life) -> None:
    life.disk.free_bytes = 40 * FILE_BYTES
    life.store.tick(MonotonicNs(0))
    for _ in range(40):
        life.turn()


def counts(life: Life) -> int:
    return life.broker.queues["jobs"].message_count


def test_no_peer_uses_up_what_acknowledgements_need() -> None:
    life = life_with()
    reader = Reader()
    consumer = life.broker.consumers.subscribe("jobs", reader, OpenCredit())
    for _ in range(3):
        life.turn()
    fill(life)

    def come_and_go() -> None:
        options = SubscriptionOptions(name="me.sub", durable=True)
        while True:
            life.broker.consumers.close(
                life.broker.consumers.subscribe("t", Reader(), OpenCredit(), routing=MULTICAST, subscription=options)
            )
            life.broker.resources.unsubscribe("me.sub")
            life.turn(0)

    with pytest.raises(LimitError, match="DMQ2685"):
        come_and_go()
    assert life.room > RESERVE - 1_024
    for slot in reader.slots[:100]:
        assert life.broker.consumers.acknowledge(consumer, slot.sequence)
        life.turn(0)
    assert counts(life) == MANY - 100
    assert life.broker.log.synced == life.broker.log.position, "all of it is on the disk"


def test_a_large_acknowledgement_goes_on_in_memory_and_is_on_the_disk_when_there_is_space() -> None:
    life = life_with(3_000)
    reader = Reader()
    consumer = life.broker.consumers.subscribe("jobs", reader, OpenCredit())
    for _ in range(4):
        life.turn()
    use_up(life)
    life.broker.consumers.acknowledge_through(consumer, reader.slots[-1].sequence)
    for _ in range(50):
        life.turn(0)
    assert counts(life) == 0
    assert life.broker.log.synced < life.broker.log.position
    assert life.broker.producers.send(_message("jobs")) == BLOCKED
    lost = life.disk.power_cut()
    lost.free_bytes = None
    crashed = Life(lost)
    assert counts(crashed) == 3_000, "nobody was told"
    more_space(life)
    assert (life.broker.storage_low, life.broker.log.synced) == (False, life.broker.log.position)
    life.send("jobs", b"again")
    life.turn()
    life.disk.process_crash()
    again = Life(life.disk)
    assert [slot.message.body for slot in again.broker.queues["jobs"].pending.in_order()] == [b"again"]


def test_purge_expiry_and_rings_go_on_too() -> None:
    life = life_with(0)
    life.broker.resources.create_queue(QueueSettings("ring", "ring", ANYCAST, ring_size=1))
    for body in (b"A", b"B", b"C"):
        life.broker.producers.send(_message("ring", body, due_at_ms=life.clock.wall_ms() + 400))
        life.broker.producers.send(_message("jobs", body))
        life.broker.producers.send(_message("dead", body, expires_at_ms=life.clock.wall_ms() + 400))
    life.turn()
    use_up(life)
    reader = Reader()
    life.broker.consumers.subscribe("dead", reader, OpenCredit())
    assert life.broker.resources.purge_queue("jobs").done
    life.clock.now_ms += 1_000
    for _ in range(5):
        life.turn()
    assert (counts(life), reader.slots, life.broker.queues["ring"].pending.count) == (0, [], 1)
    more_space(life)
    life.send("jobs", b"D")
    reader = Reader()
    life.broker.consumers.subscribe("jobs", reader, OpenCredit())
    life.turn()
    assert [slot.message.body for slot in reader.slots] == [b"D"], "the queue is not held"
    life.disk.process_crash()
    queues = Life(life.disk).broker.queues
    assert [queues[name].message_count for name in ("jobs", "dead", "ring")] == [1, 0, 1]


def test_a_large_transaction_commits_what_it_acknowledges() -> None:
    life = life_with(600)
    reader = Reader()
    consumer = life.broker.consumers.subscribe("jobs", reader, OpenCredit())
    for _ in range(3):
        life.turn()
    transaction = life.broker.transactions.begin("me")
    for slot in reader.slots:
        assert life.broker.consumers.acknowledge(consumer, slot.sequence, transaction)
    use_up(life)
    told = Told()
    assert not life.broker.transactions.commit(transaction, told)
    for _ in range(20):
        life.turn(0)
    assert (told.ended, counts(life)) == ([None], 0)
    more_space(life)
    life.disk.process_crash()
    assert counts(Life(life.disk)) == 0


def _message(address: str, body: bytes = b"x", *, due_at_ms: int = 0, expires_at_ms: int = 0) -> Message:
    return Message(
        address,
        "stomp/12",
        b"",
        body,
        durable=True,
        timestamp_ms=WallMs(1),
        due_at_ms=WallMs(due_at_ms),
        expires_at_ms=WallMs(expires_at_ms),
    )
