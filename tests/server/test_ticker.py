"""The pulse of a broker: one tick per turn, replies at the sync, and the end when the store fails."""

import asyncio
import os

from delosmq.engine.base.slots import Slot
from delosmq.engine.log.log import Batch
from delosmq.engine.queues.consumer import ConsumerPort
from delosmq.engine.queues.credit import OpenCredit
from delosmq.engine.routing.send_result import ROUTED
from delosmq.model.errors import BrokerError, StorageError
from delosmq.model.ids import NOTHING_DURABLE, MonotonicNs, Position, WallMs
from delosmq.model.message import ANYCAST, Message
from delosmq.server.input_buffer import UNCOUNTED_BYTES, Receiver
from delosmq.server.ticker import SYNC_WITHIN_S, Ticker
from delosmq.server.turn_loop import TurnLoop, turn_of
from delosmq.sessions.outbox import GateWaiter
from delosmq.storage.memory import MemoryStore
from tests.patience import PATIENCE_S
from tests.server.support import RunningServer, running

STORE_TICK_S = 1.0


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
        await server.until(lambda: server.gate.awaited > server.gate.synced)
        store.sync()
        assert (await peer.frame()).headers["receipt-id"] == "held"
        await peer.close()


class LeasedStore(PipeStore):
    """One that another broker may have taken over."""

    held = True

    def may_leave(self) -> bool:
        return self.held


async def test_while_another_broker_may_have_the_store_nothing_leaves_that_needs_no_sync() -> None:  # HA-2
    store = LeasedStore()
    async with running(store=store) as server:
        peer = await server.connect()
        peer.send_frame("SEND", "destination:/queue/a", "receipt:made", body="x")
        await server.until(lambda: "a" in server.broker.queues)
        store.sync()
        assert (await peer.frame()).headers["receipt-id"] == "made"
        store.held = False
        peer.send_frame("SEND", "destination:/queue/a", "receipt:waits", body="x")
        (session,) = server.sessions
        await server.until(lambda: session.outbox.ready_bytes > 0)
        await _settle()
        assert session.outbox.in_flight_bytes == 0
        store.held = True
        store.sync()
        assert (await peer.frame()).headers["receipt-id"] == "waits"
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
        await server.until(lambda: server.gate.awaited > server.gate.synced)
        store.failure = StorageError("DMQ3999", "the disk is gone")
        store.sync()
        await server.until(lambda: bool(server.fatal))
        assert server.fatal == [store.failure]
        peer.writer.transport.abort()
        await server.until(lambda: not server.listener.connections)
        server.fatal.clear()
    assert reached is not None


class FailingStore(PipeStore):
    """Fails as a journal does, within a tick: it reports that, and raises nothing."""

    fails = False

    def flush(self) -> None:
        super().flush()
        if self.fails:
            assert self._events is not None
            self._events.on_failure(StorageError("DMQ3999", "the disk is gone"))


async def test_a_tick_in_which_the_store_fails_writes_nothing() -> None:
    store = FailingStore()
    async with running(store=store) as server:
        peer = await server.connect()
        peer.send_frame("SEND", "destination:/queue/a", "receipt:made", body="x")
        store.sync()
        assert (await peer.frame()).headers["receipt-id"] == "made"
        store.fails = True
        peer.send_frame("SEND", "destination:/queue/a", "receipt:never", body="x")
        await server.until(lambda: bool(server.fatal))
        (session,) = server.sessions
        assert session.outbox.ready_bytes > 0
        assert session.outbox.in_flight_bytes == 0
        server.fatal.clear()
        peer.writer.transport.abort()
        await server.until(lambda: not server.listener.connections)


async def test_a_broken_invariant_stops_the_broker_instead_of_guessing() -> None:
    async with running() as server:
        peer = await server.connect()

        wall_ms = server.clock.wall_ms

        def broken() -> WallMs:
            server.clock.wall_ms = wall_ms  # type: ignore[method-assign]
            raise AssertionError("impossible")

        server.clock.wall_ms = broken  # type: ignore[method-assign]
        peer.send_frame("SEND", "destination:/queue/a", body="x")
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


async def test_an_appointment_of_the_engine_brings_a_tick_without_any_input() -> None:  # RING-9
    async with running() as server:
        # The store asks for a tick every second; without it only the appointment can bring one.
        server.timers.cancel(Ticker, STORE_TICK_S)
        listener = Listener()
        consumer = server.broker.consumers.subscribe("later", listener, OpenCredit(), routing=ANYCAST)
        now = server.broker.clock.wall_ms()
        message = Message("later", "stomp/12", b"", b"due", timestamp_ms=now, due_at_ms=now + 20)
        assert server.broker.producers.send(message) == ROUTED
        server.ticker.schedule()
        await asyncio.wait_for(listener.delivered.wait(), PATIENCE_S)
        server.broker.consumers.close(consumer)


class LazyStore(PipeStore):
    """Has put off something, and catches up when told."""

    def __init__(self) -> None:
        super().__init__()
        self.caught_up: list[int] = []

    def put_off(self) -> Position:
        return self.appended if self.appended not in (0, *self.caught_up) else NOTHING_DURABLE

    def catch_up(self, position: Position) -> None:
        self.caught_up.append(position)


