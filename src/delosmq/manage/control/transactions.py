"""Transactions: which are open or prepared, and the end an operator gives to a branch without its coordinator."""

from bisect import bisect_right
from dataclasses import dataclass
from typing import Final

from delosmq.engine.api import PREPARED, EngineBroker, JobWaiter, Transaction
from delosmq.model.errors import MisuseError
from delosmq.security.access import MANAGE, AccessControl, Login

COMMITTED: Final = "committed"
ROLLED_BACK: Final = "rolled back"
FORGOTTEN: Final = "forgotten"


@dataclass(frozen=True)
class TransactionStatus:
    """A transaction as it stands.

    Attributes:
        xid: of a branch, in hexadecimal; "" for a local transaction.
        owner: the connection that began it, "" after a restart.
        user: of the client that began a branch, which counts to that user; "" for none.
        state: active, ended (no session works in it), suspended, prepared, committing, ...
        began_ms, prepared_ms: wall clock, 0 for not known or not yet.
        sends, acknowledgements: what it does when it is committed; size_bytes: of the sends.
    """

    id: int
    xid: str
    owner: str
    user: str
    state: str
    began_ms: int
    prepared_ms: int
    sends: int
    acknowledgements: int
    size_bytes: int
    queues: list[str]


@dataclass(frozen=True)
class HeuristicStatus:
    """What an operator did to a branch, until its coordinator or an operator has the broker forget it.

    Attributes:
        xid: in hexadecimal.
        outcome: "committed" or "rolled back".
        user: of the client that began the branch, which counts to that user; "" for none.
    """

    xid: str
    outcome: str
    user: str


class TransactionControl:
    """The transactions of one broker.

    Raises:
        MisuseError: by each call that names a branch: that is no xid.
        XaError: by those, too: there is no such branch, or it is not prepared; to forget: no operator ended it.
    """

    def __init__(self, broker: EngineBroker, access: AccessControl) -> None:
        self._broker = broker
        self._access = access

    def _require(self, login: Login) -> None:
        """Transactions belong to no one address, so the right is asked for on the management address."""
        self._access.require(login, self._broker.settings.management_address, MANAGE)

    def ids(self, login: Login, *, after: int, limit: int, prepared_only: bool) -> list[int]:
        """Ids of open transactions above ``after``, in order, one more than ``limit`` if there are more."""
        self._require(login)
        known = self._broker.transactions.open
        found = [
            transaction.id
            for transaction in known.values()
            if transaction.id > after and (transaction.state == PREPARED or not prepared_only)
        ]
        return sorted(found)[: limit + 1]

    def peek(self, transaction_id: int) -> TransactionStatus | None:
        """One that `ids` gave, or None when it has ended since."""
        found = self._broker.transactions.open.get(transaction_id)
        return None if found is None else transaction_info(found)

    def heuristics(self, login: Login, *, after: str, limit: int) -> list[HeuristicStatus]:
        """Heuristic outcomes by xid, what comes after ``after``: one more than ``limit`` if there are more."""
        self._require(login)
        known = self._broker.branches.heuristics
        xids = sorted(known)
        start = bisect_right(xids, read_xid(after)) if after else 0
        return [
            HeuristicStatus(xid.hex(), COMMITTED if known[xid].committed else ROLLED_BACK, known[xid].made_by)
            for xid in xids[start : start + limit + 1]
        ]

    def commit(self, login: Login, xid: str, waiter: JobWaiter) -> bool:
        """Commits a prepared branch in place of its coordinator, which is told so until it forgets the branch. False
        when it goes on in slices; ``waiter`` is told of the end."""
        self._require(login)
        return self._broker.branches.heuristic_commit(read_xid(xid), waiter)

    def roll_back(self, login: Login, xid: str) -> None:
        """The same, rolling it back."""
        self._require(login)
        self._broker.branches.heuristic_rollback(read_xid(xid))

    def forget(self, login: Login, xid: str) -> None:
        """Forgets what an operator did to a branch, in place of a coordinator that never will."""
        self._require(login)
        self._broker.branches.forget(read_xid(xid))


def read_xid(text: str) -> bytes:
    """The xid that a listing shows as ``text``.

    Raises:
        MisuseError: it isn't one.
    """
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise MisuseError(
            "DMQ6142", f"'{text[:200]}' is no xid; use the hexadecimal form that the list of transactions shows"
        ) from None


def transaction_info(transaction: Transaction) -> TransactionStatus:
    return TransactionStatus(
        id=transaction.id,
        xid="" if transaction.xid is None else transaction.xid.hex(),
        owner=transaction.owner,
        user=transaction.made_by,
        state=transaction.state,
        began_ms=transaction.began_ms,
        prepared_ms=transaction.prepared_ms,
        sends=len(transaction.sends) or len(transaction.planned),
        acknowledgements=len(transaction.acks),
        size_bytes=transaction.size_bytes,
        queues=sorted(queue.name for queue in transaction.queues.values()),
    )
