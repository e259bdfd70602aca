"""What lies outside a queue, or in its settings, and decides what enters it, leaves it, or is lost: for people."""

from delosmq.engine.addresses.divert import Divert
from delosmq.engine.broker import Broker
from delosmq.engine.queues.queue import Queue
from delosmq.engine.routing.dropped import DEAD_LETTER_ADDRESS, EXPIRY_ADDRESS
from delosmq.engine.routing.held_messages import dead_count, expired_count
from delosmq.model.settings import UNLIMITED, AddressSettings, DispatchProfile
from delosmq.model.wording import counted


def queue_notes(broker: Broker, queue: Queue) -> list[str]:
    """Sentences about a queue, beside the advice about its first message."""
    address = broker.addresses[queue.address.name]
    found: list[str] = []
    if not queue.settings.enabled:
        found.append("the queue is disabled: what is sent to its address does not enter it")
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
    which = f"what matches {divert.filter}" if divert.filter else "everything"
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


def _held(broker: Broker, queue: Queue) -> list[str]:
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


def _is_made(broker: Broker, settings: AddressSettings, target: str) -> bool:
    """Whether the address gets a queue with the first message that comes."""
    own = broker.settings_of(target)
    return settings.dispatch_profile is DispatchProfile.CLASSIC or (
        own.auto_create_queues and (own.auto_create_addresses or target in broker.addresses)
    )


def _reaches_a_queue(broker: Broker, name: str) -> bool:
    address = broker.addresses.get(name)
    return address is not None and broker.explaining.reaches_a_queue(address)
