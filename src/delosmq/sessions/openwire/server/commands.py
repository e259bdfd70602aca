"""What a peer that is logged in asks for: sessions, producers, messages, consumers, acknowledgements, destinations.

Each function handles one kind of command; the table at the end names it. Transactions: transacting.py.
"""

from collections.abc import Callable
from typing import Final

from delosmq.model.errors import BrokerError
from delosmq.model.ids import MonotonicNs
from delosmq.sessions.openwire.server import errors as failures
from delosmq.sessions.openwire.server import transacting
from delosmq.sessions.openwire.server.connection import Parts
from delosmq.sessions.openwire.server.consumers.consumers import ALL_SEEN, NOTHING_SEEN
from delosmq.wire.openwire.commands import (
    ConsumerControl,
    ConsumerId,
    ConsumerInfo,
    DestinationInfo,
    MessageAck,
    MessageCommand,
    MessagePull,
    ProducerId,
    ProducerInfo,
    RemoveInfo,
    RemoveSubscriptionInfo,
    SessionId,
    SessionInfo,
    Structure,
)

_LAST_DELIVERED_SINCE: Final = 5
"""The version from which on a RemoveInfo says what its consumer saw last."""


def add_session(parts: Parts, frame: Structure, now: MonotonicNs) -> None:
    assert isinstance(frame, SessionInfo)
    parts.sessions.add(frame.session_id)
    parts.replies.grant(frame)


def change_destination(parts: Parts, frame: Structure, now: MonotonicNs) -> None:
    assert isinstance(frame, DestinationInfo)
    parts.temporaries.handle(frame)
    parts.replies.grant(frame)


# -- sending ---------------------------------------------------------------------------------------------------------


def add_producer(parts: Parts, frame: Structure, now: MonotonicNs) -> None:
    assert isinstance(frame, ProducerInfo)
    producer_id = frame.producer_id
    if producer_id is not None:
        parts.sessions.require("producer", producer_id.connection_id, producer_id.session_id)
    if parts.producing.add(frame):
        parts.advisories.producer_opened(frame)
    parts.replies.grant(frame)


def send(parts: Parts, frame: Structure, now: MonotonicNs) -> None:
    """A message is answered through its owner: it may have to wait for space."""
    assert isinstance(frame, MessageCommand)
    work = None if frame.transaction_id is None else parts.transactions.find(frame.transaction_id)
    parts.producing.send(frame, work, parts.wall)


# -- receiving -------------------------------------------------------------------------------------------------------


def add_consumer(parts: Parts, frame: Structure, now: MonotonicNs) -> None:
    assert isinstance(frame, ConsumerInfo)
    consumer_id = frame.consumer_id
    if consumer_id is not None:
        parts.sessions.require("consumer", consumer_id.connection_id, consumer_id.session_id)
    subscription = parts.subscribing.add(frame)
    if subscription is not None:
        parts.producing.mark = parts.subscribing.mark
        try:
            parts.announce(subscription)
        except BrokerError:
            assert consumer_id is not None  # `add` looked
            parts.dismiss(parts.consumers.remove(consumer_id, NOTHING_SEEN))
            raise
    parts.replies.grant(frame)


def acknowledge(parts: Parts, frame: Structure, now: MonotonicNs) -> None:
    assert isinstance(frame, MessageAck)
    work = None if frame.transaction_id is None else parts.transactions.find(frame.transaction_id)
    under_way = parts.acknowledging.handle(frame, None if work is None else work.transaction)
    if under_way is None:
        parts.replies.answer(frame)
    else:
        parts.answer_after(frame, under_way)


def control(parts: Parts, frame: Structure, now: MonotonicNs) -> None:
    assert isinstance(frame, ConsumerControl)
    parts.dismiss(parts.consuming.control(frame))
    parts.replies.answer(frame)


def pull(parts: Parts, frame: Structure, now: MonotonicNs) -> None:
    assert isinstance(frame, MessagePull)
    parts.consuming.pull(frame, now)
    parts.replies.grant(frame)


def unsubscribe(parts: Parts, frame: Structure, now: MonotonicNs) -> None:
    assert isinstance(frame, RemoveSubscriptionInfo)
    address = parts.subscribing.unsubscribe(frame)
    parts.advisories.subscription_removed(frame, address)
    parts.replies.grant(frame)


# -- ending ----------------------------------------------------------------------------------------------------------


def remove(parts: Parts, frame: RemoveInfo) -> None:
    """The end of a consumer, producer or session; that of the connection is the session's own."""
    removed = frame.object_id
    last = last_seen(frame, parts.replies.form.version)
    if isinstance(removed, ConsumerId):
        ended = parts.consumers.remove(removed, last)
        if not ended:
            raise failures.nothing_to_remove("consumer", removed.key())
        parts.dismiss(ended)
    elif isinstance(removed, ProducerId):
        producer = parts.producing.remove(removed)
        if producer is None:
            raise failures.nothing_to_remove("producer", removed.key())
        parts.advisories.producer_closed(producer)
    elif isinstance(removed, SessionId):
        parts.sessions.remove(removed)
        parts.dismiss(parts.consumers.remove_session(removed.connection_id, removed.value, last))
        for producer in parts.producing.remove_session(removed.connection_id, removed.value):
            parts.advisories.producer_closed(producer)
    elif removed is None:
        raise failures.field_missing("objectId", "a RemoveInfo")
    else:
        raise failures.not_removable()
    parts.replies.part(frame, parts.parking.position)


def last_seen(frame: RemoveInfo, version: int) -> int:
    """The sequence of the last message that the application has seen, or a word for all or none."""
    return frame.last_delivered_sequence_id if version >= _LAST_DELIVERED_SINCE else ALL_SEEN


Work = Callable[[Parts, Structure, MonotonicNs], None]

# Type of the command -> who carries it out, once its sender is logged in.
WORK: Final[dict[int, Work]] = {
    4: add_session,
    5: add_consumer,
    6: add_producer,
    7: transacting.transact,
    8: change_destination,
    9: unsubscribe,
    17: control,
    20: pull,
    22: acknowledge,
    **dict.fromkeys(range(23, 30), send),
}
