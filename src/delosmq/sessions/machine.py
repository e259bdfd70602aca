"""The machine of a session: what a connection does whatever protocol its peer speaks.

It cuts bytes into frames and has its protocol handle them; ends turns that are too long and stops reading under
back-pressure; has passwords verified and logins decided; keeps the timers; and ends once. It knows no IO: bytes and
times come in, bytes go to its outbox, a few requests to its host. It never blocks: while something it asked for is
outstanding it decodes no further frame.

One read brings thousands of frames, and one frame may stand for much: an acknowledgement of a thousand messages, a
message for a thousand subscribers. What a turn leaves undecoded has the next one, behind those of all others.
"""

from collections.abc import Callable
from typing import Final

from delosmq.model.errors import BrokerError, InvariantError, PeerError, StorageError
from delosmq.model.ids import MonotonicNs, WallMs
from delosmq.model.settings import AcceptorSettings
from delosmq.security.access import Login, LoginAttempt
from delosmq.sessions.host import NO_TIMER, Peer, SessionHost, SessionServices
from delosmq.sessions.login import WAIT, LoginRequest, certificate_without_user, decided, withdraw
from delosmq.sessions.outbox import Outbox
from delosmq.sessions.parked_sends import ParkedSendsOwner
from delosmq.sessions.protocol_session import ProtocolSession

TURN_NS: Final = 5_000_000
"""What the frames of one turn may take, but for the last of them."""
BRIEF_AT_ONCE: Final = 16
"""Frames that are brief as a rule, between two looks at the clock."""

# States of a session. Frames are decoded in the first three.
NEW: Final = 0
NEGOTIATED: Final = 1
"""Both sides know how frames are written; the peer is not logged in."""
CONNECTED: Final = 2
VERIFYING: Final = 3
"""A login is being decided."""
LEAVING: Final = 4
"""The peer has left in order, and sends of it still wait for space."""
CLOSED: Final = 5

# What changes the state.
AGREE: Final = "agree"
LOGIN: Final = "login"
ADMITTED: Final = "admitted"
REFUSED: Final = "refused"
LOGOUT: Final = "logout"
LEAVE: Final = "leave"
END: Final = "end"
LOST: Final = "lost"


