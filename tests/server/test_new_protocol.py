"""What a new protocol needs: a decoder, a session and one entry in each of two registers. This one echoes lines."""

import asyncio

from delosmq.composition import PROTOCOLS
from delosmq.model.errors import BrokerError, PeerError
from delosmq.model.ids import NOTHING_DURABLE, MonotonicNs
from delosmq.model.protocol_names import SERVED_PROTOCOLS
from delosmq.model.settings import AcceptorSettings
from delosmq.security.access import Login
from delosmq.sessions.login import redirect
from delosmq.sessions.machine import CONNECTED, SessionMachine
from delosmq.sessions.protocol import Protocol
from delosmq.sessions.protocol_session import ProtocolSession
from delosmq.sessions.ttl import Liveness
from delosmq.wire.decoder import FrameDecoder
from delosmq.wire.first_bytes import FOREIGN, MINE, UNDECIDED
from tests.server.support import RunningServer, running
from tests.sessions.support import PASSWORD, USER
from tests.sessions.test_login_port import Door

ECHO = AcceptorSettings("echo", "127.0.0.1", 0, ("ECHO",))
_HELLO = b"HELLO "


class Lines(FrameDecoder):
    """A frame is a line."""

    def __init__(self) -> None:
        self._held = b""

    @property
    def buffered_bytes(self) -> int:
        return len(self._held)

    def next_frame(self, chunk: bytes = b"") -> str | None:
        self._held += chunk
        line, end, rest = self._held.partition(b"\n")
        if not end:
            return None
        self._held = rest
        return line.decode()

    def close(self) -> None:
        self._held = b""


class Patient(Liveness):
    """Peers may be silent for ever."""

    def next_timer(self) -> MonotonicNs:
        return MonotonicNs(0)

    def beat_due(self, now: MonotonicNs) -> bool:
        return False

    def is_silent(self, now: MonotonicNs, *, waits_for_us: bool) -> bool:
        return False

    def silence(self, peer: str) -> BrokerError:
        raise AssertionError("nobody asked")


class EchoSession(ProtocolSession):
    """HELLO, user and password; then each line comes back."""

    def __init__(self, machine: SessionMachine) -> None:
        super().__init__(Lines(), Patient())
        self._machine = machine

    def _write(self, line: str) -> None:
        self._machine.outbox.reply(NOTHING_DURABLE, f"{line}\n".encode())

    def handle(self, frame: object, now: MonotonicNs) -> bool:
        assert isinstance(frame, str)
        if self._machine.state == CONNECTED:
            self._write(frame)
        else:
            _, user, password = frame.split(" ", 2)
            self._machine.log_in(user, password, "", now)
        return True

    def refuse(self, frame: object, error: BrokerError) -> None:
        self._machine.fail(error)

    def admit(self, login: Login, now: MonotonicNs) -> None:
        self._write(f"WELCOME {login.user}")

    def refuse_login(self, error: BrokerError | None) -> None:
        self._machine.fail(error or PeerError("DMQ9997", "wrong"))

    def send_error(self, error: BrokerError, receipt: str) -> None:
        self._write(f"BYE {error.message}")

    def give_up(self) -> None:
        pass

    def half_closed(self) -> None:
        self._machine.end(None)

    def go_on(self, now: MonotonicNs) -> None:
        pass

    def handle_written(self) -> bool:
        return False

    def beat(self) -> None:
        pass


class EchoProtocol(Protocol):
    """Lines."""

    def __init__(self) -> None:
        self.name = "ECHO"

    def detect(self, start: bytes) -> int:
        if start.startswith(_HELLO):
            return MINE
        return UNDECIDED if _HELLO.startswith(start) else FOREIGN

    def begin(self, machine: SessionMachine, now: MonotonicNs) -> ProtocolSession:
        return EchoSession(machine)


async def said(server: RunningServer, lines: str) -> str:
    """All that a client hears that says that and then no more."""
    server.parts.protocols = (EchoProtocol(),)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.listener.port)
    writer.write(lines.encode())
    writer.write_eof()
    async with asyncio.timeout(10):
        heard = await reader.read()
    writer.close()
    return heard.decode()


async def test_a_new_protocol_brings_its_session_and_no_more() -> None:
    async with running(ECHO) as server:
        server.parts.services.access.trust(USER, PASSWORD)
        assert await said(server, f"HELLO {USER} {PASSWORD}\none\ntwo\n") == f"WELCOME {USER}\none\ntwo\n"


async def test_it_has_the_login_port_that_all_have() -> None:
    async with running(ECHO) as server:
        server.parts.services.access.trust(USER, PASSWORD)
        server.parts.services.logins = Door(redirect("elsewhere", 1))
        heard = await said(server, f"HELLO {USER} {PASSWORD}\none\n")
        assert heard == "BYE this broker does not serve this connection; connect to elsewhere:1\n"


def test_both_registers_name_the_same_protocols() -> None:
    assert {name: make(()).name for name, make in PROTOCOLS.items()} == {name: name for name in SERVED_PROTOCOLS}
