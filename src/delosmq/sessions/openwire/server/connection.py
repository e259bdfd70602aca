"""The parts of a connection that is logged in, and how they end together."""

from delosmq.engine.api import BulkAck
from delosmq.model.errors import (
    XA_OK,
    BrokerError,
    StorageError,
)
from delosmq.model.ids import MonotonicNs
from delosmq.model.virtual_topics import CLASSIC
from delosmq.sessions.machine import SessionMachine
from delosmq.sessions.openwire.server.advisories.advisories import Advisories
from delosmq.sessions.openwire.server.connection_port import ConnectionPort
from delosmq.sessions.openwire.server.consumers.acknowledgements import MessageAcks
from delosmq.sessions.openwire.server.consumers.consumers import Consumers
from delosmq.sessions.openwire.server.consumers.flow import ConsumerFlow
from delosmq.sessions.openwire.server.consumers.pending_events import PendingEvents
from delosmq.sessions.openwire.server.consumers.subscriber import OpenWireSubscriber
from delosmq.sessions.openwire.server.consumers.subscription import OpenWireSubscription
from delosmq.sessions.openwire.server.destinations import OpenWireDestinations
from delosmq.sessions.openwire.server.ids import SessionIds
from delosmq.sessions.openwire.server.producers import Producers
from delosmq.sessions.openwire.server.registry import Registry
from delosmq.sessions.openwire.server.replies import Replies
from delosmq.sessions.openwire.server.temporary_destinations import OpenWireTemporaryDestinations
from delosmq.sessions.openwire.server.transactions import OpenWireTransaction, OpenWireTransactions
from delosmq.sessions.parked_sends import Parked, ParkedSends
from delosmq.sessions.permissions import Permissions
from delosmq.wire.openwire.commands import (
    END,
    PREPARE,
    IntegerResponse,
    MessageAck,
    MessageCommand,
    RemoveInfo,
    TransactionInfo,
)
from delosmq.wire.openwire.structures import Command, Structure


class ParkedCommand(Parked):
    """A command that is answered once what it asked for is through."""

    def __init__(
        self,
        command: MessageAck | TransactionInfo | RemoveInfo,
        owner: ConnectionPort,
        work: OpenWireTransaction | None = None,
    ) -> None:
        super().__init__(None, work)
        self._command = command
        self._owner = owner

    def answer(self) -> None:
        self._owner.ended(self._command)

    def refuse(self, error: BrokerError) -> None:
        self._owner.refused(self._command, error)


