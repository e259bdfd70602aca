"""The reason why a pending message waits: which rule keeps it from being delivered now. Diagnostics only."""

from typing import Final

from delosmq.engine.base.slots import Slot
from delosmq.engine.dispatch.message_groups import MessageGroup
from delosmq.engine.dispatch.rotation import DispatchBudget, precedes
from delosmq.engine.dispatch.rules import DispatchRules, rules_of
from delosmq.engine.dispatch.selector_group import group_of
from delosmq.engine.queues.consumer import Consumer, consumers_of
from delosmq.engine.queues.queue import Queue

READY: Final = "ready"
NOT_PENDING: Final = "not pending"
PAUSED: Final = "paused"
QUEUE_SUSPENDED: Final = "messages before it are on their way back"
COMMITTING: Final = "a commit before it is under way"
NO_CONSUMER: Final = "no consumer"
NOT_STARTED: Final = "waiting for consumers"
EXCLUSIVE_OWNER: Final = "exclusive owner full"
OWNER_SELECTOR: Final = "exclusive owner takes other messages"
SELECTOR: Final = "no consumer takes it"
FULL: Final = "consumers full"
GROUP_OWNER: Final = "group owner full"
GROUP_SELECTOR: Final = "group owner takes other messages"
BEHIND: Final = "behind others"

CODES: Final = (
    READY,
    NOT_PENDING,
    PAUSED,
    QUEUE_SUSPENDED,
    COMMITTING,
    NO_CONSUMER,
    NOT_STARTED,
    EXCLUSIVE_OWNER,
    OWNER_SELECTOR,
    SELECTOR,
    FULL,
    GROUP_OWNER,
    GROUP_SELECTOR,
    BEHIND,
)


def why_waiting(queue: Queue, slot: Slot, budget: DispatchBudget) -> str:
    """One of `CODES`: why a slot is not delivered now; `READY` when the next tick does.

    Looks at each consumer, and evaluates selectors: not for the message path.

    Args:
        budget: through which selectors look at the message; `Dispatcher.budget_for_asking` gives one.
    """
    if not queue.pending.holds(slot):
        return NOT_PENDING
    if queue.suspended:
        return PAUSED if queue.paused else QUEUE_SUSPENDED
    consumers = [c for c in consumers_of(queue) if not c.closed and not c.options.browser]
    if not consumers:
        return NO_CONSUMER
    if queue.barrier_sequence and slot.sequence > queue.barrier_sequence:
        return COMMITTING
    rules = rules_of(queue)
    if rules is not None:
        reason = _by_rules(rules, slot, consumers, budget)
        if reason:
            return reason
    elif not any(consumer.has_room() for consumer in consumers):
        return FULL
    head = queue.pending.head()
    return BEHIND if head is not None and head is not slot and precedes(head, slot) else READY


def _by_rules(rules: DispatchRules, slot: Slot, consumers: list[Consumer], budget: DispatchBudget) -> str:
    if not rules.start.is_open():
        return NOT_STARTED
    owner = rules.ownership.owner
    if owner is not None:
        if not takes(owner, slot, budget):
            return OWNER_SELECTOR
        return "" if owner.has_room() else EXCLUSIVE_OWNER
    group = _group_of(rules, slot)
    if group is not None:
        if not takes(group.owner, slot, budget):
            return GROUP_SELECTOR
        return "" if group.owner.has_room() else GROUP_OWNER
    takers = [consumer for consumer in consumers if takes(consumer, slot, budget)]
    if not takers:
        return SELECTOR
    return "" if any(consumer.has_room() for consumer in takers) else FULL


def _group_of(rules: DispatchRules, slot: Slot) -> MessageGroup | None:
    groups = rules.groups
    if groups is None or not slot.message.group_id or rules.queue.in_force.group_buckets == 0:
        return None
    return None if groups.reassigns(slot.message) else groups.owner_of(slot.message)


def takes(consumer: Consumer, slot: Slot, budget: DispatchBudget) -> bool:
    """Whether the selector of a consumer, if it has one, matches a message."""
    group = group_of(consumer)
    return group is None or group.accepts(slot.message, budget)
