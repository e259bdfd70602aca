"""Recording decisions: the log, its batches, the numbers it gives and the port that a store implements.

One decision is one batch. A batch lies in the store as a whole or not at all, and its position is the engine's own
count. What leaves the broker carries the position it depends on and waits until the store reports it as synced.
"""

from abc import ABC, abstractmethod
from struct import Struct
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.engine.base.jobs import FULL_NAP_NS, LOOK_AGAIN_NS
from delosmq.engine.base.slots import Slot
from delosmq.engine.log.batch_limits import FITS
from delosmq.engine.log.ports import Replay
from delosmq.engine.log.records import (
    ACKNOWLEDGED,
    DURABLE_FLAG,
    REMOVED,
    STORED,
    VERSION,
    encode_ids,
    encode_referenced,
    encode_stored,
)
from delosmq.model.errors import DiskFullError, InvariantError
from delosmq.model.ids import MessageId, Position, Sequence
from delosmq.model.message import Home, Message

NO_BODY: Final = b""
# The fixed part of a STORED record with one queue: kind, version, priority and body kind as one number, to the size of
# the head; the rest
_pack_stored_front: Final = Struct("<IQQQQI").pack
_pack_stored_tail: Final = Struct("<HHBHIBQ").pack
_pack_removed_front: Final = Struct("<BBBQI").pack
_pack_removed_one: Final = Struct("<15sQ").pack
IDS_RESERVED: Final = 1 << 20
IDS_RESERVED_WHEN_LOW: Final = 1 << 28
"""While the store has little room, so that ids take none of it however long that lasts."""


class _Lists:
    """The records of a batch and what they are about; see `Batch`."""

    def __init__(self) -> None:
        self.metas: list[bytes] = []
        self.bodies: list[bytes] = []
        self.stored: list[tuple[int, Home]] = []
        self.targets: list[Home] = []
        self.released: list[Home] = []


class Batch:
    """The records of one decision, in order.

    A record is a ``meta`` (small, self-describing, read again at every restart) and a ``body`` (large, read only when
    its message is still alive). The lists below tell the store what it must know to reclaim space, and nothing else:

    - metas, bodies: one entry a record; a body is `NO_BODY` for records that have none.
    - stored: ``(index of the record, home)`` of each message stored by this batch, for the first time or again.
    - targets: the home of the message that each removal in this batch is about. A removal must stay on disk while its
      target does.
    - released: homes at which no message lives any more: this batch removed its last reference, or stores it again
      elsewhere.

    Nearly every batch has one record about at most one message. Lists are what costs most of it, so that one lies in
    plain attributes until a list is asked for. A store in a hurry looks at `sole` first.

    Attributes:
        position: given when the batch is opened; the first is 1, each following one is larger by 1.
        sole: there is one record, and the attributes below say all about it; else they say nothing.
        meta, body: the record.
        home: of the message that it stores, None for none.
        target: home of the message that it is about, None for none.
        releases: no message lives at the target any more.
    """

    def __init__(self) -> None:
        self.position: Position = Position(0)
        self.sole: bool = False
        self.meta: bytes = NO_BODY
        self.body: bytes = NO_BODY
        self.home: Home | None = None
        self.target: Home | None = None
        self.releases: bool = False
        self._lists: _Lists | None = None

    # -- recording -----------------------------------------------------------------------------------------------

    def add(self, meta: bytes) -> None:
        """A record without a body, about no message."""
        if not self.sole and self._lists is None:
            self.sole = True
            self.meta = meta
            return
        lists = self._listed()
        lists.metas.append(meta)
        lists.bodies.append(NO_BODY)

    def add_stored(self, meta: bytes, body: bytes, home: Home) -> None:
        """A record that stores a message; the store will fill ``home``."""
        if not self.sole and self._lists is None:
            self.sole = True
            self.meta = meta
            self.body = body
            self.home = home
            return
        lists = self._listed()
        lists.stored.append((len(lists.metas), home))
        lists.metas.append(meta)
        lists.bodies.append(body)

    def add_removed(self, meta: bytes, target: Home, releases: bool) -> None:
        """A record that ends a reference to a message, perhaps the last one."""
        if not self.sole and self._lists is None:
            self.sole = True
            self.meta = meta
            self.target = target
            self.releases = releases
            return
        lists = self._listed()
        lists.metas.append(meta)
        lists.bodies.append(NO_BODY)
        lists.targets.append(target)
        if releases:
            lists.released.append(target)

    def copy(self) -> "Batch":
        """One with the same records, for a store that has to keep it."""
        other = Batch()
        other.position = self.position
        other.sole = self.sole
        other.meta = self.meta
        other.body = self.body
        other.home = self.home
        other.target = self.target
        other.releases = self.releases
        other._lists = self._lists
        return other

    def clear(self) -> None:
        """As new, for the next decision."""
        self.sole = False
        self.meta = NO_BODY
        self.body = NO_BODY
        self.home = None
        self.target = None
        self.releases = False
        self._lists = None

    def _listed(self) -> _Lists:
        lists = self._lists
        if lists is not None:
            return lists
        lists = self._lists = _Lists()
        if self.sole:
            self.sole = False
            lists.metas.append(self.meta)
            lists.bodies.append(self.body)
            if self.home is not None:
                lists.stored.append((0, self.home))
            if self.target is not None:
                lists.targets.append(self.target)
                if self.releases:
                    lists.released.append(self.target)
        return lists

    # -- reading -------------------------------------------------------------------------------------------------

    @property
    def record_count(self) -> int:
        if self.sole:
            return 1
        return 0 if self._lists is None else len(self._lists.metas)

    @property
    def stored_count(self) -> int:
        """How many messages it stores."""
        if self.sole:
            return 0 if self.home is None else 1
        return 0 if self._lists is None else len(self._lists.stored)

    @property
    def metas(self) -> list[bytes]:
        """See above, as for the other lists."""
        return self._listed().metas

    @property
    def bodies(self) -> list[bytes]:
        return self._listed().bodies

    @property
    def stored(self) -> list[tuple[int, Home]]:
        return self._listed().stored

    @property
    def targets(self) -> list[Home]:
        return self._listed().targets

    @property
    def released(self) -> list[Home]:
        return self._listed().released


