"""Deadlocks: transactions that wait for room which only the end of one of them would make.

What a transaction sends takes room of its address at once. So two of them may each hold half of an address and wait for
more: neither ends, and nothing that consumers do helps. The one that would be the last to wait is refused instead.

To find that out takes time that grows with what all who wait hold. A tick spends a bounded part of it: when that is
used up the transaction waits at first, and is looked at in slices. Should it turn out that it would wait for
ever, it is woken up and refused then.
"""

from collections.abc import Generator, Iterator
from typing import Final

from delosmq.engine.addresses.bindings import Bindings
from delosmq.engine.base.jobs import NEXT_TICK, Jobs, PhasedJob
from delosmq.engine.queues.memory_limits import MemoryLimits
from delosmq.engine.routing.blocked_producers import BlockedProducers
from delosmq.engine.transactions.transaction import EndlessWaitError, Transaction, WaitRefusal
from delosmq.model.errors import LimitError
from delosmq.model.message import Account

AT_ONCE: Final = 500
"""Transactions that wait, and accounts that they hold, that the sends of one tick look at together: about 1 ms."""
PER_SLICE: Final = 1_000
"""Steps of a search, likewise."""


class Deadlocks:
    """The transactions that wait for room, and what they hold.

    Attributes:
        at_once: see `AT_ONCE`.
        spent: how much of that since the last tick.
    """

    def __init__(
        self, bindings: Bindings, memory: MemoryLimits, jobs: Jobs, blocked_producers: BlockedProducers
    ) -> None:
        self._bindings = bindings
        self._memory = memory
        self._jobs = jobs
        self._blocked_producers = blocked_producers
        self.at_once: int = AT_ONCE
        # By id; what a transaction holds doesn't change while it waits.
        self._waiting: dict[int, Transaction] = {}
        # How many these and what they hold are.
        self._size: int = 0
        self.spent: int = 0
        self._job: PhasedJob | None = None
        # A transaction began to wait that was not looked at.
        self._behind: bool = False
        # The search under way in slices, and the transactions that went on since the first of several began.
        self._search: _Search | None = None
        self._gone: set[int] = set()

    def goes_on(self, transaction: Transaction) -> None:
        """It doesn't wait, or not any more."""
        if self._waiting.pop(transaction.id, None) is None:
            return
        transaction.waits_for = ""
        self._size -= 1 + len(transaction.charged)
        if self._search is not None:
            self._gone.add(transaction.id)
            self._search.goes_on(transaction)

    def waits(self, transaction: Transaction, address: str) -> None:
        """It is to wait for room of an address.

        Raises:
            LimitError: that would never end.
        """
        self.goes_on(transaction)
        refusal = transaction.refusal
        transaction.refusal = None
        if refusal is not None and refusal.applies_to(transaction, address):
            raise refusal.error
        transaction.waits_for = address
        self._waiting[transaction.id] = transaction
        self._size += 1 + len(transaction.charged)
        if self._job is None or self._job.over:
            self._job = PhasedJob(self._jobs, self._phases())
            self._jobs.add(self._job)
        if self.spent + self._size > self.at_once:
            self._behind = True
            return
        self.spent += self._size
        search = _Search(self._waiting, self._bindings, self._memory)
        for _ in search.steps():
            pass
        if transaction.id in search.stuck:
            self.goes_on(transaction)
            raise _refusal(transaction, address, len(search.stuck))

    def _phases(self) -> Iterator[int]:
        """In each tick its sends may look again; and what those before left undone is looked at."""
        self.spent = 0
        for nap_ns in self._find_stuck():
            yield nap_ns
            self.spent = 0

    def _find_stuck(self) -> Iterator[int]:
        """Among those who wait for ever it is the first who, with those before it alone, would do so: the one who would
        have been refused at once."""
        while self._behind:
            self._behind = False
            self._gone = set()
            search = yield from self._search_among(list(self._waiting.values()))
            # In the order in which they came; how many of them would not wait for ever, and how many would.
            order = list(search.stuck.values())
            free_through = 0
            stuck_through = len(order)
            while stuck_through - free_through > 1:
                yield NEXT_TICK
                tried = (stuck_through + free_through) // 2
                search = yield from self._search_among(order[:tried])
                if search.stuck:
                    stuck_through = tried
                else:
                    free_through = tried
            if order:
                yield NEXT_TICK
                search = yield from self._search_among(order[:stuck_through])
                self._refuse_later(order[stuck_through - 1], search)
                self._behind = True  # there may be others
            if self._behind:
                yield NEXT_TICK
        self._search = None

    def _search_among(self, transactions: list[Transaction]) -> "Generator[int, None, _Search]":
        """Searches among some of them, but for those who have gone on; gives the search, which is through."""
        waiting = {one.id: one for one in transactions if one.id not in self._gone}
        search = _Search(waiting, self._bindings, self._memory)
        self._search = search
        for number, _ in enumerate(search.steps(), 1):
            if number % PER_SLICE == 0:
                yield NEXT_TICK
        return search

    def _refuse_later(self, transaction: Transaction, search: "_Search") -> None:
        address = transaction.waits_for
        # The settings may be others meanwhile, and with the whole broker full none was looked at when another went.
        if transaction.id in search.stuck and search.is_filled(address):
            error = _refusal(transaction, address, len(search.stuck))
            transaction.refusal = WaitRefusal(transaction, address, error)
            self.goes_on(transaction)
            self._blocked_producers.wake_address(address)


