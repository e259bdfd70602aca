"""What lies outside a queue, or in its settings, and decides what enters it, leaves it, or is lost: for people."""

from delosmq.engine.broker import Broker
from delosmq.engine.diverts import Divert
from delosmq.engine.losses import DEAD_LETTER_ADDRESS, EXPIRY_ADDRESS
from delosmq.engine.queue import Queue
from delosmq.model.settings import UNLIMITED
from delosmq.model.wording import counted


def queue_notes(broker: Broker, queue: Queue) -> list[str]:
    """Sentences about a queue, beside the advice about its first message."""
    address = queue.address
    found: list[str] = []
    if not queue.settings.enabled:
        found.append("the queue is disabled: what is sent to its address does not enter it")
    if queue.settings.filter:
        found.append(f"only messages that match its filter enter it: {queue.settings.filter}")
    found += [divert_note(divert) for divert in address.diverts]
    found += _notes_on_keeping(queue)
    found += _losses(broker, queue)
    if queue.exclusive and queue.group_rebalance:
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
        found.append(f"of messages with the same {queue.last_value_key} it keeps the newest")
    if queue.non_destructive:
        found.append("it is non-destructive: acknowledged messages stay in it")
    return found


def _losses(broker: Broker, queue: Queue) -> list[str]:
    """Where its dead and expired messages should go, and can't."""
    settings = queue.address.settings
    found: list[str] = []
    for name, target, makes_queues in (
        (DEAD_LETTER_ADDRESS, settings.dead_letter_address, settings.auto_create_dead_letter_resources),
        (EXPIRY_ADDRESS, settings.expiry_address, settings.auto_create_expiry_resources),
    ):
        if target and not makes_queues and not _reaches_a_queue(broker, target):
            lost = broker.losses.count(queue.name, name)
            so_far = f" ({counted(lost, 'message')} so far)" if lost else ""
            found.append(
                f"its {name} '{target}' has no queue: what should go there is dropped{so_far}; create one with"
                f" `delosmq queue create {target}`"
            )
    return found


def _reaches_a_queue(broker: Broker, name: str) -> bool:
    address = broker.addresses.get(name)
    return address is not None and broker.explaining.reaches_a_queue(address)
