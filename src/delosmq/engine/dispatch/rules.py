"""Dispatch rules: how a queue delivers when not simply in turn: selectors, priorities, owners, groups, browsers.

Message by message, in the order of the queue: the first one that any consumer with room takes goes to the consumer of
the highest priority among those that take it, and of these to the next in turn. Steps for a message depend
neither on how many wait nor on how many consumers there are, only on how many different selectors they have.

Source: activemq-broker Queue.doActualDispatch; Artemis QueueImpl.deliver.
"""

from delosmq.engine.base.events import NO_EVENTS, EngineEvents
from delosmq.engine.base.slots import Slot
from delosmq.engine.dispatch.browse_cursor import UNBOUNDED, BrowseCursor, Browser
from delosmq.engine.dispatch.dispatch_start import DispatchStart
from delosmq.engine.dispatch.exclusive_owner import ExclusiveOwner
from delosmq.engine.dispatch.lease_search import LeaseSearch, LeaseWish
from delosmq.engine.dispatch.message_groups import MessageGroups
from delosmq.engine.dispatch.rotation import DispatchBudget, precedes
from delosmq.engine.dispatch.selector_group import SelectorGroup, group_of
from delosmq.engine.queues.consumer import Consumer, consumers_of
from delosmq.engine.queues.in_delivery import Holder
from delosmq.engine.queues.queue import Queue, QueueRules
from delosmq.model.message import Message
from delosmq.model.settings import DispatchProfile


