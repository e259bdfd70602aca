"""The server's side of a STOMP connection: frames to engine commands, replies to the outbox.

The table at the end of this file is the protocol: which command is allowed in which state, and who handles it.
"""

from collections.abc import Callable
from typing import Final

from delosmq.engine.api import TransactionError
from delosmq.model.errors import (
    BrokerError,
    LimitError,
    MisuseError,
    PeerError,
    PermissionDeniedError,
    StorageError,
)
from delosmq.model.ids import MonotonicNs, WallMs
from delosmq.model.settings import AcceptorSettings
from delosmq.security.access import Login
from delosmq.sessions.outbox import Outbox
from delosmq.sessions.parking import Parking, may_read
from delosmq.sessions.permissions import Permissions
from delosmq.sessions.protocol import Peer, Session, SessionHost, SessionServices
from delosmq.sessions.stomp.server import errors, heartbeat
from delosmq.sessions.stomp.server.connection_port import StompSessionPort
from delosmq.sessions.stomp.server.destinations import StompDestinations
from delosmq.sessions.stomp.server.handshake import StompHandshake, choose_version, limits_before_login, limits_of
from delosmq.sessions.stomp.server.headers import required
from delosmq.sessions.stomp.server.heartbeat import HeartBeatTimer
from delosmq.sessions.stomp.server.producers import Producer
from delosmq.sessions.stomp.server.subscribe import StompSubscriber
from delosmq.sessions.stomp.server.temporary_destinations import StompTemporaryDestinations
from delosmq.sessions.stomp.server.transactions import TRANSACTION, StompTransaction, StompTransactions
from delosmq.sessions.turn import Turn
from delosmq.wire.stomp.decoder import StompDecoder
from delosmq.wire.stomp.frames import V10, StompFrame

# States of a session.
NEW: Final = 0
VERIFYING: Final = 1
CONNECTED: Final = 2
DISCONNECTING: Final = 3
CLOSED: Final = 4

_BRIEF: Final = frozenset(("SEND", "ACK", "NACK"))
"""Commands that take no time worth a look at the clock, as a rule."""


