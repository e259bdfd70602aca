"""The server's side of an OpenWire session: how it begins and ends, its answers, its time.

The table at the end of this file, with that of commands.py, is the protocol: which command is taken in which state, and
who handles it. What a peer has lies in connection.py, what it is told in replies.py, and what a session does whatever
its protocol in `delosmq.sessions.machine`.
Source: TransportConnection of ActiveMQ Classic.
"""

from collections.abc import Callable
from typing import Final

from delosmq.model.errors import BrokerError, PeerError, Scope
from delosmq.model.ids import NOTHING_DURABLE, MonotonicNs
from delosmq.security.access import Login
from delosmq.sessions.host import NO_TIMER
from delosmq.sessions.login import TurnedAwayError
from delosmq.sessions.machine import CONNECTED, LEAVING, NEGOTIATED, NEW, SessionMachine
from delosmq.sessions.openwire.server import errors
from delosmq.sessions.openwire.server.commands import HANDLERS, last_seen, remove
from delosmq.sessions.openwire.server.connection import OpenWireConnection
from delosmq.sessions.openwire.server.consumers.consumers import ALL_SEEN
from delosmq.sessions.openwire.server.handshake import introduction, offer, take_password
from delosmq.sessions.openwire.server.inactivity import Inactivity
from delosmq.sessions.openwire.server.java_exceptions import OpenWireError
from delosmq.sessions.openwire.server.registry import Registry
from delosmq.sessions.openwire.server.replies import Replies
from delosmq.sessions.permissions import Permissions
from delosmq.sessions.protocol_session import ProtocolSession
from delosmq.wire.openwire.commands import (
    ConnectionControl,
    ConnectionInfo,
    KeepAliveInfo,
    MessageAck,
    MessageCommand,
    RemoveInfo,
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

_LEAVING_NS: Final = 10_000_000_000
"""How long a peer may stay after its connection has ended: it has a ShutdownInfo to send, and may log in again."""
_FRAME_BEFORE_LOGIN_BYTES: Final = 64 * 1024
"""Of those that are not logged in: any peer may open connections."""


class OpenWireSession(ProtocolSession):
    """What one peer says, from its WireFormatInfo to its ShutdownInfo."""

    def __init__(self, machine: SessionMachine, registry: Registry) -> None:
        services = machine.services
        self._decoder: OpenWireDecoder = OpenWireDecoder(
            OpenWireLimits(max_frame_bytes=_FRAME_BEFORE_LOGIN_BYTES), unread=SENT_BY_BROKERS
        )
        super().__init__(self._decoder, Inactivity())
        self._machine = machine
        self._registry = registry
        self._destinations = registry.advisories.destinations
        self._replies: Replies = Replies(machine.outbox, services.broker.log)
        self._info: ConnectionInfo = ConnectionInfo()
        self._fault_tolerant: bool = False
        self._departing: RemoveInfo | None = None
        self._leaves_until: MonotonicNs = NO_TIMER
        self._connection: OpenWireConnection | None = None
        self._ours: WireFormatInfo = offer(machine.acceptor, services.server_name)
        machine.outbox.reply(NOTHING_DURABLE, encode_wire_format_info(self._ours))

    def handle(self, frame: object, now: MonotonicNs) -> bool:
        assert isinstance(frame, Structure)
        connection = self._connection
        work = HANDLERS.get(frame.code)
        # The maker of destinations that come into being.
        self._destinations.acting = self._info.connection_id
        try:
            if connection is not None and work is not None:
                work(connection, frame, now)
            else:
                handler = COMMANDS[self._machine.state].get(frame.code)
                if handler is None:
                    raise self._refuse_command(frame.code)
                handler(self, frame, now)
        finally:
            self._destinations.acting = None
        return _is_brief(frame)

    def _refuse_command(self, code: int) -> OpenWireError:
        if self._machine.state == NEW:
            return errors.not_negotiated(code)
        if code == WIRE_FORMAT_INFO:
            return errors.negotiated_already()
        if code in HANDLERS or code in COMMANDS[CONNECTED]:
            return errors.not_connected(code)
        if code in COMMANDS[NEGOTIATED]:
            return errors.connected_already()
        return errors.unexpected(code)

    # -- answers ---------------------------------------------------------------------------------------------------

    def refuse(self, frame: object, error: BrokerError) -> None:
        assert isinstance(frame, Structure)
        if self._machine.state < LEAVING:
            self._tell(frame, error)
            if isinstance(error, PeerError) and error.scope is Scope.CONNECTION:
                self._machine.end(error)

    def _tell(self, frame: Structure, error: BrokerError) -> None:
        if self._machine.state == NEW:
            return  # it is not known yet how it would be written
        if isinstance(frame, Command) and frame.response_required:
            self._replies.refuse(frame, error)
            return
        if self._connection is not None:
            self._connection.set_rollback_only(frame, error)
        self._replies.fail(error)

    # -- connecting ------------------------------------------------------------------------------------------------

    def _negotiate(self, frame: Structure, now: MonotonicNs) -> None:
        assert isinstance(frame, WireFormatInfo)
        agreement = agree(self._ours, frame)
        self._replies.form = agreement.form
        self._decoder.agreed(agreement.form)
        self.liveness = Inactivity(agreement.read_timeout_ms, agreement.initial_delay_ms, now)
        self.liveness.heard = True
        self._machine.agreed()
        self._replies.tell(introduction(self._registry))

    def _connect(self, frame: Structure, now: MonotonicNs) -> None:
        assert isinstance(frame, ConnectionInfo)
        frame.broker_path = None  # what is kept as long as the connection is small
        password = take_password(frame)
        self._info = frame
        self._replies.connection_id = frame.connection_id
        self._machine.log_in(frame.user_name or "", password, frame.client_id or "", now)

    def admit(self, login: Login, now: MonotonicNs) -> None:
        machine = self._machine
        info = self._info
        assert info.connection_id is not None  # `take_password` looked
        info.user_name = login.user  # which a certificate may have named
        client_id = info.client_id or ""
        self._registry.enter(info.connection_id.value, client_id, machine, user=login.user)
        self._leaves_until = NO_TIMER
        self._decoder.set_limits(OpenWireLimits(max_frame_bytes=machine.acceptor.open_wire_max_frame_bytes))
        connection = OpenWireConnection(
            machine,
            self._registry,
            self._replies,
            Permissions(login, machine.services.access, machine.services.broker),
            connection_id=info.connection_id.value,
            client_id=client_id,
        )
        self._connection = connection
        self.parked_sends = connection.parked_sends
        connection.producers.audited = info.failover_reconnect or info.fault_tolerant or self._fault_tolerant
        self._registry.advisories.connection_opened(info, f"tcp://{machine.peer.name}")
        connection.subscriber.manageable = info.manageable
        if info.manageable:
            self._replies.tell(ConnectionControl())
        self._replies.grant(info)

    def refuse_login(self, error: BrokerError | None) -> None:
        if isinstance(error, TurnedAwayError):
            # An answer to its ConnectionInfo would be the end of the tries of a client with `failover:`.
            self._replies.turn_away(error)
            self._machine.end(error)
            return
        info = self._info
        self.refuse(info, errors.login_refused(info.user_name or "") if error is None else error)

    def login_command(self) -> str:
        return "ConnectionInfo"

    def may_wait_to_log_in(self) -> bool:
        return self._machine.state == NEGOTIATED and self.liveness.next_timer() != NO_TIMER

    # -- leaving -----------------------------------------------------------------------------------------------------

    def _remove(self, frame: Structure, now: MonotonicNs) -> None:
        assert isinstance(frame, RemoveInfo)
        connection = self._connection
        assert connection is not None  # the table lets no command in before
        removed = frame.object_id
        if not isinstance(removed, ConnectionId):
            remove(connection, frame)
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
        sent = NOTHING_DURABLE if connection is None else connection.parked_sends.position
        self._machine.logged_out()
        self._end_connection(last_seen(frame, self._replies.form.version))
        self._decoder.set_limits(OpenWireLimits(max_frame_bytes=_FRAME_BEFORE_LOGIN_BYTES))
        self._leaves_until = MonotonicNs(now + _LEAVING_NS)
        self._replies.part(frame, sent)

    def _shut_down(self, frame: Structure, now: MonotonicNs) -> None:
        self._depart()

    def _depart(self) -> None:
        """The peer has left in order. What it sent and what still waits for space is not lost: the connection counts
        among those of its acceptor until it is where it belongs, or refused."""
        connection = self._connection
        if connection is None or not connection.parked_sends.parked_bytes:
            self._machine.end(None)
            return
        frame = self._departing
        last = ALL_SEEN if frame is None else last_seen(frame, self._replies.form.version)
        self.liveness = Inactivity()
        self._end_connection(last, keep_sends=True)
        self._machine.leave()

    def _end_connection(self, last_delivered: int, *, keep_sends: bool = False) -> None:
        """Ends all that the connection has in the engine; but for messages that wait for space, if they are kept."""
        connection = self._connection
        if connection is None:
            return
        self._connection = None
        machine = self._machine
        for trouble in connection.close(last_delivered, keep_sends=keep_sends):
            machine.host.report(errors.not_given_back(machine.peer.name, trouble))
        info = self._info
        self._registry.advisories.connection_closed(info)
        if info.connection_id is not None:
            self._registry.leave(info.connection_id.value, info.client_id or "", machine)

    def send_error(self, error: BrokerError, receipt: str) -> None:
        if self._machine.state not in (NEW, LEAVING):
            self._replies.fail(error)

    def give_up(self) -> None:
        self._end_connection(ALL_SEEN)
        if self.parked_sends is not None:
            self.parked_sends.close()

    def half_closed(self) -> None:
        if self._machine.state == LEAVING:
            return
        if self._departing is None:
            self._machine.end(None)
        else:
            self._depart()

    def rights_changed(self) -> None:
        if self._connection is not None:
            self._connection.producers.rights_changed()

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
        due = self._leaves_until
        if self._connection is not None:
            pull = self._connection.flow.next_timer()
            if pull != NO_TIMER and (due == NO_TIMER or pull < due):
                return pull
        return due

    def go_on(self, now: MonotonicNs) -> None:
        connection = self._connection
        if connection is not None:
            connection.parked_sends.go_on()
            leaving = connection.leaving
            if leaving is None:
                self._go_on_with(connection, now)
            else:
                self._leave(leaving, now)
        elif self._leaves_until != NO_TIMER and now >= self._leaves_until:
            self._machine.end(None)

    def _go_on_with(self, connection: OpenWireConnection, now: MonotonicNs) -> None:
        connection.acks.begin_turn()
        connection.flow.go_on(now)
        connection.tell_later()
        failure = connection.end_slow(now)
        if failure is not None:
            self._machine.end(failure)

    def handle_written(self) -> bool:
        form = self._replies.form
        if form.too_large:
            # As by Classic: its transport fails there. Closing gives the message back.
            what = form.too_large
            form.too_large = ""
            machine = self._machine
            if machine.state == CONNECTED:
                machine.fail(errors.beyond_max_frame_size(what, form.max_frame_bytes, machine.peer.name))
                return True
        connection = self._connection
        return connection is not None and connection.consumers.return_room()

    def beat(self) -> None:
        self._replies.beat()


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

# (state, type of the command) -> handler; what is missing is refused. In other states nothing is decoded. Of CONNECTED
# here is what concerns the connection itself; what it is there for stands in HANDLERS.
COMMANDS: Final[dict[int, dict[int, Handler]]] = {
    NEW: {WIRE_FORMAT_INFO: OpenWireSession._negotiate},
    NEGOTIATED: {CONNECTION_INFO: OpenWireSession._connect, **_ALWAYS},
    CONNECTED: {REMOVE_INFO: OpenWireSession._remove, FLUSH_COMMAND: OpenWireSession._ignore, **_ALWAYS},
}
