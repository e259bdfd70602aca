"""SEND, and the order of replies.

STOMP has no credit for producers. When an address is BLOCKED, this SEND and all later ones of the connection are
parked, and with them the receipts of later frames; those frames themselves are handled. A parked SEND that is refused
in the end ends the connection, as any refused frame does.
"""

from typing import Final

from delosmq.engine.api import BulkAck, JobWaiter, TransactionError
from delosmq.model.errors import BrokerError
from delosmq.model.ids import WallMs
from delosmq.model.message import ANY_ROUTING, Message
from delosmq.security.access import MANAGE, SEND
from delosmq.sessions.machine import SessionMachine
from delosmq.sessions.parked_sends import Parked, ParkedSends
from delosmq.sessions.permissions import Permissions
from delosmq.sessions.stomp.server.destinations import StompDestinations, StompTarget
from delosmq.sessions.stomp.server.errors import header_missing
from delosmq.sessions.stomp.server.headers import read_routing
from delosmq.sessions.stomp.server.send_headers import SendHeaders, read_send
from delosmq.sessions.stomp.server.transactions import StompTransaction, StompTransactions
from delosmq.wire.stomp.conversion import DESTINATION, DESTINATION_TYPE, PROTOCOL_TAGS
from delosmq.wire.stomp.decoder import NO_PATTERN, StompFrame
from delosmq.wire.stomp.heads import escape
from delosmq.wire.stomp.versions import V10

_TARGETS_LIMIT: Final = 1_000


class ParkedReply(Parked):
    """A frame that was handled, or goes on in slices; its receipt ("" for none) must wait its turn."""

    def __init__(
        self,
        producer: "Producer",
        receipt: str,
        message: Message | None = None,
        work: StompTransaction | None = None,
        *,
        queue_name: str = "",
        routing: int = ANY_ROUTING,
    ) -> None:
        super().__init__(message, work, queue_name=queue_name, routing=routing)
        self.size_bytes += len(receipt)
        self._producer = producer
        self._receipt = receipt

    def ended(self) -> None:
        super().ended()
        self._producer.changed_state()

    def answer(self) -> None:
        if self._receipt:
            self._producer.write_receipt(self._receipt)

    def refuse(self, error: BrokerError) -> None:
        self._producer.refuse(error, self._receipt)


class ParkedSend(ParkedReply):
    """A SEND that waits for space."""

    def __init__(
        self, producer: "Producer", receipt: str, message: Message, work: StompTransaction | None, target: StompTarget
    ) -> None:
        super().__init__(producer, receipt, message, work, queue_name=target.queue_name, routing=target.routing)
        self._target = target

    def is_void(self) -> bool:
        return self._producer.is_gone(self._target)


class ParkedCommit(ParkedReply):
    """A COMMIT, which may have to wait for SENDs of its transaction."""

    def __init__(self, producer: "Producer", receipt: str, work: StompTransaction) -> None:
        super().__init__(producer, receipt, None, work)
        self._ending = work

    def carry_out(self, waiter: JobWaiter) -> bool:
        try:
            return self._producer.carry_out(self._ending, waiter)
        except TransactionError:
            self.ended()
            raise

    def ended(self) -> None:
        super().ended()
        self._producer.transaction_ended(self._ending)


