"""The transactions of one connection, by the names that its peer gave them.

What a transaction rejects is kept in a second one of the engine, which is never committed: rolling it back when the
first is through returns the messages as a NACK does, and till then no other consumer can answer for them.
"""

from typing import Final

from delosmq.engine.api import EngineBroker, Transaction
from delosmq.model.errors import BrokerError, StorageError
from delosmq.sessions.parked_sends import SessionTransaction
from delosmq.sessions.stomp.server import errors

TRANSACTION: Final = "transaction"
OPEN_LIMIT: Final = 100
"""Open transactions per connection; those with a COMMIT under way count too."""
# Each may bring one more for what it rejects.
_ENGINE_LIMIT: Final = 2 * OPEN_LIMIT


class StompTransaction(SessionTransaction):
    def __init__(self, transaction: Transaction) -> None:
        super().__init__(transaction)
        self._rejected: Transaction | None = None

    def rejected(self, broker: EngineBroker) -> Transaction:
        """The one that takes what is rejected."""
        if self._rejected is None:
            self._rejected = broker.transactions.begin(self.transaction.owner, _ENGINE_LIMIT)
        return self._rejected

    def return_rejected(self, broker: EngineBroker) -> None:
        """Gives back what was rejected: the rest has ended."""
        rejected = self._rejected
        if rejected is not None:
            self._rejected = None
            broker.transactions.rollback(rejected)


class StompTransactions:
    """All of one connection."""

    def __init__(self, broker: EngineBroker, owner: str) -> None:
        self._broker = broker
        self._owner = owner
        self._named: dict[str, StompTransaction] = {}
        self._count: int = 0

    def begin(self, name: str) -> None:
        """Handles BEGIN.

        Raises:
            PeerError: the name is taken or empty, or there are too many.
        """
        if not name:
            raise errors.header_wrong(TRANSACTION, "BEGIN", name, "a name that is not empty")
        if name in self._named:
            raise errors.transaction_taken(name)
        if self._count >= OPEN_LIMIT:
            raise errors.too_many_transactions(OPEN_LIMIT)
        self._named[name] = StompTransaction(self._broker.transactions.begin(self._owner, _ENGINE_LIMIT))
        self._count += 1

    def named(self, name: str, command: str) -> StompTransaction:
        """The open transaction of that name.

        Raises:
            PeerError: there is none.
        """
        work = self._named.get(name)
        if work is None:
            raise errors.unknown_transaction(name, command)
        return work

    def take(self, name: str, command: str) -> StompTransaction:
        """The same; its name is free from now on: it ends."""
        work = self.named(name, command)
        del self._named[name]
        return work

    def take_all(self) -> list[StompTransaction]:
        """All that are open, as nothing more will come for them."""
        works = list(self._named.values())
        self._named.clear()
        return works

    def ended(self, work: StompTransaction) -> None:
        """Its commit is through, or was refused: what it rejected returns."""
        self._count -= 1
        work.return_rejected(self._broker)

    def roll_back(self, work: StompTransaction) -> None:
        """Ends it without anything of it happening: what it answered, one way or the other, returns."""
        self._count -= 1
        try:
            if not work.running:
                self._broker.transactions.rollback(work.transaction)
        finally:
            work.return_rejected(self._broker)

    def abandon(self, works: list[StompTransaction]) -> list[BrokerError]:
        """`roll_back` of many, where one that can't be recorded must not keep the others."""
        troubles: list[BrokerError] = []
        for work in works:
            try:
                self.roll_back(work)
            except StorageError as error:
                troubles.append(error)
        return troubles
