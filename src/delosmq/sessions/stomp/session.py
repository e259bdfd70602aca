"""The server's side of a STOMP connection: frames to engine commands, replies to the outbox.

The table at the end of this file is the protocol: which command is allowed in which state, and who handles it.
"""

from collections.abc import Callable
from typing import Final

from delosmq.engine.transactions import TransactionError
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
from delosmq.security.access import Login, LoginAttempt
from delosmq.sessions.outbox import Outbox
from delosmq.sessions.protocol import NO_TIMER, Peer, Session, SessionHost, SessionServices
from delosmq.sessions.stomp import heartbeat, refusals
from delosmq.sessions.stomp.destinations import Destinations
from delosmq.sessions.stomp.headers import required
from delosmq.sessions.stomp.heartbeat import HeartBeat
from delosmq.sessions.stomp.owner import SessionOwner
from delosmq.sessions.stomp.permissions import Permissions
from delosmq.sessions.stomp.producing import Producer
from delosmq.sessions.stomp.subscribing import Subscriber
from delosmq.sessions.stomp.temporary import Temporaries
from delosmq.sessions.stomp.transactions import TRANSACTION, Transactions
from delosmq.sessions.ttl import NS_PER_MS, ConnectionTtl
from delosmq.wire.stomp.decoder import StompDecoder, StompLimits
from delosmq.wire.stomp.encoder import encode_frame
from delosmq.wire.stomp.frames import V10, V11, V12, Frame

# States of a session.
NEW: Final = 0
VERIFYING: Final = 1
CONNECTED: Final = 2
DISCONNECTING: Final = 3
CLOSED: Final = 4

_VERSIONS: Final = {"1.0": V10, "1.1": V11, "1.2": V12}
_NAMES: Final = {V10: "1.0", V11: "1.1", V12: "1.2"}
_SUPPORTED: Final = "1.0,1.1,1.2"
# A little earlier than promised, so that a busy moment is not a broken promise.
_BEAT_SHARE_PERCENT: Final = 90
_HEAD_BEFORE_LOGIN_BYTES: Final = 64 * 1024
# Enough for a short frame that came too early to be refused by its name.
_BODY_BEFORE_LOGIN_BYTES: Final = 1_024


def limits_of(acceptor: AcceptorSettings) -> StompLimits:
    """The decoder's limits for connections of ``acceptor`` that are logged in."""
    return StompLimits(
        max_head_bytes=acceptor.max_head_bytes,
        max_headers=acceptor.max_headers,
        max_body_bytes=acceptor.max_frame_bytes,
        max_header_line_bytes=acceptor.max_head_bytes,
    )


def limits_before_login(acceptor: AcceptorSettings) -> StompLimits:
    """The decoder's limits for those who are not: CONNECT has no body, and anybody may open connections."""
    head = min(acceptor.max_head_bytes, _HEAD_BEFORE_LOGIN_BYTES)
    return StompLimits(
        max_head_bytes=head,
        max_headers=acceptor.max_headers,
        max_body_bytes=min(acceptor.max_frame_bytes, _BODY_BEFORE_LOGIN_BYTES),
        max_header_line_bytes=head,
    )


