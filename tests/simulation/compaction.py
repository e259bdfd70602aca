"""Journals in worlds that compact all the time, and such as do it wrong."""

import struct
from typing import Any

from delosmq.engine.log.log import Batch
from delosmq.engine.log.records import REMOVED, STORED
from delosmq.model.settings import JournalSettings
from delosmq.storage.journal.segment_chain import SegmentChain
from delosmq.storage.journal.segments import Ledger, Segment
from delosmq.storage.journal.store import JournalParts, JournalStore
from tests.simulation.broker_world import World
from tests.simulation.mutants import FreesAtOnce

EAGER = JournalSettings("journal", file_size_bytes=64 * 1024, spare_files=2, compact_min_files=2, compact_percentage=80)
A_WHILE_MS = 61_000
QUEUES = struct.Struct("<H")
QUEUES_AT = 40
QUEUE_IDS_AT = 52


def stores_again(batch: Batch) -> bool:
    """Whether a batch is a slice of a compaction, and no dead letter with the end of its original."""
    return bool(batch.stored and batch.released) and all(meta[0] != REMOVED for meta in batch.metas)


class Compacting(JournalStore):
    """The clock of its world moves on each turn, so that the broker looks for something to compact."""

    world: World
    compactions = 0

    def flush(self) -> None:
        self.world.clock.now_ms += A_WHILE_MS
        super().flush()

    def append(self, batch: Batch) -> None:
        if stores_again(batch):
            Compacting.compactions += 1
        super().append(batch)


class ForgetsAQueue(Compacting):
    """Stores a message again for all its queues but one."""

    def append(self, batch: Batch) -> None:
        if stores_again(batch):
            batch.metas[:] = [_without_last_queue(meta) if meta[0] == STORED else meta for meta in batch.metas]
        super().append(batch)


class ReleasesBeforeTheMoveIsSynced(Compacting):
    """Uses the file of a compacted segment again as soon as the move is decided."""

    def __init__(self, *positional: Any, **named: Any) -> None:
        def chain(*parts: Any, **others: Any) -> SegmentChain:
            self.chain = SegmentChain(*parts, **others)
            return self.chain

        super().__init__(*positional, parts=JournalParts(chain=chain, changes=FreesAtOnce), **named)  # type: ignore[arg-type]

    def append(self, batch: Batch) -> None:
        super().append(batch)
        if stores_again(batch):
            self.chain.free()


class ForgetsCounts(Compacting):
    """Stores messages again without their delivery counts."""

    def append(self, batch: Batch) -> None:
        if stores_again(batch):
            kept = [index for index, meta in enumerate(batch.metas) if meta[0] == STORED]
            batch.metas[:] = [batch.metas[index] for index in kept]
            batch.bodies[:] = [batch.bodies[index] for index in kept]
            batch.stored[:] = [(at, home) for at, (_, home) in enumerate(batch.stored)]
        super().append(batch)


class _PinsNothing(Ledger):
    """While it is told so."""

    told = False

    def account(self, segment: Segment, accounts: dict[int, int]) -> None:
        super().account(segment, accounts)
        if self.told:
            # The count at the target has changed; only the pin is gone.
            for number in accounts:
                segment.accounts.pop(number)


class ForgetsTheOldRecord(Compacting):
    """Lets a moved message's new record go although its old one is still on the disk."""

    def __init__(self, *positional: Any, **named: Any) -> None:
        self.pins = _PinsNothing()
        super().__init__(*positional, parts=JournalParts(ledger=lambda: self.pins), **named)

    def append(self, batch: Batch) -> None:
        self.pins.told = stores_again(batch)
        super().append(batch)


def _without_last_queue(meta: bytes) -> bytes:
    (count,) = QUEUES.unpack_from(meta, QUEUES_AT)
    if count < 2:
        return meta
    end = QUEUE_IDS_AT + 8 * count
    return meta[:QUEUES_AT] + QUEUES.pack(count - 1) + meta[QUEUES_AT + 2 : end - 8] + meta[end:]


COMPACTION_MUTANTS = [ForgetsAQueue, ReleasesBeforeTheMoveIsSynced, ForgetsCounts, ForgetsTheOldRecord]
