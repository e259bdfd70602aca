"""The calls of lease readers."""

import asyncio
import logging
from typing import Final

from starlette.requests import ClientDisconnect
from starlette.responses import Response

from delosmq.engine.api import EngineBroker
from delosmq.manage.control.host import Host
from delosmq.manage.control.leases import LeaseControl
from delosmq.manage.http.answers import Acked, GroupList, LeaseList, Released
from delosmq.manage.http.arrow import choose_columns
from delosmq.manage.http.calls.handlers import RowHandlers
from delosmq.manage.http.operations import Answer, Call
from delosmq.manage.http.problems import ProblemError
from delosmq.manage.http.requests import (
    LARGEST_INT,
    AckLeases,
    DescribeLeases,
    LeaseRows,
    NextLease,
    OpenLeases,
)
from delosmq.manage.http.sync_wait import Drain, LongPoll
from delosmq.model.conversion import Conversions
from delosmq.sessions.lease.answers import LeaseExtent
from delosmq.sessions.lease.session import LeaseRequest, LeaseSession, nothing_new
from delosmq.sessions.outbox import Gate

SETTLE_PAUSE_S: Final = 0.005
"""While ticks work off what a group acknowledged, before it is released."""


class LeaseCalls(RowHandlers):
    """Handlers of ``/api/v1/leases``."""

    def __init__(
        self,
        broker: EngineBroker,
        control: LeaseControl,
        host: Host,
        *,
        gate: Gate,
        drain: Drain,
        conversions: Conversions,
        logger: logging.Logger,
    ) -> None:
        super().__init__(broker, host, gate, conversions=conversions, logger=logger)
        self._control = control
        self._drain = drain

    async def list(self, call: Call) -> Answer:
        return self._answer(GroupList(self._control.session(call.login).stats()))

    async def open(self, call: Call) -> Answer:
        wanted: OpenLeases = call.body
        opened = self._control.session(call.login).open(
            call.path["group"],
            queue=wanted.queue or "",
            topic=wanted.topic or "",
            run=wanted.run,
            incarnation=wanted.incarnation,
        )
        return self._answer(opened)

    async def next(self, call: Call) -> Answer:
        """POST /leases/{group}/lease: answers at once when there is something, else when it comes or time is up."""
        wanted: NextLease = call.body
        request = LeaseRequest(wanted.after, wanted.max_rows, wanted.max_bytes, wanted.epoch, wanted.until)
        session = self._control.session(call.login)
        poll = LongPoll(call.request, self._drain, wanted.wait_ms)
        try:
            lease = await self._poll(session, call.path["group"], request, poll)
        finally:
            await poll.close()
        return self._answer(lease)

    async def _poll(self, session: LeaseSession, group: str, request: LeaseRequest, poll: LongPoll) -> LeaseExtent:
        while True:
            step = session.request(group, request)
            self._host.changed()
            if step.lease is not None:
                return step.lease
            if not step.collecting and (not step.may_wait or poll.is_over):
                return nothing_new(request.after)
            session.wait(group, poll)
            try:
                await poll.wait(collecting=step.collecting)
            finally:
                session.cancel_wait(group, poll)
            if poll.departed:
                # What was collected stays with the group: the reader's next request goes on there.
                raise ClientDisconnect

    async def stat(self, call: Call) -> Answer:
        return self._answer(self._control.session(call.login).stat(call.path["group"]))

    async def describe(self, call: Call) -> Answer:
        wanted: DescribeLeases = call.query
        session = self._control.session(call.login)
        return self._answer(LeaseList(session.describe(call.path["group"], wanted.after, wanted.upto)))

    async def rows(self, call: Call) -> Response:
        wanted: LeaseRows = call.query
        names = choose_columns(wanted.columns, wanted.headers)
        group = call.path["group"]
        session = self._control.session(call.login)
        slots = session.rows(group, _lease_number(call.path["lease"]), wanted.lo, wanted.hi)
        queue = self._broker.leases.find(group).queue.name
        return await self._rows(slots, names, queue)

    async def ack(self, call: Call) -> Answer:
        wanted: AckLeases = call.body
        acked = self._control.session(call.login).acknowledge(call.path["group"], wanted.lease, wanted.epoch)
        return self._answer(Acked(acked))

    async def release(self, call: Call) -> Answer:
        session = self._control.session(call.login)
        while not session.may_release(call.path["group"]):
            self._host.changed()
            await asyncio.sleep(SETTLE_PAUSE_S)
        return self._answer(Released(session.release(call.path["group"])))


def _lease_number(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= LARGEST_INT:
        return int(text)
    raise ProblemError(400, "DMQ6408", "INVALID", f"'{text[:40]}' is no number of a lease")
