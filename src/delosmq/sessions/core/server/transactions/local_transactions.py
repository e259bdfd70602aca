"""The local transaction of a session: it begins with the first message or acknowledgement in it, and another follows.

Source: ServerSessionImpl of Artemis. What fails in it dooms it: its commit rolls back, and says why.
"""

from delosmq.engine.api import EngineBroker, JobWaiter, Transaction
from delosmq.model.errors import BrokerError, StorageError
from delosmq.sessions.core.server.session_port import SessionPort
from delosmq.sessions.parked_sends import Parked, SessionTransaction
from delosmq.wire.core.connection_packets import NullResponse
from delosmq.wire.core.packet import Packet
from delosmq.wire.core.session_packets import XaResponse


class CoreTransaction(SessionTransaction):
    """The local transaction of a session, or its part in a branch.

    Attributes:
        xid: of a branch; empty for a local one.
    """

    def __init__(self, transaction: Transaction, xid: bytes = b"") -> None:
        super().__init__(transaction)
        self.xid = xid


class ParkedEnd(Parked):
    """The end of a transaction, answered once it is through."""

    def __init__(self, session: SessionPort, request: Packet, work: CoreTransaction, broker: EngineBroker) -> None:
        super().__init__(None, work)
        self._session = session
        self._request = request
        self._ending = work
        self._broker = broker

    def carry_out(self, waiter: JobWaiter) -> bool:
        return self._broker.transactions.commit(self._ending.transaction, waiter)

    def answer(self) -> None:
        answer = XaResponse() if self._ending.xid else NullResponse()
        self._session.replies.answer(answer, self._request)

    def refuse(self, error: BrokerError) -> None:
        self._session.refuse(self._request, error)


class LocalTransactions:
    """The local transactions of one session, one after the other."""

    def __init__(self, broker: EngineBroker, owner: str, limit: int) -> None:
        """
        Args:
            limit: how many its connection may have open.
        """
        self._broker = broker
        self._owner = owner
        self._limit = limit
        self._current: CoreTransaction | None = None

    def current(self) -> CoreTransaction:
        """The one in which the session works.

        Raises:
            LimitError: there are too many.
        """
        work = self._current
        if work is None:
            work = CoreTransaction(self._broker.transactions.begin(self._owner, self._limit))
            self._current = work
        return work

    def take(self) -> CoreTransaction | None:
        """The one that ends now; None when nothing was done in it."""
        work = self._current
        self._current = None
        return work

    def roll_back(self, work: CoreTransaction) -> None:
        """Nothing of it happens; what it acknowledged goes back, counted."""
        if not work.running and work.transaction.id in self._broker.transactions.open:
            self._broker.transactions.roll_back(work.transaction)

    def abandon(self, works: list[CoreTransaction]) -> list[BrokerError]:
        """`roll_back` of many, where one that can't be recorded must not keep the others. Gives what could not."""
        troubles: list[BrokerError] = []
        for work in works:
            try:
                self.roll_back(work)
            except StorageError as error:
                troubles.append(error)
        return troubles