class StompSession(Session):
    """One connection, from its first frame to its last.

    Attributes:
        state: one of the constants of this module.
        version: 10, 11 or 12; 10 until CONNECT.
    """

    def __init__(
        self, host: SessionHost, peer: Peer, acceptor: AcceptorSettings, services: SessionServices, now: MonotonicNs
    ) -> None:
        broker = services.broker
        self.outbox: Outbox = Outbox(host, services.gate, acceptor.outbox_limit_bytes)
        self.reading: bool = True
        self.established: bool = False
        self.state: int = NEW
        self.version: int = V10
        self._host = host
        self._peer = peer
        self._acceptor = acceptor
        self._services = services
        self._broker = broker
        self._decoder: StompDecoder = StompDecoder(limits_before_login(acceptor))
        self._temporaries: StompTemporaryDestinations = StompTemporaryDestinations(
            broker, services.temporaries, peer.connection_id, acceptor.max_subscriptions
        )
        self._destinations: StompDestinations = StompDestinations(acceptor, self._temporaries)
        self._transactions: StompTransactions = StompTransactions(broker, peer.connection_id)
        self._heart_beat: HeartBeatTimer = HeartBeatTimer(
            heartbeat.limits_of(acceptor, broker.settings.connection_ttl_override_ms),
            broker.settings.connection_ttl_check_interval_ms,
            now,
        )
        self._handshake: StompHandshake = StompHandshake(services.access, self._heart_beat)
        self._wall: WallMs = WallMs(0)
        self._pending: BrokerError | None = None
        self._pending_receipt: str = ""
        self._turn: Turn = Turn(services.clock)
        self._owner: _SessionPort = _SessionPort(self)
        self._parking: Parking = Parking(broker, self._owner, ordered=True)
        self._producer: Producer = Producer(
            self._owner,
            broker,
            self.outbox,
            self._parking,
            destinations=self._destinations,
            transactions=self._transactions,
            connection_id=peer.connection_id,
        )
        self._subscriber: StompSubscriber = StompSubscriber(
            host,
            peer,
            acceptor,
            services,
            outbox=self.outbox,
            owner=self._owner,
            destinations=self._destinations,
            transactions=self._transactions,
        )

    # -- input -----------------------------------------------------------------------------------------------------

    def receive(self, chunk: bytes, now: MonotonicNs) -> None:
        self._heart_beat.heard = True
        if self.state >= DISCONNECTING:
            return
        self._decoder.feed(chunk)
        self._handle_frames(now)

    def held_bytes(self) -> int:
        return self._decoder.buffered_bytes

    def forget_input(self) -> None:
        self._decoder.close()

    def _handle_frames(self, now: MonotonicNs) -> None:
        self._wall = self._services.clock.wall_ms()
        decoder = self._decoder
        turn = self._turn
        turn.begin()
        while self.reading and self.state < DISCONNECTING:
            try:
                frame = decoder.next_frame()
            except PeerError as malformed:
                self.fail(malformed)
                return
            if frame is None:
                break
            try:
                handler = COMMANDS[self.state].get(frame.command)
                if handler is None:
                    raise self._refuse_command(frame.command)
                handler(self, frame, now)
            # What is wrong with one frame concerns its sender alone. An InvariantError concerns all and goes on up.
            except (
                PeerError,
                PermissionDeniedError,
                LimitError,
                MisuseError,
                StorageError,
                TransactionError,
            ) as error:
                self._refuse(error, frame.headers.get("receipt", ""))
                return
            if self._update_reading() and turn.ends(brief=frame.command in _BRIEF):
                self.reading = False
                self._host.wake_soon()

    def _refuse_command(self, command: str) -> PeerError:
        if command not in COMMANDS[CONNECTED] and command not in ("CONNECT", "STOMP"):
            return errors.unknown_command(command)
        if self.state == NEW:
            return errors.not_connected(command)
        return errors.connected_already(command)

    # -- connecting ------------------------------------------------------------------------------------------------

    def _connect(self, frame: StompFrame, now: MonotonicNs) -> None:
        headers = frame.headers
        self.version = choose_version(headers.get("accept-version"))
        self._decoder.version = self.version
        attempt = self._handshake.begin(headers, self.version)
        if attempt.login is not None:
            self._logged_in(attempt.login, now)
            return
        self.state = VERIFYING
        self.reading = False
        self._host.verify(attempt, headers["passcode"])

    def resume(self, verified: bool, now: MonotonicNs) -> None:
        if self.state != VERIFYING:
            return
        login = self._handshake.finish(verified)
        if login is None:
            self.fail(errors.login_refused(self._handshake.user))
            return
        self.reading = True
        self._logged_in(login, now)
        self._handle_frames(now)

    def _logged_in(self, login: Login, now: MonotonicNs) -> None:
        self.state = CONNECTED
        self.established = True
        self._peer.user = login.user
        self._decoder.set_limits(limits_of(self._acceptor))
        permissions = Permissions(login, self._services.access, self._broker)
        self._producer.permit(permissions, self.version)
        self._subscriber.permit(permissions, self.version, self._handshake.client_id)
        self._temporaries.permit(permissions)
        frame = self._handshake.connected(self.version, self._peer.connection_id, self._services.server_name, now)
        self.outbox.reply(self._parking.position, frame)

    # -- commands of those who are logged in -----------------------------------------------------------------------

    def _send(self, frame: StompFrame, now: MonotonicNs) -> None:
        self._producer.send(frame, self._wall)

    def _subscribe(self, frame: StompFrame, now: MonotonicNs) -> None:
        self._subscriber.subscribe(frame)
        self._answer(frame.headers)

    def _unsubscribe(self, frame: StompFrame, now: MonotonicNs) -> None:
        self._subscriber.unsubscribe(frame)
        self._answer(frame.headers)

    def _settle(self, frame: StompFrame, now: MonotonicNs) -> None:
        under_way = self._subscriber.settle(frame, frame.command == "ACK")
        if under_way is None:
            self._answer(frame.headers)
        else:
            self._producer.answer_after(under_way, frame.headers.get("receipt", ""))

    def _answer(self, headers: dict[str, str]) -> None:
        """The receipt of a frame that touched what is durable."""
        self._producer.changed_state()
        receipt = headers.get("receipt")
        if receipt:
            self._producer.receipt(receipt)

    def _begin(self, frame: StompFrame, now: MonotonicNs) -> None:
        self._transactions.begin(required(frame.headers, TRANSACTION, "BEGIN"))
        self._answer(frame.headers)

    def _commit(self, frame: StompFrame, now: MonotonicNs) -> None:
        transaction = self._transactions.take(required(frame.headers, TRANSACTION, "COMMIT"), "COMMIT")
        self._producer.commit(transaction, frame.headers.get("receipt", ""))

    def _abort(self, frame: StompFrame, now: MonotonicNs) -> None:
        transaction = self._transactions.take(required(frame.headers, TRANSACTION, "ABORT"), "ABORT")
        self._producer.abort(transaction, frame.headers.get("receipt", ""))

    # -- leaving ---------------------------------------------------------------------------------------------------

    def _disconnect(self, frame: StompFrame, now: MonotonicNs) -> None:
        open_ones = self._transactions.take_all()
        self._parking.forget(open_ones)
        self._subscriber.report(self._transactions.abandon(open_ones))
        self._subscriber.close_all()
        self._temporaries.close()
        self.state = DISCONNECTING
        self._producer.changed_state()
        self._producer.finish(frame.headers.get("receipt", ""))

    def finish(self) -> None:
        """Every frame has its reply; the peer may go."""
        self.state = CLOSED
        self._host.finish(None)

    def fail(self, error: BrokerError) -> None:
        self._refuse(error, "")

    def _refuse(self, error: BrokerError, receipt: str) -> None:
        """ERROR, and nothing after it."""
        if self.state == CLOSED:
            return
        self.state = CLOSED
        self._give_up()
        self.outbox.reply(self._parking.position, errors.error_frame(error, receipt, self.version))
        self._host.finish(error)

    def _give_up(self) -> None:
        """Ends all that the connection has in the engine: it never comes back."""
        left = [work for work in self._parking.close() if isinstance(work, StompTransaction)]
        left += self._transactions.take_all()
        self._subscriber.report(self._transactions.abandon(left))
        self._subscriber.close_all()
        self._temporaries.close()

    def handle_eof(self) -> None:
        while self._turn.over and self.state < DISCONNECTING:  # it left behind what the last read brought
            self._next_turn(self._services.clock.monotonic_ns())
        if self.state == CLOSED:
            return
        self.state = CLOSED
        # Nobody can say any more that parked SENDs should stay, and nobody was told that they arrived.
        self._give_up()
        self._host.finish(None)

    def rights_changed(self) -> None:
        self._producer.rights_changed()

    def connection_lost(self) -> None:
        self.state = CLOSED
        self._give_up()
        self.outbox.close()
        # Ends the cycle session -> parts -> owner -> session: nothing waits for the garbage collector.
        self._owner.session = None

    # -- time and room ---------------------------------------------------------------------------------------------

    def next_timer(self) -> MonotonicNs:
        return self._heart_beat.next_timer()

    def handle_timer(self, now: MonotonicNs) -> None:
        if self.state == CLOSED:
            return
        pending = self._pending
        if pending is not None:
            self._refuse(pending, self._pending_receipt)
            return
        try:
            self._parking.go_on()
        except StorageError as error:
            self.fail(error)
            return
        if self._heart_beat.beat_due(now):
            self.outbox.beat()
        # Whoever waits for us owes nothing: one we do not read, or whose SENDs we keep waiting for space.
        waits_for_us = not self.reading or self._parking.parked_bytes > 0
        if self._heart_beat.is_over(now, waits_for_us=waits_for_us):
            self.fail(errors.silent(self._peer.name, self._heart_beat.ttl.ttl_ms))
            return
        if self._turn.over:
            self._next_turn(now)
        else:
            self._go_on_reading(now)

    def handle_written(self, now: MonotonicNs) -> bool:
        try:
            touched = self._subscriber.handle_written()
        except StorageError as error:
            self.fail(error)
            return True
        return self._go_on_reading(now) or touched

    def _go_on_reading(self, now: MonotonicNs) -> bool:
        """Back-pressure may be over: the frames that were left undecoded come first."""
        if self.reading or self._turn.over or self.state != CONNECTED or not self._update_reading():
            return False
        self._handle_frames(now)
        return True

    def _next_turn(self, now: MonotonicNs) -> None:
        """Goes on where the last turn was too long. That was no back-pressure, which ends later than it begins."""
        self._turn.over = False
        self.reading = True
        if self._update_reading():
            self._handle_frames(now)

    def _update_reading(self) -> bool:
        if self.state == CONNECTED:
            self.reading = may_read(self.reading, self._parking.parked_bytes, self.outbox.reply_bytes, self._acceptor)
        return self.reading

    def fail_soon(self, error: BrokerError, receipt: str) -> None:
        """As `fail`, from where the engine must not be called."""
        if self._pending is None:
            self._pending = error
            self._pending_receipt = receipt
            self._host.wake_soon()

    def mark_messages(self, name: str, value: str) -> None:
        """See `Producer.mark`."""
        self._producer.mark(name, value)

    def go_on_soon(self) -> None:
        """Have `handle_timer` go on with what is parked."""
        self._host.wake_soon()

    def wake_soon(self) -> None:
        """What is parked has changed: stop reading, or have `handle_timer` look whether that may go on."""
        if self.reading:
            self._update_reading()
        else:
            self._host.wake_soon()


