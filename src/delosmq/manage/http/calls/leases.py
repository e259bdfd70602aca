"""The calls of lease readers."""

import asyncio
from collections.abc import Sequence
from typing import Final

from starlette.requests import ClientDisconnect
from starlette.responses import Response

from delosmq.engine.api import Slot
from delosmq.engine.api import lease as leases
from delosmq.manage.http.answers import Acked, GroupList, LeaseList, Released
from delosmq.manage.http.arrow import ARROW_TYPE, ROWS_PER_TURN, SLICE_ROWS, choose_columns
from delosmq.manage.http.calls.handlers import CallParts, Handlers
from delosmq.manage.http.operations import BASE, Answer, Call, operation
from delosmq.manage.http.problems import ProblemError
from delosmq.manage.http.requests.fields import LARGEST_INT
from delosmq.manage.http.requests.leases import (
    AckLeases,
    DescribeLeases,
    GroupLife,
    GroupStart,
    LeaseRows,
    NextLease,
    OpenLeases,
    ReaderEpoch,
    ReleaseGroup,
    TouchGroup,
)
from delosmq.manage.http.sync_wait import Drain, LongPoll, wait_synced
from delosmq.security.access import AccessControl
from delosmq.sessions.lease.answers import GroupDetail, GroupStat, LeaseExtent, OpenedGroup
from delosmq.sessions.lease.columns import BODY_BYTES, NO_LIMIT, body_lengths, body_of
from delosmq.sessions.lease.session import LeaseRequest, LeaseSession, nothing_new

_ALL: Final = f"{BASE}/leases"
_ONE: Final = f"{_ALL}/{{group}}"
_CONSUME: Final = "consume on the address of the queue"
BODY_TYPE: Final = "application/octet-stream"
SETTLE_PAUSE_S: Final = 0.005
"""While ticks work off what a group acknowledged, before it is released."""


