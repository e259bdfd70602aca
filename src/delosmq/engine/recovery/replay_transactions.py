"""Replay of transactions and duplicate ids.

Records of a transaction count for nothing before its commit is found. What is left at the end is a prepared branch, or
was never committed: then it is given up, so that its segments can be freed.
"""

from collections import deque
from typing import Final

from delosmq.engine.addresses.address import Address
from delosmq.engine.addresses.binding_codec import maker_from_json
from delosmq.engine.addresses.bindings import Bindings
from delosmq.engine.addresses.duplicate_ids import DuplicateId, Duplicates
from delosmq.engine.base.slots import Slot
from delosmq.engine.log.log import Log
from delosmq.engine.log.records import (
    DISCARDED,
    DUPLICATE,
    FORGOTTEN,
    PROMISED,
    DuplicateRecord,
    decode_numbers,
    decode_promised,
    decode_sent_place,
    encode_discarded,
)
from delosmq.engine.queues.in_delivery import Holder
from delosmq.engine.queues.memory_limits import MemoryLimits
from delosmq.engine.queues.queue import DELETED, Queue
from delosmq.engine.recovery.stored_messages import StoredMessages
from delosmq.engine.routing.enqueue import RoutedMessage
from delosmq.engine.transactions.staged_parts import Staging
from delosmq.engine.transactions.transaction import PREPARED, Promised, StagedPart, Transaction
from delosmq.engine.transactions.transactions import EngineTransactions
from delosmq.engine.transactions.xa import Branches
from delosmq.model.ids import QueueId
from delosmq.model.message import ANYCAST, Home
from delosmq.model.settings import QueueSettings

DISCARDED_PER_BATCH: Final = 500


class SentRecord:
    """A message of a transaction as it came."""

    def __init__(self, meta: bytes, home: Home) -> None:
        self.meta = meta
        self.home = home


class PromisedRecord:
    """What a transaction acknowledges in one queue."""

    def __init__(self, queue_id: int, sequences: list[int]) -> None:
        self.queue_id = queue_id
        self.sequences = sequences


class _Prepared:
    def __init__(self, xid: bytes | None, at_ms: int, made_by: str, part: StagedPart | None) -> None:
        self.xid = xid
        self.at_ms = at_ms
        self.made_by = made_by
        self.part = part


