"""Producers of the asyncio client."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypedDict, Unpack

from delosmq.client import errors
from delosmq.client.closeable import AsyncCloseable
from delosmq.client.destinations import JmsDestination, Named, named
from delosmq.client.link import Link
from delosmq.client.messages import (
    DEFAULT_PRIORITY,
    JmsMessage,
    Sendable,
    command_of,
    message_of,
    note_sent,
    set_schedule,
)
from delosmq.client.one_caller import OneCaller, by_listener
from delosmq.client.options.arguments import (
    MOST_INT,
    MOST_MS,
    demand_flag,
    demand_function,
    demand_number,
    demand_text,
)
from delosmq.client.options.option_texts import refuse_unknown
from delosmq.client.transport.clocks import done_before
from delosmq.client.values import PropertyContent
from delosmq.sessions.client_errors import ClientError
from delosmq.sessions.openwire.client import errors as machine_errors
from delosmq.sessions.openwire.client.ports import PendingRequest
from delosmq.sessions.openwire.client.producer import OpenWireProducer
from delosmq.wire.openwire.commands import MessageCommand

_HIGHEST_PRIORITY: Final = 9
_MOST_SENT_IN_TURN: Final = 64
"""Without an answer, before others of the loop have their turn: a timeout, a broken connection, a listener."""
_MOST_POSTED_BYTES: Final = 1 << 16
"""Of a message that another thread hands over and does not wait for: so many times the number of those is the most that
they take."""
_BYTES_PER_CHARACTER: Final = 3
_BEYOND_INT: Final = 1 << 31


CompletionListener = Callable[[str, ClientError | None], Awaitable[None] | None]
"""Hears of a message's id whether it is with the broker: None, or why not."""

_LOG: Final = logging.getLogger("delosmq.client")


class ProducerOwner(OneCaller, ABC):
    """A session as its producers see it.

    Attributes:
        completions: of messages that were sent and not waited for, until their listeners have heard of them.
        ended: it is closed.
    """

    def __init__(self) -> None:
        super().__init__()
        self.completions: set[asyncio.Future[None]] = set()
        self.ended = asyncio.Event()

    async def wait_for_room(self, link: Link) -> None:
        """As the link does, but no longer than it is open.

        Raises:
            TimedOutError: DMQ9075.
        """
        if not link.room.is_set():
            await done_before(link.wait_for_room(), self.ended)

    @abstractmethod
    def check(self) -> None:
        """
        Raises:
            ClientError: it can't be used.
        """

    @abstractmethod
    def check_open(self) -> None:
        """The same, whoever uses it."""

    @abstractmethod
    def check_usable(self) -> None:
        """As `check_open`, for any thread."""

    @abstractmethod
    def note_failed_post(self, error: ClientError) -> None:
        """A message can't be sent, and the application is not there to be told."""

    @abstractmethod
    def end_producer(self, machine: OpenWireProducer) -> None:
        """Tells the broker."""


class SendOptions(TypedDict, total=False):
    """How one message is sent; a connection takes them as its producers do.

    Attributes:
        properties: of the message, by name.
        persistent: it outlives a restart of the broker. This, priority and time_to_live_ms are as the producer has them
            when they are left out or None.
        priority: 0 to 9.
        time_to_live_ms: after it the broker drops the message, or moves it to where expired ones go; 0 for never.
        delay_ms: the broker keeps the message for so long.
        period_ms: the broker delivers it again and again, with so much time between. This, repeat and cron are for
            ActiveMQ Classic with a scheduler; DelosMQ refuses them.
        repeat: so many times more.
        cron: when, as in a crontab.
    """

    properties: Mapping[str, PropertyContent] | None
    persistent: bool | None
    priority: int | None
    time_to_live_ms: int | None
    delay_ms: int
    period_ms: int
    repeat: int
    cron: str


