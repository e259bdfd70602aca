"""Explaining: where a message stands, what a queue does with all it holds, and what to do about it."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Final

from delosmq.engine.api import (
    Consumer,
    EngineBroker,
    LeaseGroup,
    Queue,
    held_count,
    inspect,
    is_held,
    rules_of,
    waiting_reason,
)
from delosmq.manage.control.browse import TOLD_PER_SLICE, Browse, browse_standings
from delosmq.manage.control.diagnosis import advice, advice_without_head, queue_notes
from delosmq.manage.control.message_ids import LARGEST_SEQUENCE, is_given_by_client, read_message_id, sequence_for_jms
from delosmq.manage.control.queue_info import group_count
from delosmq.manage.control.queues import QueueControl
from delosmq.manage.control.settings_in_force import SettingInForce, settings_in_force
from delosmq.model.conversion import Conversions
from delosmq.model.errors import NotFoundError
from delosmq.model.message import Message
from delosmq.security.access import VIEW, Login

COUNTED_AT_MOST: Final = 100_000
"""Pending messages that are explained one by one; the rest is told as not looked at."""
CONSUMERS_AT_MOST: Final = 200
GROUPS_AT_MOST: Final = 100
QUEUES_AT_MOST: Final = 1_000
QUEUES_PER_SLICE: Final = 100
QUESTIONS_AT_MOST: Final = 2_000_000
"""As `COUNTED_AT_MOST`, in messages times consumers: a few seconds of looking, between the work for others."""


@dataclass(frozen=True)
class ConsumerStanding:
    """A consumer of a queue.

    Attributes:
        kind: consumer, browser or lease group; name: of the lease group.
        connection, user: "" when they are not known.
        held: messages in delivery; among them those that open transactions acknowledge.
        has_room: its credit, and what is on its way to it, allow one more.
        owned_groups: message groups that only this one gets.
    """

    id: int
    kind: str
    name: str
    connection: str
    user: str
    selector: str
    priority: int
    exclusive: bool
    held: int
    has_room: bool
    owned_groups: int


@dataclass(frozen=True)
class StandingInfo:
    """Where a message stands in a queue.

    Attributes:
        standing: ready, waiting, in delivery, leased, acknowledged in a transaction, scheduled.
        rule: why it waits, else "".
        since_ms: of the delivery, 0 when it isn't known; due_at_ms: of a scheduled one.
        consumer: that has it in delivery; else the owner of its group or queue, when it waits for that; 0 for none.
        lease: 0 while the lease is being made.
        transaction: that acknowledges it, with its xid and state.
    """

    sequence: int
    queue: str
    standing: str
    rule: str
    since_ms: int
    due_at_ms: int
    delivery_count: int
    consumer: int
    connection: str
    user: str
    lease_group: str
    lease: int
    transaction: int
    xid: str
    transaction_state: str
    advice: str


@dataclass(frozen=True)
class MessageExplanation:
    """A message, and where it stands in each queue that has it."""

    message_id: str
    sequence: int
    address: str
    durable: bool
    priority: int
    timestamp_ms: int
    expires_at_ms: int
    size_bytes: int
    group_id: str
    sender: str
    standings: list[StandingInfo]


@dataclass(frozen=True)
class GroupOwner:
    """A message group, or the bucket it falls into, and the consumer that gets it."""

    group: str
    consumer: int


@dataclass(frozen=True)
class QueueExplanation:
    """What a queue does with what it holds.

    Attributes:
        advice: what to do, by the first message; notes: what else keeps messages away or takes them.
        counts: messages by where they stand, pending ones by their rule.
        not_looked_at: pending messages beyond those that were asked one by one.
        head: the first pending message, null when there is none.
        owner: the consumer that owns the queue exclusively, 0 for none.
        consumers, groups: the first of ``consumer_count`` and ``group_count``.
        messages: a page, by sequence; next: ask for what is after it, 0 when that was all.
    """

    queue: str
    address: str
    advice: str
    notes: list[str]
    message_count: int
    counts: dict[str, int]
    not_looked_at: int
    head: StandingInfo | None
    owner: int
    consumer_count: int
    consumers: list[ConsumerStanding]
    group_count: int
    groups: list[GroupOwner]
    settings: list[SettingInForce]
    messages: list[StandingInfo]
    next: int


class ExplainControl:
    """Explanations of one broker. Each is a walk in slices, which gives what it found."""

    def __init__(self, broker: EngineBroker, queues: QueueControl, conversions: Conversions) -> None:
        self._broker = broker
        self._queues = queues
        self._conversions = conversions

    def queue(self, login: Login, name: str, *, after: int, limit: int) -> Generator[None, None, QueueExplanation]:
        """Explains a queue.

        Args:
            after, limit: which messages to list, by sequence; none for 0.

        Raises:
            NotFoundError: there is none of that name.
        """
        broker, queue = self._broker, self._queues.find(login, name, VIEW)
        asked = QUESTIONS_AT_MOST // (1 + len(queue.holders))
        count = inspect.Count(broker.inspector, queue, min(COUNTED_AT_MOST, asked))
        yield from count.steps()
        yield
        page: list[inspect.Standing] = []
        following = 0
        if limit:
            page, following = yield from browse_standings(broker, queue, after=after, limit=limit)
        yield from inspect.number_leases(page)
        told: list[StandingInfo] = []
        for i, standing in enumerate(page, 1):
            told.append(_standing_info(broker, standing))
            if i % TOLD_PER_SLICE == 0:
                yield
        return _queue_explanation(broker, queue, count, told, following)

    def message(self, login: Login, message_id: str, queue: str = "") -> Generator[None, None, MessageExplanation]:
        """Explains a message.

        Args:
            queue: look in this one only; "" looks in all that the login may view.

        Raises:
            MisuseError: that is no id.
            NotFoundError: there is no such queue, or none has the message.
        """
        broker = self._broker
        names = [self._queues.find(login, queue, VIEW).name] if queue else self._queues.names(login)
        sequence = sequence_for_jms(message_id)
        given = not sequence and is_given_by_client(message_id)
        if given:
            sequence = yield from self._find_given(message_id, names)
        elif not sequence:
            sequence = read_message_id(message_id)
        found: list[inspect.Standing] = []
        for i, name in enumerate(names, 1):
            if i % QUEUES_PER_SLICE == 0:
                yield
            looked_in = broker.queues.get(name)
            if looked_in is None or len(found) >= QUEUES_AT_MOST:
                continue
            search = inspect.Search(broker.inspector, looked_in, sequence)
            yield from search.steps()
            if search.found is not None:
                found.append(search.found)
        if not found:
            where = f"queue '{queue}' does not hold it" if queue else "no queue that you may view has it"
            raise NotFoundError(
                "DMQ6144",
                f"message {message_id if given else sequence} is gone: {where}. It was acknowledged, expired,"
                " pushed out, purged or moved under a new id (dead letters), or never there; compare the counters of"
                " its queue, and check the id",
            )
        yield from inspect.number_leases(found)
        return _message_explanation(found[0].slot.message, [_standing_info(broker, standing) for standing in found])

    def _find_given(self, given: str, names: list[str]) -> Generator[None, None, int]:
        """The sequence of the message to which a client gave an id, looked for at each message; 0 for none."""
        for name in names:
            queue = self._broker.queues.get(name)
            if queue is None:
                continue
            browse = Browse(
                self._broker,
                queue,
                after=0,
                until=LARGEST_SEQUENCE,
                max_rows=1,
                scheduled=True,
                only=lambda slot: self._conversions.has_id(slot.message, given),
            )
            yield from browse
            if browse.found:
                return browse.found[0].sequence
        return 0


def _queue_explanation(
    broker: EngineBroker, queue: Queue, count: inspect.Count, page: list[StandingInfo], following: int
) -> QueueExplanation:
    slot = queue.pending.head()
    first = broker.inspector.standing(queue, slot) if slot is not None else None
    head = _standing_info(broker, first) if first is not None else None
    rules = rules_of(queue)
    owner = rules.ownership.owner if rules is not None else None
    groups = rules.groups.owners(GROUPS_AT_MOST) if rules is not None and rules.groups is not None else []
    return QueueExplanation(
        queue=queue.name,
        address=queue.address.name,
        advice=head.advice if head is not None else advice_without_head(broker, queue),
        notes=queue_notes(broker, queue),
        message_count=queue.message_count,
        counts=_counts(broker, queue, count),
        not_looked_at=max(0, queue.pending.count - count.looked_at),
        head=head,
        owner=owner.id if owner is not None else 0,
        consumer_count=len(queue.holders),
        consumers=_consumers(queue),
        group_count=group_count(queue),
        groups=[GroupOwner(key, consumer.id) for key, consumer in groups],
        settings=settings_in_force(queue, broker.settings),
        messages=page,
        next=following,
    )


def _counts(broker: EngineBroker, queue: Queue, count: inspect.Count) -> dict[str, int]:
    leased = sum(group.held_count for group in broker.leases.on_queue(queue))
    found = dict(count.by_rule)
    found[inspect.DELIVERING] = max(0, queue.delivering.count - leased - count.promised)
    found[inspect.LEASED] = leased
    found[inspect.PROMISED] = count.promised
    found[inspect.HELD] = held_count(queue)
    found[inspect.SCHEDULED] = queue.scheduled.count - found[inspect.HELD]
    return {name: number for name, number in found.items() if number}


def _consumers(queue: Queue) -> list[ConsumerStanding]:
    found: list[ConsumerStanding] = []
    for holder in queue.holders[:CONSUMERS_AT_MOST]:
        if isinstance(holder, Consumer):
            found.append(_consumer(holder))
        elif isinstance(holder, LeaseGroup):
            found.append(_lease_reader(holder))
    return found


def _lease_reader(group: LeaseGroup) -> ConsumerStanding:
    return ConsumerStanding(
        id=0,
        kind="lease group",
        name=group.name,
        connection="",
        user="",
        selector="",
        priority=0,
        exclusive=False,
        held=group.held_count,
        has_room=False,
        owned_groups=0,
    )


def _consumer(consumer: Consumer) -> ConsumerStanding:
    options = consumer.options
    return ConsumerStanding(
        id=consumer.id,
        kind="browser" if options.browser else "consumer",
        name="",
        connection=consumer.port.connection_name(),
        user=consumer.port.user_name(),
        selector=options.selector.text if options.selector is not None else "",
        priority=options.priority,
        exclusive=options.exclusive,
        held=consumer.held_count,
        has_room=consumer.has_room(),
        owned_groups=consumer.owned_groups,
    )


def _standing_info(broker: EngineBroker, standing: inspect.Standing) -> StandingInfo:
    queue = standing.queue
    slot = standing.slot
    holder = standing.consumer if standing.consumer is not None else _waited_for(standing)
    transaction = broker.transactions.open.get(standing.transaction) if standing.transaction else None
    rule = standing.rule if standing.standing in (waiting_reason.READY, inspect.WAITING) else standing.standing
    group = standing.group.name if standing.group is not None else ""
    return StandingInfo(
        sequence=slot.sequence,
        queue=queue.name,
        standing=standing.standing,
        rule="" if standing.standing != inspect.WAITING else standing.rule,
        since_ms=slot.delivered_at_ms
        if standing.standing in (inspect.DELIVERING, inspect.LEASED, inspect.PROMISED)
        else 0,
        due_at_ms=0 if is_held(slot) else slot.due_at_ms,
        delivery_count=slot.delivery_count,
        consumer=holder.id if holder is not None else 0,
        connection=holder.port.connection_name() if holder is not None else "",
        user=holder.port.user_name() if holder is not None else "",
        lease_group=group,
        lease=standing.lease,
        transaction=standing.transaction,
        xid=transaction.xid.hex() if transaction is not None and transaction.xid is not None else "",
        transaction_state=transaction.state if transaction is not None else "",
        advice=advice(
            rule,
            queue.name,
            consumer=holder.id if holder is not None else 0,
            group=group,
            transaction=standing.transaction,
        ),
    )


def _waited_for(standing: inspect.Standing) -> Consumer | None:
    """The consumer that a pending message waits for: the owner of the queue, or of its group."""
    rules = rules_of(standing.queue)
    if rules is None or standing.standing != inspect.WAITING:
        return None
    if standing.rule in (waiting_reason.EXCLUSIVE_OWNER, waiting_reason.OWNER_SELECTOR):
        return rules.ownership.owner
    groups = rules.groups
    if groups is None or not standing.slot.message.group_id or rules.ownership.owner is not None:
        return None
    group = groups.owner_of(standing.slot.message)
    return group.owner if group is not None else None


def _message_explanation(message: Message, standings: list[StandingInfo]) -> MessageExplanation:
    return MessageExplanation(
        message_id=f"ID:{message.message_id}",
        sequence=message.sequence,
        address=message.address,
        durable=message.durable,
        priority=message.priority,
        timestamp_ms=message.timestamp_ms,
        expires_at_ms=message.expires_at_ms,
        size_bytes=message.encoded_size_bytes,
        group_id=message.group_id,
        sender=message.user,
        standings=standings,
    )
