"""Transactions: sends and acknowledgements that happen together or not at all.

Until its commit a transaction only collects: what it sends is charged to its address but routed nowhere, what it
acknowledges stays with its consumer. How it ends is in `committing` and `rollback`, branches of distributed
transactions in `xa`.
"""

from typing import Final

from delosmq.engine.addresses.duplicate_ids import DuplicateId
from delosmq.engine.base.slots import Slot
from delosmq.engine.log.origin import OriginalPlace
from delosmq.engine.queues.in_delivery import BulkAck, Holder
from delosmq.engine.queues.queue import Queue
from delosmq.engine.routing.enqueue import RoutedMessage
from delosmq.model.errors import BrokerError, LimitError
from delosmq.model.ids import Position
from delosmq.model.message import Account, Home, Message

ACTIVE: Final = "active"
ENDED: Final = "ended"
"""Of a branch: no session works in it, its coordinator decides next."""
SUSPENDED: Final = "suspended"
ROLLBACK_ONLY: Final = "rollback only"
PREPARING: Final = "preparing"
PREPARED: Final = "prepared"
COMMITTING: Final = "committing"
COMMITTED: Final = "committed"
ROLLED_BACK: Final = "rolled back"

DUPLICATE_ID: Final = "DUPLICATE_ID"
NOT_ROUTED: Final = "NOT_ROUTED"

RECORD_BYTES: Final = 112
"""Of a record and its place in the footer, beside what differs by length."""
ANNOTATION_BYTES: Final = 16
ACKNOWLEDGED_BYTES: Final = 32


class TransactionError(BrokerError):
    """A transaction can't be committed and was rolled back.

    Attributes:
        condition: DUPLICATE_ID (an address has seen the duplicate id of one of its messages) or NOT_ROUTED (a message
            can't be routed, or stored, any more).
    """

    def __init__(self, code: str, condition: str, message: str) -> None:
        super().__init__(code, message)
        self.condition = condition


class EndlessWaitError(LimitError):
    """A transaction would wait for room that only its own end, or that of others that wait, would make."""


class Sent:
    """A message that a transaction sends."""

    def __init__(self, message: Message, queue_name: str, routing: int) -> None:
        self.message = message
        self.queue_name = queue_name
        self.routing = routing


class Promised:
    """A message that a transaction acknowledges."""

    def __init__(self, queue: Queue, consumer: Holder, slot: Slot) -> None:
        self.queue = queue
        self.consumer = consumer
        self.slot = slot


class StagedPart:
    """Rows that one task of a sink staged: invisible until their batch is published.

    Attributes:
        application: whose batches are numbered; batch: the number.
        uuid: of the part, chosen by the task.
        made_by: the user who staged it.
        attempt: at the batch, as its driver named it; task: of that attempt; run: of that task. "" when not said.
        rows: how many messages were sent; duplicates: left out, as their duplicate id was known; dropped: by their full
            address.
        has_waited: there was no room for its newest message.
        is_staged: all of it survives a crash, and it may be published.
        is_ending: it was published or discarded, and what is left of that goes on in slices.
        state_bytes: what it takes in a state block.
    """

    def __init__(self, application: str, batch: int, uuid: str, made_by: str) -> None:
        self.application = application
        self.batch = batch
        self.uuid = uuid
        self.made_by = made_by
        self.attempt: str = ""
        self.task: str = ""
        self.run: str = ""
        self.rows: int = 0
        self.duplicates: int = 0
        self.dropped: int = 0
        self.has_waited: bool = False
        self.is_staged: bool = False
        self.is_ending: bool = False
        self.state_bytes: int = 0

    @property
    def names(self) -> list[str]:
        """What its record says of it, beside its application."""
        return [self.uuid, self.attempt, self.task, self.run]