class TransactionReplay:
    """Collects records of transactions and of duplicate ids."""

    def __init__(
        self,
        bindings: Bindings,
        memory: MemoryLimits,
        duplicates: Duplicates,
        *,
        stored: StoredMessages,
        transactions: EngineTransactions,
        branches: Branches,
        staging: Staging,
    ) -> None:
        self._stored = stored
        self._bindings = bindings
        self._memory = memory
        self._duplicates = duplicates
        self._transactions = transactions
        self._branches = branches
        self._staging = staging
        # By transaction; messages by their place in it.
        self._sent: dict[int, dict[int, SentRecord]] = {}
        self._promised: dict[int, list[PromisedRecord]] = {}
        self._coming: dict[int, dict[int, DuplicateId]] = {}
        self._prepared: dict[int, _Prepared] = {}
        # By number.
        self._known: dict[int, DuplicateId] = {}
        self._tombstones: dict[int, Queue] = {}

    # -- records -------------------------------------------------------------------------------------------------

    def replay_prepared(self, value: dict[str, object]) -> None:
        """A branch, or a staged part, that a state block or record knows as prepared."""
        made_by = maker_from_json(value)
        part: StagedPart | None = None
        xid: bytes | None = None
        if "uuid" in value:
            part = StagedPart(str(value["app"]), int(str(value["batch"])), str(value["uuid"]), made_by)
            part.rows = int(str(value["rows"]))
            part.duplicates = int(str(value.get("duplicates", 0)))
            part.dropped = int(str(value.get("dropped", 0)))
            part.is_staged = True
            part.attempt = str(value.get("attempt", ""))
            part.task = str(value.get("task", ""))
            part.run = str(value.get("run", ""))
        else:
            xid = bytes.fromhex(str(value["xid"]))
        self._prepared[int(str(value["tx"]))] = _Prepared(xid, int(str(value["at"])), made_by, part)

    def replay_published(self, application: str, batch: int, at_ms: int, made_by: str) -> None:
        """The last batch that an application published."""
        self._staging.note_published(application, batch, at_ms, made_by)

    def replay_heuristic(self, xid: str, *, committed: bool, made_by: str) -> None:
        """A branch that an operator ended."""
        self._branches.add_heuristic(bytes.fromhex(xid), committed, made_by)

    def replay_sent(self, meta: bytes, home: Home) -> None:
        transaction, index = decode_sent_place(meta)
        self._sent.setdefault(transaction, {})[index] = SentRecord(meta, home)

    def replay_record(self, kind: int, meta: bytes, home: Home) -> bool:
        """Records that count whatever the state block covers; False for others."""
        if kind == PROMISED:
            transaction, queue_id, sequences = decode_promised(meta)
            self._promised.setdefault(transaction, []).append(PromisedRecord(queue_id, sequences))
        elif kind == DISCARDED:
            transaction, indexes = decode_numbers(meta)
            sent = self._sent.get(transaction, {})
            for index in indexes:
                sent.pop(index, None)
        elif kind == DUPLICATE:
            record = DuplicateRecord(meta)
            if record.transaction:
                self._coming.setdefault(record.transaction, {})[record.number] = _duplicate_id(record, home)
            else:
                self._known[record.number] = _duplicate_id(record, home)
                self._known.pop(record.evicted, None)
        elif kind == FORGOTTEN:
            for number in decode_numbers(meta)[1]:
                if self._known.pop(number, None) is None:
                    for coming in self._coming.values():
                        coming.pop(number, None)
        else:
            return False
        return True

    def replay_change(self, value: dict[str, object]) -> None:
        """A TRANSACTION record that the state block does not cover."""
        op = value["op"]
        if op == "prepare":
            self.replay_prepared(value)
            return
        if op == "forget":
            self._branches.drop_heuristic(bytes.fromhex(str(value["xid"])))
            return
        if op == "forget published":
            self._staging.published.forget(str(value["app"]))
            return
        if op == "publish":
            for transaction, _ in _pairs(value["parts"]):
                self._prepared.pop(transaction, None)
            batch, at_ms = int(str(value["batch"])), int(str(value["at"]))
            self.replay_published(str(value["app"]), batch, at_ms, maker_from_json(value))
            return
        prepared = self._prepared.pop(int(str(value["tx"])), None)
        if "heuristic" in value:
            made_by = "" if prepared is None else prepared.made_by
            self.replay_heuristic(str(value["heuristic"]), committed=op == "commit", made_by=made_by)

    def committed_ids(self, transaction: int) -> None:
        """The duplicate ids of a transaction count from now on."""
        for number, known in self._coming.pop(transaction, {}).items():
            self._known[number] = known

    def committed_sends(self, transaction: int) -> dict[int, SentRecord]:
        return self._sent.pop(transaction, {})

    def committed_acks(self, transaction: int) -> list[PromisedRecord]:
        return self._promised.pop(transaction, [])

    # -- the end -------------------------------------------------------------------------------------------------

    def queues_held(self) -> set[int]:
        """Ids of queues in which prepared branches acknowledge something."""
        return {item.queue_id for key in self._prepared for item in self._promised.get(key, [])}

    def finish(self, slots: dict[int, dict[int, Slot]]) -> None:
        """Puts prepared branches and duplicate ids together; the bodies of what branches send are still to be loaded.

        Args:
            slots: of the queues held, by queue id and sequence.
        """
        for transaction_id, prepared in self._prepared.items():
            transaction = Transaction(transaction_id, "", prepared.xid)
            transaction.made_by = prepared.made_by
            transaction.part = prepared.part
            transaction.state = PREPARED
            transaction.recorded = True
            transaction.began_ms = prepared.at_ms
            transaction.prepared_ms = prepared.at_ms
            self._restore_sends(transaction)
            self._restore_acks(transaction, slots)
            for known in self._coming.pop(transaction_id, {}).values():
                self._restore_id(transaction, known)
            self._transactions.adopt(transaction)
            if transaction.part is not None:
                self._staging.adopt(transaction)
        for number in sorted(self._known):
            self._duplicates.restore(self._known[number])
        self._known = {}

    def _restore_sends(self, transaction: Transaction) -> None:
        sent = self._sent.pop(transaction.id, {})
        for index in sorted(sent):
            home = sent[index].home
            record = self._stored.decode(sent[index].meta, home)
            message = record.message
            self._stored.await_body(message)
            address = self._bindings.addresses.get(message.address)
            if address is None:
                address = Address(message.address, {ANYCAST}, self._bindings.settings_of(message.address))
            queues = [self._queue(queue_id, address) for queue_id in record.queue_ids]
            for queue in queues:
                queue.pending_commits += 1
                transaction.queues[queue.id] = queue
            message.recorded_references = len(queues)
            self._memory.charge(address.account, message)
            transaction.count_charge(message)
            planned = RoutedMessage(message, address, queues)
            planned.original_place = record.original
            transaction.planned.append(planned)
            transaction.indexes.append(index)
            transaction.segments[home.segment] = home

    def _queue(self, queue_id: int, address: Address) -> Queue:
        queue = self._bindings.by_id.get(queue_id) or self._tombstones.get(queue_id)
        if queue is None:
            # Gone since: its references end when the branch does.
            queue = Queue(QueueId(queue_id), QueueSettings("", address.name, ANYCAST, durable=True), address, deque())
            queue.suspended |= DELETED
            self._tombstones[queue_id] = queue
        return queue

    def _restore_acks(self, transaction: Transaction, slots: dict[int, dict[int, Slot]]) -> None:
        by_queue: dict[int, list[int]] = {}
        for item in self._promised.pop(transaction.id, []):
            by_queue.setdefault(item.queue_id, []).extend(item.sequences)
        for queue_id, sequences in by_queue.items():
            queue = self._bindings.by_id.get(queue_id)
            if queue is None:
                continue
            # One holder for all of a queue, in their order: a rollback returns them newest first (RING-7).
            holder = Holder(client_counts=True)  # only OpenWire clients have branches
            known = slots.get(queue_id, {})
            for sequence in sorted(sequences):
                slot = known.get(sequence)
                home = None if slot is None else slot.message.home
                if slot is None or home is None or slot.transaction:
                    continue
                if not queue.pending.holds(slot):
                    queue.unschedule(slot)
                queue.deliver(slot, holder)
                holder.promise(slot, transaction.id)
                transaction.acks.append(Promised(queue, holder, slot))
                transaction.segments[home.segment] = home

    def _restore_id(self, transaction: Transaction, known: DuplicateId) -> None:
        transaction.duplicate_ids.append(known)
        transaction.ids.setdefault(known.address, set()).add(known.duplicate_id)
        if known.home is not None:
            transaction.segments[known.home.segment] = known.home

    def purge(self, log: Log) -> None:
        """Gives up what no commit was found for."""
        for transaction_id, sent in self._sent.items():
            indexes = sorted(sent)
            for at in range(0, len(indexes), DISCARDED_PER_BATCH):
                part = indexes[at : at + DISCARDED_PER_BATCH]
                log.record(encode_discarded(transaction_id, part))
                homes = [sent[index].home for index in part]
                log.batch().targets.extend(homes)
                log.batch().released.extend(homes)
                log.close()
        for coming in self._coming.values():
            self._duplicates.release_records(list(coming.values()))
        self._sent = {}
        self._promised = {}
        self._coming = {}
        self._duplicates.trim()


def _pairs(value: object) -> list[tuple[int, int]]:
    assert isinstance(value, list)
    return [(int(transaction), int(first)) for transaction, first in value]


def _duplicate_id(record: DuplicateRecord, home: Home) -> DuplicateId:
    entry = DuplicateId(record.address, record.duplicate_id, record.number)
    entry.home = home
    return entry
