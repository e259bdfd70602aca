"""A queue as management shows it: its settings in force and its counters, under the names Artemis gives them."""

from dataclasses import dataclass, fields
from typing import Final

from delosmq.engine.api import EngineBroker, Queue, consumers_of, held_count, rules_of
from delosmq.model.declared.queue import ResolvedSettings
from delosmq.model.message import ROUTING_NAMES

HELD_LOOKED_AT: Final = 100
"""Messages of one consumer that are looked through for the oldest."""


@dataclass(frozen=True)
class QueueIdentity:
    """Which queue it is, and what no address has a default of."""

    id: int
    name: str
    address: str
    routing_type: str
    durable: bool
    temporary: bool
    auto_created: bool
    user: str
    enabled: bool
    paused: bool
    filter: str


@dataclass(frozen=True)
class QueueInfo(ResolvedSettings, QueueIdentity):
    """A queue as it stands.

    Attributes:
        user: who made it, "" for broker.xml and the broker itself.
        ring_size .. auto_delete_message_count: in force, the queue's own or the default of its address; -1 for none.
        filter: the selector of what may enter, "" for everything.
        last_value_key: "" when it is no last-value queue.
        message_count: pending, scheduled and in delivery; persistent_size: bytes of all those, durable or not;
            ``durable_*``: of those the store holds.
        held_count: of the scheduled ones those that no queue of the dead-letter or expiry address takes; they are moved
            once one does.
        consumer_count: consumers and lease groups.
        group_count: message groups that have an owner.
        messages_added: and the other totals, since the broker started.
        acknowledge_attempts: messages that were asked to end, for whatever reason.
        newest_sequence: of the last message added; oldest_sequence: the lowest that is there, 0 in an empty queue.
        paused: delivers nothing; enabled: takes part in routing.
        notices: what its operator should know of its settings.
    """

    dead_letter_address: str
    expiry_address: str
    message_count: int
    persistent_size: int
    durable_message_count: int
    durable_persistent_size: int
    delivering_count: int
    delivering_size: int
    durable_delivering_count: int
    durable_delivering_size: int
    scheduled_count: int
    scheduled_size: int
    durable_scheduled_count: int
    durable_scheduled_size: int
    held_count: int
    consumer_count: int
    group_count: int
    messages_added: int
    messages_acknowledged: int
    acknowledge_attempts: int
    messages_expired: int
    messages_killed: int
    messages_replaced: int
    newest_sequence: int
    oldest_sequence: int
    notices: list[str]


def queue_info(broker: EngineBroker, queue: Queue) -> QueueInfo:
    """A queue as it stands: what is counted as things happen. Only ``oldest_sequence`` asks each consumer."""
    settings = queue.settings
    scheduled = queue.scheduled
    return QueueInfo(
        id=queue.id,
        name=queue.name,
        address=queue.address.name,
        routing_type=ROUTING_NAMES[settings.routing_type],
        durable=settings.durable,
        temporary=queue.temporary or queue.owner != "",
        auto_created=settings.auto_created,
        user=settings.user,
        enabled=settings.enabled,
        paused=queue.paused,
        filter=settings.filter,
        **{one.name: getattr(queue.in_force, one.name) for one in fields(ResolvedSettings)},
        dead_letter_address=queue.address.settings.dead_letter_address,
        expiry_address=queue.address.settings.expiry_address,
        message_count=queue.message_count,
        persistent_size=queue.total.bytes,
        durable_message_count=queue.total.durable_count,
        durable_persistent_size=queue.total.durable_bytes,
        delivering_count=queue.delivering.count,
        delivering_size=queue.delivering.bytes,
        durable_delivering_count=queue.delivering.durable_count,
        durable_delivering_size=queue.delivering.durable_bytes,
        scheduled_count=scheduled.count,
        scheduled_size=scheduled.bytes,
        durable_scheduled_count=scheduled.durable_count,
        durable_scheduled_size=scheduled.durable_bytes,
        held_count=held_count(queue),
        consumer_count=len(queue.holders),
        group_count=group_count(queue),
        messages_added=queue.counters.added,
        messages_acknowledged=queue.counters.acknowledged,
        acknowledge_attempts=queue.counters.acknowledge_attempts,
        messages_expired=queue.counters.expired,
        messages_killed=queue.counters.killed,
        messages_replaced=queue.counters.replaced,
        newest_sequence=queue.newest_sequence,
        oldest_sequence=_oldest_sequence(broker, queue),
        notices=notices_about(queue),
    )


def notices_about(queue: Queue) -> list[str]:
    """What the settings of a queue mean and their names don't say, in sentences."""
    if queue.ring_size == 0:
        return [
            f"queue '{queue.name}' has a ring-size of 0 and keeps nothing: each message that comes is pushed out at"
            " once; give it a larger one, or -1 for none"
        ]
    return []


def group_count(queue: Queue) -> int:
    """Message groups that a queue remembers an owner of."""
    rules = rules_of(queue)
    return 0 if rules is None or rules.groups is None else rules.groups.count


def _oldest_sequence(broker: EngineBroker, queue: Queue) -> int:
    oldest = 0
    slot = queue.pending.head()
    while slot is not None:  # from priority to priority, ten at most
        oldest = slot.sequence
        slot = queue.pending.head_upto(oldest - 1)
    for sequence in _lowest_held(broker, queue):
        if oldest == 0 or sequence < oldest:
            oldest = sequence
    return oldest


def _lowest_held(broker: EngineBroker, queue: Queue) -> list[int]:
    """Sequences in delivery, the lowest among them: all of a consumer's, of a lease only its own lowest.

    Of a consumer that holds very many only the one delivered first, which is not the lowest when priorities differ.
    """
    held: list[int] = []
    for group in broker.leases.on_queue(queue):
        if group.building:
            held.append(group.draft.lowest_sequence)
        held.extend(lease.rows.lowest_sequence for lease in group.leases.values())
    for consumer in consumers_of(queue):
        first = consumer.in_delivery.head
        if consumer.held_count <= HELD_LOOKED_AT:
            held.extend(slot.sequence for slot in consumer.held_newest_first())
        elif first is not None:
            held.append(first.sequence)
    return held
