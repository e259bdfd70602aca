"""A queue as a test sees it: what is in it, who consumes it, waits for it, and assertions that explain."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Final, TypedDict, TypeVar, Unpack

from delosmq.config.findings import nearest
from delosmq.embedded.arguments import ROLE, default_settings
from delosmq.embedded.broker import Broker
from delosmq.engine.api import Queue
from delosmq.manage.control.browse import finish
from delosmq.manage.control.explain import ConsumerStanding, ExplainControl, QueueExplanation
from delosmq.manage.control.messages import MessageControl, ShownMessage
from delosmq.manage.control.queues import QueueControl
from delosmq.model.errors import MisuseError, NotFoundError
from delosmq.model.phrases import counted, one_line
from delosmq.model.reserved_names import ADVISORY_PREFIX
from delosmq.security.access import AccessControl, Login
from delosmq.testing.watched_ticker import Watchers

T = TypeVar("T")
DEFAULT_TIMEOUT_S: Final = 10.0
MOST_MESSAGES: Final = 10_000
"""That `QueueView.messages` gives."""
MOST_LETTERS: Final = 1 << 20
SHOWN: Final = 10
"""Messages that a failed assertion shows."""
SHOWN_LETTERS: Final = 60
LOOKER: Final = Login("test", frozenset({ROLE}))


@dataclass(frozen=True)
class QueueCounts:
    """What a queue counts; all 0 for a queue that does not exist (yet, or any more).

    Attributes:
        messages: all that are in it, hence also those in delivery and those that are not due yet.
        delivering: sent to a consumer that has not acknowledged them.
        scheduled: not due yet, such as redeliveries after a delay.
        consumers: consumers and lease groups.
        added, acknowledged, expired: since the queue was made, or the broker started.
        dead: the same, of those whose deliveries were used up.
    """

    messages: int = 0
    delivering: int = 0
    scheduled: int = 0
    consumers: int = 0
    added: int = 0
    acknowledged: int = 0
    expired: int = 0
    dead: int = 0


class WantedCounts(TypedDict, total=False):
    """Those of `QueueCounts` that an assertion or a wait is about."""

    messages: int
    delivering: int
    scheduled: int
    consumers: int
    added: int
    acknowledged: int
    expired: int
    dead: int


def on_broker(broker: Broker, work: Callable[[], T]) -> T:
    """Calls ``work`` on the broker's thread, between two of its turns, and gives what it gives."""

    async def call() -> T:
        return work()

    return broker.call(call())


def names_of(broker: Broker, *, advisories: bool) -> list[str]:
    """Of queues, in order: those in which clients of OpenWire hear of what happens, or all others. On its thread."""
    queues = broker.composed.broker.queues.items()
    return sorted(name for name, one in queues if not one.internal and name.startswith(ADVISORY_PREFIX) == advisories)


def _counts_of(queue: Queue | None) -> QueueCounts:
    if queue is None:
        return QueueCounts()
    return QueueCounts(
        messages=queue.message_count,
        delivering=queue.delivering.count,
        scheduled=queue.scheduled.count,
        consumers=len(queue.holders),
        added=queue.counters.added,
        acknowledged=queue.counters.acknowledged,
        expired=queue.counters.expired,
        dead=queue.counters.killed,
    )


