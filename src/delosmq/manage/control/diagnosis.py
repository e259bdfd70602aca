"""Diagnosis: what to do about a message or a queue, and what decides about it that lies outside the queue."""

from typing import Final

from delosmq.engine.api import (
    DEAD_LETTER_ADDRESS,
    EXPIRY_ADDRESS,
    Divert,
    EngineBroker,
    Queue,
    consumers_of,
    dead_count,
    expired_count,
    held_count,
    inspect,
)
from delosmq.engine.api import waiting_reason as reason
from delosmq.model.phrases import counted
from delosmq.model.settings import UNLIMITED, AddressSettings, DispatchProfile

EMPTY: Final = "empty"
DISABLED: Final = "disabled"
KEEPS_NOTHING: Final = "keeps nothing"

_SENTENCES: Final[dict[str, str]] = {
    reason.READY: "queue '{queue}' hands it out with the next turn; nothing is to be done",
    reason.PAUSED: "queue '{queue}' is paused; resume it with `delosmq queue resume {queue}`",
    reason.QUEUE_SUSPENDED: "a purge, a released lease group or a schedule is at work in queue '{queue}' and keeps the"
    " order; wait until that is done",
    reason.COMMITTING: "a large transaction before it is still being linked into queue '{queue}'; wait until that is"
    " done",
    reason.NO_CONSUMER: "queue '{queue}' has no consumer; start one, or look for why it is gone",
    reason.NOT_STARTED: "queue '{queue}' waits for more consumers (consumers-before-dispatch, delay-before-dispatch, "
    "or a rebalance of groups that waits for acknowledgements); start them, or lower the setting",
    reason.EXCLUSIVE_OWNER: "consumer {consumer} owns queue '{queue}' exclusively and is full; let it acknowledge, or"
    " close it so that another takes over",
    reason.OWNER_SELECTOR: "consumer {consumer} owns queue '{queue}' exclusively and its selector does not match;"
    " change the selector, or consume without exclusive",
    reason.SELECTOR: "no consumer of queue '{queue}' has a selector that matches it; start one that takes it",
    reason.FULL: "every consumer of queue '{queue}' that takes it holds as much as it may; let them acknowledge, give"
    " them more credit, or start another",
    reason.GROUP_OWNER: "consumer {consumer} owns its message group in queue '{queue}' and is full; let it"
    " acknowledge, or close it so that the group moves (what is behind it waits too: with dispatch-profile artemis the"
    " whole queue, with classic this owner's groups)",
    reason.GROUP_SELECTOR: "consumer {consumer} owns its message group in queue '{queue}' and its selector does not"
    " match; change the selector, or close the consumer so that the group moves",
    reason.BEHIND: "others are before it in queue '{queue}'; it follows when they are delivered, and `delosmq"
    " explain queue {queue}` says what the first of them waits for",
    inspect.LEASE_READER: "only lease groups take from queue '{queue}', and their readers have not asked for more; "
    "look at the readers",
    inspect.DELIVERING: "consumer {consumer} of queue '{queue}' has it and has not answered; if that takes too long, "
    "look at that client, or close its connection",
    inspect.LEASED: "lease group '{group}' holds it until its reader acknowledges; if the reader is gone for good, "
    "release the group",
    inspect.PROMISED: "transaction {transaction} acknowledges it when it is committed; commit it or roll it back, a "
    "prepared one with `delosmq transaction commit` or `rollback` if its coordinator is lost",
    inspect.HELD: "its attempts are used up or it has expired, and no queue takes what queue '{queue}' gives up; it is"
    " held until there is one; make a queue on the dead-letter-address or expiry-address of queue '{queue}', or set"
    " another address there",
    inspect.SCHEDULED: "it is not due yet in queue '{queue}'; it is delivered once its time has come",
    EMPTY: "queue '{queue}' is empty; nothing is to be done",
    KEEPS_NOTHING: "queue '{queue}' is empty, as its ring-size of 0 pushes out each message that comes; raise it with"
    " `delosmq queue update {queue} --set ring-size=...`",
    DISABLED: "queue '{queue}' is empty and disabled, so nothing enters it; enable it with `delosmq queue enable"
    " {queue}`",
}


def advice(rule: str, queue: str, *, consumer: int = 0, group: str = "", transaction: int = 0) -> str:
    """The sentence for a rule or waiting_reason."""
    who = str(consumer) if consumer else "that has left"
    return _SENTENCES[rule].format(queue=queue, consumer=who, group=group, transaction=transaction)


