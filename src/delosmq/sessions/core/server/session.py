"""One session: all that its client has on its channel. `commands` says what its packets do.

Packets are carried out in order. While one goes on in slices, as a long commit does, those behind it wait; other
sessions of the connection, and its pings, go on.
"""

from collections import deque
from typing import Final

from delosmq.engine.api import EngineBroker, xa
from delosmq.model.errors import BrokerError, LimitError
from delosmq.sessions.core.server import errors
from delosmq.sessions.core.server.confirmations import Confirmations
from delosmq.sessions.core.server.connection_port import ConnectionState
from delosmq.sessions.core.server.consumers.consumers import CoreConsumers
from delosmq.sessions.core.server.producers.large_messages import LargeMessage
from delosmq.sessions.core.server.producers.producers import CoreProducers
from delosmq.sessions.core.server.queues.queue_queries import QueueQueries
from delosmq.sessions.core.server.queues.queues import SessionQueues
from delosmq.sessions.core.server.reattach.replay_cache import ReplayCache
from delosmq.sessions.core.server.registry import SessionNames
from delosmq.sessions.core.server.replies import SessionReplies
from delosmq.sessions.core.server.requests import BRANCHES, wants_answer
from delosmq.sessions.core.server.session_port import SessionPort
from delosmq.sessions.core.server.transactions.branches import SessionBranches
from delosmq.sessions.core.server.transactions.local_transactions import CoreTransaction, LocalTransactions
from delosmq.sessions.host import SessionHost
from delosmq.sessions.machine import SessionMachine
from delosmq.sessions.parked_sends import ENTRY_BYTES, UNREAD_BYTES, ParkedSends
from delosmq.sessions.permissions import Permissions
from delosmq.wire.core.connection_packets import CreateSession
from delosmq.wire.core.error_codes import CoreErrorCode
from delosmq.wire.core.packet import (
    CREATE_ADDRESS,
    CREATE_QUEUE,
    CREATE_QUEUE_V2,
    CREATE_SHARED_QUEUE,
    CREATE_SHARED_QUEUE_V2,
    SESS_ACKNOWLEDGE,
    SESS_CLOSE,
    SESS_INDIVIDUAL_ACKNOWLEDGE,
    SESS_SEND,
    SESS_SEND_CONTINUATION,
    CoreXid,
    Packet,
)
from delosmq.wire.core.session_packets import XaResponse

_FOR_LIMITS: Final = {
    CREATE_ADDRESS: CoreErrorCode.SECURITY_EXCEPTION,
    CREATE_QUEUE: CoreErrorCode.SECURITY_EXCEPTION,
    CREATE_QUEUE_V2: CoreErrorCode.SECURITY_EXCEPTION,
    CREATE_SHARED_QUEUE: CoreErrorCode.SECURITY_EXCEPTION,
    CREATE_SHARED_QUEUE_V2: CoreErrorCode.SECURITY_EXCEPTION,
}
"""How a client hears that there are too many of something, as Artemis says it."""


SESSION_BYTES: Final = 16 * 1024
CONSUMER_BYTES: Final = 4 * 1024
"""What one takes, about."""
_SENDS: Final = frozenset((SESS_SEND, SESS_SEND_CONTINUATION))
_ACKNOWLEDGES: Final = frozenset((SESS_ACKNOWLEDGE, SESS_INDIVIDUAL_ACKNOWLEDGE))


