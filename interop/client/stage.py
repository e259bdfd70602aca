"""What a case needs: connections that are closed after it, names of its own, and lines that say what it has seen."""

from __future__ import annotations

import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from delosmq.client import AckMode, ClientConnection, ClientError, ClientSession, MessageConsumer, connect
from delosmq.wire.openwire.commands import MessageAck, MessageDispatch
from delosmq.wire.openwire.decoder import OpenWireDecoder, OpenWireLimits
from delosmq.wire.openwire.negotiation import WireFormatInfo
from delosmq.wire.openwire.structures import Structure
from delosmq.wire.openwire.wire_format import WireFormat
from interop.openwire.record import Tap

WAIT_S: Final = 15.0
"""For what must come."""
ACKS: Final = ("DELIVERED", "POISON", "STANDARD", "REDELIVERED", "INDIVIDUAL", "UNMATCHED", "EXPIRED")
_VERSION: Final = 12
_TO_BROKER: Final = "> "
_TO_CLIENT: Final = "< "
_SPACE: Final = re.compile(r"\W+")


class BrokerSite(ABC):
    """A broker as cases see it.

    Attributes:
        port: of OpenWire, the same after a restart.
    """

    port: int
    user: str
    password: str

    @abstractmethod
    def kill(self) -> None:
        """As a power cut does."""

    @abstractmethod
    def start(self) -> None:
        """It is back, with what was durable."""


class Stage:
    """One case on one broker.

    Attributes:
        lines: that are compared.
    """

    def __init__(self, place: BrokerSite, case: str, closing: ExitStack) -> None:
        self.place = place
        self.lines: list[str] = []
        self._case = _SPACE.sub("_", case)
        self._closing = closing

    def say(self, *words: object) -> None:
        self.lines.append(" ".join(str(word) for word in words))

    def attempt(self, what: str, work: Callable[[], object]) -> None:
        """Says whether it works, or which kind of error it gives."""
        try:
            work()
        except ClientError as error:
            self.say(f"{what}: {type(error).__name__}")
        else:
            self.say(f"{what}: works")

    def name(self, suffix: str = "q") -> str:
        """Of a queue or topic that no other case uses."""
        return f"interop.py_{self._case}.{suffix}"

    def url(self, options: str = "", *, port: int = 0) -> str:
        return f"tcp://127.0.0.1:{port or self.place.port}" + (f"?{options}" if options else "")

    def failover(self, options: str = "") -> str:
        return (
            f"failover:({self.url()})?initialReconnectDelay=20&maxReconnectDelay=100{'&' if options else ''}{options}"
        )

    def connect(self, options: str = "", *, client_id: str = "", url: str = "", port: int = 0) -> ClientConnection:
        """Open until the end of the case."""
        made = connect(
            url or self.url(options, port=port),
            user=self.place.user,
            password=self.place.password,
            client_id=client_id,
        )
        return self._closing.enter_context(made)

    def session(self, connection: ClientConnection, mode: AckMode = AckMode.AUTO) -> ClientSession:
        """Likewise."""
        return self._closing.enter_context(connection.create_session(mode))

    def tap(self) -> FrameLog:
        """Between the client and the broker."""
        made = Tap(self.place.port)
        self._closing.callback(made.close)
        return FrameLog(made)

    # --- what many cases do

    def send(self, connection: ClientConnection, destination: str, count: int) -> None:
        for number in range(1, count + 1):
            connection.send(destination, f"m{number}")

    def texts(self, consumer: MessageConsumer, count: int) -> list[str]:
        """So many messages, which must come."""
        found: list[str] = []
        for _ in range(count):
            message = consumer.receive(WAIT_S)
            if message is None:
                return [*found, "nothing more"]
            found.append(message.text)
        return found

    def left(self, queue: str) -> list[str]:
        """All that is in a queue, which is empty then. The broker says when there is nothing more, twice: Classic
        may say so while it still puts back what others had."""
        with self.connect() as connection, connection.create_session() as session:
            consumer = session.create_consumer(f"{queue}?consumer.prefetchSize=0")
            return [text for _ in range(2) for text in iter(lambda: text_of(consumer), None)]

    def barrier(self, session: ClientSession) -> None:
        """The broker has handled all that this connection has said."""
        session.delete_temporary(session.create_temporary_queue())


def text_of(consumer: MessageConsumer) -> str | None:
    message = consumer.receive(0)
    return None if message is None else message.text


class FrameLog:
    """What a client and a broker say to each other.

    Attributes:
        port: where the client connects.
    """

    def __init__(self, tap: Tap) -> None:
        self._tap = tap
        self.port = tap.port

    def acks(self) -> list[str]:
        """What has been acknowledged so far, by the numbers that producers count."""
        return [_shown(one) for one in self._decoded(_TO_BROKER) if isinstance(one, MessageAck)]

    def dispatched(self) -> int:
        """Messages that were sent to consumers."""
        found = self._decoded(_TO_CLIENT)
        return sum(
            isinstance(one, MessageDispatch) and one.message is not None and not _is_advisory(one) for one in found
        )

    def _decoded(self, mark: str) -> list[Structure]:
        decoder = OpenWireDecoder(OpenWireLimits())
        found: list[Structure] = []
        for line in self._tap.lines:
            if line.startswith(mark):
                frame = decoder.next_frame(bytes.fromhex(line.removeprefix(mark)))
                assert frame is not None  # a line is a frame
                if isinstance(frame, WireFormatInfo):
                    decoder.agreed(WireFormat(_VERSION))
                found.append(frame)
        return found


def _is_advisory(dispatch: MessageDispatch) -> bool:
    return dispatch.destination is not None and dispatch.destination.name.startswith("ActiveMQ.Advisory")


def _shown(ack: MessageAck) -> str:
    assert ack.last_message_id is not None  # all of ours have one
    last = ack.last_message_id.producer_sequence_id
    first = "" if ack.first_message_id is None else f"{ack.first_message_id.producer_sequence_id}-"
    where = "" if ack.transaction_id is None else ", in the transaction"
    return f"{ACKS[ack.ack_type]} {first}{last}, {ack.message_count}{where}"


@dataclass(frozen=True, slots=True)
class ClientCase:
    """One case of a program."""

    name: str
    play: Callable[[Stage], None]


class ClientScript:
    """Cases that belong together.

    Attributes:
        program: its name in the table.
    """

    def __init__(self, program: str) -> None:
        self.program = program
        self.cases: list[ClientCase] = []

    def case(self, name: str) -> Callable[[Callable[[Stage], None]], Callable[[Stage], None]]:
        def add(play: Callable[[Stage], None]) -> Callable[[Stage], None]:
            self.cases.append(ClientCase(name, play))
            return play

        return add


def play(case: ClientCase, place: BrokerSite) -> list[str]:
    """The lines of a case. What it did not expect is the last one."""
    with ExitStack() as closing:
        stage = Stage(place, case.name, closing)
        try:
            case.play(stage)
        except Exception as error:
            stage.say(f"fails with {type(error).__name__}: {error}")
        return stage.lines


def play_all(cases: Sequence[ClientCase], place: BrokerSite) -> dict[str, list[str]]:
    """Each in a thread of its own, as it may hang."""
    found: dict[str, list[str]] = {}
    for case in cases:
        lines: list[str] = ["hangs"]

        def run(case: ClientCase = case, lines: list[str] = lines) -> None:
            lines[:] = play(case, place)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(60)
        found[case.name] = list(lines)
    return found
