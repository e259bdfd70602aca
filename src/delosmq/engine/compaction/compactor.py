"""Compaction: what is alive in a nearly dead segment is stored again, so that the store can free the segment.

A message gets a new home and gives the old one back in one batch: after a crash it lives in exactly one of them. Replay
takes the newest record of a message (docs/decisions/0037).
"""

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.engine.addresses.duplicate_ids import DuplicateId
from delosmq.engine.base.jobs import NEXT_TICK, Jobs, PhasedJob
from delosmq.engine.base.slots import Slot
from delosmq.engine.log.log import NO_BODY, Log, Store
from delosmq.engine.log.records import encode_stored
from delosmq.engine.queues.queue import Queue
from delosmq.engine.transactions.transaction import ACTIVE, ENDED, SUSPENDED, Transaction
from delosmq.model.errors import StorageError
from delosmq.model.message import Home, Message

LOOK_EVERY_MS: Final = 1_000
PASSED_OVER_MS: Final = 60_000
"""A segment in which something stayed (a message that moved from list to list while they were walked) is tried again
after this time."""
MESSAGES_PER_SLICE: Final = 200
BYTES_PER_SLICE: Final = 256 * 1024
SEGMENT_SHARE: Final = 8
"""Part of a segment that a batch may take: no roll is forced by one, and it fits into any segment."""
LOOKED_AT_PER_SLICE: Final = 1_000
"""Half a millisecond in the pure form when all of them live elsewhere."""
RECORD_BYTES: Final = 128
"""Of a batch and its footer for one message, beside its body and twice its meta; rounded up."""
OPEN_STATES: Final = (ACTIVE, ENDED, SUSPENDED)


@mypyc_attr(allow_interpreted_subclasses=True)
class LivePlace(ABC):
    """One kind of place where references to stored messages live. All places together must know all of them."""

    @abstractmethod
    def restore(self, segment: int) -> Generator[None, None, None]:
        """Goes through what lives here and has `Restoration` store again what is at home in ``segment``. Yields after
        each thing looked at; to be closed when it isn't exhausted.

        Raises:
            StorageError: the store takes no more.
        """

    @abstractmethod
    def records(self, queue: Queue, slot: Slot) -> list[bytes] | None:
        """What the store must hold of this reference beside the message (its delivery count, when it is due, ...) as it
        would have to be replayed now. None when the reference isn't here any more."""


