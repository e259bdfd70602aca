"""Building the engine's state again from what a store holds, and writing the state block that shortens it.

Replay evaluates no selector, ring or clock: it applies outcomes through the methods that live commands use. After it
ordinary commands follow (ring trim, forgetting what leases acknowledged).
"""

import json
from typing import Final

from delosmq.engine.bindings import Bindings, address_as_json, queue_as_json, queue_from_json
from delosmq.engine.identifiers import Identifiers
from delosmq.engine.lease_rows import LeaseRows, unpack_sequences
from delosmq.engine.leases import Lease, LeaseGroup, Leases
from delosmq.engine.log import Log, Replay, StateSource, Store
from delosmq.engine.memory import MemoryLimits
from delosmq.engine.queue import Queue
from delosmq.engine.records import (
    BINDING,
    COUNTED,
    IDS,
    LEASE,
    PURGED,
    REFERRED,
    REMOVED,
    STORED,
    check_version,
    decode_counted,
    decode_ids,
    decode_json,
    decode_referenced,
    decode_removed,
    decode_stored,
    encode_removed_one,
)
from delosmq.engine.slots import Slot
from delosmq.model.errors import StorageError
from delosmq.model.ids import Position, QueueId
from delosmq.model.message import Home, Message

Json = dict[str, object]

PURGED_PER_BATCH: Final = 200


def _int(value: object) -> int:
    return int(str(value))


def _dict(value: object) -> Json:
    assert isinstance(value, dict)
    return value


def _list(value: object) -> list[object]:
    assert isinstance(value, list)
    return value


class EngineState(StateSource):
    """Writes what must outlive the segments in which it was recorded: bindings, ids, leases."""

    def __init__(self, bindings: Bindings, ids: Identifiers, leases: Leases) -> None:
        self._bindings = bindings
        self._ids = ids
        self._leases = leases

    def state(self) -> bytes:
        value: Json = {
            "version": 1,
            "reserved_below": self._ids.reserved_below,
            "addresses": [address_as_json(a) for a in self._bindings.addresses.values() if not a.auto_created],
            "queues": [queue_as_json(q) for q in self._bindings.queues.values() if q.settings.durable],
            "groups": [_group_as_json(group) for group in self._leases.groups.values()],
        }
        return json.dumps(value, separators=(",", ":")).encode()


def _group_as_json(group: LeaseGroup) -> Json:
    return {
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
            [lease.number, lease.rows.packed()]
            for lease in list(group.forgetting.values()) + list(group.leases.values())
        ],
    }


class _GroupState:
    def __init__(self, queue_id: int, incarnation: str) -> None:
        self.queue_id = queue_id
        self.incarnation = incarnation
        self.epoch = 0
        self.run = ""
        self.contact_ms = 0
        self.owns_queue = False
        self.acked = 0
        self.newest = 0
        self.leases: dict[int, str] = {}


