"""The output gate: what leaves the broker waits here until what it depends on is synced.

A connection has one `Outbox`. Its bytes come in streams: the replies of the session, and one per consumer. Order is
kept within a stream only, so a receipt that waits for the disk holds up no delivery. A broker has one `Gate`, which
knows how far the store is synced and opens the streams that wait for it.

    put -> [held: position > synced] -> ready -> (one write per tick) -> in flight -> written
"""

from abc import ABC, abstractmethod
from collections import deque
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.model.ids import NOTHING_DURABLE, Position

NO_SEQUENCE: Final = 0
"""Marks an entry that is no delivery; sequences of messages begin at 1."""

HEART_BEAT: Final = b"\n"

# Less than any total: nothing fits.
_NO_ROOM: Final = -1

# A write of this size costs one system call and fits a socket buffer of Linux; larger ones would only blur the line
# between "written" and "still here".
WRITE_BYTES: Final = 256 * 1024


@mypyc_attr(allow_interpreted_subclasses=True)
class OutboxOwner(ABC):
    """The connection behind an outbox."""

    @abstractmethod
    def write_wanted(self) -> None:
        """Something is ready. Called once until `Outbox.take` found nothing more to give."""


@mypyc_attr(allow_interpreted_subclasses=True)
class GateWaiter(ABC):
    """Whoever answers elsewhere than in an outbox: HTTP, calls in this process."""

    @abstractmethod
    def on_open(self) -> None:
        """The position waited for is synced."""


@mypyc_attr(allow_interpreted_subclasses=True)
class SyncAsker(ABC):
    """Who has the store asked for a sync."""

    @abstractmethod
    def schedule(self) -> None:
        """Soon: somebody waits."""


class Stream:
    """A sequence of writes whose order is kept.

    Attributes:
        written: sequence of the newest delivery that is in the peer's socket; `NO_SEQUENCE` before the first.
        reports: whether deliveries of this stream show up in `Outbox.take_written`.
        closed: nothing more is taken or sent.
        unseen: sequences of the deliveries that closing dropped.
        owner_id: the consumer's, for whoever reads `Outbox.take_written`.
    """

    def __init__(self, reports: bool = False) -> None:
        self.reports = reports
        self.written: int = NO_SEQUENCE
        self.closed: bool = False
        self.noted: bool = False
        self.owner_id: int = 0
        self.unseen: set[int] = set()
        self.held: deque[tuple[int, bytes, int]] = deque()