async def test_what_nobody_waits_for_is_synced_all_the_same_and_then_there_is_no_timer() -> None:
    store = LazyStore()
    async with running(store=store) as server:
        peer = await server.connect()
        peer.send_frame("SEND", "destination:/queue/a", "persistent:true", body="x")
        await server.until(lambda: "a" in server.broker.queues and server.broker.queues["a"].message_count == 1)
        # The start may have had a sync of its own, for what it recorded.
        await server.until(lambda: store.caught_up[-1:] == [store.appended])
        assert server.timers.waiting(Ticker, SYNC_WITHIN_S) == 0
        await peer.close()


async def test_what_came_since_the_timer_was_set_has_one_of_its_own() -> None:
    store = LazyStore()
    async with running(store=store) as server:
        peer = await server.connect()
        peer.send_frame("SEND", "destination:/queue/a", "persistent:true", body="x")
        await server.until(lambda: server.timers.waiting(Ticker, SYNC_WITHIN_S) == 1)
        peer.send_frame("SEND", "destination:/queue/a", "persistent:true", body="x")
        await server.until(lambda: "a" in server.broker.queues and server.broker.queues["a"].message_count == 2)
        await server.until(lambda: store.caught_up[-1:] == [store.appended])
        assert len(store.caught_up) > 1
        assert store.caught_up == sorted(store.caught_up)
        await peer.close()


class PayingStore(LazyStore):
    """Writes something, and puts it off, as it reads what its background has done."""

    def on_readable(self) -> None:
        os.read(self.read_end, 100)
        self.appended = Position(self.appended + 1)


async def test_what_a_report_writes_is_synced_in_time_too() -> None:
    store = PayingStore()
    async with running(store=store) as server:
        await _settle()
        await server.until(lambda: store.put_off() == NOTHING_DURABLE)
        server.timers.cancel(Ticker, STORE_TICK_S)
        before = store.appended
        store.sync()
        await server.until(lambda: store.appended > before)
        assert server.timers.waiting(Ticker, SYNC_WITHIN_S) == 1
        await server.until(lambda: store.appended in store.caught_up)


class Counted(MemoryStore):
    """Counts flushes, of which every tick has one."""

    flushes = 0

    def flush(self) -> None:
        super().flush()
        self.flushes += 1


def test_what_comes_alone_has_its_tick_in_the_same_turn() -> None:
    async def send_one_by_one() -> None:
        store = Counted()
        async with running(store=store) as server:
            peer = await server.connect()
            claims: list[bool] = []
            claim = server.ticker.claim

            def noted() -> bool:
                claims.append(claim())
                return claims[-1]

            server.ticker.claim = noted  # type: ignore[method-assign]
            await _settle()
            before = store.flushes
            peer.send_frame("SEND", "destination:/queue/a", "receipt:1", body="x")
            assert (await peer.frame()).headers["receipt-id"] == "1"
            assert claims == [True]
            assert store.flushes == before + 1, "and no second one"
            await peer.close()

    with asyncio.Runner(loop_factory=TurnLoop) as runner:
        runner.run(send_one_by_one())


def test_a_bug_in_handling_what_came_ends_one_connection_and_no_ticks() -> None:
    async def feed_badly() -> None:
        store = Counted()
        async with running(store=store) as server:
            peer = await server.connect()
            await _settle()

            def broken(holder: Receiver, buffered_bytes: int) -> None:
                raise RuntimeError("a bug")

            server.parts.incomplete_frames.count = broken  # type: ignore[method-assign]
            asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
            peer.send(b"SEND\ndestination:/queue/a\ncontent-length:2000000\n\n" + b"x" * 2 * UNCOUNTED_BYTES)
            await server.until(lambda: not server.listener.connections)
            await _settle()
            before = store.flushes
            server.ticker.schedule()
            await _settle()
            assert store.flushes > before
            other = await server.connect()
            await other.close()
            await peer.close()

    with asyncio.Runner(loop_factory=TurnLoop) as runner:
        runner.run(feed_badly())


def test_a_tick_is_shared_by_all_that_comes_in_a_turn() -> None:
    async def claim() -> None:
        async with running() as server:
            await _settle()
            turn = turn_of(asyncio.get_running_loop())
            assert turn is not None
            turn.ready = 2
            assert not server.ticker.claim()
            turn.ready = 1
            assert server.ticker.claim()
            assert not server.ticker.claim(), "one for all that is handled now"
            server.ticker.run()
            assert server.ticker.claim()
            server.ticker.run()

    with asyncio.Runner(loop_factory=TurnLoop) as runner:
        runner.run(claim())


async def test_other_loops_wait_for_the_next_turn() -> None:
    async with running() as server:
        await _settle()
        assert turn_of(asyncio.get_running_loop()) is None
        assert not server.ticker.claim()


async def test_who_waits_at_the_gate_for_what_was_put_off_brings_a_tick() -> None:
    store = LazyStore()
    async with running(store=store) as server:
        await _settle()
        before = store.flushes
        assert not server.gate.wait(Position(99), Opened())
        await server.until(lambda: store.flushes > before)


class Opened(GateWaiter):
    def on_open(self) -> None: ...
