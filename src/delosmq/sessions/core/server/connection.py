"""One connection of a CORE client: pings and topology on channel 0, the beginning of sessions on channel 1.

Each session logs in by itself. What comes for a channel that has none is left out, as in Artemis: a client that has
reconnected may not know yet that its session is gone.
Source: CoreProtocolManager, ActiveMQPacketHandler and RemotingConnectionImpl of Artemis.
"""

from typing import Final

from delosmq.model.errors import BrokerError, PeerError, Scope
from delosmq.model.ids import NOTHING_DURABLE, MonotonicNs
from delosmq.security.access import Login
from delosmq.sessions.core.server import errors
from delosmq.sessions.core.server.connection_sessions import ConnectionSessions
from delosmq.sessions.core.server.liveness import PingLiveness
from delosmq.sessions.core.server.node_packets import redirecting, stopping, topology
from delosmq.sessions.core.server.reattach.replay_cache import MOST_BYTES, MOST_OF_SESSION_BYTES, as_int
from delosmq.sessions.core.server.registry import SessionNames
from delosmq.sessions.core.server.session import CoreSession
from delosmq.sessions.host import NO_TIMER, SessionServices
from delosmq.sessions.login import RedirectError, TurnedAwayError
from delosmq.sessions.machine import SessionMachine
from delosmq.sessions.parked_sends import UNREAD_BYTES
from delosmq.sessions.permissions import Permissions
from delosmq.sessions.protocol_session import ProtocolSession
from delosmq.wire.core.codec import encode_packet
from delosmq.wire.core.connection_packets import (
    CheckFailover,
    CheckFailoverReply,
    CreateSession,
    CreateSessionResponse,
    CreateSessionV2,
    ExceptionPacket,
    Ping,
    ReattachSession,
    ReattachSessionResponse,
    SubscribeTopology,
    SubscribeTopologyV2,
)
from delosmq.wire.core.decoder import CoreDecoder, CoreLimits
from delosmq.wire.core.packet import (
    FIRST_OF_SESSIONS,
    NEWEST_VERSION,
    OLDEST_VERSION,
    PING_CHANNEL,
    SESS_ACKNOWLEDGE,
    SESS_FLOWTOKEN,
    SESS_INDIVIDUAL_ACKNOWLEDGE,
    SESS_RECEIVE_CONTINUATION,
    SESS_RECEIVE_LARGE_MSG,
    SESS_RECEIVE_MSG,
    SESS_SEND,
    SESSION_CHANNEL,
    Packet,
)

NOT_REATTACHED: Final = -1
FEW_WRONG_NAMES: Final = 100
WRONG_NAME_NS: Final = 50_000_000
"""So many wrong names of a connection are answered at once, others after that time."""
LONGEST_NAME: Final = 1_024
"""Characters of what is kept as long as a session."""
_SENT_BY_BROKERS: Final = frozenset((SESS_RECEIVE_MSG, SESS_RECEIVE_LARGE_MSG, SESS_RECEIVE_CONTINUATION))
_BRIEF: Final = frozenset((SESS_SEND, SESS_ACKNOWLEDGE, SESS_INDIVIDUAL_ACKNOWLEDGE, SESS_FLOWTOKEN))
"""Packets that take no time worth a look at the clock, as a rule."""