def advice_without_head(broker: EngineBroker, queue: Queue) -> str:
    """The sentence for a queue in which no message is pending."""
    if queue.scheduled.count:
        return advice(inspect.HELD if held_count(queue) else inspect.SCHEDULED, queue.name)
    for group in broker.leases.on_queue(queue):
        if group.held_count:
            return advice(inspect.LEASED, queue.name, group=group.name)
    for consumer in consumers_of(queue):
        if consumer.held_count:
            return advice(inspect.DELIVERING, queue.name, consumer=consumer.id)
    if not queue.settings.enabled:
        return advice(DISABLED, queue.name)
    return advice(EMPTY if queue.ring_size else KEEPS_NOTHING, queue.name)


def queue_notes(broker: EngineBroker, queue: Queue) -> list[str]:
    """Sentences about a queue, beside the advice about its first message."""
    address = broker.inspector.address_of(queue)
    found: list[str] = []
    no_entry = queue.no_entry()
    if no_entry:
        found.append(f"what is sent to its address does not enter it: {no_entry.format(queue=queue.name)}")
    if queue.settings.filter:
        found.append(f"only messages that match its filter enter it: {queue.settings.filter}")
    found += [divert_note(divert) for divert in address.diverts]
    found += _notes_on_keeping(queue)
    found += _held(broker, queue)
    if queue.in_force.exclusive and queue.in_force.group_rebalance:
        found.append("it is exclusive, so one consumer has all message groups and group-rebalance has no effect")
    if address.waiters:
        waiting = counted(len(address.waiters), "sender waits", "senders wait")
        found.append(f"{waiting} for space on its address, which is full")
    if broker.storage_full:
        found.append("the store has no room, so senders of durable messages wait")
    return found


def divert_note(divert: Divert) -> str:
    """What a divert does with what is sent to its address."""
    which = f"what matches {divert.settings.filter}" if divert.settings.filter else "everything"
    targets = ", ".join(f"'{target}'" for target in divert.targets)
    if divert.exclusive:
        return f"divert '{divert.name}' takes {which} that is sent to its address to {targets} instead"
    return f"divert '{divert.name}' sends a copy of {which} that is sent to its address to {targets}"


def _notes_on_keeping(queue: Queue) -> list[str]:
    found: list[str] = []
    if queue.ring_size == 0:
        found.append("its ring-size is 0: a message that comes is pushed out at once")
    elif queue.ring_size != UNLIMITED and queue.pending.count >= queue.ring_size:
        found.append(f"its ring of {queue.ring_size} is full: the next message pushes one out")
    if queue.last_values is not None:
        found.append(f"of messages with the same {queue.in_force.last_value_key} it keeps the newest")
    if queue.in_force.non_destructive:
        found.append("it is non-destructive: acknowledged messages stay in it")
    return found


def _held(broker: EngineBroker, queue: Queue) -> list[str]:
    """Where its dead and expired messages should go, and can't."""
    settings = queue.address.settings
    found: list[str] = []
    for name, target, makes_queues, held in (
        (DEAD_LETTER_ADDRESS, settings.dead_letter_address, settings.auto_create_dead_letter_resources, dead_count),
        (EXPIRY_ADDRESS, settings.expiry_address, settings.auto_create_expiry_resources, expired_count),
    ):
        count = held(queue)
        reached = makes_queues or _reaches_a_queue(broker, target) or _is_made(broker, settings, target)
        if target and (count or not reached):
            so_far = f" ({counted(count, 'message')} so far)" if count else ""
            found.append(
                f"its {name} '{target}' has no queue that takes them: what should go there is held in this one{so_far};"
                f" create one with `delosmq queue create {target}`"
            )
    return found


def _is_made(broker: EngineBroker, settings: AddressSettings, target: str) -> bool:
    """Whether the address gets a queue with the first message that comes."""
    own = broker.bindings.settings_of(target)
    return settings.dispatch_profile is DispatchProfile.CLASSIC or (
        own.auto_create_queues and (own.auto_create_addresses or target in broker.addresses)
    )


def _reaches_a_queue(broker: EngineBroker, name: str) -> bool:
    address = broker.addresses.get(name)
    return address is not None and broker.inspector.reaches_a_queue(address)
