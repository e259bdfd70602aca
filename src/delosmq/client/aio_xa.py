"""Distributed transactions of the asyncio client: a session whose transactions are branches that a coordinator ends."""

from dataclasses import dataclass
from enum import IntFlag
from typing import Final

from delosmq.client.aio_session import AsyncSession
from delosmq.client.errors import wrong_argument
from delosmq.client.link import Link
from delosmq.client.one_caller import OneCaller
from delosmq.client.options.arguments import MOST_INT, demand_flag, demand_kind, demand_number
from delosmq.model.errors import TMFAIL, TMJOIN, TMNOFLAGS, TMRESUME, TMSUCCESS, TMSUSPEND, XA_RDONLY
from delosmq.sessions.openwire.client.ports import PendingRequest
from delosmq.sessions.openwire.client.session import OpenWireClientSession
from delosmq.sessions.openwire.client.transactions.xa import XaBranches, vote_of, xids_of
from delosmq.wire.openwire.structures import XATransactionId

LONGEST_PART_BYTES: Final = 64
"""Source: MAXGTRIDSIZE and MAXBQUALSIZE of X/Open XA."""


class XaFlag(IntFlag):
    """Flags of X/Open XA, by their numbers there."""

    NO_FLAGS = TMNOFLAGS
    JOIN = TMJOIN
    SUSPEND = TMSUSPEND
    SUCCESS = TMSUCCESS
    RESUME = TMRESUME
    FAIL = TMFAIL


@dataclass(frozen=True)
class Xid:
    """The name of a branch.

    Attributes:
        format_id: says who makes such names.
        global_transaction_id: of the whole transaction; 1 to 64 bytes.
        branch_qualifier: of this resource's part; up to 64 bytes.

    Raises:
        ClientOptionError: DMQ9056, a part is longer, or of another type.
    """

    format_id: int
    global_transaction_id: bytes
    branch_qualifier: bytes = b""

    def __post_init__(self) -> None:
        demand_number("format_id", self.format_id, MOST_INT, -MOST_INT - 1)
        _demand_part("global_transaction_id", self.global_transaction_id, 1)
        _demand_part("branch_qualifier", self.branch_qualifier, 0)


def _demand_part(name: str, value: object, least: int) -> None:
    if not isinstance(value, bytes) or not least <= len(value) <= LONGEST_PART_BYTES:
        raise wrong_argument(name, value, f"bytes, {least} to {LONGEST_PART_BYTES} of them")


def _wire(xid: object) -> XATransactionId:
    """As the protocol has it."""
    if not isinstance(xid, Xid):
        raise wrong_argument("xid", xid, "an Xid")
    return XATransactionId(xid.format_id, xid.global_transaction_id, xid.branch_qualifier)


class AsyncXaResource:
    """What a coordinator calls. All but `start` and `end` may be called of any session's resource, for any branch, and
    while another task uses the session.

    All raise XaTransactionError, whose ``error_code`` is that of X/Open XA.
    """

    def __init__(self, session: OneCaller, link: Link, machine: XaBranches) -> None:
        self._session = session
        self._link = link
        self._machine = machine

    async def start(self, xid: Xid, flags: XaFlag = XaFlag.NO_FLAGS) -> None:
        """What the session sends and receives from now on belongs to the branch.

        Args:
            flags: NO_FLAGS; JOIN and RESUME are the same, as the broker knows which branches there are.

        Raises:
            IllegalStateError: DMQ9081, another task is at work in the session.
        """
        self._session.check_caller()
        self._check()
        if flags not in (XaFlag.NO_FLAGS, XaFlag.JOIN, XaFlag.RESUME):
            raise wrong_argument("flags", flags, "NO_FLAGS, JOIN or RESUME")
        self._machine.start(_wire(xid))
        self._link.flush()

    async def end(self, xid: Xid, flags: XaFlag = XaFlag.SUCCESS) -> None:
        """The session's part of the branch is done.

        Args:
            flags: SUCCESS; FAIL when it can only be rolled back; SUSPEND when the session goes on with it later.

        Raises:
            IllegalStateError: as `start`.
        """
        self._session.check_caller()
        self._check()
        demand_kind("flags", flags, int, "SUCCESS, FAIL or SUSPEND")
        request = self._machine.end(_wire(xid), int(flags))
        self._session.begin_to_wait()
        try:
            await self._answer(request)
        finally:
            self._session.end_to_wait()

    async def prepare(self, xid: Xid) -> bool:
        """Whether the branch is prepared, and waits for `commit` or `rollback` for as long as it takes.

        False when nothing was done in it, and it has ended."""
        self._check()
        request = self._machine.prepare(_wire(xid))
        await self._answer(request)
        return vote_of(request) != XA_RDONLY

    async def commit(self, xid: Xid, *, one_phase: bool = False) -> None:
        """
        Args:
            one_phase: the branch was not prepared.
        """
        self._check()
        demand_flag("one_phase", one_phase)
        await self._answer(self._machine.commit(_wire(xid), one_phase=one_phase))

    async def rollback(self, xid: Xid) -> None:
        """What was delivered in the branch is delivered again."""
        self._check()
        await self._answer(self._machine.rollback(_wire(xid)))

    async def recover(self) -> list[Xid]:
        """The prepared branches of the broker, of all its clients."""
        self._check()
        request = self._machine.recover()
        await self._answer(request)
        return [Xid(one.format_id, one.global_transaction_id, one.branch_qualifier) for one in xids_of(request)]

    async def forget(self, xid: Xid) -> None:
        """The coordinator knows how an operator has ended the branch."""
        self._check()
        await self._answer(self._machine.forget(_wire(xid)))

    def _check(self) -> None:
        self._link.check_loop()
        if self._link.error is not None:
            raise self._link.error
        self._link.machine.check_open()

    async def _answer(self, request: PendingRequest) -> None:
        await self._link.answer(request)


class AsyncXaSession(AsyncSession):
    """A session whose transactions are branches of distributed ones.

    Outside a branch it receives nothing; what it sends then is no part of any transaction.
    """

    def __init__(self, link: Link, machine: OpenWireClientSession, resource: XaBranches, connection: object) -> None:
        super().__init__(link, machine, connection)
        self._resource = AsyncXaResource(self, link, resource)

    @property
    def xa_resource(self) -> AsyncXaResource:
        """Starts and ends its branches."""
        return self._resource
