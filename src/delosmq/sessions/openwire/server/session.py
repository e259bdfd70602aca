"""The server's side of an OpenWire connection: its states, its frames, its time.

The table at the end of this file, with that of commands.py, is the protocol: which command is taken in which state, and
who handles it. What a peer has lies in connection.py, what it is told in replies.py.
Source: TransportConnection of ActiveMQ Classic.
"""

from collections.abc import Callable
from typing import Final

from delosmq.model.errors import BrokerError, InvariantError, PeerError, Scope, StorageError
from delosmq.model.ids import NOTHING_DURABLE, MonotonicNs, WallMs
from delosmq.model.settings import AcceptorSettings
from delosmq.security.access import Login
from delosmq.sessions.openwire.server import commands as working
from delosmq.sessions.openwire.server import errors
from delosmq.sessions.openwire.server.commands import HANDLERS
from delosmq.sessions.openwire.server.connection import OpenWireConnection
from delosmq.sessions.openwire.server.connection_port import OpenWireSessionPort
from delosmq.sessions.openwire.server.consumers.consumers import ALL_SEEN
from delosmq.sessions.openwire.server.handshake import OpenWireHandshake, introduction, offer
from delosmq.sessions.openwire.server.inactivity import Inactivity
from delosmq.sessions.openwire.server.java_exceptions import OpenWireError
from delosmq.sessions.openwire.server.registry import Registry
from delosmq.sessions.openwire.server.replies import Replies
from delosmq.sessions.outbox import Outbox
from delosmq.sessions.parking import Parking, may_read
from delosmq.sessions.permissions import Permissions
from delosmq.sessions.protocol import NO_TIMER, Peer, Session, SessionHost, SessionServices
from delosmq.sessions.turn import Turn
from delosmq.wire.openwire.commands import (
    END,
    PREPARE,
    ConnectionControl,
    ConnectionInfo,
    IntegerResponse,
    KeepAliveInfo,
    MessageAck,
    MessageCommand,
    RemoveInfo,
    TransactionInfo,
)
from delosmq.wire.openwire.decoder import OpenWireDecoder, OpenWireLimits
from delosmq.wire.openwire.negotiation import WIRE_FORMAT_INFO, WireFormatInfo, agree, encode_wire_format_info
from delosmq.wire.openwire.structures import (
    CONNECTION_CONTROL,
    CONNECTION_INFO,
    FLUSH_COMMAND,
    KEEP_ALIVE_INFO,
    REMOVE_INFO,
    RESPONSES,
    SENT_BY_BROKERS,
    SHUTDOWN_INFO,
    Command,
    ConnectionId,
    Structure,
)

# States of a session.
NEGOTIATING: Final = 0
NEGOTIATED: Final = 1
VERIFYING: Final = 2
CONNECTED: Final = 3
CLOSED: Final = 4

_LEAVING_NS: Final = 10_000_000_000
"""How long a peer may stay after its connection has ended: it has a ShutdownInfo to send, and may log in again."""
_FRAME_BEFORE_LOGIN_BYTES: Final = 64 * 1024
"""Of those who are not logged in: anybody may open connections."""