@mypyc_attr(allow_interpreted_subclasses=True)
class Store(ABC):
    """The port behind which journals, databases and memory look alike."""

    @abstractmethod
    def recover(self, replay: Replay) -> Position:
        """Replays what is stored and returns the newest position (0 for an empty store). Called once, first.

        Raises:
            StorageError: the store is damaged below its synced position (file and offset named) or can't be read.
        """

    @abstractmethod
    def append(self, batch: Batch) -> None:
        """Takes a batch; returns at once. Fills the homes in ``batch.stored``. May not keep the batch, which the next
        decision uses again; its lists and what lies in them it may keep.

        One that stores no message is taken whether there is room or not: what it says is done already. A store without
        room writes it later, and it counts as synced only then.

        Raises:
            StorageError: the batch stores messages and there is no room, or it is larger than the store can ever take.
                Nothing has changed.
        """

    @abstractmethod
    def flush(self) -> None:
        """Writes what was appended, and asks for a sync when a client waits for it; called once per tick of the loop,
        cheap when nothing waits."""

    @abstractmethod
    def read(self, home: Home) -> bytes:
        """The body stored at ``home``."""

    def read_in_order(self, homes: list[Home]) -> list[bytes]:
        """The bodies stored at ``homes``, which are in the order of the store: quicker than one by one."""
        return [self.read(home) for home in homes]

    def takes(self, size_bytes: int) -> bool:
        """Whether a batch of this size leaves alone what is kept for removals, even while space is low. False while one
        that came before waits for room."""
        return True

    def ask_large(self, size_bytes: int) -> int:
        """Whether a batch of this size, larger than `ordinary_batch_bytes`, may be appended as the next thing of any
        size. FITS; or WAITS: space is low from now on, till the store has room for it; or NO_ROOM: for want of disk."""
        return FITS

    def takes_state(self, size_bytes: int, reserve_bytes: int = 0) -> bool:
        """Whether addresses and queues may take so much of the state (`StateSource`), and leave room for
        ``reserve_bytes`` more. A store that needs a moment for it says yes; False is for want of disk."""
        return True

    def give_turn(self) -> None:  # noqa: B027 -- most stores have no threads
        """Lets the store's threads run, as to renew a lease, during long work: compiled code lets none by itself."""

    def compaction_victim(self) -> int:
        """The segment to free: its living messages should be stored again elsewhere; 0 for none. To be asked about once
        a second, as it looks at all segments."""
        return 0


