"""Producers that wait for room: their address is full, or the store takes no durable messages for now."""

from delosmq.engine.addresses.address import Address, SpaceWaiter
from delosmq.engine.addresses.bindings import Bindings
from delosmq.engine.base.events import EngineEvents
from delosmq.engine.queues.memory_limits import MemoryLimits
from delosmq.model.errors import LimitError


class BlockedProducers:
    """The producers that wait, by address, in the order in which they are woken."""

    def __init__(
        self, bindings: Bindings, memory: MemoryLimits, events: EngineEvents, *, ordinary_message_bytes: int
    ) -> None:
        self._bindings = bindings
        self._memory = memory
        self._events = events
        self._ordinary_bytes: int = ordinary_message_bytes
        self._blocked: list[Address] = []
        # Those that wait with a large message are woken before others, which could use up in each round what the store
        # made ready for it.
        self._first: list[SpaceWaiter] = []

    def is_full(self, address: str) -> bool:
        """Whether an address is at its limit, or the broker is; one that does not exist never is."""
        target = self._bindings.addresses.get(address)
        return target is not None and self._memory.is_full(target)

    def wait(self, address: str, waiter: SpaceWaiter, *, size_bytes: int = 0) -> None:
        """Registers for one `SpaceWaiter.on_space` after a send was BLOCKED.

        Args:
            size_bytes: of the message, encoded: a large one goes before others.
        """
        target = self._bindings.addresses[address]
        if not target.blocked:
            target.blocked = True
            self._blocked.append(target)
            self._events.address_blocked(address)
        if size_bytes > self._ordinary_bytes:
            self._put_first(target, waiter)
        else:
            target.waiters.append(waiter)

    def _put_first(self, target: Address, waiter: SpaceWaiter) -> None:
        """Puts a waiter before all others but those that are first already."""
        first = self._first
        waiters = target.waiters
        at = 0
        while at < len(waiters) and waiters[at] in first:
            at += 1
        waiters.insert(at, waiter)
        if at == 0 and target in self._blocked:  # else its waiters are about to be woken
            self._blocked.remove(target)
            place = 0
            while place < len(self._blocked) and self._is_first(self._blocked[place]):
                place += 1
            self._blocked.insert(place, target)
        first.append(waiter)

    def _is_first(self, address: Address) -> bool:
        return len(address.waiters) > 0 and address.waiters[0] in self._first

    def _take_waiters(self, address: Address) -> list[SpaceWaiter]:
        waiters = address.waiters
        address.waiters = []
        if self._first:
            self._first = [waiter for waiter in self._first if waiter not in waiters]
        return waiters

    def cancel(self, address: str, waiter: SpaceWaiter) -> None:
        """Takes a registration back; harmless when it is gone."""
        target = self._bindings.addresses.get(address)
        if target is not None and waiter in target.waiters:
            target.waiters.remove(waiter)
            if not target.waiters and target in self._blocked:  # else its turn in `wake` is to come
                self._blocked.remove(target)
                target.blocked = False
                self._events.address_unblocked(address)
        if waiter in self._first:
            self._first.remove(waiter)

    def timed_out(self, address: str) -> LimitError:
        """Why a send that waited for ``block-timeout`` fails."""
        timeout_ms = self._bindings.settings_of(address).block_timeout
        return LimitError(
            "DMQ2652",
            f"'{address}' had no room for the message for {timeout_ms} ms (block-timeout); try again later, or let"
            " it wait longer",
        )

    def wake_address(self, name: str) -> None:
        """Wakes the producers that wait for room of an address, whether it has any or not. Called from a tick."""
        address = self._bindings.addresses.get(name)
        if address is None or not address.waiters:
            return
        waiters = self._take_waiters(address)
        place = self._blocked.index(address)
        del self._blocked[place]
        address.blocked = False
        self._events.address_unblocked(name)
        for waiter in waiters:
            waiter.on_space()
        # When its producers wait again, the address keeps its turn among the others.
        if address.blocked and self._blocked.index(address) > place:
            self._blocked.remove(address)
            self._blocked.insert(place, address)

    def wake(self) -> None:
        """Wakes the producers that wait for an address that has room again. Called each tick."""
        if not self._memory.released:
            return
        self._memory.released = False
        if not self._blocked:
            return
        blocked = self._blocked
        self._blocked = []
        for address in blocked:
            if address.waiters and self._memory.is_full(address):
                self._blocked.append(address)
                continue
            waiters = self._take_waiters(address)
            address.blocked = False
            self._events.address_unblocked(address.name)
            for waiter in waiters:
                waiter.on_space()