class _Search:
    """Who of those who wait now waits for ever: all but those that room may come for, and whom the end of these helps,
    and so on. Each is looked at once, and each account that they hold at most twice.

    Attributes:
        stuck: those not found to go on yet; when all is done, those who never do. In the order in which they came.
    """

    def __init__(self, waiting: dict[int, Transaction], bindings: Bindings, memory: MemoryLimits) -> None:
        self._bindings = bindings
        self._memory = memory
        self.stuck: dict[int, Transaction] = dict(waiting)
        self._counted: dict[int, list[tuple[str, int, int]]] = {}
        self._charged: dict[str, Account] = {}
        self._charged_bytes: int = 0
        self._waiters: dict[str, list[Transaction]] = {}
        # Addresses to look at, and what those hold who go on.
        self._to_check: list[str] = []
        self._to_subtract: list[list[tuple[str, int, int]]] = []

    def goes_on(self, transaction: Transaction) -> None:
        """One of them doesn't wait any more, for whatever reason."""
        if self.stuck.pop(transaction.id, None) is not None:
            self._to_subtract.append(self._counted.setdefault(transaction.id, []))

    def steps(self) -> Iterator[None]:
        """Searches; yields after each step."""
        for transaction in list(self.stuck.values()):
            yield from self._count(transaction)
        while self._to_subtract or self._to_check:
            if self._to_subtract:
                yield from self._subtract(self._to_subtract.pop())
                continue
            name = self._to_check.pop()
            yield
            if name in self._waiters and not self.is_filled(name):
                for freed in self._waiters.pop(name):
                    self.goes_on(freed)
                    yield

    def is_filled(self, name: str) -> bool:
        """Whether what they hold leaves an address no room, whatever becomes of all else in it."""
        if self._charged_bytes >= self._memory.most_bytes:
            return True
        account = self._charged.get(name)
        address = self._bindings.addresses.get(name)
        return account is not None and address is not None and account.reaches(address.account)

    def _count(self, transaction: Transaction) -> Iterator[None]:
        """Counts what one of them holds, unless it goes on meanwhile."""
        if transaction.id not in self.stuck:
            return
        counted: list[tuple[str, int, int]] = []
        self._counted[transaction.id] = counted
        waiters = self._waiters.setdefault(transaction.waits_for, [])
        if not waiters:
            self._to_check.append(transaction.waits_for)
        waiters.append(transaction)
        yield
        for name, account in list(transaction.charged.items()):
            if transaction.id not in self.stuck:
                return
            known = self._charged.get(name)
            if known is None:
                known = Account()
                self._charged[name] = known
            known.used_bytes += account.used_bytes
            known.used_messages += account.used_messages
            self._charged_bytes += account.used_bytes
            counted.append((name, account.used_bytes, account.used_messages))
            yield

    def _subtract(self, counted: list[tuple[str, int, int]]) -> Iterator[None]:
        """Takes away what one of them holds."""
        yield
        while counted:
            name, used_bytes, used_messages = counted.pop()
            known = self._charged[name]
            known.used_bytes -= used_bytes
            known.used_messages -= used_messages
            self._charged_bytes -= used_bytes
            if name in self._waiters:
                self._to_check.append(name)
            yield


def _refusal(transaction: Transaction, address: str, count: int) -> LimitError:
    own = transaction.charged.get(address)
    return EndlessWaitError(
        "DMQ2650",
        f"transaction {transaction.id} would wait for ever: address '{address}', of which it holds"
        f" {0 if own is None else own.used_bytes} bytes, is filled by {count} open transactions that wait for"
        " each other; roll it back and try again, commit smaller ones, or raise max-size-bytes",
    )
