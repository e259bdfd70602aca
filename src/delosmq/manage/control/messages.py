"""Messages of a queue, shown to people: where each stands, what it says of itself, and how its body begins."""

import codecs
from collections.abc import Generator
from dataclasses import dataclass
from typing import Final

from delosmq.engine.api import BLOCKED, DROPPED, ROUTED, Conditions, EngineBroker, Queue, inspect, is_held
from delosmq.manage.control.browse import MessageFilter, browse_standings
from delosmq.manage.control.message_ids import LARGEST_SEQUENCE
from delosmq.manage.control.queues import QueueControl
from delosmq.model.conversion import Conversions
from delosmq.model.errors import BrokerError, LimitError, MisuseError
from delosmq.model.message import BODY_KIND_NAMES, BYTES_BODY, TEXT_BODY, HubMessage, Message
from delosmq.security.access import BROWSE, CONSUME, SEND, Login

_FAMILY: Final = "stomp"
"""How what is sent from here is encoded; every protocol can read that."""
_SHOWN_PER_SLICE: Final = 10
_MOST_BYTES_OF_A_LETTER: Final = 4


@dataclass(frozen=True)
class ShownMessage:
    """A message as it stands in a queue.

    Attributes:
        standing, rule: as in explanations.
        size_bytes: of the headers and the body, as encoded.
        jms_message_id: the id that its sender gave it, "" when it has none but the broker's.
        properties: what its sender and the broker say of it.
        text: how its body begins, "" when that is not UTF-8; cut: it goes on.
    """

    message_id: str
    jms_message_id: str
    sequence: int
    standing: str
    rule: str
    size_bytes: int
    durable: bool
    priority: int
    timestamp_ms: int
    expires_at_ms: int
    due_at_ms: int
    delivery_count: int
    group_id: str
    sender: str
    correlation_id: str
    content_type: str
    properties: dict[str, str]
    body_kind: str
    body_bytes: int
    text: str
    cut: bool


@dataclass(frozen=True)
class MessagePage:
    """Messages of a queue, by sequence. ``next``: ask for what is after it, 0 when that was all."""

    queue: str
    messages: list[ShownMessage]
    next: int


@dataclass(frozen=True)
class SentMessage:
    """A message that was sent to one queue.

    Attributes:
        message_id: "" when it went elsewhere (divert, dead letters).
        replaced: it was accepted and is gone, as the ring of the queue pushed it out at once.
    """

    queue: str
    message_id: str
    replaced: bool = False