class Producer:
    """The sending half of a session."""

    def __init__(
        self,
        machine: SessionMachine,
        parked_sends: ParkedSends,
        *,
        destinations: StompDestinations,
        transactions: StompTransactions,
    ) -> None:
        self._machine = machine
        self._broker = machine.services.broker
        self._management = machine.services.management
        self._outbox = machine.outbox
        self._parked_sends = parked_sends
        self._destinations = destinations
        self._transactions = transactions
        self._version: int = V10
        self._tag: str = PROTOCOL_TAGS[V10]
        self._connection_id = machine.peer.connection_id
        self._user: str = ""
        # The last SEND read, for all that follow with the same pattern.
        self._reading: SendHeaders | None = None
        self._pattern: int = NO_PATTERN
        self._permissions: Permissions | None = None
        self._targets: dict[str, StompTarget] = {}
        self._mark: tuple[str, str] | None = None

    def permit(self, permissions: Permissions, version: int) -> None:
        """Names the user and the version of the protocol; before the first SEND."""
        self._version = version
        self._tag = PROTOCOL_TAGS[version]
        self._permissions = permissions
        self._user = permissions.user

    def mark(self, name: str, value: str) -> None:
        """Every message from now on carries this header."""
        self._mark = (name, value)
        self._reading = None

    def send(self, frame: StompFrame, now: WallMs) -> None:
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
        message.connection_id = self._connection_id
        work: StompTransaction | None = None
        if reading.special:
            reading.complete(message, now)
            if reading.transaction is not None:
                work = self._transactions.named(reading.transaction, "SEND")
        receipt = frame.headers.get("receipt", "")
        parked_sends = self._parked_sends
        permissions = self._permissions
        if reading.special and target.management and permissions is not None:
            call = self._management.begin(message, permissions.login())
            parked_sends.answer_call(ParkedReply(self, receipt), call, work)
        elif parked_sends.parked_bytes or not (
            (target.temporary and self.is_gone(target))
            or parked_sends.try_send(message, work, target.queue_name, target.routing)
        ):
            parked_sends.park(ParkedSend(self, receipt, message, work, target))
        elif receipt:
            self.write_receipt(receipt)

    def _read(self, frame: StompFrame) -> SendHeaders:
        target = self._target(frame.headers)
        if not target.create_checked:
            self._check(target)
        reading = read_send(frame, target, self._destinations, self._version, self._mark)
        reading.special = reading.special or target.management
        return reading

    def changed_state(self) -> None:
        """A frame other than SEND changed or read durable state: replies depend on all that is recorded now."""
        self._parked_sends.position = self._broker.log.position

    def receipt(self, receipt: str) -> None:
        """Answers a frame that was handled, after all earlier ones; "" asks for no answer."""
        if not receipt:
            return
        if self._parked_sends.parked_bytes:
            self._parked_sends.park(ParkedReply(self, receipt))
        else:
            self.write_receipt(receipt)

    # -- transactions ------------------------------------------------------------------------------------------------

    def commit(self, work: StompTransaction, receipt: str) -> None:
        """Handles COMMIT of a transaction for which nothing more comes, and answers it.

        Raises:
            BrokerError: it can't be committed and was rolled back.
        """
        self._parked_sends.end(ParkedCommit(self, receipt, work))

    def abort(self, work: StompTransaction, receipt: str) -> None:
        """Handles ABORT likewise."""
        self._parked_sends.drop([work])
        self._transactions.roll_back(work)
        self.changed_state()
        self.receipt(receipt)

    def answer_after(self, under_way: BulkAck, receipt: str) -> None:
        """Answers a cumulative ACK or NACK that goes on in slices; nothing is read till then."""
        self._parked_sends.answer_after(ParkedReply(self, receipt), under_way)

    # -- for what was parked -----------------------------------------------------------------------------------------

    def is_gone(self, target: StompTarget) -> bool:
        """Whether the owner of a temporary destination has left: as on a topic without subscriptions."""
        return target.temporary and target.address not in self._broker.addresses

    def carry_out(self, work: StompTransaction, waiter: JobWaiter) -> bool:
        """Commits; see `EngineTransactions.commit`."""
        return self._broker.transactions.commit(work.transaction, waiter)

    def transaction_ended(self, work: StompTransaction) -> None:
        """A commit is through, or was rolled back instead."""
        self._transactions.ended(work)
        self.changed_state()

    def refuse(self, error: BrokerError, receipt: str) -> None:
        """Refuses a parked frame that failed."""
        self._machine.fail_soon(error, receipt)

    def write_receipt(self, receipt: str) -> None:
        """Writes a RECEIPT, which depends on all that was recorded so far."""
        # Written out: one of the four frames of every confirmed message. Letters and digits need no escapes.
        receipt_id = receipt if receipt.isalnum() else escape(receipt, self._version)
        frame = f"RECEIPT\nreceipt-id:{receipt_id}\n\n\0"
        self._outbox.reply(self._parked_sends.position, frame.encode())

    def rights_changed(self) -> None:
        """Whether the user may send is asked again."""
        self._targets.clear()
        self._reading = None

    def _target(self, headers: dict[str, str]) -> StompTarget:
        destination = headers.get(DESTINATION)
        if destination is None:
            raise header_missing(DESTINATION, "SEND")
        if DESTINATION_TYPE in headers:
            routing = read_routing(headers, DESTINATION_TYPE, "SEND")
            return self._decode(destination, routing)
        target = self._targets.get(destination)
        if target is None:
            target = self._decode(destination, ANY_ROUTING)
            if len(self._targets) >= _TARGETS_LIMIT:
                self._targets.clear()
            self._targets[destination] = target
        return target

    def _decode(self, destination: str, routing: int) -> StompTarget:
        target = self._destinations.decode(destination, routing, "SEND")
        target.management = target.address == self._management.address and not target.queue_name
        return target

    def _check(self, target: StompTarget) -> None:
        permissions = self._permissions
        if permissions is None:
            return
        address = target.address
        if target.management:
            permissions.require(address, MANAGE)
            target.create_checked = True
            return
        if not target.send_checked:
            permissions.require(address, SEND)
            target.send_checked = True
            target.create_checked = target.temporary or permissions.may_create(address)
        if not target.create_checked:
            permissions.require_creation(address, target.queue_name, target.routing, for_subscription=False)
