"""SEND, and the order of replies: parking what a full address does not take yet.

STOMP has no credit for producers. When an address is BLOCKED, this SEND and all later ones of the connection are
parked in order, and with them the receipts of later frames; those frames themselves are handled. Past a limit in
bytes the connection is not read any more.

A COMMIT waits for the parked SENDs of its own transaction, and for no others: they may need the room that it makes.
While one goes on in slices the connection is not read.
"""

from collections import deque
from typing import Final

from delosmq.engine.address import SpaceWaiter
from delosmq.engine.broker import Broker
from delosmq.engine.outcome import BLOCKED, DUPLICATE
from delosmq.engine.transactions import Transaction, TransactionError, TransactionWaiter
from delosmq.model.errors import BrokerError, LimitError, MisuseError, StorageError
from delosmq.model.ids import NOTHING_DURABLE, Position, WallMs
from delosmq.model.message import ANY_ROUTING, Message
from delosmq.security.access import SEND
from delosmq.sessions.outbox import Outbox
from delosmq.sessions.stomp.destinations import Destinations, Target
from delosmq.sessions.stomp.headers import read_routing
from delosmq.sessions.stomp.owner import SessionOwner
from delosmq.sessions.stomp.permissions import Permissions
from delosmq.sessions.stomp.reading import Reading, read_send
from delosmq.sessions.stomp.refusals import header_missing
from delosmq.sessions.stomp.transactions import StompTransaction, Transactions
from delosmq.wire.stomp.conversion import DESTINATION, DESTINATION_TYPE, PROTOCOL_TAGS
from delosmq.wire.stomp.encoder import escape
from delosmq.wire.stomp.frames import NO_PATTERN, Frame

_TARGETS_LIMIT: Final = 1_000
# What an entry takes beside its message and the text of its receipt.
_ENTRY_BYTES: Final = 256
# More than may ever be parked: nothing is read while such an entry is there.
_UNREAD_BYTES: Final = 1 << 40


class CommitWaiter(TransactionWaiter):
    """Waits for a commit that goes on in slices."""

    def __init__(self, producer: "Producer", entry: "Parked") -> None:
        self.producer: Producer | None = producer
        self._entry = entry

    def on_ended(self, error: BrokerError | None) -> None:
        if self.producer is not None:
            self.producer.commit_ended(self._entry, error)


class Parked:
    """A frame whose reply must wait its turn.

    Attributes:
        message: what is still to be sent; None when the frame was handled and only its receipt waits.
        receipt: "" for none.
        transaction: that of the message; without one, what is to be committed.
        waiter: of its commit, once that goes on.
        failure: why that was rolled back.
        last: nothing follows: the peer wants to go.
        size_bytes: what it counts against the limit.
    """

    def __init__(
        self, message: Message | None, target: Target | None, receipt: str, transaction: StompTransaction | None = None
    ) -> None:
        self.message = message
        self.target = target
        self.receipt = receipt
        self.transaction = transaction
        self.waiter: CommitWaiter | None = None
        self.failure: BrokerError | None = None
        self.last: bool = False
        self.size_bytes: int = _ENTRY_BYTES + len(receipt) + (0 if message is None else message.charge_bytes)


