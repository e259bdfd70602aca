"""The sending half of a session: messages to the engine, and the answers to their senders.

A composite destination makes one message for each of its parts. A producer with a window gets a ProducerAck for each
message that it sends without waiting for an answer. Source: ManagedRegionBroker and ProducerBrokerExchange of ActiveMQ
Classic, ActiveMQMessageProducer of its client.
"""

from typing import Final

from delosmq.model.errors import BrokerError
from delosmq.model.ids import WallMs
from delosmq.model.message import HIGHEST_PRIORITY, Message
from delosmq.model.properties import TypedValue
from delosmq.model.reserved_names import CONNECTION_MARK
from delosmq.security.access import MANAGE, SEND
from delosmq.sessions.machine import SessionMachine
from delosmq.sessions.openwire.server import errors
from delosmq.sessions.openwire.server.connection_port import ConnectionPort
from delosmq.sessions.openwire.server.destinations import OpenWireDestinations, OpenWireTarget, has_owner
from delosmq.sessions.openwire.server.ids import check_bytes, check_id
from delosmq.sessions.openwire.server.transactions import OpenWireTransaction
from delosmq.sessions.parked_sends import Parked, ParkedSends
from delosmq.sessions.permissions import Permissions
from delosmq.wire.openwire.commands import MessageCommand, ProducerInfo
from delosmq.wire.openwire.heads import BODY_KINDS, PROTOCOL_TAGS, encode_head, measure, stored_body
from delosmq.wire.openwire.primitives import decode_map
from delosmq.wire.openwire.properties import drop_claims
from delosmq.wire.openwire.structures import Destination, ProducerId

SCHEDULED_DELAY: Final = "AMQ_SCHEDULED_DELAY"
SCHEDULED_TIME: Final = "_AMQ_SCHED_DELIVERY"
DUPLICATE_ID: Final = "_AMQ_DUPL_ID"
REPEATS: Final = ("AMQ_SCHEDULED_CRON", "AMQ_SCHEDULED_PERIOD", "AMQ_SCHEDULED_REPEAT")
"""Refused: sending once what should come again and again would be a lie."""
_SPECIAL: Final = (b"AMQ_SCHED", b"_AMQ_DUPL_ID")

_TARGETS_LIMIT: Final = 1_000
"""Destinations with checked rights, so that these are not looked up for each message: as many as one connection may
have producers. Then all are dropped."""
_LONGEST_KEPT: Final = 4_096
"""Characters of a destination; longer ones are decoded for each message."""
_LATEST_MS: Final = (1 << 63) - 1


class CopyOutcome:
    """The results of sending copies of a message to several destinations."""

    def __init__(self) -> None:
        self.failure: BrokerError | None = None


class ParkedMessage(Parked):
    """A message that waits for space.

    Args:
        message: None for one that the broker carries out itself.
        command: to be answered with it; None when a later part of the same message will be.
    """

    def __init__(
        self,
        message: Message | None,
        work: OpenWireTransaction | None,
        target: OpenWireTarget,
        *,
        command: MessageCommand | None,
        copies: CopyOutcome | None,
        owner: ConnectionPort,
    ) -> None:
        super().__init__(message, work, queue_name=target.queue_name, routing=target.routing)
        if command is not None:
            # Its message has them encoded; decoded they would take many times the bytes that waiting messages count.
            command.broker_path = None
            command.cluster = None
        self._command = command
        self._copies = copies
        self._owner = owner

    def answer(self) -> None:
        if self._command is None:
            return
        failure = None if self._copies is None else self._copies.failure
        if failure is None:
            self._owner.message_sent(self._command)
        else:
            self._refuse(self._command, failure)

    def refuse(self, error: BrokerError) -> None:
        if self._command is not None:
            self._refuse(self._command, error)
        elif self._copies is not None:
            self._copies.failure = error

    def _refuse(self, command: MessageCommand, error: BrokerError) -> None:
        if self.work is not None and not command.response_required:
            # Its end may wait behind already, when it is not found by its id any more.
            self.work.transaction.set_rollback_only(error)
        self._owner.refused(command, error)


