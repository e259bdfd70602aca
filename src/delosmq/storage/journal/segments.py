"""Which segments count, and when one is free.

A segment counts the living messages it stores, and is pinned while it holds a removal whose target lies in another
segment that still counts: forgetting the removal would bring the message back. At zero and unpinned a sealed segment is
free, in any order. The segment left over by the largest dead share among the sealed ones is where a compactor would
start: it appends snapshots of the living messages as ordinary batches (replay is idempotent by message id), moves their
homes with them, and the segment is then freed by the same rule. Nothing else in the journal needs to know of it.
"""

from delosmq.model.errors import InvariantError
from delosmq.storage.journal.records import DATA_START, TRAILER_SIZE, Frame

CLOSED = -1


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

    def take_batch(self, frame: Frame, position: int, rows: int) -> None:
        """Counts a framed batch in; its accounts and messages are the ledger's."""
        self.end += frame.length
        self.room -= frame.cost
        self.position = position
        self.rows += frame.rows
        self.row_count += rows


class Ledger:
    """The segments that count, oldest first; the newest is the open one."""

    def __init__(self) -> None:
        self._segments: dict[int, Segment] = {}
        self.changed = False
        """Whether a segment may have become free since the last `free`."""

    def __len__(self) -> int:
        return len(self._segments)

    def add(self, segment: Segment) -> None:
        self._segments[segment.number] = segment

    def find(self, number: int) -> Segment | None:
        return self._segments.get(number)

    def all(self) -> list[Segment]:
        return list(self._segments.values())

    def store(self, segment: Segment, messages: int) -> None:
        segment.stored += messages
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
            for segment in self.all():
                if segment is open_segment or segment.live or segment.position > covered or self.pinned(segment):
                    continue
                del self._segments[segment.number]
                freed.append(segment)
                found = True
        return freed

    def pinned(self, segment: Segment) -> bool:
        """Whether ``segment`` holds a removal that a living segment still needs."""
        return any(number in self._segments and number != segment.number for number in segment.accounts)

    def listed(self, open_segment: Segment | None) -> list[tuple[int, int, int]]:
        """The sealed segments as a list block names them."""
        return [(s.number, s.end, s.position) for s in self._segments.values() if s is not open_segment]
