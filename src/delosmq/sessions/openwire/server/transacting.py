"""What a peer asks of its transactions, and the ends of those that take their time.

The table in working.py names `transact`. Source: TransportConnection.processBeginTransaction and its neighbours of
ActiveMQ Classic.
"""

from typing import Final

from delosmq.engine.api import JobWaiter
from delosmq.model.ids import MonotonicNs
from delosmq.sessions.openwire.server import errors as failures
from delosmq.sessions.openwire.server.connection import ParkedCommand, Parts
from delosmq.sessions.openwire.server.transactions import XA_OK, XA_RDONLY, LocalWork, end_association
from delosmq.wire.openwire.commands import (
    BEGIN,
    COMMIT_ONE_PHASE,
    COMMIT_TWO_PHASE,
    END,
    FORGET,
    PREPARE,
    RECOVER,
    ROLLBACK,
    DataArrayResponse,
    Structure,
    TransactionId,
    TransactionInfo,
    XATransactionId,
)

_KINDS: Final = frozenset((BEGIN, PREPARE, COMMIT_ONE_PHASE, COMMIT_TWO_PHASE, ROLLBACK, RECOVER, FORGET, END))


class ParkedEnd(ParkedCommand):
    """A commit or prepare, which may have to wait for messages of its transaction."""

    def __init__(self, parts: Parts, work: LocalWork, command: TransactionInfo) -> None:
        super().__init__(command, parts.owner, work)
        self._broker = parts.broker
        self._transactions = parts.transactions
        self._ending = work
        self._kind: int = command.type

    def carry_out(self, waiter: JobWaiter) -> bool:
        kind = self._kind
        if kind == END:
            end_association(self._broker, self._ending)
            return True
        return self._transactions.carry_out(
            self._ending, waiter, prepare=kind == PREPARE, one_phase=kind != COMMIT_TWO_PHASE
        )

    def answer(self) -> None:
        self._owner.ended(self._command, XA_RDONLY if self._ending.read_only else XA_OK)


def transact(parts: Parts, frame: Structure, now: MonotonicNs) -> None:
    assert isinstance(frame, TransactionInfo)
    kind = frame.type
    if kind == RECOVER:
        found: list[Structure | None] = [*parts.transactions.recover()]
        parts.replies.write(DataArrayResponse(frame.command_id, found))
        return
    if kind not in _KINDS:
        raise failures.unknown_transaction_command(kind)
    transaction_id = frame.transaction_id
    if transaction_id is None:
        raise failures.field_missing("transactionId", "a TransactionInfo")
    if kind == BEGIN:
        parts.transactions.begin(transaction_id)
        parts.replies.grant(frame)
        return
    elif kind in (COMMIT_ONE_PHASE, COMMIT_TWO_PHASE):
        _end(parts, frame, transaction_id)
        return
    elif kind == ROLLBACK:
        _roll_back(parts, transaction_id)
    elif not isinstance(transaction_id, XATransactionId):
        if kind != END:  # of which local transactions know nothing
            raise failures.not_a_branch(transaction_id.key())
    elif kind == PREPARE:
        _end(parts, frame, transaction_id)
        return
    elif kind == END:
        _end_association(parts, frame, transaction_id)
        return
    else:
        parts.transactions.forget(transaction_id)
    parts.replies.answer(frame)


def _end(parts: Parts, command: TransactionInfo, transaction_id: TransactionId) -> None:
    """Commits or prepares, and answers once that is done.

    Raises:
        Refusal: there is no such transaction.
    """
    parts.parking.end(ParkedEnd(parts, _take(parts, transaction_id), command))


def _end_association(parts: Parts, command: TransactionInfo, transaction_id: XATransactionId) -> None:
    """END: this connection has done its part of a branch. Answered once what it sent there is through."""
    work = parts.transactions.association(transaction_id)
    if work is None:
        parts.owner.ended(command)
    else:
        parts.parking.end(ParkedEnd(parts, work, command))


def _roll_back(parts: Parts, transaction_id: TransactionId) -> None:
    """Rolls back. What was acknowledged in it stays with its consumers, whose client delivers it again."""
    work = _take(parts, transaction_id)
    parts.parking.forget([work])
    parts.transactions.rollback(work, keep_delivered=True)
    parts.acknowledging.share_room()


def _take(parts: Parts, transaction_id: TransactionId) -> LocalWork:
    """What is to end."""
    if isinstance(transaction_id, XATransactionId):
        return parts.transactions.branch_to_end(transaction_id)
    return parts.transactions.take(transaction_id)
