"""Where a message stands: found in slices, as a queue may be large and the broker serves others meanwhile.

Each search is a walk: iterate it to its end, with other work between the slices; then its result is there. What stays
where it is meanwhile is found; what moves is looked for where it may have gone.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from typing import Final

from delosmq.engine.addresses.address import Address, address_of
from delosmq.engine.addresses.divert import Divert
from delosmq.engine.base.slots import PendingObserver, PendingSlots, Slot, SlotList
from delosmq.engine.dispatch.rules import rules_of
from delosmq.engine.dispatch.waiting_reason import BEHIND, FULL, NO_CONSUMER, READY, why_waiting
from delosmq.engine.leases.lease import LeaseGroup
from delosmq.engine.leases.leases import Leases
from delosmq.engine.queues.consumer import Consumer, consumers_of
from delosmq.engine.queues.queue import Queue
from delosmq.engine.queues.scheduled_slots import DueSlots
from delosmq.engine.routing.held_messages import is_held
from delosmq.engine.routing.parts import EngineParts
from delosmq.engine.transactions.transactions import EngineTransactions
from delosmq.model.message import ANYCAST, HIGHEST_PRIORITY
from delosmq.model.names import QUEUE_MARK

WAITING: Final = "waiting"
DELIVERING: Final = "in delivery"
LEASED: Final = "leased"
PROMISED: Final = "acknowledged in a transaction"
SCHEDULED: Final = "scheduled"
HELD: Final = "held"
LEASE_READER: Final = "reader of leases has not asked"
"""A rule: only lease groups take from the queue, and they take what their readers ask for."""
NO_SUCH_END: Final = "no such end"
NO_QUEUE_THERE: Final = "no queue there"

LOOKED_AT_PER_SLICE: Final = 1_000
"""Slots walked over, about 0.5 ms."""
ASKED_PER_SLICE: Final = 250
"""Questions put to a consumer or its selector, about 1 ms."""
SLOTS_PER_MARK: Final = 1_000
"""Between two waymarks: so many are looked at before a page at most, once that part of the queue has been walked."""


class Standing:
    """Where one message stands in one queue.

    Attributes:
        standing: READY to HELD; rule: why a message waits, a code of `why_waiting`.
        consumer: that has it in delivery; None while none has, or when its holder has left.
        group: who leases it; lease: the number of the lease, 0 while it is being made or not looked up.
        transaction: that acknowledges it, 0 for none.
    """

    def __init__(self, queue: Queue, slot: Slot, standing: str, rule: str = "") -> None:
        self.queue = queue
        self.slot = slot
        self.standing = standing
        self.rule = rule
        self.consumer: Consumer | None = None
        self.group: LeaseGroup | None = None
        self.lease: int = 0
        self.transaction: int = slot.transaction


class Inspector:
    """Answers of one broker's engine. It changes nothing."""

    def __init__(self, parts: EngineParts, leases: Leases, transactions: EngineTransactions) -> None:
        self._bindings = parts.bindings
        self._dispatcher = parts.dispatcher
        self._leases = leases
        self._transactions = transactions

    # -- addresses -----------------------------------------------------------------------------------------------

    def address_of(self, queue: Queue) -> Address:
        """The address of a queue, also of one that was deleted while it is looked at."""
        return address_of(queue)

    def links(self, address: Address) -> list[Address]:
        """The wildcard addresses that stand for an address now; its own list is looked up with the next send."""
        wildcards = self._bindings.wildcards
        if address.wild or not wildcards.count:
            return []
        return [self._bindings.addresses[name] for name in wildcards.matching(address.name)]

    def reaches_a_queue(self, address: Address) -> bool:
        """Whether an address, or a wildcard address that stands for it, has a queue."""
        return bool(address.queues()) or any(wild.queues() for wild in self.links(address))

    def dead_end(self, divert: Divert, target: str, source: Address) -> str:
        """What becomes of copies that a divert of ``source`` makes for one of its targets: "" when they reach a queue
        or go on, else one of `NO_SUCH_END` (sends are refused) and `NO_QUEUE_THERE` (they are gone)."""
        name, _, queue_name = target.partition(QUEUE_MARK)
        if queue_name:
            queue = self._bindings.queues.get(queue_name)
            return "" if queue is not None and queue.address.name == name else NO_SUCH_END
        address = self._bindings.addresses.get(name)
        if address is not None and (address.diverts or self.reaches_a_queue(address)):
            return ""
        settings = self._bindings.settings_of(name)
        if address is None and not settings.auto_create_addresses:
            return NO_SUCH_END
        wildcards = self._bindings.wildcards
        if address is None and any(self._bindings.addresses[wild].queues() for wild in wildcards.matching(name)):
            return ""
        if settings.auto_create_queues:
            for kind in sorted(source.routing_types):
                routing = divert.routing_of_copies(kind)
                # An address that is there gets a queue only from what is sent as anycast.
                if (routing if address is not None else self._bindings.resolve_routing(name, routing)) == ANYCAST:
                    return ""
        return NO_QUEUE_THERE

    # -- one message ---------------------------------------------------------------------------------------------

    def standing(self, queue: Queue, slot: Slot) -> Standing | None:
        """Where a slot of a queue stands; None when it has left. Asks each consumer, at worst."""
        if queue.pending.holds(slot):
            rule = self._rule(queue, slot)
            return Standing(queue, slot, READY if rule == READY else WAITING, rule)
        if queue.scheduled.holds(slot):
            return Standing(queue, slot, HELD if is_held(slot) else SCHEDULED)
        return self.held(queue, slot.sequence)

    def held(self, queue: Queue, sequence: int) -> Standing | None:
        """The consumer that has a message in delivery, one look at each; None when none has."""
        for group in self._leases.on_queue(queue):
            slot = group.slot_of(sequence)
            if slot is not None:
                found = Standing(queue, slot, LEASED)
                found.group = group
                return found
        for consumer in consumers_of(queue):
            slot = consumer.slot_of(sequence)
            if slot is not None:
                found = Standing(queue, slot, PROMISED if slot.transaction else DELIVERING)
                found.consumer = consumer
                return found
        return None

    def uniform_rule(self, queue: Queue) -> str:
        """Why every pending message of a queue but the first waits; "" when they wait for different reasons."""
        head = queue.pending.head()
        if head is None:
            return READY
        rule = self._rule(queue, head)
        rules = rules_of(queue)
        if rules is None:
            if queue.barrier_sequence:
                return ""
            return BEHIND if rule == READY else rule
        if queue.suspended or queue.consumer_count == 0 or not rules.start.is_open():
            return "" if queue.barrier_sequence else rule
        return ""

    def _rule(self, queue: Queue, slot: Slot) -> str:
        rule = why_waiting(queue, slot, self._dispatcher.budget_for_asking())
        if rule in (FULL, NO_CONSUMER) and self._leases.on_queue(queue):
            browsers = sum(1 for consumer in consumers_of(queue) if consumer.options.browser)
            return LEASE_READER if queue.consumer_count == browsers else rule
        return rule

    def promised(self, queue: Queue) -> Iterator[Slot | None]:
        """What open transactions acknowledge in a queue; None between slices."""
        looked = 0
        for transaction in [*self._transactions.open.values(), *self._transactions.far.values()]:
            at = 0
            # By index: a transaction may grow, or end, meanwhile.
            while at < len(transaction.acks):
                item = transaction.acks[at]
                at += 1
                if item.queue is queue and item.slot.transaction == transaction.id:
                    yield item.slot
                looked += 1
                if looked % LOOKED_AT_PER_SLICE == 0:
                    yield None