class DispatchRules(QueueRules):
    """The rules of one queue and what they remember.

    Attributes:
        selector_groups: its consumers, by what they take.
        takers: those that take what `first` found.
        readers: browsers that have not seen all, and consumers of a non-destructive queue.
        events: told of owners, and of deliveries.
        searches: of leases, by what they take.
        groups: None while the queue has seen none, or has none.
    """

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.selector_groups: list[SelectorGroup] = []
        self._by_key: dict[tuple[str, str], SelectorGroup] = {}
        self.takers: list[SelectorGroup] = []
        self.readers: list[BrowseCursor] = []
        self.ownership: ExclusiveOwner = ExclusiveOwner()
        self.groups: MessageGroups | None = None
        self.events: EngineEvents = NO_EVENTS
        self.start: DispatchStart = DispatchStart(queue)
        self._stamp: int = 0
        self.searches: dict[tuple[str, int, int], LeaseSearch] = {}
        settings = queue.address.settings
        self._classic: bool = settings.dispatch_profile == DispatchProfile.CLASSIC
        self.strict: bool = settings.strict_order_dispatch
        self._priorities: bool = settings.use_consumer_priority
        self.all_exclusive: bool = settings.all_consumers_exclusive_by_default

    # -- consumers -----------------------------------------------------------------------------------------------

    def adopt(self) -> None:
        """Takes over the consumers of a queue that had no rules so far, in the order of their turn."""
        queue = self.queue
        queue.rules = self
        for holder in [*queue.rotation, *(holder for holder in queue.holders if holder.full)]:
            assert isinstance(holder, Consumer)  # of holders only consumers are in rotation, or full
            self._admit(holder)
        queue.rotation.clear()

    def join(self, consumer: Consumer) -> None:
        """A consumer came."""
        queue = self.queue
        groups = self.groups
        if queue.in_force.group_rebalance and groups is not None and not consumer.options.browser:
            groups.clear()
            self._clear_loads()
            self.look_again()
            self.start.draining = queue.in_force.group_rebalance_pause_dispatch
        self._admit(consumer)

    def _admit(self, consumer: Consumer) -> None:
        queue = self.queue
        group = self._group_for(consumer)
        group.members += 1
        consumer.selector_group = group
        if consumer.options.browser:
            page = queue.address.settings.max_browse_page_size
            self.readers.append(Browser(consumer, queue, group, page=page))
        elif queue.in_force.non_destructive:
            self.readers.append(BrowseCursor(consumer, queue, group, page=UNBOUNDED))
        else:
            if not consumer.full:
                self._put(consumer, group)
            owner = self.ownership.owner
            self.ownership.joined(consumer, all_exclusive=self.all_exclusive)
            self._owner_changed(owner)

    def _group_for(self, consumer: Consumer) -> SelectorGroup:
        options = consumer.options
        key = (options.selector.text if options.selector is not None else "", options.no_local)
        found = self._by_key.get(key)
        if found is None:
            found = SelectorGroup(options, self.queue.pending, by_load=self._classic, strict=self.strict)
            self._by_key[key] = found
            self.selector_groups.append(found)
        return found

    def leave(self, consumer: Consumer) -> None:
        """A consumer went; its messages in delivery come back."""
        group = group_of(consumer)
        if group is None:
            return
        if consumer.loans is not None:
            for reader in [reader for reader in self.readers if reader.consumer is consumer]:
                reader.close()
                self.readers.remove(reader)
            consumer.loans.answer_all()
        else:
            group.take_out(consumer, self._priority(consumer))
            owner = self.ownership.owner
            self.ownership.left(consumer, consumers_of(self.queue), all_exclusive=self.all_exclusive)
            self._owner_changed(owner)
            groups = self.groups
            if groups is not None and groups.left(consumer):
                self.look_again()
        group.members -= 1
        if group.members == 0:
            group.look_again()
            self.selector_groups.remove(group)
            self._by_key = {key: kept for key, kept in self._by_key.items() if kept is not group}
        if self.queue.consumer_count == 0:
            self.start.consumers_gone()
            self._drop()

    def _drop(self) -> None:
        for search in self.searches.values():
            search.look_again()
        if self.groups is not None:
            self.groups.close()
            self.groups = None
        self.queue.drop_rules()

    def own(self, consumer: Consumer) -> None:
        """The first message of an exclusive queue went to a consumer."""
        owner = self.ownership.owner
        self.ownership.own(consumer)
        self._owner_changed(owner)

    def settings_changed(self) -> None:
        """The queue has new settings: a consumer that owned it as it was exclusive does so no longer, once it isn't."""
        owner = self.ownership.owner
        if owner is not None and not (self.queue.in_force.exclusive or owner.options.exclusive or self.all_exclusive):
            self.ownership.owner = None
            self._owner_changed(owner)

    def _owner_changed(self, owner: Consumer | None) -> None:
        # Groups mean nothing to an owner: it gets what waits for others too.
        present = self.ownership.owner
        if present is owner:
            return
        if self.groups is not None:
            self.look_again()
        self.events.exclusive_owner_changed(self.queue.name, 0 if present is None else present.id)

    def _priority(self, consumer: Consumer) -> int:
        return consumer.options.priority if self._priorities else 0

    def _put(self, consumer: Consumer, group: SelectorGroup) -> None:
        self._stamp += 1
        if not self.strict or consumer.turn == 0:
            consumer.turn = self._stamp
        group.put(consumer, self._priority(consumer))

    def _clear_loads(self) -> None:
        for consumer in consumers_of(self.queue):
            if consumer.owned_groups:
                consumer.owned_groups = 0
                self._rank_again(consumer)

    def _rank_again(self, consumer: Consumer) -> None:
        group = group_of(consumer)
        if group is not None and consumer.entry is not None:
            priority = self._priority(consumer)
            group.take_out(consumer, priority)
            group.put(consumer, priority)

    def mark_full(self, consumer: Consumer) -> None:
        """A consumer was found full."""
        group = group_of(consumer)
        consumer.full = True
        if group is not None:
            group.take_out(consumer, self._priority(consumer))

    def rejoin(self, holder: Holder) -> None:
        """A consumer may have room again: it stands last."""
        assert isinstance(holder, Consumer)  # no other holder is ever full
        holder.full = False
        group = group_of(holder)
        if holder.loans is None and group is not None:
            self._put(holder, group)
            if self.groups is not None:
                self.groups.on_room(holder)

    def served(self, consumer: Consumer) -> None:
        """A consumer got a message: it goes behind its peers, unless their order is strict."""
        group = group_of(consumer)
        if group is not None and consumer.entry is not None:
            group.take_out(consumer, self._priority(consumer))
            self._put(consumer, group)

    def has_work(self) -> bool:
        """Whether a consumer or browser may get something."""
        if self.readers:
            return True
        if self.queue.pending.count:
            for group in self.selector_groups:
                if group.open:
                    return True
        return False

    def look_again(self) -> None:
        """Dispatch looks again at all that was passed over, from the head of the queue."""
        for group in self.selector_groups:
            group.look_again()
        for search in self.searches.values():
            search.look_again()
        if self.groups is not None:
            self.groups.clear_waiting()

    # -- messages ------------------------------------------------------------------------------------------------

    def groups_for(self, slot: Slot) -> MessageGroups | None:
        """The groups, when a message belongs to one."""
        if not slot.message.group_id or self.queue.in_force.group_buckets == 0:
            return None
        groups = self.groups
        if groups is None:
            remembered = self.queue.address.settings.group_cache_size
            groups = MessageGroups(
                self.queue.pending, self.queue.in_force.group_buckets, classic=self._classic, remembered=remembered
            )
            self.groups = groups
        return groups

    def first_with_room(self, group: SelectorGroup) -> Consumer | None:
        """The next consumer of a group; those found full leave the rotation."""
        while True:
            consumer = group.first()
            if consumer is None or consumer.has_room():
                return consumer
            self.mark_full(consumer)

    def first(self, budget: DispatchBudget) -> Slot | None:
        """The first message that any consumer with room takes; `takers` are those that do."""
        found: Slot | None = None
        frontier: Slot | None = None
        takers = self.takers
        takers.clear()
        for group in self.selector_groups:
            if group.open == 0 or self.first_with_room(group) is None:
                continue
            slot = group.candidate(budget)
            if slot is None:
                # It may take something from there on, so nothing behind that can be decided yet.
                limit = group.frontier
                if limit is not None and (frontier is None or precedes(limit, frontier)):
                    frontier = limit
                continue
            if found is None or precedes(slot, found):
                takers.clear()
                found = slot
            if slot is found:
                takers.append(group)
        if found is not None and frontier is not None and not precedes(found, frontier):
            return None
        return found

    def best_taker(self) -> Consumer:
        """The consumer that gets what `first` found: highest priority, fewest groups (Classic), first in turn."""
        best: Consumer | None = None
        for group in self.takers:
            consumer = group.first()
            if consumer is not None and (best is None or self._comes_before(consumer, best)):
                best = consumer
        assert best is not None  # `first` asked for room
        return best

    def _comes_before(self, consumer: Consumer, other: Consumer) -> bool:
        priority = self._priority(consumer)
        others = self._priority(other)
        if priority != others:
            return priority > others
        if self._classic and consumer.owned_groups != other.owned_groups:
            return consumer.owned_groups < other.owned_groups
        return consumer.turn < other.turn

    def pass_over(self, slot: Slot) -> None:
        """No consumer with room gets what `first` found."""
        for group in self.takers:
            group.pass_over(slot)

    def assign(self, message: Message, consumer: Consumer, groups: MessageGroups) -> bool:
        """Gives the group of a message to a consumer, from its owner; False when it is not remembered."""
        self.release_group(message, groups)
        if not groups.classic and groups.closes(message):
            return False
        evicted = groups.assign(message, consumer)
        if evicted is not None:
            groups.release(evicted)
            self._rank_again(evicted.owner)
        self.events.group_assigned(self.queue.name, groups.key_of(message), consumer.id)
        return True

    def release_group(self, message: Message, groups: MessageGroups) -> None:
        """Ends the ownership of a message's group, if it has an owner: the next message of it begins anew."""
        group = groups.find(message)
        if group is not None:
            passed_over = groups.release(group)
            self._rank_again(group.owner)
            if passed_over:
                self.look_again()

    # -- leases --------------------------------------------------------------------------------------------------

    def next_for_lease(self, wish: LeaseWish, until: int | None, budget: DispatchBudget) -> Slot | None:
        """See `Dispatcher.next_for_lease`."""
        if is_owned(self.queue):
            return None
        search = self.searches.get(wish.key)
        if search is None:
            search = LeaseSearch(wish, self.queue.pending)
            self.searches[wish.key] = search
        while True:
            slot = search.candidate(until, budget)
            groups = self.groups_for(slot) if slot is not None else None
            group = groups.find(slot.message) if slot is not None and groups is not None else None
            if slot is None or groups is None or group is None:
                return slot
            if not budget.spend():
                return None
            search.pass_over(slot)
            groups.pass_over(group)  # to be looked at again when the group has no owner any more

    def end_search(self, wish: LeaseWish) -> None:
        """No group takes this any more."""
        search = self.searches.pop(wish.key, None)
        if search is not None:
            search.look_again()
        if self.queue.consumer_count == 0 and not self.searches:
            self._drop()


def is_owned(queue: Queue) -> bool:
    """Whether one consumer gets everything, and leases nothing."""
    rules = rules_of(queue)
    return rules is not None and (
        rules.ownership.owner is not None or (queue.in_force.exclusive and queue.consumer_count > 0)
    )


def rules_of(queue: Queue) -> DispatchRules | None:
    """The rules of a queue; None when its messages are simply delivered in turn."""
    rules = queue.rules
    return rules if isinstance(rules, DispatchRules) else None
