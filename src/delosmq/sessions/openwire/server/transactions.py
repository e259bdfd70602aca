"""TransactionInfo: local transactions of a connection, and branches of distributed ones.

Source: TransactionBroker and TransactionContext of ActiveMQ Classic. Any connection may join a branch, prepare or end
it. Until it is prepared it lasts no longer than the connection that began it; one that joined leaves it as it is. An
END is that of its connection alone, which may go on all the same; PREPARE waits for none.
"""

from typing import Final

from delosmq.engine.api import ACTIVE, PREPARED, EngineBroker, JobWaiter, Transaction, xa
from delosmq.model.errors import TMJOIN, TMNOFLAGS, BrokerError
from delosmq.sessions.openwire.server import errors
from delosmq.sessions.parked_sends import SessionTransaction
from delosmq.wire.openwire.structures import TransactionId, XATransactionId

OPEN_LIMIT: Final = 100
"""Open local transactions of a connection."""


def xid_of(transaction_id: XATransactionId) -> bytes:
    """As the engine keeps it: format, two lengths, both parts.

    Raises:
        OpenWireError: a part is longer than XA allows.
    """
    gtrid = transaction_id.global_transaction_id
    branch = transaction_id.branch_qualifier
    longest = max(len(gtrid), len(branch))
    if longest > xa.LONGEST_XID_PART_BYTES:
        raise errors.branch_id_wrong(longest, xa.LONGEST_XID_PART_BYTES)
    return xa.pack_xid(transaction_id.format_id, gtrid, branch)


def transaction_id_of(xid: bytes) -> XATransactionId | None:
    """The reverse; None for a branch of another protocol's making."""
    parts = xa.unpack_xid(xid)
    return None if parts is None else XATransactionId(parts[0], parts[1], parts[2])


class OpenWireTransaction(SessionTransaction):
    """A local transaction, or what this connection does in a branch.

    Attributes:
        key: of its id.
        xid: of a branch; empty for a local one.
        began: this connection began the branch, which ends with it unless it is prepared.
        associated: this connection works in the branch, and has not said END since.
        rollback_only: why it can only be rolled back.
        read_only: it was to be prepared, had done nothing, and so has ended.
    """

    def __init__(self, key: str, transaction: Transaction, xid: bytes = b"") -> None:
        super().__init__(transaction)
        self.key = key
        self.xid = xid
        self.began: bool = False
        self.associated: bool = False
        self.rollback_only: BrokerError | None = None
        self.read_only: bool = False


