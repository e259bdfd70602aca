"""Building the engine's state again from what a store holds, and writing the state block that shortens it.

Replay evaluates no selector, ring or clock: it applies outcomes through the methods that live commands use. After it
ordinary commands follow (ring trim, settling what leases acknowledged).
"""

import json
from typing import Final

from delosmq.engine.addresses.binding_codec import address_as_json, maker_from_json, queue_as_json, queue_from_json
from delosmq.engine.addresses.bindings import Bindings
from delosmq.engine.base.slots import Slot
from delosmq.engine.delivery.redelivery import longest_delay_ms
from delosmq.engine.dispatch.schedule import Schedule
from delosmq.engine.leases.lease import LeaseGroup
from delosmq.engine.leases.leases import Leases
from delosmq.engine.log.log import Log, Store
from delosmq.engine.log.ports import Replay, StateSource
from delosmq.engine.log.records import (
    BINDING,
    COUNTED,
    IDS,
    LEASE,
    PURGED,
    REFERRED,
    REMOVED,
    SCHEDULED,
    STORED,
    TRANSACTION,
    check_version,
    decode_counted,
    decode_ids,
    decode_json,
    decode_referenced,
    decode_removed,
    decode_scheduled,
    encode_removed,
    is_sent,
)
from delosmq.engine.queues.memory_limits import MemoryLimits
from delosmq.engine.queues.queue import Queue
from delosmq.engine.recovery.replay_leases import Json, LeaseReplay, json_int, json_list, json_object
from delosmq.engine.recovery.replay_transactions import TransactionReplay
from delosmq.engine.recovery.stored_messages import StoredMessages
from delosmq.engine.routing.held_messages import DEAD, EXPIRED
from delosmq.engine.transactions.commit_steps import prepared_as_json
from delosmq.engine.transactions.staged_parts import Staging
from delosmq.engine.transactions.transaction import PREPARED
from delosmq.engine.transactions.xa import Branches
from delosmq.model.errors import StorageError
from delosmq.model.ids import MessageId, Position, QueueId, Sequence
from delosmq.model.message import Home, Message

PURGED_PER_BATCH: Final = 200
SLOTS_PER_TURN: Final = 4_096
"""Put into a queue at once: some milliseconds compiled, much less than any lease."""
FIRST: Final = 1
WISHES: Final = 2
"""Versions of the state block: the second has lease groups that do not take all of their queue."""


class EngineState(StateSource):
    """Writes what must outlive the segments in which it was recorded: bindings, ids, leases, prepared branches."""

    def __init__(self, bindings: Bindings, log: Log, leases: Leases, branches: Branches, staging: Staging) -> None:
        self._bindings = bindings
        self._log = log
        self._leases = leases
        self._branches = branches
        self._staging = staging

    def state(self) -> bytes:
        value: Json = {
            "version": WISHES if any(group.wish_as_json() for group in self._leases.groups.values()) else FIRST,
            "reserved_below": self._log.ids_reserved_below,
            "addresses": [address_as_json(a) for a in self._bindings.addresses.values() if not a.auto_created],
            "queues": [queue_as_json(q) for q in self._bindings.queues.values() if q.settings.durable],
            "groups": [_group_as_json(group) for group in self._leases.groups.values()],
            "prepared": [prepared_as_json(branch) for branch in self._branches.prepared()],
            "heuristics": {xid.hex(): outcome.committed for xid, outcome in self._branches.heuristics.items()},
        }
        makers = {xid.hex(): o.made_by for xid, o in self._branches.heuristics.items() if o.made_by}
        if makers:
            value["heuristics_made_by"] = makers
        if self._leases.ended_epoch:
            value["ended_epoch"] = self._leases.ended_epoch
        staged = [one for one in self._staging.parts.values() if one.state == PREPARED]
        if staged:
            value["staged"] = [prepared_as_json(one) for one in staged]
        published = self._staging.published.by_name
        if published:
            value["published"] = [
                [last.application, last.batch, last.at_ms, last.made_by] for last in published.values()
            ]
        filling = self._bindings.history_fills.progress
        if filling:
            value["filling"] = {str(queue_id): progress[0] for queue_id, progress in filling.items()}
            value["filling_through"] = {str(queue_id): list(progress[1:]) for queue_id, progress in filling.items()}
        return json.dumps(value, separators=(",", ":")).encode()


def _group_as_json(group: LeaseGroup) -> Json:
    value: Json = {
        "group": group.name,
        "queue": int(group.queue.id),
        "incarnation": group.incarnation,
        "epoch": group.epoch,
        "run": group.run,
        "contact": group.contact_ms,
        "owns": group.owns_queue,
        "acked": group.acked,
        "newest": group.newest,
        "leases": [
            [lease.number, lease.rows.packed()] for lease in list(group.settling.values()) + list(group.leases.values())
        ],
    }
    if group.made_by:
        value["made_by"] = group.made_by
    return value | group.wish_as_json()