class Search:
    """Looks for one message in one queue.

    Attributes:
        found: where it stands, None when it isn't there.
    """

    def __init__(self, inspector: Inspector, queue: Queue, sequence: int) -> None:
        self.found: Standing | None = None
        self._explaining = inspector
        self._queue = queue
        self._sequence = sequence

    def steps(self) -> Iterator[None]:
        queue = self._queue
        if self._sequence > queue.newest_sequence:
            return
        if self._look_at_held():
            return
        # Scheduled before pending before held, as messages move; and what comes back is before the cursor again.
        for slot in walk_scheduled(queue):
            if slot is None:
                yield
            elif self._is_wanted(slot):
                return
        cursor = queue.pending.cursor()
        try:
            looked = 0
            while True:
                pending = cursor.peek()
                if pending is None or self._is_wanted(pending):
                    break
                cursor.advance(pending)
                looked += 1
                if looked % LOOKED_AT_PER_SLICE == 0:
                    yield
        finally:
            queue.pending.drop(cursor)
        if self.found is not None or self._look_at_held():
            return
        for promised in self._explaining.promised(queue):
            if promised is None:
                yield
            elif promised.sequence == self._sequence:
                self.found = Standing(queue, promised, PROMISED)
                return

    def _look_at_held(self) -> bool:
        self.found = self._explaining.held(self._queue, self._sequence)
        return self.found is not None

    def _is_wanted(self, slot: Slot) -> bool:
        if slot.sequence != self._sequence:
            return False
        self.found = self._explaining.standing(self._queue, slot)
        return self.found is not None