class OpenWireConnection(ConnectionPort):
    """All that a connection has.

    Attributes:
        leaving: the end of the connection, for which nothing has to wait any more.
    """

    def __init__(
        self,
        machine: SessionMachine,
        registry: Registry,
        replies: Replies,
        permissions: Permissions,
        *,
        connection_id: str,
        client_id: str,
    ) -> None:
        acceptor = machine.acceptor
        broker = machine.services.broker
        rules = CLASSIC if acceptor.virtual_topics is None else acceptor.virtual_topics
        destinations = OpenWireDestinations(broker.settings.wildcards, broker.queues, rules)
        self.machine = machine
        self.broker = broker
        self.replies = replies
        self.leaving: RemoveInfo | None = None
        self.advisories: Advisories = registry.advisories
        self.parked_sends: ParkedSends = ParkedSends(broker, machine)
        self.transactions: OpenWireTransactions = OpenWireTransactions(
            broker, machine.peer.connection_id, permissions.user
        )
        self.sessions: SessionIds = SessionIds(connection_id, acceptor.max_subscriptions)
        self.temporaries: OpenWireTemporaryDestinations = OpenWireTemporaryDestinations(
            machine, self.advisories, destinations=destinations, permissions=permissions, peers_id=connection_id
        )
        self.producers: Producers = Producers(
            machine,
            self.parked_sends,
            destinations=destinations,
            permissions=permissions,
            version=replies.form.version,
        )
        self.consumers: Consumers = Consumers(machine, registry.watchers)
        self.acks: MessageAcks = MessageAcks(broker, machine.host, self.consumers)
        self.pending_events: PendingEvents = PendingEvents(machine.host, machine.services.clock, self.consumers)
        self.subscriber: OpenWireSubscriber = OpenWireSubscriber(
            machine,
            self.consumers,
            events=self.pending_events,
            form=replies.form,
            permissions=permissions,
            destinations=destinations,
            broker_id=registry.broker_id.value,
            client_id=client_id,
        )
        self.flow: ConsumerFlow = ConsumerFlow(
            machine, self.consumers, events=self.pending_events, subscriber=self.subscriber
        )

    # -- answers ---------------------------------------------------------------------------------------------------

    def message_sent(self, command: MessageCommand) -> None:
        if command.response_required:
            self.replies.confirm(command, self.parked_sends.position)
        elif self.producers.window_of(command.producer_id) > 0:
            self.replies.acknowledge(command, self.parked_sends.position)

    def ended(self, command: Command, result: int = XA_OK) -> None:
        if isinstance(command, RemoveInfo):
            self.leaving = command  # not from here: it calls the engine
            self.machine.host.wake_soon()
            return
        if isinstance(command, TransactionInfo):
            self.acks.share_room()
        if isinstance(command, TransactionInfo) and command.type == PREPARE:
            self.replies.write(IntegerResponse(command.command_id, result))
        elif isinstance(command, TransactionInfo) and command.type == END:
            self.replies.grant(command)
        else:
            self.replies.answer(command)

    def refused(self, command: Structure, error: BrokerError) -> None:
        self.machine.session.refuse(command, error)

    # -- what others are told --------------------------------------------------------------------------------------

    def announce(self, subscription: OpenWireSubscription) -> None:
        """Tells others of a consumer, and it of what it wants to hear."""
        subscription.info.drop_path()
        consumer_id = subscription.info.consumer_id
        for source in subscription.sources:
            if source.target.advisory and source.consumer is not None and consumer_id is not None:
                self.advisories.listen(consumer_id, source.target.address, source.consumer, self.machine.host)
        self.advisories.consumer_opened(subscription.info)

    def dismiss(self, subscriptions: list[OpenWireSubscription]) -> None:
        """Tells others that consumers are gone."""
        for subscription in subscriptions:
            consumer_id = subscription.info.consumer_id
            if consumer_id is not None:
                self.advisories.leave(consumer_id)
            self.advisories.consumer_closed(subscription.info)

    def set_rollback_only(self, command: Structure, error: BrokerError) -> None:
        """A command failed and its sender waits for no answer, so the end of its transaction has to tell."""
        if isinstance(command, MessageCommand | MessageAck) and command.transaction_id is not None:
            self.transactions.set_rollback_only(command.transaction_id, error)

    def tell_later(self) -> None:
        """Tells others what could not be told where it happened."""
        for info, destination in self.pending_events.take_slow():
            self.advisories.consumer_slow(info, destination)
        self.advisories.go_on()

    def end_slow(self, now: MonotonicNs) -> BrokerError | None:
        """Closes consumers that are slow; gives why the connection has to be closed with them, None when it goes on."""
        ends = self.flow.take_slow_ends(now)
        if ends is None:
            return None
        for control in ends.controls:
            self.replies.write(control)
        self.dismiss(ends.overdue)
        return ends.failure

    def answer_after(self, command: MessageAck, under_way: BulkAck) -> None:
        """Answers an acknowledgement once it is through."""
        self.parked_sends.answer_after(ParkedCommand(command, self), under_way)

    def leaves_later(self, command: RemoveInfo) -> bool:
        """Whether the end of the connection has to wait for messages that wait for space; its owner is told then. Those
        of transactions that will not be ended don't count."""
        self.parked_sends.drop(self.transactions.open())
        if not self.parked_sends.parked_bytes:
            return False
        self.parked_sends.park(ParkedCommand(command, self))
        return True

    def close(self, last_delivered: int, *, keep_sends: bool = False) -> list[BrokerError]:
        """Ends everything, and tells others; gives what could not be recorded.

        Args:
            keep_sends: but for messages that wait for space; see `ParkedSends.outlive`.
        """
        left = self.parked_sends.outlive() if keep_sends else self.parked_sends.close()
        waiting = [work for work in left if isinstance(work, OpenWireTransaction)]
        troubles = self.transactions.abandon(waiting + self.transactions.take_all())
        subscriptions = self.consumers.close_all(last_delivered)
        try:
            self.temporaries.close()
        except StorageError as error:
            troubles.append(error)
        self.dismiss(subscriptions)
        for producer in self.producers.remove_all():
            self.advisories.producer_closed(producer)
        return troubles