class OpenWireSession(Session):
    """One connection, from its first frame to its last.

    Attributes:
        state: one of the constants of this module.
    """

    def __init__(
        self,
        host: SessionHost,
        peer: Peer,
        acceptor: AcceptorSettings,
        services: SessionServices,
        *,
        registry: Registry,
        now: MonotonicNs,
    ) -> None:
        self.outbox: Outbox = Outbox(host, services.gate, acceptor.outbox_limit_bytes)
        self.reading: bool = True
        self.established: bool = False
        self.state: int = NEGOTIATING
        self._host = host
        self._peer = peer
        self._acceptor = acceptor
        self._services = services
        self._registry = registry
        self._decoder: OpenWireDecoder = OpenWireDecoder(
            OpenWireLimits(max_frame_bytes=_FRAME_BEFORE_LOGIN_BYTES), unread=SENT_BY_BROKERS
        )
        self._replies: Replies = Replies(self.outbox, services.broker.log)
        self._inactivity: Inactivity = Inactivity(0, 0, now)
        self._heard: bool = False
        self._wall: WallMs = WallMs(0)
        self._handshake: OpenWireHandshake = OpenWireHandshake(services.access)
        self._fault_tolerant: bool = False
        self._leaving: RemoveInfo | None = None
        self._departing: RemoveInfo | None = None
        self._left_behind: Parking | None = None
        self._leaves_until: MonotonicNs = NO_TIMER
        self._connection: OpenWireConnection | None = None
        self._turn: Turn = Turn(services.clock)
        self._owner: OpenWireSessionPort = OpenWireSessionPort(self)
        self._ours: WireFormatInfo = offer(acceptor, services.server_name)
        self.outbox.reply(NOTHING_DURABLE, encode_wire_format_info(self._ours))

    # -- input -----------------------------------------------------------------------------------------------------

    def receive(self, chunk: bytes, now: MonotonicNs) -> None:
        self._heard = True
        if self.state == CLOSED:
            return
        self._decoder.feed(chunk)
        self._handle_frames(now)

    def held_bytes(self) -> int:
        return self._decoder.buffered_bytes

    def forget_input(self) -> None:
        self._decoder.close()

    def _handle_frames(self, now: MonotonicNs) -> None:
        self._wall = self._services.clock.wall_ms()
        if self._connection is not None:
            self._connection.wall = self._wall
        # Whose doing it is, should a destination come into being.
        destinations = self._registry.advisories.destinations
        destinations.acting = self._handshake.info.connection_id
        decoder = self._decoder
        turn = self._turn
        turn.begin()
        while self.reading and self.state != CLOSED:
            try:
                frame = decoder.next_frame()
            except PeerError as malformed:
                self.fail(malformed)
                break
            if frame is None:
                break
            try:
                self._handle(frame, now)
            # What is wrong with one command concerns its sender alone. An InvariantError concerns all and goes on up.
            except InvariantError:
                raise
            except BrokerError as error:
                self._refuse(frame, error)
            if self._update_reading() and turn.ends(brief=_is_brief(frame)):
                self.reading = False
                self._host.wake_soon()
        destinations.acting = None

    def _handle(self, frame: Structure, now: MonotonicNs) -> None:
        connection = self._connection
        work = HANDLERS.get(frame.code)
        if connection is not None and work is not None:
            work(connection, frame, now)
            return
        handler = COMMANDS[self.state].get(frame.code)
        if handler is None:
            raise self._refuse_command(frame.code)
        handler(self, frame, now)

    def _refuse_command(self, code: int) -> OpenWireError:
        if self.state == NEGOTIATING:
            return errors.not_negotiated(code)
        if code == WIRE_FORMAT_INFO:
            return errors.negotiated_already()
        if code in HANDLERS or code in COMMANDS[CONNECTED]:
            return errors.not_connected(code)
        if code in COMMANDS[NEGOTIATED]:
            return errors.connected_already()
        return errors.unexpected(code)

    # -- answers ---------------------------------------------------------------------------------------------------

    def _refuse(self, frame: Structure, error: BrokerError) -> None:
        """Tells the peer; closes the connection when the error says so."""
        if self.state == CLOSED:
            return
        if isinstance(error, PeerError) and error.scope is Scope.CONNECTION:
            self._tell(frame, error)
            self._close(error)
        else:
            self._tell(frame, error)

    def _tell(self, frame: Structure, error: BrokerError) -> None:
        if self.state == NEGOTIATING:
            return  # nobody knows yet how it would be written
        if isinstance(frame, Command) and frame.response_required:
            self._replies.refuse(frame, error)
            return
        if self._connection is not None:
            self._connection.doom(frame, error)
        self._replies.fail(error)

    def message_sent(self, command: MessageCommand) -> None:
        """Answers a message that is where it belongs."""
        connection = self._connection
        assert connection is not None  # only they send
        if command.response_required:
            self._replies.confirm(command, connection.parking.position)
        elif connection.producers.window_of(command.producer_id) > 0:
            self._replies.acknowledge(command, connection.parking.position)

    def ended(self, frame: Command, result: int) -> None:
        """Answers a commit, prepare or acknowledgement that is through; ``result`` is a prepare's."""
        if isinstance(frame, RemoveInfo):
            self._leaving = frame  # not from here: it calls the engine
            self._host.wake_soon()
            return
        if isinstance(frame, TransactionInfo) and self._connection is not None:
            self._connection.acks.share_room()
        if isinstance(frame, TransactionInfo) and frame.type == PREPARE:
            self._replies.write(IntegerResponse(frame.command_id, result))
        elif isinstance(frame, TransactionInfo) and frame.type == END:
            self._replies.grant(frame)
        else:
            self._replies.answer(frame)

    def refused(self, frame: Structure, error: BrokerError) -> None:
        """Answers what could not be done later on."""
        self._refuse(frame, error)

    # -- connecting ------------------------------------------------------------------------------------------------

    def _negotiate(self, frame: Structure, now: MonotonicNs) -> None:
        assert isinstance(frame, WireFormatInfo)
        agreement = agree(self._ours, frame)
        self._replies.form = agreement.form
        self._decoder.agreed(agreement.form)
        self._inactivity = Inactivity(agreement.read_timeout_ms, agreement.initial_delay_ms, now)
        self.state = NEGOTIATED
        self._replies.tell(introduction(self._registry))

    def _connect(self, frame: Structure, now: MonotonicNs) -> None:
        assert isinstance(frame, ConnectionInfo)
        frame.broker_path = None  # what is kept as long as the connection is small
        attempt, password = self._handshake.begin(frame)
        self._replies.connection_id = frame.connection_id
        if attempt.login is not None:
            self._logged_in(attempt.login)
            return
        self.state = VERIFYING
        self.reading = False
        self._host.verify(attempt, password)

    def resume(self, verified: bool, now: MonotonicNs) -> None:
        if self.state != VERIFYING:
            return
        login = self._handshake.finish(verified)
        self.state = NEGOTIATED
        if login is None:
            self._refuse(self._handshake.info, errors.login_refused(self._handshake.info.user_name or ""))
            return
        self.reading = True
        try:
            self._logged_in(login)
        except InvariantError:
            raise
        except BrokerError as error:
            self._refuse(self._handshake.info, error)
            return
        self._handle_frames(now)

    def _logged_in(self, login: Login) -> None:
        info = self._handshake.info
        assert info.connection_id is not None  # `_connect` looked
        client_id = info.client_id or ""
        self._registry.enter(info.connection_id.value, client_id, self._owner, user=login.user)
        self.state = CONNECTED
        self.established = True
        self._peer.user = login.user
        self._leaves_until = NO_TIMER
        self._decoder.set_limits(OpenWireLimits(max_frame_bytes=self._acceptor.open_wire_max_frame_bytes))
        self._connection = OpenWireConnection(
            self._host,
            self._peer,
            self._acceptor,
            self._services,
            registry=self._registry,
            replies=self._replies,
            permissions=Permissions(login, self._services.access, self._services.broker),
            connection_id=info.connection_id.value,
            client_id=client_id,
            owner=self._owner,
            wall=self._wall,
        )
        self._connection.producers.audited = info.failover_reconnect or info.fault_tolerant or self._fault_tolerant
        self._registry.advisories.connection_opened(info, f"tcp://{self._peer.name}")
        self._connection.subscriber.manageable = info.manageable
        if info.manageable:
            self._replies.tell(ConnectionControl())
        self._replies.grant(info)

    # -- leaving -----------------------------------------------------------------------------------------------------

    def _remove(self, frame: Structure, now: MonotonicNs) -> None:
        assert isinstance(frame, RemoveInfo)
        connection = self._connection
        assert connection is not None  # the table lets nobody in before
        removed = frame.object_id
        if not isinstance(removed, ConnectionId):
            working.remove(connection, frame)
            return
        connection.sessions.own("connection", removed.value, removed.value)
        if connection.leaves_later(frame):
            self._departing = frame
        else:
            self._leave(frame, now)

    def _leave(self, frame: RemoveInfo, now: MonotonicNs) -> None:
        """The end of the connection, once all that it sent is where it belongs."""
        self._departing = None
        connection = self._connection
        sent = NOTHING_DURABLE if connection is None else connection.parking.position
        self._give_up(working.last_seen(frame, self._replies.form.version))
        self._decoder.set_limits(OpenWireLimits(max_frame_bytes=_FRAME_BEFORE_LOGIN_BYTES))
        self._leaves_until = MonotonicNs(now + _LEAVING_NS)
        self._replies.part(frame, sent)

    def _shut_down(self, frame: Structure, now: MonotonicNs) -> None:
        self._depart()

    def _depart(self) -> None:
        """The peer has left in order. What it sent and what still waits for space is not lost: the connection counts
        among those of its acceptor until it is where it belongs, or refused."""
        connection = self._connection
        if connection is None or not connection.parking.parked_bytes:
            self._close(None)
            return
        frame = self._departing
        self.state = CLOSED
        self._give_up(
            ALL_SEEN if frame is None else working.last_seen(frame, self._replies.form.version), keep_sends=True
        )
        self._left_behind = connection.parking
        self.parked_changed()

    def _close(self, reason: BrokerError | None) -> None:
        self.state = CLOSED
        self._give_up(ALL_SEEN)
        self._host.finish(reason)

    def _give_up(self, last_delivered: int, *, keep_sends: bool = False) -> None:
        """Ends all that the connection has in the engine; but for messages that wait for space, if they are kept."""
        connection = self._connection
        if connection is None:
            return
        self._connection = None
        if self.state == CONNECTED:
            self.state = NEGOTIATED
        for trouble in connection.close(last_delivered, keep_sends=keep_sends):
            self._host.report(errors.not_given_back(self._peer.name, trouble))
        info = self._handshake.info
        self._registry.advisories.connection_closed(info)
        if info.connection_id is not None:
            self._registry.leave(info.connection_id.value, info.client_id or "", self._owner)

    def fail(self, error: BrokerError) -> None:
        if self.state == CLOSED:
            if self._left_behind is not None:
                self._drop_left_behind()
                self._host.finish(error)
            return
        if self.state != NEGOTIATING:
            self._replies.fail(error)
        self._close(error)

    def _drop_left_behind(self) -> None:
        parking = self._left_behind
        self._left_behind = None
        if parking is not None:
            parking.close()

    def handle_eof(self) -> None:
        if self.state == CLOSED:
            return
        while self._turn.over and self.state != CLOSED:  # it left behind what the last read brought
            self._next_turn(self._services.clock.monotonic_ns())
        if self.state == CLOSED:
            return
        if self._departing is None:
            self._close(None)
        else:
            self._depart()

    def rights_changed(self) -> None:
        if self._connection is not None:
            self._connection.producers.rights_changed()

    def connection_lost(self) -> None:
        self.state = CLOSED
        self._drop_left_behind()
        self._give_up(ALL_SEEN)
        self.outbox.close()
        # Ends the cycle session -> parts -> owner -> session: nothing waits for the garbage collector.
        self._owner.session = None

    # -- control -----------------------------------------------------------------------------------------------------

    def _keep_alive(self, frame: Structure, now: MonotonicNs) -> None:
        assert isinstance(frame, KeepAliveInfo)
        if frame.response_required:
            self._replies.beat()

    def _connection_control(self, frame: Structure, now: MonotonicNs) -> None:
        assert isinstance(frame, ConnectionControl)
        if frame.fault_tolerant:
            self._fault_tolerant = True
            if self._connection is not None:
                self._connection.producers.audited = True
        self._replies.grant(frame)

    def _ignore(self, frame: Structure, now: MonotonicNs) -> None:
        assert isinstance(frame, Command)
        self._replies.grant(frame)

    # -- time and room -----------------------------------------------------------------------------------------------

    def next_timer(self) -> MonotonicNs:
        if self.state == CLOSED:
            return NO_TIMER
        due = self._inactivity.next_timer()
        if self._leaves_until != NO_TIMER and (due == NO_TIMER or self._leaves_until < due):
            due = self._leaves_until
        if self._connection is not None:
            pull = self._connection.flow.next_timer()
            if pull != NO_TIMER and (due == NO_TIMER or pull < due):
                return pull
        return due

    def handle_timer(self, now: MonotonicNs) -> None:
        if self.state == CLOSED:
            return
        connection = self._connection
        if connection is not None:
            try:
                connection.parking.go_on()
                leaving = self._leaving
                if leaving is not None:
                    self._leaving = None
                    self._leave(leaving, now)
                    if self._turn.over:
                        self._host.wake_soon()
                    return
                connection.acks.begin_turn()
                connection.flow.go_on(now)
                connection.tell_later()
                failure = connection.end_slow(now)
                if failure is not None:
                    self._close(failure)
                    return
            except StorageError as error:
                self.fail(error)
                return
        # Whoever waits for us owes nothing: one we do not read, or whose messages we keep waiting for space.
        heard = self._heard or not self.reading or (connection is not None and connection.parking.parked_bytes > 0)
        self._heard = False
        if self._inactivity.look(now, heard=heard):
            self._replies.beat()
        if self._inactivity.silent(now):
            self.fail(errors.silent(self._peer.name, self._inactivity.timeout_ms))
            return
        if self._leaves_until != NO_TIMER and now >= self._leaves_until:
            self._close(None)
            return
        if self._turn.over:
            self._next_turn(now)
        else:
            self._go_on_reading(now)

    def handle_written(self, now: MonotonicNs) -> bool:
        form = self._replies.form
        if form.too_large:
            # As by Classic, whose transport fails there. Closing gives the message back.
            what = form.too_large
            form.too_large = ""
            if self.state == CONNECTED:
                self.fail(errors.beyond_max_frame_size(what, form.max_frame_bytes, self._peer.name))
                return True
        connection = self._connection
        touched = connection is not None and connection.consumers.return_room()
        return self._go_on_reading(now) or touched

    def _go_on_reading(self, now: MonotonicNs) -> bool:
        """Back-pressure may be over: the frames that were left undecoded come first."""
        if self.reading or self._turn.over or self.state == VERIFYING or not self._update_reading():
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
        if self.state in (NEGOTIATED, CONNECTED):
            parked_bytes = 0 if self._connection is None else self._connection.parking.parked_bytes
            self.reading = may_read(self.reading, parked_bytes, self.outbox.reply_bytes, self._acceptor)
        return self.reading

    def parked_changed(self) -> None:
        """Stop reading, or have `handle_timer` look whether that may go on."""
        left = self._left_behind
        if left is not None:
            if not left.parked_bytes:
                self._left_behind = None
                self._host.finish(None)
        elif self.reading:
            self._update_reading()
        else:
            self._host.wake_soon()

    def wake_soon(self) -> None:
        """Have `handle_timer` go on."""
        self._host.wake_soon()

    @property
    def peer_name(self) -> str:
        """Address and port, for people."""
        return self._peer.name


