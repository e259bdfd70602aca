"""The output gate: what leaves the broker waits here until what it depends on is synced.

A connection has one `Outbox`. Its bytes come in streams: the replies of the session, and one per consumer. Order is
kept within a stream only, so a receipt that waits for the disk holds up no delivery. Streams may share their order,
where a protocol promises that of answers and deliveries together. A broker has one `Gate`, which
knows how far the store is synced and opens the streams that wait for it.

    put, deliver -> [unsynced: position > synced] -> ready -> (encoded, one write per tick) -> in flight -> written

A delivery is encoded when it is written: what waits is the message that the queue has anyway, shared by all that wait
for it. Of a large frame a piece is written at a time. So a peer that reads nothing holds one write and nothing else.
"""

from abc import ABC, abstractmethod
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.engine.api import Slot
from delosmq.model.ids import NOTHING_DURABLE, Position
from delosmq.sessions.stream import ENTRY_BYTES, NO_SEQUENCE, DeliveryPort, Entry, Stream, kept_of, size_of

GENTLE_TURNS: Final = 8
"""After a consumer has come: it may want one message only and leave, which is read between the turns."""

HEART_BEAT: Final = b"\n"

# Less than any total: nothing fits.
_NO_ROOM: Final = -1

# A write of this size costs one system call and fits a socket buffer of Linux. It is also what each peer that reads
# nothing keeps in memory.
WRITE_BYTES: Final = 64 * 1024


@mypyc_attr(allow_interpreted_subclasses=True)
class OutboxOwner(ABC):
    """The connection behind an outbox."""

    @abstractmethod
    def write_wanted(self) -> None:
        """Something is ready. Called once until `Outbox.take` found nothing more to give."""


@mypyc_attr(allow_interpreted_subclasses=True)
class GateWaiter(ABC):
    """Answers elsewhere than in an outbox: HTTP, calls in this process."""

    @abstractmethod
    def on_open(self) -> None:
        """The position waited for is synced."""


@mypyc_attr(allow_interpreted_subclasses=True)
class SyncAsker(ABC):
    """Has the store asked for a sync."""

    @abstractmethod
    def schedule(self) -> None:
        """Asks for a sync soon: an answer waits."""


