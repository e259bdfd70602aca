"""The calls on the broker, its addresses and its transactions."""

import asyncio
from functools import partial
from typing import Final

from delosmq.engine.api import JobWaiter
from delosmq.manage.control.addresses import AddressControl, AddressInfo
from delosmq.manage.control.broker import BrokerControl, BrokerStatus
from delosmq.manage.control.pagination import Page
from delosmq.manage.control.transactions import (
    COMMITTED,
    FORGOTTEN,
    ROLLED_BACK,
    TransactionControl,
)
from delosmq.manage.http.answers import (
    AddressList,
    BranchEnd,
    Cleared,
    DeletedAddress,
    HeuristicList,
    TransactionList,
)
from delosmq.manage.http.calls.handlers import CallParts, Handlers, peek_all
from delosmq.manage.http.operations import BASE, EDIT, LOGIN, VIEW, Answer, Call, operation
from delosmq.manage.http.requests.resources import (
    CreateAddress,
    Forced,
    HeuristicPage,
    ListPage,
    Nothing,
    TransactionPage,
)
from delosmq.model.errors import BrokerError

_ADDRESSES: Final = f"{BASE}/addresses"
_ADDRESS: Final = f"{_ADDRESSES}/{{name}}"
_TRANSACTIONS: Final = f"{BASE}/transactions"
_MANAGE: Final = "manage on the address activemq.management"
COMMIT_WAIT_S: Final = 5.0
"""A commit that takes longer goes on without its caller."""


class BrokerCalls(Handlers[BrokerControl]):
    """Handlers of ``/api/v1/broker`` and ``/api/v1/addresses``."""

    def __init__(self, parts: CallParts, control: BrokerControl, addresses: AddressControl) -> None:
        super().__init__(parts, control)
        self._addresses = addresses

    @operation("GET", f"{BASE}/broker", "getBroker", LOGIN)
    async def get(self, call: Call) -> Answer[BrokerStatus]:
        """The broker as it stands."""
        return self._answer(self._control.get())

    @operation("GET", _ADDRESSES, "listAddresses", VIEW)
    async def list_addresses(self, call: Call, wanted: ListPage) -> Answer[AddressList]:
        """A page of the addresses."""
        names = self._addresses.names(call.login, Page(wanted.after, wanted.limit, wanted.filter))
        found = await peek_all(names[: wanted.limit], partial(self._addresses.peek, call.login))
        following = names[wanted.limit - 1] if len(names) > wanted.limit else ""
        return self._answer(AddressList(found, following, self._addresses.notice(call.login)), entries=len(found))

    @operation("GET", _ADDRESS, "getAddress", VIEW)
    async def get_address(self, call: Call) -> Answer[AddressInfo]:
        """One address."""
        return self._answer(self._addresses.get(call.login, call.path["name"]))

    @operation("POST", _ADDRESSES, "createAddress", EDIT, status=201)
    async def create_address(self, call: Call, wanted: CreateAddress) -> Answer[AddressInfo]:
        """Create an address, or give it more routing types."""
        return self._answer(self._addresses.create(call.login, wanted.name, list(wanted.routing_types)))

    @operation("DELETE", _ADDRESS, "deleteAddress", EDIT)
    async def delete_address(self, call: Call, wanted: Forced) -> Answer[DeletedAddress]:
        """Delete an address, with force its queues too."""
        name = call.path["name"]
        return self._answer(DeletedAddress(name, self._addresses.delete(call.login, name, force=wanted.force)))

    @operation("DELETE", f"{_ADDRESS}/duplicate-ids", "clearDuplicateIds", EDIT)
    async def clear_duplicate_ids(self, call: Call) -> Answer[Cleared]:
        """Forget which duplicate ids were sent to an address."""
        return self._answer(Cleared(self._addresses.clear_duplicate_ids(call.login, call.path["name"])))


class _CommitWaiter(JobWaiter):
    """A request that waits for the end of a commit."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()

    def on_ended(self, error: BrokerError | None) -> None:
        self.ended.set()


class TransactionCalls(Handlers[TransactionControl]):
    """Handlers of ``/api/v1/transactions``."""

    @operation("GET", _TRANSACTIONS, "listTransactions", _MANAGE)
    async def list(self, call: Call, wanted: TransactionPage) -> Answer[TransactionList]:
        """A page of the open and prepared transactions."""
        ids = self._control.ids(call.login, after=wanted.after, limit=wanted.limit, prepared_only=wanted.prepared)
        found = await peek_all(ids[: wanted.limit], self._control.peek)
        following = ids[wanted.limit - 1] if len(ids) > wanted.limit else 0
        return self._answer(TransactionList(found, following), entries=len(found))

    @operation("POST", f"{_TRANSACTIONS}/{{xid}}/commit", "commitBranch", _MANAGE)
    async def commit(self, call: Call, nothing: Nothing) -> Answer[BranchEnd]:
        """Commit a prepared branch in place of its coordinator."""
        xid = call.path["xid"]
        waiter = _CommitWaiter()
        done = self._control.commit(call.login, xid, waiter)
        self._host.changed()
        if not done:
            try:
                async with asyncio.timeout(COMMIT_WAIT_S):
                    done = await waiter.ended.wait()
            except TimeoutError:
                pass
        return self._answer(BranchEnd(xid, COMMITTED, done))

    @operation("POST", f"{_TRANSACTIONS}/{{xid}}/rollback", "rollBackBranch", _MANAGE)
    async def roll_back(self, call: Call, nothing: Nothing) -> Answer[BranchEnd]:
        """Roll a prepared branch back in place of its coordinator."""
        xid = call.path["xid"]
        self._control.roll_back(call.login, xid)
        return self._answer(BranchEnd(xid, ROLLED_BACK, True))

    @operation("POST", f"{_TRANSACTIONS}/{{xid}}/forget", "forgetBranch", _MANAGE)
    async def forget(self, call: Call, nothing: Nothing) -> Answer[BranchEnd]:
        """Forget a branch that an operator ended, in place of its coordinator."""
        xid = call.path["xid"]
        self._control.forget(call.login, xid)
        return self._answer(BranchEnd(xid, FORGOTTEN, True))

    @operation("GET", f"{_TRANSACTIONS}/heuristics", "listHeuristics", _MANAGE)
    async def list_heuristics(self, call: Call, wanted: HeuristicPage) -> Answer[HeuristicList]:
        """A page of the branches that operators ended, until their coordinators forget them."""
        found = self._control.heuristics(call.login, after=wanted.after, limit=wanted.limit)
        shown = found[: wanted.limit]
        following = shown[-1].xid if len(found) > wanted.limit else ""
        return self._answer(HeuristicList(shown, following), entries=len(shown))
