"""The calls that explain queues, messages and addresses, and those that show messages."""

import asyncio
from collections.abc import Generator
from contextlib import closing

from delosmq.engine.api import EngineBroker
from delosmq.manage.control.explain import ExplainControl
from delosmq.manage.control.explain_address import ExplainAddressControl
from delosmq.manage.control.host import Host
from delosmq.manage.control.messages import MessageControl
from delosmq.manage.http.calls.handlers import Handlers
from delosmq.manage.http.operations import Answer, Call
from delosmq.manage.http.requests import ExplainMessage, ExplainQueue, LookAtMessages, SendText


class ExplainCalls(Handlers):
    """Handlers of ``/explain`` below a queue, a message and an address."""

    def __init__(
        self, broker: EngineBroker, control: ExplainControl, addresses: ExplainAddressControl, host: Host
    ) -> None:
        super().__init__(broker, host)
        self._addresses = addresses
        self._control = control

    async def queue(self, call: Call) -> Answer:
        wanted: ExplainQueue = call.query
        walk = self._control.queue(call.login, call.path["name"], after=wanted.after, limit=wanted.limit)
        await _finish(walk.steps())
        return self._answer(walk.result, entries=wanted.limit)

    async def message(self, call: Call) -> Answer:
        wanted: ExplainMessage = call.query
        walk = self._control.message(call.login, call.path["id"], wanted.queue)
        await _finish(walk.steps())
        return self._answer(walk.result, entries=1)

    async def address(self, call: Call) -> Answer:
        found = self._addresses.address(call.login, call.path["name"])
        return self._answer(found, entries=len(found.queues))


class MessageCalls(Handlers):
    """Handlers of ``/api/v1/queues/{name}/messages``."""

    def __init__(self, broker: EngineBroker, control: MessageControl, host: Host) -> None:
        super().__init__(broker, host)
        self._control = control

    async def look(self, call: Call) -> Answer:
        wanted: LookAtMessages = call.query
        walk = self._control.look(
            call.login, call.path["name"], after=wanted.after, limit=wanted.limit, letters=wanted.text
        )
        await _finish(walk.steps())
        return self._answer(walk.result, entries=wanted.limit)

    async def send(self, call: Call) -> Answer:
        wanted: SendText = call.body
        sent = self._control.send(
            call.login, call.path["name"], wanted.text, durable=wanted.durable, priority=wanted.priority
        )
        return self._answer(sent, status=201)


async def _finish(steps: Generator[None, None, None]) -> None:
    """A walk to its end, with the loop's other work between the slices; cut short, it leaves nothing behind."""
    with closing(steps):
        for _ in steps:
            await asyncio.sleep(0)
