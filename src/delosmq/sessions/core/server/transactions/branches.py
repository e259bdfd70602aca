"""The branches of distributed transactions in which a session works.

Source: ServerSessionImpl.xaStart and its siblings of Artemis. A branch that is open when another one is started is
rolled back; when the session joins another one, it goes on without the session. Branches outlive the session that began
them, unless its connection is lost before they are prepared.
"""

from typing import Final

from delosmq.engine.api import PREPARED, EngineBroker, JobWaiter, xa
from delosmq.model.errors import TMFAIL, TMJOIN, TMNOFLAGS, TMRESUME, TMSUCCESS, TMSUSPEND, BrokerError, StorageError
from delosmq.sessions.core.server import errors
from delosmq.sessions.core.server.session_port import SessionPort
from delosmq.sessions.core.server.transactions.local_transactions import CoreTransaction, ParkedEnd
from delosmq.wire.core.packet import MOST_INT, CoreXid, Packet

_REMEMBERED: Final = 100


def xid_of(xid: CoreXid) -> bytes:
    """As the engine keeps it.

    Raises:
        CoreXaError: a part is longer than XA allows.
    """
    longest = max(len(xid.global_transaction_id), len(xid.branch_qualifier))
    if longest > xa.LONGEST_XID_PART_BYTES:
        raise errors.xid_wrong(longest)
    return xa.pack_xid(xid.format_id, xid.global_transaction_id, xid.branch_qualifier)


class ParkedPrepare(ParkedEnd):
    """A PREPARE, answered once the branch is prepared."""

    def carry_out(self, waiter: JobWaiter) -> bool:
        return self._broker.branches.prepare(self._ending.xid, waiter)


class ParkedBranchCommit(ParkedEnd):
    """The commit of a branch, prepared or in one phase."""

    def __init__(
        self, session: SessionPort, request: Packet, work: CoreTransaction, broker: EngineBroker, *, one_phase: bool
    ) -> None:
        super().__init__(session, request, work, broker)
        self._one_phase = one_phase

    def carry_out(self, waiter: JobWaiter) -> bool:
        return self._broker.branches.commit(self._ending.xid, self._one_phase, waiter)


class SessionBranches:
    """Of one session.

    Attributes:
        current: what the session does in the branch with which it is associated; None outside of any.
    """

    def __init__(self, broker: EngineBroker, owner: str, user: str) -> None:
        self._broker = broker
        self._owner = owner
        self._user = user
        self._known: dict[bytes, CoreTransaction] = {}
        self._look_at: int = _REMEMBERED
        self.current: CoreTransaction | None = None

    def start(self, xid: CoreXid) -> None:
        """Raises XaError: as `Branches.start`."""
        self._start(xid_of(xid))

    def _start(self, key: bytes) -> None:
        stale = self.current
        if stale is not None:
            self.current = None
            self._abandon(stale)
        self._associate(key, TMNOFLAGS)

    def join(self, xid: CoreXid) -> None:
        """Raises XaError: as `Branches.start`."""
        self._associate(xid_of(xid), TMJOIN)

    def resume(self, xid: CoreXid) -> None:
        """Raises XaError: the session works in a branch already; or as `Branches.start`."""
        if self.current is not None:
            raise errors.in_another_branch()
        self._associate(xid_of(xid), TMRESUME)

    def _associate(self, key: bytes, flags: int) -> None:
        branch = self._broker.branches.start(key, flags, self._owner, self._user)
        known = self._known.get(key)
        if known is None or known.transaction is not branch:
            known = CoreTransaction(branch, key)
            if len(self._known) >= self._look_at:
                self._drop_ended()
            self._known[key] = known
        self.current = known

    def _drop_ended(self) -> None:
        open_ones = self._broker.transactions.open
        self._known = {key: work for key, work in self._known.items() if work.transaction.id in open_ones}
        self._look_at = max(_REMEMBERED, 2 * len(self._known))

    def suspend(self) -> None:
        """The session works in no branch for now.

        Raises:
            XaError: it does not anyway.
        """
        work = self.current
        if work is None:
            raise errors.not_in_branch()
        self._broker.branches.end(work.xid, TMSUSPEND)
        self.current = None

    def end(self, xid: CoreXid, failed: bool) -> None:
        """The session has done its work in a branch.

        Raises:
            XaError: as `Branches.end`.
        """
        key = xid_of(xid)
        if self.current is not None and self.current.xid == key:
            self.current = None
        self._broker.branches.end(key, TMFAIL if failed else TMSUCCESS)

    def failed(self, xid: CoreXid) -> None:
        """What the client did in a branch was lost on its side: it can only be rolled back."""
        key = xid_of(xid)
        if self._broker.branches.branch(key) is None:
            self._start(key)
        branch = self._broker.branches.branch(key)
        if branch is not None:
            branch.set_rollback_only(errors.branch_failed())

    def work_to_end(self, xid: CoreXid) -> CoreTransaction:
        """A branch that is to be prepared or committed.

        Raises:
            XaError: there is none.
        """
        key = xid_of(xid)
        branch = self._broker.branches.branch(key)
        if branch is None:
            raise self._broker.branches.unknown(key)
        known = self._known.get(key)
        return known if known is not None and known.transaction is branch else CoreTransaction(branch, key)

    def roll_back(self, xid: CoreXid) -> None:
        """Raises XaError: as `Branches.rollback`."""
        key = xid_of(xid)
        self._broker.branches.rollback(key)
        self._known.pop(key, None)

    def forget(self, xid: CoreXid) -> None:
        """Raises XaError: as `Branches.forget`."""
        self._broker.branches.forget(xid_of(xid))

    def in_doubt(self) -> list[CoreXid]:
        """The branches that wait for a coordinator, by the names of XA."""
        found: list[CoreXid] = []
        for key in self._broker.branches.recover():
            parts = xa.unpack_xid(key)
            if parts is not None:
                found.append(CoreXid(parts[0], parts[2], parts[1]))
        return found

    def timeout_s(self) -> int:
        """After so long a branch that is not prepared is rolled back; no longer than an answer can say."""
        return min(self._broker.branches.timeout_ms // 1000, MOST_INT)

    def abandon(self) -> list[BrokerError]:
        """The connection is lost: what is not prepared is rolled back. Gives what could not be recorded."""
        troubles: list[BrokerError] = []
        for work in self._known.values():
            try:
                self._abandon(work)
            except StorageError as error:
                troubles.append(error)
        self._known.clear()
        self.current = None
        return troubles

    def _abandon(self, work: CoreTransaction) -> None:
        transaction = work.transaction
        if work.running or transaction.state == PREPARED or transaction.id not in self._broker.transactions.open:
            return
        self._broker.transactions.roll_back(transaction)

    def forget_all(self) -> None:
        """The session is closed: branches go on without it."""
        self._known.clear()
        self.current = None