class CoreConnection(ProtocolSession):
    """What one client says, on all its channels."""

    def __init__(self, machine: SessionMachine, names: SessionNames, now: MonotonicNs) -> None:
        services = machine.services
        settings = services.broker.settings
        self._decoder: CoreDecoder = CoreDecoder(CoreLimits(), _SENT_BY_BROKERS, handshake=True)
        self._ping_liveness: PingLiveness = PingLiveness(
            settings.connection_ttl_override_ms, settings.connection_ttl_check_interval_ms, now
        )
        super().__init__(self._decoder, self._ping_liveness)
        self._machine = machine
        self._services: SessionServices = services
        self._sessions: ConnectionSessions = ConnectionSessions(machine, names, services.node_id, self._ping_liveness)
        self._version: int = 0
        self._pinged: bool = False
        # The one that logs in.
        self._request: CreateSession | None = None
        self._wrong_names: int = 0
        # When the latest of them is answered, before which nothing is read; NO_TIMER for none.
        self._late_answer_at: MonotonicNs = NO_TIMER

    def handle(self, frame: object, now: MonotonicNs) -> bool:
        assert isinstance(frame, Packet)
        session = self._sessions.by_channel.get(frame.channel)
        if session is not None:
            if not session.confirmations.is_new(frame):
                pass
            elif session.must_wait():
                session.wait(frame)
            else:
                self._sessions.carry_out(session, frame)
        elif frame.channel == PING_CHANNEL:
            self._handle_ping_channel(frame)
        elif frame.channel == SESSION_CHANNEL:
            self._handle_session_channel(frame, now)
        return frame.code in _BRIEF

    # -- channels 0 and 1 ------------------------------------------------------------------------------------------

    def _handle_ping_channel(self, packet: Packet) -> None:
        if isinstance(packet, Ping):
            self._pinged = True
            self._ping_liveness.pinged(packet.connection_ttl)
            self._tell(Ping(packet.connection_ttl), PING_CHANNEL)
        elif isinstance(packet, SubscribeTopology):
            version = packet.client_version if isinstance(packet, SubscribeTopologyV2) else 0
            if not self._version and version:
                self._version = version
            event_id = self._services.clock.wall_ms()
            self._tell(topology(version, self._services.node_name(), event_id), PING_CHANNEL)
        else:
            self._machine.host.report(errors.unexpected(packet.code))

    def _handle_session_channel(self, packet: Packet, now: MonotonicNs) -> None:
        if isinstance(packet, CreateSession):
            self._create_session(packet, now)
        elif isinstance(packet, ReattachSession):
            self._reattach(packet, now)
        elif isinstance(packet, CheckFailover):
            self._tell(CheckFailoverReply(True), SESSION_CHANNEL)
        else:
            self._machine.host.report(errors.unexpected(packet.code))

    def _tell(self, packet: Packet, channel: int) -> None:
        """Sends what says nothing about what is recorded; it waits for nothing."""
        packet.channel = channel
        self._machine.outbox.reply_early(NOTHING_DURABLE, encode_packet(packet, self._wire_version()))

    def _wire_version(self) -> int:
        return min(max(self._version, OLDEST_VERSION), NEWEST_VERSION) if self._version else NEWEST_VERSION

    # -- sessions begin --------------------------------------------------------------------------------------------

    def _create_session(self, request: CreateSession, now: MonotonicNs) -> None:
        if request.version < OLDEST_VERSION:
            raise errors.version_too_old(request.version, OLDEST_VERSION)
        channel = request.session_channel_id
        sessions = self._sessions
        if channel < FIRST_OF_SESSIONS or channel in sessions.by_channel:
            raise errors.channel_taken(channel)
        if max(len(request.name), len(request.default_address or "")) > LONGEST_NAME:
            raise errors.too_long("the name or the default address of a session", LONGEST_NAME)
        if len(sessions.by_channel) >= sessions.most_sessions:
            raise errors.too_many_sessions(sessions.most_sessions)
        password = request.password or ""
        request.password = None
        self._request = request
        client_id = request.client_id if isinstance(request, CreateSessionV2) else None
        self._machine.log_in(request.username or "", password, client_id or "", now)

    def admit(self, login: Login, now: MonotonicNs) -> None:
        request = self._request
        assert request is not None  # it logs in
        machine = self._machine
        sessions = self._sessions
        sessions.names.check(request.name, login.user)
        self._request = None
        if self._version < OLDEST_VERSION:
            self._version = request.version
        version = self._wire_version()
        permissions = Permissions(login, self._services.access, self._services.broker)
        session = CoreSession(machine, sessions, permissions, request, version=version)
        sessions.names.enter(session)
        sessions.by_channel[request.session_channel_id] = session
        self._decoder.agreed(version)
        self._tell(CreateSessionResponse(NEWEST_VERSION), SESSION_CHANNEL)

    # -- sessions go on --------------------------------------------------------------------------------------------

    def _reattach(self, request: ReattachSession, now: MonotonicNs) -> None:
        """A client that has connected again wants its session back. It opens another one when it can't have it."""
        sessions = self._sessions
        machine = self._machine
        session = sessions.names.find(request.name)
        if not isinstance(session, CoreSession) or not session.is_reached_by(machine):
            self._answer_wrong_name(now)
            return
        if session in sessions.by_channel.values():
            session.fail(errors.can_not_resume(machine.peer.name, "it is there already"))
        session.lose_connection()
        if session.closed:
            self._tell(ReattachSessionResponse(NOT_REATTACHED, False), SESSION_CHANNEL)
            return
        why = self._why_not(session, request.last_confirmed_command_id)
        if why:
            session.fail(errors.can_not_resume(machine.peer.name, why))
            self._tell(ReattachSessionResponse(NOT_REATTACHED, False), SESSION_CHANNEL)
            return
        machine.go_on_as(session.user)
        if not self._version:
            self._version = session.replies.version
        self._decoder.agreed(session.replies.version)
        handled = sessions.take_over(session, machine, request.last_confirmed_command_id)
        answer = ReattachSessionResponse(as_int(handled), True)
        answer.channel = SESSION_CHANNEL
        # Behind the sync of all that it says is handled.
        machine.outbox.reply(self._services.broker.log.position, encode_packet(answer, self._wire_version()))

    def _why_not(self, session: CoreSession, last: int) -> str:
        """Why a session can't go on here; "" if it can."""
        sessions = self._sessions
        cache = session.replies.cache
        if cache is None or not cache.reaches(last):
            return (
                f"more than {MOST_OF_SESSION_BYTES} bytes of it were sent and not confirmed, or {MOST_BYTES} of all,"
                " or it is not that client's (let a smaller confirmationWindowSize confirm more often)"
            )
        if session.replies.channel in sessions.by_channel:
            return f"channel {session.replies.channel} has another one"
        consumers = len(sessions.consumers) + len(session.consumers.by_id)
        if max(len(sessions.by_channel) + 1, consumers) > sessions.most_sessions:
            return f"there are more than {sessions.most_sessions} sessions or consumers"
        return ""

    def _answer_wrong_name(self, now: MonotonicNs) -> None:
        """Clients that come back after a restart ask for what is not there any more, once for each of their sessions;
        who guesses gets its answers slowly."""
        self._wrong_names += 1
        if self._wrong_names <= FEW_WRONG_NAMES:
            self._tell(ReattachSessionResponse(NOT_REATTACHED, False), SESSION_CHANNEL)
            return
        if self._wrong_names == FEW_WRONG_NAMES + 1:
            self._machine.host.report(errors.wrong_names(self._machine.peer.name, self._wrong_names))
        self._late_answer_at = MonotonicNs(now + WRONG_NAME_NS)

    def refuse_login(self, error: BrokerError | None) -> None:
        request = self._request
        self._request = None
        user = "" if request is None else request.username or ""
        if isinstance(error, RedirectError):
            packet = redirecting(self._version, self._services.node_name(), error)
            if packet is not None:
                self._tell(packet, PING_CHANNEL)
        if isinstance(error, TurnedAwayError):
            self._refuse_session(errors.not_here(error.message))
        else:
            self._refuse_session(errors.login_refused(user) if error is None else error)

    def _refuse_session(self, error: BrokerError) -> None:
        self._tell(ExceptionPacket(int(errors.error_code_of(error)), errors.text_of(error)), SESSION_CHANNEL)

    def login_command(self) -> str:
        return "CREATESESSION"

    def may_wait_to_log_in(self) -> bool:
        return self._pinged and self._ping_liveness.is_watched()

    # -- ends ------------------------------------------------------------------------------------------------------

    def refuse(self, frame: object, error: BrokerError) -> None:
        if isinstance(error, PeerError) and error.scope is Scope.CONNECTION:
            self._machine.fail(error)
        else:
            self._refuse_session(error)

    def send_error(self, error: BrokerError, receipt: str) -> None:
        """A client that is told of the end of its connection reconnects at once; nothing says why."""
        if error.code == "DMQ6008":
            for session in self._sessions.by_channel.values():
                session.flush_confirmations()
            packet = stopping(self._version, self._services.node_name())
            packet.channel = PING_CHANNEL
            self._machine.outbox.reply(self._services.broker.log.position, encode_packet(packet, self._wire_version()))

    def give_up(self) -> None:
        self._request = None
        self._sessions.give_up()

    def lose(self) -> None:
        self._sessions.lose(least_window_bytes=1)
        self.give_up()

    def half_closed(self) -> None:
        # A clean end of the socket with sessions open is no end of these.
        self._sessions.lose(least_window_bytes=1)

    def rights_changed(self) -> None:
        for session in self._sessions.by_channel.values():
            session.producers.rights_changed()

    # -- time and room ---------------------------------------------------------------------------------------------

    def parked_bytes(self) -> int:
        return UNREAD_BYTES if self._late_answer_at != NO_TIMER else self._sessions.parked_bytes()

    def held_bytes(self) -> int:
        return self._sessions.gathered.count

    def next_timer(self) -> MonotonicNs:
        return self._late_answer_at

    def go_on(self, now: MonotonicNs) -> None:
        sessions = self._sessions
        try:
            sessions.go_on()
        except PeerError as error:
            self._machine.fail(error)
            return
        if self._late_answer_at != NO_TIMER and now >= self._late_answer_at:
            self._late_answer_at = NO_TIMER
            self._tell(ReattachSessionResponse(NOT_REATTACHED, False), SESSION_CHANNEL)
        if now >= self._ping_liveness.ttl.next_check_at:
            for session in sessions.by_channel.values():
                session.flush_confirmations()

    def handle_written(self) -> bool:
        touched = False
        outbox = self._machine.outbox
        for stream in outbox.take_written():
            consumer = self._sessions.consumers.get(stream.owner_id)
            if consumer is not None:
                touched = consumer.settle_written() or touched
        if not outbox.room_returned():
            return touched
        for session in self._sessions.by_channel.values():
            session.consumers.room_returned()
        return True

    def beat(self) -> None:
        """Nothing: the client pings, and is answered."""