class Outbox:
    """What one connection has to send.

    Sizes count `ENTRY_BYTES` for each entry, but for those in flight.

    Attributes:
        unsynced_bytes: waiting for a sync.
        ready_bytes: may leave with the next write.
        in_flight_bytes: handed to the transport and not reported as written.
        reply_bytes: the part of unsynced, ready and in flight that are replies: bounded by not reading, not by credit.
        gentle_turns: how many more turns of the loop have one write each.
        within_frame: what `take` gave last ends within a frame; the next `take` gives its next piece.
    """

    def __init__(self, owner: OutboxOwner, gate: "Gate", limit_bytes: int) -> None:
        self._owner = owner
        self._gate = gate
        self._limit_bytes = limit_bytes
        self._ready: list[Entry] = []
        # Of what is in flight: the deliveries that end in it, and the size of its replies.
        self._in_flight: list[tuple[Stream, int]] = []
        self._in_flight_reply_bytes: int = 0
        # A large frame that is written in pieces: what is left from ``_cut_at`` on, then ``_cut_tail``.
        self._cut: Entry | None = None
        self._cut_body: bytes = b""
        self._cut_at: int = 0
        self._cut_tail: bytes = b""
        self._unsynced_streams: list[Stream] = []
        self._written: list[Stream] = []
        self._wanted: bool = False
        self._refused: bool = False
        self.unsynced_bytes: int = 0
        self.ready_bytes: int = 0
        self.in_flight_bytes: int = 0
        self.reply_bytes: int = 0
        self.gentle_turns: int = 0
        self.within_frame: bool = False
        self.replies: Stream = Stream(replies=True)

    @property
    def total_bytes(self) -> int:
        """All that has not been written yet."""
        return self.unsynced_bytes + self.ready_bytes + self.in_flight_bytes

    def kept_bytes(self) -> int:
        """What waits here and is kept here alone; for those who bound it. Takes time with the number of entries.

        A message that a queue still has is counted there, however many connections wait to write it.
        """
        kept = self.in_flight_bytes
        for entry in self._ready:
            kept += kept_of(entry)
        for stream in self._unsynced_streams:
            for waiting in stream.unsynced:
                kept += kept_of(waiting[1])
        cut = self._cut
        if cut is not None:
            slot = cut[1]
            if slot is None or slot.message.account is None or slot.message.body is not self._cut_body:
                kept += len(self._cut_body) - self._cut_at
        return kept

    def has_room(self) -> bool:
        """Whether deliveries may be added. Once it said no, `room_returned` tells when to ask again."""
        if self.unsynced_bytes + self.ready_bytes + self.in_flight_bytes < self._limit_bytes:
            return True
        self._refused = True
        return False

    def begin_gently(self) -> None:
        """A consumer has come: much is dispatched to it at once, of which it may want little."""
        self.gentle_turns = GENTLE_TURNS

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
        self.reply_bytes += ENTRY_BYTES + len(frame)
        self._add(position, (frame, None, NO_SEQUENCE, self.replies, None), ENTRY_BYTES + len(frame))

    def reply_early(self, position: Position, frame: bytes) -> None:
        """As `reply`, for one that need not come after the replies before it: it leaves before those that wait."""
        if position > self._gate.synced:
            self.reply(position, frame)
            return
        self._ready.append((frame, None, NO_SEQUENCE, self.replies, None))
        self.ready_bytes += ENTRY_BYTES + len(frame)
        self.reply_bytes += ENTRY_BYTES + len(frame)
        self._want()

    def put(self, stream: Stream, position: Position, frame: bytes, sequence: int) -> None:
        """Adds a frame to a stream; ``sequence`` is that of the message delivered."""
        if stream.replies:
            self.reply_bytes += ENTRY_BYTES + len(frame)
        self._add(position, (frame, None, sequence, stream, None), ENTRY_BYTES + len(frame))

    def deliver(self, stream: Stream, slot: Slot, port: DeliveryPort) -> None:
        """Adds a delivery to a stream, which ``port`` encodes when it leaves."""
        message = slot.message
        position = message.position if slot.recorded else NOTHING_DURABLE
        entry = (b"", slot, slot.delivery_count, stream, port)
        if not stream.unsynced and position <= self._gate.synced:  # the short way through `_add`
            self._ready.append(entry)
            self.ready_bytes += ENTRY_BYTES + message.encoded_size_bytes
            if not self._wanted:
                self._wanted = True
                self._owner.write_wanted()
        else:
            self._add(position, entry, ENTRY_BYTES + message.encoded_size_bytes)

    def replay(self, position: Position, entry: Entry) -> None:
        """Adds what was in the outbox of an earlier connection of the same peer."""
        size = size_of(entry)
        if entry[3].replies:
            self.reply_bytes += size
        self._add(position, entry, size)

    def _add(self, position: Position, entry: Entry, size_bytes: int) -> None:
        stream = entry[3]
        if stream.unsynced:
            stream.unsynced.append((position, entry))
            self.unsynced_bytes += size_bytes
            if position > self._gate.awaited:
                self._gate.awaited = position
        elif position <= self._gate.synced:
            self._ready.append(entry)
            self.ready_bytes += size_bytes
            if not self._wanted:
                self._wanted = True
                self._owner.write_wanted()
        else:
            stream.unsynced.append((position, entry))
            self.unsynced_bytes += size_bytes
            if not self._unsynced_streams:
                self._gate.add(self)
            self._unsynced_streams.append(stream)
            if position > self._gate.awaited:
                self._gate.awaited = position

    def beat(self, frame: bytes = HEART_BEAT) -> None:
        """Sends a heart-beat, unless bytes are on their way that say as much."""
        if not self._ready and not self.in_flight_bytes and self._cut is None:
            self.reply_early(NOTHING_DURABLE, frame)

    def release(self, synced: Position) -> bool:
        """Moves what no longer waits. Returns whether something still does."""
        still: list[Stream] = []
        moved = 0
        for stream in self._unsynced_streams:
            unsynced = stream.unsynced
            while unsynced and unsynced[0][0] <= synced:
                entry = unsynced.popleft()[1]
                self._ready.append(entry)
                moved += size_of(entry)
            if unsynced:
                still.append(stream)
        self._unsynced_streams = still
        if moved > 0:
            self.unsynced_bytes -= moved
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
        # Once each, though many streams may share one order.
        for unsynced in {id(stream.unsynced): stream.unsynced for stream in streams}.values():
            for _ in range(len(unsynced)):
                waiting = unsynced.popleft()
                if waiting[1][3].closed:
                    self.unsynced_bytes -= self._drop(waiting[1])
                else:
                    unsynced.append(waiting)  # of a stream that shares its order
        if self._unsynced_streams:
            self._unsynced_streams = [stream for stream in self._unsynced_streams if stream.unsynced]
            if not self._unsynced_streams:
                self._gate.remove(self)
        kept: list[Entry] = []
        for entry in self._ready:
            if entry[3].closed:
                self.ready_bytes -= self._drop(entry)
            else:
                kept.append(entry)
        self._ready = kept

    def _drop(self, entry: Entry) -> int:
        """Notes that a delivery was not seen; gives what it counted."""
        slot = entry[1]
        stream = entry[3]
        size = size_of(entry)
        if stream.replies:
            self.reply_bytes -= size
        else:
            stream.unseen.add(entry[2] if slot is None else slot.sequence)
        return size

    def close(self) -> None:
        """Drops everything: the peer is gone."""
        self.refuse_deliveries()
        if self._unsynced_streams:
            self._gate.remove(self)
        for stream in self._unsynced_streams:
            stream.unsynced.clear()
        self._unsynced_streams = []
        self._ready = []
        self._in_flight = []
        self._in_flight_reply_bytes = 0
        self._cut = None
        self._cut_body = b""
        self._written = []
        self.unsynced_bytes = 0
        self.ready_bytes = 0
        self.in_flight_bytes = 0
        self.reply_bytes = 0

    def take(self) -> bytes:
        """The next bytes to write, about `WRITE_BYTES` and at most twice as many; empty when nothing is ready.

        They count as in flight until `confirm_written`, which must come before the next call.
        """
        if self._cut is not None:
            return self._take_piece()
        ready = self._ready
        if not ready:
            self._wanted = False
            return b""
        parts: list[bytes] = []
        size = 0
        count = 0
        waited = 0
        last: Stream | None = None
        last_sequence = NO_SEQUENCE
        for frame, slot, number, stream, port in ready:
            count += 1
            if slot is None or port is None:
                waited += ENTRY_BYTES + len(frame)
                if len(frame) > WRITE_BYTES:
                    self._begin_cut(ready[count - 1], frame, b"")
                    break
                parts.append(frame)
                size += len(frame)
                # What ended before stands before it: `Stream.written` is where the last one of a stream ends.
                if last is not None:
                    self._in_flight.append((last, last_sequence))
                    last = None
                self._ended(ready[count - 1])
            else:
                waited += ENTRY_BYTES + slot.message.encoded_size_bytes
                head, body, tail = port.encode(slot, number)
                parts.append(head)
                if len(body) > WRITE_BYTES:
                    size += len(head)
                    self._begin_cut(ready[count - 1], body, tail)
                    break
                parts += (body, tail)
                size += len(head) + len(body) + len(tail)
                if stream is not last:
                    if last is not None:
                        self._in_flight.append((last, last_sequence))
                    last = stream
                last_sequence = slot.sequence
            if size >= WRITE_BYTES:
                break
        if last is not None:
            self._in_flight.append((last, last_sequence))
        self.ready_bytes -= waited
        self._ready = ready[count:] if count < len(ready) else []
        if not size:
            return self._take_piece()
        chunk = parts[0] if len(parts) == 1 else b"".join(parts)
        self.in_flight_bytes = size
        self.within_frame = len(self._cut_body) > 0
        return chunk

    def _begin_cut(self, entry: Entry, body: bytes, tail: bytes) -> None:
        self._cut = entry
        self._cut_body = body
        self._cut_at = 0
        self._cut_tail = tail

    def _take_piece(self) -> bytes:
        """The next piece of a large frame."""
        entry = self._cut
        assert entry is not None  # asked by the callers
        at = self._cut_at + WRITE_BYTES
        chunk = self._cut_body[self._cut_at : at]
        self._cut_at = at
        self.within_frame = at < len(self._cut_body)
        if not self.within_frame:
            chunk += self._cut_tail
            self._cut = None
            self._cut_body = b""
            self._ended(entry)
        self.in_flight_bytes = len(chunk)
        return chunk

    def _ended(self, entry: Entry) -> None:
        """The last byte of an entry is in flight."""
        slot = entry[1]
        stream = entry[3]
        if slot is not None:
            self._in_flight.append((stream, slot.sequence))
        elif stream.replies:
            self._in_flight_reply_bytes += ENTRY_BYTES + len(entry[0])
        elif entry[2] != NO_SEQUENCE:
            self._in_flight.append((stream, entry[2]))

    def confirm_written(self) -> None:
        """What `take` gave last is in the socket."""
        for stream, sequence in self._in_flight:
            stream.written = sequence
            if stream.reports and not stream.noted and not stream.closed:
                stream.noted = True
                self._written.append(stream)
        self._in_flight.clear()
        self.reply_bytes -= self._in_flight_reply_bytes
        self._in_flight_reply_bytes = 0
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
    """How far the store is synced, and what waits for it. One per broker.

    Attributes:
        synced: everything up to here survives a crash. Recovery sets it, then only `on_synced` does.
        awaited: the newest position that was waited for. What lies behind it may be synced later.
        asker: hears of those who begin to `wait`; None for none. What is put into an outbox has a tick coming anyway.
    """

    def __init__(self, synced: Position = NOTHING_DURABLE) -> None:
        self.synced: Position = synced
        self.awaited: Position = synced
        self.asker: SyncAsker | None = None
        self._outboxes: dict[Outbox, None] = {}
        self._waiters: list[tuple[int, GateWaiter]] = []

    def add(self, outbox: Outbox) -> None:
        """An outbox has entries that wait for a sync."""
        self._outboxes[outbox] = None

    def remove(self, outbox: Outbox) -> None:
        """An outbox has none any more."""
        self._outboxes.pop(outbox, None)

    def on_synced(self, position: Position) -> None:
        """Opens for everything up to ``position``."""
        if position <= self.synced:
            return
        self.synced = position
        for outbox in list(self._outboxes):
            if not outbox.release(position):
                self._outboxes.pop(outbox, None)
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
