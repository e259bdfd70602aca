"""SEND, and the order of replies: parking what a full address does not take yet.

STOMP has no credit for producers. When an address is BLOCKED, this SEND and all later ones of the connection are
parked in order, and with them the receipts of later frames; those frames themselves are handled. Past a limit in
bytes the connection is not read any more.
"""

from collections import deque
from typing import Final

from delosmq.engine.address import SpaceWaiter
from delosmq.engine.broker import Broker
from delosmq.engine.outcome import BLOCKED
from delosmq.model.errors import LimitError, MisuseError, StorageError
from delosmq.model.ids import NOTHING_DURABLE, Position, WallMs
from delosmq.model.message import ANY_ROUTING, BYTES_BODY, TEXT_BODY, Message
from delosmq.security.access import SEND
from delosmq.sessions.outbox import Outbox
from delosmq.sessions.stomp.destinations import Destinations, Target, refuse_temporary
from delosmq.sessions.stomp.headers import (
    UNSUPPORTED_IN_SEND,
    read_flag,
    read_priority,
    read_routing,
    refuse_unsupported,
)
from delosmq.sessions.stomp.owner import SessionOwner
from delosmq.sessions.stomp.permissions import Permissions
from delosmq.sessions.stomp.refusals import header_missing
from delosmq.wire.stomp.conversion import DESTINATION, DESTINATION_TYPE, PROTOCOL_TAGS
from delosmq.wire.stomp.encoder import escape, relay_head
from delosmq.wire.stomp.frames import NO_PATTERN, Frame

# Headers of a SEND that concern the way to the broker, that it keeps in fields of its own, or that a MESSAGE gets from
# the broker alone.
NOT_RELAYED: Final = frozenset(
    (
        DESTINATION_TYPE,
        "receipt",
        "content-length",
        "transaction",
        "persistent",
        "priority",
        "timestamp",
        "expires",
        "message-id",
        "subscription",
        "ack",
        "redelivered",
    )
)
_TARGETS_LIMIT: Final = 1_000
# What an entry takes beside its message and the text of its receipt.
_ENTRY_BYTES: Final = 256


class Reading:
    """What the headers of a SEND mean, receipt aside.

    Attributes:
        head: the header lines that travel on.
    """

    def __init__(self, target: Target, head: bytes, *, body_kind: int, priority: int, durable: bool) -> None:
        self.target = target
        self.head = head
        self.body_kind = body_kind
        self.priority = priority
        self.durable = durable


class Parked:
    """A frame whose reply must wait its turn.

    Attributes:
        message: what is still to be sent; None when the frame was handled and only its receipt waits.
        receipt: "" for none.
        last: nothing follows: the peer wants to go.
    """

    def __init__(self, message: Message | None, target: Target | None, receipt: str) -> None:
        self.message = message
        self.target = target
        self.receipt = receipt
        self.last: bool = False

    @property
    def size_bytes(self) -> int:
        """What it counts against the limit."""
        return _ENTRY_BYTES + len(self.receipt) + (0 if self.message is None else self.message.charge_bytes)


