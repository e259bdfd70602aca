"""The sessions of one connection, while it is there and while they wait for their client to come back by another one.

    attached -> (the connection is lost) detached -> (REATTACH) attached to another connection
       |                                    |
       +-> closed <-------------------------+ nobody came until the TTL ended

Detached sessions go on with what they have begun, and get no messages.
Source: RemotingServiceImpl and ServerSessionPacketHandler of Artemis for when they wait, and how long.
"""

from delosmq.engine.api import EngineBroker
from delosmq.model.errors import BrokerError, InvariantError, PeerError, Scope, StorageError
from delosmq.model.ids import MonotonicNs
from delosmq.security.access import LoginAttempt
from delosmq.sessions.core.server import errors
from delosmq.sessions.core.server.commands import COMMANDS
from delosmq.sessions.core.server.connection_port import ConnectionState
from delosmq.sessions.core.server.liveness import PingLiveness
from delosmq.sessions.core.server.registry import DetachedConnection, SessionNames
from delosmq.sessions.core.server.session import CoreSession
from delosmq.sessions.core.server.session_port import SessionPort
from delosmq.sessions.host import SessionHost
from delosmq.sessions.machine import SessionMachine
from delosmq.wire.core.packet import SESS_CLOSE, Packet


class ConnectionSessions(ConnectionState):
    """The sessions of one connection, by channel.

    Attributes:
        busy: those of which something waits.
    """

    def __init__(self, machine: SessionMachine, names: SessionNames, broker_id: bytes, liveness: PingLiveness) -> None:
        super().__init__(machine, names, broker_id)
        self.by_channel: dict[int, CoreSession] = {}
        self.busy: dict[SessionPort, None] = {}
        self.broker: EngineBroker = machine.services.broker
        self._host: SessionHost = machine.host
        self._peer = machine.peer
        self._liveness = liveness
        # None once its sessions are detached.
        self._machine: SessionMachine | None = machine

    # -- packets ---------------------------------------------------------------------------------------------------

    def carry_out(self, session: CoreSession, packet: Packet) -> None:
        """One packet of a session; it is told what is wrong with it.

        Raises:
            PeerError: the packet is malformed, which ends the connection.
        """
        if packet.code == SESS_CLOSE:
            self._close(session, packet)
            return
        command = COMMANDS.get(packet.code)
        if command is None:
            self._host.report(errors.unexpected(packet.code))
        else:
            try:
                command(session, packet)
            except InvariantError:
                raise
            except BrokerError as error:
                if isinstance(error, PeerError) and error.scope is Scope.CONNECTION:
                    raise
                session.doom(packet, error)
                session.refuse(packet, error)
        session.confirm_handled(packet)

    def _close(self, session: CoreSession, packet: Packet) -> None:
        """The end of a session, once all that it sent is where it belongs. Those of transactions will not be ended."""
        self._report(session.drop_transaction())
        if session.parked_sends.parked_bytes:
            session.wait(packet)
            return
        session.confirm_handled(packet)
        session.flush_confirmations()
        self.remove(packet.channel, lost=False)
        session.replies.part(packet, session.parked_sends.position)

    def go_on(self) -> None:
        """Goes on with what waits.

        Raises:
            StorageError, PeerError: the connection fails.
        """
        if self.busy:
            for session in list(self.by_channel.values()):
                self._go_on_with(session)

    def _go_on_with(self, session: CoreSession) -> None:
        session.parked_sends.go_on()
        waiting = session.waiting_count()
        while waiting > 0 and not session.closed:
            waiting -= 1
            packet = session.next_waiting()
            if packet is None:
                break
            self.carry_out(session, packet)
        session.note_busy()

    def note_busy(self, session: SessionPort, busy: bool) -> None:
        if busy:
            self.busy[session] = None
        else:
            self.busy.pop(session, None)

    def parked_changed(self) -> None:
        machine = self._machine
        if machine is not None:
            machine.parked_changed()

    def parked_bytes(self) -> int:
        """What of them waits."""
        busy = self.busy
        if not busy:
            return 0
        return sum([session.parked_bytes() for session in self.by_channel.values() if session in busy])

    # -- other connections -----------------------------------------------------------------------------------------

    def lose(self, *, least_window_bytes: int) -> None:
        machine = self._machine
        if machine is None:
            return
        for channel, session in list(self.by_channel.items()):
            if session.confirmations.window_bytes < least_window_bytes:
                self.remove(channel, lost=True)
        if self.by_channel:
            self._machine = None
            detached = DetachedSessions(self, self._host, self._liveness)
            self._host = detached.host
            for session in self.by_channel.values():
                session.detach(detached.host)
            self.names.add_detached(detached)
        machine.end(None)

    def release(self, session: SessionPort) -> None:
        self.busy.pop(session, None)
        for channel, known in list(self.by_channel.items()):
            if known is session:
                del self.by_channel[channel]
        if not self.by_channel:
            self._host.wake_soon()

    def take_over(self, session: CoreSession, machine: SessionMachine, last: int) -> int:
        """A session that waits goes on here; gives the number of the last of its packets that was carried out.

        Args:
            last: the number of the last packet that its client had.
        """
        handled = session.attach(machine, self, last)
        self.by_channel[session.replies.channel] = session
        session.consumers.room_returned()
        return handled

    # -- end -------------------------------------------------------------------------------------------------------

    def drop(self, session: SessionPort) -> None:
        for channel, known in list(self.by_channel.items()):
            if known is session:
                self.remove(channel, lost=True)

    def remove(self, channel: int, *, lost: bool) -> None:
        """A session ends.

        Args:
            lost: not by its client's wish.
        """
        session = self.by_channel.pop(channel)
        self.names.leave(session)
        self._report(session.lose() if lost else session.close())

    def _report(self, troubles: list[BrokerError]) -> None:
        """What could not be recorded as something ended."""
        for trouble in troubles:
            self._host.report(errors.not_given_back(self._peer.name, trouble))

    def give_up(self) -> None:
        """The connection has ended, and with it all that does not wait for its client."""
        if self._machine is not None:
            self.remove_all()

    def remove_all(self) -> None:
        """Ends all, and what ends with the connection."""
        for channel in list(self.by_channel):
            self.remove(channel, lost=True)
        try:
            self.queues.close()
        except InvariantError:
            raise
        except BrokerError as error:
            self._report([error])

    def not_come_back(self) -> BrokerError:
        """Why sessions are closed that still wait."""
        return errors.not_come_back(self._peer.name, len(self.by_channel), self._liveness.ttl.ttl_ms)


