"""Branches of distributed transactions: what a transaction manager outside asks of the broker.

A prepared branch waits for its coordinator over restarts and never ends by itself; all others are rolled back at the
transaction timeout. Source: Artemis ServerSessionImpl.xa*, ResourceManagerImpl; XA specification, table 6-4.
"""

import struct
from typing import Final

from delosmq.engine.addresses.binding_codec import branch_state_bytes
from delosmq.engine.base.jobs import JobWaiter
from delosmq.engine.base.timers import NS_PER_MS, Timer
from delosmq.engine.log.log import Log
from delosmq.engine.log.records import TRANSACTION, encode_json
from delosmq.engine.routing.parts import EngineParts
from delosmq.engine.transactions.transaction import (
    ACTIVE,
    DUPLICATE_ID,
    ENDED,
    PREPARED,
    ROLLED_BACK,
    SUSPENDED,
    Transaction,
    TransactionError,
)
from delosmq.engine.transactions.transactions import EngineTransactions
from delosmq.model.errors import (
    TMFAIL,
    TMJOIN,
    TMNOFLAGS,
    TMRESUME,
    TMSUCCESS,
    TMSUSPEND,
    XA_HEURCOM,
    XA_HEURRB,
    XA_RBOTHER,
    XA_RBROLLBACK,
    XA_RBTIMEOUT,
    XAER_DUPID,
    XAER_INVAL,
    XAER_NOTA,
    XAER_PROTO,
    XAER_RMFAIL,
    BrokerError,
    LimitError,
)
from delosmq.model.ids import MonotonicNs

MOST_BRANCHES: Final = 10_000
"""Open, prepared and heuristically ended ones: all prepared ones must fit into the state block of the store."""
XID_LIMIT_BYTES: Final = 140
LONGEST_XID_PART_BYTES: Final = 64
"""Of each of both parts. Source: MAXGTRIDSIZE and MAXBQUALSIZE of X/Open XA."""
_FORMAT: Final = struct.Struct(">iHH")

JOIN: Final = "join"
RESUME: Final = "resume"
SUSPEND: Final = "suspend"
END: Final = "end"
PREPARE: Final = "prepare"
COMMIT: Final = "commit"
COMMIT_ONE_PHASE: Final = "commit in one phase"
ROLLBACK: Final = "roll back"

STATES: Final[dict[tuple[str, str], str]] = {
    (ACTIVE, JOIN): ACTIVE,
    (ENDED, JOIN): ACTIVE,
    (ACTIVE, SUSPEND): SUSPENDED,
    (SUSPENDED, RESUME): ACTIVE,
    (ACTIVE, END): ENDED,
    (SUSPENDED, END): ENDED,
    (ENDED, PREPARE): PREPARED,
    (PREPARED, PREPARE): PREPARED,
    (ENDED, COMMIT_ONE_PHASE): ENDED,
    (PREPARED, COMMIT): PREPARED,
    (ENDED, ROLLBACK): ROLLED_BACK,
    (PREPARED, ROLLBACK): ROLLED_BACK,
}
"""Of a branch; what isn't here is a protocol error."""


class XaError(BrokerError):
    """A call that a transaction manager must not make now, or that comes too late for its branch.

    Attributes:
        xa_code: of the XA specification.
    """

    def __init__(self, code: str, xa_code: int, message: str) -> None:
        super().__init__(code, message)
        self.xa_code = xa_code


class HeuristicOutcome:
    """What an operator did to a branch, until its coordinator or an operator forgets it.

    Attributes:
        made_by: the user of the client that began the branch, "" for none; it still counts to that user.
    """

    def __init__(self, committed: bool, made_by: str) -> None:
        self.committed = committed
        self.made_by = made_by


