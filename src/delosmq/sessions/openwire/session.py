"""The server's side of an OpenWire connection: commands to the engine, answers to the outbox.

The table at the end of this file is the protocol: which command is taken in which state, and who handles it.
Source: TransportConnection of ActiveMQ Classic.
"""

from collections.abc import Callable
from typing import Final

from delosmq.model.errors import BrokerError, InvariantError, PeerError, Scope, StorageError
from delosmq.model.ids import NOTHING_DURABLE, MonotonicNs, WallMs
from delosmq.model.settings import AcceptorSettings
from delosmq.security.access import Login, LoginAttempt
from delosmq.sessions.openwire import failures
from delosmq.sessions.openwire.consuming import ALL_SEEN, NOTHING_SEEN
from delosmq.sessions.openwire.ids import check_id, following
from delosmq.sessions.openwire.inactivity import Inactivity
from delosmq.sessions.openwire.owner import Owner
from delosmq.sessions.openwire.parts import Parts
from delosmq.sessions.openwire.registry import Registry
from delosmq.sessions.openwire.subscription import Subscription
from delosmq.sessions.openwire.transactions import XA_OK
from delosmq.sessions.outbox import Outbox
from delosmq.sessions.parking import may_read
from delosmq.sessions.permissions import Permissions
from delosmq.sessions.protocol import NO_TIMER, Peer, Session, SessionHost, SessionServices
from delosmq.wire.openwire.codec import encode_command, encode_response
from delosmq.wire.openwire.commands import (
    BEGIN,
    COMMIT_ONE_PHASE,
    COMMIT_TWO_PHASE,
    END,
    FORGET,
    PREPARE,
    RECOVER,
    ROLLBACK,
    BrokerInfo,
    Command,
    ConnectionControl,
    ConnectionError,
    ConnectionId,
    ConnectionInfo,
    ConsumerControl,
    ConsumerId,
    ConsumerInfo,
    DataArrayResponse,
    DestinationInfo,
    ExceptionResponse,
    IntegerResponse,
    KeepAliveInfo,
    MessageAck,
    MessageCommand,
    MessagePull,
    ProducerAck,
    ProducerId,
    ProducerInfo,
    RemoveInfo,
    RemoveSubscriptionInfo,
    SessionId,
    SessionInfo,
    Structure,
    TransactionInfo,
    XATransactionId,
)
from delosmq.wire.openwire.decoder import OpenWireDecoder, OpenWireLimits
from delosmq.wire.openwire.form import WireForm
from delosmq.wire.openwire.layout import NEWEST_VERSION
from delosmq.wire.openwire.negotiation import WireFormatInfo, agree, encode_wire_format_info

# States of a session.
NEGOTIATING: Final = 0
NEGOTIATED: Final = 1
VERIFYING: Final = 2
CONNECTED: Final = 3
CLOSED: Final = 4

_LAST_DELIVERED_SINCE: Final = 5
"""The version from which on a RemoveInfo says what its consumer saw last."""
_LEAVING_NS: Final = 10_000_000_000
"""How long a peer may stay after its connection has ended: it has a ShutdownInfo to send, and may log in again."""
_FRAME_BEFORE_LOGIN_BYTES: Final = 64 * 1024
"""Of those who are not logged in: anybody may open connections."""