def choose_version(accept_version: str | None) -> int:
    """The newest version both sides speak.

    Raises:
        PeerError: DMQ5103, there is none.
    """
    if accept_version is None:
        return V10
    common = [_VERSIONS[name.strip()] for name in accept_version.split(",") if name.strip() in _VERSIONS]
    if not common:
        raise refusals.no_common_version(accept_version)
    return max(common)


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
        self._parked_limit: int = acceptor.parked_limit_bytes
        self._outbox_limit: int = acceptor.outbox_limit_bytes
        self._services = services
        self._broker = broker
        self._decoder: StompDecoder = StompDecoder(limits_before_login(acceptor))
        self._temporaries: Temporaries = Temporaries(broker, peer.connection_id, acceptor.max_subscriptions)
        self._destinations: Destinations = Destinations(acceptor, self._temporaries)
        self._transactions: Transactions = Transactions(broker, peer.connection_id)
        self._limits = heartbeat.limits_of(acceptor, broker.settings.connection_ttl_override_ms)
        self._ttl: ConnectionTtl = ConnectionTtl(
            heartbeat.first_ttl_ms(self._limits), broker.settings.connection_ttl_check_interval_ms, now
        )
        self._heard: bool = False
        self._beat_every_ns: int = 0
        self._beat_at: MonotonicNs = NO_TIMER
        self._wall: WallMs = WallMs(0)
        self._attempt: LoginAttempt | None = None
        self._client_id: str = ""
        self._beats: HeartBeat | None = None
        self._permissions: Permissions | None = None
        self._pending: BrokerError | None = None
        self._pending_receipt: str = ""
        self._owner: _Owner = _Owner(self)
        self._producer: Producer = self._new_producer(V10)
        self._subscriber: Subscriber = Subscriber(
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
        self._heard = True
        if self.state >= DISCONNECTING:
            return
        self._decoder.feed(chunk)
        self._handle_frames(now)

    def _handle_frames(self, now: MonotonicNs) -> None:
        self._wall = self._services.clock.wall_ms()
        decoder = self._decoder
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
            self._update_reading()

    def _refuse_command(self, command: str) -> PeerError:
        if command not in COMMANDS[CONNECTED] and command not in ("CONNECT", "STOMP"):
            return refusals.unknown_command(command)
        if self.state == NEW:
            return refusals.not_connected(command)
        return refusals.connected_already(command)

    # -- connecting ------------------------------------------------------------------------------------------------

    def _connect(self, frame: Frame, now: MonotonicNs) -> None:
        headers = frame.headers
        self._client_id = headers.get("client-id", "")
        self.version = choose_version(headers.get("accept-version"))
        self._decoder.version = self.version
        if self.version != V10:
            sends, wants = heartbeat.parse(headers.get("heart-beat", "0,0"))
            self._beats = heartbeat.negotiate(sends, wants, self._limits)
        for name in ("login", "passcode"):
            if name not in headers:
                raise refusals.login_required(name)
        access = self._services.access
        attempt = access.attempt(headers["login"], headers["passcode"])
        if attempt.login is not None:
            self._logged_in(attempt.login, now)
            return
        self._attempt = attempt
        self.state = VERIFYING
        self.reading = False
        self._host.verify(attempt, headers["passcode"])

    def resume(self, verified: bool, now: MonotonicNs) -> None:
        attempt = self._attempt
        if self.state != VERIFYING or attempt is None:
            return
        self._attempt = None
        login = self._services.access.finish(attempt, verified)
        if login is None:
            self.fail(refusals.login_refused())
            return
        self.reading = True
        self._logged_in(login, now)
        self._handle_frames(now)

    def _logged_in(self, login: Login, now: MonotonicNs) -> None:
        self.state = CONNECTED
        self.established = True
        self._decoder.set_limits(limits_of(self._acceptor))
        self._permissions = Permissions(login, self._services.access, self._broker)
        self._producer = self._new_producer(self.version)
        self._producer.permit(self._permissions)
        self._subscriber.permit(self._permissions, self.version, self._client_id)
        self._temporaries.permit(self._permissions)
        pairs = [
            ("version", _NAMES[self.version]),
            ("session", self._peer.connection_id),
            ("server", self._services.server_name),
        ]
        beats = self._beats
        if beats is not None:
            pairs.append(("heart-beat", f"{beats.send_every_ms},{beats.expect_every_ms}"))
            self._ttl.ttl_ms = beats.ttl_ms
            if beats.send_every_ms:
                self._beat_every_ns = beats.send_every_ms * NS_PER_MS * _BEAT_SHARE_PERCENT // 100
                self._beat_at = MonotonicNs(now + self._beat_every_ns)
        frame = encode_frame("CONNECTED", pairs, b"", self.version, content_length=False)
        self.outbox.reply(self._producer.position, frame)

    def _new_producer(self, version: int) -> Producer:
        return Producer(
            self._owner,
            self._broker,
            self.outbox,
            destinations=self._destinations,
            transactions=self._transactions,
            version=version,
            connection_id=self._peer.connection_id,
        )

    # -- sending ---------------------------------------------------------------------------------------------------

    def _send(self, frame: Frame, now: MonotonicNs) -> None:
        self._producer.send(frame, self._wall)

    # -- receiving -------------------------------------------------------------------------------------------------

    def _subscribe(self, frame: Frame, now: MonotonicNs) -> None:
        self._subscriber.subscribe(frame)
        self._answer(frame.headers)

    def _unsubscribe(self, frame: Frame, now: MonotonicNs) -> None:
        self._subscriber.unsubscribe(frame)
        self._answer(frame.headers)

    def _ack(self, frame: Frame, now: MonotonicNs) -> None:
        self._subscriber.settle(frame, True)
        self._answer(frame.headers)

    def _nack(self, frame: Frame, now: MonotonicNs) -> None:
        self._subscriber.settle(frame, False)
        self._answer(frame.headers)

    def _answer(self, headers: dict[str, str]) -> None:
        """The receipt of a frame that touched what is durable."""
        self._producer.changed_state()
        receipt = headers.get("receipt")
        if receipt:
            self._producer.receipt(receipt)

    # -- transactions ----------------------------------------------------------------------------------------------

    def _begin(self, frame: Frame, now: MonotonicNs) -> None:
        self._transactions.begin(required(frame.headers, TRANSACTION, "BEGIN"))
        self._answer(frame.headers)

    def _commit(self, frame: Frame, now: MonotonicNs) -> None:
        transaction = self._transactions.take(required(frame.headers, TRANSACTION, "COMMIT"), "COMMIT")
        self._producer.commit(transaction, frame.headers.get("receipt", ""))

    def _abort(self, frame: Frame, now: MonotonicNs) -> None:
        transaction = self._transactions.take(required(frame.headers, TRANSACTION, "ABORT"), "ABORT")
        self._producer.abort(transaction, frame.headers.get("receipt", ""))

    # -- leaving ---------------------------------------------------------------------------------------------------

    def _disconnect(self, frame: Frame, now: MonotonicNs) -> None:
        open_ones = self._transactions.take_all()
        self._producer.forget(open_ones)
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
        text = str(error)
        pairs = [("message", text.replace("\n", " ")), ("content-type", "text/plain")]
        if receipt:
            pairs.insert(0, ("receipt-id", receipt))
        if isinstance(error, PeerError) and error.code == "DMQ5103":
            pairs.insert(0, ("version", _SUPPORTED))
        detail = error.detail if isinstance(error, PeerError) else ""
        body = f"{text}\n{detail}\n" if detail else f"{text}\n"
        self.outbox.reply(self._producer.position, encode_frame("ERROR", pairs, body.encode(), self.version))
        self._host.finish(error)

    def _give_up(self) -> None:
        """Ends all that the connection has in the engine: it never comes back."""
        left = self._producer.close()
        left += self._transactions.take_all()
        self._subscriber.report(self._transactions.abandon(left))
        self._subscriber.close_all()
        self._temporaries.close()

    def handle_eof(self) -> None:
        if self.state == CLOSED:
            return
        self.state = CLOSED
        # Nobody can say any more that parked SENDs should stay, and nobody was told that they arrived.
        self._give_up()
        self._host.finish(None)

    def connection_lost(self) -> None:
        self.state = CLOSED
        self._give_up()
        self.outbox.close()
        # Ends the cycle session -> parts -> owner -> session: nothing waits for the garbage collector.
        self._owner.session = None

    # -- time and room ---------------------------------------------------------------------------------------------

    def next_timer(self) -> MonotonicNs:
        due = self._ttl.next_check_at
        if self._beat_at != NO_TIMER and self._beat_at < due:
            return self._beat_at
        return due

    def handle_timer(self, now: MonotonicNs) -> None:
        if self.state == CLOSED:
            return
        pending = self._pending
        if pending is not None:
            self._refuse(pending, self._pending_receipt)
            return
        try:
            self._producer.go_on()
        except StorageError as error:
            self.fail(error)
            return
        if self._beat_at != NO_TIMER and now >= self._beat_at:
            self._beat_at = MonotonicNs(now + self._beat_every_ns)
            self.outbox.beat()
        if now >= self._ttl.next_check_at:
            # Whoever waits for us owes nothing: one we do not read, or whose SENDs we keep waiting for space.
            heard = self._heard or not self.reading or self._producer.parked_bytes > 0
            self._heard = False
            if self._ttl.check(now, heard):
                self.fail(refusals.silent(self._peer.name, self._ttl.ttl_ms))
                return
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
        if self.reading or self.state != CONNECTED or not self._update_reading():
            return False
        self._handle_frames(now)
        return True

    def _update_reading(self) -> bool:
        if self.state != CONNECTED:
            return self.reading
        parked = self._producer.parked_bytes
        replies = self.outbox.reply_bytes
        if self.reading:
            self.reading = parked < self._parked_limit and replies < self._outbox_limit
        else:
            self.reading = parked * 2 <= self._parked_limit and replies * 2 <= self._outbox_limit
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

    def commit_due(self) -> None:
        """Have `handle_timer` go on with commits."""
        self._host.wake_soon()

    def wake_soon(self) -> None:
        """What is parked has changed: stop reading, or have `handle_timer` look whether that may go on."""
        if self.reading:
            self._update_reading()
        else:
            self._host.wake_soon()


class _Owner(SessionOwner):
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

    def commit_due(self) -> None:
        if self.session is not None:
            self.session.commit_due()

    def all_answered(self) -> None:
        if self.session is not None:
            self.session.finish()

    def subscription_ended(self, reason: BrokerError) -> None:
        if self.session is not None:
            self.session.fail_soon(reason, "")


Handler = Callable[[StompSession, Frame, MonotonicNs], None]

# (state, command) -> handler; what is missing is refused. In VERIFYING nothing is decoded, and after that nothing is
# read.
COMMANDS: Final[dict[int, dict[str, Handler]]] = {
    NEW: {"CONNECT": StompSession._connect, "STOMP": StompSession._connect},
    CONNECTED: {
        "SEND": StompSession._send,
        "SUBSCRIBE": StompSession._subscribe,
        "UNSUBSCRIBE": StompSession._unsubscribe,
        "ACK": StompSession._ack,
        "NACK": StompSession._nack,
        "BEGIN": StompSession._begin,
        "COMMIT": StompSession._commit,
        "ABORT": StompSession._abort,
        "DISCONNECT": StompSession._disconnect,
    },
}
