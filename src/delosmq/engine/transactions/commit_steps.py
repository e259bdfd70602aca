"""How a transaction is committed, or prepared.

A small one is a single batch. A large one is written in batches of its own first, none of which counts before the one
record that commits it; then its messages are linked into their queues and what it acknowledged is removed, in slices. A
crash leaves all of it or nothing: before that record replay discards what it finds, after it replay does the rest.
"""

from typing import Final

from delosmq.engine.base.slots import Slot
from delosmq.engine.log.batch_limits import NO_ROOM, WAITS
from delosmq.engine.log.records import (
    ACKNOWLEDGED,
    ATTEMPT_VERSION,
    STAGING_VERSION,
    TRANSACTION,
    VERSION,
    encode_json,
    encode_promised,
    encode_sent,
)
from delosmq.engine.queues.queue import Queue
from delosmq.engine.routing.enqueue import RoutedMessage
from delosmq.engine.routing.parts import RECORD_ROOM_BYTES, EngineParts, record_room_bytes
from delosmq.engine.routing.send import EngineProducers
from delosmq.engine.transactions.rollback import free_in_slices
from delosmq.engine.transactions.transaction import (
    ACKNOWLEDGED_BYTES,
    COMMITTED,
    COMMITTING,
    DUPLICATE_ID,
    NOT_ROUTED,
    PREPARED,
    Promised,
    StagedPart,
    Transaction,
    TransactionError,
    cost_of,
    find_originals,
    id_cost,
)
from delosmq.model.errors import BrokerError, StorageError
from delosmq.model.ids import MessageId, Position, Sequence
from delosmq.model.message import Home

SMALL_OPERATIONS: Final = 200
SEGMENT_SHARE: Final = 8
"""A batch of a transaction takes at most this part of a segment, so that none forces a roll."""
PLANNED_PER_SLICE: Final = 200
WRITTEN_PER_SLICE: Final = 200
LINKED_PER_SLICE: Final = 200
ACKNOWLEDGED_PER_SLICE: Final = 400

LARGEST_BATCH_BYTES: Final = 8 << 20


