"""One connection: moves bytes between a socket and its session, and re-arms one timer.

opened -> detecting -> serving -> finishing (replies leave) -> lingering (peer reads them) -> closed
"""

import asyncio
import secrets
from collections.abc import Callable
from typing import Final, cast

from delosmq.model.errors import BrokerError, LimitError, PeerError
from delosmq.model.ids import MonotonicNs
from delosmq.model.settings import AcceptorSettings
from delosmq.security.access import LoginAttempt
from delosmq.server.clock import Appointment
from delosmq.server.input_buffer import UNCOUNTED_BYTES, Receiver
from delosmq.server.layers import AWAITED, Upper, note_tls
from delosmq.server.passwords import PasswordCheck
from delosmq.server.peer_log import peer_name
from delosmq.server.protocol_detection import ProtocolDetection, Verdict
from delosmq.server.server_parts import ServerParts
from delosmq.server.slow_readers import SlowReader, WriteWatch
from delosmq.server.ticker import TickParticipant
from delosmq.server.websocket import WebSocketLayer
from delosmq.sessions.host import NO_TIMER, Peer, SessionHost
from delosmq.sessions.login import TurnedAwayError
from delosmq.sessions.machine import SessionMachine
from delosmq.sessions.protocol import Protocol
from delosmq.sessions.spare_connections import SpareConnections

ID_BYTES: Final = 8
"""Of chance in the id of a connection."""

# For replies to leave once the session is over: a sync, or a peer that reads, takes milliseconds or never comes.
_FINISH_S: Final = 5.0
# How long we read on after the last byte: a socket closed with unread bytes is reset, which can overtake the ERROR.
_LINGER_S: Final = 1.0
# How long, and how much, we read on before that when the peer is in the middle of a frame that is refused: when
# its socket ends while it writes, it sees that alone, and no answer.
_UNREAD_S: Final = 5.0
_UNREAD_LIMIT_BYTES: Final = 256 * 1024 * 1024

# States of a connection.
_DETECTING: Final = 0
_SERVING: Final = 1
_FINISHING: Final = 2
_LINGERING: Final = 3
_CLOSED: Final = 4


