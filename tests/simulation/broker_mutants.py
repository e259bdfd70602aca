"""Brokers that break one promise each; the histories must catch every one of them."""

from delosmq.engine.log.log import NO_BODY, Batch
from delosmq.engine.log.records import REMOVED
from delosmq.storage.journal.store import JournalStore


class SplitsDecisions(JournalStore):
    """Stores a dead letter with one batch and the end of its original only with the next one."""

    _left: list[bytes]

    def append(self, batch: Batch) -> None:
        left: list[bytes] = getattr(self, "_left", [])
        kept = [meta[0] != REMOVED for meta in batch.metas]
        self._left = []
        if batch.stored and not all(kept):
            self._left = [meta for meta, keep in zip(batch.metas, kept, strict=True) if not keep]
            batch.bodies[:] = [body for body, keep in zip(batch.bodies, kept, strict=True) if keep]
            batch.metas[:] = [meta for meta, keep in zip(batch.metas, kept, strict=True) if keep]
        batch.metas.extend(left)
        batch.bodies.extend([NO_BODY] * len(left))
        super().append(batch)


class LosesABatch(JournalStore):
    """Forgets the records of every hundredth batch, though not its number."""

    def append(self, batch: Batch) -> None:
        if batch.position % 100 == 0 and not batch.stored:
            batch.metas[:] = [b"\x04\x01" + bytes(8)]
            batch.bodies[:] = [NO_BODY]
        super().append(batch)
