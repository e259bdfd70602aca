"""One dispatch of a queue with rules (`DispatchRules`): message by message, until no consumer takes the next one."""

from delosmq.engine.base.slots import Slot
from delosmq.engine.dispatch.message_groups import MessageGroup, MessageGroups, first_of
from delosmq.engine.dispatch.ports import ENDED, ROOM_TO_COME, STAYS, BeforeDelivery
from delosmq.engine.dispatch.rotation import DispatchBudget
from delosmq.engine.dispatch.rules import DispatchRules
from delosmq.engine.dispatch.selector_group import group_of
from delosmq.engine.queues.consumer import Consumer


class RuleDispatch:
    """One dispatch of one queue; made for one tick."""

    def __init__(
        self,
        rules: DispatchRules,
        budget: DispatchBudget,
        now_ms: int,
        before: BeforeDelivery | None,
    ) -> None:
        self._rules = rules
        self._queue = rules.queue
        self._budget = budget
        self._now_ms = now_ms
        self._before = before
        self._done: int = 0
        # The next message waits for one consumer, or for room elsewhere, and all behind it with it.
        self._stopped: bool = False

    def run(self, limit: int) -> bool:
        """Delivers at most ``limit`` messages; True when there may be more to do."""
        rules = self._rules
        if not rules.start.is_open():
            return False
        more = self._read(limit)
        while self._done < limit:
            if rules.ownership.owner is not None:
                if not self._serve_owner():
                    return more or self._budget.out
            elif not self._serve_all():
                return more or self._budget.out
            if self._stopped:
                return more
        return True

    def _read(self, limit: int) -> bool:
        # Readers have a share each: they take nothing from consumers or from one another.
        rules = self._rules
        more = False
        ended = False
        before = self._before if self._queue.expiring_count else None
        for reader in rules.readers:
            if reader.read(limit, self._budget, before, self._now_ms):
                more = True
            ended = ended or reader.ended
        if more and len(rules.readers) > 1:
            # Where work ran out: the next dispatch begins with another one.
            rules.readers.append(rules.readers.pop(0))
        if ended:
            rules.readers = [reader for reader in rules.readers if not reader.ended]
        return more

    # -- one message ---------------------------------------------------------------------------------------------

    def _serve_owner(self) -> bool:
        """The next message of a queue that one consumer owns; False when it gets none now. Groups don't matter."""
        owner = self._rules.ownership.owner
        assert owner is not None  # asked for by the caller
        group = group_of(owner)
        if owner.full or group is None:
            return False
        if not owner.has_room():
            self._rules.mark_full(owner)
            return False
        slot = group.candidate(self._budget)
        if slot is None or self._is_behind_barrier(slot):
            return False
        if self._expired(slot):
            return not self._stopped
        self._deliver(slot, owner, first=False)
        return True

    def _serve_all(self) -> bool:
        """The next message of a queue that all share; False when no consumer gets one now."""
        rules = self._rules
        slot = rules.first(self._budget)
        groups = rules.groups
        if groups is not None:
            waiting = groups.next_waiting()
            if waiting is not None and not waiting.group.owner.has_room():
                rules.mark_full(waiting.group.owner)
                return True
            if waiting is not None and waiting.slot is not None and first_of(waiting.slot, slot):
                return self._serve_waiting(groups, waiting.slot, waiting.group)
        if slot is None or self._is_behind_barrier(slot):
            return False
        if self._expired(slot):
            return not self._stopped
        if self._queue.in_force.exclusive:
            consumer = rules.best_taker()
            self._deliver(slot, consumer, first=True)
            rules.own(consumer)
            return True
        groups = rules.groups_for(slot)
        if groups is not None:
            return self._serve_group(slot, groups)
        consumer = rules.best_taker()
        self._deliver(slot, consumer, first=False)
        rules.served(consumer)
        return True

    def _serve_group(self, slot: Slot, groups: MessageGroups) -> bool:
        rules = self._rules
        message = slot.message
        group = groups.find(message)
        if group is None or groups.reassigns(message):
            consumer = rules.best_taker()
            first = rules.assign(message, consumer, groups)
            self._deliver(slot, consumer, first=first)
            rules.served(consumer)
            return True
        owner = group.owner
        if not owner.full and not owner.has_room():
            rules.mark_full(owner)
        waits = owner.full and groups.classic
        if not waits and self._takes(owner, slot):
            if owner.full:
                self._stopped = True
            else:
                self._deliver_to_group(slot, group, groups)
            return True
        if not self._budget.spend():
            return False
        rules.pass_over(slot)
        if waits:
            groups.wait_for_owner(slot, group)
        else:
            groups.pass_over(group)
        return True

    def _takes(self, owner: Consumer, slot: Slot) -> bool:
        """Whether the owner of a group takes what `DispatchRules.first` found, with room or without."""
        group = group_of(owner)
        if group in self._rules.takers:
            return True
        return owner.full and group is not None and group.accepts(slot.message, self._budget)

    def _serve_waiting(self, groups: MessageGroups, slot: Slot, group: MessageGroup) -> bool:
        """A message that waited for the owner of its group, which has room now."""
        takers = group_of(group.owner)
        if self._is_behind_barrier(slot):
            return False
        if not self._budget.spend():
            return False
        if self._expired(slot):
            if self._stopped:
                return False
            groups.remove_waiting(group)
            return True
        groups.remove_waiting(group)
        if takers is not None and not takers.accepts(slot.message, self._budget):
            groups.pass_over(group)
            return True
        self._deliver_to_group(slot, group, groups)
        return True

    def _deliver_to_group(self, slot: Slot, group: MessageGroup, groups: MessageGroups) -> None:
        owner = group.owner
        self._deliver(slot, owner, first=False)
        self._rules.served(owner)
        if groups.closes(slot.message):
            self._rules.release_group(slot.message, groups)

    # -- steps ---------------------------------------------------------------------------------------------------

    def _is_behind_barrier(self, slot: Slot) -> bool:
        barrier = self._queue.barrier_sequence
        return barrier > 0 and slot.sequence > barrier

    def _expired(self, slot: Slot) -> bool:
        """Whether a message is too old; it may still be there then, and this delivers nothing more (`_stopped`)."""
        before = self._before
        if before is None or not self._queue.expiring_count:
            return False
        fate = before.take_expired(self._queue, slot, self._now_ms)
        if fate == ROOM_TO_COME:
            before.put_off(self._queue)
            self._stopped = True
        elif fate == ENDED:
            self._done += before.cost(self._queue)
        return fate != STAYS

    def _deliver(self, slot: Slot, consumer: Consumer, *, first: bool) -> None:
        self._queue.deliver(slot, consumer)
        slot.delivered_at_ms = self._now_ms
        consumer.first_of_group = first
        before = self._before
        if before is not None and slot.recorded and self._queue.traits.record_before_delivery:
            before.record_delivery(self._queue, slot)
        consumer.port.deliver(slot)
        if self._queue.traits.recorded:
            self._rules.events.message_dispatched(self._queue.name, slot, consumer.called(), consumer.user_name())
        self._done += 1