class MessageControl:
    def __init__(self, broker: EngineBroker, queues: QueueControl, conversions: Conversions) -> None:
        self._broker = broker
        self._queues = queues
        self._conversions = conversions

    def look(
        self, login: Login, queue: str, *, after: int, limit: int, letters: int, skip: int = 0, selector: str = ""
    ) -> Generator[None, None, MessagePage]:
        """A look at messages of a queue, in slices. Takes nothing. Needs the right to consume, which shows as much.

        Args:
            after, limit: which, by sequence.
            letters: of each body, at most.
            skip: how many of these are left out, the first ones.
            selector: only what it matches.

        Raises:
            NotFoundError: there is no such queue.
            SelectorError: ``selector`` is none.
        """
        found = self._queues.find(login, queue, CONSUME, BROWSE)
        chosen = MessageFilter(selector, 0, LARGEST_SEQUENCE, conversions=self._conversions) if selector else None
        page, following = yield from browse_standings(
            self._broker, found, after=after, limit=limit, only=None if chosen is None else chosen.takes
        )
        shown: list[ShownMessage] = []
        for i, standing in enumerate(page[skip:], 1):
            message = standing.slot.message
            given = self._conversions.message_id(message)
            own = f"ID:{message.message_id}"
            shown.append(_shown(standing, self._hub(message), letters, "" if given == own else given))
            if i % _SHOWN_PER_SLICE == 0:
                yield
        return MessagePage(found.name, shown, following)

    def _hub(self, message: Message) -> HubMessage:
        try:
            return self._conversions.to_hub(message)
        except BrokerError:
            # One odd message must not hide the others.
            return HubMessage(message.body, BYTES_BODY)

    def send(self, login: Login, name: str, text: str, *, durable: bool, priority: int) -> SentMessage:
        """Sends a text to one queue that exists, and to no other of its address.

        Raises:
            NotFoundError: there is no such queue.
            LimitError: there is no room for it.
            MisuseError: the queue does not take it.
        """
        return self.send_hub(login, name, HubMessage(text.encode(), TEXT_BODY), durable=durable, priority=priority)

    def send_hub(self, login: Login, name: str, hub: HubMessage, *, durable: bool, priority: int) -> SentMessage:
        """The same with any body and properties."""
        queue = self._queues.find(login, name, SEND)
        address = queue.address.name
        encoded = self._conversions.from_hub(_FAMILY, hub, address)
        message = Message(
            address,
            encoded.protocol,
            encoded.head,
            encoded.body,
            body_kind=encoded.body_kind,
            priority=priority,
            durable=durable,
            timestamp_ms=self._broker.clock.wall_ms(),
            user=login.user,
        )
        outcome = self._broker.producers.send(message, queue_name=name)
        if outcome in (BLOCKED, DROPPED):
            raise LimitError(
                "DMQ6147",
                f"there is no room for the message: address '{address}' is full, or the store; consume what is there,"
                " or try again later",
            )
        if outcome != ROUTED:
            raise MisuseError(
                "DMQ6148",
                f"queue '{name}' did not take the message: {self._why_not(queue, message)}",
            )
        here = message.message_id and message.address == address
        if not here:
            return SentMessage(name, "")
        return SentMessage(name, f"ID:{message.message_id}", replaced=message.references == 0)

    def _why_not(self, queue: Queue, message: Message) -> str:
        """Why a queue did not take what was sent to it, and what to do: asked in the order in which routing asks."""
        conditions = Conditions(self._conversions)
        conditions.look_at(message)
        name = queue.name
        address = self._broker.inspector.address_of(queue)
        for source in (address, *self._broker.inspector.links(address)):
            for divert in source.diverts:
                if divert.exclusive and conditions.match(divert.filter):
                    return (
                        f"divert '{divert.name}' took it, and where that leads no queue takes it; `delosmq explain"
                        f" address {source.name}` says more"
                    )
        return queue.no_entry().format(queue=name) or (
            f"its filter lets in only what matches {queue.settings.filter}; send that with STOMP, or lift the filter"
            f" with `delosmq queue update {name} --set filter=`"
        )


def _shown(standing: inspect.Standing, hub: HubMessage, letters: int, given_id: str) -> ShownMessage:
    slot = standing.slot
    message = slot.message
    text = text_of(hub.body, letters)
    return ShownMessage(
        message_id=f"ID:{message.message_id}",
        jms_message_id=given_id,
        sequence=slot.sequence,
        standing=standing.standing,
        rule=standing.rule,
        size_bytes=message.encoded_size_bytes,
        durable=message.durable,
        priority=message.priority,
        timestamp_ms=message.timestamp_ms,
        expires_at_ms=message.expires_at_ms,
        due_at_ms=0 if is_held(slot) else slot.due_at_ms,
        delivery_count=slot.delivery_count,
        group_id=message.group_id,
        sender=message.user,
        correlation_id=hub.correlation_id or "",
        content_type=hub.content_type or "",
        properties=hub.property_texts(),
        body_kind=BODY_KIND_NAMES[hub.body_kind],
        body_bytes=len(hub.body),
        text=text,
        cut=len(text.encode()) < len(hub.body),
    )


def text_of(body: bytes, letters: int) -> str:
    """The first letters of a body, "" when it does not begin as UTF-8."""
    start = body[: letters * _MOST_BYTES_OF_A_LETTER]
    try:
        decoded = codecs.getincrementaldecoder("utf-8")().decode(start, final=len(start) == len(body))
    except UnicodeDecodeError:
        return ""
    return decoded[:letters]
