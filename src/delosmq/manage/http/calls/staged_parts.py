"""The calls of sinks that write exactly once."""

import asyncio
from typing import Final

from delosmq.engine.api import JobWaiter, SpaceWaiter, staging_errors
from delosmq.manage.http.answers import (
    BatchPublished,
    DiscardedParts,
    ForgottenApplication,
    PartStaged,
    StagedApplications,
    StagedParts,
)
from delosmq.manage.http.arrow import ARROW_TYPE, load_pyarrow
from delosmq.manage.http.calls.handlers import CallParts, Handlers
from delosmq.manage.http.operations import BASE, BODY_TIMEOUT_S, Answer, Call, operation
from delosmq.manage.http.problems import ProblemError
from delosmq.manage.http.requests.fields import LARGEST_INT
from delosmq.manage.http.requests.staged_parts import ListStaged, NamedParts, PublishedParts, StagePart
from delosmq.manage.http.staged_rows import StagedRows
from delosmq.manage.http.sync_wait import Drain
from delosmq.model.errors import BrokerError
from delosmq.model.message import ANY_ROUTING, ANYCAST, MULTICAST
from delosmq.security.access import AccessControl
from delosmq.sessions.staging.rows import RowDefaults
from delosmq.sessions.staging.session import PartCounts, StagedPartCall, StagingSession

_ALL: Final = f"{BASE}/staging"
_ONE: Final = f"{_ALL}/{{application}}"
_BATCH: Final = f"{_ONE}/{{batch}}"
_SEND: Final = "send on the address of each row"
_OWN: Final = "the user who staged for that application"
_OPERATOR: Final = "that user, or manage on the address activemq.management"
STAGE_LIMIT_BYTES: Final = 6 * 1024 * 1024
"""Of one part as it is sent; larger ones are several parts, unless they are one row."""
LARGE_LIMIT_BYTES: Final = 100 * 1024 * 1024
"""Of a part that is one row, whatever a message may have: it is in memory three times for a moment."""
LARGE_AT_ONCE: Final = 1
"""Calls with such a part that have a place."""
BESIDE_MESSAGE_BYTES: Final = 256 * 1024
"""What such a part may hold beside its message: a schema, and paddings."""
AT_ONCE: Final = 16
"""Calls that read such a body or work on it; others wait before theirs is read."""
WAITING_LIMIT_BYTES: Final = 64 * 1024 * 1024
"""Of the bodies of calls that wait for room at an address. They leave their place to others, which may stage for other
addresses."""
PLACE_TIMEOUT_S: Final = 20.0
"""Clients take a call that is not answered within 65 s for one to a dead broker."""
LOOK_AGAIN_S: Final = 1.0
_ROUTING: Final = {"": ANY_ROUTING, "ANYCAST": ANYCAST, "MULTICAST": MULTICAST}


class _Room(SpaceWaiter):
    """One wait for room."""

    def __init__(self) -> None:
        self.event = asyncio.Event()

    def on_space(self) -> None:
        self.event.set()


class _End(JobWaiter):
    """One wait for what goes on in slices."""

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self.error: BrokerError | None = None

    def on_ended(self, error: BrokerError | None) -> None:
        self.error = error
        self.event.set()


async def _happens(event: asyncio.Event, timeout_s: float) -> None:
    """Returns when the event has come, or the time is over."""
    try:
        async with asyncio.timeout(timeout_s):
            await event.wait()
    except TimeoutError:
        pass


class _BodyPlaces:
    """Bounds the memory for bodies.

    Attributes:
        working: calls that read a body or work on it; large: those of them with a large one.
        queued: calls that wait for their place there.
        waiting_bytes: of bodies that wait for room at an address.
    """

    def __init__(self) -> None:
        self.working = asyncio.Semaphore(AT_ONCE)
        self.large = asyncio.Semaphore(LARGE_AT_ONCE)
        self.queued = 0
        self.waiting_bytes = 0


class _BodyPlace:
    """The place of one call: first among those that work, then, once it had to wait, among those that wait."""

    def __init__(self, places: _BodyPlaces, *, large: bool) -> None:
        self._places = places
        # A large one waits among its like first, and takes no place from others meanwhile.
        self._needs = (places.large, places.working) if large else (places.working,)
        self._has: list[asyncio.Semaphore] = []
        self._size_bytes = 0

    async def __aenter__(self) -> "_BodyPlace":
        self._places.queued += 1
        try:
            async with asyncio.timeout(PLACE_TIMEOUT_S):
                for need in self._needs:
                    await need.acquire()
                    self._has.append(need)
        except asyncio.CancelledError:
            self._leave()
            raise
        except TimeoutError:
            self._leave()
            raise ProblemError(
                503,
                "DMQ6441",
                staging_errors.NO_ROOM_NOW,
                f"{AT_ONCE} other calls, or {LARGE_AT_ONCE} with a row as large as this one, have been staging for"
                f" {PLACE_TIMEOUT_S:.0f} s: nothing was staged; stage the part again in a moment, with fewer tasks at"
                " once if that comes often",
            ) from None
        finally:
            self._places.queued -= 1
        return self

    async def __aexit__(self, *_: object) -> None:
        self._places.waiting_bytes -= self._size_bytes
        self._leave()

    def _leave(self) -> None:
        for has in self._has:
            has.release()
        self._has = []

    def wait(self, size_bytes: int) -> bool:
        """Leaves its place to others before it waits; false when it may not wait, as others need the place."""
        if not self._has:
            return True
        if self._places.waiting_bytes + size_bytes > WAITING_LIMIT_BYTES:
            return self._places.queued == 0
        self._places.waiting_bytes += size_bytes
        self._size_bytes = size_bytes
        self._leave()
        return True


