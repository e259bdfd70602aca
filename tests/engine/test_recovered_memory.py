"""What messages take in memory after a restart: what they took before it, and no more on the way there."""

# BROKER-1

import gc
import tracemalloc
from pathlib import Path
from select import select

import pytest

from delosmq.engine.base.events import EngineEvents
from delosmq.engine.broker import EngineBroker
from delosmq.model.message import ANYCAST, MULTICAST, Message
from delosmq.model.settings import BrokerSettings, JournalSettings, QueueSettings
from delosmq.storage.journal import open_journal
from delosmq.storage.port import ServedStore
from tests.engine.support import CountingRandom, ManualClock
from tests.storage.support import NODE, Listener

pytestmark = pytest.mark.slow

MESSAGES = 4_000
MORE = 1.1
"""Times the memory before the restart, and times what is accounted."""
TABLE_BYTES = 40
"""Of a table by sequence, for an entry with its key: what bodies make up for when there is one queue."""
HEAD = b"destination:/queue/orders\ncontent-type:text/plain\n"


class Life:
    """A broker with a journal, from its start to its end."""

    def __init__(self, directory: Path, queues: tuple[QueueSettings, ...]) -> None:
        settings = BrokerSettings(queues=queues, journal=JournalSettings(file_size_bytes=64 * 1024))
        self.store: ServedStore = open_journal(directory, settings.journal, node_id=NODE, sync_process=False)
        self.broker = EngineBroker(
            settings, self.store, clock=ManualClock(), random=CountingRandom(), events=EngineEvents()
        )
        self.listener = Listener()
        self.store.attach(self.listener, self.broker.state)
        # Traced from here on: what the parts of a broker take does not matter.
        gc.collect()
        tracemalloc.start()
        self.broker.start()
        self.settle()
        self.peak_bytes = tracemalloc.get_traced_memory()[1]
        self.began_bytes = tracemalloc.get_traced_memory()[0]

    def send(self, address: str, count: int, **fields: object) -> None:
        for number in range(count):
            # As a session makes them: one address and one head for all, and what differs is the body.
            message = Message(
                address,
                "stomp/12",
                HEAD,
                b"%010d" % number,
                durable=True,
                timestamp_ms=self.broker.clock.wall_ms(),
                user="ann",
                **fields,  # type: ignore[arg-type]
            )
            self.broker.producers.send(message)
            if number % 100 == 0:
                self.settle()
            while self.listener.space and self.listener.space[-1]:  # as senders wait for the next file
                select([self.store.fileno()], [], [], 60.0)
                self.store.on_readable()
        self.settle()

    def settle(self) -> None:
        self.store.wait_synced(self.broker.log.position, 60.0)

    def traced_bytes(self) -> int:
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    def end(self) -> None:
        tracemalloc.stop()
        self.store.close(60.0)


def messages_of(life: Life, queue: str) -> list[Message]:
    return [slot.message for slot in life.broker.queues[queue].pending.in_order()]


QUEUES = {
    "one queue": (QueueSettings("orders", "orders", ANYCAST),),
    "three queues": tuple(QueueSettings(f"orders.{k}", "orders", MULTICAST) for k in range(3)),
}


@pytest.mark.parametrize("queues", QUEUES.values(), ids=QUEUES)
@pytest.mark.parametrize("fields", [{}, {"group_id": "g", "group_sequence": 7}], ids=["plain", "grouped"])
def test_messages_take_no_more_memory_after_a_restart(
    tmp_path: Path, queues: tuple[QueueSettings, ...], fields: dict[str, object]
) -> None:
    life = Life(tmp_path, queues)
    life.send("orders", MESSAGES, **fields)
    before = life.traced_bytes() - life.began_bytes
    life.end()
    life = Life(tmp_path, queues)
    after = life.traced_bytes()
    life.end()
    assert life.broker.queues[queues[0].name].message_count == MESSAGES
    assert after < before * MORE
    # The tables that recovery needs are gone before it has all bodies.
    if len(queues) == 1:
        assert life.peak_bytes < before * MORE
        assert life.peak_bytes < life.broker.used_bytes * MORE
    else:
        assert life.peak_bytes < before * MORE + MESSAGES * len(queues) * TABLE_BYTES


def test_messages_share_after_a_restart_what_they_shared_before(tmp_path: Path) -> None:
    queues = QUEUES["one queue"]
    life = Life(tmp_path, queues)
    life.send("orders", 3)
    life.end()
    life = Life(tmp_path, queues)
    first, second, third = messages_of(life, "orders")
    life.end()
    for other in (second, third):
        assert other.head is first.head
        assert other.address is first.address
        assert other.protocol is first.protocol
        assert other.user is first.user
    assert [message.body for message in (first, second, third)] == [b"%010d" % number for number in range(3)]
