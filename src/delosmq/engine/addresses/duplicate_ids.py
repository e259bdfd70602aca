"""Duplicate ids: what an address has been sent before is not sent again.

Source: Artemis, DuplicateIDCaches and PostOfficeImpl.checkDuplicateID. An id of a durable message is recorded in the
batch of the message. Its record has a home of its own, given back when the id is forgotten, so that it stays on the
disk exactly as long as it counts.
"""

from collections import deque
from typing import Final

from delosmq.engine.addresses.bindings import Bindings
from delosmq.engine.base.events import EngineEvents
from delosmq.engine.base.jobs import Job
from delosmq.engine.log.ids import Identifiers
from delosmq.engine.log.log import NO_BODY, Log
from delosmq.engine.log.records import encode_duplicate, encode_forgotten
from delosmq.model.message import Home, Message

FORGOTTEN_PER_BATCH: Final = 500


class DuplicateId:
    """One id that an address has seen, or will have with a commit.

    Attributes:
        durable: it came with a durable message, so it is recorded.
        number: of its record; it orders the ids of an address, 0 when only memory knows it.
        home: of its record, None when there is none.
    """

    def __init__(self, address: str, duplicate_id: bytes, number: int = 0, *, durable: bool = True) -> None:
        self.address = address
        self.duplicate_id = duplicate_id
        self.durable = durable
        self.number = number
        self.home: Home | None = None

    def store_again(self, log: Log, transaction: int = 0) -> None:
        """Puts its record, within the decision under way, where compaction does not find it again.

        Args:
            transaction: the prepared one that it belongs to, 0 for none.
        """
        old = self.home
        assert old is not None  # compaction has found its record
        self.record(log, 0, transaction)
        batch = log.batch()
        batch.targets.append(old)
        batch.released.append(old)

    def record(self, log: Log, evicted: int, transaction: int) -> None:
        """Records it, in a home of its own.

        Args:
            evicted: the number of the id that it replaces, 0 for none.
        """
        home = Home()
        self.home = home
        batch = log.batch()
        batch.stored.append((len(batch.metas), home))
        batch.metas.append(encode_duplicate(self.address, self.duplicate_id, self.number, evicted, transaction))
        batch.bodies.append(NO_BODY)


