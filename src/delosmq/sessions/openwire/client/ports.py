"""What the parts of a client's machine need of each other, and what the machine tells its owner."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.model.ids import MonotonicNs
from delosmq.model.ports import Clock, Random
from delosmq.sessions.client_errors import ClientError
from delosmq.sessions.openwire.client.duplicates import SeenMessages
from delosmq.sessions.openwire.client.options import ClientOptions
from delosmq.sessions.openwire.client.participants import EndedBranches
from delosmq.wire.openwire.commands import ConnectionControl, ConsumerInfo, MessageCommand, Response
from delosmq.wire.openwire.structures import Command, ConnectionId, ConsumerId, SessionId

NS_PER_MS: Final = 1_000_000


class PendingRequest:
    """A command that the broker answers.

    Attributes:
        what: it asks for, in words.
        done: the answer came, or never will.
        command: what was sent.
        before: what a broker that knows nothing of it must be told first.
        error: why it failed; None while it is not done.
        response: the answer, if it came from the broker.
        waiter: the owner's; the machine doesn't look at it.
    """

    def __init__(
        self, what: str, then: "Callable[[PendingRequest], None] | None" = None, command: Command | None = None
    ) -> None:
        self.what = what
        self.then = then
        self.command = command
        self.before: list[Command] = []
        self.done: bool = False
        self.error: ClientError | None = None
        self.response: Response | None = None
        self.waiter: object = None


class PendingRequests:
    """What the broker has not answered yet."""

    def __init__(self, events: "ClientEvents") -> None:
        self._events = events
        self._requests: dict[int, PendingRequest] = {}
        self._late_messages: set[int] = set()
        self._repeated: dict[int, ConsumerId | None] = {}

    def add(self, command_id: int, request: PendingRequest) -> None:
        self._requests[command_id] = request

    def in_order(self) -> list[tuple[int, PendingRequest]]:
        """With the numbers of their commands."""
        return sorted(self._requests.items())

    def take(self, command_id: int) -> PendingRequest | None:
        """What is waited for no longer: its answer came."""
        self._late_messages.discard(command_id)
        return self._requests.pop(command_id, None)

    def give_up(self, command_id: int, error: ClientError) -> None:
        """The caller waits no longer; the broker may answer yet."""
        request = self._requests.pop(command_id, None)
        if request is not None:
            if isinstance(request.command, MessageCommand):
                self._late_messages.add(command_id)
            self.finish(request, None, error)

    @property
    def has_messages(self) -> bool:
        """The broker has messages of which it has not said that they are stored."""
        return bool(self._late_messages) or any(
            isinstance(one.command, MessageCommand) for one in self._requests.values()
        )

    def give_up_messages(self, error: ClientError, session_id: SessionId | None = None) -> None:
        """Those of a session that is closed; None for all."""
        for command_id, request in self.in_order():
            command = request.command
            producer_id = command.producer_id if isinstance(command, MessageCommand) else None
            if producer_id is not None and (session_id is None or session_id.value == producer_id.session_id):
                self.give_up(command_id, error)

    def note_repeated(self, commands: Iterable[Command]) -> None:
        """What the next broker is asked by itself, so that no caller waits for its answer."""
        self._repeated = {
            command.command_id: command.consumer_id if isinstance(command, ConsumerInfo) else None
            for command in commands
            if command.response_required
        }

    def is_repeated(self, command_id: int) -> bool:
        return command_id in self._repeated

    def repeated_consumer(self, command_id: int) -> ConsumerId | None:
        """The one that was asked for; None when it was something else."""
        return self._repeated.get(command_id)

    def forget_late(self) -> None:
        """The connection is broken: what comes by the next one is asked again."""
        self._late_messages.clear()

    def end(self, error: ClientError) -> None:
        """The connection is over."""
        requests, self._requests = self._requests, {}
        for request in requests.values():
            self.finish(request, None, error)

    def finish(self, request: PendingRequest, response: Response | None, error: ClientError | None) -> None:
        if request.done:
            return
        request.done = True
        request.response = response
        request.error = error
        if request.then is not None:
            request.then(request)
        self._events.answered(request)


def finished(what: str) -> PendingRequest:
    """One for which the broker needs not be asked."""
    request = PendingRequest(what)
    request.done = True
    return request


class Appointments:
    """What is to happen at a time. An action that is no longer wanted is called all the same, and looks if it is."""

    def __init__(self) -> None:
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._made: int = 0

    @property
    def next_at(self) -> MonotonicNs:
        """The first one; 0 for none."""
        return MonotonicNs(self._due[0][0] if self._due else 0)

    def at(self, due: int, action: Callable[[], None]) -> None:
        self._made += 1
        heappush(self._due, (due, self._made, action))

    def run(self, now: MonotonicNs) -> None:
        """Calls all whose time has come."""
        while self._due and self._due[0][0] <= now:
            heappop(self._due)[2]()

    def clear(self) -> None:
        self._due = []


@mypyc_attr(allow_interpreted_subclasses=True)
class ClientEvents(ABC):
    """The owner of a machine hears what has changed.

    It is called within calls of the machine, so it only takes note."""

    @abstractmethod
    def opened(self) -> None:
        """The broker has let us in."""

    @abstractmethod
    def answered(self, request: PendingRequest) -> None:
        """``request`` is done."""

    @abstractmethod
    def changed(self, waiter: object) -> None:
        """A consumer may have a message, a producer room, or it has ended: whose `waiter` this is looks again."""

    @abstractmethod
    def troubled(self, error: ClientError) -> None:
        """Something failed for which no caller waits; the connection goes on."""

    @abstractmethod
    def connection_control(self, control: ConnectionControl) -> None:
        """The broker names others, or sends us to one."""

    @abstractmethod
    def branch_ended(self, key: str, *, committed: bool) -> None:
        """A branch of a distributed transaction has its outcome, in which other connections to this broker may have
        worked: their `ended_branches` are to hear of it."""

    @abstractmethod
    def interrupted(self, error: ClientError) -> None:
        """A connection that can be made again is broken: a socket to some broker is wanted, and `resume`."""

    @abstractmethod
    def ended(self, error: ClientError | None) -> None:
        """The connection is over: closed as was asked for, or lost."""


@mypyc_attr(allow_interpreted_subclasses=True)
class CommandSender(ABC):
    """The connection as its parts see it.

    Attributes:
        optimizes: acknowledgements may be put off; no longer once the broker says that it is fault tolerant.
        running: messages are delivered; between start and stop.
        ready: a broker hears at once what is sent; otherwise it is told when the connection was made again.
        fault_tolerant: it is made again when it breaks, and all that was open in it.
        seen: tells what came already; None where nothing comes twice.
        ended_branches: of distributed transactions.
        broker_id: of the broker, as it says; "" while it has not.
        close_timeout_ms: how long an end waits for the broker; 0 for ever.
    """

    def __init__(
        self, events: ClientEvents, options: ClientOptions, clock: Clock, chance: Random, connection_id: ConnectionId
    ) -> None:
        self.events = events
        self.options = options
        self.clock = clock
        self.chance = chance
        self.connection_id = connection_id
        self.client_id: str = options.client_id
        self.appointments: Appointments = Appointments()
        self.optimizes: bool = options.optimize_acknowledge
        self.running: bool = False
        self.ready: bool = False
        self.fault_tolerant: bool = False
        self.seen: SeenMessages | None = None
        self.ended_branches: EndedBranches = EndedBranches()
        self.broker_id: str = ""
        self.close_timeout_ms: int = options.close_timeout_ms
        self._transactions: int = 0

    def next_transaction(self) -> int:
        self._transactions += 1
        return self._transactions

    def after_ms(self, delay_ms: int, action: Callable[[], None]) -> None:
        self.appointments.at(self.clock.monotonic_ns() + delay_ms * NS_PER_MS, action)

    @abstractmethod
    def send(self, command: Command) -> None:
        """Sends what has no answer."""

    @abstractmethod
    def request(
        self,
        command: Command,
        what: str,
        then: Callable[[PendingRequest], None] | None = None,
        timeout_ms: int = 0,
    ) -> PendingRequest:
        """Sends what has one. ``then`` is called with it, before the owner hears of it."""
