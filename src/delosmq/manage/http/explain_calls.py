"""The calls that explain queues and messages."""

import asyncio
from collections.abc import Generator
from contextlib import closing

from delosmq.engine.broker import Broker
from delosmq.manage.control.explain import ExplainControl
from delosmq.manage.control.host import Host
from delosmq.manage.http.operations import Answer, Call
from delosmq.manage.http.requests import ExplainMessage, ExplainQueue


class ExplainCalls:
    """Handlers of ``/api/v1/queues/{name}/explain`` and ``/api/v1/messages/{id}/explain``."""

    def __init__(self, broker: Broker, control: ExplainControl, host: Host) -> None:
        self._broker = broker
        self._control = control
        self._host = host

    async def queue(self, call: Call) -> Answer:
        """GET /queues/{name}/explain."""
        wanted: ExplainQueue = call.query
        walk = self._control.queue(call.login, call.path["name"], after=wanted.after, limit=wanted.limit)
        await _finish(walk.steps())
        return self._answer(walk.result, wanted.limit)

    async def message(self, call: Call) -> Answer:
        """GET /messages/{id}/explain."""
        wanted: ExplainMessage = call.query
        walk = self._control.message(call.login, call.path["id"], wanted.queue)
        await _finish(walk.steps())
        return self._answer(walk.result, 1)

    def _answer(self, content: object, entries: int) -> Answer:
        self._host.changed()
        return Answer(content, self._broker.log.position, entries=entries)


async def _finish(steps: Generator[None, None, None]) -> None:
    """A walk to its end, with the loop's other work between the slices; cut short, it leaves nothing behind."""
    with closing(steps):
        for _ in steps:
            await asyncio.sleep(0)