class Connection(asyncio.BufferedProtocol, SessionHost, TickParticipant, Upper, Receiver, SlowReader):
    """A socket, its session, and nothing between them but bytes.

    With TLS or a WebSocket its transport is a layer, which calls `receive` in place of `get_buffer`.
    """

    def __init__(
        self,
        acceptor: AcceptorSettings,
        parts: ServerParts,
        number: int,
        *,
        opened: "Callable[[Connection], bool]",
        closed: "Callable[[Connection], None]",
        spares: SpareConnections,
    ) -> None:
        """``opened`` says False when there are too many, ``closed`` hears that the socket is closed."""
        self._opened, self._closed, self._spares = opened, closed, spares
        self._acceptor = acceptor
        self._parts = parts
        self._number = number
        self._state = _DETECTING
        self._transport: asyncio.Transport | None = None
        self._session: SessionMachine | None = None
        self._peer = Peer("unknown", f"{number}")
        self._writable = self._reading = True
        self._peer_finished = False
        self._unread_bytes = 0
        self._timer: Appointment | None = None
        self._timer_due = NO_TIMER
        self._deadline: asyncio.TimerHandle | None = None
        self._check: PasswordCheck | None = None
        self._detection = ProtocolDetection(acceptor, parts.protocols)
        self._web_socket: WebSocketLayer | None = None
        self._watch = WriteWatch(parts.loop, acceptor.so_write_timeout_ms, self, self._looked)

    # -- called by asyncio -----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast(asyncio.Transport, transport)
        # Every byte that the socket doesn't take at once pauses us, and "resumed" means that all of it is written:
        # what is written and what is not is known exactly.
        transport.set_write_buffer_limits(high=0, low=0)
        # Part of the names of temporary destinations, which no other client is to guess.
        connection_id = f"{self._acceptor.name}-{self._number}-{secrets.token_hex(ID_BYTES)}"
        self._peer = Peer(peer_name(transport.get_extra_info("peername")), connection_id)
        if not self._opened(self):
            self._tell(
                f"DMQ6701: {self._peer.name} was turned away: acceptor '{self._acceptor.name}' serves its"
                f" {self._acceptor.connections_allowed} connections already (connectionsAllowed)"
            )
            self._close()
            return
        self._deadline = self._parts.loop.call_later(self._acceptor.handshake_timeout_s, self._handshake_is_late)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._parts.buffer

    def buffer_updated(self, nbytes: int) -> None:
        session = self._session
        if self._state != _SERVING or session is None:
            self.receive(bytes(self._parts.buffer[:nbytes]))
            return
        parts = self._parts
        claimed = parts.ticker.claim()
        try:
            self._feed(session, bytes(parts.buffer[:nbytes]))
        finally:  # or there would never be a tick again
            if claimed:
                parts.ticker.run()

    def receive(self, chunk: bytes) -> None:
        session = self._session
        if self._state == _SERVING and session is not None:
            self._feed(session, chunk)
        elif self._state == _DETECTING:
            self._detect(chunk)
        else:
            self._drop(len(chunk))

    def break_off(self, reason: PeerError) -> None:
        if self._state >= _LINGERING:
            return
        self.report(reason)
        self._cancel_check()
        self._drop_session()
        self._linger()

    def eof_received(self) -> bool:
        # A peer that has sent everything may still read its receipts: they leave before the socket is closed.
        self._peer_finished = True
        session = self._session
        if session is None or self._state not in (_SERVING, _FINISHING) or not self._parts.ticker.running:
            return False
        if self._state == _SERVING:
            self._guarded(session.handle_eof)
            self._parts.ticker.schedule()
        return True

    def pause_writing(self) -> None:
        self._writable = False
        if self._transport is not None:
            self._watch.socket_full(self._transport)

    def resume_writing(self) -> None:
        self._writable = True
        self._watch.socket_took_all()
        self._parts.slow_readers.remove(self)
        session = self._session
        if session is None or self._state not in (_SERVING, _FINISHING) or self._is_broken(session):
            return
        session.outbox.confirm_written()
        self._parts.ticker.write_soon(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._state = _CLOSED
        self._transport = None
        for timer in (self._timer, self._deadline):
            if timer is not None:
                timer.cancel()
        self._cancel_check()
        self._watch.stop()
        self._parts.slow_readers.remove(self)
        self._drop_session()
        self._closed(self)

    # -- called by the session -------------------------------------------------------------------------------------

    def write_wanted(self) -> None:
        self._parts.ticker.write_soon(self)

    def verify(self, attempt: LoginAttempt, password: str) -> None:
        try:
            self._check = self._parts.passwords.check(attempt, password, self._on_verified)
        except LimitError as busy:
            # Not from here: the session is in the middle of its CONNECT.
            self._parts.loop.call_soon(self._fail, busy)

    def wake_soon(self) -> None:
        self._parts.loop.call_soon(self._on_timer)

    def report(self, trouble: BrokerError) -> None:
        user = f", user '{self._peer.user}'" if self._peer.user else ""
        self._tell(f"{trouble} [peer {self._peer.name}{user}, acceptor '{self._acceptor.name}']")

    def finish(self, reason: BrokerError | None) -> None:
        if self._state >= _FINISHING:
            return
        self._cancel_check()
        if reason is not None and not isinstance(reason, TurnedAwayError):
            self.report(reason)
        if isinstance(reason, PeerError):
            self._unread_bytes = min(reason.unread_bytes, _UNREAD_LIMIT_BYTES)
        self._state = _FINISHING
        if self._session is not None:
            self._session.drop_input()
        self._parts.incomplete_frames.remove(self)
        self._set_deadline(_FINISH_S, self.abort)
        self._parts.ticker.write_soon(self)

    # -- called by the ticker and the listener ---------------------------------------------------------------------

    def rights_changed(self) -> None:
        if self._session is not None:
            self._session.rights_changed()

    def write_outbox(self) -> bool:
        session = self._session
        transport = self._transport
        if session is None or transport is None or self._state not in (_SERVING, _FINISHING):
            return False
        try:
            self._write(session, transport)
        except OSError as error:
            self._give_up(error)
        if self._is_broken(session):
            return False
        touched = session.handle_written(self._now())
        if self._state == _FINISHING:
            if not session.outbox.reply_bytes and not session.outbox.within_frame:
                self._linger()
        else:
            self._adjust(session)
        return touched

    def stop(self, reason: BrokerError) -> None:
        """Ends the session from our side: the peer is told, and what was promised still leaves."""
        if not self._parts.ticker.running:
            # After a fatal error nothing may be confirmed, so there is nothing to wait for.
            self.abort()
        elif self._state == _DETECTING:
            self._close()
        else:
            self._fail(reason)

    def abort(self) -> None:
        """Closes the socket now, whatever it still holds."""
        if self._transport is not None:
            self._transport.abort()

    def cut_off(self, reason: PeerError) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self.report(reason)
            self.abort()

    def _looked(self, still: int) -> None:
        """While the socket is full, what waits for the peer counts with that of all others."""
        session = self._session
        if session is not None and not self._writable and not self._is_broken(session):
            self._parts.slow_readers.looked_at(self, session.outbox.kept_bytes(), still)

    def _write(self, session: SessionMachine, transport: asyncio.Transport) -> None:
        outbox = session.outbox
        # One write at a time is under way; `resume_writing` brings us back.
        if not self._writable or outbox.in_flight_bytes:
            return
        while not self._is_broken(session) and (chunk := outbox.take()):
            if self._web_socket is not None:
                self._web_socket.within_frame = outbox.within_frame
            transport.write(chunk)
            if self._is_stuck() or self._is_broken(session):
                break
            outbox.confirm_written()
            if outbox.gentle_turns and self._state != _FINISHING:
                outbox.gentle_turns -= 1
                self._parts.ticker.write_next_turn(self)
                break

    def _is_stuck(self) -> bool:
        # `transport.write` calls `pause_writing` when the socket does not take everything.
        return not self._writable

    def _is_broken(self, session: SessionMachine) -> bool:
        """Whether the peer is gone and `connection_lost` follows. What was taken and not confirmed did not arrive."""
        # A transport that could not write says nothing: it drops what it has and is closing.
        if self._transport is not None and not self._transport.is_closing():
            return False
        session.outbox.refuse_deliveries()
        return True

    def _give_up(self, error: OSError | RuntimeError) -> None:
        """The socket is of no use any more; that is the end of this connection alone."""
        self._parts.peer_log.info(
            self._peer.host(),
            f"DMQ6704: the socket of {self._peer.name} can't be used any more ({error}); closed. Its messages go back"
            " to their queues",
        )
        self.abort()

    def _tell(self, message: str) -> None:
        self._parts.peer_log.warning(self._peer.host(), message)

    # -- inside ----------------------------------------------------------------------------------------------------

    def _detect(self, chunk: bytes) -> None:
        verdict = self._detection.add(chunk)
        if not isinstance(verdict, Verdict):
            self._serve(verdict, self._detection.take())
        elif verdict is Verdict.WEB_SOCKET:
            self._upgrade()
        elif verdict is Verdict.NONE:
            self._turn_away()

    def _upgrade(self) -> None:
        """Puts a WebSocket below us and begins anew."""
        assert self._transport is not None  # what was detected came from it
        layer = self._detection.upgrade(self, self._transport, self._parts)
        self._transport = self._web_socket = layer
        layer.receive(self._detection.take())

    def _turn_away(self) -> None:
        self._tell(self._detection.refusal(self._peer.name))
        answer = self._detection.answer(self._parts.http_port)
        if answer and self._transport is not None:
            self._transport.write(answer)
            self._linger()
            return
        self._close()

    def _serve(self, protocol: Protocol, start: bytes) -> None:
        parts = self._parts
        note_tls(self._peer, self._transport)
        session = self._session = protocol.open(self, self._peer, self._acceptor, parts.services, self._now())
        self._state = _SERVING
        if parts.tap is None or self._transport is None:
            self._feed(session, start)
        else:
            self._transport = layer = parts.tap.open(self, self._transport, self._peer, protocol.name)
            layer.receive(start)

    def _feed(self, session: SessionMachine, chunk: bytes) -> None:
        try:
            session.receive(chunk, self._now())
        except Exception as error:
            # Not a PeerError: those are the session's to answer. The engine's state can't be trusted any more.
            self._parts.ticker.fatal(error)
            return
        self._adjust(session)
        self._parts.ticker.schedule()

    def give_up(self, reason: PeerError) -> None:
        self._guarded(lambda: self._fail(reason))

    def _fail(self, reason: BrokerError) -> None:
        if self._session is not None and self._state == _SERVING:
            self._session.fail(reason)
            self._parts.ticker.schedule()

    def _drop_session(self) -> None:
        """The session gives back what its peer had in delivery."""
        session = self._session
        self._session = None
        self._parts.incomplete_frames.remove(self)
        if session is not None:
            self._guarded(session.connection_lost)
            self._parts.ticker.schedule()

    def _cancel_check(self) -> None:
        if self._check is not None:
            self._parts.passwords.cancel(self._check, self._on_verified)
            self._check = None

    def _on_verified(self, verified: bool) -> None:
        self._check = None
        session = self._session
        if session is not None and self._state == _SERVING:
            self._call(session, lambda: session.resume(verified, self._now()))

    def _on_timer(self) -> None:
        self._timer_due = NO_TIMER
        session = self._session
        if session is not None and self._state == _SERVING:
            self._call(session, lambda: session.handle_timer(self._now()))

    def _call(self, session: SessionMachine, work: Callable[[], None]) -> None:
        if self._guarded(work):
            self._adjust(session)
            self._parts.ticker.schedule()

    def _guarded(self, work: Callable[[], None]) -> bool:
        """Whether the session's work went well. After an exception the engine's state can't be trusted any more."""
        try:
            work()
        except Exception as error:
            self._parts.ticker.fatal(error)
            return False
        return True

    def _adjust(self, session: SessionMachine) -> None:
        """Follows the session: reading or not, its timer, the end of its handshake, what it holds."""
        if self._state != _SERVING:
            return
        if session.reading != self._reading and self._transport is not None:
            self._reading = session.reading
            if self._reading:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()
        if session.established and self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
            self._spares.remove(self)
        due = session.next_timer()
        if due != self._timer_due:
            self._arm(due)
        incomplete_frames = self._parts.incomplete_frames
        buffered_bytes = session.buffered_bytes()
        if buffered_bytes > UNCOUNTED_BYTES:
            incomplete_frames.count(self, buffered_bytes)
        elif incomplete_frames.used_bytes:
            incomplete_frames.remove(self)

    def _arm(self, due: MonotonicNs) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_due = due
        if due != NO_TIMER:
            self._timer = self._parts.clock.call_at(self._parts.loop, due, self._on_timer)

    def _handshake_is_late(self) -> None:
        session = self._session
        if self._spares.keeps(self, session):
            self._set_deadline(self._acceptor.handshake_timeout_s, self._handshake_is_late)
            return
        self._deadline = None
        awaited = None if self._transport is None else self._transport.get_extra_info(AWAITED)
        reason = self._spares.too_late(self._peer.name, session, awaited)
        if session is not None:
            self._fail(reason)
        else:
            self._tell(f"{reason} [acceptor '{self._acceptor.name}']")
            self._close()

    def _linger(self) -> None:
        transport = self._transport
        if transport is None or self._peer_finished:
            self._close()
            return
        self._state = _LINGERING
        try:
            if not self._reading:
                self._reading = True
                transport.resume_reading()
        except (OSError, RuntimeError) as error:
            self._give_up_lingering(error)
            return
        if self._unread_bytes > 0:
            self._set_deadline(_UNREAD_S, self._end_writing)
        else:
            self._end_writing()

    def _drop(self, count: int) -> None:
        """Drops bytes that are not wanted any more."""
        if self._unread_bytes > 0:
            self._unread_bytes -= count
            if self._unread_bytes <= 0 and self._state == _LINGERING:
                self._end_writing()

    def _end_writing(self) -> None:
        transport = self._transport
        if transport is None:
            return
        self._unread_bytes = 0
        self._set_deadline(_LINGER_S, self.abort)
        try:
            transport.write_eof()
        except (OSError, RuntimeError) as error:
            self._give_up_lingering(error)

    def _give_up_lingering(self, error: OSError | RuntimeError) -> None:
        """A peer that has reset the connection: the socket is connected no more, and our replies are not read."""
        if self._session is None:
            # Broken off, and the log has the reason.
            self.abort()
        else:
            self._give_up(error)

    def _set_deadline(self, after_s: float, then: Callable[[], None]) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self._parts.loop.call_later(after_s, then)

    def _close(self) -> None:
        self._state = _CLOSED
        if self._transport is not None:
            self._transport.close()

    def _now(self) -> MonotonicNs:
        return self._parts.clock.monotonic_ns()