class StagingCalls(Handlers[AccessControl]):
    """Handlers of ``/api/v1/staging``."""

    def __init__(self, parts: CallParts, control: AccessControl, drain: Drain) -> None:
        super().__init__(parts, control)
        self._drain = drain
        self._places = _BodyPlaces()

    def _session(self, call: Call) -> StagingSession:
        """The staging calls with the permissions of who asks."""
        return StagingSession(self._broker, self._control, call.login, self._parts.conversions)

    @operation("POST", f"{_BATCH}/parts/{{part}}", "stagePart", _SEND, takes=ARROW_TYPE)
    async def stage(self, call: Call, wanted: StagePart) -> Answer[PartStaged]:
        """Stage rows: durable and invisible until their batch is published."""
        session = self._session(call)
        application, batch, part = call.path["application"], _batch(call), call.path["part"]
        if session.is_published(application, batch):
            return self._answer(PartStaged(part, 0, 0, 0, published=True))
        known = session.staged(application, batch, part)
        if known is not None:
            return self._staged(part, known)
        size_bytes = self._announced_bytes(call)
        async with _BodyPlace(self._places, large=size_bytes > STAGE_LIMIT_BYTES) as place:
            rows = await self._read_rows(call, max(size_bytes, STAGE_LIMIT_BYTES))
            defaults = RowDefaults(
                wanted.address,
                durable=wanted.durable,
                priority=wanted.priority,
                time_to_live_ms=wanted.time_to_live_ms,
            )
            # Asked again, as the body took its time.
            if session.staged(application, batch, part) is not None:
                raise ProblemError(409, "DMQ6435", "PART_BUSY", f"part '{part}' was staged by another call; ask again")
            made = session.begin(
                application,
                batch,
                part,
                defaults=defaults,
                routing=_ROUTING[wanted.routing_type],
                attempt=wanted.attempt,
                task=wanted.task,
                run=wanted.run,
            )
            try:
                await self._add(made, rows, wanted.wait_ms / 1000, place)
                await self._prepare(made)
            finally:
                made.abandon()
                self._host.changed()
        return self._staged(part, made.counts)

    def _staged(self, part: str, counts: PartCounts) -> Answer[PartStaged]:
        return self._answer(PartStaged(part, counts.rows, counts.duplicates, counts.dropped, published=False))

    def _announced_bytes(self, call: Call) -> int:
        """The length of the part, 0 when the request does not tell it."""
        # What the configuration lets a message have, not what there is room for now: that is waited for. A part of
        # several rows may be larger than any message.
        one_row = min(LARGE_LIMIT_BYTES, self._broker.producers.largest_message_bytes + BESIDE_MESSAGE_BYTES)
        most = max(STAGE_LIMIT_BYTES, one_row)
        announced = call.request.headers.get("content-length", "")
        size_bytes = int(announced[:20]) if announced.isascii() and announced.isdigit() else 0
        if size_bytes > most:
            raise ProblemError(
                413,
                "DMQ6439",
                "TOO_LARGE",
                f"a part that is one row may have {most} bytes as Arrow at this broker, and this one has {size_bytes};"
                " send a larger body in pieces, or by a client of another protocol",
            )
        return size_bytes

    async def _read_rows(self, call: Call, most_bytes: int) -> StagedRows:
        kind = call.request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != ARROW_TYPE:
            raise ProblemError(415, "DMQ6436", "NOT_ARROW", f"send rows with the header Content-Type: {ARROW_TYPE}")
        arrow = await load_pyarrow()
        body = await _collect(call, most_bytes)
        rows = await asyncio.to_thread(StagedRows, arrow, body)
        if rows.size_bytes > STAGE_LIMIT_BYTES and rows.count > 1:
            raise _too_large()
        return rows

    async def _add(self, made: StagedPartCall, rows: StagedRows, wait_s: float, place: _BodyPlace) -> None:
        deadline = asyncio.get_running_loop().time() + wait_s
        for part in rows.slices():
            at = 0
            while at < part.count:
                at = made.add(part, at, part.count)
                self._host.changed()
                if made.waits_for:
                    may_wait = place.wait(rows.size_bytes)
                    await self._wait_for_room(made, deadline if may_wait else 0.0)
            await asyncio.sleep(0)

    async def _wait_for_room(self, made: StagedPartCall, deadline: float) -> None:
        address = made.waits_for
        left = deadline - asyncio.get_running_loop().time()
        if left <= 0 or self._drain.started:
            raise ProblemError(
                503,
                "DMQ6437",
                staging_errors.NO_ROOM_NOW,
                f"there is no room at address '{address}' (address-full-policy BLOCK, or the disk is full;"
                f" {made.staged_there()}): nothing of this part was staged; consume messages, publish or discard what"
                " is staged, or raise max-size-bytes, and stage the part again",
            )
        wait = _Room()
        made.wait(wait)
        try:
            await _happens(wait.event, min(left, LOOK_AGAIN_S))
        finally:
            made.cancel_wait(address, wait)

    async def _prepare(self, made: StagedPartCall) -> None:
        end = _End()
        if made.prepare(end):
            return
        while not end.event.is_set():
            self._host.changed()
            await _happens(end.event, LOOK_AGAIN_S)
        if end.error is not None:
            raise end.error

    @operation("POST", f"{_BATCH}/publish", "publishBatch", _OWN)
    async def publish(self, call: Call, wanted: PublishedParts) -> Answer[BatchPublished]:
        """Publish all parts of a batch at once; once, however often it is called."""
        batch = _batch(call)
        session, application = self._session(call), call.path["application"]
        published = session.publish(application, batch, wanted.parts, attempt=wanted.attempt)
        return self._answer(BatchPublished(batch, already=not published, last=session.last_published(application)))

    @operation("POST", f"{_BATCH}/discard", "discardParts", _OWN)
    async def discard(self, call: Call, wanted: NamedParts) -> Answer[DiscardedParts]:
        """Discard parts of a batch; changes nothing once it is published."""
        count = self._session(call).discard(call.path["application"], _batch(call), wanted.parts)
        return self._answer(DiscardedParts(count))

    @operation("GET", f"{_ALL}/parts", "listStagedParts", _OPERATOR)
    async def parts(self, call: Call, wanted: ListStaged) -> Answer[StagedParts]:
        """A page of the staged parts, by their names."""
        found = self._session(call).parts(wanted.after, wanted.limit)
        following = found[-1].part if len(found) == wanted.limit else ""
        return self._answer(StagedParts(found, following), entries=len(found))

    @operation("GET", f"{_ALL}/applications", "listApplications", _OPERATOR)
    async def applications(self, call: Call, wanted: ListStaged) -> Answer[StagedApplications]:
        """A page of the applications that publish, with the last batch of each."""
        found = self._session(call).applications(wanted.after, wanted.limit)
        following = found[-1].application if len(found) == wanted.limit else ""
        return self._answer(StagedApplications(found, following), entries=len(found))

    @operation("DELETE", f"{_ONE}/parts", "discardAllParts", _OPERATOR)
    async def discard_all(self, call: Call) -> Answer[DiscardedParts]:
        """Discard all parts of an application that are not published."""
        return self._answer(DiscardedParts(self._session(call).discard_all(call.path["application"])))

    @operation("DELETE", _ONE, "forgetApplication", _OPERATOR)
    async def forget(self, call: Call) -> Answer[ForgottenApplication]:
        """Forget which batch an application published last: only when it never publishes again."""
        name = call.path["application"]
        return self._answer(ForgottenApplication(name, self._session(call).forget(name)))


def _batch(call: Call) -> int:
    text = call.path["batch"]
    if text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= LARGEST_INT:
        return int(text)
    raise ProblemError(400, "DMQ6438", "INVALID", f"'{text[:40]}' is no number of a batch")


async def _collect(call: Call, most_bytes: int) -> bytes:
    """The body of a request."""
    parts: list[bytes] = []
    size = 0
    # All have the same time for the same number of bytes.
    timeout_s = BODY_TIMEOUT_S * (1 + (most_bytes - 1) // STAGE_LIMIT_BYTES)
    try:
        async with asyncio.timeout(timeout_s):
            async for part in call.request.stream():
                size += len(part)
                if size > most_bytes:
                    raise _too_large()
                parts.append(part)
    except TimeoutError:
        raise ProblemError(
            400, "DMQ6440", "TOO_SLOW", f"the rows did not arrive within {timeout_s:.0f} s; stage smaller parts"
        ) from None
    return b"".join(parts)


def _too_large() -> ProblemError:
    return ProblemError(
        413,
        "DMQ6439",
        "TOO_LARGE",
        f"a part of several rows, or without Content-Length, may have {STAGE_LIMIT_BYTES} bytes as Arrow; stage the"
        " rest as another part",
    )