class Producer(SpaceWaiter):
    """The sending half of a session.

    Attributes:
        parked_bytes: what waits for space.
        position: everything this connection's frames recorded so far is in batches up to here.
    """

    def __init__(
        self,
        owner: SessionOwner,
        broker: Broker,
        outbox: Outbox,
        *,
        destinations: Destinations,
        transactions: Transactions,
        version: int,
        connection_id: str,
    ) -> None:
        self._owner = owner
        self._broker = broker
        self._outbox = outbox
        self._destinations = destinations
        self._transactions = transactions
        self._version = version
        self._tag: str = PROTOCOL_TAGS[version]
        self._connection_id = connection_id
        self._user: str = ""
        # The last SEND read, for all that follow with the same pattern.
        self._reading: Reading | None = None
        self._pattern: int = NO_PATTERN
        self._permissions: Permissions | None = None
        self._targets: dict[str, Target] = {}
        self._parked: deque[Parked] = deque()
        self._waits_for: str = ""
        self._mark: tuple[str, str] | None = None
        self._ended: list[Parked] = []
        self._commit_due: bool = False
        self.parked_bytes: int = 0
        self.position: Position = NOTHING_DURABLE

    def permit(self, permissions: Permissions) -> None:
        """Names the user; before the first SEND."""
        self._permissions = permissions
        self._user = permissions.user

    def mark(self, name: str, value: str) -> None:
        """Every message from now on carries this header."""
        self._mark = (name, value)
        self._reading = None

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
        message.connection_id = self._connection_id
        transaction: StompTransaction | None = None
        if reading.special:
            reading.complete(message, now)
            if reading.transaction is not None:
                transaction = self._transactions.named(reading.transaction, "SEND")
        receipt = frame.headers.get("receipt", "")
        if self._parked:
            self._park(Parked(message, target, receipt, transaction))
        elif self._try_send(message, target, transaction):
            if receipt:
                self._write_receipt(receipt)
        else:
            self._park(Parked(message, target, receipt, transaction))
            self._wait(target)

    def _read(self, frame: Frame) -> Reading:
        target = self._target(frame.headers)
        if not target.create_checked:
            self._check(target)
        return read_send(frame, target, self._destinations, self._version, self._mark)

    def changed_state(self) -> None:
        """A frame other than SEND changed or read durable state: replies depend on all that is recorded now."""
        self.position = self._broker.log.position

    def receipt(self, receipt: str) -> None:
        """Answers a frame that was handled, after all earlier ones; "" asks for no answer."""
        if not receipt:
            return
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

    # -- transactions ------------------------------------------------------------------------------------------------

    def commit(self, transaction: StompTransaction, receipt: str) -> None:
        """Handles COMMIT of a transaction for which nothing more comes, and answers it.

        Raises:
            BrokerError: it can't be committed and was rolled back.
        """
        entry = Parked(None, None, receipt, transaction)
        if transaction.parked_count:
            self._park(entry)
        elif self._carry_out(entry):
            self.receipt(receipt)
        else:
            self._park(entry)

    def abort(self, transaction: StompTransaction, receipt: str) -> None:
        """Handles ABORT likewise."""
        self.forget([transaction])
        self._transactions.roll_back(transaction)
        self.changed_state()
        self.receipt(receipt)

    def forget(self, transactions: list[StompTransaction]) -> None:
        """SENDs of these are not sent any more, if they are parked."""
        if not any(transaction.parked_count for transaction in transactions):
            return
        for entry in self._parked:
            if entry.message is not None and entry.transaction in transactions:
                self._weigh(entry, entry.size_bytes - entry.message.charge_bytes)
                entry.message = None
                entry.transaction = None
        for transaction in transactions:
            transaction.parked_count = 0
        if self._parked[0].message is None:
            if self._waits_for:
                self._broker.cancel_wait(self._waits_for, self)
            self._drain(may_commit=True)

    def _carry_out(self, entry: Parked) -> bool:
        """Commits what an entry asks for. False when that goes on in slices."""
        transaction = entry.transaction
        assert transaction is not None  # whoever made the entry gave it one
        waiter = CommitWaiter(self, entry)
        try:
            done = self._broker.commit(transaction.work, waiter)
        except TransactionError:
            entry.transaction = None
            self._transactions.ended(transaction)
            raise
        if done:
            self._finish_commit(entry)
            return True
        transaction.running = True
        entry.waiter = waiter
        self._weigh(entry, _UNREAD_BYTES)
        return False

    def _finish_commit(self, entry: Parked) -> None:
        transaction = entry.transaction
        if transaction is not None:
            entry.transaction = None
            self._transactions.ended(transaction)
        self.changed_state()

    def commit_ended(self, entry: Parked, error: BrokerError | None) -> None:
        """Told by the engine, which must not be called from here."""
        entry.failure = error
        self._ended.append(entry)
        self._owner.commit_due()

    def go_on(self) -> None:
        """Answers commits that have ended meanwhile, and what waited behind them."""
        ended = self._ended
        if not ended and not self._commit_due:
            return
        self._ended = []
        self._commit_due = False
        for entry in ended:
            entry.waiter = None
            if entry.failure is not None:
                self._finish_commit(entry)
                self._owner.send_failed(entry.failure, entry.receipt)
                return
            self._finish_commit(entry)
            self._weigh(entry, _ENTRY_BYTES)
        if not self._waits_for:
            self._drain(may_commit=True)

    # -- parking -----------------------------------------------------------------------------------------------------

    def close(self) -> list[StompTransaction]:
        """Forgets what is parked: nobody was told that it arrived. Gives the transactions that nobody ends now."""
        if self._waits_for:
            self._broker.cancel_wait(self._waits_for, self)
            self._waits_for = ""
        left: list[StompTransaction] = []
        for entry in self._parked:
            if entry.waiter is not None:
                entry.waiter.producer = None  # it will be committed, and nobody told
            if entry.message is None and entry.transaction is not None:
                left.append(entry.transaction)
        self._parked.clear()
        self._ended.clear()
        self.parked_bytes = 0
        return left

    def on_space(self) -> None:
        # In the midst of a tick that would not go on with the work of a commit.
        self._drain(may_commit=False)

    def _drain(self, *, may_commit: bool) -> None:
        self._waits_for = ""
        parked = self._parked
        while parked:
            entry = parked[0]
            try:
                if not self._handle(entry, may_commit):
                    break
            except (LimitError, MisuseError, StorageError, TransactionError) as error:
                self._owner.send_failed(error, entry.receipt)
                return
            parked.popleft()
            self.parked_bytes -= entry.size_bytes
            if entry.receipt:
                self._write_receipt(entry.receipt)
            if entry.last:
                self._owner.all_answered()
                return
        self._owner.parked_changed()

    def _handle(self, entry: Parked, may_commit: bool) -> bool:
        """What an entry still asks for. False when it has to wait."""
        transaction = entry.transaction
        if entry.message is None or entry.target is None:
            if transaction is None or entry.waiter is not None:
                return entry.waiter is None
            if may_commit:
                return self._carry_out(entry)
            self._commit_due = True
            self._owner.commit_due()
            return False
        if not self._try_send(entry.message, entry.target, transaction):
            self._wait(entry.target)
            return False
        if transaction is not None:
            transaction.parked_count -= 1
        return True

    def _try_send(self, message: Message, target: Target, transaction: StompTransaction | None) -> bool:
        if target.temporary and target.address not in self._broker.addresses:
            return True  # its owner has gone: as on a topic without subscriptions
        log = self._broker.log
        before = log.position
        work: Transaction | None = None if transaction is None else transaction.work
        outcome = self._broker.send(message, queue_name=target.queue_name, routing=target.routing, transaction=work)
        if outcome >= BLOCKED:
            if outcome != DUPLICATE:
                return False
            # What is there already may not be synced yet.
            self.position = log.position
        elif log.position != before:
            self.position = log.position
        return True

    def _wait(self, target: Target) -> None:
        self._waits_for = target.address
        self._broker.wait_for_space(target.address, self)

    def _park(self, entry: Parked) -> None:
        self._parked.append(entry)
        self.parked_bytes += entry.size_bytes
        if entry.message is not None and entry.transaction is not None:
            entry.transaction.parked_count += 1

    def _weigh(self, entry: Parked, size_bytes: int) -> None:
        """Changes what an entry counts, parked or not."""
        if entry in self._parked:
            self.parked_bytes += size_bytes - entry.size_bytes
        entry.size_bytes = size_bytes

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
            target.create_checked = target.temporary or permissions.may_create(address)
        if not target.create_checked:
            permissions.require_creation(address, target.queue_name, target.routing, for_subscription=False)
