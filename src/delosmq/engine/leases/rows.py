"""The rows of a lease: slots in order, with what is told and recorded of them kept up to date as each one is added."""

import zlib
from array import array
from base64 import b64decode, b64encode
from bisect import bisect_left, bisect_right
from typing import Final

from delosmq.engine.base.slots import Slot

MOST_CLIMBS: Final = 20
"""Rows come in order of sequence for each priority, and begin anew where messages came back or came in between; what is
behind that many beginnings is looked at one by one."""


def _sequence_of(slot: Slot) -> int:
    return slot.sequence


class LeaseSlots:
    """Slots in the order of a lease. Sums and runs grow with each slot: over all at once they would hold a tick long.

    Attributes:
        size_bytes: of the encoded messages.
        lowest_sequence, highest_sequence, oldest_ms: over all rows; those of a high priority come first whatever their
            sequence.
        runs: runs of consecutive sequences.
    """

    def __init__(self) -> None:
        self.slots: list[Slot] = []
        self.size_bytes: int = 0
        self.lowest_sequence: int = 0
        self.highest_sequence: int = 0
        self.oldest_ms: int = 0
        self.runs: int = 0
        self._packed = bytearray()
        self._end: int = 0
        self._first: int = 0
        self._count: int = 0
        # Where rows begin at which sequences grow; the last one of the most is followed by whatever comes.
        self._climbs: list[int] = [0]

    def add(self, slot: Slot) -> None:
        """Appends a row."""
        message = slot.message
        sequence: int = slot.sequence
        if not self.slots:
            self.lowest_sequence = sequence
            self.oldest_ms = message.timestamp_ms
        elif sequence < self.slots[-1].sequence and len(self._climbs) < MOST_CLIMBS:
            self._climbs.append(len(self.slots))
        self.slots.append(slot)
        if sequence > self.highest_sequence:
            self.highest_sequence = sequence
        self.size_bytes += message.encoded_size_bytes
        if sequence < self.lowest_sequence:
            self.lowest_sequence = sequence
        if message.timestamp_ms < self.oldest_ms:
            self.oldest_ms = message.timestamp_ms
        if self._count and self._first + self._count == sequence:
            self._count += 1
            return
        if self._count:
            _pack_run(self._packed, self._first - self._end, self._count)
            self._end = self._first + self._count
        self._first = sequence
        self._count = 1
        self.runs += 1

    @property
    def is_ordered(self) -> bool:
        """Whether all rows are in order of sequence."""
        return len(self._climbs) == 1

    def stretches(self, after: int, until: int) -> list[tuple[int, int]]:
        """Where rows with ``after`` < sequence <= ``until`` stand: from (inclusive) and to (exclusive). Almost nothing
        else is there, and nothing is walked."""
        found: list[tuple[int, int]] = []
        slots = self.slots
        climbs = self._climbs
        for i in range(len(climbs)):
            start = climbs[i]
            end = climbs[i + 1] if i + 1 < len(climbs) else len(slots)
            if i + 1 < MOST_CLIMBS:
                start = bisect_right(slots, after, start, end, key=_sequence_of)
                end = bisect_right(slots, until, start, end, key=_sequence_of)
            if start < end:
                found.append((start, end))
        return found

    def find(self, sequence: int) -> Slot | None:
        """The row of a sequence; None when there is none."""
        for start, end in self.stretches(sequence - 1, sequence):
            for i in range(start, end):
                slot = self.slots[i]
                if slot.sequence == sequence:
                    return slot
        return None

    def packed(self) -> str:
        """The sequences in order, as records hold them: runs of (distance to the end of the run before, length),
        compressed.

        Varints, the distance zigzag as priorities go back and forth. Queues that share a broker have many short runs,
        which look alike: as JSON 10,000 of them would take 160 KB, a large part of a small journal file.
        """
        packed = bytearray(self._packed)
        if self._count:
            _pack_run(packed, self._first - self._end, self._count)
        return b64encode(zlib.compress(bytes(packed), 1)).decode()


def part_of(slot: Slot, of: int) -> int:
    """The part in which a row is, of so many: all of a message group are in one, those without a group by turns."""
    group = slot.message.group_id
    return (zlib.crc32(group.encode("utf-8", "surrogatepass")) if group else slot.sequence) % of


class LeaseParts:
    """Which rows of a lease are in which of ``of`` parts; found slice by slice, by who asks for one of them first."""

    def __init__(self, slots: list[Slot], of: int) -> None:
        self.of = of
        self._slots = slots
        self._seen: int = 0
        self._rows: list[array[int]] = [array("i") for _ in range(of)]

    @property
    def is_complete(self) -> bool:
        return self._seen == len(self._slots)

    def step(self, rows: int) -> None:
        """Looks at so many more rows."""
        end = min(self._seen + rows, len(self._slots))
        for row in range(self._seen, end):
            self._rows[part_of(self._slots[row], self.of)].append(row)
        self._seen = end

    def part(self, number: int, start: int, stop: int) -> list[Slot]:
        """The rows of a part between ``start`` and ``stop`` (exclusive), once it `is_complete`."""
        rows = self._rows[number]
        first = bisect_left(rows, start)
        last = bisect_left(rows, stop, first)
        return [self._slots[row] for row in rows[first:last]]


def _pack_run(packed: bytearray, distance: int, count: int) -> None:
    for value in (distance * 2 if distance >= 0 else -distance * 2 - 1, count):
        while value > 127:
            packed.append(value & 127 | 128)
            value >>= 7
        packed.append(value)


def unpack_sequences(text: str) -> list[int]:
    """The sequences that `LeaseSlots.packed` wrote."""
    values: list[int] = []
    value = 0
    shift = 0
    for byte in zlib.decompress(b64decode(text)):
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            values.append(value)
            value = 0
            shift = 0
    found: list[int] = []
    end = 0
    for i in range(0, len(values), 2):
        zigzag = values[i]
        first = end + (zigzag >> 1 if zigzag & 1 == 0 else -(zigzag >> 1) - 1)
        end = first + values[i + 1]
        found.extend(range(first, end))
    return found
