"""Parked sends: sends that wait for space, and what must wait behind them.

When an address is full and blocks its producers, the send and all later ones of the connection are parked, in order.
Other frames are handled meanwhile: an acknowledgement may be what makes the space. The end of a transaction waits for
the parked sends of its own, and for no others: they may need the room that it makes. Past a limit in bytes the
connection is not read any more, nor while an end goes on in slices. Where the address says so (``block-timeout``) a
send that has waited too long fails.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.engine.api import (
    BLOCKED,
    DUPLICATE,
    NS_PER_MS,
    BulkAck,
    EngineBroker,
    JobWaiter,
    SpaceWaiter,
    Timer,
    Transaction,
)
from delosmq.model.errors import BrokerError, InvariantError
from delosmq.model.ids import NOTHING_DURABLE, MonotonicNs, Position
from delosmq.model.message import ANY_ROUTING, Message
from delosmq.model.settings import UNLIMITED
from delosmq.sessions.host import SessionHost
from delosmq.sessions.management import ManagementCall

ENTRY_BYTES: Final = 256
"""What an entry takes beside its message."""
UNREAD_BYTES: Final = 1 << 40
"""More than may ever be parked: nothing is read while such an entry is there."""


class SessionTransaction:
    """A transaction of a session.

    Attributes:
        parked_count: how many of its sends wait for space.
        running: its end goes on in slices, which nothing stops.
    """

    def __init__(self, transaction: Transaction) -> None:
        self.transaction = transaction
        self.parked_count: int = 0
        self.running: bool = False


@mypyc_attr(allow_interpreted_subclasses=True)
class Parked(ABC):
    """A send, the end of a transaction, or an answer that waits for those before it.

    Attributes:
        message: what is still to be sent; None when there is nothing, or nothing any more.
        work: the transaction it belongs to; None when that has ended.
        waiter: of an end that goes on.
        failure: why that end failed.
        call: the management message that it answers; None for none. call_work: the transaction of the answer.
        size_bytes: what it counts against the limit.
        parked_at: monotonic ns.
    """

    def __init__(
        self,
        message: Message | None,
        work: SessionTransaction | None,
        *,
        queue_name: str = "",
        routing: int = ANY_ROUTING,
    ) -> None:
        self.message = message
        self.work = work
        self.queue_name = queue_name
        self.routing = routing
        self.waiter: EndWaiter | None = None
        self.failure: BrokerError | None = None
        self.call: ManagementCall | None = None
        self.call_work: SessionTransaction | None = None
        self.size_bytes: int = ENTRY_BYTES + (0 if message is None else message.charge_bytes)
        self.parked_at: int = 0

    def carry_out(self, waiter: JobWaiter) -> bool:
        """Ends the transaction. False when that goes on and ``waiter`` will be told.

        Raises:
            BrokerError: it failed.
        """
        raise InvariantError("DMQ5300", f"a parked {type(self).__name__} ends no transaction")

    def is_void(self) -> bool:
        """Whether no consumer is left that could get the message: it counts as sent."""
        return False

    def ended(self) -> None:
        """Its transaction has ended, or failed to. May call the engine; the answer follows in its turn.

        Raises:
            BrokerError: what is to follow can't be recorded.
        """
        self.waiter = None
        self.work = None
        if self.call is not None:
            self.take_reply(self.call)

    def take_reply(self, call: ManagementCall) -> None:
        """What is still to be sent is the answer of a management message."""
        self.message = call.reply
        self.queue_name = call.queue_name
        self.routing = call.routing
        if call.reply is not None:
            self.work = self.call_work

    @abstractmethod
    def answer(self) -> None:
        """Answers: it is done. Must not call the engine."""

    @abstractmethod
    def refuse(self, error: BrokerError) -> None:
        """Answers: it failed. Must not call the engine."""


class EndWaiter(JobWaiter):
    """Waits for the end of a transaction that goes on in slices."""

    def __init__(self, parked_sends: "ParkedSends", entry: Parked) -> None:
        self.parked_sends: ParkedSends | None = parked_sends
        self._entry = entry

    def on_ended(self, error: BrokerError | None) -> None:
        if self.parked_sends is not None:
            self.parked_sends.ended(self._entry, error)


class BlockTimeout(Timer):
    """Checks whether the first send of a connection has waited too long.

    Attributes:
        due: of its next appointment, 0 for none.
    """

    def __init__(self, parked_sends: "ParkedSends") -> None:
        self.parked_sends: ParkedSends | None = parked_sends
        self.due: int = 0

    def on_timer(self, now: MonotonicNs) -> None:
        if self.due and self.due <= now:
            self.due = 0
        if self.parked_sends is not None:
            self.parked_sends.check_block_timeout(now)


@mypyc_attr(allow_interpreted_subclasses=True)
class ParkedSendsOwner(ABC):
    """The session that has parked sends.

    Attributes:
        host: has `ParkedSends.go_on` called in the next turn of the loop.
    """

    host: SessionHost

    @abstractmethod
    def parked_changed(self) -> None:
        """The parked bytes changed: reading may have to stop, or may go on."""


class ParkedSends(SpaceWaiter):
    """The sends, ends of transactions and answers that one connection has parked.

    Attributes:
        parked_bytes: what waits; 0 when nothing does, so that a send may be tried at once.
        position: everything this connection has recorded by sends is in batches up to here.
    """

    def __init__(self, broker: EngineBroker, owner: ParkedSendsOwner, *, ordered: bool = False) -> None:
        """
        Args:
            ordered: answers come in the order of what is asked, and a refusal of what was parked is the last of them.
        """
        self._broker = broker
        self._owner: ParkedSendsOwner | None = owner
        self._ordered = ordered
        self._refused: bool = False
        self._answers_none: bool = False
        self._entries: deque[Parked] = deque()
        self._waits_for: str = ""
        self._ended: list[Parked] = []
        self._end_due: bool = False
        self._block_timeout: BlockTimeout | None = None
        self.parked_bytes: int = 0
        self.position: Position = NOTHING_DURABLE

    def try_send(
        self, message: Message, work: SessionTransaction | None, queue_name: str, routing: int, *, granted: bool = False
    ) -> bool:
        """Sends now; ``granted`` as in `EngineProducers.send`. False when the address is full: `park` it then.

        Raises:
            BrokerError: it is refused.
        """
        log = self._broker.log
        before = log.position
        if work is None:
            outcome = self._broker.producers.send(message, queue_name, routing, granted=granted)
        else:
            outcome = self._broker.transactions.send(work.transaction, message, queue_name, routing, granted=granted)
        if outcome >= BLOCKED:
            if outcome != DUPLICATE:
                return False
            # What is there already may not be synced yet.
            self.position = log.position
        elif log.position != before:
            self.position = log.position
        return True

    def park(self, entry: Parked) -> None:
        """Has a send wait its turn, or an answer where they come in order."""
        self._add(entry)
        if not self._waits_for and len(self._entries) == 1:
            self._wait(entry)
        if self._owner is not None:
            self._owner.parked_changed()

    def end(self, entry: Parked) -> None:
        """Ends a transaction, once all its sends are through; `Parked.answer` or `Parked.refuse` follows.

        Raises:
            BrokerError: it can't be ended, and neither follows.
        """
        work = entry.work
        has_to_wait = work is not None and work.parked_count > 0
        if has_to_wait or not self._carry_out(entry) or (self._ordered and self._entries):
            self.park(entry)
        else:
            entry.answer()

    def answer_after(self, entry: Parked, under_way: BulkAck) -> None:
        """Answers a cumulative acknowledgement that goes on in slices; nothing is read till then."""
        waiter = EndWaiter(self, entry)
        entry.waiter = waiter
        entry.size_bytes = UNREAD_BYTES
        under_way.waiter = waiter
        self.park(entry)

    def answer_call(self, entry: Parked, call: ManagementCall, work: SessionTransaction | None) -> None:
        """Sends the answer of a management message as a send of this connection, and answers the message itself then;
        nothing is read while it is carried out."""
        entry.call = call
        entry.call_work = work
        self.position = self._broker.log.position
        if not call.done:
            waiter = EndWaiter(self, entry)
            entry.waiter = waiter
            entry.size_bytes = UNREAD_BYTES
            call.waiter = waiter
            self.park(entry)
            return
        entry.take_reply(call)
        reply = entry.message
        if self.parked_bytes or not (reply is None or self.try_send(reply, work, entry.queue_name, entry.routing)):
            entry.size_bytes += 0 if reply is None else reply.charge_bytes
            self.park(entry)
        else:
            entry.answer()

    def drop(self, works: Sequence[SessionTransaction]) -> None:
        """Drops the parked sends of transactions, which are rolled back."""
        if not any(work.parked_count for work in works):
            return
        for entry in self._entries:
            if entry.message is not None and entry.work in works:
                self._weigh(entry, entry.size_bytes - entry.message.charge_bytes)
                entry.message = None
                entry.work = None
        for work in works:
            work.parked_count = 0
        if self._entries[0].message is None:
            if self._waits_for:
                self._broker.blocked_producers.cancel(self._waits_for, self)
            self._drain(may_end=True)

    def close(self) -> list[SessionTransaction]:
        """Drops everything: no client was told that it arrived. Gives the transactions that wait for their end, which
        is not asked for any more, and those with an end that goes on."""
        if self._waits_for:
            self._broker.blocked_producers.cancel(self._waits_for, self)
            self._waits_for = ""
        left: list[SessionTransaction] = []
        for entry in self._entries:
            if entry.waiter is not None:
                entry.waiter.parked_sends = None  # it will be done, and no client told
            if entry.message is None and entry.work is not None:
                left.append(entry.work)
        self._entries.clear()
        self._ended.clear()
        if self._block_timeout is not None:
            self._block_timeout.parked_sends = None
        self.parked_bytes = 0
        self._owner = None
        return left

    def outlive(self) -> list[SessionTransaction]:
        """As `close`, for a peer that has left in order: sends that belong to no transaction go on to where they
        belong, and no client is answered. `ParkedSendsOwner.parked_changed` tells when they are through."""
        if self._waits_for:
            self._broker.blocked_producers.cancel(self._waits_for, self)
            self._waits_for = ""
        left: list[SessionTransaction] = []
        kept: deque[Parked] = deque()
        for entry in self._entries:
            if entry.waiter is not None:
                entry.waiter.parked_sends = None
            if entry.message is None and entry.work is not None:
                left.append(entry.work)
            elif entry.message is not None and entry.work is None:
                kept.append(entry)
        self._entries = kept
        self._ended.clear()
        self._answers_none = True
        self.parked_bytes = sum([entry.size_bytes for entry in kept])
        self._drain(may_end=False)
        return left

    def go_on(self) -> None:
        """Answers the ends that are through meanwhile, and carries out what waited behind them.

        Raises:
            BrokerError: see `Parked.ended`.
        """
        ended = self._ended
        if not ended and not self._end_due:
            return
        self._ended, self._end_due = [], False
        for entry in ended:
            entry.ended()
            reply = entry.message
            self._weigh(entry, ENTRY_BYTES + (0 if reply is None else reply.charge_bytes))
            if entry.work is not None:
                entry.work.parked_count += 1
            if self._ordered and entry.failure is not None:
                self._refuse_last(entry, entry.failure)
                return
        self.position = self._broker.log.position
        if not self._waits_for:
            self._drain(may_end=True)

    def ended(self, entry: Parked, error: BrokerError | None) -> None:
        """Told by the engine, which must not be called from here."""
        entry.failure = error
        self._ended.append(entry)
        if self._owner is not None:
            self._owner.host.wake_soon()

    def on_space(self) -> None:
        # In the midst of a tick that would not go on with the work of an end.
        self._drain(may_end=False)

    def check_block_timeout(self, now: MonotonicNs) -> None:
        """Refuses the first send if it has waited for as long as its address lets it."""
        if not self._waits_for or self._refused:
            return
        entry = self._entries[0]
        due = self._due(entry)
        if due == 0:
            return
        if due > now:
            self._arm(due)
            return
        self._broker.blocked_producers.cancel(self._waits_for, self)
        error = self._broker.blocked_producers.timed_out(self._waits_for)
        self._waits_for = ""
        if entry.work is not None:
            entry.work.parked_count -= 1
        if self._ordered:
            self._refuse_last(entry, error)
            return
        self._entries.popleft()
        self.parked_bytes -= entry.size_bytes
        if not self._answers_none:
            entry.refuse(error)
        self._drain(may_end=False)

    # -- inside ------------------------------------------------------------------------------------------------------

    def _drain(self, *, may_end: bool) -> None:
        self._waits_for = ""
        if self._refused:
            return
        entries = self._entries
        while entries:
            entry = entries[0]
            failure: BrokerError | None = None
            try:
                if not self._handle(entry, may_end):
                    break
                failure = entry.failure
            except BrokerError as error:
                if isinstance(error, InvariantError):
                    raise
                failure = error
            if self._ordered and failure is not None:
                self._refuse_last(entry, failure)
                return
            entries.popleft()
            self.parked_bytes -= entry.size_bytes
            if self._answers_none:
                continue
            if failure is None:
                entry.answer()
            else:
                entry.refuse(failure)
        if self._owner is not None:
            self._owner.parked_changed()

    def _refuse_last(self, entry: Parked, error: BrokerError) -> None:
        """Refuses an entry and leaves it there: all that comes later waits behind it."""
        self._refused = True
        entry.refuse(error)

    def _handle(self, entry: Parked, may_end: bool) -> bool:
        """Sends the message of an entry, or ends its transaction. False when it has to wait."""
        work = entry.work
        message = entry.message
        if message is None:
            if work is None or entry.waiter is not None:
                return entry.waiter is None
            if may_end:
                return self._carry_out(entry)
            self._end_due = True
            if self._owner is not None:
                self._owner.host.wake_soon()
            return False
        try:
            gone = entry.call is not None and message.address not in self._broker.addresses
            sent = gone or entry.is_void() or self.try_send(message, work, entry.queue_name, entry.routing)
        except BrokerError:
            if work is not None:
                work.parked_count -= 1
            raise
        if not sent:
            self._wait(entry)
            return False
        if work is not None:
            work.parked_count -= 1
        return True

    def _carry_out(self, entry: Parked) -> bool:
        waiter = EndWaiter(self, entry)
        if entry.carry_out(waiter):
            entry.ended()
            return True
        entry.waiter = waiter
        if entry.work is not None:
            entry.work.running = True
        self._weigh(entry, UNREAD_BYTES)
        return False

    def _wait(self, entry: Parked) -> None:
        message = entry.message
        if message is not None:
            self._waits_for = message.address
            self._broker.blocked_producers.wait(message.address, self, size_bytes=message.encoded_size_bytes)
            due = self._due(entry)
            if due:
                self._arm(due)

    def _due(self, entry: Parked) -> int:
        """When a send has waited too long; 0 for never."""
        message = entry.message
        address = None if message is None else self._broker.addresses.get(message.address)
        timeout_ms = UNLIMITED if address is None else address.settings.block_timeout
        return 0 if timeout_ms == UNLIMITED else entry.parked_at + timeout_ms * NS_PER_MS

    def _arm(self, due: int) -> None:
        timeout = self._block_timeout
        if timeout is None:
            timeout = BlockTimeout(self)
            self._block_timeout = timeout
        if timeout.due == 0 or due < timeout.due:
            timeout.due = due
            self._broker.timers.at(due, timeout)

    def _add(self, entry: Parked) -> None:
        entry.parked_at = self._broker.clock.monotonic_ns()
        self._entries.append(entry)
        self.parked_bytes += entry.size_bytes
        if entry.message is not None and entry.work is not None:
            entry.work.parked_count += 1

    def _weigh(self, entry: Parked, size_bytes: int) -> None:
        """Changes what an entry counts, parked or not."""
        if entry in self._entries:
            self.parked_bytes += size_bytes - entry.size_bytes
        entry.size_bytes = size_bytes
