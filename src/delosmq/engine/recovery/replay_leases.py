"""Replay of lease groups: the opener of each, its leases, and up to which of them it acknowledged."""

from delosmq.engine.addresses.binding_codec import maker_from_json
from delosmq.engine.base.events import EngineEvents
from delosmq.engine.base.slots import Slot
from delosmq.engine.dispatch.lease_search import LeaseWish
from delosmq.engine.leases.lease import Lease
from delosmq.engine.leases.leases import Leases
from delosmq.engine.leases.rows import LeaseSlots, unpack_sequences
from delosmq.engine.queues.queue import Queue

Json = dict[str, object]


def json_int(value: object) -> int:
    return int(str(value))


def json_object(value: object) -> Json:
    assert isinstance(value, dict)
    return value


def json_list(value: object) -> list[object]:
    assert isinstance(value, list)
    return value


class _GroupState:
    """A lease group so far; ``leases`` are rows as they were packed, by the number of their lease."""

    def __init__(self, value: Json) -> None:
        self.queue_id: int = json_int(value["queue"])
        self.incarnation: str = str(value["incarnation"])
        self.acked: int = 0
        self.newest: int = 0
        self.leases: dict[int, str] = {}
        self.open(value)

    def open(self, value: Json) -> None:
        """A run has opened it."""
        self.epoch: int = json_int(value["epoch"])
        self.run: str = str(value["run"])
        self.contact_ms: int = json_int(value["contact"])
        self.owns_queue: bool = value.get("owns") is True
        self.selector: str = str(value.get("selector", ""))
        selector, sequence, from_ms = json_list(value.get("wish", ["", 0, 0]))
        self.wish: tuple[str, int, int] = (str(selector), json_int(sequence), json_int(from_ms))
        self.made_by: str = maker_from_json(value)


class LeaseReplay:
    """Collects lease groups of the state block and records about them."""

    def __init__(self, leases: Leases, events: EngineEvents) -> None:
        self._leases = leases
        self._events = events
        self._groups: dict[str, _GroupState] = {}

    def replay_group(self, value: Json) -> None:
        """A group of the state block."""
        group = _GroupState(value)
        group.acked = json_int(value["acked"])
        group.newest = json_int(value["newest"])
        for pair in json_list(value["leases"]):
            number, runs = json_list(pair)
            group.leases[json_int(number)] = str(runs)
        self._groups[str(value["group"])] = group

    def replay_ended(self, epoch: int) -> None:
        """Groups that ended had at most this epoch."""
        self._leases.ended_epoch = max(self._leases.ended_epoch, epoch)

    def replay_change(self, value: Json) -> None:
        """A record about a group."""
        name = str(value["group"])
        op = value["op"]
        known = self._groups.get(name)
        if op == "open" and known is None:
            self._groups[name] = _GroupState(value)
        elif op == "open" and known is not None:
            known.open(value)
        elif op == "lease":
            number = json_int(value["lease"])
            self._groups[name].leases[number] = str(value["rows"])
            self._groups[name].newest = number
        elif op == "ack":
            self._groups[name].acked = json_int(value["lease"])
        elif op == "release":
            if known is not None:
                self.replay_ended(known.epoch)
            self._groups.pop(name, None)

    def queues_held(self) -> set[int]:
        """The ids of the queues that the groups read."""
        return {state.queue_id for state in self._groups.values()}

    def finish(self, queues: dict[int, Queue], found: dict[int, dict[int, Slot]]) -> None:
        """Makes the groups of queues that are there.

        Args:
            found: what these queues hold, by queue id and sequence.
        """
        for name, state in self._groups.items():
            queue = queues.get(state.queue_id)
            if queue is not None:
                self._restore(name, state, queue, found[queue.id])

    def _restore(self, name: str, state: _GroupState, queue: Queue, slots: dict[int, Slot]) -> None:
        group = self._leases.restore(name, queue, state.incarnation, LeaseWish(*state.wish))
        group.selector = state.selector
        group.epoch = state.epoch
        group.run = state.run
        group.contact_ms = state.contact_ms
        group.owns_queue = state.owns_queue
        group.made_by = state.made_by
        self._leases.count_state(group)
        for number in sorted(state.leases):
            rows = LeaseSlots()
            sequences = unpack_sequences(state.leases[number])
            for sequence in sequences:
                slot = slots.get(sequence)
                if slot is not None:
                    queue.unschedule(slot)
                    queue.deliver(slot, group)
                    rows.add(slot)
            # Of what is acknowledged the references may have ended already.
            if number > state.acked and len(rows.slots) < len(sequences):
                self._events.lease_rows_lost(name, number, len(sequences) - len(rows.slots), len(sequences))
            if rows.slots:
                group.adopt(Lease(number, rows))
        group.newest = max(state.newest, state.acked)
        group.acknowledge(state.acked)
        for number in list(group.settling):
            self._leases.settler.settle_later(group, number)
