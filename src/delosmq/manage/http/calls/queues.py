"""The calls on queues."""

import asyncio
from functools import partial
from typing import Any, Final

from starlette.responses import Response

from delosmq.engine.api import Purge
from delosmq.manage.control.browse import MessageFilter
from delosmq.manage.control.pagination import Page
from delosmq.manage.control.queue_info import QueueInfo
from delosmq.manage.control.queues import ROUTING_TYPES, QueueControl
from delosmq.manage.http.answers import DeletedQueue, Purged, QueueList
from delosmq.manage.http.arrow import ARROW_TYPE, choose_columns
from delosmq.manage.http.calls.handlers import Handlers, peek_all
from delosmq.manage.http.operations import BASE, BROWSE, EDIT, VIEW, Answer, Call, operation
from delosmq.manage.http.requests.fields import LARGEST_INT
from delosmq.manage.http.requests.resources import (
    BrowseRows,
    CreateQueue,
    Forced,
    ListPage,
    Nothing,
    QueueFields,
    UpdateQueue,
)
from delosmq.model.settings import QueueSettings

_ALL: Final = f"{BASE}/queues"
_ONE: Final = f"{_ALL}/{{name}}"
PURGE_WAIT_S: Final = 5.0
"""A purge that takes longer goes on without its caller."""


class QueueCalls(Handlers[QueueControl]):
    """Handlers of ``/api/v1/queues``."""

    @operation("GET", _ALL, "listQueues", VIEW)
    async def list(self, call: Call, wanted: ListPage) -> Answer[QueueList]:
        """A page of the queues."""
        names = self._control.names(call.login, Page(wanted.after, wanted.limit, wanted.filter))
        found = await peek_all(names[: wanted.limit], partial(self._control.peek, call.login))
        following = names[wanted.limit - 1] if len(names) > wanted.limit else ""
        return self._answer(QueueList(found, following, self._control.notice(call.login)), entries=len(found))

    @operation("GET", _ONE, "getQueue", VIEW)
    async def get(self, call: Call) -> Answer[QueueInfo]:
        """One queue."""
        return self._answer(self._control.get(call.login, call.path["name"]))

    @operation("POST", _ALL, "createQueue", EDIT, status=201)
    async def create(self, call: Call, wanted: CreateQueue) -> Answer[QueueInfo]:
        """Create a queue."""
        fields = _settings(wanted)
        fields.setdefault("address", wanted.name)
        return self._answer(self._control.create(call.login, QueueSettings(**fields)))

    @operation("PATCH", _ONE, "updateQueue", EDIT)
    async def update(self, call: Call, wanted: UpdateQueue) -> Answer[QueueInfo]:
        """Change a queue."""
        return self._answer(self._control.update(call.login, call.path["name"], _settings(wanted)))

    @operation("DELETE", _ONE, "deleteQueue", EDIT)
    async def delete(self, call: Call, wanted: Forced) -> Answer[DeletedQueue]:
        """Delete a queue and what it holds."""
        name = call.path["name"]
        return self._answer(DeletedQueue(name, self._control.delete(call.login, name, force=wanted.force)))

    @operation("POST", f"{_ONE}/pause", "pauseQueue", EDIT)
    async def pause(self, call: Call, nothing: Nothing) -> Answer[QueueInfo]:
        """Deliver nothing until it is resumed."""
        return self._answer(self._control.pause(call.login, call.path["name"], paused=True))

    @operation("POST", f"{_ONE}/resume", "resumeQueue", EDIT)
    async def resume(self, call: Call, nothing: Nothing) -> Answer[QueueInfo]:
        """Deliver again."""
        return self._answer(self._control.pause(call.login, call.path["name"], paused=False))

    @operation("POST", f"{_ONE}/enable", "enableQueue", EDIT)
    async def enable(self, call: Call, nothing: Nothing) -> Answer[QueueInfo]:
        """Let messages enter again."""
        return self._answer(self._control.enable(call.login, call.path["name"], enabled=True))

    @operation("POST", f"{_ONE}/disable", "disableQueue", EDIT)
    async def disable(self, call: Call, nothing: Nothing) -> Answer[QueueInfo]:
        """Let no message enter until it is enabled."""
        return self._answer(self._control.enable(call.login, call.path["name"], enabled=False))

    @operation("POST", f"{_ONE}/purge", "purgeQueue", EDIT)
    async def purge(self, call: Call, nothing: Nothing) -> Answer[Purged]:
        """Remove all messages that are not in delivery to a consumer."""
        work = self._control.purge(call.login, call.path["name"])
        await self._finish(work)
        return self._answer(Purged(work.removed, work.done))

    async def _finish(self, work: Purge) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + PURGE_WAIT_S
        while not work.done and loop.time() < deadline:
            self._host.changed()
            await asyncio.sleep(0)

    @operation("GET", f"{_ONE}/rows", "browseQueue", BROWSE, media_type=ARROW_TYPE)
    async def rows(self, call: Call, wanted: BrowseRows) -> Response:
        """Messages of a queue in order of their sequence, without taking them."""
        names = choose_columns(wanted.columns, wanted.headers)
        queue = call.path["name"]
        only: MessageFilter | None = None
        if wanted.selector.strip() or wanted.since_ms or wanted.before_ms != LARGEST_INT:
            only = MessageFilter(
                wanted.selector, wanted.since_ms, wanted.before_ms, conversions=self._parts.conversions
            )
        browse = self._control.browse(
            call.login, queue, after=wanted.after, until=wanted.until, max_rows=wanted.max_rows, only=only
        )
        for _ in browse:
            await asyncio.sleep(0)
        return await self._rows(browse.found, names, queue)


def _settings(wanted: QueueFields) -> dict[str, Any]:
    """The fields of `QueueSettings` that a request names."""
    fields = wanted.model_dump(exclude_unset=True)
    if "routing_type" in fields:
        fields["routing_type"] = ROUTING_TYPES[fields["routing_type"]]
    if fields.get("filter", "") is None:
        fields["filter"] = ""
    if fields.get("address", "") is None:
        del fields["address"]
    return fields