class QueueRecords:
    """Encodes the most frequent records of one queue, which have much in common."""

    def __init__(self, queue_id: int) -> None:
        self._queue_id = queue_id
        self._acknowledged: bytes = _pack_removed_front(REMOVED, VERSION, ACKNOWLEDGED, queue_id, 1)
        # The end of the last STORED record: the same for all that one user sends to one address by one protocol.
        self._stored: bytes = _pack_stored_tail(1, 0, 0, 0, 0, DURABLE_FLAG, queue_id)
        self._address: str = ""
        self._protocol: str = ""
        self._user: str = ""

    def stored(self, message: Message) -> bytes:
        """`encode_stored` of a durable message that this queue alone holds: what nearly every message is."""
        if message.due_at_ms or message.group_id or message.annotations is not None:
            return encode_stored(message, [self._queue_id])
        if message.address != self._address or message.user != self._user or message.protocol != self._protocol:
            self._keep_end(message)
        return (
            _pack_stored_front(
                STORED | VERSION << 8 | message.priority << 16 | message.body_kind << 24,
                message.sequence,
                message.message_id,
                message.timestamp_ms,
                message.expires_at_ms,
                len(message.head),
            )
            + self._stored
        )

    def _keep_end(self, message: Message) -> None:
        self._address = message.address
        self._protocol = message.protocol
        self._user = message.user
        address = message.address.encode()
        protocol = message.protocol.encode()
        user = message.user.encode()
        fixed = _pack_stored_tail(1, len(address), len(protocol), len(user), 0, DURABLE_FLAG, self._queue_id)
        self._stored = b"".join((fixed, address, protocol, user))

    def removed(self, slot: Slot, reason: int) -> bytes:
        """`encode_removed` of one reference, the most frequent record of all."""
        front = self._acknowledged
        if reason != ACKNOWLEDGED:
            front = _pack_removed_front(REMOVED, VERSION, reason, self._queue_id, 1)
        return _pack_removed_one(front, slot.sequence)


