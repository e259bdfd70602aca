"""What passed through a broker under test: connections, frames, events of the engine, and what the test did to it."""

import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Final
from weakref import WeakSet

from delosmq.engine.api import EngineEvents, Slot
from delosmq.model.message import Message
from delosmq.model.phrases import counted
from delosmq.model.reserved_names import ADVISORY_PREFIX
from delosmq.testing.dialogue import CutFrame
from delosmq.testing.frame_lines import is_about_advisories, line_of

MOST_ENTRIES: Final = 1_000
SHOWN_BROKERS: Final = 5
"""For a failed test."""
SHOWN_LINES: Final = 200
"""Of each of them."""
MOST_BYTES: Final = 1 << 20
"""Of frames that are kept as they are until a line is made of them."""
LARGE_BYTES: Final = 1 << 14
"""A frame from here on is made a line at once."""


@dataclass(frozen=True, slots=True)
class TraceEntry:
    """One line, or the frame of which it is made when it is asked for."""

    at_s: float
    beginning: str
    cut: CutFrame | None = None

    @property
    def size_bytes(self) -> int:
        return 0 if self.cut is None else len(self.cut.raw)

    def line(self) -> str:
        return self.beginning if self.cut is None else self.beginning + line_of(self.cut.kind, self.cut.frame)


class Trace:
    """The newest of what passed, 1,000 lines at most. ``str()`` of it is a text to print.

    ``1 > SEND`` is a frame that the client of connection 1 sent, ``1 < MESSAGE`` one that it got. Heart-beats are left
    out.

    Attributes:
        began_s: by `time.monotonic`.
        shows_advisories: whether it has, from now on, what clients of OpenWire subscribe to for themselves, and the
            queues ``ActiveMQ.Advisory.*`` that hold it.
    """

    def __init__(self) -> None:
        self.shows_advisories = False
        self._guard = threading.Lock()
        self.began_s = time.monotonic()
        _traces.add(self)
        self._entries: deque[TraceEntry] = deque()
        self._kept_bytes = 0
        self._dropped = 0

    def note(self, sentence: str) -> None:
        """Adds a line."""
        self._add(TraceEntry(time.monotonic(), sentence))

    def note_frame(self, connection: int, cut: CutFrame, *, by_client: bool, fate: str = "") -> None:
        """Adds a frame.

        Args:
            fate: what a fault made of it.
        """
        if not fate and not self.shows_advisories and is_about_advisories(cut.frame):
            return
        beginning = f"{connection} {'>' if by_client else '<'} {fate}"
        entry = TraceEntry(time.monotonic(), beginning, cut)
        self._add(TraceEntry(entry.at_s, entry.line()) if entry.size_bytes >= LARGE_BYTES else entry)

    def _add(self, entry: TraceEntry) -> None:
        with self._guard:
            self._entries.append(entry)
            self._kept_bytes += entry.size_bytes
            while len(self._entries) > MOST_ENTRIES or self._kept_bytes > MOST_BYTES:
                self._kept_bytes -= self._entries.popleft().size_bytes
                self._dropped += 1

    def clear(self) -> None:
        """Begins anew."""
        with self._guard:
            self._entries.clear()
            self._kept_bytes = 0
            self._dropped = 0
            self.began_s = time.monotonic()

    @property
    def lines(self) -> list[str]:
        """All that is kept, each with the seconds since the broker was made or reset."""
        return self.lines_since(0.0)

    def lines_since(self, at_s: float) -> list[str]:
        """Those from ``at_s`` of `time.monotonic` on, under a line that says how many before them are not kept."""
        with self._guard:
            entries, dropped, began_s = list(self._entries), self._dropped, self.began_s
        lines = [f"{entry.at_s - began_s:8.3f} {entry.line()}" for entry in entries if entry.at_s >= at_s]
        if dropped and lines and entries[0].at_s >= at_s:
            return [f"({counted(dropped, 'older line')} not kept)", *lines]
        return lines

    def __str__(self) -> str:
        return "\n".join(self.lines)


