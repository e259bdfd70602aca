"""Duplicate ids: what an address has been sent before is not sent again.

Source: Artemis, DuplicateIDCaches and PostOfficeImpl.checkDuplicateID. An id of a durable message is recorded in the
batch of the message. Its record has a home of its own, given back when the id is forgotten, so that it stays on the
disk exactly as long as it counts. Artemis bounds the caches by number alone.
"""

from collections import deque
from typing import Final

from delosmq.engine.addresses.bindings import Bindings
from delosmq.engine.addresses.id_cache_sizes import IdCacheSizes, Sized, UserCaches, most_bytes_of
from delosmq.engine.base.events import EngineEvents
from delosmq.engine.base.jobs import Job
from delosmq.engine.log.log import NO_BODY, Log
from delosmq.engine.log.records import encode_duplicate, encode_forgotten
from delosmq.model.message import Home, Message
from delosmq.model.settings import BrokerSettings

RELEASED_PER_BATCH: Final = 500
EVICTED_PER_ID: Final = 100
"""At most so many go for a new one when all take too much: more than the smallest that the largest id pushes out."""
ID_BYTES: Final = 336
"""What an id takes in memory beside itself, with its record's place. Measured with tracemalloc, not compiled."""
NO_ADDRESS: Final = "::"
"""Stands for a user: ids of addresses that are not there (again) since a restart. No user has such a name."""


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

    @property
    def memory_bytes(self) -> int:
        return ID_BYTES + len(self.duplicate_id)

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


class KnownIds(Sized):
    """The newest ids of one address.

    Attributes:
        size: how many there may be.
        user: the caches of the user that this one counts to.
        order: oldest first.
        coming: ids of commits that have happened but are not worked off.
    """

    def __init__(self, address: str, size: int, user: UserCaches) -> None:
        super().__init__()
        self.address = address
        self.size = size
        self.user = user
        self.ids: dict[bytes, DuplicateId] = {}
        self.order: deque[DuplicateId] = deque()
        self.coming: list[set[bytes]] = []

    def knows(self, duplicate_id: bytes) -> bool:
        """Whether the address has seen it."""
        return duplicate_id in self.ids or (len(self.coming) > 0 and any(duplicate_id in ids for ids in self.coming))

    def add(self, entry: DuplicateId) -> None:
        entry.address = self.address  # one text for all
        self.ids[entry.duplicate_id] = entry
        self.order.append(entry)

    def oldest(self) -> DuplicateId:
        """Takes the oldest out."""
        gone = self.order.popleft()
        if self.ids.get(gone.duplicate_id) is gone:
            del self.ids[gone.duplicate_id]
        return gone