class SessionMachine(ParkedSendsOwner):
    """One connection, from its first byte to its last.

    Attributes:
        outbox: what it has to send.
        reading: False while the server must not read from the peer (back-pressure, or an answer is outstanding).
        established: True once a login was admitted.
        session: what its protocol brings; gone once the connection is lost.
        state: one of the constants of this module.
        wall: when the frames that are being handled came.
    """

    session: ProtocolSession
    __deletable__ = ("session",)

    def __init__(self, host: SessionHost, peer: Peer, acceptor: AcceptorSettings, services: SessionServices) -> None:
        self.host = host
        self.peer = peer
        self.acceptor = acceptor
        self.services = services
        self.outbox: Outbox = Outbox(host, services.gate, acceptor.outbox_limit_bytes)
        self.reading: bool = True
        self.established: bool = False
        self.state: int = NEW
        self.wall: WallMs = WallMs(0)
        self._clock = services.clock
        self._parked_limit: int = acceptor.parked_limit_bytes
        self._reply_limit: int = acceptor.reply_limit_bytes
        self._turn_over: bool = False
        # What came while it did not read; behind all that the decoder has.
        self._queued_input: bytearray = bytearray()
        self._client_id: str = ""
        self._attempt: LoginAttempt | None = None
        self._request: LoginRequest | None = None
        self._asks_again: bool = False
        self._failure: BrokerError | None = None
        self._failure_receipt: str = ""

    def begin(self, session: ProtocolSession) -> None:
        """Names what drives it; before anything else."""
        self.session = session

    def _take(self, input_: str, reason: BrokerError | None = None) -> None:
        """Changes the state, as the table says.

        Raises:
            InvariantError: the table has no such change.
        """
        found = TRANSITIONS.get((self.state, input_))
        if found is None:
            raise InvariantError("DMQ5302", f"a session in state {self.state} can't take the input '{input_}'")
        effect, self.state = found
        effect(self, reason)

    # -- frames ----------------------------------------------------------------------------------------------------

    def receive(self, chunk: bytes, now: MonotonicNs) -> None:
        """Bytes from the peer; once it is leaving they are dropped."""
        if self.state == CLOSED:
            return
        self.session.liveness.heard = True
        if self.reading:
            self._handle_frames(now, chunk)
        elif self.state != LEAVING:
            self._queued_input += chunk

    def buffered_bytes(self) -> int:
        """What was read and is not decoded yet: part of a frame, or frames that wait; and parts of a message."""
        return self.session.decoder.buffered_bytes + len(self._queued_input) + self.session.held_bytes()

    def drop_input(self) -> None:
        """The session is over, and what it read and did not decode of no use: frees it."""
        self.session.decoder.close()
        self._queued_input.clear()

    def _handle_frames(self, now: MonotonicNs, chunk: bytes = b"") -> None:
        session = self.session
        decoder = session.decoder
        self.wall = self._clock.wall_ms()
        until = now + TURN_NS
        unlooked = 0
        while self.reading and self.state <= CONNECTED:
            try:
                frame = decoder.next_frame(chunk)
            except PeerError as malformed:
                self.fail(malformed)
                return
            if frame is None:
                if not self._queued_input:
                    return
                chunk = bytes(self._queued_input)
                self._queued_input.clear()
                continue
            chunk = b""
            try:
                brief = session.handle(frame, now)
            # What is wrong with one frame concerns its sender alone. An InvariantError concerns all and goes on up.
            except InvariantError:
                raise
            except BrokerError as error:
                brief = False
                session.refuse(frame, error)
            if self._update_reading():
                unlooked += 1
                if not brief or unlooked >= BRIEF_AT_ONCE:
                    unlooked = 0
                    if self._clock.monotonic_ns() > until:
                        self._turn_over = True
                        self.reading = False
                        self.host.wake_soon()

    def _next_turn(self, now: MonotonicNs) -> None:
        """Goes on where the last turn was too long. That was no back-pressure, which ends later than it begins."""
        self._turn_over = False
        self.reading = True
        if self._update_reading():
            self._handle_frames(now)

    # -- back-pressure ---------------------------------------------------------------------------------------------

    def _update_reading(self) -> bool:
        """Reads until too much is parked or too many replies wait, and again once half is left."""
        if self.state <= CONNECTED:
            parked_bytes = self.session.parked_bytes()
            reply_bytes = self.outbox.reply_bytes
            if self.reading:
                self.reading = parked_bytes < self._parked_limit and reply_bytes < self._reply_limit
            else:
                self.reading = parked_bytes * 2 <= self._parked_limit and reply_bytes * 2 <= self._reply_limit
        return self.reading

    def _go_on_reading(self, now: MonotonicNs) -> bool:
        """Back-pressure may be over: the frames that were left undecoded come first."""
        if self.reading or self._turn_over or self.state > CONNECTED or not self._update_reading():
            return False
        self._handle_frames(now)
        return True

    def parked_changed(self) -> None:
        if self.state == LEAVING:
            self._end_if_left()
        elif self.reading:
            self._update_reading()
        else:
            self.host.wake_soon()

    # -- login -----------------------------------------------------------------------------------------------------

    def agreed(self) -> None:
        """Both sides know now how frames are written."""
        self._take(AGREE)

    def needs_password(self) -> bool:
        """Whether `log_in` needs user and password: no certificate says who the peer is."""
        return self.services.access.attempt_by(self.peer.certificate) is None

    def log_in(self, user: str, password: str, client_id: str, now: MonotonicNs) -> None:
        """The peer says who it is, unless its certificate does. `ProtocolSession.admit` or `refuse_login` follows, at
        once or later."""
        access = self.services.access
        attempt = access.attempt_by(self.peer.certificate)
        if attempt is None:
            attempt = access.attempt(user, password)
        self._client_id = client_id
        self._attempt = attempt
        if attempt.login is None and attempt.certificate:
            self._refuse_login(certificate_without_user(attempt.certificate))
        elif attempt.login is None:
            self._take(LOGIN)
            self.host.verify(attempt, password)
        else:
            self._decide(attempt.login, now)

    def resume(self, verified: bool, now: MonotonicNs) -> None:
        """The answer to `SessionHost.verify`."""
        attempt = self._attempt
        if self.state == VERIFYING and attempt is not None and self._request is None:
            self._go_on_with_login(self.services.access.finish(attempt, verified), now)

    def _go_on_with_login(self, login: Login | None, now: MonotonicNs) -> None:
        if login is None:
            self._refuse_login(None)
        else:
            self._decide(login, now)
        if self.state <= CONNECTED:
            self.reading = True
            self._handle_frames(now)

    def _decide(self, login: Login, now: MonotonicNs) -> None:
        """Admits a user with the right password, unless the login port decides otherwise."""
        request = self._request
        self._request = None
        if request is None:
            request = LoginRequest(
                login,
                self._client_id,
                self.peer.name,
                self.acceptor.name,
                ask_again=self._ask_again_soon,
                router=self.acceptor.router,
                sni_host=self.peer.sni_host,
            )
        else:
            request.login = login
        try:
            answer = decided(self.services.logins, request, self.host.report)
            refusal = answer.refusal()
            if refusal is None and answer is not WAIT:
                self.session.admit(login, now)
        except InvariantError:
            raise
        except BrokerError as error:
            self._refuse_login(error)
            return
        if answer is WAIT:
            self._request = request
            if self.state != VERIFYING:
                self._take(LOGIN)
        elif refusal is not None:
            self._refuse_login(refusal)
        else:
            self._attempt = None
            self.peer.user = login.user
            self._take(ADMITTED)

    def _refuse_login(self, error: BrokerError | None) -> None:
        """Tells the peer that it gets no session; see `ProtocolSession.refuse_login`."""
        self._drop_login()
        if self.state == VERIFYING:
            self._take(REFUSED)
        self.session.refuse_login(error)

    def _ask_again_soon(self) -> None:
        self._asks_again = True
        self.host.wake_soon()

    def _drop_login(self) -> None:
        """The login under way gets no answer any more."""
        self._attempt = None
        if self._request is not None:
            request, self._request = self._request, None
            withdraw(self.services.logins, request, self.host.report)

    def go_on_as(self, user: str) -> None:
        """The peer goes on with what it logged in to by an earlier connection."""
        self.peer.user = user
        self._take(ADMITTED)

    def logged_out(self) -> None:
        """The peer has ended what its login began, and may log in again."""
        self._take(LOGOUT)

    # -- end -------------------------------------------------------------------------------------------------------

    def leave(self) -> None:
        """The peer has left in order, and has been given up but for its sends that wait for space: the session ends
        when they are where they belong."""
        self._take(LEAVE)
        self._end_if_left()

    def _end_if_left(self) -> None:
        if not self.session.parked_bytes():
            self.end(None)

    def fail(self, error: BrokerError, receipt: str = "") -> None:
        """Tells the peer why, and ends the session; see `ProtocolSession.send_error`."""
        if self.state != CLOSED:
            self.session.send_error(error, receipt)
            self.end(error)

    def fail_soon(self, error: BrokerError, receipt: str = "") -> None:
        """As `fail`, in the next turn: for what the engine calls, which must not call it."""
        if self._failure is None:
            self._failure = error
            self._failure_receipt = receipt
            self.host.wake_soon()

    def end(self, reason: BrokerError | None) -> None:
        """Gives back what the peer held, lets its answers leave, and then closes its connection.

        Args:
            reason: for the log; None when it was the peer's wish.
        """
        self._take(END, reason)

    def handle_eof(self) -> None:
        """The peer will send nothing more."""
        while self._turn_over and self.state <= CONNECTED:  # it left behind what the last read brought
            self._next_turn(self._clock.monotonic_ns())
        if self.state != CLOSED:
            self.session.half_closed()

    def connection_lost(self) -> None:
        """The peer is gone: gives back what it held. Nothing is called after this."""
        self._take(LOST)
        self.outbox.close()
        # Ends the cycle of both, so that nothing waits for the garbage collector.
        del self.session

    # -- time and room ---------------------------------------------------------------------------------------------

    def next_timer(self) -> MonotonicNs:
        """When to call `handle_timer`; `NO_TIMER` for never."""
        if self.state == CLOSED:
            return NO_TIMER
        due = self.session.liveness.next_timer()
        other = self.session.next_timer()
        return other if other != NO_TIMER and (due == NO_TIMER or other < due) else due

    def handle_timer(self, now: MonotonicNs) -> None:
        """It is ``now``; may be called early."""
        attempt = self._attempt
        if self._asks_again and self._request is not None and attempt is not None:
            self._asks_again = False
            self._go_on_with_login(self.services.access.still_right(attempt), now)
        if self.state == CLOSED:
            return
        session = self.session
        try:
            if self._failure is None:
                session.go_on(now)
            else:
                self.fail(self._failure, self._failure_receipt)
        except StorageError as error:
            self.fail(error)
        if self.state == CLOSED:
            return
        liveness = session.liveness
        if liveness.beat_due(now):
            session.beat()
        # A peer that waits for us may be silent: its connection is not read, or its sends are parked.
        if liveness.is_silent(now, waits_for_us=not self.reading or session.parked_bytes() > 0):
            self.fail(liveness.silence(self.peer.name))
        elif self._turn_over:
            self._next_turn(now)
        else:
            self._go_on_reading(now)

    def handle_written(self, now: MonotonicNs) -> bool:
        """The outbox was written, all or in part. True when the engine has new work."""
        if self.state == CLOSED:
            return False
        try:
            touched = self.session.handle_written()
        except StorageError as error:
            self.fail(error)
            return True
        return self._go_on_reading(now) or touched

    def rights_changed(self) -> None:
        """Users, roles or permissions were reloaded: what was found out about them counts no more."""
        self.session.rights_changed()

    # -- effects ---------------------------------------------------------------------------------------------------

    def _nothing(self, reason: BrokerError | None) -> None:
        """The state alone changes."""

    def _stop_reading(self, reason: BrokerError | None) -> None:
        self.reading = False

    def _read_again(self, reason: BrokerError | None) -> None:
        self.reading = True

    def _establish(self, reason: BrokerError | None) -> None:
        self.established = True

    def _give_up(self, reason: BrokerError | None) -> None:
        self._drop_login()
        self.session.give_up()

    def _lose(self, reason: BrokerError | None) -> None:
        self._drop_login()
        self.session.lose()

    def _finish(self, reason: BrokerError | None) -> None:
        self._give_up(reason)
        self.host.finish(reason)