class Branches(Timer):
    """All branches of a broker.

    Attributes:
        heuristics: what operators did to branches, by xid.
    """

    def __init__(self, parts: EngineParts, transactions: EngineTransactions) -> None:
        self._clock = parts.clock
        self._timers = parts.timers
        self._log: Log = parts.log
        self._events = parts.events
        self._client_limits = parts.bindings.client_limits
        self._transactions = transactions
        self._scan_period_ms: int = parts.settings.transaction_timeout_scan_period_ms
        self.timeout_ms: int = parts.settings.transaction_timeout_ms
        self.heuristics: dict[bytes, HeuristicOutcome] = {}
        self._armed: bool = False

    # -- association ---------------------------------------------------------------------------------------------

    def start(self, xid: bytes, flags: int = TMNOFLAGS, owner: str = "", user: str = "") -> Transaction:
        """A session begins to work in a branch: a new one, or with TMJOIN or TMRESUME a known one.

        Args:
            owner: the name of the connection.
            user: to whom a new one counts, "" for none.

        Raises:
            XaError: XAER_DUPID, XAER_NOTA, XAER_PROTO, XAER_INVAL; XAER_RMFAIL when there are too many.
        """
        if flags in (TMJOIN, TMRESUME):
            branch = self._find(xid)
            self._move(branch, JOIN if flags == TMJOIN else RESUME)
            branch.associations += 1
            return branch
        if flags != TMNOFLAGS or not 0 < len(xid) <= XID_LIMIT_BYTES:
            raise XaError("DMQ2670", XAER_INVAL, f"start of branch {xid.hex()!r} with flags {flags:#x} makes no sense")
        known = self._transactions.branches.get(xid)
        if known is not None and known.timed_out:
            self._transactions.drop_branch(known)  # its session does not come back
        elif known is not None or xid in self.heuristics:
            raise XaError("DMQ2671", XAER_DUPID, f"branch {xid.hex()} exists already; join it or use another xid")
        if len(self._transactions.branches) + len(self.heuristics) >= MOST_BRANCHES:
            raise XaError(
                "DMQ2672",
                XAER_RMFAIL,
                f"there are {MOST_BRANCHES} branches open or in doubt, as many as the broker keeps; end or forget some",
            )
        try:
            branch = self._transactions.begin_branch(owner, xid, user)
        except LimitError as error:
            raise XaError(error.code, XAER_RMFAIL, error.message) from error
        branch.associations = 1
        self._arm()
        return branch

    def end(self, xid: bytes, flags: int = TMSUCCESS) -> None:
        """A session stops working in a branch: for now (TMSUSPEND), well (TMSUCCESS), or badly (TMFAIL: it can only be
        rolled back).

        Raises:
            XaError: XAER_NOTA, XAER_PROTO; XA_RBTIMEOUT when it was rolled back because it took too long.
        """
        branch = self._find(xid)
        if branch.timed_out:
            self._transactions.drop_branch(branch)
            raise XaError(
                "DMQ2674",
                XA_RBTIMEOUT,
                f"branch {xid.hex()} took longer than {self.timeout_ms} ms (transaction-timeout) and was rolled back",
            )
        if flags == TMFAIL:
            branch.set_rollback_only(
                XaError("DMQ2675", XA_RBROLLBACK, f"branch {xid.hex()} was ended as failed; roll it back")
            )
        if branch.state == ACTIVE and branch.associations > 1:
            branch.associations -= 1  # others still work in it
            return
        self._move(branch, SUSPEND if flags == TMSUSPEND else END)
        branch.associations = 0

    # -- ends ----------------------------------------------------------------------------------------------------

    def prepare(self, xid: bytes, waiter: JobWaiter | None = None) -> bool:
        """Makes a branch survive everything but its coordinator's decision; returns as `EngineTransactions.commit`.

        Raises:
            XaError: XAER_NOTA, XAER_PROTO; XA_RBROLLBACK or XA_RBOTHER when it was rolled back instead.
        """
        branch = self._find(xid)
        if branch.state == PREPARED:
            return True
        self._check(branch, PREPARE)
        return self._carry_out(branch, waiter, max(1, self._clock.wall_ms()))

    def _carry_out(self, branch: Transaction, waiter: JobWaiter | None, prepare_at_ms: int) -> bool:
        try:
            self._transactions.raise_if_rollback_only(branch)
            return self._transactions.carry_out(branch, waiter, prepare_at_ms)
        except TransactionError as error:
            kind = XA_RBOTHER if error.condition == DUPLICATE_ID else XA_RBROLLBACK
            raise XaError("DMQ2676", kind, error.message) from error

    def commit(self, xid: bytes, one_phase: bool, waiter: JobWaiter | None = None) -> bool:
        """Commits a prepared branch, or in one phase one that isn't; returns as `EngineTransactions.commit` does.

        Raises:
            XaError: XAER_NOTA, XAER_PROTO, XA_HEURCOM, XA_HEURRB; in one phase XA_RBROLLBACK, XA_RBOTHER too.
        """
        branch = self._find(xid)
        self._check(branch, COMMIT_ONE_PHASE if one_phase else COMMIT)
        if one_phase:
            return self._carry_out(branch, waiter, 0)
        return self._transactions.commit_prepared(branch, waiter, heuristic=False)

    def rollback(self, xid: bytes, *, keep_delivered: bool = False) -> None:
        """Rolls a branch back, prepared or not.

        Args:
            keep_delivered: as in `EngineTransactions.rollback`.

        Raises:
            XaError: XAER_NOTA, XAER_PROTO, XA_HEURCOM, XA_HEURRB.
        """
        branch = self._find(xid)
        if branch.timed_out:
            self._transactions.drop_branch(branch)
            return
        self._check(branch, ROLLBACK)
        self._transactions.roll_back(branch, keep_delivered=keep_delivered, recorded=branch.state == PREPARED)

    # -- recovery ------------------------------------------------------------------------------------------------

    def recover(self) -> list[bytes]:
        """The branches that are in doubt: prepared ones, and those an operator ended."""
        branches = self._transactions.branches
        return [xid for xid, branch in branches.items() if branch.state == PREPARED] + [*self.heuristics]

    def prepared(self) -> list[Transaction]:
        return [branch for branch in self._transactions.branches.values() if branch.state == PREPARED]

    def forget(self, xid: bytes) -> None:
        """The coordinator knows what an operator did, or another operator says that it never will.

        Raises:
            XaError: XAER_NOTA when no operator ended that branch.
        """
        if not self.drop_heuristic(xid):
            branch = self.branch(xid)
            if branch is None:
                raise self.unknown(xid)
            raise XaError(
                "DMQ2689",
                XAER_NOTA,
                f"branch {xid.hex()} is {branch.state} and was not ended by an operator, so that there is nothing to"
                " forget; commit it or roll it back",
            )
        self._log.record(encode_json(TRANSACTION, {"op": "forget", "xid": xid.hex()}))
        self._log.close()

    def add_heuristic(self, xid: bytes, committed: bool, made_by: str) -> None:
        """An operator ended a branch; called live and by replay."""
        self.drop_heuristic(xid)
        self.heuristics[xid] = HeuristicOutcome(committed, made_by)
        self._client_limits.change_branches(made_by, 1, branch_state_bytes(xid, made_by))

    def drop_heuristic(self, xid: bytes) -> bool:
        """It is forgotten; called live and by replay. False when there is none."""
        outcome = self.heuristics.pop(xid, None)
        if outcome is None:
            return False
        self._client_limits.change_branches(outcome.made_by, -1, -branch_state_bytes(xid, outcome.made_by))
        return True

    def heuristic_commit(self, xid: bytes, waiter: JobWaiter | None = None) -> bool:
        """An operator commits a prepared branch; its coordinator is told so until it forgets. Returns as
        `EngineTransactions.commit` does.

        Raises:
            XaError: XAER_NOTA, XAER_PROTO when the branch isn't prepared.
        """
        branch = self._find(xid)
        self._check(branch, COMMIT)
        self.add_heuristic(xid, True, branch.made_by)
        self._events.branch_ended_by_operator(branch.id, xid, True)
        return self._transactions.commit_prepared(branch, waiter, heuristic=True)

    def heuristic_rollback(self, xid: bytes) -> None:
        """The same, rolling it back."""
        branch = self._find(xid)
        self._check(branch, COMMIT)
        self.add_heuristic(xid, False, branch.made_by)
        self._transactions.roll_back(branch, recorded=True, heuristic=True)
        self._events.branch_ended_by_operator(branch.id, xid, False)

    def _arm(self) -> None:
        if not self._armed and self._scan_period_ms > 0:
            self._armed = True
            self._timers.at(self._clock.monotonic_ns() + self._scan_period_ms * NS_PER_MS, self)

    def on_timer(self, now: MonotonicNs) -> None:
        self._armed = False
        waiting = False
        for branch in list(self._transactions.branches.values()):
            if not branch.timed_out and branch.state not in (ACTIVE, ENDED, SUSPENDED):
                continue
            if now - branch.began_ns < self.timeout_ms * NS_PER_MS:
                waiting = True
                continue
            if branch.timed_out:
                self._transactions.drop_branch(branch)
                continue
            # A session that works in it is told when it ends its work; for as long again, as it may be gone.
            branch.timed_out = branch.associations > 0
            if branch.timed_out:
                branch.began_ns = now
                waiting = True
            self._events.transaction_timed_out(branch.id, b"" if branch.xid is None else branch.xid)
            self._transactions.roll_back(branch)
        if waiting:
            self._arm()

    # -- finding -------------------------------------------------------------------------------------------------

    def branch(self, xid: bytes) -> Transaction | None:
        """The branch of that xid, whatever its state; None when there is none, or an operator ended it."""
        return None if xid in self.heuristics else self._transactions.branches.get(xid)

    def _find(self, xid: bytes) -> Transaction:
        branch = self._transactions.branches.get(xid)
        if branch is None or xid in self.heuristics:
            raise self.unknown(xid)
        return branch

    def unknown(self, xid: bytes) -> XaError:
        """What to say of an xid without a branch: it never had one, or an operator ended that."""
        outcome = self.heuristics.get(xid)
        if outcome is None:
            return XaError(
                "DMQ2677", XAER_NOTA, f"there is no branch {xid.hex()}; it has ended, or was never begun at this broker"
            )
        done = "committed" if outcome.committed else "rolled back"
        return XaError(
            "DMQ2678",
            XA_HEURCOM if outcome.committed else XA_HEURRB,
            f"branch {xid.hex()} was {done} by an operator; forget it once that is dealt with",
        )

    @staticmethod
    def _check(branch: Transaction, what: str) -> str:
        state = STATES.get((branch.state, what))
        if state is None or branch.timed_out:
            xid = b"" if branch.xid is None else branch.xid
            raise XaError(
                "DMQ2679", XAER_PROTO, f"branch {xid.hex()} is {branch.state}, one can't {what} it now; end it first"
            )
        return state

    def _move(self, branch: Transaction, what: str) -> None:
        branch.state = self._check(branch, what)


def pack_xid(format_id: int, global_id: bytes, branch_qualifier: bytes) -> bytes:
    """The name of a branch, the same from all protocols: format, two lengths, both parts; none may be longer than
    `LONGEST_XID_PART_BYTES`."""
    return _FORMAT.pack(format_id, len(global_id), len(branch_qualifier)) + global_id + branch_qualifier


def unpack_xid(xid: bytes) -> tuple[int, bytes, bytes] | None:
    """Format, global id and branch qualifier; None for what was not packed so."""
    if len(xid) < _FORMAT.size:
        return None
    form, first, second = _FORMAT.unpack_from(xid)
    if len(xid) != _FORMAT.size + first + second:
        return None
    middle = _FORMAT.size + first
    return form, xid[_FORMAT.size : middle], xid[middle:]
