"""The pulse of a broker: one tick per turn, replies at the sync, and the end when the store fails."""

import asyncio
import os

from delosmq.engine.consumer import ConsumerPort
from delosmq.engine.credit import OpenCredit
from delosmq.engine.log import Batch
from delosmq.engine.outcome import ROUTED
from delosmq.engine.slots import Slot
from delosmq.model.errors import BrokerError, StorageError
from delosmq.model.ids import MonotonicNs, Position
from delosmq.model.message import ANYCAST, Message
from delosmq.storage.memory import MemoryStore
from tests.server.support import RunningServer, running


class PipeStore(MemoryStore):
    """Reports syncs as a journal does: later, through a descriptor."""

    def __init__(self) -> None:
        super().__init__()
        self.read_end, self.write_end = os.pipe()
        self.flushes = 0
        self.appended = Position(0)
        self.failure: StorageError | None = None
        self.timer_calls = 0

    def append(self, batch: Batch) -> None:
        super().append(batch)
        self.appended = batch.position

    def flush(self) -> None:
        self.flushes += 1

    def wait_synced(self, position: Position, timeout_s: float) -> None:
        assert self._events is not None
        self._events.on_synced(position)

    def fileno(self) -> int:
        return self.read_end

    def sync(self) -> None:
        os.write(self.write_end, b"x")

    def on_readable(self) -> None:
        os.read(self.read_end, 100)
        if self.failure is not None:
            raise self.failure
        assert self._events is not None
        self._events.on_synced(self.appended)

    def tick(self, now: MonotonicNs) -> None:
        self.timer_calls += 1

    def close(self, timeout_s: float) -> None:
        os.close(self.read_end)
        os.close(self.write_end)


async def test_a_receipt_leaves_when_the_store_reports_the_sync() -> None:
    store = PipeStore()
    async with running(store=store) as server:
        peer = await server.connect()
        peer.send_frame("SEND", "destination:/queue/a", "persistent:true", "receipt:held", body="x")
        await server.until(lambda: bool(server.gate._holding))
        store.sync()
        assert (await peer.frame()).headers["receipt-id"] == "held"
        await peer.close()


async def test_many_frames_of_one_turn_share_one_tick() -> None:
    store = PipeStore()
    async with running(store=store) as server:
        peer = await server.connect()
        await _settle()
        before = store.flushes
        peer.send("".join("SEND\ndestination:/queue/a\n\nx\0" for _ in range(50)))
        await server.until(lambda: "a" in server.broker.queues)
        await _settle()
        assert server.broker.queues["a"].message_count == 50
        assert store.flushes == before + 1
        await peer.close()


async def _settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_after_a_failing_sync_nothing_is_confirmed_and_the_broker_is_told_to_stop() -> None:
    store = PipeStore()
    reached: RunningServer | None = None
    async with running(store=store) as server:
        reached = server
        peer = await server.connect()
        peer.send_frame("SEND", "destination:/queue/a", "persistent:true", "receipt:never", body="x")
        await server.until(lambda: bool(server.gate._holding))
        store.failure = StorageError("DMQ3999", "the disk is gone")
        store.sync()
        await server.until(lambda: bool(server.fatal))
        assert server.fatal == [store.failure]
        peer.writer.transport.abort()
        await server.until(lambda: not server.listener.connections)
        server.fatal.clear()
    assert reached is not None


async def test_a_broken_invariant_stops_the_broker_instead_of_guessing() -> None:
    async with running() as server:
        peer = await server.connect()

        def broken(chunk: bytes, now: MonotonicNs) -> None:
            raise AssertionError("impossible")

        (connection,) = server.listener.connections
        connection._session.receive = broken  # type: ignore[method-assign,union-attr]
        peer.send("\n")
        await server.until(lambda: bool(server.fatal))
        assert "impossible" in str(server.fatal[0])
        server.fatal.clear()
        peer.writer.transport.abort()
        await server.until(lambda: not server.listener.connections)


class Listener(ConsumerPort):
    def __init__(self) -> None:
        self.delivered = asyncio.Event()

    def deliver(self, slot: Slot) -> None:
        self.delivered.set()

    def has_room(self) -> bool:
        return True

    def closed_by_broker(self, reason: BrokerError) -> None: ...


async def test_an_appointment_of_the_engine_brings_a_tick_though_nobody_does_anything() -> None:  # RING-9
    async with running() as server:
        # The store asks for a tick every second; without it only the appointment can bring one.
        timer = server.ticker._store_timer
        assert timer is not None
        timer.cancel()
        listener = Listener()
        consumer = server.broker.subscribe("later", listener, OpenCredit(), routing=ANYCAST)
        now = server.broker.clock.wall_ms()
        message = Message("later", "stomp/12", b"", b"due", timestamp_ms=now, due_at_ms=now + 20)
        assert server.broker.send(message) == ROUTED
        server.ticker.schedule()
        await asyncio.wait_for(listener.delivered.wait(), 10)
        server.broker.close_consumer(consumer)