class Transaction:
    """One transaction.

    Attributes:
        xid: of a branch; None for a local transaction.
        owner: who began it, as named there.
        made_by: the user of the client that began it (branches only), "" for none; it counts to that user.
        state: one of the constants of this module.
        cause: why it can only be rolled back.
        began_ms: wall clock; prepared_ms: likewise, 0 while it isn't.
        began_ns: monotonic, for its timeout; then when that was. timed_out: a session has not learned of it yet.
        associations: sessions that work in it (branches only).
        size_bytes: of what it sends.
        charged: what that counts, by address.
        waits_for: the address that has no room for its next message, "" while it doesn't wait.
        refusal: why it may not wait for that address; raised again when it asks again.
        planned: where its messages go; written: how many of them the store knows, in their order.
        indexes: places of ``planned`` in the order of the commit; empty when it is that of the list.
        segments: one home in each segment that holds a record of it, or a message it acknowledges.
        recorded: whether the store knows of it.
        part: what a sink staged in it, None for all others; it has no xid then.
        keeps_delivered: whatever rolls it back, what it acknowledged stays in delivery: its client delivers that again
            by itself.
        bulk_ack_count: cumulative acknowledgements that go on in slices; it does not end before them.
        internal: it exists for one of those alone: no client began it or sees it.
        bulk_ack: that one, until its end is told; after: another of the same consumer, which it includes.
    """

    def __init__(self, transaction_id: int, owner: str, xid: bytes | None) -> None:
        self.id = transaction_id
        self.owner = owner
        self.made_by: str = ""
        self.xid = xid
        self.state: str = ACTIVE
        self.cause: BrokerError | None = None
        self.began_ms: int = 0
        self.began_ns: int = 0
        self.prepared_ms: int = 0
        self.associations: int = 0
        self.timed_out: bool = False
        self.sends: list[Sent] = []
        self.acks: list[Promised] = []
        self.duplicate_ids: list[DuplicateId] = []
        self.size_bytes: int = 0
        self.charged: dict[str, Account] = {}
        self.waits_for: str = ""
        self.refusal: WaitRefusal | None = None
        self.ids: dict[str, set[bytes]] = {}
        self.planned: list[RoutedMessage] = []
        self.indexes: list[int] = []
        self.queues: dict[int, Queue] = {}
        self.segments: dict[int, Home] = {}
        self.recorded: bool = False
        self.part: StagedPart | None = None
        self.keeps_delivered: bool = False
        self.bulk_ack_count: int = 0
        self.internal: bool = False
        self.bulk_ack: BulkAck | None = None
        self.after: Transaction | None = None
        self.first_sequence: int = 0
        self.position: Position = Position(0)

    @property
    def operations(self) -> int:
        """How much it does."""
        return len(self.sends) + len(self.acks)

    def set_rollback_only(self, cause: BrokerError) -> None:
        """It can only be rolled back from now on."""
        if self.cause is None:
            self.cause = cause

    def add_send(self, message: Message, queue_name: str, routing: int) -> None:
        """One more message to send."""
        self.sends.append(Sent(message, queue_name, routing))
        self.size_bytes += message.encoded_size_bytes
        self.count_charge(message)
        if message.duplicate_id:
            self.ids.setdefault(message.address, set()).add(message.duplicate_id)
            self.duplicate_ids.append(DuplicateId(message.address, message.duplicate_id, durable=message.durable))

    def count_charge(self, message: Message) -> None:
        """One of its messages takes room of its address."""
        account = self.charged.get(message.address)
        if account is None:
            account = Account()
            self.charged[message.address] = account
        account.used_bytes += message.charge_bytes
        account.used_messages += 1


class WaitRefusal:
    """Why a transaction may not wait for an address: a deadlock. Raised again when it asks again."""

    def __init__(self, transaction: Transaction, address: str, error: LimitError) -> None:
        self._address = address
        self._sends: int = len(transaction.sends)
        self.error = error

    def applies_to(self, transaction: Transaction, address: str) -> bool:
        """Whether the transaction asks again for the same address, with no more sends."""
        return address == self._address and len(transaction.sends) == self._sends


def find_originals(planned: list[RoutedMessage], start: int) -> None:
    """Tells the copies of one send where in the transaction their originals are: each stands before its copies."""
    places: dict[int, int] = {}
    for at in range(start, len(planned)):
        item = planned[at]
        places[id(item.message)] = at
        place = places.get(id(item.original))
        if place is not None and item.divert is not None and item.divert.id_name:
            item.original_place = OriginalPlace(place, item.divert.id_name)


def cost_of(item: RoutedMessage) -> int:
    """About what a message takes of a batch, rather more: beside the body, meta and footer hold all else once each."""
    message = item.message
    if not message.durable:
        return 0
    size = 8 * len(item.queues) + len(message.group_id) + RECORD_BYTES
    size += len(message.address) + len(message.user)
    if message.annotations is not None:
        size += sum([ANNOTATION_BYTES + len(name) + len(value) for name, value in message.annotations.items()])
    return message.encoded_size_bytes + 2 * size


def id_cost(entry: DuplicateId) -> int:
    """The same for a duplicate id."""
    return 2 * (RECORD_BYTES + len(entry.address) + len(entry.duplicate_id)) if entry.durable else 0