class DetachedSessions(DetachedConnection):
    """The sessions of a lost connection, until the last of them has another one, or the TTL has ended.

    Attributes:
        host: of those sessions.
    """

    def __init__(self, sessions: ConnectionSessions, host: SessionHost, liveness: PingLiveness) -> None:
        """
        Args:
            host: of the connection; for the log.
        """
        every = list(sessions.by_channel.values())
        kept = sum([session.kept_bytes() for session in every])
        super().__init__(len(every), kept + sessions.gathered.count)
        self.host: DetachedHost = DetachedHost(self, host)
        self._sessions: ConnectionSessions | None = sessions
        self._broker = sessions.broker
        self._liveness = liveness
        self._woken: bool = False
        liveness.connection_lost()
        self._broker.timers.at(liveness.next_timer(), self)

    def on_timer(self, now: MonotonicNs) -> None:
        sessions = self._sessions
        if sessions is None:
            return
        self._woken = False
        try:
            sessions.go_on()
        except (StorageError, PeerError) as error:
            self.end(error)
            return
        liveness = self._liveness
        if not sessions.by_channel:
            self.end(None)
        elif now >= liveness.next_timer():
            if liveness.is_silent(now, waits_for_us=False):
                self.end(sessions.not_come_back())
            else:
                self._broker.timers.at(liveness.next_timer(), self)

    def end(self, reason: BrokerError | None) -> None:
        sessions = self._sessions
        if sessions is not None:
            self._sessions = None
            if reason is not None:
                self.host.report(reason)
            sessions.names.remove_detached(self)
            sessions.remove_all()

    def wake_soon(self) -> None:
        """Goes on in the next tick."""
        if not self._woken:
            self._woken = True
            self._broker.timers.at(self._broker.clock.monotonic_ns(), self)


class DetachedHost(SessionHost):
    """Stands in for the connection of sessions that have none."""

    def __init__(self, detached: DetachedSessions, former: SessionHost) -> None:
        self._detached = detached
        self._former = former

    def wake_soon(self) -> None:
        self._detached.wake_soon()

    def report(self, trouble: BrokerError) -> None:
        self._former.report(trouble)

    def write_wanted(self) -> None:
        """Nothing: there is no outbox."""

    def verify(self, attempt: LoginAttempt, password: str) -> None:
        raise InvariantError("DMQ5658", "a session that waits for its client asks for a login")

    def finish(self, reason: BrokerError | None) -> None:
        raise InvariantError("DMQ5659", "a session that waits for its client ends its connection")