class LeaseCalls(Handlers[AccessControl]):
    """Handlers of ``/api/v1/leases``."""

    def __init__(self, parts: CallParts, control: AccessControl, drain: Drain) -> None:
        super().__init__(parts, control)
        self._drain = drain

    def _session(self, call: Call) -> LeaseSession:
        """The lease calls with the permissions of who asks."""
        return LeaseSession(self._broker, self._control, call.login)

    @operation("GET", _ALL, "listGroups", _CONSUME)
    async def list(self, call: Call) -> Answer[GroupList]:
        """All lease groups."""
        return self._answer(GroupList(self._session(call).stats()))

    @operation("GET", _ONE, "showGroup", _CONSUME)
    async def show(self, call: Call) -> Answer[GroupDetail]:
        """Where a group stands, and its leases; unlike `stat` this is no sign of life of its reader."""
        return self._answer(self._session(call).show(call.path["group"]))

    @operation("POST", f"{_ONE}/open", "openGroup", f"{_CONSUME}; createDurableQueue for a new subscription to a topic")
    async def open(self, call: Call, wanted: OpenLeases) -> Answer[OpenedGroup]:
        """Open a group under a new epoch, which fences all earlier ones."""
        opened = self._session(call).open(
            call.path["group"],
            queue=wanted.queue or "",
            topic=wanted.topic or "",
            run=wanted.run,
            incarnation=wanted.incarnation,
            selector=wanted.selector,
            start=_start(wanted.start),
        )
        return self._answer(opened)

    @operation("POST", f"{_ONE}/lease", "nextLease", _CONSUME)
    async def next(self, call: Call, wanted: NextLease) -> Answer[LeaseExtent]:
        """Acknowledge leases and get the next one; waits for messages."""
        request = LeaseRequest(wanted.after, wanted.max_rows, wanted.max_bytes, wanted.epoch, wanted.until)
        session = self._session(call)
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

    @operation("POST", f"{_ONE}/touch", "touchGroup", _CONSUME)
    async def touch(self, call: Call, wanted: TouchGroup) -> Answer[GroupStat]:
        """A sign of life of a reader, and nothing else."""
        return self._answer(self._session(call).touch(call.path["group"], wanted.epoch))

    @operation("GET", f"{_ONE}/stat", "statGroup", _CONSUME)
    async def stat(self, call: Call, wanted: ReaderEpoch) -> Answer[GroupStat]:
        """Where a group stands; a sign of life of its reader with the epoch of that alone."""
        return self._answer(self._session(call).stat(call.path["group"], wanted.epoch))

    @operation("GET", f"{_ONE}/describe", "describeLeases", _CONSUME)
    async def describe(self, call: Call, wanted: DescribeLeases) -> Answer[LeaseList]:
        """Rows and bytes of leases."""
        session = self._session(call)
        return self._answer(LeaseList(session.describe(call.path["group"], wanted.after, wanted.upto, wanted.epoch)))

    @operation("GET", f"{_ONE}/{{lease}}/rows", "fetchRows", _CONSUME, media_type=ARROW_TYPE)
    async def rows(self, call: Call, wanted: LeaseRows) -> Response:
        """Rows of a lease; changes nothing."""
        names = choose_columns(wanted.columns, wanted.headers)
        if wanted.part >= wanted.of:
            raise ProblemError(
                400, "DMQ6419", "INVALID", f"'part' is {wanted.part} of {wanted.of}; parts are counted from 0"
            )
        most = NO_LIMIT if wanted.max_body_bytes is None else wanted.max_body_bytes
        if most != NO_LIMIT and wanted.large == "reference" and BODY_BYTES not in names:
            names = (*names, BODY_BYTES)
        group = call.path["group"]
        session = self._session(call)
        number = _lease_number(call.path["lease"])
        queue = self._broker.leases.find(group).queue.name
        if wanted.of > 1:
            parts = session.parts(group, number, wanted.of, wanted.epoch, incarnation=wanted.incarnation)
            while not parts.is_complete:
                parts.step(SLICE_ROWS)
                await asyncio.sleep(0)
            slots = parts.part(wanted.part, wanted.lo, wanted.hi)
        else:
            slots = session.rows(group, number, wanted.lo, wanted.hi, wanted.epoch, incarnation=wanted.incarnation)
        if most != NO_LIMIT and wanted.large == "refuse":
            await self._check_bodies(slots, most)
        return await self._rows(slots, names, queue, most)

    async def _check_bodies(self, slots: Sequence[Slot], most: int) -> None:
        for start in range(0, len(slots), ROWS_PER_TURN):
            turn = slots[start : start + ROWS_PER_TURN]
            for slot, length in zip(turn, body_lengths([*turn], self._parts.conversions), strict=True):
                if length > most:
                    raise ProblemError(
                        409,
                        "DMQ6420",
                        "BODY_TOO_LARGE",
                        f"the body of message {slot.sequence} has {length} bytes, and max_body_bytes is {most}: raise"
                        " it, or ask for references with large=reference and fetch such bodies one by one",
                    )
            await asyncio.sleep(0)

    @operation("GET", f"{_ONE}/{{lease}}/rows/{{sequence}}/body", "fetchBody", _CONSUME, media_type=BODY_TYPE)
    async def body(self, call: Call, wanted: GroupLife) -> Response:
        """The body of one row of a lease, however long."""
        numbers = _lease_number(call.path["lease"]), _lease_number(call.path["sequence"])
        slot = self._session(call).row(call.path["group"], *numbers, incarnation=wanted.incarnation)
        position = self._broker.log.position
        self._host.changed()
        await wait_synced(self._parts.gate, position)
        return Response(body_of(slot.message, self._parts.conversions), media_type=BODY_TYPE)

    @operation("POST", f"{_ONE}/ack", "ackLeases", _CONSUME)
    async def ack(self, call: Call, wanted: AckLeases) -> Answer[Acked]:
        """Acknowledge leases."""
        acked = self._session(call).acknowledge(call.path["group"], wanted.lease, wanted.epoch)
        return self._answer(Acked(acked))

    @operation("POST", f"{_ONE}/release", "releaseGroup", _CONSUME)
    async def release(self, call: Call, wanted: ReleaseGroup) -> Answer[Released]:
        """End a group; what it did not acknowledge goes back in order."""
        session = self._session(call)
        while not session.may_release(call.path["group"], wanted.epoch):
            self._host.changed()
            await asyncio.sleep(SETTLE_PAUSE_S)
        return self._answer(Released(session.release(call.path["group"], wanted.epoch)))


def _start(wanted: str | GroupStart) -> leases.LeaseStart:
    if isinstance(wanted, str):
        return leases.LeaseStart(latest=wanted == "latest")
    if (wanted.sequence is None) == (wanted.time_ms is None):
        raise ProblemError(
            400, "DMQ6418", "INVALID", "start needs either a sequence or a time_ms, not both or neither; or 'latest'"
        )
    return leases.LeaseStart(wanted.sequence or 0, wanted.time_ms or 0)


def _lease_number(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= LARGEST_INT:
        return int(text)
    raise ProblemError(400, "DMQ6408", "INVALID", f"'{text[:40]}' is no number of a lease")
