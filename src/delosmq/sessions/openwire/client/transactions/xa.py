"""The part of a session in distributed transactions: it works in one branch at a time, which a coordinator ends.

    start -> (messages are sent and received) -> end -> [prepare] -> commit or rollback, by this session or another one

Source: TransactionContext of the Java client, and X/Open XA.
"""

from collections.abc import Callable
from typing import Final

from delosmq.model.errors import (
    TMFAIL,
    TMSUCCESS,
    TMSUSPEND,
    XA_OK,
    XA_RBINTEGRITY,
    XA_RDONLY,
    XAER_INVAL,
    XAER_NOTA,
    XAER_PROTO,
    XAER_RMFAIL,
)
from delosmq.sessions.client_errors import ClientError, XaTransactionError
from delosmq.sessions.openwire.client import errors
from delosmq.sessions.openwire.client.participants import Participant
from delosmq.sessions.openwire.client.ports import CommandSender, PendingRequest, finished
from delosmq.sessions.openwire.client.transactions.transaction import LocalTransaction
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
    IntegerResponse,
    TransactionInfo,
)
from delosmq.wire.openwire.structures import XATransactionId

_END: Final = "the end of a branch"
_ROLLBACK: Final = "to roll back a branch"


class XaTransaction(LocalTransaction):
    """What a session does while it works in a branch, as one transaction after the other."""

    def __init__(self, sender: CommandSender) -> None:
        super().__init__(sender)
        self.delivers = False
        self.delivers_ahead = False  # a message belongs to the branch that is worked in when it is received

    def begin(self) -> None:
        """Branches are begun by `associate` alone."""

    def check_ends_here(self, action: str) -> None:
        raise errors.ends_with_branch(action)

    def associate(self, xid: XATransactionId) -> None:
        """Begins to work in a branch."""
        self._participants = []
        self.transaction_id = xid
        self.rollback_only = False
        self.delivers = True
        info = self._info(BEGIN)
        self._sender.send(info)
        self.commands = []
        self.track(info)

    def dissociate(self) -> list[Participant]:
        """Works in no branch any more. Gives what took part."""
        self.delivers = False
        return self._take()

    def end_info(self) -> TransactionInfo:
        """What tells that it is through with its branch, after what is to be said in that."""
        self._before_end()
        return self._info(END)


