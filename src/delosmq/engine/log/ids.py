"""Ids from durably reserved blocks: never reused, whatever crashes."""

from typing import Final

from delosmq.engine.log.log import Log
from delosmq.engine.log.records import encode_ids
from delosmq.model.ids import Sequence

BLOCK: Final = 1 << 20
LARGE_BLOCK: Final = 1 << 28
"""While the store has little room, so that ids take none of it however long that lasts."""


class Identifiers:
    """One counter for message ids, sequences and queue ids.

    The next block is reserved when half of the current one is used, so its record is long on disk before an id of it
    leaves the broker.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._next: int = 1
        self._reserved_below: int = 1

    @property
    def reserved_below(self) -> int:
        """Ids up to here (exclusive) may have been given out."""
        return self._reserved_below

    def replay_reserved(self, reserved_below: int) -> None:
        """What an earlier life of the broker had reserved; all of it counts as used."""
        if reserved_below > self._reserved_below:
            self._reserved_below = reserved_below
            self._next = reserved_below

    def reserve(self) -> None:
        """Reserves the first block of this life; to be synced before the first client is served."""
        self._reserved_below = self._next + BLOCK
        self._log.record(encode_ids(self._reserved_below))

    def next(self) -> Sequence:
        """A new id."""
        value = self._next
        self._next = value + 1
        if self._reserved_below - value < BLOCK // 2:
            self._reserve_more()
        return Sequence(value)

    def take(self, count: int) -> Sequence:
        """The first of ``count`` ids in a row."""
        first = self._next
        self._next = first + count
        if self._reserved_below - self._next < BLOCK // 2:
            self._reserve_more()
        return Sequence(first)

    def _reserve_more(self) -> None:
        block = LARGE_BLOCK if self._log.storage_low else BLOCK
        self._reserved_below = max(self._reserved_below, self._next) + block
        self._log.record(encode_ids(self._reserved_below))
