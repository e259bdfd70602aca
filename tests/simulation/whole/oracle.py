"""What the clients of a simulated broker were told, over all its lives, and what must be true because of it."""

from collections.abc import Collection, Iterable
from typing import Any

from delosmq.engine.base.slots import Slot
from delosmq.engine.log.origin import ORIGINAL_QUEUE
from delosmq.engine.queues.queue import Queue
from delosmq.model.message import Message
from tests.simulation.broker_world import Oracle, Reference, number_of
from tests.simulation.whole.catalogue import DIVERTS
from tests.simulation.whole.owners import Owners
from tests.simulation.whole.recount import Found
from tests.simulation.whole.times import SetClock, Times

Key = tuple[str, bytes]
"""An address and a duplicate id."""


class Outcome:
    """One transaction whose commit was asked for."""

    def __init__(self, sent: set[Reference], acknowledged: set[Reference]) -> None:
        self.sent = sent
        self.acknowledged = acknowledged


class Knowledge(Oracle):
    """See the attributes.

    Attributes:
        confirmed, ack_confirmed: messages in queues that a client knows to be stored, or to be acknowledged.
        ack_issued: acknowledgements that may have happened.
        excused: messages in queues that may have gone otherwise: pushed out, expired, purged, with their queue.
        refused: numbers of messages that were refused; must_not_return: those a rollback took back.
        ids: duplicate ids by the number that was sent with them; ids_told: those known to be remembered.
        units: the transaction of a message that was sent in one. Within it an id may repeat, as in Artemis.
        seen_ids: which send a client saw with a duplicate id.
        commits: of this life.
        branches: what was prepared: sends and acknowledgements.
        prepared_told, decided, decided_told: branches in doubt, ended perhaps, ended for sure.
        told_position: the newest that anything told depends on.
        late: subscriptions of this life that asked for what was kept, and the position before them.
        owners: of the queues of this life; times: what waits in them.
        by_auto: what clients got in this life that acknowledges itself by being received.
        queues: of this life.
        drivers: of sinks; readers: of lease groups.
        versions: how often a queue was made or deleted.
        promised: queues that a client knows to be there, or to be gone, over a power cut.
        copied: what they got of it, and the position by which the copy is stored. A client may see it before that, as
            the message itself is stored: that it is gone says nothing then.
    """

    def __init__(self) -> None:
        super().__init__()
        self.excused: set[Reference] = set()
        self.refused: set[int] = set()
        self.ids: dict[int, Key] = {}
        self.units: dict[int, int] = {}
        self.ids_told: dict[Key, int] = {}
        self.seen_ids: dict[Key, int] = {}
        self.commits: list[Outcome] = []
        self.prepared_told: set[bytes] = set()
        self.branches: dict[bytes, tuple[list[tuple[int, list[str], Message]], set[Reference]]] = {}
        self.decided: set[bytes] = set()
        self.decided_told: set[bytes] = set()
        self.told_position = 0
        self.late: dict[str, int] = {}
        self.copied: dict[Reference, int] = {}
        self.by_auto: set[Reference] = set()
        self.owners = Owners()
        self.times = Times(SetClock())
        self.queues: dict[str, Queue] = {}
        self.versions: dict[str, int] = {}
        self.promised: dict[str, bool] = {}
        self.duplicates = 0
        self.delivered = 0
        self.drivers: Any = None
        self.readers: Any = None

    # -- what the engine reports ---------------------------------------------------------------------------------

    def consumer_created(self, queue: str, consumer_id: int) -> None:
        self.owners.came(queue, consumer_id)

    def consumer_closed(self, queue: str, consumer_id: int) -> None:
        self.owners.went(queue, consumer_id)

    def queue_created(self, queue: str, address: str) -> None:
        self._changed(queue)

    def queue_deleted(self, queue: str) -> None:
        self.owners.forget(queue)
        self._changed(queue)
        self.readers.queue_deleted(queue)

    def _changed(self, queue: str) -> None:
        self.versions[queue] = self.versions.get(queue, 0) + 1
        self.promised.pop(queue, None)

    def message_replaced(self, queue: str, slot: Slot) -> None:
        self.excuse(queue, [slot])

    def message_due(self, queue: str, slot: Slot) -> None:
        self.times.came_due(slot)

    def message_expired(self, queue: str, slot: Slot, expiry_address: str) -> None:
        self.times.expired(slot)
        if not expiry_address and not self._keeps(queue, "expiry_address"):
            self.excuse(queue, [slot])

    def message_dead_lettered(self, queue: str, slot: Slot, dead_letter_address: str) -> None:
        if not dead_letter_address and not self._keeps(queue, "dead_letter_address"):
            self.excuse(queue, [slot])

    def _keeps(self, name: str, setting: str) -> bool:
        """Whether settings name an address for what a queue gives up, and each message is kept there."""
        queue = self.queues.get(name)
        if queue is None or queue.internal:
            return False
        settings = queue.address.settings
        return bool(getattr(settings, setting)) and settings.dead_letter_duplicates is not False

    def message_duplicate(self, message: Message) -> None:
        self.duplicates += 1

    # -- what clients learn --------------------------------------------------------------------------------------

    def excuse(self, queue: str, slots: Iterable[Slot]) -> None:
        """These may have gone, by no fault."""
        self.excused.update(original(queue, slot) for slot in slots)

    def gives(self, queue: str, slot: Slot, position: int) -> None:
        """The broker delivers a message; its newest position is ``position``."""
        if slot.recorded and slot.message.position <= self.late.get(queue, -1):
            self.copied[original(queue, slot)] = position + 1  # what is decided now is in the next batch

    def sees(self, queue: str, slot_message: Message, redelivered: bool) -> None:
        """A client received a message."""
        number = number_of(slot_message.body)
        assert slot_message.body == self.bodies[number], f"message {number} has another body"
        self.seen(number, queue)

    def seen(self, number: int, queue: str) -> None:
        """A client received message ``number`` from a queue."""
        self.delivered += 1
        assert number not in self.refused, f"message {number} is delivered though its send was refused or rolled back"
        key = self.ids.get(number)
        if key is not None and number in self.durable:
            unit = self.unit_of(number)
            first = self.seen_ids.setdefault(key, unit)
            assert first == unit, f"messages {first} and {number} have one duplicate id and were both delivered"

    def sees_once(self, place: Reference) -> None:
        """A client received this message of a queue: it did not go to one that acknowledged it by receiving it."""
        assert place not in self.by_auto, f"{place} is delivered again, which was acknowledged when it was written"
        assert place not in self.readers.acknowledged, f"{place} is delivered again, of a lease that was acknowledged"

    def knows(self, queue: str) -> bool:
        """Whether clients know anything of a queue, now or from before it was deleted."""
        return any(name == queue for _, name in self.confirmed | self.ack_issued)

    def unit_of(self, number: int) -> int:
        """What a duplicate id must not be shared with: a message, or all that a transaction sends."""
        return self.units.get(number, number)

    def promise(self, queue: str, version: int, *, there: bool) -> None:
        """A client is told that a queue is there, or gone, as it was at a version."""
        if self.versions.get(queue, 0) == version:
            self.promised[queue] = there

    # -- what must be true after a restart -----------------------------------------------------------------------

    def check_recovered(self, found: list[Found], position: int) -> None:
        """A broker has started at ``position``, and this is what it holds."""
        assert position >= self.told_position, f"clients know what {self.told_position} says, {position} came back"
        alive: set[Reference] = set()
        copies: set[Reference] = set()
        by_id: dict[Key, int] = {}
        for queue, slot, _ in found:
            message = slot.message
            number = number_of(message.body)
            if not number:
                continue  # records of events
            assert message.body == self.bodies[number], f"message {number} has another body"
            assert number not in self.refused, f"message {number} is there though its send was refused or rolled back"
            self._check_id(by_id, number)
            place = original(queue.name, slot)
            known = copies if place[1] != queue.name else alive
            assert place not in known, f"message {place} is there twice"
            known.add(place)
        both = alive & copies
        assert not both, f"dead letter and original: {sorted(both)[:5]}"
        back = (alive | copies) & self.ack_confirmed
        assert not back, f"acknowledged messages came back: {sorted(back)[:5]}"
        lost = self.confirmed - self.ack_issued - self.excused - alive - copies
        assert not lost, f"lost: {sorted(lost)[:5]}"
        for commit in self.commits:
            self._check_whole(commit, alive | copies, position)
        self.commits = []
        self.late = {}
        self.copied = {}
        self.by_auto = set()

    def _check_id(self, by_id: dict[Key, int], number: int) -> None:
        key = self.ids.get(number)
        if key is not None:
            unit = self.unit_of(number)
            first = by_id.setdefault(key, unit)
            assert first == unit, f"messages {first} and {number} have one duplicate id"

    def _check_whole(self, commit: Outcome, alive: set[Reference], position: int) -> None:
        never = {place for place, stored in self.copied.items() if stored > position}
        gone = commit.acknowledged - alive - self.excused - never
        there = commit.sent & alive
        if not gone and not there:
            return
        back = commit.acknowledged & alive
        missing = commit.sent - alive - self.excused - self.ack_issued
        assert not back, f"a commit happened in part: {sorted(back)[:5]} are still there"
        assert not missing, f"a commit happened in part: {sorted(missing)[:5]} are missing"

    def check_queues(self, queues: Collection[str]) -> None:
        """Queues are there, or gone, as clients know."""
        wrong = {queue: there for queue, there in self.promised.items() if there != (queue in queues)}
        assert not wrong, f"whether queues are there is not as clients were told: {wrong}"

    def check_branches(self, in_doubt: list[bytes]) -> None:
        """Prepared branches are there until they are decided, and not afterwards."""
        missing = self.prepared_told - self.decided - set(in_doubt)
        assert not missing, f"prepared branches are gone: {sorted(x.hex() for x in missing)}"
        back = self.decided_told & set(in_doubt)
        assert not back, f"branches that were decided are in doubt again: {sorted(x.hex() for x in back)}"


def original(queue: str, slot: Slot) -> Reference:
    """Which message of which queue it is; copies count for where they came from."""
    annotations = slot.message.annotations
    origin = queue if annotations is None else annotations.get(ORIGINAL_QUEUE, queue)
    # A divert puts its own name there.
    return number_of(slot.message.body), queue if origin in DIVERTS else origin