class XaBranches:
    """The resource of one session.

    Args:
        began: is called when a branch was begun, hence messages may be delivered.
        ends: is called before the session leaves its branch, hence what it has received is to be counted.
    """

    def __init__(
        self,
        sender: CommandSender,
        transaction: XaTransaction,
        began: Callable[[], None],
        ends: Callable[[], None],
    ) -> None:
        self._sender = sender
        self._transaction = transaction
        self._began = began
        self._ends = ends

    def start(self, xid: XATransactionId) -> None:
        """
        Raises:
            XaTransactionError: XAER_PROTO, the session works in a branch already.
        """
        if self._transaction.transaction_id is not None:
            raise errors.branch_misused(
                xid.key(), "its session works in a branch already", "end that first", XAER_PROTO
            )
        self._transaction.associate(xid)
        self._began()

    def end(self, xid: XATransactionId, flags: int) -> PendingRequest:
        """
        Raises:
            XaTransactionError: XAER_PROTO, the session works in another branch, or in none; XAER_INVAL, unknown flags.
        """
        if flags not in (TMSUCCESS, TMFAIL, TMSUSPEND):
            raise errors.branch_misused(
                xid.key(), "end() does not take these flags", "say SUCCESS, FAIL or SUSPEND", XAER_INVAL
            )
        if not self._works_in(xid):
            if flags == TMSUCCESS and self._sender.ended_branches.find(xid.key()) is not None:
                return finished(_END)  # as after a suspension
            raise errors.branch_misused(xid.key(), "its session does not work in it", "start it first", XAER_PROTO)
        self._ends()
        info = self._transaction.end_info()
        commands = self._transaction.commands
        self._leave(xid, failed=flags == TMFAIL)
        request = self._ask(info, _END, None)
        if not self._sender.ready:
            request.before = commands
        return request

    def prepare(self, xid: XATransactionId) -> PendingRequest:
        """The answer says `XA_OK`, or `XA_RDONLY` when nothing is left to be committed.

        Raises:
            XaTransactionError: XAER_PROTO, a session works in it still; XA_RBINTEGRITY, it can only be rolled back.
        """
        self._check_committable(xid)

        def prepared(request: PendingRequest) -> None:
            branch = self._sender.ended_branches.find(xid.key())
            if request.error is not None:
                self._end_after_error(xid, request.error)
            elif vote_of(request) == XA_RDONLY:
                self._end(xid, committed=True)
            elif branch is not None:
                branch.prepared = True

        return self._ask(self._info(xid, PREPARE), "to prepare a branch", prepared)

    def commit(self, xid: XATransactionId, *, one_phase: bool) -> PendingRequest:
        """
        Raises:
            XaTransactionError: as `prepare`.
        """
        self._check_committable(xid)

        def answered(request: PendingRequest) -> None:
            if request.error is None:
                self._end(xid, committed=True)
            elif one_phase or _code(request.error) == XAER_NOTA:
                self._end_after_error(xid, request.error)

        kind = COMMIT_ONE_PHASE if one_phase else COMMIT_TWO_PHASE
        return self._ask(self._info(xid, kind), "to commit a branch", answered)

    def rollback(self, xid: XATransactionId) -> PendingRequest:
        """Of a branch that was ended or not, prepared or not."""

        def answered(request: PendingRequest) -> None:
            branch = self._sender.ended_branches.find(xid.key())
            if request.error is None:
                self._end(xid, committed=False)
            elif _code(request.error) == XAER_NOTA:
                self._end_after_error(xid, request.error)
                if branch is not None and branch.rollback_only:
                    request.error = None  # it was rolled back with the connection that broke

        return self._roll_back(xid, answered, 0)

    def abandon(self, timeout_ms: int) -> PendingRequest:
        """Rolls back the branch in which its session works, as that is closed. Waits for no connection."""
        xid = self._transaction.transaction_id
        assert isinstance(xid, XATransactionId)  # it works in one
        connected = self._sender.ready

        def answered(request: PendingRequest) -> None:
            if request.error is None:
                self._end(xid, committed=False)
            else:
                self._end_after_error(xid, request.error)

        request = self._roll_back(xid, answered, timeout_ms)
        return request if connected else finished(_ROLLBACK)

    def _roll_back(
        self, xid: XATransactionId, then: Callable[[PendingRequest], None], timeout_ms: int
    ) -> PendingRequest:
        if self._works_in(xid):
            self._ends()
            if self._sender.ready:  # the next broker will know nothing of it
                self._ask(self._transaction.end_info(), _END, None)
            self._leave(xid, failed=True)
        return self._ask(self._info(xid, ROLLBACK), _ROLLBACK, then, timeout_ms)

    def recover(self) -> PendingRequest:
        """The prepared branches of the broker: `xids_of` the answer."""
        ended = self._sender.ended_branches
        prepared = ended.prepared()

        def listed(request: PendingRequest) -> None:
            keys = {xid.key() for xid in xids_of(request)}
            for key in prepared:
                if request.error is None and key not in keys:
                    ended.end(key, committed=True)  # others have ended it

        return self._ask(self._info(None, RECOVER), "for prepared branches", listed)

    def forget(self, xid: XATransactionId) -> PendingRequest:
        """The coordinator knows how an operator has ended a branch."""
        self._sender.ended_branches.end(xid.key(), committed=True)
        return self._ask(self._info(xid, FORGET), "to forget a branch", None)

    def interrupt(self) -> None:
        """The connection broke, and will be made again. Of a branch that others have done their part in, this session's
        part alone would be told again."""
        transaction_id = self._transaction.transaction_id
        if transaction_id is not None and self._sender.ended_branches.find(transaction_id.key()) is not None:
            self._transaction.rollback_only = True

    def _works_in(self, xid: XATransactionId) -> bool:
        transaction_id = self._transaction.transaction_id
        return isinstance(transaction_id, XATransactionId) and transaction_id.key() == xid.key()

    def _leave(self, xid: XATransactionId, *, failed: bool) -> None:
        failed = failed or self._transaction.rollback_only
        self._sender.ended_branches.leave(xid.key(), self._transaction.dissociate(), failed=failed)

    def _check_committable(self, xid: XATransactionId) -> None:
        if self._works_in(xid):
            raise errors.branch_misused(xid.key(), "its session works in it still", "end it first", XAER_PROTO)
        branch = self._sender.ended_branches.find(xid.key())
        if branch is not None and branch.rollback_only:
            why = "it was ended as failed, or the connection broke before it was prepared"
            raise errors.branch_misused(xid.key(), why, "roll it back", XA_RBINTEGRITY)

    def _end_after_error(self, xid: XATransactionId, error: ClientError) -> None:
        """Ends this client's part in a branch whose request failed. What its sessions consumed in the branch counts as
        committed when the broker does not know the branch (any more), and as rolled back after other errors."""
        code = _code(error)
        if code == XAER_RMFAIL:
            # The connection broke before the answer. The other connections of this process keep their parts in the
            # branch: the broker may still have it.
            self._sender.ended_branches.end(xid.key(), committed=False)
        else:
            self._end(xid, committed=code == XAER_NOTA)

    def _end(self, xid: XATransactionId, *, committed: bool) -> None:
        self._sender.ended_branches.end(xid.key(), committed=committed)
        self._sender.events.branch_ended(xid.key(), committed=committed)

    def _info(self, xid: XATransactionId | None, kind: int) -> TransactionInfo:
        info = TransactionInfo()
        info.connection_id = self._sender.connection_id
        info.transaction_id = xid
        info.type = kind
        return info

    def _ask(
        self, info: TransactionInfo, what: str, then: Callable[[PendingRequest], None] | None, timeout_ms: int = 0
    ) -> PendingRequest:
        def answered(request: PendingRequest) -> None:
            error = request.error
            if error is not None and not isinstance(error, XaTransactionError):
                request.error = errors.branch_refused(error)
            if then is not None:
                then(request)

        return self._sender.request(info, what, answered, timeout_ms)


def _code(error: ClientError) -> int:
    return error.error_code if isinstance(error, XaTransactionError) else XAER_RMFAIL


def vote_of(request: PendingRequest) -> int:
    response = request.response
    return response.result if isinstance(response, IntegerResponse) else XA_OK


def xids_of(request: PendingRequest) -> list[XATransactionId]:
    response = request.response
    if not isinstance(response, DataArrayResponse):
        return []
    return [value for value in response.values or [] if isinstance(value, XATransactionId)]
