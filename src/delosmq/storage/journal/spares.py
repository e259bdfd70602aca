"""Segment files kept ready, so that the loop never fills one, and large enough for the engine's state.

How large, and why: docs/decisions/0056-large-states.md.
"""

import errno
import re
from collections.abc import Callable
from typing import Final

from delosmq.model.errors import StorageError
from delosmq.model.settings import MOST_SEGMENT_BYTES
from delosmq.storage.journal.files import Files, Order, prepare
from delosmq.storage.journal.records import FileHeader, encode_file_header
from delosmq.storage.journal.sync.syncer import Prepared, Syncer

FILE_NAME = re.compile(r"journal-(\d{6,})\.dmq")
MARK_SIZE = 8
STATE_SHARE: Final = 8
"""The state block that begins a segment takes at most 1 / this of it, or the segment is not begun."""
TIGHT_SHARE: Final = 12
"""What addresses and queues may take while larger files can't be made; the rest is for leases and branches."""
GROWING_SHARE: Final = 16
"""From a larger part on, larger files are made."""
ROOMY_SHARE: Final = 24
"""A file of the new size has no more of its space taken than this; before files get smaller it is half of that."""
EPOCH_BITS: Final = 32
"""Segment numbers of an epoch begin with it and have so many bits of their own: no epoch begins so many segments."""
SLOTS_PER_EPOCH: Final = 1_000_000_000
NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT)


def file_name(slot: int) -> str:
    """The name of a journal's file by its number."""
    return f"journal-{slot:06d}.dmq"


def slot_of(name: str) -> int:
    """The number in the name of a journal's file."""
    match = FILE_NAME.fullmatch(name)
    return int(match.group(1)) if match else 0


class Spare:
    """A file that is ready, or ordered, for the segment its header names."""

    def __init__(self, name: str, number: int, *, mark: int, size_bytes: int) -> None:
        self.name = name
        self.number = number
        self.mark = mark
        self.size_bytes = size_bytes