class OpenWireTransactions:
    def __init__(self, broker: EngineBroker, owner: str, user: str) -> None:
        self._broker = broker
        self._owner = owner
        self._user = user
        self._works: dict[str, OpenWireTransaction] = {}
        self._look_at: int = OPEN_LIMIT

    def begin(self, transaction_id: TransactionId) -> None:
        """Begins a transaction, or joins a branch; again is nothing (a failover replays it)."""
        key = transaction_id.key()
        if isinstance(transaction_id, XATransactionId):
            self._join(key, xid_of(transaction_id))
        elif key not in self._works:
            transaction = self._broker.transactions.begin(self._owner, OPEN_LIMIT)
            transaction.keeps_delivered = True
            self._works[key] = OpenWireTransaction(key, transaction)

    def _join(self, key: str, xid: bytes) -> OpenWireTransaction:
        broker = self._broker
        known = broker.branches.branch(xid)
        work = self._works.get(key)
        if work is not None and work.transaction is known and _works_in(work):
            return work
        flags = TMNOFLAGS if known is None else TMJOIN
        branch = broker.branches.start(xid, flags, self._owner, self._user)
        if work is None or work.transaction is not branch:
            if len(self._works) >= self._look_at:
                self._drop_ended()
            work = OpenWireTransaction(key, branch, xid)
            self._works[key] = work
        if known is None:
            branch.keeps_delivered = True
            work.began = True
        work.associated = True
        return work

    def _drop_ended(self) -> None:
        """Branches that other connections have ended."""
        known = self._broker.transactions.open
        self._works = {key: work for key, work in self._works.items() if work.running or work.transaction.id in known}
        self._look_at = max(OPEN_LIMIT, 2 * len(self._works))

    def find(self, transaction_id: TransactionId) -> OpenWireTransaction:
        """The transaction in which a message or acknowledgement came; it joins the branch if need be, once more after
        an END too.

        Raises:
            OpenWireError: it was never begun, or has ended.
        """
        key = transaction_id.key()
        work = self._works.get(key)
        if work is not None and (not work.xid or _works_in(work)):
            return work
        if isinstance(transaction_id, XATransactionId):
            xid = xid_of(transaction_id)
            branch = self._broker.branches.branch(xid)
            if branch is not None:
                return self._join(key, xid)
        raise errors.unknown_transaction(key)

    def set_rollback_only(self, transaction_id: TransactionId, cause: BrokerError) -> None:
        """A command in it failed and its sender waits for no answer: its commit will tell."""
        work = self._works.get(transaction_id.key())
        if work is not None and work.rollback_only is None:
            work.rollback_only = cause
            work.transaction.set_rollback_only(cause)

    def take(self, transaction_id: TransactionId) -> OpenWireTransaction:
        """The transaction that is to end; its id is free from now on."""
        work = self.find(transaction_id)
        self._works.pop(work.key, None)
        return work

    def association(self, transaction_id: XATransactionId) -> OpenWireTransaction | None:
        """What this connection does in a branch; None when it does nothing there, or its part is done."""
        work = self._works.get(transaction_id.key())
        return work if work is not None and _works_in(work) else None

    def branch_to_end(self, transaction_id: XATransactionId) -> OpenWireTransaction:
        """A branch that is to be prepared, committed or rolled back: no connection works in it any more.

        Raises:
            XaError: there is none.
        """
        key = transaction_id.key()
        xid = xid_of(transaction_id)
        work = self._works.pop(key, None)
        branch = self._broker.branches.branch(xid)
        if branch is None:
            raise self._broker.branches.unknown(xid)
        return work if work is not None and work.transaction is branch else OpenWireTransaction(key, branch, xid)

    def forget(self, transaction_id: XATransactionId) -> None:
        """The coordinator knows what an operator did."""
        self._broker.branches.forget(xid_of(transaction_id))

    def recover(self) -> list[XATransactionId]:
        """The branches in doubt."""
        found: list[XATransactionId] = []
        for xid in self._broker.branches.recover():
            transaction_id = transaction_id_of(xid)
            if transaction_id is not None:
                found.append(transaction_id)
        return found

    def rollback(self, work: OpenWireTransaction, *, keep_delivered: bool) -> None:
        """Nothing of it happens."""
        try:
            if work.xid:
                end_branch(self._broker, work)
                self._broker.branches.rollback(work.xid, keep_delivered=keep_delivered)
            else:
                self._broker.transactions.rollback(work.transaction, keep_delivered=keep_delivered)
        except BrokerError:
            self._keep(work)
            raise

    def carry_out(self, work: OpenWireTransaction, waiter: JobWaiter, *, prepare: bool, one_phase: bool) -> bool:
        """Commits or prepares; False when that goes on and the waiter is told.

        Raises:
            BrokerError: it was rolled back instead, or is as it was.
        """
        try:
            return _carry_out(self._broker, work, waiter, prepare=prepare, one_phase=one_phase)
        except BrokerError:
            self._keep(work)
            raise

    def _keep(self, work: OpenWireTransaction) -> None:
        """Keeps a transaction that could not be ended, if it was this connection's: it ends with the connection."""
        if (work.began or not work.xid) and work.transaction.id in self._broker.transactions.open:
            self._works.setdefault(work.key, work)

    def open(self) -> list[OpenWireTransaction]:
        """The transactions that would end with this connection."""
        return [work for work in self._works.values() if work.began or not work.xid]

    def take_all(self) -> list[OpenWireTransaction]:
        """All that this connection leaves behind."""
        works = list(self._works.values())
        self._works.clear()
        return works

    def abandon(self, works: list[OpenWireTransaction]) -> list[BrokerError]:
        """Rolls back what will not be ended: local transactions, and branches that this connection began; prepared ones
        wait for their coordinator. Gives what could not be recorded."""
        troubles: list[BrokerError] = []
        for work in works:
            if (
                work.running
                or work.transaction.state == PREPARED
                or work.transaction.id not in self._broker.transactions.open
            ):
                continue
            try:
                if work.xid and not work.began:
                    self._leave(work)
                    continue
                self.rollback(work, keep_delivered=False)
            except BrokerError as error:
                troubles.append(error)
        return troubles

    def _leave(self, work: OpenWireTransaction) -> None:
        """A branch that another connection began goes on without this one; but not without what this one sent."""
        if work.parked_count:
            work.transaction.set_rollback_only(errors.sends_lost(work.key, work.parked_count))
        end_association(self._broker, work)


def _works_in(work: OpenWireTransaction) -> bool:
    """Whether the connection takes part in a branch that goes on."""
    return work.associated and work.transaction.state == ACTIVE


def end_association(broker: EngineBroker, work: OpenWireTransaction) -> None:
    """The connection has done its part of a branch; others may go on with theirs."""
    if _works_in(work):
        work.associated = False
        broker.branches.end(work.xid)


def end_branch(broker: EngineBroker, work: OpenWireTransaction) -> None:
    """No connection works in a branch any more: all that was sent in it is through."""
    while work.transaction.state == ACTIVE:
        broker.branches.end(work.xid)


def _carry_out(
    broker: EngineBroker, work: OpenWireTransaction, waiter: JobWaiter, *, prepare: bool, one_phase: bool
) -> bool:
    if work.xid:
        end_branch(broker, work)
    rollback_only = work.rollback_only or work.transaction.cause
    if rollback_only is not None:
        # As after a rollback that it asked for, the client delivers again by itself what it has.
        if work.xid:
            broker.branches.rollback(work.xid, keep_delivered=True)
            raise errors.rollback_only_branch(work.key, rollback_only.message)
        broker.transactions.rollback(work.transaction, keep_delivered=True)
        raise errors.rollback_only(work.key, rollback_only.message)
    if not work.xid:
        return broker.transactions.commit(work.transaction, waiter)
    if prepare:
        transaction = work.transaction
        if transaction.operations == 0 and not transaction.bulk_ack_count and transaction.state != PREPARED:
            # It did nothing that could be undone: it has ended, and its coordinator need not come back.
            broker.branches.rollback(work.xid)
            work.read_only = True
            return True
        return broker.branches.prepare(work.xid, waiter)
    return broker.branches.commit(work.xid, one_phase, waiter)
