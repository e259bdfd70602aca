"""Transactions that wait for room which only the end of one of them would make.

What a transaction sends takes room of its address at once. So two of them may each hold half of an address and wait for
more: neither ends, and nothing that consumers do helps. The one that would be the last to wait is refused instead.
"""

from delosmq.engine.bindings import Bindings
from delosmq.engine.memory import MemoryLimits
from delosmq.engine.transactions import Transaction
from delosmq.model.errors import LimitError
from delosmq.model.message import Account
from delosmq.model.settings import UNLIMITED, AddressSettings


class Deadlocks:
    """The transactions whose senders wait, and what they hold."""

    def __init__(self, bindings: Bindings, memory: MemoryLimits) -> None:
        self._bindings = bindings
        self._memory = memory
        # By id; what a transaction holds doesn't change while it waits.
        self._waiting: dict[int, Transaction] = {}
        # Of all of them together, by address.
        self._held: dict[str, Account] = {}
        self._held_bytes: int = 0

    def goes_on(self, transaction: Transaction) -> None:
        """It doesn't wait, or not any more."""
        if self._waiting.pop(transaction.id, None) is None:
            return
        transaction.waits_for = ""
        for name, account in transaction.charged.items():
            held = self._held[name]
            held.used_bytes -= account.used_bytes
            held.used_messages -= account.used_messages
            if not held.used_messages:
                del self._held[name]
            self._held_bytes -= account.used_bytes

    def waits(self, transaction: Transaction, address: str) -> None:
        """It is to wait for room of an address.

        Raises:
            LimitError: that would never end.
        """
        self.goes_on(transaction)
        transaction.waits_for = address
        self._waiting[transaction.id] = transaction
        for name, account in transaction.charged.items():
            self._held_bytes += _add(self._held, name, account)
        if not self._is_filled(address, self._held, self._held_bytes):
            return
        others = self._stuck()
        if transaction not in others:
            return
        own = transaction.charged.get(address)
        self.goes_on(transaction)
        raise LimitError(
            "DMQ2650",
            f"transaction {transaction.id} would wait for ever: address '{address}', of which it holds"
            f" {0 if own is None else own.used_bytes} bytes, is filled by {len(others)} open transactions that wait for"
            " each other; roll it back and try again, commit smaller ones, or raise max-size-bytes",
        )

    def _stuck(self) -> list[Transaction]:
        """Those who wait for ever: all but those that room may come for, and whom the end of these helps, and so on."""
        waiting = list(self._waiting.values())
        while True:
            held: dict[str, Account] = {}
            held_bytes = 0
            for transaction in waiting:
                for name, account in transaction.charged.items():
                    held_bytes += _add(held, name, account)
            stuck = [one for one in waiting if self._is_filled(one.waits_for, held, held_bytes)]
            if len(stuck) == len(waiting):
                return stuck
            waiting = stuck

    def _is_filled(self, name: str, held: dict[str, Account], held_bytes: int) -> bool:
        """Whether what these hold leaves an address no room, whatever becomes of all else in it."""
        limit = self._memory.global_max_bytes
        if limit != UNLIMITED and held_bytes >= limit:
            return True
        account = held.get(name)
        address = self._bindings.addresses.get(name)
        return account is not None and address is not None and fills(account, address.settings)


def fills(account: Account, settings: AddressSettings) -> bool:
    """Whether so much is all that an address takes."""
    return (settings.max_size_bytes != UNLIMITED and account.used_bytes >= settings.max_size_bytes) or (
        settings.max_size_messages != UNLIMITED and account.used_messages >= settings.max_size_messages
    )


def _add(held: dict[str, Account], name: str, account: Account) -> int:
    known = held.get(name)
    if known is None:
        known = Account()
        held[name] = known
    known.used_bytes += account.used_bytes
    known.used_messages += account.used_messages
    return account.used_bytes