Effect = Callable[[SessionMachine, BrokerError | None], None]

# (state, input) -> what is done, and the next state. What is missing is a mistake of a protocol.
TRANSITIONS: Final[dict[tuple[int, str], tuple[Effect, int]]] = {
    (NEW, AGREE): (SessionMachine._nothing, NEGOTIATED),
    (NEW, LOGIN): (SessionMachine._stop_reading, VERIFYING),
    (NEGOTIATED, LOGIN): (SessionMachine._stop_reading, VERIFYING),
    (NEW, ADMITTED): (SessionMachine._establish, CONNECTED),
    (NEGOTIATED, ADMITTED): (SessionMachine._establish, CONNECTED),
    (VERIFYING, ADMITTED): (SessionMachine._establish, CONNECTED),
    (VERIFYING, REFUSED): (SessionMachine._read_again, NEGOTIATED),
    # Where each session of a connection logs in by itself.
    (CONNECTED, LOGIN): (SessionMachine._stop_reading, VERIFYING),
    (CONNECTED, ADMITTED): (SessionMachine._establish, CONNECTED),
    (CONNECTED, LOGOUT): (SessionMachine._nothing, NEGOTIATED),
    (CONNECTED, LEAVE): (SessionMachine._nothing, LEAVING),
    **{(state, END): (SessionMachine._finish, CLOSED) for state in range(CLOSED)},
    **{(state, LOST): (SessionMachine._lose, CLOSED) for state in range(CLOSED)},
    (CLOSED, END): (SessionMachine._nothing, CLOSED),
    (CLOSED, LOST): (SessionMachine._nothing, CLOSED),
}
