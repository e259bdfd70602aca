"""The machine of a client's connection: bytes of the broker in, bytes for the broker and events out.

    WireFormatInfo both ways, ConnectionInfo and its answer, the consumer of advisories and its answer: `opened`.

The owner moves the bytes, calls `handle_timer` when `next_timer` is due, and hears of changes by `ClientEvents`.

Source: ActiveMQConnection, WireFormatNegotiator and AbstractInactivityMonitor of the Java client.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from delosmq.model.errors import PeerError
from delosmq.model.ids import MonotonicNs
from delosmq.model.ports import Clock, Random
from delosmq.sessions.client_errors import ClientError, ClientSecurityError
from delosmq.sessions.openwire.client import errors
from delosmq.sessions.openwire.client.acknowledgement import NOTHING_SEEN
from delosmq.sessions.openwire.client.consumer import OpenWireConsumer
from delosmq.sessions.openwire.client.duplicates import SeenMessages
from delosmq.sessions.openwire.client.encoder import CommandEncoder
from delosmq.sessions.openwire.client.handshake import ClientIdentity, login, offer
from delosmq.sessions.openwire.client.inactivity import ClientInactivity
from delosmq.sessions.openwire.client.options import AckMode, ClientOptions
from delosmq.sessions.openwire.client.ports import (
    ClientEvents,
    CommandSender,
    PendingRequest,
    PendingRequests,
    finished,
)
from delosmq.sessions.openwire.client.session import OpenWireClientSession
from delosmq.sessions.openwire.client.spare import OpenWireSpare
from delosmq.sessions.openwire.client.temporary import TemporaryNames
from delosmq.sessions.openwire.client.transactions.transaction import fails_when_interrupted
from delosmq.wire.openwire.commands import (
    BrokerInfo,
    ConnectionControl,
    ConnectionError,
    ConnectionInfo,
    ConsumerControl,
    ExceptionResponse,
    KeepAliveInfo,
    MessageAck,
    MessageCommand,
    MessageDispatch,
    MessagePull,
    ProducerAck,
    RemoveInfo,
    RemoveSubscriptionInfo,
    Response,
    ShutdownInfo,
    TransactionInfo,
)
from delosmq.wire.openwire.decoder import OpenWireDecoder, OpenWireLimits
from delosmq.wire.openwire.negotiation import WireFormatInfo, agree, encode_wire_format_info
from delosmq.wire.openwire.structures import Command, ConnectionId, ConsumerId, SessionId, Structure

NEGOTIATING: Final = 1
LOGGING_IN: Final = 2
OPEN: Final = 3
CLOSING: Final = 4
ENDED: Final = 5
INTERRUPTED: Final = 6

_FRAME_SIZE_BYTES: Final = 4
_BLOCKED_MS: Final = 500
"""A message that is not answered in so long a time when it is to end, a full address keeps waiting."""
_LOGIN: Final = "the login"
_END: Final = "the end of the connection"


class OpenWireClient(CommandSender):
    """
    Attributes:
        state: NEGOTIATING, LOGGING_IN, OPEN, INTERRUPTED, CLOSING or ENDED.
    """

    def __init__(
        self, events: ClientEvents, options: ClientOptions, identity: ClientIdentity, clock: Clock, chance: Random
    ) -> None:
        super().__init__(events, options, clock, chance, ConnectionId(identity.connection_id))
        self.state: int = NEGOTIATING
        self.sessions: dict[int, OpenWireClientSession] = {}
        self.temporaries: TemporaryNames = TemporaryNames(self)
        self.has_client_id: bool = options.client_id != ""
        if not self.client_id:
            self.client_id = identity.client_id
        self.fault_tolerant = identity.fault_tolerant
        if identity.fault_tolerant and options.check_for_duplicates:
            self.seen = SeenMessages(options.audit_depth, options.audit_maximum_producer_number)
        self._identity = identity
        self._limits: OpenWireLimits = OpenWireLimits(max_frame_bytes=options.wire_format.max_frame_size_bytes)
        self._decoder: OpenWireDecoder = OpenWireDecoder(self._limits)
        self._encoder: CommandEncoder | None = None
        self._output: list[bytes] = []
        self._command_id: int = 0
        self._pending: PendingRequests = PendingRequests(events)
        self._sessions_made: int = 0
        self._ours: WireFormatInfo = offer(options.wire_format, identity.host)
        self._lives: bool = False
        self._deferred: list[Command] = []
        self._inactivity: ClientInactivity = ClientInactivity(
            clock, self.appointments, lambda: self.send(KeepAliveInfo()), self._silent
        )
        self._output.append(encode_wire_format_info(self._ours))

    # --- bytes and time

    def receive(self, chunk: bytes) -> None:
        """Bytes of the broker."""
        if self.state in (ENDED, INTERRUPTED):
            return
        self._inactivity.heard()
        try:
            frame = self._decoder.next_frame(chunk)
            while frame is not None:
                self._handle(frame)
                if self.state == INTERRUPTED:
                    return
                frame = self._decoder.next_frame()
        except PeerError as error:
            peer = self._identity.peer
            if self.state == NEGOTIATING:
                self.interrupt(errors.no_broker(peer, error.message))
            else:
                self.interrupt(errors.lost(peer, f"it sent what can't be read: {error.message}"))
        except ClientError as refusal:  # what is told again is too large for this broker
            self.interrupt(errors.lost(self._identity.peer, refusal.message, "It is made again."))

    def take_output(self) -> bytes:
        """What is to be sent to the broker."""
        output, self._output = b"".join(self._output), []
        return output

    @property
    def largest_frame_bytes(self) -> int:
        """Of what the broker takes; 0 while that is not known."""
        return 0 if self._encoder is None else self._encoder.form.max_frame_bytes

    def next_timer(self) -> MonotonicNs:
        """When to call `handle_timer`; 0 for never."""
        return self.appointments.next_at

    def handle_timer(self) -> None:
        self.appointments.run(self.clock.monotonic_ns())

    def lose(self, error: ClientError | None = None) -> None:
        """The connection is gone; the first to know says why."""
        if self.state == ENDED:
            return
        closing = self.state == CLOSING
        negotiating = self.state == NEGOTIATING
        self.state = ENDED
        self.running = False
        self.appointments.clear()
        self._inactivity.end()
        self._decoder.close()
        why = error or errors.closed_by_peer(self._identity.peer, negotiating=negotiating)
        for session in self.sessions.values():
            session.lose()
        self.sessions.clear()
        self._pending.end(why)
        self.events.ended(None if closing and error is None else why)

    def interrupt(self, error: ClientError | None = None) -> None:
        """The socket is gone. If the connection can be made again `interrupted` follows, else all is over."""
        if not self._lives or not self.fault_tolerant or self.state in (CLOSING, ENDED):
            self.lose(error)
            return
        if self.state == INTERRUPTED:
            return
        why = error or errors.closed_by_peer(self._identity.peer, negotiating=self.state == NEGOTIATING)
        self.state = INTERRUPTED
        was_ready = self.ready
        self.ready = False
        self._inactivity.end()
        self._output = []
        self._decoder.close()
        self.ended_branches.interrupt()
        for session in self.sessions.values():
            session.interrupt()
        self._pending.forget_late()
        for command_id, request in self._pending.in_order():
            command = request.command
            if isinstance(command, TransactionInfo):
                if not was_ready:
                    continue
                self._pending.take(command_id)
                self._pending.finish(request, None, why if fails_when_interrupted(command) else None)
            elif isinstance(command, MessageAck):
                self._pending.give_up(command_id, why)
            elif isinstance(command, ConnectionInfo):
                self._pending.take(command_id)
        self.events.interrupted(why)

    def resume(self, spare: OpenWireSpare | None = None) -> None:
        """There is a new socket; what is open is told to the broker behind it, and `opened` follows.

        Args:
            spare: what was said by it already.
        """
        self.state = NEGOTIATING
        self._output = []
        if spare is None or spare.theirs is None:
            self._decoder = OpenWireDecoder(self._limits)
            self._output.append(encode_wire_format_info(self._ours))
            return
        self._decoder = spare.decoder
        self._agree(spare.theirs)
        if spare.broker_info is not None:
            self._handle(spare.broker_info)

    def _restore(self) -> None:
        """Tells all that is open, then what waits for an answer, then what was to be sent meanwhile."""
        self.ready = True
        repeated = self.temporaries.to_repeat()
        for session in self.sessions.values():
            repeated += session.to_repeat()
        told = {command.command_id for command in repeated}
        for command_id, request in self._pending.in_order():
            if request.command is not None and command_id not in told:
                repeated += (*request.before, request.command)
        repeated += self._deferred
        self._pending.note_repeated(repeated)
        for command in repeated:
            if command.command_id:
                self._write(command)
            else:
                self.send(command)
        self._deferred = []

    def _defer(self, command: Command) -> None:
        """What is said while there is no broker, and neither follows from what is open nor waits for an answer."""
        if isinstance(command, MessagePull) or (
            isinstance(command, MessageCommand) and command.transaction_id is None and not command.response_required
        ):
            self._deferred.append(command)

    # --- commands

    def send(self, command: Command) -> None:
        self._command_id += 1
        command.command_id = self._command_id
        self._write(command)

    def request(
        self,
        command: Command,
        what: str,
        then: Callable[[PendingRequest], None] | None = None,
        timeout_ms: int = 0,
    ) -> PendingRequest:
        request = PendingRequest(what, then, command)
        if self.state == ENDED:
            self._pending.finish(request, None, errors.closed("connection"))
            return request
        self._command_id += 1
        command_id = self._command_id
        command.command_id = command_id
        command.response_required = True
        self._write(command)
        self._pending.add(command_id, request)
        if timeout_ms > 0:
            self.after_ms(timeout_ms, lambda: self._pending.give_up(command_id, errors.unanswered(what, timeout_ms)))
        return request

    def _write(self, command: Command) -> None:
        encoder = self._encoder
        if self.state == ENDED:
            return
        if encoder is not None and (self.ready or isinstance(command, MessageCommand)):
            frame = encoder.encode(command)
            size = len(frame) - _FRAME_SIZE_BYTES
            if size > encoder.form.max_frame_bytes and isinstance(command, MessageCommand):
                raise errors.message_too_large(size, encoder.form.max_frame_bytes)
            if self.ready:
                self._inactivity.wrote = True
                self._output.append(frame)
                return
        self._defer(command)

    # --- from the broker

    def _handle(self, frame: Structure) -> None:
        if isinstance(frame, MessageDispatch):
            self._dispatch(frame)
        elif isinstance(frame, Response):
            self._answer(frame)
        elif isinstance(frame, ProducerAck):
            self._make_room(frame)
        elif isinstance(frame, WireFormatInfo):
            self._agree(frame)
        elif isinstance(frame, KeepAliveInfo):
            if frame.response_required:
                self.send(KeepAliveInfo())
        elif isinstance(frame, ConnectionError):
            self.events.troubled(errors.refused("a command without an answer", frame.exception))
        elif isinstance(frame, BrokerInfo):
            self.broker_id = "" if frame.broker_id is None else frame.broker_id.value
            self._stop_optimising(frame.fault_tolerant_configuration)
        elif isinstance(frame, ConnectionControl):
            self._stop_optimising(frame.fault_tolerant)
            self.events.connection_control(frame)
        elif isinstance(frame, ConsumerControl):
            self._control(frame)

    def _dispatch(self, dispatch: MessageDispatch) -> None:
        consumer_id = dispatch.consumer_id
        if consumer_id is None:
            return
        if self.temporaries.handles(consumer_id):
            self.temporaries.handle(dispatch)
            return
        consumer = self._consumer(consumer_id)
        if consumer is not None:
            consumer.handle(dispatch)

    def _consumer(self, consumer_id: ConsumerId | None) -> OpenWireConsumer | None:
        session = None if consumer_id is None else self.sessions.get(consumer_id.session_id)
        return None if session is None or consumer_id is None else session.consumers.get(consumer_id.value)

    def _answer(self, response: Response) -> None:
        request = self._pending.take(response.correlation_id)
        if request is None:
            if isinstance(response, ExceptionResponse) and self._pending.is_repeated(response.correlation_id):
                refusal = errors.refused("what was open when the connection broke", response.exception)
                consumer = self._consumer(self._pending.repeated_consumer(response.correlation_id))
                if consumer is not None:
                    consumer.end_refused(refusal)
                self.events.troubled(refusal)
            return
        error = errors.refused(request.what, response.exception) if isinstance(response, ExceptionResponse) else None
        self._pending.finish(request, response, error)

    def _make_room(self, ack: ProducerAck) -> None:
        producer_id = ack.producer_id
        if producer_id is not None and producer_id.session_id in self.sessions:
            producer = self.sessions[producer_id.session_id].producers.get(producer_id.value)
            if producer is not None:
                producer.handle_ack(ack)

    def _stop_optimising(self, fault_tolerant: bool) -> None:
        if fault_tolerant and self.optimizes:
            self.optimizes = False
            for session in self.sessions.values():
                for consumer in session.consumers.values():
                    consumer.stop_optimising()

    def _control(self, control: ConsumerControl) -> None:
        consumer = None if control.consumer_id is None else self._consumer(control.consumer_id)
        if consumer is None:
            return
        if control.close:
            consumer.close()
        else:
            consumer.set_prefetch(control.prefetch)

    # --- the beginning

    def _agree(self, theirs: WireFormatInfo) -> None:
        if self.state != NEGOTIATING:
            return
        agreement = agree(self._ours, theirs)
        self._encoder = CommandEncoder(agreement.form)
        self._decoder.agreed(agreement.form)
        self._inactivity.begin(agreement)
        self.state = LOGGING_IN
        self.ready = True
        if self.fault_tolerant:
            control = ConnectionControl()
            control.fault_tolerant = True
            self.send(control)
        info = login(self._identity, self.client_id)
        info.fault_tolerant = self.fault_tolerant
        info.failover_reconnect = self._lives
        self.request(info, _LOGIN, self._logged_in, self.options.connect_response_timeout_ms)
        # Of one that was open before, the rest waits for the answer.
        self.ready = not self._lives

    def _logged_in(self, request: PendingRequest) -> None:
        error = request.error
        if error is not None and self._lives and not isinstance(error, ClientSecurityError):
            self.interrupt(errors.lost(self._identity.peer, error.message, "It is made again."))
        elif error is not None:
            self.lose(error)
        elif self._lives:
            self._restore()
            self.state = OPEN
            self.events.opened()
        elif self.options.watch_topic_advisories:
            self.request(self.temporaries.watch(), "news of temporary destinations", self._watched)
        else:
            self._watched(request)

    def _watched(self, request: PendingRequest) -> None:
        if request.error is not None:
            self.lose(request.error)
        elif self.state == LOGGING_IN:
            self.state = OPEN
            self._lives = True
            self.events.opened()

    def _silent(self, timeout_ms: int) -> None:
        self.interrupt(errors.silent(self._identity.peer, timeout_ms))

    # --- sessions

    def check_open(self) -> None:
        """
        Raises:
            IllegalStateError: DMQ9001.
        """
        if not self._lives or self.state in (CLOSING, ENDED):
            raise errors.closed("connection")

    def create_session(self, mode: AckMode, *, xa: bool = False) -> OpenWireClientSession:
        self.check_open()
        self._sessions_made += 1
        session_id = SessionId(self.connection_id.value, self._sessions_made)
        session = OpenWireClientSession(self, session_id, mode, xa=xa)
        self.sessions[session_id.value] = session
        self.send(session.info())
        return session

    def close_session(self, session: OpenWireClientSession) -> PendingRequest:
        self.sessions.pop(session.session_id.value, None)
        if self._pending.has_messages:
            why = errors.closed_unanswered("session")
            self.after_ms(_BLOCKED_MS, lambda: self._pending.give_up_messages(why, session.session_id))
        return session.close()

    def unsubscribe(self, name: str) -> PendingRequest:
        """Ends a durable subscription that no consumer reads."""
        self.check_open()
        info = RemoveSubscriptionInfo()
        info.connection_id = self.connection_id
        info.subscription_name = name
        info.client_id = self.client_id
        return self.request(info, f"the end of the durable subscription '{name}'")

    def start(self) -> None:
        """Has messages delivered, and those that came in the meantime first."""
        self.running = True
        for session in self.sessions.values():
            for consumer in session.consumers.values():
                self.events.changed(consumer.waiter)

    def stop(self) -> None:
        """Has none delivered until `start`."""
        self.running = False
        for session in self.sessions.values():
            session.take_back()

    # --- the end

    def close(self) -> PendingRequest:
        """Ends it in order. `ended` follows, when the broker has answered or `close_timeout_ms` has passed."""
        if self.state in (CLOSING, ENDED):
            return finished(_END)
        if self._pending.has_messages:  # where an address has no room for one, the broker answers when it has
            self.close_timeout_ms = min(self.close_timeout_ms or _BLOCKED_MS, _BLOCKED_MS)
        for session in self.sessions.values():
            session.end_batches()
        connected = self.state == OPEN
        self.state = CLOSING
        self.running = False
        if not connected:
            self.lose()
            return finished(_END)
        self.temporaries.end_watch()
        request = PendingRequest(_END)
        self._close_next(request, NOTHING_SEEN)
        return request

    def _close_next(self, request: PendingRequest, seen: int) -> None:
        """Ends one session after the other, then the connection."""
        while self.sessions:
            session = self.sessions.pop(next(iter(self.sessions)))
            if session.transaction.transaction_id is not None:
                session.dispose(partial(self._close_after, session, request, seen))
                return
            session.dispose(lambda: None)
            seen = max(seen, session.last_delivered_sequence)
        remove = RemoveInfo()
        remove.object_id = self.connection_id
        remove.last_delivered_sequence_id = seen

        def bid_farewell(answered: PendingRequest) -> None:
            self.send(ShutdownInfo())
            self._pending.finish(request, answered.response, None)
            self._pending.give_up_messages(errors.closed_unanswered("connection"))
            self.lose()

        self.request(remove, _END, bid_farewell, self.close_timeout_ms)

    def _close_after(self, session: OpenWireClientSession, request: PendingRequest, seen: int) -> None:
        if self.state == CLOSING:
            self._close_next(request, max(seen, session.last_delivered_sequence))