class Outbox:
    """What one connection has to send.

    Attributes:
        held_bytes: waiting for a sync.
        ready_bytes: may leave with the next write.
        in_flight_bytes: handed to the transport and not reported as written.
        reply_bytes: the part of held and ready that are replies: bounded by not reading, not by credit.
    """

    def __init__(self, owner: OutboxOwner, gate: "Gate", limit_bytes: int) -> None:
        self._owner = owner
        self._gate = gate
        self._limit_bytes = limit_bytes
        self._ready: list[tuple[bytes, int, Stream]] = []
        self._in_flight: list[tuple[bytes, int, Stream]] = []
        self._holding: list[Stream] = []
        self._written: list[Stream] = []
        self._wanted: bool = False
        self._refused: bool = False
        self.held_bytes: int = 0
        self.ready_bytes: int = 0
        self.in_flight_bytes: int = 0
        self.reply_bytes: int = 0
        self.replies: Stream = Stream()

    @property
    def total_bytes(self) -> int:
        """All that has not been written yet."""
        return self.held_bytes + self.ready_bytes + self.in_flight_bytes

    def has_room(self) -> bool:
        """Whether deliveries may be added. Once it said no, `room_returned` tells when to ask again."""
        if self.held_bytes + self.ready_bytes + self.in_flight_bytes < self._limit_bytes:
            return True
        self._refused = True
        return False

    def room_returned(self) -> bool:
        """True once after `has_room` said no and half of the limit is free again."""
        if self._refused and self.total_bytes * 2 <= self._limit_bytes:
            self._refused = False
            return True
        return False

    def refuse_deliveries(self) -> None:
        """`has_room` says no from now on: what would be added could not leave any more."""
        self._limit_bytes = _NO_ROOM

    def reply(self, position: Position, frame: bytes) -> None:
        """Adds a reply that depends on everything up to ``position``."""
        self.reply_bytes += len(frame)
        self.put(self.replies, position, frame, NO_SEQUENCE)

    def put(self, stream: Stream, position: Position, frame: bytes, sequence: int) -> None:
        """Adds to a stream; ``sequence`` is that of the message delivered."""
        if stream.held:
            stream.held.append((position, frame, sequence))
            self.held_bytes += len(frame)
            if position > self._gate.awaited:
                self._gate.awaited = position
        elif position <= self._gate.synced:
            self._ready.append((frame, sequence, stream))
            self.ready_bytes += len(frame)
            if not self._wanted:
                self._wanted = True
                self._owner.write_wanted()
        else:
            stream.held.append((position, frame, sequence))
            self.held_bytes += len(frame)
            if not self._holding:
                self._gate.hold(self)
            self._holding.append(stream)
            if position > self._gate.awaited:
                self._gate.awaited = position

    def beat(self, frame: bytes = HEART_BEAT) -> None:
        """Sends a heart-beat, unless bytes are on their way that say as much."""
        if not self._ready and not self._in_flight:
            self._ready.append((frame, NO_SEQUENCE, self.replies))
            self.ready_bytes += len(frame)
            self.reply_bytes += len(frame)
            self._want()

    def release(self, synced: Position) -> bool:
        """Moves what no longer waits. Returns whether something still does."""
        still: list[Stream] = []
        moved = 0
        for stream in self._holding:
            held = stream.held
            while held and held[0][0] <= synced:
                entry = held.popleft()
                self._ready.append((entry[1], entry[2], stream))
                moved += len(entry[1])
            if held:
                still.append(stream)
        self._holding = still
        if moved > 0:
            self.held_bytes -= moved
            self.ready_bytes += moved
            self._want()
        return len(still) > 0

    def close_stream(self, stream: Stream) -> set[int]:
        """Drops what a consumer's stream has not handed to the transport; returns the sequences of those deliveries."""
        self.close_streams([stream])
        return stream.unseen

    def close_streams(self, streams: list[Stream]) -> None:
        """`close_stream` for many, in one pass; `Stream.unseen` has the sequences."""
        for stream in streams:
            stream.closed = True
            for entry in stream.held:
                stream.unseen.add(entry[2])
                self.held_bytes -= len(entry[1])
            stream.held.clear()
        if self._holding:
            self._holding = [stream for stream in self._holding if stream.held]
            if not self._holding:
                self._gate.let_go(self)
        kept: list[tuple[bytes, int, Stream]] = []
        for ready in self._ready:
            if ready[2].closed:
                ready[2].unseen.add(ready[1])
                self.ready_bytes -= len(ready[0])
            else:
                kept.append(ready)
        self._ready = kept

    def close(self) -> None:
        """Forgets everything: the peer is gone."""
        self.refuse_deliveries()
        if self._holding:
            self._gate.let_go(self)
        for stream in self._holding:
            stream.held.clear()
        self._holding = []
        self._ready = []
        self._in_flight = []
        self._written = []
        self.held_bytes = 0
        self.ready_bytes = 0
        self.in_flight_bytes = 0
        self.reply_bytes = 0

    def take(self) -> bytes:
        """The next bytes to write, at most about `WRITE_BYTES`; empty when nothing is ready.

        They count as in flight until `confirm_written`, which must come before the next call.
        """
        ready = self._ready
        if not ready:
            self._wanted = False
            return b""
        if self.ready_bytes <= WRITE_BYTES:
            taken = ready
            self._ready = []
        else:
            size = 0
            count = 0
            for entry in ready:
                size += len(entry[0])
                count += 1
                if size >= WRITE_BYTES:
                    break
            taken = ready[:count]
            self._ready = ready[count:]
        chunk = taken[0][0] if len(taken) == 1 else b"".join([entry[0] for entry in taken])
        self._in_flight = taken
        self.ready_bytes -= len(chunk)
        self.in_flight_bytes = len(chunk)
        return chunk

    def confirm_written(self) -> None:
        """What `take` gave last is in the socket."""
        replies = self.replies
        for frame, sequence, stream in self._in_flight:
            if stream is replies:
                self.reply_bytes -= len(frame)
            elif sequence != NO_SEQUENCE:
                stream.written = sequence
                if stream.reports and not stream.noted and not stream.closed:
                    stream.noted = True
                    self._written.append(stream)
        self._in_flight = []
        self.in_flight_bytes = 0

    def take_written(self) -> list[Stream]:
        """Streams with ``reports`` of which more was written since the last call; `Stream.written` says up to where."""
        written = self._written
        if written:
            self._written = []
            for stream in written:
                stream.noted = False
        return written

    def _want(self) -> None:
        if not self._wanted:
            self._wanted = True
            self._owner.write_wanted()


class Gate:
    """How far the store is synced, and who waits for it. One per broker.

    Attributes:
        synced: everything up to here survives a crash. Recovery sets it, then only `on_synced` does.
        awaited: the newest position that anybody has waited for. What lies behind it may be synced later.
        asker: hears of those who begin to `wait`; None for nobody. What is put into an outbox has a tick coming anyway.
    """

    def __init__(self, synced: Position = NOTHING_DURABLE) -> None:
        self.synced: Position = synced
        self.awaited: Position = synced
        self.asker: SyncAsker | None = None
        self._holding: dict[Outbox, None] = {}
        self._waiters: list[tuple[int, GateWaiter]] = []

    def hold(self, outbox: Outbox) -> None:
        """An outbox has entries that wait."""
        self._holding[outbox] = None

    def let_go(self, outbox: Outbox) -> None:
        """An outbox has none any more."""
        self._holding.pop(outbox, None)

    def on_synced(self, position: Position) -> None:
        """Opens for everything up to ``position``."""
        if position <= self.synced:
            return
        self.synced = position
        for outbox in list(self._holding):
            if not outbox.release(position):
                self._holding.pop(outbox, None)
        if self._waiters:
            due = [entry for entry in self._waiters if entry[0] <= position]
            self._waiters = [entry for entry in self._waiters if entry[0] > position]
            for entry in due:
                entry[1].on_open()

    def wait(self, position: Position, waiter: GateWaiter) -> bool:
        """Calls ``waiter.on_open()`` once ``position`` is synced. True: it is already, and nothing will be called."""
        if position <= self.synced:
            return True
        if position > self.awaited:
            self.awaited = position
            if self.asker is not None:
                self.asker.schedule()
        self._waiters.append((position, waiter))
        return False

    def cancel(self, waiter: GateWaiter) -> None:
        """Forgets a waiter that has lost interest."""
        self._waiters = [entry for entry in self._waiters if entry[1] is not waiter]
