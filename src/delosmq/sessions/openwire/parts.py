"""The parts of a connection that is logged in, and how they end together."""

from delosmq.engine.broker import Broker
from delosmq.engine.taking import Taking
from delosmq.engine.transactions import TransactionWaiter
from delosmq.model.errors import BrokerError, StorageError
from delosmq.model.settings import AcceptorSettings
from delosmq.model.virtual_topics import CLASSIC
from delosmq.sessions.openwire.consuming import Consuming
from delosmq.sessions.openwire.destinations import Destinations
from delosmq.sessions.openwire.owner import Owner
from delosmq.sessions.openwire.producing import Producing
from delosmq.sessions.openwire.registry import Registry
from delosmq.sessions.openwire.session_ids import SessionIds
from delosmq.sessions.openwire.subscription import Subscription
from delosmq.sessions.openwire.temporary import Temporaries
from delosmq.sessions.openwire.transactions import XA_OK, XA_RDONLY, LocalWork, Transactions, carry_out, end_branch
from delosmq.sessions.outbox import Outbox
from delosmq.sessions.parking import Parked, Parking
from delosmq.sessions.permissions import Permissions
from delosmq.sessions.protocol import Peer, SessionHost, SessionServices
from delosmq.wire.openwire.commands import (
    COMMIT_TWO_PHASE,
    END,
    PREPARE,
    MessageAck,
    ProducerInfo,
    RemoveInfo,
    TransactionId,
    TransactionInfo,
    XATransactionId,
)
from delosmq.wire.openwire.form import WireForm


class ParkedCommand(Parked):
    """A command that is answered once what it asked for is through."""

    def __init__(
        self, command: MessageAck | TransactionInfo | RemoveInfo, owner: Owner, work: LocalWork | None = None
    ) -> None:
        super().__init__(None, work)
        self._command = command
        self._owner = owner

    def answer(self) -> None:
        self._owner.ended(self._command)

    def refuse(self, error: BrokerError) -> None:
        self._owner.refused(self._command, error)


class ParkedEnd(ParkedCommand):
    """A commit or prepare, which may have to wait for messages of its transaction."""

    def __init__(self, broker: Broker, work: LocalWork, command: TransactionInfo, owner: Owner) -> None:
        super().__init__(command, owner, work)
        self._broker = broker
        self._ending = work
        self._kind: int = command.type

    def carry_out(self, waiter: TransactionWaiter) -> bool:
        kind = self._kind
        if kind == END:
            end_branch(self._broker, self._ending)
            return True
        return carry_out(
            self._broker, self._ending, waiter, prepare=kind == PREPARE, one_phase=kind != COMMIT_TWO_PHASE
        )

    def answer(self) -> None:
        self._owner.ended(self._command, XA_RDONLY if self._ending.read_only else XA_OK)


class Parts:
    """All that a connection has."""

    def __init__(
        self,
        host: SessionHost,
        peer: Peer,
        acceptor: AcceptorSettings,
        services: SessionServices,
        *,
        registry: Registry,
        outbox: Outbox,
        form: WireForm,
        permissions: Permissions,
        connection_id: str,
        client_id: str,
        owner: Owner,
    ) -> None:
        broker = services.broker
        rules = CLASSIC if acceptor.virtual_topics is None else acceptor.virtual_topics
        destinations = Destinations(broker.settings.wildcards, broker.queues, rules)
        self.broker = broker
        self._owner = owner
        self.parking: Parking = Parking(broker, owner)
        self.transactions: Transactions = Transactions(broker, peer.connection_id)
        self.sessions: SessionIds = SessionIds(connection_id, acceptor.max_subscriptions)
        self.temporaries: Temporaries = Temporaries(
            broker,
            registry.advisories,
            destinations=destinations,
            permissions=permissions,
            connection_id=peer.connection_id,
            limit=acceptor.max_subscriptions,
        )
        self.producing: Producing = Producing(
            broker,
            self.parking,
            owner,
            destinations=destinations,
            permissions=permissions,
            version=form.version,
            connection_id=peer.connection_id,
            limit=acceptor.max_subscriptions,
        )
        self.consuming: Consuming = Consuming(
            host,
            peer,
            services,
            outbox=outbox,
            form=form,
            permissions=permissions,
            destinations=destinations,
            broker_id=registry.broker_id.value,
            client_id=client_id,
            limit=acceptor.max_subscriptions,
            watchers=registry.watchers,
            hears_advisories=acceptor.support_advisory,
        )

    def end_transaction(self, command: TransactionInfo, transaction_id: TransactionId) -> None:
        """Commits or prepares, and answers once that is done.

        Raises:
            Refusal: there is no such transaction.
        """
        transactions = self.transactions
        if isinstance(transaction_id, XATransactionId):
            work = transactions.branch_to_end(transaction_id)
        else:
            work = transactions.take(transaction_id)
        self.parking.end(ParkedEnd(self.broker, work, command, self._owner))

    def end_association(self, command: TransactionInfo, transaction_id: XATransactionId) -> None:
        """END: this connection has done its part of a branch. Answered once what it sent there is through."""
        work = self.transactions.association(transaction_id)
        if work is None:
            self._owner.ended(command)
        else:
            self.parking.end(ParkedEnd(self.broker, work, command, self._owner))

    def answer_after(self, command: MessageAck, under_way: Taking) -> None:
        """Answers an acknowledgement once it is through."""
        self.parking.answer_after(ParkedCommand(command, self._owner), under_way)

    def leaves_later(self, command: RemoveInfo) -> bool:
        """Whether the end of the connection has to wait for messages that wait for space; its owner is told then. Those
        of transactions that nobody will end don't count."""
        self.parking.forget(self.transactions.open())
        if not self.parking.parked_bytes:
            return False
        self.parking.park(ParkedCommand(command, self._owner))
        return True

    def roll_back(self, transaction_id: TransactionId) -> None:
        """Rolls back. What was acknowledged in it stays with its consumers, whose client delivers it again."""
        transactions = self.transactions
        if isinstance(transaction_id, XATransactionId):
            work = transactions.branch_to_end(transaction_id)
        else:
            work = transactions.take(transaction_id)
        self.parking.forget([work])
        transactions.rollback(work, keep_delivered=True)
        self.consuming.share_room()

    def close(self, last_delivered: int) -> tuple[list[Subscription], list[ProducerInfo], list[BrokerError]]:
        """Ends everything; gives whom others are to be told of, and what could not be recorded."""
        waiting = [work for work in self.parking.close() if isinstance(work, LocalWork)]
        troubles = self.transactions.abandon(waiting + self.transactions.take_all())
        subscriptions = self.consuming.close_all(last_delivered)
        try:
            self.temporaries.close()
        except StorageError as error:
            troubles.append(error)
        return subscriptions, self.producing.remove_all(), troubles
