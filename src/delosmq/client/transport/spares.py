"""Connections that ``failover:`` keeps for later: to other brokers than the one in use, agreed, not logged in.

    wanted -> connected -> agreed: spare -> taken by a link whose connection broke
                 ^                    |
                 +---- after a delay -+ lost

Source: FailoverTransport of the Java client (buildBackups).
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from delosmq.client.options.urls import BrokerAddress, ConnectionPlan
from delosmq.client.transport.clocks import LinkClock
from delosmq.client.transport.sockets import BrokerSocket, SocketOwner, connect, timeout_s
from delosmq.sessions.client_errors import ClientError
from delosmq.sessions.openwire.client.spare import OpenWireSpare

_NS_PER_S: Final = 1_000_000_000
_MS_PER_S: Final = 1_000
_SETTLED_S: Final = 1.0
"""A spare that is lost sooner was refused: the next one waits for longer."""


class SpareConnection(SocketOwner):
    """One connection of the pool, until it is taken.

    Attributes:
        machine: what both sides have said.
        socket: to be given another owner.
        transport: None while there is none, and once it is lost.
        agreed: the broker has said what it offers, or the socket is gone.
    """

    def __init__(
        self, address: BrokerAddress, plan: ConnectionPlan, clock: LinkClock, lost: Callable[["SpareConnection"], None]
    ) -> None:
        self.address = address
        self.machine = OpenWireSpare(plan.options.wire_format, str(address), clock)
        self.socket = BrokerSocket(self)
        self.transport: asyncio.Transport | None = None
        self.agreed = asyncio.Event()
        self.gone = asyncio.Event()
        self.made_at_s = 0.0
        self._plan = plan
        self._clock = clock
        self._lost = lost
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_usable(self) -> bool:
        return self.transport is not None and self.machine.error is None

    async def open(self) -> None:
        """
        Raises:
            OSError, UnicodeError, ClientError: it can't be had; nothing is left open then.
        """
        try:
            async with asyncio.timeout(timeout_s(self.address)):
                self.transport = await connect(self.address, self.socket, self._plan.ssl_context)
                self.flush()
                await self.agreed.wait()
        except BaseException:
            await self.close()
            raise
        if not self.is_usable:
            await self.close()
            raise ConnectionResetError("it was closed, or says what can't be read")
        self.made_at_s = asyncio.get_running_loop().time()

    def flush(self) -> None:
        """Writes what there is to say, sets the timer, and ends what is of no use."""
        if self.transport is None:
            return
        if output := self.machine.take_output():
            self.transport.write(output)
        self._cancel_timer()
        if self.machine.error is not None:
            self.transport.abort()
        elif due := self.machine.next_timer():
            delay_s = max(0.0, (due - self._clock.monotonic_ns()) / _NS_PER_S)
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._on_timer)

    def take(self) -> asyncio.Transport:
        """The transport, for another owner of the socket."""
        assert self.transport is not None  # those that are lost are in no pool
        self._cancel_timer()
        return self.transport

    def hear(self) -> None:
        """Counts the broker as heard of: a clock was turned."""
        self.machine.receive(b"")
        self.machine.handle_timer()
        self.flush()

    async def close(self) -> None:
        if self.transport is not None:
            self.transport.abort()
            await self.gone.wait()

    def _on_timer(self) -> None:
        self._timer = None
        self.machine.handle_timer()
        self.flush()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None

    # --- of the socket

    def receive(self, source: BrokerSocket, chunk: bytes) -> None:
        self.machine.receive(chunk)
        if self.machine.theirs is not None or self.machine.error is not None:
            self.agreed.set()
        self.flush()

    def on_lost(self, source: BrokerSocket, cause: Exception | None) -> None:
        self.transport = None
        self._cancel_timer()
        self.agreed.set()
        self.gone.set()
        self._lost(self)

    def has_room(self, *, room: bool) -> None:
        """It has next to nothing to say."""


class SparePool:
    """
    Args:
        usable: the brokers to which there may be spares, the best one first.
    """

    def __init__(self, plan: ConnectionPlan, clock: LinkClock, usable: Callable[[], list[BrokerAddress]]) -> None:
        failover = plan.failover
        self._size = failover.backup_pool_size if failover is not None and failover.backup else 0
        self._plan = plan
        self._clock = clock
        self._usable = usable
        self._spares: dict[BrokerAddress, SpareConnection] = {}
        self._news = asyncio.Event()
        self._failures = 0
        self._filling: asyncio.Task[None] | None = None
        self._resting: set[asyncio.Task[None]] = set()  # they end what they have begun

    def fill(self) -> None:
        """Begins to make those that are missing, and to replace those that are lost."""
        if self._size > 0 and self._filling is None:
            self._filling = asyncio.get_running_loop().create_task(self._fill())

    def rest(self) -> None:
        """Makes none until `fill`; those there are stay."""
        if self._filling is not None:
            self._filling.cancel()
            self._resting.add(self._filling)
            self._filling.add_done_callback(self._resting.discard)
            self._filling = None

    def take(self, wanted: list[BrokerAddress]) -> SpareConnection | None:
        """The first of these brokers to which there is one; it is the caller's now."""
        for address in wanted:
            spare = self._spares.get(address)
            if spare is not None and spare.is_usable:
                del self._spares[address]
                return spare
        return None

    def look_again(self) -> None:
        """There may be other brokers now."""
        self._news.set()

    def hear(self) -> None:
        """A clock was turned, and no broker is silent for it."""
        for spare in list(self._spares.values()):
            spare.hear()

    def drop(self) -> None:
        """Ends all of them."""
        self.rest()
        for spare in self._spares.values():
            if spare.transport is not None:
                spare.transport.abort()

    async def close(self) -> None:
        """As `drop`, and waits for it."""
        self.drop()
        if self._resting:
            await asyncio.wait(self._resting)
        for spare in list(self._spares.values()):
            await spare.close()

    def _on_lost(self, spare: SpareConnection) -> None:
        if self._spares.get(spare.address) is spare:
            del self._spares[spare.address]
            lived_s = asyncio.get_running_loop().time() - spare.made_at_s
            self._failures = 1 if lived_s >= _SETTLED_S else self._failures + 1
            self._news.set()

    async def _fill(self) -> None:
        failover = self._plan.failover
        assert failover is not None  # else there are no spares
        while True:
            self._news.clear()
            complete = await self._look()
            if complete and not self._news.is_set():
                await self._news.wait()
            await asyncio.sleep(failover.delay_ms(max(1, self._failures)) / _MS_PER_S)

    async def _look(self) -> bool:
        """Makes what is missing; whether there are as many as there can be."""
        usable = self._usable()
        for address, spare in list(self._spares.items()):
            if address not in usable:
                del self._spares[address]
                await spare.close()
        for address in usable:
            if len(self._spares) >= self._size:
                break
            if address not in self._spares:
                made = SpareConnection(address, self._plan, self._clock, self._on_lost)
                with suppress(OSError, UnicodeError, ClientError):
                    await made.open()
                    self._spares[address] = made
        if len(self._spares) >= min(self._size, len(usable)):
            return True
        self._failures += 1
        return False
