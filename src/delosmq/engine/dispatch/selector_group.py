"""Consumers that take the same messages.

Each message is held against their selector once, however many consumers share it, and a cursor remembers how far that
has come.
"""

from delosmq.engine.base.slots import Cursor, PendingSlots, Slot
from delosmq.engine.dispatch.rotation import DispatchBudget, RankedRotation, Rotation, TurnRotation
from delosmq.engine.queues.consumer import Consumer, ConsumerOptions, ConsumerState
from delosmq.model.message import Message
from delosmq.selectors.selector import Selector


class SelectorGroup(ConsumerState):
    """Consumers that take the same messages: those that match a selector and were not sent by a certain connection.

    Attributes:
        members: consumers that share it, with room or not.
        open: those of them in its rotations.
        evaluations: since it exists.
        frontier: where looking stopped for want of work; None when it did not.
    """

    def __init__(self, options: ConsumerOptions, pending: PendingSlots, *, by_load: bool, strict: bool) -> None:
        self._selector: Selector | None = options.selector
        self._no_local: str = options.no_local
        self._pending = pending
        self._by_load = by_load
        self._strict = strict
        self._cursor: Cursor | None = None
        # The sequence of what the cursor stands on, if it matches: a slot would be kept here after it is gone.
        self._matched: int = 0
        self._rotations: list[Rotation] = []
        self.takes_all: bool = options.selector is None and options.no_local == ""
        self.members: int = 0
        self.open: int = 0
        self.evaluations: int = 0
        self.frontier: Slot | None = None

    # -- consumers -----------------------------------------------------------------------------------------------

    def put(self, consumer: Consumer, priority: int) -> None:
        """Takes a consumer into the rotation of its priority."""
        at = 0
        for rotation in self._rotations:
            if rotation.priority == priority:
                rotation.put(consumer)
                self.open += 1
                return
            if rotation.priority < priority:
                break
            at += 1
        made: Rotation = (
            RankedRotation(priority, by_load=self._by_load) if self._by_load or self._strict else TurnRotation(priority)
        )
        self._rotations.insert(at, made)
        made.put(consumer)
        self.open += 1

    def take_out(self, consumer: Consumer, priority: int) -> None:
        """Takes a consumer out of its rotation; harmless when it is in none."""
        if consumer.entry is None:
            return
        self.open -= 1
        for rotation in self._rotations:
            if rotation.priority == priority:
                rotation.take_out(consumer)
                return

    def first(self) -> Consumer | None:
        """The consumer with the highest priority, and of these the next in turn."""
        for rotation in self._rotations:
            if rotation.count:
                return rotation.first()
        return None

    # -- messages ------------------------------------------------------------------------------------------------

    def accepts(self, message: Message, budget: DispatchBudget) -> bool:
        if self._no_local and message.connection_id == self._no_local:
            return False
        selector = self._selector
        if selector is None:
            return True
        self.evaluations += 1
        budget.subject.look_at(message)
        return selector.matches(budget.subject)

    def candidate(self, budget: DispatchBudget) -> Slot | None:
        """The first pending message, in the order of the queue, that they take and that was not passed over."""
        self.frontier = None
        cursor = self._cursor
        if cursor is None:
            if self.takes_all:
                return self._pending.head()
            cursor = self._pending.cursor()
            self._cursor = cursor
        while True:
            slot = cursor.peek()
            if slot is None or self.takes_all or slot.sequence == self._matched:
                return slot
            if not budget.spend():
                self.frontier = slot
                return None
            if self.accepts(slot.message, budget):
                self._matched = slot.sequence
                return slot
            cursor.advance(slot)

    def candidate_upto(self, sequence: int) -> Slot | None:
        """As `candidate` of those who take everything, among messages with at most this sequence."""
        pending = self._pending
        cursor = self._cursor
        if cursor is None:
            return pending.head_upto(sequence)
        slot = cursor.peek()
        if slot is None or slot.sequence <= sequence:
            return slot
        for priority in range(slot.level - 1, -1, -1):
            lower = pending.next_of(priority, cursor.passed[priority])
            if lower is not None and lower.sequence <= sequence:
                return lower
        return None

    def pass_over(self, slot: Slot) -> None:
        """Leaves out what `candidate` gave: others decide when it goes, and to whom."""
        cursor = self._cursor
        if cursor is None:
            cursor = self._pending.cursor()
            self._cursor = cursor
            if cursor.peek() is not slot:
                return
        cursor.advance(slot)

    def look_again(self) -> None:
        """Everything that was passed over is looked at once more."""
        if self._cursor is not None:
            self._pending.drop(self._cursor)
            self._cursor = None
        self._matched = 0


def group_of(consumer: Consumer) -> SelectorGroup | None:
    """The group of a consumer; None on a queue without rules."""
    group = consumer.selector_group
    return group if isinstance(group, SelectorGroup) else None
