"""The lease search: which messages of a queue leases take, and how far they were looked for."""

from typing import Final

from delosmq.engine.base.slots import PendingSlots, Slot
from delosmq.engine.dispatch.rotation import DispatchBudget
from delosmq.engine.dispatch.selector_group import SelectorGroup
from delosmq.engine.queues.consumer import ConsumerOptions
from delosmq.model.message import Message
from delosmq.selectors.selector import Selector, parse_selector


class LeaseWish:
    """What the leases of a group take of their queue.

    Attributes:
        selector: messages that match; "" takes all.
        from_sequence, from_ms: those that have this sequence or a higher one, and were accepted then or later; 0 for
            all.
    """

    def __init__(self, selector: str = "", from_sequence: int = 0, from_ms: int = 0) -> None:
        self.selector = selector
        self.from_sequence = from_sequence
        self.from_ms = from_ms
        self.parsed: Selector | None = parse_selector(selector) if selector else None

    @property
    def takes_all(self) -> bool:
        return self.parsed is None and not self.from_sequence and not self.from_ms

    @property
    def key(self) -> tuple[str, int, int]:
        """The same for those that take the same."""
        return self.selector, self.from_sequence, self.from_ms


TAKES_ALL: Final = LeaseWish()


class _Takers(SelectorGroup):
    """A cursor over what one wish takes."""

    def __init__(self, wish: LeaseWish, pending: PendingSlots) -> None:
        super().__init__(ConsumerOptions(selector=wish.parsed), pending, by_load=False, strict=False)
        self._wish = wish
        self.takes_all = wish.takes_all

    def accepts(self, message: Message, budget: DispatchBudget) -> bool:
        wish = self._wish
        if message.sequence < wish.from_sequence or message.timestamp_ms < wish.from_ms:
            return False
        return super().accepts(message, budget)


class LeaseSearch:
    """The search for what one wish takes; groups with the same wish on a queue share it."""

    def __init__(self, wish: LeaseWish, pending: PendingSlots) -> None:
        self._wish = wish
        self._pending = pending
        self._all = _Takers(wish, pending)
        # Looks among messages up to a sequence, and passes over those above it, for as long as that is asked for.
        self._bounded: _Takers | None = None
        self._until: int = 0

    def candidate(self, until: int | None, budget: DispatchBudget) -> Slot | None:
        """The next message, with at most the sequence ``until`` if that is given; None when there is none, or the
        budget is out."""
        if until is None:
            self._end_bounded()
            return self._all.candidate(budget)
        if self._all.takes_all:
            return self._all.candidate_upto(until)
        bounded = self._bounded
        if bounded is None or self._until != until:
            self._end_bounded()
            bounded = _Takers(self._wish, self._pending)
            self._bounded = bounded
            self._until = until
        while True:
            slot = bounded.candidate(budget)
            if slot is None or slot.sequence <= until:
                return slot
            if not budget.spend():
                return None
            bounded.pass_over(slot)

    def pass_over(self, slot: Slot) -> None:
        """Leaves out what `candidate` gave, until `look_again`."""
        (self._bounded or self._all).pass_over(slot)

    def look_again(self) -> None:
        """Looks at everything once more."""
        self._all.look_again()
        self._end_bounded()

    def _end_bounded(self) -> None:
        if self._bounded is not None:
            self._bounded.look_again()
            self._bounded = None