class Producer(SpaceWaiter):
    """The sending half of a session.

    Attributes:
        parked_bytes: what waits for space.
        position: everything this connection's frames recorded so far is in batches up to here.
    """

    def __init__(
        self, owner: SessionOwner, broker: Broker, outbox: Outbox, *, destinations: Destinations, version: int
    ) -> None:
        self._owner = owner
        self._broker = broker
        self._outbox = outbox
        self._destinations = destinations
        self._version = version
        self._tag: str = PROTOCOL_TAGS[version]
        self._user: str = ""
        # The last SEND read, for all that follow with the same pattern.
        self._reading: Reading | None = None
        self._pattern: int = NO_PATTERN
        self._permissions: Permissions | None = None
        self._targets: dict[str, Target] = {}
        self._parked: deque[Parked] = deque()
        self._waits_for: str = ""
        self.parked_bytes: int = 0
        self.position: Position = NOTHING_DURABLE

    def permit(self, permissions: Permissions) -> None:
        """Names the user; before the first SEND."""
        self._permissions = permissions
        self._user = permissions.user

    def send(self, frame: Frame, now: WallMs) -> None:
        """Handles a SEND."""
        reading = self._reading
        if reading is None or frame.pattern == NO_PATTERN or frame.pattern != self._pattern:
            reading = self._read(frame)
            self._reading = reading
            self._pattern = frame.pattern
        elif not reading.target.create_checked:
            self._check(reading.target)
        target = reading.target
        message = Message(
            target.address,
            self._tag,
            reading.head,
            frame.body,
            body_kind=reading.body_kind,
            priority=reading.priority,
            durable=reading.durable,
            timestamp_ms=now,
            user=self._user,
        )
        receipt = frame.headers.get("receipt", "")
        if self._parked:
            self._park(Parked(message, target, receipt))
        elif self._try_send(message, target):
            if receipt:
                self._write_receipt(receipt)
        else:
            self._park(Parked(message, target, receipt))
            self._wait(target)

    def _read(self, frame: Frame) -> Reading:
        headers = frame.headers
        target = self._target(headers)
        refuse_unsupported(headers, UNSUPPORTED_IN_SEND, "SEND")
        reply_to = headers.get("reply-to")
        if reply_to is not None:
            refuse_temporary("reply-to", reply_to)
        if not target.create_checked:
            self._check(target)
        return Reading(
            target,
            relay_head(frame, self._version, NOT_RELAYED),
            body_kind=BYTES_BODY if "content-length" in headers else TEXT_BODY,
            priority=read_priority(headers),
            durable=read_flag(headers, "persistent", "SEND"),
        )

    def changed_state(self) -> None:
        """A frame other than SEND changed or read durable state: replies depend on all that is recorded now."""
        self.position = self._broker.log.position

    def receipt(self, receipt: str) -> None:
        """Answers a frame that was handled, after all earlier ones."""
        if self._parked:
            self._park(Parked(None, None, receipt))
        else:
            self._write_receipt(receipt)

    def finish(self, receipt: str) -> None:
        """Answers the last frame; `SessionOwner.all_answered` follows, at once if nothing is parked."""
        if self._parked:
            last = Parked(None, None, receipt)
            last.last = True
            self._park(last)
            return
        if receipt:
            self._write_receipt(receipt)
        self._owner.all_answered()

    def close(self) -> None:
        """Forgets what is parked: nobody was told that it arrived."""
        if self._waits_for:
            self._broker.cancel_wait(self._waits_for, self)
            self._waits_for = ""
        self._parked.clear()
        self.parked_bytes = 0

    def on_space(self) -> None:
        self._waits_for = ""
        parked = self._parked
        while parked:
            entry = parked[0]
            if entry.message is not None and entry.target is not None:
                try:
                    sent = self._try_send(entry.message, entry.target)
                except (LimitError, MisuseError, StorageError) as error:
                    self.close()
                    self._owner.send_failed(error, entry.receipt)
                    return
                if not sent:
                    self._wait(entry.target)
                    break
            parked.popleft()
            self.parked_bytes -= entry.size_bytes
            if entry.receipt:
                self._write_receipt(entry.receipt)
            if entry.last:
                self._owner.all_answered()
                return
        self._owner.parked_changed()

    def _try_send(self, message: Message, target: Target) -> bool:
        log = self._broker.log
        before = log.position
        outcome = self._broker.send(message, queue_name=target.queue_name, routing=target.routing)
        if log.position != before:
            self.position = log.position
        return outcome != BLOCKED

    def _wait(self, target: Target) -> None:
        self._waits_for = target.address
        self._broker.wait_for_space(target.address, self)

    def _park(self, entry: Parked) -> None:
        self._parked.append(entry)
        self.parked_bytes += entry.size_bytes

    def _write_receipt(self, receipt: str) -> None:
        # Written out: one of the four frames of every confirmed message. Letters and digits need no escapes.
        receipt_id = receipt if receipt.isalnum() else escape(receipt, self._version)
        frame = f"RECEIPT\nreceipt-id:{receipt_id}\n\n\0"
        self._outbox.reply(self.position, frame.encode())

    def _target(self, headers: dict[str, str]) -> Target:
        destination = headers.get(DESTINATION)
        if destination is None:
            raise header_missing(DESTINATION, "SEND")
        if DESTINATION_TYPE in headers:
            routing = read_routing(headers, DESTINATION_TYPE, "SEND")
            return self._destinations.decode(destination, routing, "SEND")
        target = self._targets.get(destination)
        if target is None:
            target = self._destinations.decode(destination, ANY_ROUTING, "SEND")
            if len(self._targets) >= _TARGETS_LIMIT:
                self._targets.clear()
            self._targets[destination] = target
        return target

    def _check(self, target: Target) -> None:
        permissions = self._permissions
        if permissions is None:
            return
        address = target.address
        if not target.send_checked:
            permissions.require(address, SEND)
            target.send_checked = True
            target.create_checked = permissions.may_create(address)
        if not target.create_checked:
            permissions.require_creation(address, target.queue_name, target.routing, for_subscription=False)