class Producers:
    """All producers of one connection.

    Attributes:
        audited: the connection may resend after a failover, so that doubles are told by producer and number.
    """

    def __init__(
        self,
        machine: SessionMachine,
        parked_sends: ParkedSends,
        *,
        destinations: OpenWireDestinations,
        permissions: Permissions,
        version: int,
    ) -> None:
        self._broker = machine.services.broker
        self._management = machine.services.management
        self._parked_sends = parked_sends
        self._destinations = destinations
        self._permissions = permissions
        self._version = version
        self._tag: str = PROTOCOL_TAGS[version]
        self._connection_id = machine.peer.connection_id
        self._limit: int = machine.acceptor.max_subscriptions
        self._producers: dict[str, ProducerInfo] = {}
        self._targets: dict[str, list[OpenWireTarget]] = {}
        self._target_count: int = 0
        self.audited: bool = False
        self.mark: str = ""

    def add(self, info: ProducerInfo) -> bool:
        """Handles a ProducerInfo. False when it is there already.

        Raises:
            BrokerError: its destination can't be used, or there are too many.
        """
        producer_id = info.producer_id
        if producer_id is None:
            raise errors.field_missing("producerId", "a ProducerInfo")
        key = producer_id.key()
        if key in self._producers:
            return False
        if len(self._producers) >= self._limit:
            raise errors.too_many("producers", self._limit)
        destination = info.destination
        if destination is not None:
            for target in self._targets_of(destination):
                if target.temporary and target.address not in self._broker.addresses:
                    raise errors.temporary_gone(target.destination.name)
        info.broker_path = None  # nothing that lasts as long as the producer
        self._producers[key] = info
        return True

    def remove(self, producer_id: ProducerId) -> ProducerInfo | None:
        """Handles the RemoveInfo of a producer; None when there is none."""
        return self._producers.pop(producer_id.key(), None)

    def remove_session(self, connection_id: str, session_id: int) -> list[ProducerInfo]:
        """Ends the producers of a session; gives them."""
        found = [
            key
            for key, info in self._producers.items()
            if info.producer_id is not None
            and info.producer_id.session_id == session_id
            and info.producer_id.connection_id == connection_id
        ]
        return [self._producers.pop(key) for key in found]

    def remove_all(self) -> list[ProducerInfo]:
        """Ends all."""
        left = list(self._producers.values())
        self._producers.clear()
        return left

    def window_of(self, producer_id: ProducerId | None) -> int:
        """The window of a producer in bytes; 0 for none."""
        info = None if producer_id is None else self._producers.get(producer_id.key())
        return 0 if info is None else info.window_size

    def send(
        self, command: MessageCommand, work: OpenWireTransaction | None, connection: ConnectionPort, now: WallMs
    ) -> None:
        """Handles a message; ``connection`` is told once all its parts are through.

        Raises:
            BrokerError: it can't be sent.
        """
        destination = command.destination
        if destination is None:
            raise errors.field_missing("destination", "a message")
        targets = self._targets_of(destination)
        drop_claims(command, self._version)
        many = len(targets) > 1
        copies = CopyOutcome() if many else None
        seen: set[str] = set()
        parked_sends = self._parked_sends
        for index, target in enumerate(targets):
            if target.temporary and not has_owner(target, self._broker):
                raise errors.temporary_gone(target.destination.name)
            if many:
                command.original_destination = destination
                command.destination = target.destination
                measure(command, self._version)
            message = self._message(command, target, now)
            if many:
                if message.duplicate_id and target.address in seen:
                    # An address knows ids, and not which of its queues a copy was for.
                    message.duplicate_id += f"#{target.routing}:{target.queue_name}".encode()
                seen.add(target.address)
            last = index == len(targets) - 1
            if target.management:
                answered = command if last else None
                entry = ParkedMessage(None, None, target, command=answered, copies=copies, owner=connection)
                parked_sends.answer_call(entry, self._management.begin(message, self._permissions.login()), work)
            elif parked_sends.parked_bytes or not parked_sends.try_send(
                message, work, target.queue_name, target.routing
            ):
                answered = command if last else None
                parked_sends.park(
                    ParkedMessage(message, work, target, command=answered, copies=copies, owner=connection)
                )
            elif last:
                connection.message_sent(command)

    def _message(self, command: MessageCommand, target: OpenWireTarget, now: WallMs) -> Message:
        priority = command.priority
        message = Message(
            target.address,
            self._tag,
            encode_head(command, self._version, now),
            stored_body(command),
            body_kind=BODY_KINDS[command.code],
            priority=min(max(priority, 0), HIGHEST_PRIORITY),
            durable=command.persistent,
            timestamp_ms=WallMs(command.timestamp if command.timestamp > 0 else now),
            expires_at_ms=max(command.expiration, 0),
            user=self._permissions.user,
        )
        message.connection_id = self._connection_id
        group = command.group_id
        if group:
            check_id("JMSXGroupID", group)
            message.group_id = group
            message.group_sequence = command.group_sequence
        properties = command.marshalled_properties
        if properties is not None and any(mark in properties for mark in _SPECIAL):
            _read_special(message, decode_map(properties), now)
        if self.audited and message.durable and not message.duplicate_id:
            message_id = command.message_id
            if message_id is not None:
                check_id("message id", message_id.key())
                message.duplicate_id = message_id.key().encode()
        if self.mark:
            message.annotations = {CONNECTION_MARK: self.mark}
        return message

    def rights_changed(self) -> None:
        """Whether the user may send is asked again."""
        self._targets.clear()
        self._target_count = 0

    def _targets_of(self, destination: Destination) -> list[OpenWireTarget]:
        key = destination.qualified_name()
        known = self._targets.get(key)
        targets = self._destinations.targets_of(destination) if known is None else known
        if known is None:
            for target in targets:
                self._destinations.check_plain(target)
                target.management = target.address == self._management.address and not target.queue_name
        for target in targets:
            if not target.create_checked:
                self._check(target)
        if known is None and len(key) <= _LONGEST_KEPT:
            # Only what the user may send to is kept, or any client could fill the memory with names.
            self._target_count += len(targets)
            if self._target_count > _TARGETS_LIMIT:
                self._targets.clear()
                self._target_count = len(targets)
            self._targets[key] = targets
        return targets

    def _check(self, target: OpenWireTarget) -> None:
        permissions = self._permissions
        address = target.address
        if target.management:
            permissions.require(address, MANAGE)
            target.create_checked = True
            return
        if not target.send_checked:
            if not target.temporary:
                permissions.require_use(address, target.queue_name, SEND)
            target.send_checked = True
            target.create_checked = target.temporary or permissions.may_create(address)
        if not target.create_checked:
            permissions.require_creation(address, target.queue_name, target.routing, for_subscription=False)


def _read_special(message: Message, properties: dict[str, TypedValue], now: WallMs) -> None:
    """What properties ask of the broker. Only whole numbers count as times, as in Artemis."""
    for name in REPEATS:
        wish = properties.get(name)
        # 0 and "" are how clients say that it comes once.
        if wish is not None and wish.value not in (None, 0, "", "0"):
            raise errors.repetition_refused(name)
    due = _whole(properties.get(SCHEDULED_TIME))
    delay = _whole(properties.get(SCHEDULED_DELAY))
    # A time counts more than a delay.
    message.due_at_ms = due or (min(now + delay, _LATEST_MS) if delay else 0)
    message.delay_ms = message.due_at_ms - now if delay and not due else 0
    duplicate = properties.get(DUPLICATE_ID)
    if duplicate is not None:
        value = duplicate.value
        if isinstance(value, bytes):
            check_bytes(DUPLICATE_ID, value)
            message.duplicate_id = value
        else:
            text = str(value)
            check_id(DUPLICATE_ID, text)
            message.duplicate_id = text.encode()


def _whole(typed: TypedValue | None) -> int:
    value = None if typed is None else typed.value
    return max(value, 0) if isinstance(value, int) and not isinstance(value, bool) else 0
