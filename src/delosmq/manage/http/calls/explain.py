"""The calls that explain queues, messages and addresses, and those that show messages."""

from collections.abc import Generator
from types import coroutine
from typing import Final, TypeVar

from delosmq.manage.control.explain import ExplainControl, MessageExplanation, QueueExplanation
from delosmq.manage.control.explain_address import AddressExplanation, ExplainAddressControl
from delosmq.manage.control.messages import MessageControl, MessagePage, SentMessage
from delosmq.manage.http.calls.handlers import CallParts, Handlers
from delosmq.manage.http.operations import BASE, BROWSE, VIEW, Answer, Call, operation
from delosmq.manage.http.requests.resources import ExplainMessage, ExplainQueue, LookAtMessages, SendText

T = TypeVar("T")

_MESSAGES: Final = f"{BASE}/queues/{{name}}/messages"


class ExplainCalls(Handlers[ExplainControl]):
    """Handlers of ``/explain`` below a queue, a message and an address."""

    def __init__(self, parts: CallParts, control: ExplainControl, addresses: ExplainAddressControl) -> None:
        super().__init__(parts, control)
        self._addresses = addresses

    @operation("GET", f"{BASE}/queues/{{name}}/explain", "explainQueue", VIEW)
    async def queue(self, call: Call, wanted: ExplainQueue) -> Answer[QueueExplanation]:
        """Where the messages of a queue stand, and what to do about it."""
        walk = self._control.queue(call.login, call.path["name"], after=wanted.after, limit=wanted.limit)
        return self._answer(await _finish(walk), entries=wanted.limit)

    @operation("GET", f"{BASE}/messages/{{id}}/explain", "explainMessage", VIEW)
    async def message(self, call: Call, wanted: ExplainMessage) -> Answer[MessageExplanation]:
        """Where a message stands in each queue."""
        return self._answer(await _finish(self._control.message(call.login, call.path["id"], wanted.queue)))

    @operation("GET", f"{BASE}/addresses/{{name}}/explain", "explainAddress", VIEW)
    async def address(self, call: Call) -> Answer[AddressExplanation]:
        """Where messages sent to an address go."""
        found = self._addresses.address(call.login, call.path["name"])
        return self._answer(found, entries=len(found.queues))


class MessageCalls(Handlers[MessageControl]):
    """Handlers of ``/api/v1/queues/{name}/messages``."""

    @operation("GET", _MESSAGES, "lookAtMessages", BROWSE)
    async def look(self, call: Call, wanted: LookAtMessages) -> Answer[MessagePage]:
        """Messages of a queue in order of their sequence, with the beginning of their bodies."""
        walk = self._control.look(
            call.login, call.path["name"], after=wanted.after, limit=wanted.limit, letters=wanted.text
        )
        return self._answer(await _finish(walk), entries=wanted.limit)

    @operation("POST", _MESSAGES, "sendText", "send on the address", status=201)
    async def send(self, call: Call, wanted: SendText) -> Answer[SentMessage]:
        """Send a text to this queue."""
        sent = self._control.send(
            call.login, call.path["name"], wanted.text, durable=wanted.durable, priority=wanted.priority
        )
        return self._answer(sent)


@coroutine
def _finish(walk: Generator[None, None, T]) -> Generator[None, None, T]:
    """What a walk gives; each of its steps ends a turn of the loop, as `asyncio.sleep` of 0 does."""
    return (yield from walk)