class CommitSteps:
    """The steps, each of which leaves the engine whole."""

    def __init__(self, parts: EngineParts, producers: EngineProducers) -> None:
        self._log = parts.log
        self._memory = parts.memory
        self._enqueuer = parts.enqueuer
        self._removals = parts.removals
        self._duplicates = parts.duplicates
        self._events = parts.events
        self._jobs = parts.jobs
        self._ordinary_message_bytes: int = parts.ordinary_message_bytes
        self._record_room_bytes: int = record_room_bytes(parts.settings.journal)
        self._producers = producers
        journal = parts.settings.journal
        self.batch_bytes: int = (
            min(journal.file_size_bytes // SEGMENT_SHARE, LARGEST_BATCH_BYTES)
            if journal.directory
            else LARGEST_BATCH_BYTES
        )
        self.acknowledged_per_slice: int = ACKNOWLEDGED_PER_SLICE
        self._linking: list[Transaction] = []

    # -- planning ------------------------------------------------------------------------------------------------

    def plan(self, transaction: Transaction, start: int, stop: int) -> None:
        """Routes a part of what is sent; nothing is added to any queue yet.

        Raises:
            BrokerError: a message can't be routed any more.
        """
        planned = transaction.planned
        for sent in transaction.sends[start:stop]:
            routed = self._producers.route(sent.message, sent.queue_name, sent.routing)
            charged = sent.message.account
            for item in routed:
                item.stamp_original(self._log)
                for queue in item.queues:
                    queue.pending_commits += 1
                    transaction.queues[queue.id] = queue
                if item.message is sent.message:
                    charged = None
            planned += routed
            if len(routed) > 1:
                find_originals(planned, len(planned) - len(routed))
            if charged is not None:
                self._memory.release(sent.message)
        self._log.close()

    def unplan(self, transaction: Transaction) -> None:
        """Planning failed on the way: what it sends is as it was before."""
        for item in transaction.planned:
            for queue in item.queues:
                queue.pending_commits -= 1
        transaction.planned = []
        transaction.queues = {}

    def check_ids(self, transaction: Transaction) -> None:
        """Refuses a transaction when one of its duplicate ids was seen meanwhile.

        Raises:
            TransactionError: condition DUPLICATE_ID.
        """
        for address, ids in transaction.ids.items():
            known = self._duplicates.of(address)
            if not ids.isdisjoint(known.ids) or not all(ids.isdisjoint(coming) for coming in known.coming):
                raise duplicate_error(address)

    def is_small(self, transaction: Transaction) -> bool:
        """Whether one batch takes it, and the store such a batch."""
        if transaction.operations > SMALL_OPERATIONS or len(transaction.planned) > SMALL_OPERATIONS:
            return False
        stored = sum([cost_of(item) for item in transaction.planned]) + sum(map(id_cost, transaction.duplicate_ids))
        size = stored + ACKNOWLEDGED_BYTES * len(transaction.acks)
        return size <= self.batch_bytes and (stored == 0 or self._log.takes(size))

    def ask_room(self, transaction: Transaction) -> None:
        """To be asked before a branch is prepared: what it then acknowledges may come back all the same.

        Raises:
            LimitError: the disk is full.
        """
        size = RECORD_ROOM_BYTES + ACKNOWLEDGED_BYTES * len(transaction.acks)
        self._log.ask_room(size, f"transaction {transaction.id}")

    def waits(self) -> bool:
        """Whether what a large one writes before its moment should wait until the store has another file ready."""
        return self._log.waits(self._ordinary_message_bytes + RECORD_ROOM_BYTES)

    def waits_for_place(self, transaction: Transaction, at: int) -> bool:
        """Whether the message to be written next takes most of a journal file, for which the store makes ready."""
        if at >= len(transaction.planned) or not self._is_large(transaction.planned[at]):
            return False
        return self._log.ask_large(self._place_of(transaction.planned[at])) == WAITS

    def _is_large(self, item: RoutedMessage) -> bool:
        return item.message.encoded_size_bytes > self._ordinary_message_bytes and item.message.durable

    def _place_of(self, item: RoutedMessage) -> int:
        return cost_of(item) + self._record_room_bytes

    # -- a small one ---------------------------------------------------------------------------------------------

    def commit_at_once(self, transaction: Transaction) -> None:
        """Everything in one batch."""
        self._end_acks(transaction.acks)
        for item in transaction.planned:
            for queue in item.queues:
                queue.pending_commits -= 1
        self._enqueuer.enqueue_routed(transaction.planned)
        for entry in transaction.duplicate_ids:
            self._duplicates.remember(entry.address, entry.duplicate_id, durable=entry.durable)
        self._log.close()
        self.committed(transaction)

    def _end_acks(self, promised: list[Promised]) -> None:
        by_queue: dict[int, list[Slot]] = {}
        queues: dict[int, Queue] = {}
        for item in promised:
            queue = item.queue
            queue.settle(item.slot, item.consumer)
            queue.counters.acknowledged += 1
            queues[queue.id] = queue
            by_queue.setdefault(queue.id, []).append(item.slot)
        for queue_id, slots in by_queue.items():
            queue = queues[queue_id]
            self._removals.remove(queue, slots, ACKNOWLEDGED)
            if queue.traits.tells_acknowledged:
                self._tell_acknowledged(promised, queue)
            queue.ask_dispatch()

    def _tell_acknowledged(self, promised: list[Promised], queue: Queue) -> None:
        for item in promised:
            if item.queue is queue:
                holder = item.consumer
                self._events.message_acknowledged(queue.name, queue.id, item.slot, holder.called(), holder.user_name())

    # -- a large one: before the moment --------------------------------------------------------------------------

    def write_sends(self, transaction: Transaction, start: int) -> int:
        """Writes some of the messages from ``start`` on, as a batch that counts for nothing yet; gives where to go on.

        Raises:
            StorageError: the store takes no more.
            LimitError: the disk has no room for a large message.
        """
        at = start
        stop = min(len(transaction.planned), start + WRITTEN_PER_SLICE)
        if start < stop and self._is_large(transaction.planned[start]):
            if self._log.ask_large(self._place_of(transaction.planned[start])) == NO_ROOM:
                raise self._log.refusal_of_large(transaction.planned[start].message.encoded_size_bytes)
            stop = start + 1  # a batch of its own
        size = 0
        homes: list[Home] = []
        while at < stop:
            item = transaction.planned[at]
            message = item.message
            cost = cost_of(item)
            if (size and size + cost > self.batch_bytes) or (at > start and self._is_large(item)):
                break
            if message.account is None:  # a copy that routing made
                self._memory.charge(item.address.account, message)
            durable = [int(queue.id) for queue in item.queues if queue.settings.durable] if message.durable else []
            if durable:
                home = Home()
                message.home = home
                message.recorded_references = len(durable)
                batch = self._log.batch()
                batch.stored.append((len(batch.metas), home))
                batch.metas.append(encode_sent(message, durable, transaction.id, at, item.original_place))
                batch.bodies.append(message.head + message.body)
                homes.append(home)
                size += cost
            at += 1
        self._close(transaction, homes)
        return at

    def write_acks(self, transaction: Transaction, start: int) -> int:
        """The same for acknowledgements."""
        stop = min(len(transaction.acks), start + self.acknowledged_per_slice)
        by_queue: dict[int, list[Slot]] = {}
        homes: list[Home] = []
        for item in transaction.acks[start:stop]:
            home = item.slot.message.home
            if item.slot.recorded and home is not None:
                by_queue.setdefault(item.queue.id, []).append(item.slot)
                homes.append(home)
        for queue_id, slots in by_queue.items():
            self._log.record(encode_promised(transaction.id, queue_id, slots))
        if homes:
            self._log.batch().targets.extend(homes)
        self._close(transaction, homes)
        return stop

    def write_ids(self, transaction: Transaction, start: int) -> int:
        """The same for duplicate ids."""
        at = start
        stop = min(len(transaction.duplicate_ids), start + ACKNOWLEDGED_PER_SLICE)
        size = 0
        homes: list[Home] = []
        while at < stop:
            entry = transaction.duplicate_ids[at]
            cost = id_cost(entry)
            if size and size + cost > self.batch_bytes:
                break
            size += cost
            at += 1
            if entry.durable:
                self._duplicates.record_for(transaction.id, entry)
            if entry.home is not None:
                homes.append(entry.home)
        self._close(transaction, homes)
        return at

    def _close(self, transaction: Transaction, homes: list[Home]) -> None:
        self._log.close()
        for home in homes:
            transaction.recorded = True
            if home.segment not in transaction.segments:
                transaction.segments[home.segment] = home

    # -- the moment ----------------------------------------------------------------------------------------------

    def record_prepared(self, transaction: Transaction, prepared_ms: int) -> None:
        """From now on the transaction survives everything but its coordinator's decision."""
        before = transaction.state
        # First the state, then the record: the store may ask for the whole state as it takes the batch.
        transaction.prepared_ms = prepared_ms
        transaction.state = PREPARED
        try:
            version = _prepare_version(transaction.part)
            self._log.record(encode_json(TRANSACTION, {"op": "prepare", **prepared_as_json(transaction)}, version))
            self._log.close()
        except StorageError:
            transaction.prepared_ms = 0
            transaction.state = before
            raise
        transaction.recorded = True
        if transaction.part is None:
            self._events.transaction_prepared(transaction.id, transaction.xid or b"")

    def record_commit(self, transaction: Transaction, heuristic: bool) -> None:
        """The moment at which everything happens, whatever comes after."""
        self._number(transaction)
        if transaction.recorded:
            value: dict[str, object] = {"op": "commit", "tx": transaction.id, "first": transaction.first_sequence}
            if heuristic and transaction.xid is not None:
                value["heuristic"] = transaction.xid.hex()
            self._log.record(encode_json(TRANSACTION, value))
            # As long as a message that it brought to life, or ended, is on the disk, this record must be too.
            self._log.batch().targets.extend(transaction.segments.values())
        self._enter(transaction, self._log.close())

    def record_publication(self, value: dict[str, object], transactions: list[Transaction]) -> None:
        """The same moment for several prepared ones at once, in this order; ``value`` says what else happens then."""
        for transaction in transactions:
            self._number(transaction)
        firsts = [[transaction.id, transaction.first_sequence] for transaction in transactions]
        self._log.record(encode_json(TRANSACTION, {"op": "publish", "parts": firsts, **value}, STAGING_VERSION))
        for transaction in transactions:
            self._log.batch().targets.extend(transaction.segments.values())
        position = self._log.close()
        for transaction in transactions:
            self._enter(transaction, position)

    def _number(self, transaction: Transaction) -> None:
        transaction.state = COMMITTING
        transaction.first_sequence = self._log.take_ids(self._count(transaction))

    def _enter(self, transaction: Transaction, position: Position) -> None:
        transaction.position = position
        for address, ids in transaction.ids.items():
            self._duplicates.of(address).coming.append(ids)
        self._linking.append(transaction)
        self._set_barriers(transaction, transaction.first_sequence - 1)

    def _set_barriers(self, transaction: Transaction, linked: int) -> None:
        # A queue that waits for an earlier commit keeps the lower barrier.
        first = self._linking[0] is transaction
        for queue in transaction.queues.values():
            if first or queue.barrier_sequence == 0:
                queue.barrier_sequence = linked

    # -- a large one: after the moment ---------------------------------------------------------------------------

    def newest_sequence(self, queue: Queue) -> int:
        """Of the last message of a queue, with those of large commits that are still to be linked in."""
        newest: int = queue.newest_sequence
        for transaction in self._linking:
            if queue.id in transaction.queues:
                newest = max(newest, transaction.first_sequence + self._count(transaction) - 1)
        return newest

    @staticmethod
    def _count(transaction: Transaction) -> int:
        return transaction.indexes[-1] + 1 if transaction.indexes else len(transaction.planned)

    def is_turn(self, transaction: Transaction) -> bool:
        """Whether all that was committed before is linked: order of commits is order of messages."""
        return self._linking[0] is transaction

    def link(self, transaction: Transaction, start: int) -> int:
        """Adds some of the messages from ``start`` on to their queues; gives where to go on."""
        stop = min(len(transaction.planned), start + LINKED_PER_SLICE)
        sequence = transaction.first_sequence - 1
        for at in range(start, stop):
            item = transaction.planned[at]
            message = item.message
            sequence = transaction.first_sequence + (transaction.indexes[at] if transaction.indexes else at)
            message.sequence = Sequence(sequence)
            message.message_id = MessageId(sequence)
            message.position = transaction.position
            if item.original_place is not None:
                item.original_place.stamp(message, transaction.first_sequence)
            for queue in item.queues:
                queue.pending_commits -= 1
            self._enqueuer.link(message, item.queues, item.address)
            item.tell_divert(self._events)
        self._log.close()
        if stop > start:
            self._set_barriers(transaction, sequence)
            for queue in transaction.queues.values():
                queue.ask_dispatch()
        return stop

    def all_linked(self, transaction: Transaction) -> None:
        """Lifts the barriers, or hands them to the next commit on the same queue."""
        self._linking.remove(transaction)
        for queue in transaction.queues.values():
            queue.barrier_sequence = 0
        for later in self._linking:
            for queue in later.queues.values():
                if queue.barrier_sequence == 0 and queue.id in transaction.queues:
                    queue.barrier_sequence = later.first_sequence - 1
        for queue in transaction.queues.values():
            queue.ask_dispatch()

    def end_acks(self, transaction: Transaction, start: int) -> int:
        """Removes some of what it acknowledged; gives where to go on."""
        stop = min(len(transaction.acks), start + self.acknowledged_per_slice)
        self._end_acks(transaction.acks[start:stop])
        self._log.close()
        return stop

    def end_ids(self, transaction: Transaction, start: int) -> int:
        """Takes some of its duplicate ids into the caches; gives where to go on."""
        stop = min(len(transaction.duplicate_ids), start + ACKNOWLEDGED_PER_SLICE)
        self._duplicates.adopt(transaction.duplicate_ids[start:stop])
        if stop == len(transaction.duplicate_ids):
            for address, ids in transaction.ids.items():
                self._duplicates.of(address).coming.remove(ids)
        return stop

    def committed(self, transaction: Transaction) -> None:
        transaction.state = COMMITTED
        if not transaction.internal:
            self._events.transaction_committed(transaction.id, len(transaction.sends), len(transaction.acks))
        free_in_slices(transaction, self._jobs)


def prepared_as_json(transaction: Transaction) -> dict[str, object]:
    """A prepared transaction in its record and in the state block."""
    value: dict[str, object] = {"tx": transaction.id, "at": transaction.prepared_ms}
    part = transaction.part
    if part is None:
        value["xid"] = (transaction.xid or b"").hex()
    else:
        value |= {"app": part.application, "batch": part.batch, "uuid": part.uuid, "rows": part.rows}
        if part.duplicates or part.dropped:
            value |= {"duplicates": part.duplicates, "dropped": part.dropped}
        if part.attempt:
            value |= {"attempt": part.attempt, "task": part.task, "run": part.run}
    if transaction.made_by:
        value["made_by"] = transaction.made_by
    return value


def _prepare_version(part: StagedPart | None) -> int:
    if part is None:
        return VERSION
    return ATTEMPT_VERSION if part.attempt else STAGING_VERSION


def duplicate_error(address: str) -> TransactionError:
    """A duplicate id of the transaction is known to ``address``."""
    return TransactionError(
        "DMQ2660",
        DUPLICATE_ID,
        f"a message of the transaction has a duplicate id that address '{address}' has seen: the transaction was sent"
        " before and is rolled back now; nothing need be done, or begin again with a new id",
    )


def routing_error(transaction: Transaction, error: BrokerError) -> TransactionError:
    """A message can't be routed, or stored, at the commit."""
    refusal = TransactionError(
        "DMQ2661", NOT_ROUTED, f"transaction {transaction.id} was rolled back: {error.message}; begin again"
    )
    refusal.__cause__ = error
    return refusal
