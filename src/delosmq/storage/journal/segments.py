"""Segments: which of them count, and when one is free.

A segment counts the living messages it stores, and is pinned while it holds a removal with a target in another
segment that still counts: forgetting the removal would bring the message back. At zero and unpinned a sealed segment is
free, in any order. A compaction appends the living messages of one segment again as ordinary batches, which release
their old homes; the segment is then freed by the same rule. All the journal does for it is to name the segment.
"""

from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.model.errors import InvariantError
from delosmq.storage.journal.records import BLOCK_SIZE, DATA_START, LENGTHS_SIZE, ROW_SIZE, TRAILER_SIZE

CLOSED: Final = -1
BLOCK_SHARE: Final = BLOCK_SIZE + LENGTHS_SIZE - ROW_SIZE
"""What a record takes beside its meta and body, less what its row does: to tell bodies from the rest by sums alone."""
REMOVAL_SIZE: Final = 134
"""What the record of one removal takes, footer and account included."""
SEARCHED_AT_ONCE: Final = 200
"""Segments that a search for one to empty looks at in one call: about 1 ms in pure Python."""
LARGEST_RECORD: Final = 1024
"""What a message takes beside its body is never taken for more: long lists of removals would pass for messages."""


class Segment:
    """One segment as the running journal knows it.

    Attributes:
        base: the last position before this segment.
        position: the last one in it (``base`` when it holds none).
        end: behind its last block, in bytes.
        room: what batches and their part of the footer may still take, in bytes.
        live: messages stored here that are still referenced.
        accounts: target segment -> messages of it released here; a key alone pins.
        rows: the footer so far.
        taken: by blocks and rows, in bytes, known once it is sealed; message_bytes: of that by a message, on average
            and about.
    """

    def __init__(self, name: str, number: int, *, mark: int, seed: int, size_bytes: int, base: int) -> None:
        self.name = name
        self.number = number
        self.mark = mark
        self.seed = seed
        self.size_bytes = size_bytes
        self.base = base
        self.position = base
        self.handle = CLOSED
        self.end = DATA_START
        self.room = size_bytes - DATA_START - TRAILER_SIZE
        self.stored = 0
        self.live = 0
        self.accounts: dict[int, int] = {}
        self.rows = bytearray()
        self.row_count = 0
        self.taken = 0
        self.message_bytes = 0

    @property
    def living_bytes(self) -> int:
        """What its living messages take, and storing them again, about."""
        return self.live * self.message_bytes

    def sealed(self, rows_size: int, row_count: int) -> None:
        """No batch comes any more; ``rows_size`` is what its rows take in the footer."""
        blocks = self.end - DATA_START
        self.taken = blocks + rows_size
        if self.stored:
            bodies = blocks - rows_size - BLOCK_SHARE * row_count
            messages = self.taken - REMOVAL_SIZE * (row_count - self.stored)
            self.message_bytes = max(1, min(messages // self.stored, bodies // self.stored + LARGEST_RECORD))


class VictimSearch:
    """Looks through the segments for the one to empty, some at a time: a journal may have ten thousands of them."""

    def __init__(self, numbers: list[int]) -> None:
        self._numbers = numbers
        self._next = 0
        # Segment -> the one that must be emptied first. One missing here is gone or will be with the next roll.
        self._keepers: dict[int, int] = {}
        self._dead: dict[int, int] = {}
        self._size = 0
        self._living = 0

    def go_on(self, segments: dict[int, Segment], open_segment: Segment) -> bool:
        """Looks at the next ones; whether these were all. What is sealed meanwhile is for the next search."""
        end = self._next + SEARCHED_AT_ONCE
        for number in self._numbers[self._next : end]:
            segment = segments.get(number)
            if segment is not None and segment is not open_segment:
                self._look_at(segment)
        self._next = end
        return end >= len(self._numbers)

    def _look_at(self, segment: Segment) -> None:
        keepers = self._keepers
        keeper = 0
        for number in segment.accounts:
            if number in keepers:
                keeper = keepers[number]
                break
        if keeper == 0:
            if segment.live == 0:
                return
            keeper = segment.number
        keepers[segment.number] = keeper
        alive = min(segment.taken, segment.living_bytes)
        self._size += segment.taken
        self._living += alive
        self._dead[keeper] = self._dead.get(keeper, 0) + segment.taken - alive

    def found(self, segments: dict[int, Segment], percentage: int, most_bytes: int) -> int:
        """The best one with at most ``most_bytes`` of living messages; 0 unless little enough of all is alive."""
        if self._living * 100 >= self._size * percentage:
            return 0
        found = 0
        best = 0.0
        for number, gain in self._dead.items():
            segment = segments.get(number)
            if segment is None or segment.live == 0 or gain == 0:
                continue
            cost = segment.living_bytes
            if cost <= most_bytes and gain / (gain + cost) > best:
                found = number
                best = gain / (gain + cost)
        return found


@mypyc_attr(allow_interpreted_subclasses=True)
class Ledger:
    """The segments that count, oldest first; the newest is the open one."""

    def __init__(self) -> None:
        self._segments: dict[int, Segment] = {}
        self._empty: dict[int, Segment] = {}  # nothing living in them: only they may be free
        self._search: VictimSearch | None = None
        self.changed = False
        """Whether a segment may have become free since the last `free`."""

    def __len__(self) -> int:
        return len(self._segments)

    def add(self, segment: Segment) -> None:
        self._segments[segment.number] = segment
        if segment.live == 0:
            self._empty[segment.number] = segment

    def find(self, number: int) -> Segment | None:
        return self._segments.get(number)

    def all(self) -> list[Segment]:
        return list(self._segments.values())

    def store(self, segment: Segment, messages: int) -> None:
        segment.stored += messages
        if segment.live == 0:
            self._empty.pop(segment.number, None)
        segment.live += messages

    def account(self, segment: Segment, accounts: dict[int, int]) -> None:
        """Books what a batch in ``segment`` removed elsewhere (or here).

        Raises:
            InvariantError: more messages were released than a segment holds.
        """
        own = segment.accounts
        for number, released in accounts.items():
            own[number] = own.get(number, 0) + released
        self.release(accounts)

    def release(self, accounts: dict[int, int]) -> None:
        """Counts released messages off where they are stored.

        Raises:
            InvariantError: more messages were released than a segment holds.
        """
        for number, released in accounts.items():
            target = self._segments.get(number)
            if target is None or released == 0:
                continue
            target.live -= released
            if target.live <= 0:
                self.changed = True
                self._empty[number] = target
                if target.live < 0:
                    raise InvariantError(
                        "DMQ3020", f"segment {number} ({target.name}) has released {-target.live} messages too many"
                    )

    def free(self, open_segment: Segment | None, covered: int) -> list[Segment]:
        """Takes out and returns every sealed segment that nothing needs any more.

        Args:
            covered: position of the state that will be on the disk: what a later batch changed isn't in it yet.
        """
        self.changed = False
        freed: list[Segment] = []
        found = True
        while found:
            found = False
            # Removals lie behind what they remove, so what pins an old one is gone when a newer one is looked at.
            for number in sorted(self._empty):
                segment = self._empty[number]
                if segment is open_segment or segment.live or segment.position > covered or self.pinned(segment):
                    continue
                del self._segments[number]
                del self._empty[number]
                freed.append(segment)
                found = True
        return freed

    def pinned(self, segment: Segment) -> bool:
        """Whether ``segment`` holds a removal that a living segment still needs."""
        return any(number in self._segments and number != segment.number for number in segment.accounts)

    def victim(self, open_segment: Segment, percentage: int, most_bytes: int) -> int:
        """The sealed segment to free by moving its living messages: the one with the largest dead share, where the dead
        part of the segments that it keeps from being free counts as its own. 0 unless less than ``percentage`` in 100
        of all is alive.

        Only a segment that is free itself once its messages are gone comes into question. There always is one: removals
        lie behind what they remove, so nothing pins the oldest.

        Args:
            most_bytes: what the living messages may take at most.
        """
        search = self._search
        if search is None:
            search = self._search = VictimSearch(list(self._segments))
        if not search.go_on(self._segments, open_segment):
            return 0
        self._search = None
        return search.found(self._segments, percentage, most_bytes)