class EngineReplay(Replay):
    """Receives state block and records, then `finish` makes the engine ready."""

    def __init__(self, bindings: Bindings, ids: Identifiers, leases: Leases, memory: MemoryLimits) -> None:
        self._bindings = bindings
        self._ids = ids
        self._leases = leases
        self._memory = memory
        self._state_position = Position(0)
        self._slots: dict[int, dict[int, Slot]] = {}
        # Queues that are gone: what the crash left of their purge.
        self._dropped: dict[int, dict[int, Slot]] = {}
        self._messages: dict[int, Message] = {}
        self._head_sizes: dict[int, int] = {}
        self._groups: dict[str, _GroupState] = {}

    # -- state ---------------------------------------------------------------------------------------------------

    def replay_state(self, position: Position, state: bytes) -> None:
        self._state_position = position
        value: Json = json.loads(state)
        if value["version"] != 1:
            raise StorageError(
                "DMQ2302",
                f"the state block has version {value['version']}, this DelosMQ reads 1; start the release that wrote"
                " it",
            )
        self._ids.replay_reserved(_int(value["reserved_below"]))
        for address in _list(value["addresses"]):
            self._replay_address(_dict(address))
        for queue in _list(value["queues"]):
            self._replay_queue(_dict(queue))
        for item in _list(value["groups"]):
            self._replay_group(_dict(item))

    def _replay_group(self, item: Json) -> None:
        group = _GroupState(_int(item["queue"]), str(item["incarnation"]))
        group.epoch = _int(item["epoch"])
        group.run = str(item["run"])
        group.contact_ms = _int(item["contact"])
        group.owns_queue = item.get("owns") is True
        group.acked = _int(item["acked"])
        group.newest = _int(item["newest"])
        for pair in _list(item["leases"]):
            number, runs = _list(pair)
            group.leases[_int(number)] = str(runs)
        self._groups[str(item["group"])] = group

    def _replay_address(self, value: Json) -> None:
        kinds = {_int(kind) for kind in _list(value["routing_types"])}
        self._bindings.add_address(str(value["name"]), kinds, auto_created=bool(value["auto_created"]))

    def _replay_queue(self, value: Json) -> None:
        queue_id = QueueId(_int(value["id"]))
        known = self._bindings.by_id.get(queue_id)
        if known is None:
            self._bindings.add_queue(queue_id, queue_from_json(value))
            self._slots[queue_id] = {}
        else:
            known.apply_settings(queue_from_json(value))

    # -- records -------------------------------------------------------------------------------------------------

    def replay_record(self, position: Position, meta: bytes, home: Home) -> None:
        kind = check_version(meta)
        if kind == STORED:
            self._replay_stored(meta, home)
        elif kind == REMOVED:
            record = decode_removed(meta)
            slots = self._slots.get(record.queue_id) or self._dropped.get(record.queue_id)
            if slots is not None:
                for sequence in record.sequences:
                    slots.pop(sequence, None)
        elif kind == COUNTED:
            self._replay_counted(meta)
        elif kind == REFERRED:
            queue_id, sequence = decode_referenced(meta)
            message = self._messages.get(sequence)
            if message is not None:
                self._slots_of(queue_id)[sequence] = Slot(message, True)
        elif position > self._state_position:
            self._replay_change(kind, meta)

    def _replay_stored(self, meta: bytes, home: Home) -> None:
        record = decode_stored(meta)
        message = record.message
        message.home = home
        self._messages[message.sequence] = message
        self._head_sizes[message.sequence] = record.head_size
        for queue_id in record.queue_ids:
            slots = self._slots_of(queue_id)
            if message.sequence not in slots:
                slots[message.sequence] = Slot(message, True)

    def _slots_of(self, queue_id: int) -> dict[int, Slot]:
        slots = self._slots.get(queue_id)
        if slots is None:
            slots = self._dropped.setdefault(queue_id, {})
        return slots

    def _replay_counted(self, meta: bytes) -> None:
        record = decode_counted(meta)
        slots = self._slots.get(record.queue_id)
        if slots is not None:
            for sequence, deliveries in record.counts:
                slot = slots.get(sequence)
                if slot is not None:
                    slot.delivery_count = deliveries

    def _replay_change(self, kind: int, meta: bytes) -> None:
        if kind == IDS:
            self._ids.replay_reserved(decode_ids(meta))
        elif kind == BINDING:
            self._replay_binding(decode_json(meta))
        elif kind == LEASE:
            self._replay_lease(decode_json(meta))
        else:
            raise StorageError(
                "DMQ2303", f"the journal holds a record of unknown kind {kind}; start the release that wrote it"
            )

    def _replay_binding(self, value: Json) -> None:
        if "address" in value:
            self._replay_address(_dict(value["address"]))
        elif "queue" in value:
            self._replay_queue(_dict(value["queue"]))
        elif "drop_queue" in value:
            queue_id = _int(value["drop_queue"])
            queue = self._bindings.by_id.get(queue_id)
            if queue is not None:
                self._bindings.drop_queue(queue)
                self._dropped[queue_id] = self._slots.pop(queue_id)
        elif "drop_address" in value:
            self._bindings.drop_address(str(value["drop_address"]))

    def _replay_lease(self, value: Json) -> None:
        name = str(value["group"])
        op = value["op"]
        if op == "open":
            group = self._groups.setdefault(name, _GroupState(_int(value["queue"]), str(value["incarnation"])))
            group.epoch = _int(value["epoch"])
            group.run = str(value["run"])
            group.contact_ms = _int(value["contact"])
            group.owns_queue = value.get("owns") is True
        elif op == "lease":
            number = _int(value["lease"])
            self._groups[name].leases[number] = str(value["rows"])
            self._groups[name].newest = number
        elif op == "ack":
            self._groups[name].acked = _int(value["lease"])
        elif op == "release":
            self._groups.pop(name, None)

    # -- the end -------------------------------------------------------------------------------------------------

    def finish(self, store: Store) -> None:
        """Puts slots into queues, rebuilds leases and loads the bodies of what is alive."""
        alive: dict[int, Message] = {}
        for queue_id, slots in self._slots.items():
            queue = self._bindings.by_id[queue_id]
            for sequence in sorted(slots):
                slot = slots[sequence]
                message = slot.message
                if message.references == 0:
                    self._load(store, message)
                    self._memory.charge(queue.address.account, message)
                    alive[sequence] = message
                message.references += 1
                message.recorded_references += 1
                queue.add(slot)
            queue.messages_added = 0
        for name, state in self._groups.items():
            owner = self._bindings.by_id.get(state.queue_id)
            if owner is not None:
                self._rebuild_group(name, state, owner)
        self._slots = {}
        for slots in self._dropped.values():
            for slot in slots.values():
                slot.message.recorded_references += 1
        self._messages = {}
        self._head_sizes = {}

    def purge_dropped(self, log: Log) -> None:
        """Ends the references of queues that are gone; without it their segments would never be free."""
        for queue_id, slots in self._dropped.items():
            for sequence in sorted(slots):
                slot = slots[sequence]
                message = slot.message
                home = message.home
                assert home is not None
                log.record(encode_removed_one(queue_id, PURGED, slot))
                batch = log.batch()
                batch.targets.append(home)
                message.recorded_references -= 1
                if message.recorded_references == 0:
                    batch.released.append(home)
                if len(batch.metas) >= PURGED_PER_BATCH:
                    log.close()
        self._dropped = {}
        log.close()

    def _load(self, store: Store, message: Message) -> None:
        home = message.home
        assert home is not None
        encoded = store.read(home)
        head_size = self._head_sizes[message.sequence]
        message.head = encoded[:head_size]
        message.body = encoded[head_size:]
        message.encoded_size_bytes = len(encoded)
        message.charge_bytes += len(encoded)

    def _rebuild_group(self, name: str, state: _GroupState, queue: Queue) -> None:
        group = self._leases.restore(name, queue, state.incarnation)
        group.epoch = state.epoch
        group.run = state.run
        group.contact_ms = state.contact_ms
        group.owns_queue = state.owns_queue
        slots = self._slots[queue.id]
        for number in sorted(state.leases):
            rows = LeaseRows()
            for sequence in unpack_sequences(state.leases[number]):
                slot = slots.get(sequence)
                if slot is not None:
                    queue.hand_out(slot, group.consumer)
                    rows.add(slot)
            if rows.slots:
                self._leases.adopt(group, Lease(number, rows))
        group.newest = max(state.newest, state.acked)
        self._leases.settle(group, state.acked)
        for number in list(group.forgetting):
            self._leases.forget_later(group, number)