_UNREAD: Final = frozenset((2, 14, 16, 19, 21, 31, 32, 33, 34, 90, 92))
"""Types of commands that only brokers send: refused or ignored."""


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
        self._broker = services.broker
        self._registry = registry
        self._decoder: OpenWireDecoder = OpenWireDecoder(
            OpenWireLimits(max_frame_bytes=_FRAME_BEFORE_LOGIN_BYTES), unread=_UNREAD
        )
        self._form: WireForm = WireForm(NEWEST_VERSION)
        self._inactivity: Inactivity = Inactivity(0, 0, now)
        self._heard: bool = False
        self._wall: WallMs = WallMs(0)
        self._attempt: LoginAttempt | None = None
        self._info: ConnectionInfo = ConnectionInfo()
        self._fault_tolerant: bool = False
        self._leaving: RemoveInfo | None = None
        self._leaves_until: MonotonicNs = NO_TIMER
        self._next_id: int = 0
        self._parts: Parts | None = None
        self._owner: _Owner = _Owner(self)
        self._ours: WireFormatInfo = self._wire_format_info()
        self.outbox.reply(NOTHING_DURABLE, encode_wire_format_info(self._ours))

    def _wire_format_info(self) -> WireFormatInfo:
        info = WireFormatInfo(NEWEST_VERSION)
        info.max_frame_bytes = self._acceptor.open_wire_max_frame_bytes
        info.provider_name = "DelosMQ"
        info.provider_version = self._services.server_name.rpartition("/")[2]
        info.max_inactivity_duration_ms = self._acceptor.max_inactivity_duration_ms
        info.max_inactivity_initial_delay_ms = self._acceptor.max_inactivity_initial_delay_ms
        return info

    # -- input -----------------------------------------------------------------------------------------------------

    def receive(self, chunk: bytes, now: MonotonicNs) -> None:
        self._heard = True
        if self.state == CLOSED:
            return
        self._decoder.feed(chunk)
        self._handle_frames(now)

    def _handle_frames(self, now: MonotonicNs) -> None:
        self._wall = self._services.clock.wall_ms()
        # Whose doing it is, should a destination come into being.
        destinations = self._registry.advisories.destinations
        destinations.acting = self._info.connection_id
        decoder = self._decoder
        while self.reading and self.state != CLOSED:
            try:
                frame = decoder.next_frame()
            except PeerError as malformed:
                self.fail(malformed)
                return
            if frame is None:
                break
            try:
                handler = COMMANDS[self.state].get(frame.code)
                if handler is None:
                    raise self._refuse_command(frame.code)
                handler(self, frame, now)
            # What is wrong with one command concerns its sender alone. An InvariantError concerns all and goes on up.
            except InvariantError:
                raise
            except BrokerError as error:
                self._refuse(frame, error)
            self._update_reading()
        destinations.acting = None

    def _refuse_command(self, code: int) -> failures.Refusal:
        if self.state == NEGOTIATING:
            return failures.not_negotiated(code)
        if code == _WIRE_FORMAT_INFO:
            return failures.negotiated_already()
        if code in COMMANDS[CONNECTED]:
            return failures.not_connected(code)
        if code in COMMANDS[NEGOTIATED]:
            return failures.connected_already()
        return failures.unexpected(code)

    # -- answers ---------------------------------------------------------------------------------------------------

    def _take_id(self) -> int:
        self._next_id = following(self._next_id)
        return self._next_id

    def _write(self, command: Command) -> None:
        """Sends a command that depends on all that was recorded till now."""
        command.command_id = self._take_id()
        self.outbox.reply(self._broker.log.position, encode_command(command, self._form))

    def _answer(self, command: Command) -> None:
        if command.response_required:
            response = encode_response(command.command_id, self._form, self._take_id())
            self.outbox.reply(self._broker.log.position, response)

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
        exception = failures.throwable_of(error)
        if isinstance(frame, Command) and frame.response_required:
            self._write(ExceptionResponse(frame.command_id, exception))
            return
        self._doom(frame, error)
        self._write(ConnectionError(exception, self._info.connection_id))

    def _doom(self, frame: Structure, error: BrokerError) -> None:
        """Its sender goes on without waiting for an answer, so the end of the transaction has to tell."""
        parts = self._parts
        if parts is None:
            return
        if isinstance(frame, MessageCommand | MessageAck) and frame.transaction_id is not None:
            parts.transactions.doom(frame.transaction_id, error)

    # -- connecting ------------------------------------------------------------------------------------------------

    def _negotiate(self, frame: Structure, now: MonotonicNs) -> None:
        assert isinstance(frame, WireFormatInfo)
        agreement = agree(self._ours, frame)
        self._form = agreement.form
        self._decoder.agreed(agreement.form)
        self._inactivity = Inactivity(agreement.read_timeout_ms, agreement.initial_delay_ms, now)
        self.state = NEGOTIATED
        info = BrokerInfo()
        info.broker_id = self._registry.broker_id
        info.broker_name = self._registry.broker_name
        info.broker_url = ""
        self._write(info)

    def _connect(self, frame: Structure, now: MonotonicNs) -> None:
        assert isinstance(frame, ConnectionInfo)
        if frame.connection_id is None or not frame.connection_id.value:
            raise failures.field_missing("connectionId", "a ConnectionInfo")
        check_id("connection id", frame.connection_id.value)
        check_id("client id", frame.client_id or "")
        self._info = frame
        password = frame.password or ""
        access = self._services.access
        attempt = access.attempt(frame.user_name or "", password)
        frame.password = None
        if attempt.login is not None:
            self._logged_in(attempt.login)
            return
        self._attempt = attempt
        self.state = VERIFYING
        self.reading = False
        self._host.verify(attempt, password)

    def resume(self, verified: bool, now: MonotonicNs) -> None:
        attempt = self._attempt
        if self.state != VERIFYING or attempt is None:
            return
        self._attempt = None
        login = self._services.access.finish(attempt, verified)
        self.state = NEGOTIATED
        if login is None:
            self._refuse(self._info, failures.login_refused())
            return
        self.reading = True
        try:
            self._logged_in(login)
        except InvariantError:
            raise
        except BrokerError as error:
            self._refuse(self._info, error)
            return
        self._handle_frames(now)

    def _logged_in(self, login: Login) -> None:
        info = self._info
        assert info.connection_id is not None  # `_connect` looked
        client_id = info.client_id or ""
        self._registry.enter(info.connection_id.value, client_id, self._owner, user=login.user)
        self.state = CONNECTED
        self.established = True
        self._leaves_until = NO_TIMER
        self._decoder.set_limits(OpenWireLimits(max_frame_bytes=self._acceptor.open_wire_max_frame_bytes))
        self._parts = Parts(
            self._host,
            self._peer,
            self._acceptor,
            self._services,
            registry=self._registry,
            outbox=self.outbox,
            form=self._form,
            permissions=Permissions(login, self._services.access, self._broker),
            connection_id=info.connection_id.value,
            client_id=client_id,
            owner=self._owner,
        )
        self._parts.producing.audited = info.failover_reconnect or info.fault_tolerant or self._fault_tolerant
        self._registry.advisories.connection_opened(info, f"tcp://{self._peer.name}")
        if info.manageable:
            self._write(ConnectionControl())
        self._answer(info)

    def _connected(self) -> Parts:
        parts = self._parts
        assert parts is not None  # the table lets nobody in before
        return parts

    def _add_session(self, frame: Structure, now: MonotonicNs) -> None:
        assert isinstance(frame, SessionInfo)
        self._connected().sessions.add(frame.session_id)
        self._answer(frame)

    # -- sending -----------------------------------------------------------------------------------------------------

    def _add_producer(self, frame: Structure, now: MonotonicNs) -> None:
        assert isinstance(frame, ProducerInfo)
        parts = self._connected()
        producer_id = frame.producer_id
        if producer_id is not None:
            parts.sessions.require("producer", producer_id.connection_id, producer_id.session_id)
        if parts.producing.add(frame):
            self._registry.advisories.producer_opened(frame)
        self._answer(frame)

    def _send(self, frame: Structure, now: MonotonicNs) -> None:
        assert isinstance(frame, MessageCommand)
        parts = self._connected()
        work = None if frame.transaction_id is None else parts.transactions.find(frame.transaction_id)
        parts.producing.send(frame, work, self._wall)

    def message_sent(self, command: MessageCommand) -> None:
        """Answers a message that is where it belongs."""
        parts = self._connected()
        if command.response_required:
            response = encode_response(command.command_id, self._form, self._take_id())
            self.outbox.reply(parts.parking.position, response)
        elif parts.producing.window_of(command.producer_id) > 0:
            acknowledgement = ProducerAck(command.producer_id, command.size_bytes())
            acknowledgement.command_id = self._take_id()
            self.outbox.reply(parts.parking.position, encode_command(acknowledgement, self._form))

    # -- receiving ---------------------------------------------------------------------------------------------------

    def _add_consumer(self, frame: Structure, now: MonotonicNs) -> None:
        assert isinstance(frame, ConsumerInfo)
        parts = self._connected()
        consumer_id = frame.consumer_id
        if consumer_id is not None:
            parts.sessions.require("consumer", consumer_id.connection_id, consumer_id.session_id)
        subscription = parts.consuming.add(frame)
        if subscription is not None:
            parts.producing.mark = parts.consuming.mark
            try:
                self._announce(subscription)
            except BrokerError:
                assert consumer_id is not None  # `add` looked
                self._dismiss(parts.consuming.remove(consumer_id, NOTHING_SEEN))
                raise
        self._answer(frame)

    def _announce(self, subscription: Subscription) -> None:
        advisories = self._registry.advisories
        consumer_id = subscription.info.consumer_id
        for source in subscription.sources:
            if source.target.advisory and source.consumer is not None and consumer_id is not None:
                advisories.listen(consumer_id, source.target.address, source.consumer, self._host)
        advisories.consumer_opened(subscription.info)

    def _dismiss(self, subscriptions: list[Subscription]) -> None:
        advisories = self._registry.advisories
        for subscription in subscriptions:
            consumer_id = subscription.info.consumer_id
            if consumer_id is not None:
                advisories.leave(consumer_id)
            advisories.consumer_closed(subscription.info)

    def _acknowledge(self, frame: Structure, now: MonotonicNs) -> None:
        assert isinstance(frame, MessageAck)
        parts = self._connected()
        work = None if frame.transaction_id is None else parts.transactions.find(frame.transaction_id)
        under_way = parts.consuming.acknowledge(frame, None if work is None else work.transaction)
        if under_way is None:
            self._answer(frame)
        else:
            parts.answer_after(frame, under_way)

    def _control(self, frame: Structure, now: MonotonicNs) -> None:
        assert isinstance(frame, ConsumerControl)
        self._dismiss(self._connected().consuming.control(frame))
        self._answer(frame)

    def _pull(self, frame: Structure, now: MonotonicNs) -> None:
        assert isinstance(frame, MessagePull)
        self._connected().consuming.pull(frame, now)
        self._answer(frame)

    def _unsubscribe(self, frame: Structure, now: MonotonicNs) -> None:
        assert isinstance(frame, RemoveSubscriptionInfo)
        address = self._connected().consuming.unsubscribe(frame)
        self._registry.advisories.subscription_removed(frame, address)
        self._answer(frame)

    def _change_destination(self, frame: Structure, now: MonotonicNs) -> None:
        assert isinstance(frame, DestinationInfo)
        self._connected().temporaries.handle(frame)
        self._answer(frame)

    # -- transactions ------------------------------------------------------------------------------------------------

    def _transact(self, frame: Structure, now: MonotonicNs) -> None:
        assert isinstance(frame, TransactionInfo)
        parts = self._connected()
        kind = frame.type
        if kind == RECOVER:
            found: list[Structure | None] = [*parts.transactions.recover()]
            self._write(DataArrayResponse(frame.command_id, found))
            return
        transaction_id = frame.transaction_id
        if transaction_id is None:
            raise failures.field_missing("transactionId", "a TransactionInfo")
        if kind == BEGIN:
            parts.transactions.begin(transaction_id)
        elif kind in (COMMIT_ONE_PHASE, COMMIT_TWO_PHASE):
            parts.end_transaction(frame, transaction_id)
            return
        elif kind == ROLLBACK:
            parts.roll_back(transaction_id)
        elif not isinstance(transaction_id, XATransactionId):
            if kind != END:  # of which local transactions know nothing
                raise failures.not_a_branch(transaction_id.key())
        elif kind == PREPARE:
            parts.end_transaction(frame, transaction_id)
            return
        elif kind == END:
            parts.end_association(frame, transaction_id)
            return
        elif kind == FORGET:
            parts.transactions.forget(transaction_id)
        else:
            raise failures.unknown_transaction_command(kind)
        self._answer(frame)

    def ended(self, frame: Command, result: int) -> None:
        """Answers a commit, prepare or acknowledgement that is through; ``result`` is a prepare's."""
        if isinstance(frame, RemoveInfo):
            self._leaving = frame  # not from here: it calls the engine
            self._host.wake_soon()
            return
        if isinstance(frame, TransactionInfo) and self._parts is not None:
            self._parts.consuming.share_room()
        if isinstance(frame, TransactionInfo) and frame.type == PREPARE:
            self._write(IntegerResponse(frame.command_id, result))
        else:
            self._answer(frame)

    def refused(self, frame: Structure, error: BrokerError) -> None:
        """Answers what could not be done later on."""
        self._refuse(frame, error)

    # -- leaving -----------------------------------------------------------------------------------------------------

    def _remove(self, frame: Structure, now: MonotonicNs) -> None:
        assert isinstance(frame, RemoveInfo)
        parts = self._connected()
        advisories = self._registry.advisories
        removed = frame.object_id
        last = frame.last_delivered_sequence_id if self._form.version >= _LAST_DELIVERED_SINCE else ALL_SEEN
        if isinstance(removed, ConsumerId):
            ended = parts.consuming.remove(removed, last)
            if not ended:
                raise failures.nothing_to_remove("consumer", removed.key())
            self._dismiss(ended)
        elif isinstance(removed, ProducerId):
            producer = parts.producing.remove(removed)
            if producer is None:
                raise failures.nothing_to_remove("producer", removed.key())
            advisories.producer_closed(producer)
        elif isinstance(removed, SessionId):
            parts.sessions.remove(removed)
            self._dismiss(parts.consuming.remove_session(removed.connection_id, removed.value, last))
            for producer in parts.producing.remove_session(removed.connection_id, removed.value):
                advisories.producer_closed(producer)
        elif isinstance(removed, ConnectionId):
            parts.sessions.own("connection", removed.value, removed.value)
            if not parts.leaves_later(frame):
                self._leave(frame, now)
            return
        else:
            raise failures.field_missing("objectId of a consumer, producer, session or connection", "a RemoveInfo")
        self._answer(frame)

    def _leave(self, frame: RemoveInfo, now: MonotonicNs) -> None:
        """The end of the connection, once all that it sent is where it belongs."""
        self._give_up(frame.last_delivered_sequence_id if self._form.version >= _LAST_DELIVERED_SINCE else ALL_SEEN)
        self._decoder.set_limits(OpenWireLimits(max_frame_bytes=_FRAME_BEFORE_LOGIN_BYTES))
        self._leaves_until = MonotonicNs(now + _LEAVING_NS)
        self._answer(frame)

    def _shut_down(self, frame: Structure, now: MonotonicNs) -> None:
        self._close(None)

    def _close(self, reason: BrokerError | None) -> None:
        self.state = CLOSED
        self._give_up(ALL_SEEN)
        self._host.finish(reason)

    def _give_up(self, last_delivered: int) -> None:
        """Ends all that the connection has in the engine."""
        parts = self._parts
        if parts is None:
            return
        self._parts = None
        if self.state == CONNECTED:
            self.state = NEGOTIATED
        subscriptions, producers, troubles = parts.close(last_delivered)
        self._dismiss(subscriptions)
        advisories = self._registry.advisories
        for producer in producers:
            advisories.producer_closed(producer)
        for trouble in troubles:
            self._host.report(failures.not_given_back(self._peer.name, trouble))
        info = self._info
        advisories.connection_closed(info)
        if info.connection_id is not None:
            self._registry.leave(info.connection_id.value, info.client_id or "", self._owner)

    def fail(self, error: BrokerError) -> None:
        if self.state == CLOSED:
            return
        if self.state != NEGOTIATING:
            self._write(ConnectionError(failures.throwable_of(error), self._info.connection_id))
        self._close(error)

    def handle_eof(self) -> None:
        if self.state != CLOSED:
            self._close(None)

    def connection_lost(self) -> None:
        self.state = CLOSED
        self._give_up(ALL_SEEN)
        self.outbox.close()
        # Ends the cycle session -> parts -> owner -> session: nothing waits for the garbage collector.
        self._owner.session = None

    # -- control -----------------------------------------------------------------------------------------------------

    def _keep_alive(self, frame: Structure, now: MonotonicNs) -> None:
        assert isinstance(frame, KeepAliveInfo)
        if frame.response_required:
            self._write(KeepAliveInfo())

    def _connection_control(self, frame: Structure, now: MonotonicNs) -> None:
        assert isinstance(frame, ConnectionControl)
        if frame.fault_tolerant:
            self._fault_tolerant = True
            if self._parts is not None:
                self._parts.producing.audited = True
        self._answer(frame)

    def _ignore(self, frame: Structure, now: MonotonicNs) -> None:
        assert isinstance(frame, Command)
        self._answer(frame)

    # -- time and room -----------------------------------------------------------------------------------------------

    def next_timer(self) -> MonotonicNs:
        due = self._inactivity.next_timer()
        if self._leaves_until != NO_TIMER and (due == NO_TIMER or self._leaves_until < due):
            due = self._leaves_until
        if self._parts is not None:
            pull = self._parts.consuming.next_timer()
            if pull != NO_TIMER and (due == NO_TIMER or pull < due):
                return pull
        return due

    def handle_timer(self, now: MonotonicNs) -> None:
        if self.state == CLOSED:
            return
        parts = self._parts
        if parts is not None:
            try:
                parts.parking.go_on()
                leaving = self._leaving
                if leaving is not None:
                    self._leaving = None
                    self._leave(leaving, now)
                    return
                parts.consuming.go_on(now)
                self._tell_later()
            except StorageError as error:
                self.fail(error)
                return
        # Whoever waits for us owes nothing: one we do not read, or whose messages we keep waiting for space.
        heard = self._heard or not self.reading or (parts is not None and parts.parking.parked_bytes > 0)
        self._heard = False
        if self._inactivity.look(now, heard=heard):
            self.outbox.beat(encode_command(KeepAliveInfo(), self._form))
        if self._inactivity.silent(now):
            self.fail(failures.silent(self._peer.name, self._inactivity.timeout_ms))
            return
        if self._leaves_until != NO_TIMER and now >= self._leaves_until:
            self._close(None)
            return
        self._go_on_reading(now)

    def _tell_later(self) -> None:
        """What could not be told where it happened."""
        parts = self._parts
        advisories = self._registry.advisories
        if parts is not None:
            for info, destination in parts.consuming.take_slow():
                advisories.consumer_slow(info, destination)
        advisories.go_on()

    def handle_written(self, now: MonotonicNs) -> bool:
        parts = self._parts
        touched = parts is not None and parts.consuming.return_room()
        return self._go_on_reading(now) or touched

    def _go_on_reading(self, now: MonotonicNs) -> bool:
        """Back-pressure may be over: the frames that were left undecoded come first."""
        if self.reading or self.state == VERIFYING or not self._update_reading():
            return False
        self._handle_frames(now)
        return True

    def _update_reading(self) -> bool:
        if self.state in (NEGOTIATED, CONNECTED):
            parked_bytes = 0 if self._parts is None else self._parts.parking.parked_bytes
            self.reading = may_read(self.reading, parked_bytes, self.outbox.reply_bytes, self._acceptor)
        return self.reading

    def parked_changed(self) -> None:
        """Stop reading, or have `handle_timer` look whether that may go on."""
        if self.reading:
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