class KnownIds:
    """The newest ids of one address.

    Attributes:
        order: oldest first.
        coming: ids of commits that have happened but are not worked off.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.ids: dict[bytes, DuplicateId] = {}
        self.order: deque[DuplicateId] = deque()
        self.coming: list[set[bytes]] = []

    def knows(self, duplicate_id: bytes) -> bool:
        """Whether the address has seen it."""
        return duplicate_id in self.ids or (len(self.coming) > 0 and any(duplicate_id in ids for ids in self.coming))

    def add(self, known: DuplicateId) -> DuplicateId | None:
        """Remembers an id; gives the one that has to go for it."""
        self.ids[known.duplicate_id] = known
        self.order.append(known)
        if len(self.order) <= self.size:
            return None
        return self.oldest()

    def oldest(self) -> DuplicateId:
        """Takes the oldest out."""
        gone = self.order.popleft()
        if self.ids.get(gone.duplicate_id) is gone:
            del self.ids[gone.duplicate_id]
        return gone


class Duplicates:
    """The ids of all addresses."""

    def __init__(
        self, log: Log, ids: Identifiers, bindings: Bindings, events: EngineEvents, *, persistent: bool
    ) -> None:
        self._log = log
        self._ids = ids
        self._bindings = bindings
        self._events = events
        self._persistent = persistent
        self.addresses: dict[str, KnownIds] = {}

    def of(self, address: str) -> KnownIds:
        """What is known of an address, which need not exist."""
        known = self.addresses.get(address)
        if known is None:
            known = KnownIds(self._bindings.settings_of(address).id_cache_size)
            self.addresses[address] = known
        return known

    def seen(self, message: Message) -> bool:
        """Whether the address of a message that has a duplicate id has seen that id."""
        known = self.addresses.get(message.address)
        if known is None or not known.knows(message.duplicate_id):
            return False
        self._events.message_duplicate(message)
        return True

    def remember(self, address: str, duplicate_id: bytes, *, durable: bool) -> None:
        """The address has seen an id, by the decision under way."""
        known = self.of(address)
        if known.size <= 0:
            return
        if not (durable and self._persistent):
            gone = known.add(DuplicateId(address, duplicate_id, durable=durable))
            if gone is not None and gone.home is not None:
                self._record_forgotten([gone])
            return
        entry = DuplicateId(address, duplicate_id, int(self._ids.next()))
        gone = known.add(entry)
        evicted = 0
        batch = self._log.batch()
        if gone is not None and gone.home is not None:
            evicted = gone.number
            batch.targets.append(gone.home)
            batch.released.append(gone.home)
        entry.record(self._log, evicted, 0)

    def record_for(self, transaction: int, entry: DuplicateId) -> None:
        """Records an id that counts once the transaction is committed, unless nothing is to be recorded."""
        if self._persistent and self.of(entry.address).size > 0:
            entry.number = int(self._ids.next())
            entry.record(self._log, 0, transaction)

    def adopt(self, entry: DuplicateId) -> None:
        """Remembers an id whose record is written, or that needs none."""
        known = self.of(entry.address)
        if known.size > 0:
            gone = known.add(entry)
            if gone is not None and gone.home is not None:
                self._record_forgotten([gone])

    def restore(self, entry: DuplicateId) -> None:
        """Takes in what replay found, oldest first; `trim` follows."""
        known = self.of(entry.address)
        known.ids[entry.duplicate_id] = entry
        known.order.append(entry)

    def forget_records(self, entries: list[DuplicateId]) -> None:
        """Gives up records of ids that don't count any more, or never did."""
        recorded = [entry for entry in entries if entry.home is not None]
        for at in range(0, len(recorded), FORGOTTEN_PER_BATCH):
            self._record_forgotten(recorded[at : at + FORGOTTEN_PER_BATCH])
            self._log.close()

    def _record_forgotten(self, entries: list[DuplicateId]) -> None:
        self._log.record(encode_forgotten([entry.number for entry in entries]))
        batch = self._log.batch()
        for entry in entries:
            if entry.home is not None:
                batch.targets.append(entry.home)
                batch.released.append(entry.home)

    def holds(self, entry: DuplicateId) -> bool:
        """Whether an entry still counts."""
        known = self.addresses.get(entry.address)
        return known is not None and known.ids.get(entry.duplicate_id) is entry

    def clear(self, address: str) -> int:
        """Forgets all ids of an address; gives how many. At most as many as the cache holds, so not cut into slices."""
        known = self.addresses.pop(address, None)
        if known is None:
            return 0
        self.forget_records(list(known.order))
        if known.coming:
            self.of(address).coming = known.coming
        self._events.duplicate_ids_cleared(address, len(known.order))
        return len(known.order)

    def forget_address(self, address: str) -> "Forgetting | None":
        """The address is gone, and its ids with it: the work that is left to do, None when there is none."""
        known = self.addresses.pop(address, None)
        if known is None:
            return None
        if known.coming:
            self.of(address).coming = known.coming
        return Forgetting(self, known.order)

    def count(self, address: str) -> int:
        """How many ids of an address are remembered."""
        known = self.addresses.get(address)
        return 0 if known is None else len(known.order)

    def trim(self) -> None:
        """After a restart: what is over the size that is now configured goes."""
        for known in self.addresses.values():
            over: list[DuplicateId] = []
            while len(known.order) > max(known.size, 0):
                over.append(known.oldest())
            self.forget_records(over)


class Forgetting(Job):
    """Gives up the records of ids that no address knows any more. What a crash leaves of them is known again."""

    def __init__(self, duplicates: Duplicates, entries: deque[DuplicateId]) -> None:
        self._duplicates = duplicates
        self._entries = entries

    def step(self) -> bool:
        entries = self._entries
        part = [entries.popleft() for _ in range(min(len(entries), FORGOTTEN_PER_BATCH))]
        self._duplicates.forget_records(part)
        return not entries