class Count:
    """Counts the messages of a queue by where they stand.

    Attributes:
        by_rule: of the pending ones that were looked at, how many there are of each rule; "ready" among them.
        looked_at: how many those are.
        promised: how many open transactions acknowledge.
    """

    def __init__(self, inspector: Inspector, queue: Queue, at_most: int) -> None:
        self.by_rule: dict[str, int] = {}
        self.looked_at: int = 0
        self.promised: int = 0
        self._explaining = inspector
        self._queue = queue
        self._at_most = at_most

    def steps(self) -> Iterator[None]:
        queue = self._queue
        for promised in self._explaining.promised(queue):
            if promised is None:
                yield
            else:
                self.promised += 1
        rule = self._explaining.uniform_rule(queue)
        if rule:
            self._add_all_alike(rule)
            return
        # Many consumers make each question dearer.
        per_slice = max(1, ASKED_PER_SLICE // (1 + len(queue.holders)))
        cursor = queue.pending.cursor()
        try:
            while self.looked_at < self._at_most:
                slot = cursor.peek()
                if slot is None:
                    break
                cursor.advance(slot)
                standing = self._explaining.standing(queue, slot)
                if standing is not None:
                    self._add(standing.rule, 1)
                if self.looked_at % per_slice == 0:
                    yield
        finally:
            queue.pending.drop(cursor)

    def _add_all_alike(self, rule: str) -> None:
        head = self._queue.pending.head()
        if head is None:
            return
        first = self._explaining.standing(self._queue, head)
        if first is not None:
            self._add(first.rule, 1)
        if self._queue.pending.count > 1:
            self._add(rule, self._queue.pending.count - 1)

    def _add(self, rule: str, count: int) -> None:
        self.by_rule[rule] = self.by_rule.get(rule, 0) + count
        self.looked_at += count


def is_in_place(slot: Slot) -> bool:
    """Whether it stands by its sequence. What was put before others stands before all that do."""
    return slot.order == slot.sequence


class Waymarks(PendingObserver):
    """Some of the pending slots of a queue, by sequence: a page begins at the last one before its first message.

    A walk leaves one behind itself now and then, and each goes with its slot.
    """

    def __init__(self, pending: PendingSlots) -> None:
        self._slots: dict[int, Slot] = {}
        self._sequences: list[list[int]] = [[] for _ in range(HIGHEST_PRIORITY + 1)]
        pending.observers.append(self)

    def before(self, level: SlotList, priority: int, sequence: int) -> Slot | None:
        """Where to begin to look for what has a higher sequence in a level."""
        sequences = self._sequences[priority]
        at = bisect_right(sequences, sequence)
        return self._slots[sequences[at - 1]] if at else level.head

    def has(self, slot: Slot) -> bool:
        return slot.marks > 0 and int(slot.sequence) in self._slots

    def put(self, slot: Slot) -> None:
        """Marks a slot that is pending, stands by its sequence and has no mark."""
        self._slots[int(slot.sequence)] = slot
        insort(self._sequences[slot.level], int(slot.sequence))
        slot.marks += 1

    def on_removed(self, slot: Slot) -> None:
        sequence = int(slot.sequence)
        if self._slots.pop(sequence, None) is not None:
            slot.marks -= 1
            sequences = self._sequences[slot.level]
            del sequences[bisect_left(sequences, sequence)]


def waymarks_of(pending: PendingSlots) -> Waymarks:
    """Those of a queue, which are kept with it."""
    for observer in pending.observers:
        if isinstance(observer, Waymarks):
            return observer
    return Waymarks(pending)


def walk_scheduled(queue: Queue) -> Iterator[Slot | None]:
    """What a queue holds that is not due yet, in no order; None between slices. A slot may come twice."""
    bucket: DueSlots | None = queue.scheduled.first
    looked = 0
    while bucket is not None:
        slot = bucket.head
        passed = 0
        while slot is not None:
            if passed == 0 or slot.order > passed:
                yield slot
                passed = slot.order
            looked += 1
            if looked % LOOKED_AT_PER_SLICE == 0:
                yield None
                if slot.in_list is not bucket:
                    # It left meanwhile, and with it the way on: start over and skip what was seen.
                    slot = bucket.head
                    continue
            slot = slot.next
        bucket = bucket.after


def number_leases(standings: list[Standing]) -> Iterator[None]:
    """Finds the numbers of the leases in which messages stand: a walk over the leases of their groups."""
    groups: dict[str, LeaseGroup] = {}
    wanted: dict[int, Standing] = {}
    for standing in standings:
        if standing.group is not None:
            groups[standing.group.name] = standing.group
            wanted[standing.slot.sequence] = standing
    looked = 0
    for group in groups.values():
        for lease in [*group.settling.values(), *group.leases.values()]:
            for slot in lease.slots:
                found = wanted.get(slot.sequence)
                if found is not None and found.group is group:
                    found.lease = lease.number
                looked += 1
                if looked % LOOKED_AT_PER_SLICE == 0:
                    yield