class PreparedMessage:
    """A message on its way to the broker.

    Attributes:
        made: the application's.
        command: what travels, without what the producer sets.
        life_ms: 0 for ever.
    """

    def __init__(
        self,
        made: JmsMessage,
        command: MessageCommand,
        target: JmsDestination,
        *,
        persistent: bool,
        priority: int,
        life_ms: int,
    ) -> None:
        self.made = made
        self.command = command
        self.target = target
        self.wire = target.wire()
        self.persistent = persistent
        self.priority = priority
        self.life_ms = life_ms

    def fits_into(self, most_bytes: int) -> bool:
        """Whether its frame has surely no more bytes; not known of a message with strange headers."""
        command = self.command
        if type(command.group_sequence) is not int or not 0 <= command.group_sequence < _BEYOND_INT:
            return False
        texts = [self.wire.name]
        for text in (command.correlation_id, command.type, command.group_id):
            if text is not None:
                if type(text) is not str:
                    return False
                texts.append(text)
        if command.reply_to is not None:
            texts.append(command.reply_to.name)
        return command.size_bytes() + _BYTES_PER_CHARACTER * sum(map(len, texts)) <= most_bytes


class AsyncProducer(AsyncCloseable):
    """
    Attributes:
        persistent, priority, time_to_live_ms: of messages that are sent without a word about it.
    """

    def __init__(
        self, session: ProducerOwner, link: Link, machine: OpenWireProducer, destination: JmsDestination | None
    ) -> None:
        self.destination = destination
        self.persistent: bool = True
        self.priority: int = DEFAULT_PRIORITY
        self.time_to_live_ms: int = 0
        self._session = session
        self._link = link
        self._machine = machine
        self._room = asyncio.Event()
        machine.waiter = self._room
        self._sent_in_turn = 0

    async def send(
        self,
        message: Sendable,
        *,
        destination: Named | None = None,
        on_completion: CompletionListener | None = None,
        **options: Unpack[SendOptions],
    ) -> str:
        """Sends a message, or one made of a body: text of a str; bytes, a map or a stream of what these are.

        A persistent message outside a transaction is safe with the broker when this returns, unless
        ``jms.useAsyncSend`` says that it is not waited for.

        Args:
            destination: needed when the producer was made without one.
            on_completion: a function or coroutine function, which hears when the broker has the message or has refused
                it; this returns without waiting for that. It is told in the order of sending.
            options: as `SendOptions` has them.

        Returns:
            The message's id.

        Raises:
            MessageFormatError: DMQ9060, a property or the body has no type in JMS.
            ClientError: the broker refuses it.
        """
        self._check()
        demand_function("on_completion", on_completion)
        prepared = self.prepare(message, destination=destination, **options)
        return await self.send_prepared(prepared, on_completion)

    def prepare(
        self,
        message: Sendable,
        *,
        destination: Named | None = None,
        properties: Mapping[str, PropertyContent] | None = None,
        persistent: bool | None = None,
        priority: int | None = None,
        time_to_live_ms: int | None = None,
        delay_ms: int = 0,
        period_ms: int = 0,
        repeat: int = 0,
        cron: str = "",
        **unknown: object,
    ) -> "PreparedMessage":
        """What `send` sends, with its body and properties as they travel. Any thread may call this.

        Args:
            unknown: refused, in the name of `send`.
        """
        if unknown:
            refuse_unknown("send()", unknown, (*SendOptions.__annotations__, "destination", "on_completion"))
        target = self._target(destination)
        persistent = self.persistent if persistent is None else persistent
        priority = self.priority if priority is None else priority
        life_ms = self.time_to_live_ms if time_to_live_ms is None else time_to_live_ms
        demand_flag("persistent", persistent)
        demand_number("priority", priority, _HIGHEST_PRIORITY)
        demand_number("time_to_live_ms", life_ms, MOST_MS)
        demand_number("delay_ms", delay_ms, MOST_MS)
        demand_number("period_ms", period_ms, MOST_MS)
        demand_number("repeat", repeat, MOST_INT)
        demand_text("cron", cron, "a str such as '0 * * * *'")
        made = message_of(message, properties)
        if delay_ms or period_ms or repeat or cron:
            set_schedule(made, delay_ms=delay_ms, period_ms=period_ms, repeat=repeat, cron=cron)
        command = command_of(made, compresses=self._link.machine.options.use_compression)
        return PreparedMessage(made, command, target, persistent=persistent, priority=priority, life_ms=life_ms)

    async def send_prepared(self, prepared: "PreparedMessage", on_completion: CompletionListener | None = None) -> str:
        """Waits for room, and for the broker's answer if there will be one. Gives the message's id."""
        link = self._link
        self._sent_in_turn += 1
        if self._sent_in_turn > _MOST_SENT_IN_TURN or not (link.room.is_set() and self._machine.has_room()):
            self._sent_in_turn = 0
            await self._wait_for_room()
        if link.machine.temporaries.is_gone(prepared.wire):
            raise machine_errors.deleted_destination(str(prepared.target))
        made, command = prepared.made, prepared.command
        self._stamp(prepared)
        request = self._machine.send_stamped(command, confirmed=on_completion is not None)
        note_sent(made, command)
        if on_completion is None:
            self._session.begin_to_wait()
            try:
                await link.answer(request)
            finally:
                self._session.end_to_wait()
        elif request is not None:
            self._tell_later(request, made.message_id, on_completion)
        return made.message_id

    async def _wait_for_room(self) -> None:
        session = self._session
        session.begin_to_wait()
        try:
            await asyncio.sleep(0)
            await session.wait_for_room(self._link)
            self._check_open()
            while not self._machine.has_room():
                self._room.clear()
                await self._room.wait()
                self._check_open()
        finally:
            session.end_to_wait()

    def _stamp(self, prepared: "PreparedMessage") -> None:
        self._machine.stamp(
            prepared.command,
            prepared.wire,
            persistent=prepared.persistent,
            priority=prepared.priority,
            time_to_live_ms=prepared.life_ms,
        )

    # --- for other threads

    def check_usable(self) -> None:
        """What any thread may know of it.

        Raises:
            ClientError: it is closed, or the connection is gone.
        """
        self._session.check_usable()
        if self._machine.closed:
            raise machine_errors.closed("producer")

    def is_postable(self, prepared: "PreparedMessage") -> bool:
        """Whether nothing of the message is waited for, and nothing but the end of the connection keeps it from being
        sent: it may go its way with `stamp_to_post` and `post`."""
        link = self._link
        return (
            self._machine.never_waits(persistent=prepared.persistent)
            and link.room.is_set()
            and not prepared.wire.is_temporary
            and prepared.fits_into(min(_MOST_POSTED_BYTES, link.machine.largest_frame_bytes))
        )

    def stamp_to_post(self, prepared: "PreparedMessage") -> int:
        """Gives the message its number, and all that the application is told of it."""
        self._stamp(prepared)
        note_sent(prepared.made, prepared.command)
        message_id = prepared.command.message_id
        assert message_id is not None  # it was stamped
        return message_id.producer_sequence_id

    @property
    def machine(self) -> OpenWireProducer:
        return self._machine

    def post(self, command: MessageCommand) -> None:
        """In the loop, in the order of their numbers: what another thread has stamped."""
        try:
            self._check_open()
            self._machine.send_stamped(command)
        except ClientError as error:
            self._session.note_failed_post(error)
        else:
            self._link.flush_soon()

    def _tell_later(self, request: PendingRequest, message_id: str, listener: CompletionListener) -> None:
        """Has the listener called once the broker has answered."""
        completions = self._session.completions
        answered: asyncio.Future[None] = self._link.loop.create_future()

        def tell(_: object) -> None:
            completions.discard(answered)
            try:
                told = listener(message_id, request.error)
            except Exception:
                _log_failure(message_id)
                return
            if told is not None:
                task = asyncio.ensure_future(_wait_for(told, message_id))
                completions.add(task)
                task.add_done_callback(completions.discard)

        completions.add(answered)
        answered.add_done_callback(tell)
        self._link.flush()
        if request.done:
            answered.set_result(None)
        else:
            request.waiter = answered

    def _target(self, destination: Named | None) -> JmsDestination:
        if destination is None:
            if self.destination is None:
                raise errors.no_destination()
            return self.destination
        target = named(destination)
        if self.destination is not None and target != self.destination:
            raise errors.other_destination(str(self.destination))
        return target

    def _check(self) -> None:
        self._session.check()
        if self._machine.closed:
            raise machine_errors.closed("producer")

    def _check_open(self) -> None:
        self._session.check_open()
        if self._machine.closed:
            raise machine_errors.closed("producer")

    @property
    def closed(self) -> bool:
        return self._machine.closed

    async def close(self) -> None:
        self._link.check_loop()
        self._session.end_producer(self._machine)


async def _wait_for(told: Awaitable[None], message_id: str) -> None:
    by_listener.set(True)
    try:
        await told
    except Exception:
        _log_failure(message_id)


def _log_failure(message_id: str) -> None:
    _LOG.exception(
        f"DMQ9074: the on_completion of message {message_id} failed; the message is sent or refused all the same: have"
        " it handle what can go wrong"
    )