def _is_brief(frame: Structure) -> bool:
    """Whether it is a message, or an acknowledgement of one."""
    if not isinstance(frame, MessageAck):
        return isinstance(frame, MessageCommand)
    first = frame.first_message_id
    last = frame.last_message_id
    return first is not None and last is not None and first.broker_sequence_id == last.broker_sequence_id != 0


Handler = Callable[[OpenWireSession, Structure, MonotonicNs], None]

_ALWAYS: Final[dict[int, Handler]] = {
    KEEP_ALIVE_INFO: OpenWireSession._keep_alive,
    **dict.fromkeys(RESPONSES, OpenWireSession._ignore),
    SHUTDOWN_INFO: OpenWireSession._shut_down,
    CONNECTION_CONTROL: OpenWireSession._connection_control,
}

# (state, type of the command) -> handler; what is missing is refused. In VERIFYING nothing is decoded, and after that
# nothing is read. Of CONNECTED here is what concerns the connection itself; what it is there for stands in HANDLERS.
COMMANDS: Final[dict[int, dict[int, Handler]]] = {
    NEGOTIATING: {WIRE_FORMAT_INFO: OpenWireSession._negotiate},
    NEGOTIATED: {CONNECTION_INFO: OpenWireSession._connect, **_ALWAYS},
    CONNECTED: {REMOVE_INFO: OpenWireSession._remove, FLUSH_COMMAND: OpenWireSession._ignore, **_ALWAYS},
}