class Restoration:
    """Stores messages of one segment again, each when all queues are known that hold it."""

    def __init__(self, log: Log, store: Store, transactions: dict[int, Transaction], *, file_size_bytes: int) -> None:
        self._log = log
        self._transactions = transactions
        self._store = store
        self._most_bytes: int = min(BYTES_PER_SLICE, file_size_bytes // SEGMENT_SHARE)
        self._segment: int = 0
        self._count: int = 0
        self._bytes: int = 0
        self._moved: list[tuple[Message, Home, Home]] = []
        # By transaction: the new homes of what it sends or acknowledges.
        self._claims: list[tuple[int, Home]] = []
        # With the homes that they had before.
        self._moved_ids: list[tuple[DuplicateId, Transaction | None, Home]] = []
        # By sequence and queue id: messages of several queues, found in some of them.
        self._parts: dict[int, dict[int, tuple[Queue, Slot, LivePlace]]] = {}

    def begin(self, segment: int) -> None:
        """From now on it is about this segment."""
        self._segment = segment
        self._parts = {}

    def go_on(self, walk: Iterator[None]) -> bool:
        """A slice of what lives in the segment, as decisions of its own. False when there is no more of it, or the
        store takes no more: what was moved is moved then, the rest is where it was."""
        self._count = 0
        self._bytes = 0
        looked_at = 0
        more = False
        try:
            for _ in walk:
                looked_at += 1
                if (
                    self._count >= MESSAGES_PER_SLICE
                    or self._bytes >= self._most_bytes
                    or looked_at == LOOKED_AT_PER_SLICE
                ):
                    more = True
                    break
        except StorageError:
            pass  # space may be short
        try:
            self.close()
        except StorageError:
            return False
        return more

    def found(self, queue: Queue, slot: Slot, place: LivePlace) -> None:
        """A reference that the store holds. The message is stored again once all its references were found.

        Raises:
            StorageError: the store takes no more; what this slice would have moved stays where it was.
        """
        message = slot.message
        home = message.home
        if home is None or home.segment != self._segment:
            return
        parts = self._parts.setdefault(message.sequence, {})
        parts[queue.id] = (queue, slot, place)
        if len(parts) < message.recorded_references:
            return
        queue_ids: list[int] = []
        metas: list[bytes] = []
        for known_queue, known_slot, known_place in parts.values():
            records = known_place.records(known_queue, known_slot)
            if records is not None:
                queue_ids.append(int(known_queue.id))
                metas += records
        # Fewer: one of those found earlier is gone or elsewhere. It is looked for when the segment's turn comes again.
        if len(queue_ids) == message.recorded_references:
            del self._parts[message.sequence]
            claims = [known_slot.transaction for _, known_slot, _ in parts.values() if known_slot.transaction]
            self.move(message, encode_stored(message, queue_ids), metas, claims)

    def is_open(self, transaction_id: int) -> bool:
        """Whether a transaction only collects: the store knows nothing of what it acknowledges."""
        transaction = self._transactions.get(transaction_id)
        return transaction is not None and transaction.state in OPEN_STATES

    def move(self, message: Message, meta: bytes, metas: list[bytes], claims: list[int]) -> None:
        """Stores a message again, and what else there is to say of it.

        Args:
            claims: transactions that have to know where it is.

        Raises:
            StorageError: the store takes no more.
        """
        home = message.home
        assert home is not None  # it is here because of that
        body = message.head + message.body
        if not body and home.size_bytes:
            body = self._store.read(home)
        size = len(body) + 2 * len(meta) + RECORD_BYTES + sum([2 * len(record) + RECORD_BYTES for record in metas])
        if self._moved and self._bytes + size > self._most_bytes:
            self.close()
        self._count += 1
        self._bytes += size
        new = Home()
        message.home = new
        self._moved.append((message, home, new))
        for claim in claims:
            self._claims.append((claim, new))
        batch = self._log.batch()
        batch.stored.append((len(batch.metas), new))
        batch.metas.append(meta)
        batch.bodies.append(body)
        for record in metas:
            batch.metas.append(record)
            batch.bodies.append(NO_BODY)
        # As a removal would: as long as the old record is on the disk the new one must stay too, whatever becomes of
        # the message, or the old one would bring it back.
        batch.targets.append(home)
        batch.released.append(home)

    def move_id(self, entry: DuplicateId, transaction: Transaction | None) -> None:
        """Stores the record of a duplicate id again; ``transaction``: the prepared one that it belongs to.

        Raises:
            StorageError: the store takes no more.
        """
        assert entry.home is not None  # it is here because of that
        self._count += 1
        self._bytes += entry.memory_bytes
        self._moved_ids.append((entry, transaction, entry.home))
        entry.store_again(self._log, 0 if transaction is None else transaction.id)

    def close(self) -> None:
        """Hands the batch to the store: one decision.

        Raises:
            StorageError: the store takes no more; the messages stay where they were.
        """
        moved = self._moved
        claims = self._claims
        moved_ids = self._moved_ids
        self._moved = []
        self._claims = []
        self._moved_ids = []
        try:
            self._log.close()
        finally:
            for message, old, new in moved:
                if new.segment == 0:
                    message.home = old
            for transaction_id, new in claims:
                transaction = self._transactions.get(transaction_id)
                if transaction is not None and new.segment and transaction.state not in OPEN_STATES:
                    transaction.segments.setdefault(new.segment, new)
            for entry, branch, old in moved_ids:
                home = entry.home
                if home is not None and home.segment == 0:
                    entry.home = old
                elif home is not None and branch is not None:
                    branch.segments.setdefault(home.segment, home)


def compaction(segment: int, places: list[LivePlace], restoration: Restoration) -> Iterator[int]:
    """Stores again what lives in one segment, a slice at a time."""
    restoration.begin(segment)
    walk = _restore_all(segment, places)
    while restoration.go_on(walk):
        yield NEXT_TICK
    walk.close()


def _restore_all(segment: int, places: list[LivePlace]) -> Generator[None, None, None]:
    for place in places:
        yield from place.restore(segment)


class Compactor:
    """Asks the store now and then which segment should go, and sees to it."""

    def __init__(self, store: Store, jobs: Jobs, places: list[LivePlace], restoration: Restoration) -> None:
        self._store = store
        self._jobs = jobs
        self._places = places
        self._restoration = restoration
        self._job: PhasedJob | None = None
        self._looked_ms: int = 0
        self._segment: int = 0
        self._began_ms: int = 0

    def look(self, now_ms: int) -> None:
        """Called each tick; begins a compaction when one is due. ``now_ms`` is the wall clock, which may jump."""
        if 0 <= now_ms - self._looked_ms < LOOK_EVERY_MS:
            return
        self._looked_ms = now_ms
        if self._job is not None and not self._job.over:
            return
        segment = self._store.compaction_victim()
        if segment == 0 or (segment == self._segment and 0 <= now_ms - self._began_ms < PASSED_OVER_MS):
            return
        self._segment = segment
        self._began_ms = now_ms
        self._job = PhasedJob(self._jobs, compaction(segment, self._places, self._restoration))
        self._jobs.add(self._job)
