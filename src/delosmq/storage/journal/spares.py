"""Segment files kept ready, so that the loop never fills one."""

import re
from collections.abc import Callable

from delosmq.model.errors import StorageError
from delosmq.storage.journal.files import Files, Order, prepare
from delosmq.storage.journal.records import FileHeader, encode_file_header
from delosmq.storage.journal.syncer import Prepared, Syncer

FILE_NAME = re.compile(r"journal-(\d{6,})\.dmq")
MARK_SIZE = 8


def file_name(slot: int) -> str:
    """The name of a journal's file by its number."""
    return f"journal-{slot:06d}.dmq"


def slot_of(name: str) -> int:
    """The number in the name of a journal's file."""
    match = FILE_NAME.fullmatch(name)
    return int(match.group(1)) if match else 0


class Spare:
    """A file that is ready, or ordered, for the segment its header names."""

    def __init__(self, name: str, number: int, mark: int) -> None:
        self.name = name
        self.number = number
        self.mark = mark


class Spares:
    """Orders, keeps and hands out segment files.

    Attributes:
        wanted: how many are kept.
        ready: oldest first.
        blocked: the last new file could not be made; `retry` tries again.
        short: since then none could.
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
    ) -> None:
        self._files = files
        self._syncer = syncer
        self._size_bytes = size_bytes
        self._node_id = node_id
        self._entropy = entropy
        self._ordered: dict[str, Spare] = {}
        self._unused: list[str] = []
        self._next_number = 1
        self._next_slot = 1
        self.wanted = wanted
        self.ready: list[Spare] = []
        self.blocked = False
        self.short = False

    def begin(self, names: list[str], highest_number: int) -> None:
        """Starts counting behind what is there: a segment number is never given twice."""
        self._next_number = highest_number + 1
        self._next_slot = max(map(slot_of, names), default=0) + 1

    def give_back(self, names: list[str]) -> None:
        """Takes files that nothing needs, not even after a crash at this moment."""
        self._unused += names
        self.order()

    def want(self, wanted: int) -> None:
        """At least so many are kept from now on."""
        if wanted > self.wanted:
            self.wanted = wanted
            self.order()

    def order(self) -> None:
        """Orders what is missing; removes what is too much."""
        while len(self.ready) + len(self._ordered) < self.wanted:
            if not self._unused and self.blocked:
                return
            spare = self._name_spare()
            self._ordered[spare.name] = spare
            self._syncer.prepare(self._order_for(spare))
        for name in self._unused[self.wanted :]:
            self._syncer.remove(name)
        del self._unused[self.wanted :]

    def retry(self) -> None:
        """Tries again to make what could not be made."""
        if self.blocked:
            self.blocked = False
            self.order()

    def on_prepared(self, report: Prepared) -> bool:
        """Takes in an answer; returns whether a first failure is to be told."""
        spare = self._ordered.pop(report.name, None)
        if spare is None:
            return False
        if report.error is None:
            self.blocked = False
            self.short = False
            self.ready.append(spare)
            self.order()
            return False
        first = not self.blocked
        self.blocked = True
        self.short = True
        return first

    def take(self) -> Spare:
        """The oldest ready one. The caller orders the next when it has opened this."""
        return self.ready.pop(0)

    def make_now(self, unused: list[str]) -> Spare:
        """One for the start, made on the spot, out of an unused file when there is one.

        Raises:
            StorageError: it can't be made.
        """
        self._unused += unused
        spare = self._name_spare()
        try:
            prepare(self._files, self._order_for(spare))
        except OSError as error:
            raise StorageError(
                "DMQ3005",
                f"{self._files.path(spare.name)}: no journal file of {self._size_bytes} bytes can be made "
                f"({error.strerror or error}); free some space on this disk, or let the broker's user write there",
            ) from error
        return spare

    def _name_spare(self) -> Spare:
        if self._unused:
            name = self._unused.pop()
        else:
            name = file_name(self._next_slot)
            self._next_slot += 1
        number = self._next_number
        self._next_number += 1
        return Spare(name, number, self.mark())

    def mark(self) -> int:
        """A number that nobody outside can know."""
        return int.from_bytes(self._entropy(MARK_SIZE), "little")

    def _order_for(self, spare: Spare) -> Order:
        header = FileHeader(spare.number, self._node_id, spare.mark, self._size_bytes)
        return Order(spare.name, encode_file_header(header), self._size_bytes)