class _Owner(Owner):
    """Lets the parts of a session, and other connections, talk to it."""

    def __init__(self, session: OpenWireSession) -> None:
        self.session: OpenWireSession | None = session

    def parked_changed(self) -> None:
        if self.session is not None:
            self.session.parked_changed()

    def go_on_soon(self) -> None:
        if self.session is not None:
            self.session.wake_soon()

    def message_sent(self, command: MessageCommand) -> None:
        if self.session is not None:
            self.session.message_sent(command)

    def ended(self, command: Command, result: int = XA_OK) -> None:
        if self.session is not None:
            self.session.ended(command, result)

    def refused(self, command: Structure, error: BrokerError) -> None:
        if self.session is not None:
            self.session.refused(command, error)

    def peer_name(self) -> str:
        return "" if self.session is None else self.session.peer_name

    def replace(self, reason: BrokerError) -> None:
        if self.session is not None:
            self.session.fail(reason)


Handler = Callable[[OpenWireSession, Structure, MonotonicNs], None]

_WIRE_FORMAT_INFO: Final = 1

_ALWAYS: Final[dict[int, Handler]] = {
    10: OpenWireSession._keep_alive,
    **dict.fromkeys(range(30, 35), OpenWireSession._ignore),
    11: OpenWireSession._shut_down,
    18: OpenWireSession._connection_control,
}

# (state, type of the command) -> handler; what is missing is refused. In VERIFYING nothing is decoded, and after that
# nothing is read.
COMMANDS: Final[dict[int, dict[int, Handler]]] = {
    NEGOTIATING: {_WIRE_FORMAT_INFO: OpenWireSession._negotiate},
    NEGOTIATED: {3: OpenWireSession._connect, **_ALWAYS},
    CONNECTED: {
        4: OpenWireSession._add_session,
        5: OpenWireSession._add_consumer,
        6: OpenWireSession._add_producer,
        7: OpenWireSession._transact,
        8: OpenWireSession._change_destination,
        9: OpenWireSession._unsubscribe,
        12: OpenWireSession._remove,
        15: OpenWireSession._ignore,
        17: OpenWireSession._control,
        20: OpenWireSession._pull,
        22: OpenWireSession._acknowledge,
        **dict.fromkeys(range(23, 30), OpenWireSession._send),
        **_ALWAYS,
    },
}