_traces: Final[WeakSet[Trace]] = WeakSet()


def traces_since(at_s: float) -> list[str]:
    """A text for each broker of this process through which anything passed from ``at_s`` of `time.monotonic` on, the
    newest of them."""
    traces = sorted(_traces, key=lambda trace: trace.began_s)
    lines = [trace.lines_since(at_s) for trace in traces[-SHOWN_BROKERS:]]
    return ["\n".join(found[-SHOWN_LINES:]) for found in lines if found]


class TracedEvents(EngineEvents):
    """Notes what the engine does that no frame tells."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._note = trace.note

    def _is_shown(self, name: str) -> bool:
        """Queues of advisories come and go with each connection of OpenWire."""
        return self._trace.shows_advisories or not name.startswith(ADVISORY_PREFIX)

    def _note_of(self, queue: str, sentence: str) -> None:
        if self._is_shown(queue):
            self._note(f"queue '{queue}' {sentence}")

    def _note_slot(self, queue: str, slot: Slot, sentence: str) -> None:
        if self._is_shown(queue):
            self._note(f"message {slot.sequence} {sentence}")

    def queue_created(self, queue: str, address: str) -> None:
        self._note_of(queue, "created")

    def queue_deleted(self, queue: str) -> None:
        self._note_of(queue, "deleted")

    def queue_paused(self, queue: str) -> None:
        self._note_of(queue, "paused")

    def queue_resumed(self, queue: str) -> None:
        self._note_of(queue, "resumed")

    def queue_purged(self, queue: str, removed: int) -> None:
        self._note_of(queue, f"purged of {counted(removed, 'message')}")

    def consumer_created(self, queue: str, consumer_id: int) -> None:
        self._note_of(queue, f"has consumer {consumer_id}")

    def consumer_closed(self, queue: str, consumer_id: int) -> None:
        self._note_of(queue, f"has consumer {consumer_id} no more")

    def message_scheduled(self, queue: str, slot: Slot) -> None:
        self._note_slot(queue, slot, f"of queue '{queue}' scheduled")

    def message_due(self, queue: str, slot: Slot) -> None:
        self._note_slot(queue, slot, f"of queue '{queue}' due")

    def message_diverted(self, message: Message, divert: str, copy: Message) -> None:
        self._note(f"message diverted by '{divert}'")

    def message_redelivered(self, queue: str, slot: Slot) -> None:
        self._note_slot(queue, slot, f"back in queue '{queue}', deliveries: {slot.delivery_count}")

    def message_replaced(self, queue: str, slot: Slot) -> None:
        self._note_slot(queue, slot, f"pushed out of queue '{queue}'")

    def message_dead_lettered(self, queue: str, slot: Slot, dead_letter_address: str) -> None:
        self._note_slot(queue, slot, f"of queue '{queue}' dead, {_gone_to(dead_letter_address)}")

    def message_expired(self, queue: str, slot: Slot, expiry_address: str) -> None:
        self._note_slot(queue, slot, f"of queue '{queue}' expired, {_gone_to(expiry_address)}")

    def message_dropped(self, message: Message) -> None:
        self._note("message dropped, as its address is full")

    def message_duplicate(self, message: Message) -> None:
        self._note("message with a known duplicate id, not routed")

    def address_blocked(self, address: str) -> None:
        self._note(f"address '{address}' full, sends wait")

    def address_unblocked(self, address: str) -> None:
        self._note(f"address '{address}' has room again")

    def transaction_committed(self, transaction: int, sends: int, acknowledgements: int) -> None:
        self._note(f"transaction {transaction} committed: {_work(sends, acknowledgements)}")

    def transaction_rolled_back(self, transaction: int, sends: int, acknowledgements: int) -> None:
        self._note(f"transaction {transaction} rolled back: {_work(sends, acknowledgements)}")


def _gone_to(address: str) -> str:
    return f"to '{address}'" if address else "dropped"


def _work(sends: int, acknowledgements: int) -> str:
    return f"{counted(sends, 'send')}, {counted(acknowledgements, 'acknowledgement')}"