class Spares:
    """Orders, keeps and provides segment files.

    Attributes:
        wanted: how many are kept.
        size_bytes: of those that are made from now on: as configured, or larger for a large state.
        state_bytes: what the state is known to take.
        ready: oldest first.
        blocked: the last new file could not be made; `retry` tries again.
        short: since then none could.
        crowded: larger files, which the state should have, could not be made; those there are suffice for now.
    """

    def __init__(
        self,
        files: Files,
        syncer: Syncer,
        *,
        wanted: int,
        size_bytes: int,
        node_id: bytes,
        entropy: Callable[[int], bytes],
        epoch: int = 0,
    ) -> None:
        """
        Args:
            epoch: of a broker that shares the directory: numbers and files of two epochs differ, and files of an
                earlier one, into which a superseded broker may write, are not used again. 0 for a broker alone.
        """
        self._files = files
        self._syncer = syncer
        self._normal_bytes = size_bytes
        self._least_bytes = size_bytes  # smaller ones that are ready are replaced
        self._node_id = node_id
        self._entropy = entropy
        self._ordered: dict[str, Spare] = {}
        self._unused: list[str] = []
        self._first_number = (epoch << EPOCH_BITS) + 1
        self._first_slot = epoch * SLOTS_PER_EPOCH + 1 if epoch else 0
        self._next_number = 1
        self._next_slot = 1
        self.wanted = wanted
        self.size_bytes = size_bytes
        self.state_bytes = 0
        self.ready: list[Spare] = []
        self.blocked = False
        self.short = False
        self.crowded = False

    def begin(self, names: list[str], highest_number: int) -> None:
        """Starts counting behind what is there: a segment number is never given twice."""
        self._next_number = max(highest_number + 1, self._first_number)
        self._next_slot = max(max(map(slot_of, names), default=0) + 1, self._first_slot)

    def reuse(self, names: list[str]) -> None:
        """Takes files that nothing needs, not even after a crash at this moment."""
        self._take_unused(names)
        self.order()

    def _take_unused(self, names: list[str]) -> None:
        for name in names:
            if slot_of(name) >= self._first_slot:
                self._unused.append(name)
            else:
                self._syncer.remove(name)

    def want(self, wanted: int) -> None:
        """At least so many are kept from now on."""
        if wanted > self.wanted:
            self.wanted = wanted
            self.order()

    def order(self) -> None:
        """Orders what is missing; removes what is too much."""
        while self._large_enough() < self.wanted:
            if not self._unused and self.blocked:
                return
            self._make(self.size_bytes)
        for name in self._unused[self.wanted :]:
            self._syncer.remove(name)
        del self._unused[self.wanted :]

    def retry(self) -> None:
        """Tries again to make what could not be made."""
        if self.blocked:
            self.blocked = False
            self.order()
        elif self.crowded and not self._ordered:
            if self._sized(GROWING_SHARE * self.state_bytes) > self.size_bytes:
                # Of free space only: what is recycled is needed as it is.
                self._make(self._sized(ROOMY_SHARE * self.state_bytes), recycled=False)
            else:
                self.crowded = False

    def fit(self, state_bytes: int) -> None:
        """Orders files in which a state of so many bytes has room. Those that are ready stay; see `suits`."""
        self.size_for(state_bytes)
        self.order()

    def size_for(self, state_bytes: int) -> None:
        """As `fit`, without ordering any yet."""
        self.state_bytes = state_bytes
        if self.crowded or self.short:
            self._least_bytes = self.size_bytes = self._sized(STATE_SHARE * state_bytes)
        else:
            self._least_bytes = self._sized(GROWING_SHARE * state_bytes)
            if self.size_bytes < self._least_bytes:
                self.size_bytes = self._sized(ROOMY_SHARE * state_bytes)
            else:
                self.size_bytes = min(self.size_bytes, self._sized(2 * ROOMY_SHARE * state_bytes))

    def takes_state(self, state_bytes: int, reserve_bytes: int) -> bool:
        """Whether the state may grow so far, with room for a reserve beside it: files for it are ready, or nothing says
        that they can't be made. None are ordered for the reserve."""
        needed = TIGHT_SHARE * (state_bytes + reserve_bytes)
        if needed > MOST_SEGMENT_BYTES:
            return False
        if (self.crowded or self.short) and needed > min(map(_size_of, self.ready), default=self._normal_bytes):
            return False
        if state_bytes > self.state_bytes:
            self.fit(state_bytes)
        return True

    def suits(self) -> bool:
        """Whether the state fits in all that are ready."""
        return all(map(self._fits_state, self.ready))

    def drop_small(self) -> bool:
        """Has those prepared anew that are too small for the state; whether one is left."""
        if not self.suits():
            self._unused += [spare.name for spare in self.ready if not self._fits_state(spare)]
            self.ready = [spare for spare in self.ready if self._fits_state(spare)]
            self.order()
        return bool(self.ready)

    def _fits_state(self, spare: Spare) -> bool:
        return spare.size_bytes >= min(STATE_SHARE * self.state_bytes, MOST_SEGMENT_BYTES)

    def _large_enough(self) -> int:
        return sum(spare.size_bytes >= self._least_bytes for spare in [*self.ready, *self._ordered.values()])

    def _sized(self, least_bytes: int) -> int:
        """The configured size, doubled until it is enough."""
        size = self._normal_bytes
        while size < least_bytes:
            size *= 2
        return min(size, MOST_SEGMENT_BYTES)

    def on_prepared(self, report: Prepared) -> bool:
        """Takes in an answer; returns whether a first failure is to be told."""
        spare = self._ordered.pop(report.name, None)
        if spare is None:
            return False
        if report.error is None:
            self.blocked = False
            self.short = False
            self._take_in(spare)
            return False
        if spare.size_bytes > self._sized(STATE_SHARE * self.state_bytes):
            self.crowded = True
            self.fit(self.state_bytes)
            return False
        first = not self.blocked
        self.blocked = True
        self.short = True
        return first

    def _take_in(self, spare: Spare) -> None:
        if spare.size_bytes > self.size_bytes:
            self.crowded = False
        if self._fits_state(spare):
            self.ready.append(spare)
        else:
            self._unused.append(spare.name)
        while len(self.ready) > self.wanted:
            smallest = min(self.ready, key=_size_of)
            self.ready.remove(smallest)
            self._unused.append(smallest.name)
        self.fit(self.state_bytes)

    def take(self) -> Spare:
        """The oldest ready one. The caller orders the next when it has opened this."""
        return self.ready.pop(0)

    def make_now(self, unused: list[str]) -> Spare:
        """One for the start, made on the spot, out of an unused file when there is one.

        Raises:
            StorageError: it can't be made.
        """
        self._take_unused(unused)
        while True:
            spare = self._name_spare(self.size_bytes)
            try:
                prepare(self._files, self._order_for(spare))
            except OSError as error:
                if self._unused and error.errno in NO_SPACE:
                    continue  # an unused file that was too small is gone and has left its room
                raise StorageError(
                    "DMQ3005",
                    f"{self._files.path(spare.name)}: no journal file of {self.size_bytes} bytes can be made "
                    f"({error.strerror or error}); free some space on this disk, or let the broker's user write there",
                ) from error
            return spare

    def _make(self, size_bytes: int, *, recycled: bool = True) -> None:
        spare = self._name_spare(size_bytes, recycled=recycled)
        self._ordered[spare.name] = spare
        self._syncer.prepare(self._order_for(spare))

    def _name_spare(self, size_bytes: int, *, recycled: bool = True) -> Spare:
        if recycled and self._unused:
            name = self._unused.pop()
        else:
            name = file_name(self._next_slot)
            self._next_slot += 1
        number = self._next_number
        self._next_number += 1
        return Spare(name, number, mark=self.mark(), size_bytes=size_bytes)

    def mark(self) -> int:
        """A number that clients can't know."""
        return int.from_bytes(self._entropy(MARK_SIZE), "little")

    def _order_for(self, spare: Spare) -> Order:
        header = FileHeader(spare.number, self._node_id, spare.mark, spare.size_bytes)
        return Order(spare.name, encode_file_header(header), spare.size_bytes)


def _size_of(spare: Spare) -> int:
    return spare.size_bytes
