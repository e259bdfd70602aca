"""Batches that are staged and not published: which attempt at each goes on, and which gives way when several wait.

What is staged takes room of its addresses and leaves it only when its batch is published or discarded. So two batches
may each hold a part of an address and wait for more, and nothing that consumers do helps. `Deadlocks` finds that among
transactions that are open; here it is found among batches, most of which is prepared already.
"""

from typing import Final

from delosmq.engine.addresses.bindings import Bindings
from delosmq.engine.base.timers import NS_PER_MS
from delosmq.engine.queues.memory_limits import MemoryLimits
from delosmq.engine.transactions.transaction import EndlessWaitError, StagedPart, Transaction
from delosmq.model.errors import LimitError
from delosmq.model.message import Account
from delosmq.model.ports import Clock

STILL_WAITS_NS: Final = 20_000 * NS_PER_MS
"""A batch that found no room counts as waiting for so long: a client pauses for up to 8 s before it asks again."""
ENDED_ATTEMPTS: Final = 8
ENDED_RUNS: Final = 256
"""Remembered for a batch, so that late calls of theirs are refused."""
LOOKED_AT: Final = 100
"""Batches that wait, of which the oldest are looked at together: about 1 ms."""
NAMED: Final = 3
"""Batches that a sentence names."""

Key = tuple[str, str, int]


class UnpublishedBatch:
    """The parts of one batch that are not published.

    Attributes:
        attempt: the one that goes on, "" while none said its name; ended: those before it; ended_runs: of its tasks,
            that had to give way.
        parts: by id of their transactions, which grow.
        waits_for: the address that had no room for it, "" for none; waited_ns: monotonic, when that was.
    """

    def __init__(self, application: str, number: int, made_by: str) -> None:
        self.application = application
        self.number = number
        self.made_by = made_by
        self.attempt: str = ""
        self.ended: list[str] = []
        self.ended_runs: list[str] = []
        self.parts: dict[int, Transaction] = {}
        self.waits_for: str = ""
        self.waited_ns: int = 0

    def begin_attempt(self, attempt: str) -> list[Transaction]:
        """Another attempt goes on from now on; gives the parts of those before."""
        if self.attempt not in ("", attempt):
            self.ended.append(self.attempt)
            del self.ended[:-ENDED_ATTEMPTS]
            self.ended_runs = []
        self.attempt = attempt
        return [one for one in self.parts.values() if one.part is not None and one.part.attempt != attempt]

    def end_runs(self, transactions: list[Transaction]) -> None:
        """Earlier runs of a task, whose parts these are, give way to a later one."""
        for one in transactions:
            if one.part is not None and one.part.run not in self.ended_runs:
                self.ended_runs.append(one.part.run)
        del self.ended_runs[:-ENDED_RUNS]

    def began_at(self) -> int:
        """Grows from batch to batch."""
        return min(self.parts)

    def is_staged_anywhere(self) -> bool:
        return any(one.part is not None and one.part.is_staged for one in self.parts.values())

    def add_held(self, address: str, held: Account) -> int:
        """Counts what it holds of an address; gives how many bytes it holds of all."""
        total_bytes = 0
        for one in self.parts.values():
            if one.part is None or one.part.is_ending:
                continue
            for name, account in one.charged.items():
                total_bytes += account.used_bytes
                if name == address:
                    held.used_bytes += account.used_bytes
                    held.used_messages += account.used_messages
        return total_bytes