class Log:
    """Collects the records of the decision under way and closes them into batches.

    The store keeps a reserve for removals. Who may use it (docs/decisions/0027), asked before anything changes:

    - What ends something doesn't ask: removals, drops, the outcome of what is prepared, what leases acknowledge.
    - What stores messages leaves it alone: sends look at `storage_low`; copies, leases and what transactions write ask
      `takes` or `waits`; what is larger than ordinary asks `ask_large`. A caller that looked is not refused.
    - What begins something leaves it alone on a full disk: `ask_room`. Or a peer that begins and ends things all day
      would use it up.

    Attributes:
        position: of the newest closed batch; what a reply depends on that read or changed durable state.
        bindings_position: of the newest that says something about addresses and queues; what a reply depends on that
            needs them to be there and says nothing about messages.
        synced: everything up to here survives a crash.
        storage_low: the store can take no more messages for now; removals it still takes.
        storage_full: and not for a moment only: the disk gives no more.
        ids_reserved_below: ids up to here (exclusive) may have been given out.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        # One for all decisions: making a batch for each costs as much as its record.
        self._batch: Batch = Batch()
        self._is_open: bool = False
        self._stopped: bool = False
        self.position: Position = Position(0)
        self.bindings_position: Position = Position(0)
        self.synced: Position = Position(0)
        self.storage_low: bool = False
        self.storage_full: bool = False
        self.ids_reserved_below: int = 1
        self._next_id: int = 1

    # -- ids: one counter for messages, queues and what else has a number (docs/decisions/0023) ----------------------
    # The next block is reserved when half of the current one is used, so its record is long on disk before an id of it
    # leaves the broker.

    def replay_reserved_ids(self, below: int) -> None:
        """What an earlier life of the broker had reserved; all of it counts as used."""
        if below > self.ids_reserved_below:
            self.ids_reserved_below = below
            self._next_id = below

    def reserve_ids(self) -> None:
        """Reserves the first block of this life; to be synced before the first client is served."""
        self.ids_reserved_below = self._next_id + IDS_RESERVED
        self.record(encode_ids(self.ids_reserved_below))

    def next_id(self) -> Sequence:
        """A new id, never given before, whatever crashed."""
        return self.take_ids(1)

    def take_ids(self, count: int) -> Sequence:
        """The first of ``count`` new ids in a row."""
        first = self._next_id
        self._next_id = first + count
        if self.ids_reserved_below - self._next_id < IDS_RESERVED // 2:
            block = IDS_RESERVED_WHEN_LOW if self.storage_low else IDS_RESERVED
            self.ids_reserved_below = max(self.ids_reserved_below, self._next_id) + block
            self.record(encode_ids(self.ids_reserved_below))
        return Sequence(first)

    # -- the batch of the decision under way -------------------------------------------------------------------------

    def batch(self) -> Batch:
        """The batch of the decision under way; opened by its first record."""
        batch = self._batch
        if not self._is_open:
            self._is_open = True
            batch.position = Position(self.position + 1)
        return batch

    def takes(self, size_bytes: int) -> bool:
        """Whether there is room for a batch of this size beside what is kept for removals."""
        return not self.storage_low or self._store.takes(size_bytes)

    def waits(self, size_bytes: int) -> bool:
        """Whether a batch of this size should wait a moment, until the store has another file ready."""
        return self.storage_low and not self.storage_full and not self._store.takes(size_bytes)

    @property
    def nap_ns(self) -> int:
        """How long work sleeps that has found no room; on a full disk it may take longer till there is some."""
        return FULL_NAP_NS if self.storage_full else LOOK_AGAIN_NS

    def ask_large(self, size_bytes: int) -> int:
        """FITS, WAITS or NO_ROOM, for a batch that is larger than ordinary; see `Store.ask_large`."""
        return self._store.ask_large(size_bytes)

    def takes_state(self, size_bytes: int, reserve_bytes: int = 0) -> bool:
        """Whether the store has room for so many bytes about addresses and queues; see `Store.takes_state`."""
        return self._store.takes_state(size_bytes, reserve_bytes)

    def ask_room(self, size_bytes: int, what: str) -> None:
        """To be asked before something begins that stores no message, and before anything has changed.

        Args:
            what: would be recorded, for the error: "a new queue".

        Raises:
            DiskFullError: what is left is for removals.
        """
        if self.storage_full and not self._store.takes(size_bytes):
            raise DiskFullError(
                "DMQ2685",
                f"the disk is full, what is left of the journal is for acknowledgements, and {what} has to wait:"
                " free some space or consume messages, then try again",
            )

    def refusal_of_large(self, size_bytes: int) -> DiskFullError:
        """What the sender of a large message is told when `ask_large` says NO_ROOM."""
        return DiskFullError(
            "DMQ3027",
            f"the disk has no room for a message of {size_bytes} bytes, which needs most of a journal file and another"
            " file behind it; nothing is lost: free some space or consume messages, then send it again",
        )

    def append(self, message: Message, alone: QueueRecords | None, queue_ids: list[int]) -> None:
        """Gives a routed message its number, and records it.

        Args:
            alone: of the one queue of the store that holds it; None when several do, or it is not stored.
            queue_ids: of several. Nearly every message has one queue: it gets by without a list.
        """
        sequence = self.take_ids(1)
        message.message_id = MessageId(sequence)
        message.sequence = sequence
        if alone is not None:
            self.store(message, alone.stored(message), 1)
        elif queue_ids:
            self.store(message, encode_stored(message, queue_ids), len(queue_ids))

    def store(self, message: Message, meta: bytes, references: int) -> None:
        """Records a message that so many queues of the store hold; its home is known once the batch is closed."""
        batch = self.batch()
        home = Home()
        message.home = home
        message.recorded_references = references
        message.position = batch.position
        batch.add_stored(meta, message.head + message.body, home)

    def store_reference(self, message: Message, queue_id: int) -> None:
        """Records that one more queue keeps a message which is stored already."""
        home = message.home
        if home is None:
            raise InvariantError("DMQ2002", f"message {message.message_id} is referenced but not stored")
        message.recorded_references += 1
        self.record(encode_referenced(queue_id, message.sequence))
        self.batch().targets.append(home)

    def record(self, meta: bytes) -> None:
        """Adds a record without a body."""
        self.batch().add(meta)

    def record_binding(self, meta: bytes) -> None:
        """Adds a record about an address or a queue."""
        batch = self.batch()
        batch.add(meta)
        self.bindings_position = batch.position

    def stop(self) -> None:
        """Records nothing from now on: the broker has failed, and what is half decided must not reach the store."""
        self._stopped = True

    def close(self) -> Position:
        """Ends the decision: hands its batch, if any, to the store. Returns the newest position."""
        if self._is_open:
            self._is_open = False
            batch = self._batch
            if self._stopped:
                # No store will call this position synced, so nothing that depends on the decision leaves.
                self.position = batch.position
                batch.clear()
                return self.position
            try:
                self._store.append(batch)
            except BaseException:
                self._batch = Batch()  # what was refused is dropped
                self.bindings_position = min(self.bindings_position, self.position)
                raise
            self.position = batch.position
            batch.clear()
        return self.position