def _named(counts: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={count}" for name, count in counts.items())


class QueueView:
    """One queue of a broker under test, by its name; it may exist or not.

    All but the coroutine may be called anywhere but on the broker's own thread, also inside a running event loop.
    """

    def __init__(self, broker: Broker, name: str, watchers: Watchers) -> None:
        self.name = name
        self._broker = broker
        self._watchers = watchers
        # Whatever the broker's users may do: the test may look at everything.
        settings = default_settings().security_settings
        self._access = AccessControl({}, {}, settings, cache_key=bytes(32))

    @property
    def exists(self) -> bool:
        """Whether there is such a queue now; many are made by the first message and go with the last consumer."""
        return on_broker(self._broker, lambda: self._queue() is not None)

    @property
    def counts(self) -> QueueCounts:
        """What it counts now."""
        return on_broker(self._broker, lambda: _counts_of(self._queue()))

    @property
    def messages(self) -> list[ShownMessage]:
        """What is in it, by sequence, where each stands, and its text; takes nothing. The first 10,000.

        Raises:
            NotFoundError: there is no such queue.
        """
        return on_broker(self._broker, lambda: self._look(MOST_MESSAGES, MOST_LETTERS))

    @property
    def texts(self) -> list[str]:
        """The bodies of `messages`; "" for one that is no text."""
        return [message.text for message in self.messages] if self.exists else []

    @property
    def consumers(self) -> list[ConsumerStanding]:
        """Who consumes it, what each holds, and whether it has room for more.

        Raises:
            NotFoundError: there is no such queue.
        """
        return on_broker(self._broker, lambda: self._explain().consumers)

    def explain(self) -> str:
        """What is in it and why, in sentences: what ``delosmq explain queue`` says."""
        return on_broker(self._broker, self._told)

    def assert_has(self, **wanted: Unpack[WantedCounts]) -> None:
        """Fails unless the queue counts exactly this now; see `QueueCounts`.

        Raises:
            AssertionError: says what is there instead, and why.
        """
        __tracebackhide__ = True
        _check(wanted)
        failure = on_broker(
            self._broker, lambda: "" if self._meets(wanted) else self._failure(wanted, "does not have {}")
        )
        if failure:
            raise AssertionError(failure)

    def wait_for(self, *, timeout_s: float = DEFAULT_TIMEOUT_S, **wanted: Unpack[WantedCounts]) -> None:
        """Waits until the queue counts exactly this; see `QueueCounts`. It is looked at after each change.

        Raises:
            AssertionError: it did not come about within ``timeout_s`` (of real time): says what is there instead.
        """
        __tracebackhide__ = True
        failure = self._broker.call(self._wait(wanted, timeout_s), timeout_s=None)
        if failure:
            raise AssertionError(failure + _advice_to_coroutines())

    async def wait_for_async(self, *, timeout_s: float = DEFAULT_TIMEOUT_S, **wanted: Unpack[WantedCounts]) -> None:
        """As `wait_for`, without blocking the caller's loop, whose clients go on."""
        __tracebackhide__ = True
        failure = await self._broker.call_async(self._wait(wanted, timeout_s))
        if failure:
            raise AssertionError(failure)

    # -- on the broker's thread --------------------------------------------------------------------------------------

    def _queue(self) -> Queue | None:
        return self._broker.composed.broker.queues.get(self.name)

    def _meets(self, wanted: WantedCounts) -> bool:
        return wanted.items() <= vars(_counts_of(self._queue())).items()

    async def _wait(self, wanted: WantedCounts, timeout_s: float) -> str:
        """Why it did not come about, or ""."""
        _check(wanted)
        watchers = self._watchers
        came = asyncio.Event()

        def look() -> None:
            if self._meets(wanted):
                came.set()

        watchers.append(look)
        look()
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(came.wait(), timeout_s)
        finally:
            watchers.remove(look)
        return "" if came.is_set() else self._failure(wanted, f"did not have {{}} within {timeout_s:g} s")

    def _failure(self, wanted: WantedCounts, verb: str) -> str:
        counts = vars(_counts_of(self._queue()))
        there = {name: count for name, count in counts.items() if count or name in wanted}
        return f"queue '{self.name}' {verb.format(_named(wanted))}; it has {_named(there)}\n{self._told()}"

    def _told(self) -> str:
        if self._queue() is None:
            others = names_of(self._broker, advisories=False)
            there = ", ".join(f"'{name}'" for name in others) or "none"
            return f"there is no queue '{self.name}'{nearest(self.name, others)}\nqueues: {there}"
        found = self._explain()
        lines = [f"advice: {found.advice}", *(f"note: {note}" for note in found.notes)]
        lines += [f"{counted(count, 'message')}: {standing}" for standing, count in found.counts.items()]
        lines += [_consumer_line(consumer) for consumer in found.consumers]
        lines += [_message_line(message) for message in self._look(SHOWN, SHOWN_LETTERS)]
        if found.message_count > SHOWN:
            lines.append(f"and {counted(found.message_count - SHOWN, 'more message')}")
        return "\n".join(lines)

    def _explain(self) -> QueueExplanation:
        composed = self._broker.composed
        control = ExplainControl(composed.broker, self._control(), composed.conversions)
        return finish(control.queue(*self._asked(), after=0, limit=0))

    def _look(self, limit: int, letters: int) -> list[ShownMessage]:
        composed = self._broker.composed
        control = MessageControl(composed.broker, self._control(), composed.conversions)
        return finish(control.look(*self._asked(), after=0, limit=limit, letters=letters)).messages

    def _control(self) -> QueueControl:
        return QueueControl(self._broker.composed.broker, self._access)

    def _asked(self) -> tuple[Login, str]:
        if self._queue() is None:
            raise NotFoundError("DMQ7203", self._told())
        return LOOKER, self.name


def _check(wanted: WantedCounts) -> None:
    """
    Raises:
        TypeError: a queue counts no such thing.
        MisuseError: nothing is wanted.
    """
    names = [field.name for field in fields(QueueCounts)]
    for name in wanted:
        if name not in names:
            raise TypeError(f"a queue has no count '{name}'{nearest(name, names)}; there are {', '.join(names)}")
    if not wanted:
        raise MisuseError("DMQ7202", f"nothing is said about the queue; name one or more of {', '.join(names)}")


def _advice_to_coroutines() -> str:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return ""
    return "\nwait_for blocks this event loop with all its clients: write await ...wait_for_async(...) in coroutines"


def _consumer_line(consumer: ConsumerStanding) -> str:
    name = consumer.name or str(consumer.id)
    selector = f", selector {consumer.selector}" if consumer.selector else ""
    room = "has room" if consumer.has_room else "is full"
    return f"{consumer.kind} {name} holds {consumer.held} and {room}{selector}"


def _message_line(message: ShownMessage) -> str:
    rule = f" ({message.rule})" if message.rule else ""
    text = f" {one_line(message.text, SHOWN_LETTERS)!r}" if message.text else f" {counted(message.body_bytes, 'byte')}"
    deliveries = counted(message.delivery_count, "delivery", "deliveries")
    return f"message {message.sequence}: {message.standing}{rule}, {deliveries},{text}"