class UnpublishedBatches:
    """All of them, by user, application and number."""

    def __init__(self, bindings: Bindings, memory: MemoryLimits, clock: Clock) -> None:
        self._bindings = bindings
        self._memory = memory
        self._clock = clock
        self._all: dict[Key, UnpublishedBatch] = {}
        self._waiting: dict[Key, UnpublishedBatch] = {}

    # -- parts ---------------------------------------------------------------------------------------------------

    def add(self, transaction: Transaction) -> None:
        """Takes a part in, one of before a restart too: the newest says which attempt goes on."""
        part = transaction.part
        assert part is not None
        key = _key(part)
        batch = self._all.get(key)
        if batch is None:
            batch = UnpublishedBatch(part.application, part.batch, part.made_by)
            self._all[key] = batch
        if part.attempt and (not batch.parts or transaction.id > max(batch.parts)):
            batch.attempt = part.attempt
        batch.parts[transaction.id] = transaction

    def remove(self, transaction: Transaction) -> None:
        """A part is published, discarded or given up."""
        part = transaction.part
        assert part is not None
        key = _key(part)
        batch = self._all.get(key)
        if batch is None:
            return
        batch.parts.pop(transaction.id, None)
        if not batch.parts:
            del self._all[key]
            self._waiting.pop(key, None)

    def of(self, part: StagedPart) -> UnpublishedBatch | None:
        return self._all.get(_key(part))

    # -- runs of a task ------------------------------------------------------------------------------------------

    def other_runs(self, transaction: Transaction, *, later: bool) -> list[Transaction]:
        """What earlier runs of the task that stages this part have staged, or later ones. A run is as old as the first
        part that is there of it."""
        part = transaction.part
        batch = None if part is None else self.of(part)
        if part is None or batch is None or not part.run:
            return []
        runs: dict[str, list[Transaction]] = {}
        for one in batch.parts.values():
            other = one.part
            if other is not None and not other.is_ending and (other.attempt, other.task) == (part.attempt, part.task):
                runs.setdefault(other.run, []).append(one)
        began_at = min([one.id for one in runs.get(part.run, [transaction])])
        found: list[Transaction] = []
        for run, transactions in runs.items():
            if run != part.run and (min([one.id for one in transactions]) > began_at) == later:
                found.extend(transactions)
        return found

    # -- waiting -------------------------------------------------------------------------------------------------

    def goes_on(self, part: StagedPart) -> None:
        """There was room for it."""
        part.has_waited = False
        batch = self._waiting.pop(_key(part), None)
        if batch is not None:
            batch.waits_for = ""

    def waits(self, part: StagedPart, address: str) -> None:
        """A part is to wait for room of an address.

        Raises:
            LimitError: its batch fills the address by itself, or would wait for batches that wait for it.
            EndlessWaitError: likewise, and nothing of it is staged yet, so that it may try again.
        """
        batch = self.of(part)
        assert batch is not None
        part.has_waited = True
        batch.waits_for = address
        batch.waited_ns = self._clock.monotonic_ns()
        self._waiting[_key(part)] = batch
        if self._is_filled(address, [batch]):
            held = Account()
            batch.add_held(address, held)
            raise LimitError(
                "DMQ2693",
                f"batch {part.batch} of '{part.application}' is larger than address '{address}' takes:"
                f" {held.used_messages} messages of it ({held.used_bytes} bytes) are staged and fill the address; make"
                " smaller batches (maxOffsetsPerTrigger), or raise max-size-bytes",
            )
        stuck = self._stuck()
        # The youngest gives way: what the others have staged is older, and one of them goes on then.
        if batch not in stuck or any(other.began_at() > batch.began_at() for other in stuck):
            return
        sentence = (
            f"batch {part.batch} of '{part.application}' would wait for ever: address '{address}' is filled by batches"
            f" that wait for each other: {self.held_there(address, part.made_by)}; run it again when the others are"
            " published, discard what comes to nothing (`delosmq staged discard`), or raise max-size-bytes"
        )
        if batch.is_staged_anywhere():
            raise LimitError("DMQ2699", sentence)
        raise EndlessWaitError("DMQ2699", sentence)

    def _stuck(self) -> list[UnpublishedBatch]:
        """Of the batches that wait, those for whom there is no room whatever becomes of all but them."""
        now = self._clock.monotonic_ns()
        for key, batch in list(self._waiting.items()):
            if now - batch.waited_ns > STILL_WAITS_NS:
                batch.waits_for = ""
                del self._waiting[key]
        left = sorted(self._waiting.values(), key=lambda one: one.began_at())[:LOOKED_AT]
        while left:
            filled = {name: self._is_filled(name, left) for name in {one.waits_for for one in left}}
            stuck = [one for one in left if filled[one.waits_for]]
            if len(stuck) == len(left):
                break
            left = stuck
        return left

    def _is_filled(self, name: str, batches: list[UnpublishedBatch]) -> bool:
        """Whether what they hold leaves an address no room."""
        address = self._bindings.addresses.get(name)
        held = Account()
        total_bytes = 0
        for batch in batches:
            total_bytes += batch.add_held(name, held)
        return total_bytes >= self._memory.most_bytes or (address is not None and held.reaches(address.account))

    def held_there(self, address: str, user: str) -> str:
        """What is staged for an address, for a sentence: the largest batches of that user by name, others without."""
        found: list[tuple[int, str]] = []
        others = 0
        for batch in self._all.values():
            held = Account()
            batch.add_held(address, held)
            if not held.used_messages:
                continue
            if batch.made_by == user:
                what = f"batch {batch.number} of '{batch.application}' {held.used_messages} messages"
                found.append((held.used_bytes, f"{what} ({held.used_bytes} bytes)"))
            else:
                others += 1
        found.sort(reverse=True)
        words = [what for _, what in found[:NAMED]]
        more = others + len(found) - len(words)
        if more:
            words.append(f"{more} more")
        return f"staged there: {', '.join(words)}" if words else "nothing is staged there"


def _key(part: StagedPart) -> Key:
    return part.made_by, part.application, part.batch