class Duplicates:
    """The ids of all addresses.

    Attributes:
        sizes: what they take in memory.
    """

    def __init__(
        self,
        log: Log,
        bindings: Bindings,
        events: EngineEvents,
        *,
        settings: BrokerSettings,
    ) -> None:
        self._log = log
        self._bindings = bindings
        self._events = events
        self._persistent: bool = settings.persist_id_cache
        self.sizes: IdCacheSizes = IdCacheSizes(settings.global_max_size_bytes)
        self._no_address: UserCaches = self.sizes.user(NO_ADDRESS)
        self._said_full: bool = False
        self.addresses: dict[str, KnownIds] = {}

    def of(self, address: str) -> KnownIds:
        """What is known of an address, which need not exist."""
        known = self.addresses.get(address)
        if known is None:
            size = self._bindings.settings_of(address).id_cache_size
            known = KnownIds(address, size, self._user_of(address))
            self.addresses[address] = known
        return known

    def _user_of(self, name: str) -> UserCaches:
        address = self._bindings.addresses.get(name)
        return self._no_address if address is None else self.sizes.user(address.made_by)

    def bound(self, global_max_bytes: int) -> None:
        """Takes over ``global-max-size``; what is too much goes with the next ids."""
        self.sizes.most_bytes = most_bytes_of(global_max_bytes)

    def _add(self, known: KnownIds, entry: DuplicateId) -> list[DuplicateId]:
        """Remembers an id; gives those that have to go for it."""
        sizes = self.sizes
        if known.user is self._no_address:
            growth = known.size_bytes
            sizes.change(known, known.user, -growth)
            known.user = self._user_of(known.address)
            sizes.change(known, known.user, growth)
        growth = entry.memory_bytes
        gone: list[DuplicateId] = []
        if len(known.order) >= known.size:
            oldest = known.oldest()
            gone.append(oldest)
            growth -= oldest.memory_bytes
        if sizes.size_bytes + growth > sizes.most_bytes:
            sizes.change(known, known.user, growth - entry.memory_bytes)
            growth = entry.memory_bytes
            self._make_room(gone, EVICTED_PER_ID, growth)
            self.addresses[known.address] = known  # its last id may have gone
        known.add(entry)
        if growth:
            sizes.change(known, known.user, growth)
        return gone

    def _take_oldest(self, known: KnownIds) -> DuplicateId:
        entry = known.oldest()
        self.sizes.change(known, known.user, -entry.memory_bytes)
        return entry

    def _make_room(self, gone: list[DuplicateId], at_most: int, growth_bytes: int = 0) -> None:
        """Takes ids out of the largest caches, ``at_most`` of them, until all may take so much more."""
        sizes = self.sizes
        if not self._said_full:
            self._said_full = True
            self._events.duplicate_ids_full(sizes.most_bytes)
        for _ in range(at_most):
            known = sizes.gives_way() if sizes.size_bytes + growth_bytes > sizes.most_bytes else None
            if known is None:
                return
            assert isinstance(known, KnownIds)
            gone.append(self._take_oldest(known))
            if not known.order and not known.coming:
                del self.addresses[known.address]

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
            self._record_release(self._add(known, DuplicateId(address, duplicate_id, durable=durable)))
            return
        entry = DuplicateId(address, duplicate_id, int(self._log.next_id()))
        gone = self._add(known, entry)
        evicted = 0
        if gone:
            first = gone[0]
            if first.home is not None:
                evicted = first.number
                batch = self._log.batch()
                batch.targets.append(first.home)
                batch.released.append(first.home)
            if len(gone) > 1:
                self._record_release(gone[1:])
        entry.record(self._log, evicted, 0)

    def record_for(self, transaction: int, entry: DuplicateId) -> None:
        """Records an id that counts once the transaction is committed, unless nothing is to be recorded."""
        if self._persistent and self.of(entry.address).size > 0:
            entry.number = int(self._log.next_id())
            entry.record(self._log, 0, transaction)

    def adopt(self, entries: list[DuplicateId]) -> None:
        """Remembers ids with a record that is written, or that need none."""
        gone: list[DuplicateId] = []
        for entry in entries:
            known = self.of(entry.address)
            if known.size > 0:
                gone += self._add(known, entry)
        self.release_records(gone)

    def restore(self, entry: DuplicateId) -> None:
        """Takes in what replay found, oldest first; `trim` follows."""
        known = self.of(entry.address)
        known.add(entry)
        self.sizes.change(known, known.user, entry.memory_bytes)

    def release_records(self, entries: list[DuplicateId]) -> None:
        """Releases the records of ids that don't count any more, or never did."""
        for at in range(0, len(entries), RELEASED_PER_BATCH):
            self._record_release(entries[at : at + RELEASED_PER_BATCH])
            self._log.close()

    def _record_release(self, entries: list[DuplicateId]) -> None:
        recorded = [entry for entry in entries if entry.home is not None]
        if not recorded:
            return
        self._log.record(encode_forgotten([entry.number for entry in recorded]))
        batch = self._log.batch()
        for entry in recorded:
            if entry.home is not None:
                batch.targets.append(entry.home)
                batch.released.append(entry.home)

    def holds(self, entry: DuplicateId) -> bool:
        """Whether an entry still counts."""
        known = self.addresses.get(entry.address)
        return known is not None and known.ids.get(entry.duplicate_id) is entry

    def clear(self, address: str) -> int:
        """Forgets all ids of an address; gives how many. At most as many as the cache holds, so not cut into slices."""
        known = self._drop(address)
        if known is None:
            return 0
        self.release_records(list(known.order))
        self._events.duplicate_ids_cleared(address, len(known.order))
        return len(known.order)

    def remove_address(self, address: str) -> "ReleaseRecords | None":
        """The address is gone, and its ids with it: the work that is left to do, None when there is none."""
        known = self._drop(address)
        return None if known is None else ReleaseRecords(self, known.order)

    def _drop(self, address: str) -> KnownIds | None:
        """Forgets an address but for what is coming."""
        known = self.addresses.pop(address, None)
        if known is not None:
            self.sizes.change(known, known.user, -known.size_bytes)
            if known.coming:
                self.of(address).coming = known.coming
        return known

    def count(self, address: str) -> int:
        """How many ids of an address are remembered."""
        known = self.addresses.get(address)
        return 0 if known is None else len(known.order)

    def trim(self) -> None:
        """After a restart: what is over the sizes that are now configured goes."""
        for known in self.addresses.values():
            over: list[DuplicateId] = []
            while len(known.order) > max(known.size, 0):
                over.append(self._take_oldest(known))
            self.release_records(over)
        while self.sizes.size_bytes > self.sizes.most_bytes:
            over = []
            self._make_room(over, RELEASED_PER_BATCH)
            self.release_records(over)


class ReleaseRecords(Job):
    """Releases the records of ids that no address knows any more. What a crash leaves of them is known again."""

    def __init__(self, duplicates: Duplicates, entries: deque[DuplicateId]) -> None:
        self._duplicates = duplicates
        self._entries = entries

    def step(self) -> bool:
        entries = self._entries
        part = [entries.popleft() for _ in range(min(len(entries), RELEASED_PER_BATCH))]
        self._duplicates.release_records(part)
        return not entries