class CoreSession(SessionPort):
    """What one client has on one channel.

    Attributes:
        producers, consumers: gone once it has ended.
        closed: it has ended.
    """

    __deletable__ = ("consumers", "producers")

    def __init__(
        self,
        machine: SessionMachine,
        connection: ConnectionState,
        permissions: Permissions,
        request: CreateSession,
        *,
        version: int,
    ) -> None:
        broker = machine.services.broker
        cache = None if request.window_size < 0 else ReplayCache(connection.names.room)
        replies = SessionReplies(
            machine.outbox, broker.log, channel=request.session_channel_id, version=version, cache=cache
        )
        super().__init__(request.name, permissions.user, machine.peer, replies)
        self.host = machine.host
        self.closed: bool = False
        self.broker: EngineBroker = broker
        self.acceptor: str = machine.acceptor.name
        self._names: SessionNames = connection.names
        self._connection: ConnectionState | None = connection
        self._xa: bool = request.xa
        self._auto_commit_sends: bool = request.auto_commit_sends
        self._auto_commit_acks: bool = request.auto_commit_acks
        self._waiting: deque[Packet] = deque()
        self._waiting_bytes: int = 0
        self.parked_sends: ParkedSends = ParkedSends(broker, self)
        destinations = connection.destinations
        self.producers: CoreProducers = CoreProducers(
            machine,
            self,
            self.parked_sends,
            permissions=permissions,
            destinations=destinations,
            default_address=request.default_address or "",
        )
        self.large_message: LargeMessage = LargeMessage(connection.gathered)
        self.consumers: CoreConsumers = CoreConsumers(
            machine,
            self,
            permissions=permissions,
            destinations=destinations,
            by_engine_id=connection.consumers,
            broker_id=connection.broker_id,
            part_bytes=request.min_large_message_size,
            settles_itself=request.pre_acknowledge,
        )
        self.queues: SessionQueues = SessionQueues(
            machine, connection.queues, permissions=permissions, destinations=destinations
        )
        self.queries: QueueQueries = QueueQueries(machine.services, connection.queues, destinations, version)
        self.transactions: LocalTransactions = LocalTransactions(
            broker, machine.peer.connection_id, connection.most_sessions
        )
        self.branches: SessionBranches = SessionBranches(broker, machine.peer.connection_id, permissions.user)
        self.confirmations: Confirmations = Confirmations(request.window_size)

    # -- order -----------------------------------------------------------------------------------------------------

    def must_wait(self) -> bool:
        """Whether a packet that comes now has to wait for those before it."""
        return len(self._waiting) > 0 or self._is_ending()

    def wait(self, packet: Packet) -> None:
        """A packet waits its turn."""
        self._waiting.append(packet)
        self._waiting_bytes += ENTRY_BYTES + packet.size_bytes
        self.parked_changed()

    def waiting_count(self) -> int:
        """How many packets wait their turn."""
        return len(self._waiting)

    def _can_go_on(self) -> bool:
        """Whether the first packet that waits has to wait no longer."""
        if not self._waiting or self._is_ending():
            return False
        return self._waiting[0].code != SESS_CLOSE or not self.parked_sends.parked_bytes

    def next_waiting(self) -> Packet | None:
        """The packet whose turn it is; None when there is none, or it has to wait."""
        if not self._can_go_on():
            return None
        packet = self._waiting.popleft()
        self._waiting_bytes -= ENTRY_BYTES + packet.size_bytes
        return packet

    def note_busy(self) -> None:
        """Tells the connection whether something waits."""
        connection = self._connection
        if connection is not None:
            connection.note_busy(self, self.parked_bytes() > 0)

    def parked_bytes(self) -> int:
        """What waits, messages and packets."""
        parked = self.parked_sends.parked_bytes % UNREAD_BYTES
        return self._waiting_bytes + parked + (ENTRY_BYTES if self._is_ending() else 0)

    def _is_ending(self) -> bool:
        """Whether something goes on in slices before which nothing else may be answered."""
        return self.parked_sends.parked_bytes >= UNREAD_BYTES

    def parked_changed(self) -> None:
        connection = self._connection
        if connection is not None:
            self.note_busy()
            if self._can_go_on():
                self.host.wake_soon()
            connection.parked_changed()

    # -- transactions ----------------------------------------------------------------------------------------------

    def work_for_sends(self) -> CoreTransaction | None:
        """In which a message is sent; None for none."""
        return self._work(self._auto_commit_sends)

    def work_for_acks(self) -> CoreTransaction | None:
        """In which a message is acknowledged; None for none."""
        return self._work(self._auto_commit_acks)

    def _work(self, auto_commit: bool) -> CoreTransaction | None:
        if self._xa:
            return self.branches.current
        return None if auto_commit else self.transactions.current()

    def doom(self, request: Packet, error: BrokerError) -> None:
        """A request failed; if it was one in a transaction, that can only be rolled back."""
        try:
            if request.code in _SENDS:
                work = self.work_for_sends()
            elif request.code in _ACKNOWLEDGES:
                work = self.work_for_acks()
            else:
                return
        except LimitError:
            return  # there is none
        if work is not None:
            work.transaction.set_rollback_only(error)

    def check_unique(self, key: str, value: str) -> None:
        """Whether the session may be the only one with that metadata.

        Raises:
            CoreError: another one has it.
        """
        self._names.check_unique(self, key, value)

    # -- answers ---------------------------------------------------------------------------------------------------

    def message_sent(self, request: Packet) -> None:
        if request.requires_response:
            self.replies.confirm(request, self.parked_sends.position)

    def refuse(self, request: Packet, error: BrokerError) -> None:
        if self._connection is None:
            return
        if isinstance(error, xa.XaError) and request.code in BRANCHES:
            self.replies.answer(XaResponse(True, error.xa_code, errors.text_of(error)), request)
        elif wants_answer(request):
            limits = _FOR_LIMITS.get(request.code, CoreErrorCode.ADDRESS_FULL)
            self.replies.refuse(request, error, for_limits=limits)
        else:
            self.host.report(errors.unanswered(self.peer.name, request.code, error))

    def confirm_handled(self, packet: Packet) -> None:
        """A packet was carried out, or refused."""
        if self.confirmations.handled(packet):
            self.flush_confirmations()

    def flush_confirmations(self) -> None:
        """Tells the client what it need not keep, unless some of it is not carried out yet."""
        if self.confirmations.pending() and not self.parked_sends.parked_bytes:
            self.replies.tell_handled(self.confirmations.take())

    # -- connections -----------------------------------------------------------------------------------------------

    def is_reached_by(self, machine: SessionMachine) -> bool:
        """Whether its client may come back that way."""
        return machine.acceptor.name == self.acceptor and machine.peer.certificate == self.certificate

    def detach(self, host: SessionHost) -> None:
        """Its connection is lost, and it goes on without.

        Args:
            host: has it go on with what waits, and reports.
        """
        self.host = host
        self.replies.detach(self.consumers.streams())

    def attach(self, machine: SessionMachine, connection: ConnectionState, last: int) -> int:
        """Its client comes back by another connection; gives the number of the last packet that was carried out.

        Args:
            last: the number of the last packet that its client had.
        """
        handled = self.confirmations.resume(waits=self.parked_bytes() > 0)
        former = self._connection
        if former is not None:
            former.release(self)
            connection.queues.take_over(former.queues)
        self._connection = connection
        self.host = machine.host
        self.peer = machine.peer
        self.producers.move(machine)
        self.large_message.move(connection.gathered)
        self.consumers.move(connection.consumers)
        self.queues.move(connection.queues)
        self.queries.move(connection.queues)
        self.replies.attach(machine.outbox, self.consumers.streams(), last)
        self.note_busy()
        return handled

    def lose_connection(self) -> None:
        """Its client wants it back by another connection: this one, if there still is one, is of no use any more."""
        connection = self._connection
        if connection is not None:
            connection.lose(least_window_bytes=0)

    def kept_bytes(self) -> int:
        """What it takes while its client is away."""
        cache = self.replies.cache
        kept = SESSION_BYTES + CONSUMER_BYTES * len(self.consumers.by_id) + self.parked_bytes() % UNREAD_BYTES
        return kept if cache is None else kept + cache.kept_bytes()

    # -- end -------------------------------------------------------------------------------------------------------

    def roll_back(self, work: CoreTransaction | None, *, first_counts: bool) -> None:
        """Undoes a local transaction, if there is one, and gives back what is in delivery."""
        if work is not None:
            self.parked_sends.drop([work])
            self.transactions.roll_back(work)
        self.consumers.give_back_all(first_counts=first_counts)

    def drop_transaction(self) -> list[BrokerError]:
        """Undoes the local transaction, so that nothing waits for it. Gives what could not be recorded."""
        work = self.transactions.take()
        if work is None:
            return []
        self.parked_sends.drop([work])
        return self.transactions.abandon([work])

    def roll_back_branch(self, xid: CoreXid) -> None:
        """Undoes a branch.

        Raises:
            XaError: as `Branches.rollback`.
        """
        self.parked_sends.drop([self.branches.work_to_end(xid)])
        self.branches.roll_back(xid)

    def close(self) -> list[BrokerError]:
        """Its client closes it: what is in delivery goes back as if it had never been delivered. Gives what could not
        be recorded."""
        return self._end(lost=False)

    def lose(self) -> list[BrokerError]:
        """Its connection is gone: what was delivered counts. Gives what could not be recorded."""
        return self._end(lost=True)

    def fail(self, reason: BrokerError) -> None:
        connection = self._connection
        if connection is not None:
            self.host.report(reason)
            connection.drop(self)

    def _end(self, *, lost: bool) -> list[BrokerError]:
        if self.closed:
            return []
        self.closed = True
        self.started = False
        self._waiting.clear()
        self._waiting_bytes = 0
        self.replies.close()
        left = [work for work in self.parked_sends.close() if isinstance(work, CoreTransaction) and not work.xid]
        work = self.transactions.take()
        if work is not None:
            left.append(work)
        troubles = self.transactions.abandon(left)
        troubles += self.consumers.close_all(looked_at=lost)
        if lost:
            troubles += self.branches.abandon()
        else:
            self.branches.forget_all()
        self.producers.close()
        self.large_message.drop()
        connection = self._connection
        if connection is not None:
            connection.note_busy(self, False)
        # Ends the cycles, so that nothing waits for the garbage collector.
        self._connection = None
        del self.consumers
        del self.producers
        return troubles
