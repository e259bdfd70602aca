"""What the headers of a SEND mean. Read once for all SENDs in a row that repeat a head.

Source: StompUtils of Artemis for the names; times are those of JMS: ms since the epoch, delays in ms.
"""

from typing import Final

from delosmq.model.ids import WallMs
from delosmq.model.message import BYTES_BODY, MAP_BODY, STREAM_BODY, TEXT_BODY, Message
from delosmq.sessions.stomp.server.destinations import StompDestinations, StompTarget
from delosmq.sessions.stomp.server.errors import header_wrong
from delosmq.sessions.stomp.server.headers import (
    INTEGERS,
    LATEST_MS,
    UNSUPPORTED_IN_SEND,
    read_flag,
    read_number,
    read_priority,
    read_time,
    refuse_unsupported,
)
from delosmq.sessions.stomp.server.transactions import TRANSACTION
from delosmq.wire.stomp.conversion import DESTINATION, MESSAGE_TYPE, NOT_RELAYED, encode_lines
from delosmq.wire.stomp.decoder import StompFrame
from delosmq.wire.stomp.encoder import relay_head

EXPIRES: Final = "expires"
REPLY_TO: Final = "reply-to"
SCHEDULED_DELAY: Final = "AMQ_SCHEDULED_DELAY"
SCHEDULED_TIMES: Final = ("AMQ_SCHEDULED_TIME", "_AMQ_SCHED_DELIVERY")
GROUP_IDS: Final = ("JMSXGroupID", "_AMQ_GROUP_ID")
GROUP_SEQUENCES: Final = ("JMSXGroupSeq", "_AMQ_GROUP_SEQUENCE")
DUPLICATE_ID: Final = "_AMQ_DUPL_ID"
LONGEST_ID: Final = 1_024
"""Characters of a group's or duplicate id. Each address remembers 20,000 of the latter."""
_BODY_KINDS: Final = {
    "text": TEXT_BODY,
    "bytes": BYTES_BODY,
    "map": MAP_BODY,
    "stream": STREAM_BODY,
    # It is not looked into here, and a client that sends it on need not be refused.
    "object": BYTES_BODY,
}
"""What ``amq-msg-type`` may say. Source: LegacyFrameTranslator of ActiveMQ Classic for the first two."""

_TAKEN_OFF: Final = NOT_RELAYED.union((SCHEDULED_DELAY, "AMQ_SCHEDULED_TIME"))


class SendHeaders:
    """What the headers of a SEND mean, receipt aside.

    Attributes:
        head: the header lines that travel on.
        special: it has more than the fields above say: `complete` each message, and heed ``transaction``.
        transaction: its name; None for none.
    """

    def __init__(self, target: StompTarget, head: bytes, *, body_kind: int, priority: int, durable: bool) -> None:
        self.target = target
        self.head = head
        self.body_kind = body_kind
        self.priority = priority
        self.durable = durable
        self.special: bool = False
        self.transaction: str | None = None
        self._expires_at_ms: int = 0
        self._due_at_ms: int = 0
        self._delay_ms: int = 0
        self._group_id: str = ""
        self._group_sequence: int = 0
        self._duplicate_id: bytes = b""

    def read_special(self, headers: dict[str, str]) -> None:
        """Reads times, group, duplicate id and transaction.

        Raises:
            PeerError: one of them is not what it must be.
        """
        self._expires_at_ms = read_time(headers, EXPIRES, "SEND")
        for name in SCHEDULED_TIMES:
            self._due_at_ms = self._due_at_ms or read_time(headers, name, "SEND")
        self._delay_ms = read_time(headers, SCHEDULED_DELAY, "SEND")
        for name in GROUP_IDS:
            self._group_id = self._group_id or headers.get(name, "")
        if len(self._group_id) > LONGEST_ID:
            raise header_wrong("JMSXGroupID", "SEND", self._group_id, f"at most {LONGEST_ID} characters long")
        for name in GROUP_SEQUENCES:
            self._group_sequence = self._group_sequence or read_number(headers, name, "SEND", INTEGERS)
        duplicate_id = headers.get(DUPLICATE_ID, "")
        if len(duplicate_id) > LONGEST_ID:
            raise header_wrong(DUPLICATE_ID, "SEND", duplicate_id, f"at most {LONGEST_ID} characters long")
        self._duplicate_id = duplicate_id.encode()
        self.transaction = headers.get(TRANSACTION)
        times = self._expires_at_ms or self._due_at_ms or self._delay_ms
        self.special = bool(times or self._group_id or self._duplicate_id) or self.transaction is not None

    def complete(self, message: Message, now: WallMs) -> None:
        """Puts what `special` stands for into a message."""
        message.expires_at_ms = self._expires_at_ms
        # As in Artemis a time counts more than a delay.
        message.due_at_ms = self._due_at_ms or (min(now + self._delay_ms, LATEST_MS) if self._delay_ms else 0)
        message.delay_ms = message.due_at_ms - now if self._delay_ms and not self._due_at_ms else 0
        message.group_id = self._group_id
        message.group_sequence = self._group_sequence
        message.duplicate_id = self._duplicate_id


def read_send(
    frame: StompFrame, target: StompTarget, destinations: StompDestinations, version: int, mark: tuple[str, str] | None
) -> SendHeaders:
    """Interprets a SEND.

    Args:
        mark: a header that every message of the connection gets, with its value.

    Raises:
        PeerError: a header is wrong, or asks for what there is not.
    """
    headers = frame.headers
    refuse_unsupported(headers, UNSUPPORTED_IN_SEND, "SEND")
    changed: dict[str, str] = {}
    reply_to = headers.get(REPLY_TO)
    if reply_to is not None:
        public = destinations.public_name(reply_to)
        if public != reply_to:
            changed[REPLY_TO] = public
    if target.temporary:
        own = destinations.own_name(target)
        if own:
            # Only the owner gets it, and it knows its destination by another name than the sender.
            changed[DESTINATION] = own
    if mark is not None:
        changed[mark[0]] = mark[1]
    if changed:
        head = relay_head(frame, version, _TAKEN_OFF.union(changed)) + encode_lines(list(changed.items()), version)
    else:
        head = relay_head(frame, version, _TAKEN_OFF)
    reading = SendHeaders(
        target,
        head,
        body_kind=_body_kind(headers),
        priority=read_priority(headers),
        durable=read_flag(headers, "persistent", "SEND"),
    )
    reading.read_special(headers)
    return reading


def _body_kind(headers: dict[str, str]) -> int:
    named = headers.get(MESSAGE_TYPE)
    if named is None:
        return BYTES_BODY if "content-length" in headers else TEXT_BODY
    kind = _BODY_KINDS.get(named.strip().lower())
    if kind is None:
        raise header_wrong(MESSAGE_TYPE, "SEND", named, "text, bytes, map or stream")
    return kind
