"""The calls on the broker, its addresses and its transactions."""

import asyncio
from functools import partial
from typing import Final

from delosmq.engine.api import EngineBroker, JobWaiter
from delosmq.manage.control.addresses import AddressControl
from delosmq.manage.control.broker import BrokerControl
from delosmq.manage.control.host import Host
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
from delosmq.manage.http.calls.handlers import Handlers, peek_all
from delosmq.manage.http.operations import Answer, Call
from delosmq.manage.http.requests import CreateAddress, Forced, HeuristicPage, ListPage, TransactionPage
from delosmq.model.errors import BrokerError

COMMIT_WAIT_S: Final = 5.0
"""A commit that takes longer goes on without its caller."""


class BrokerCalls(Handlers):
    """Handlers of ``/api/v1/broker`` and ``/api/v1/addresses``."""

    def __init__(self, broker: EngineBroker, control: BrokerControl, addresses: AddressControl, host: Host) -> None:
        super().__init__(broker, host)
        self._control = control
        self._addresses = addresses

    async def get(self, call: Call) -> Answer:
        return self._answer(self._control.get())

    async def list_addresses(self, call: Call) -> Answer:
        wanted: ListPage = call.query
        names = self._addresses.names(call.login, Page(wanted.after, wanted.limit, wanted.filter))
        found = await peek_all(names[: wanted.limit], partial(self._addresses.peek, call.login))
        following = names[wanted.limit - 1] if len(names) > wanted.limit else ""
        return self._answer(AddressList(found, following, self._addresses.notice(call.login)), entries=len(found))

    async def get_address(self, call: Call) -> Answer:
        return self._answer(self._addresses.get(call.login, call.path["name"]))

    async def create_address(self, call: Call) -> Answer:
        wanted: CreateAddress = call.body
        return self._answer(self._addresses.create(call.login, wanted.name, list(wanted.routing_types)), status=201)

    async def delete_address(self, call: Call) -> Answer:
        wanted: Forced = call.query
        name = call.path["name"]
        return self._answer(DeletedAddress(name, self._addresses.delete(call.login, name, force=wanted.force)))

    async def clear_duplicate_ids(self, call: Call) -> Answer:
        return self._answer(Cleared(self._addresses.clear_duplicate_ids(call.login, call.path["name"])))


class _Ending(JobWaiter):
    """A request that waits for the end of a commit."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()

    def on_ended(self, error: BrokerError | None) -> None:
        self.ended.set()


class TransactionCalls(Handlers):
    """Handlers of ``/api/v1/transactions``."""

    def __init__(self, broker: EngineBroker, control: TransactionControl, host: Host) -> None:
        super().__init__(broker, host)
        self._control = control

    async def list(self, call: Call) -> Answer:
        wanted: TransactionPage = call.query
        ids = self._control.ids(call.login, after=wanted.after, limit=wanted.limit, prepared_only=wanted.prepared)
        found = await peek_all(ids[: wanted.limit], self._control.peek)
        following = ids[wanted.limit - 1] if len(ids) > wanted.limit else 0
        return self._answer(TransactionList(found, following), entries=len(found))

    async def commit(self, call: Call) -> Answer:
        xid = call.path["xid"]
        ending = _Ending()
        done = self._control.commit(call.login, xid, ending)
        self._host.changed()
        if not done:
            try:
                async with asyncio.timeout(COMMIT_WAIT_S):
                    done = await ending.ended.wait()
            except TimeoutError:
                pass
        return self._answer(BranchEnd(xid, COMMITTED, done))

    async def roll_back(self, call: Call) -> Answer:
        xid = call.path["xid"]
        self._control.roll_back(call.login, xid)
        return self._answer(BranchEnd(xid, ROLLED_BACK, True))

    async def forget(self, call: Call) -> Answer:
        xid = call.path["xid"]
        self._control.forget(call.login, xid)
        return self._answer(BranchEnd(xid, FORGOTTEN, True))

    async def list_heuristics(self, call: Call) -> Answer:
        wanted: HeuristicPage = call.query
        found = self._control.heuristics(call.login, after=wanted.after, limit=wanted.limit)
        shown = found[: wanted.limit]
        following = shown[-1].xid if len(found) > wanted.limit else ""
        return self._answer(HeuristicList(shown, following), entries=len(shown))