class EngineReplay(Replay):
    """Receives state block and records, then `finish` makes the engine ready."""

    def __init__(
        self,
        bindings: Bindings,
        log: Log,
        memory: MemoryLimits,
        *,
        schedule: Schedule,
        stored: StoredMessages,
        transactions: TransactionReplay,
        leases: LeaseReplay,
    ) -> None:
        self._bindings = bindings
        self._log = log
        self._leases = leases
        self._memory = memory
        self._schedule = schedule
        self._stored = stored
        self._transactions = transactions
        self._state_position = Position(0)
        # What lives so far, by queue id and sequence, as queues will hold it; bodies come last. Objects of replay's own
        # would leave holes in the memory when they go.
        self._references: dict[int, dict[int, Slot]] = {}
        # The table that the last message was found in of which only its sequence was known.
        self._found_in: dict[int, Slot] = {}
        self._newest: int = 0
        # Of returned messages that wait: when they are due, by queue id and sequence.
        self._due_times: dict[int, dict[int, int]] = {}
        # Queues that are gone: what the crash left of their purge.
        self._dropped: dict[int, dict[int, Slot]] = {}

    # -- state ---------------------------------------------------------------------------------------------------

    def replay_state(self, position: Position, state: bytes) -> None:
        self._state_position = position
        value: Json = json.loads(state)
        if value["version"] not in (FIRST, WISHES):
            raise StorageError(
                "DMQ2302",
                f"the state block has version {value['version']}, this DelosMQ reads {FIRST} and {WISHES}; start the"
                " release that wrote it",
            )
        self._log.replay_reserved_ids(json_int(value["reserved_below"]))
        for address in json_list(value["addresses"]):
            self._replay_address(json_object(address))
        for queue in json_list(value["queues"]):
            self._replay_queue(json_object(queue))
        given = json_object(value.get("filling_through", {}))
        for queue_id, first in json_object(value.get("filling", {})).items():
            through, copied = json_list(given.get(queue_id, [0, 0]))
            self._bindings.history_fills.progress[int(queue_id)] = (
                json_int(first),
                json_int(through),
                json_int(copied),
            )
        self._leases.replay_ended(json_int(value.get("ended_epoch", 0)))
        for item in json_list(value["groups"]):
            self._leases.replay_group(json_object(item))
        for item in json_list(value.get("prepared", [])):
            self._transactions.replay_prepared(json_object(item))
        for item in json_list(value.get("staged", [])):
            self._transactions.replay_prepared(json_object(item))
        for item in json_list(value.get("published", [])):
            application, batch, at_ms, made_by = json_list(item)
            self._transactions.replay_published(str(application), json_int(batch), json_int(at_ms), str(made_by))
        makers = json_object(value.get("heuristics_made_by", {}))
        for xid, committed in json_object(value.get("heuristics", {})).items():
            self._transactions.replay_heuristic(xid, committed=committed is True, made_by=str(makers.get(xid, "")))

    def _replay_address(self, value: Json) -> None:
        kinds = {json_int(kind) for kind in json_list(value["routing_types"])}
        self._bindings.add_address(
            str(value["name"]), kinds, auto_created=bool(value["auto_created"]), made_by=maker_from_json(value)
        )

    def _replay_queue(self, value: Json) -> None:
        queue_id = QueueId(json_int(value["id"]))
        known = self._bindings.by_id.get(queue_id)
        if known is None:
            self._bindings.add_queue(queue_id, queue_from_json(value), maker_from_json(value))
            self._references[queue_id] = {}
        else:
            self._bindings.change_queue(known, queue_from_json(value), maker_from_json(value))

    # -- records -------------------------------------------------------------------------------------------------

    def replay_record(self, position: Position, meta: bytes, home: Home) -> None:
        kind = check_version(meta)
        if kind == STORED:
            self._replay_stored(meta, home)
        elif kind == REMOVED:
            self._replay_removed(meta)
        elif kind == COUNTED:
            self._replay_counted(meta)
        elif kind == SCHEDULED:
            self._replay_scheduled(meta)
        elif kind == REFERRED:
            queue_id, sequence = decode_referenced(meta)
            message = self._find_anywhere(sequence)
            if message is not None:
                self._add_reference(message, queue_id)
        elif self._transactions.replay_record(kind, meta, home):
            pass
        elif kind == TRANSACTION:
            self._replay_transaction(decode_json(meta), position > self._state_position)
        elif position > self._state_position:
            self._replay_change(kind, meta)

    def _replay_removed(self, meta: bytes) -> None:
        record = decode_removed(meta)
        references = self._references.get(record.queue_id)
        dropped = self._dropped.get(record.queue_id)
        for sequence in record.sequences:
            slot = None if references is None else references.pop(sequence, None)
            if slot is None and dropped is not None:
                slot = dropped.pop(sequence, None)
            if slot is not None:
                slot.message.recorded_references -= 1

    def _replay_transaction(self, value: Json, is_news: bool) -> None:
        if is_news:
            self._transactions.replay_change(value)
        if value["op"] == "commit":
            self._replay_commit(json_int(value["tx"]), json_int(value["first"]))
        elif value["op"] == "publish":
            for part in json_list(value["parts"]):
                transaction, first = json_list(part)
                self._replay_commit(json_int(transaction), json_int(first))

    def _replay_commit(self, transaction: int, first: int) -> None:
        for index, sent in self._transactions.committed_sends(transaction).items():
            record = self._stored.decode(sent.meta, sent.home)
            message = record.message
            if record.original is not None:
                record.original.stamp(message, first)
            # The commit gave it its number.
            message.sequence = Sequence(first + index)
            message.message_id = MessageId(first + index)
            self._keep(message, record.queue_ids)
        for item in self._transactions.committed_acks(transaction):
            references = self._references.get(item.queue_id, {})
            for sequence in item.sequences:
                slot = references.pop(sequence, None)
                if slot is not None:
                    # Its end may be recorded, or else is after the start.
                    self._dropped.setdefault(item.queue_id, {})[sequence] = slot
        self._transactions.committed_ids(transaction)

    def _replay_stored(self, meta: bytes, home: Home) -> None:
        if is_sent(meta):
            self._transactions.replay_sent(meta, home)
            return
        record = self._stored.decode(meta, home)
        message = record.message
        # As a rule each has a higher one than all before it, and then it can't be stored again.
        if message.sequence <= self._newest:
            former = self._find(message.sequence, record.queue_ids)
            if former is not None:
                self._replace(former, message, record.queue_ids)
        self._keep(message, record.queue_ids)

    def _keep(self, message: Message, queue_ids: list[int]) -> None:
        if message.sequence > self._newest:
            self._newest = message.sequence
        for queue_id in queue_ids:
            self._add_reference(message, queue_id)

    def _find(self, sequence: int, queue_ids: list[int]) -> Message | None:
        """The message as one of these queues holds it. When it is stored again, all are named that hold it."""
        for queue_id in queue_ids:
            references = self._references.get(queue_id)
            slot = None if references is None else references.get(sequence)
            if slot is None and queue_id in self._dropped:
                slot = self._dropped[queue_id].get(sequence)
            if slot is not None:
                return slot.message
        return None

    def _find_anywhere(self, sequence: int) -> Message | None:
        slot = self._found_in.get(sequence)
        if slot is not None:
            return slot.message
        for tables in (self._references, self._dropped):
            for references in tables.values():
                slot = references.get(sequence)
                if slot is not None:
                    self._found_in = references
                    return slot.message
        return None

    def _replace(self, former: Message, message: Message, queue_ids: list[int]) -> None:
        """A message was stored again: the newest record counts, and the queues named there. What else is known of its
        references stays."""
        sequence = message.sequence
        for tables in (self._references, self._dropped):
            for queue_id in queue_ids:
                slot = tables[queue_id].get(sequence) if queue_id in tables else None
                if slot is not None:
                    slot.message = message
                    message.recorded_references += 1
        if message.recorded_references == former.recorded_references:
            return
        for tables in (self._references, self._dropped):
            for queue_id, references in tables.items():
                if queue_id not in queue_ids:
                    references.pop(sequence, None)

    def _add_reference(self, message: Message, queue_id: int) -> None:
        references = self._references_of(queue_id)
        sequence = message.sequence
        if sequence not in references:
            references[sequence] = Slot(message, True)
            message.recorded_references += 1

    def _references_of(self, queue_id: int) -> dict[int, Slot]:
        references = self._references.get(queue_id)
        if references is None:
            references = self._dropped.setdefault(queue_id, {})
        return references

    def _replay_counted(self, meta: bytes) -> None:
        record = decode_counted(meta)
        references = self._references.get(record.queue_id)
        if references is not None:
            for sequence, deliveries in record.counts:
                slot = references.get(sequence)
                if slot is not None:
                    slot.delivery_count = deliveries

    def _replay_scheduled(self, meta: bytes) -> None:
        record = decode_scheduled(meta)
        references = self._references.get(record.queue_id)
        if references is not None:
            times = self._due_times.setdefault(record.queue_id, {})
            for sequence, deliveries, due_at_ms in record.times:
                slot = references.get(sequence)
                if slot is not None:
                    slot.delivery_count = deliveries
                    times[sequence] = due_at_ms

    def _replay_change(self, kind: int, meta: bytes) -> None:
        if kind == IDS:
            self._log.replay_reserved_ids(decode_ids(meta))
        elif kind == BINDING:
            self._replay_binding(decode_json(meta))
        elif kind == LEASE:
            self._leases.replay_change(decode_json(meta))
        else:
            raise StorageError(
                "DMQ2303", f"the journal holds a record of unknown kind {kind}; start the release that wrote it"
            )

    def _replay_binding(self, value: Json) -> None:
        if "address" in value:
            self._replay_address(json_object(value["address"]))
        elif "queue" in value:
            self._replay_queue(json_object(value["queue"]))
        elif "fill" in value:
            through, copied = json_int(value.get("through", 0)), json_int(value.get("copied", 0))
            self._bindings.history_fills.progress[json_int(value["fill"])] = (json_int(value["first"]), through, copied)
        elif "filled" in value:
            self._bindings.history_fills.progress.pop(json_int(value["filled"]), None)
        elif "drop_queue" in value:
            queue_id = json_int(value["drop_queue"])
            queue = self._bindings.by_id.get(queue_id)
            if queue is not None:
                self._bindings.drop_queue(queue)
                self._found_in = {}
                self._dropped.setdefault(queue_id, {}).update(self._references.pop(queue_id))
        elif "drop_address" in value:
            name = str(value["drop_address"])
            if name in self._bindings.addresses:
                self._bindings.drop_address(name)

    # -- the end -------------------------------------------------------------------------------------------------

    def finish(self, store: Store) -> None:
        """Puts slots into queues, rebuilds leases and loads the bodies of what is alive.

        Raises:
            StorageError: a body is damaged or can't be read.
        """
        self._found_in = {}
        held = self._leases.queues_held() | self._transactions.queues_held()
        found: dict[int, dict[int, Slot]] = {}
        for queue_id, references in self._references.items():
            self._fill(self._bindings.by_id[queue_id], references, store)
            if queue_id in held:
                found[queue_id] = references
            else:
                references.clear()
        self._references = {}
        self._due_times = {}
        self._leases.finish(self._bindings.by_id, found)
        self._transactions.finish(found)
        # Last: what the tables took is free by now.
        found = {}
        self._stored.load(store)

    def _fill(self, queue: Queue, references: dict[int, Slot], store: Store) -> None:
        due_times = self._due_times.get(queue.id, {})
        sequences = sorted(references)
        for first in range(0, len(sequences), SLOTS_PER_TURN):
            store.give_turn()
            self._fill_with(queue, references, due_times, sequences, first)

    def _fill_with(
        self, queue: Queue, references: dict[int, Slot], due_times: dict[int, int], sequences: list[int], first: int
    ) -> None:
        for at in range(first, min(first + SLOTS_PER_TURN, len(sequences))):  # no copy: memory is short here
            sequence = sequences[at]
            slot = references[sequence]
            message = slot.message
            if message.references == 0:
                self._stored.await_body(message)
                charged = self._bindings.addresses.get(message.address, queue.address)
                self._memory.charge(charged.account, message)
            message.references += 1
            queue.restore(slot)
            returned_until_ms = due_times.get(sequence, 0)
            if returned_until_ms in (DEAD, EXPIRED):
                queue.pending.remove(slot)
                self._schedule.add_marked(queue, slot, returned_until_ms)
            elif (
                returned_until_ms != message.due_at_ms
                and returned_until_ms
                and (slot.delivery_count or not message.due_at_ms)
            ):
                longest_ms = longest_delay_ms(queue.address.settings)
                self._schedule.add_returned(queue, slot, returned_until_ms, longest_ms)
            elif message.delay_ms:
                self._schedule.add_returned(queue, slot, message.due_at_ms, message.delay_ms)
            elif message.due_at_ms:
                # Compaction repeats the sender's time as if it were that of a redelivery.
                self._schedule.add_pending(queue, slot, message.due_at_ms, delayed=False)

    def purge_dropped(self) -> None:
        """Ends the references of queues that are gone; without it their segments would never be free."""
        log = self._log
        for queue_id, references in self._dropped.items():
            for sequence in sorted(references):
                slot = references[sequence]
                message = slot.message
                home = message.home
                assert home is not None
                log.record(encode_removed(queue_id, PURGED, [slot]))
                batch = log.batch()
                batch.targets.append(home)
                message.recorded_references -= 1
                if message.recorded_references == 0:
                    batch.released.append(home)
                if len(batch.metas) >= PURGED_PER_BATCH:
                    log.close()
        self._dropped = {}
        log.close()
        self._transactions.purge(log)