class _SessionPort(StompSessionPort):
    """Lets the parts of a session talk to it."""

    def __init__(self, session: StompSession) -> None:
        self.session: StompSession | None = session

    def send_failed(self, error: BrokerError, receipt: str) -> None:
        if self.session is not None:
            self.session.fail_soon(error, receipt)

    def parked_changed(self) -> None:
        if self.session is not None:
            self.session.wake_soon()

    def mark_messages(self, name: str, value: str) -> None:
        if self.session is not None:
            self.session.mark_messages(name, value)

    def go_on_soon(self) -> None:
        if self.session is not None:
            self.session.go_on_soon()

    def all_answered(self) -> None:
        if self.session is not None:
            self.session.finish()

    def subscription_ended(self, reason: BrokerError) -> None:
        if self.session is not None:
            self.session.fail_soon(reason, "")


Handler = Callable[[StompSession, StompFrame, MonotonicNs], None]

# (state, command) -> handler; what is missing is refused. In VERIFYING nothing is decoded, and after that nothing is
# read.
COMMANDS: Final[dict[int, dict[str, Handler]]] = {
    NEW: {"CONNECT": StompSession._connect, "STOMP": StompSession._connect},
    CONNECTED: {
        "SEND": StompSession._send,
        "SUBSCRIBE": StompSession._subscribe,
        "UNSUBSCRIBE": StompSession._unsubscribe,
        "ACK": StompSession._settle,
        "NACK": StompSession._settle,
        "BEGIN": StompSession._begin,
        "COMMIT": StompSession._commit,
        "ABORT": StompSession._abort,
        "DISCONNECT": StompSession._disconnect,
    },
}
