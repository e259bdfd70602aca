"""A discovery group while it runs: its socket, its timer, and what it tells."""

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Final

from delosmq.cluster.discovery import NO_TIMER, DiscoveredNode, Discovery, Effect, NodeFound, NodeLost
from delosmq.model.declared.discovery import DiscoveryGroupSettings
from delosmq.model.ids import MonotonicNs
from delosmq.model.phrases import one_line
from delosmq.server.clock import Appointment, ServerClock
from delosmq.server.discovery.multicast import open_receiver
from delosmq.server.peer_log import PeerLog

DATAGRAMS_PER_TURN: Final = 16
BYTES_PER_TURN: Final = 32 * 1024
"""Read before others of the loop have their turn, however many datagrams come: below 2 ms."""
LEAST_PERIOD_NS: Final = 100_000_000
"""Between two calls of `DiscoveryGroup.on_change`, which look at all brokers, however many datagrams come."""
_LARGEST: Final = 65_535
_NS_PER_MS: Final = 1_000_000
_SHOWN: Final = 200


class DiscoveryGroup:
    """One discovery group, on the running loop.

    Attributes:
        on_change: called when a broker was found, has changed or is gone; once for all that change in a tenth of a
            second.
    """

    def __init__(
        self, settings: DiscoveryGroupSettings, node_id: str, *, clock: ServerClock, logger: logging.Logger
    ) -> None:
        self.name = settings.name
        self.on_change: list[Callable[[], None]] = []
        self._settings = settings
        self._clock = clock
        self._logger = logger
        self._peer_log = PeerLog(logger, remedy="keep others than brokers from sending to this group")
        self._machine = Discovery(
            node_id,
            refresh_timeout_ns=settings.refresh_timeout_ms * _NS_PER_MS,
            allowed=settings.discovery_allowed,
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._socket: socket.socket | None = None
        self._timer: Appointment | None = None
        self._due: int = 0
        self._listeners_timer: Appointment | None = None
        self._told_at: int | None = None

    @property
    def nodes(self) -> list[DiscoveredNode]:
        """Those that are there, by node id."""
        return self._machine.nodes

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begins to listen.

        Raises:
            LimitError: it can't.
        """
        settings = self._settings
        self._socket = open_receiver(settings.group_address, settings.group_port, settings.local_bind_address)
        self._loop = loop
        loop.add_reader(self._socket, self._on_readable)

    def stop(self) -> None:
        for timer in (self._timer, self._listeners_timer):
            if timer is not None:
                timer.cancel()
        if self._socket is not None and self._loop is not None:
            self._loop.remove_reader(self._socket)
            self._socket.close()
            self._socket = None
            self._peer_log.close()

    def _on_readable(self) -> None:
        if self._socket is None:
            return
        left = BYTES_PER_TURN
        effects: list[Effect] = []
        for _ in range(DATAGRAMS_PER_TURN):
            try:
                datagram, source = self._socket.recvfrom(_LARGEST)
            except (BlockingIOError, InterruptedError):
                break
            except OSError as error:
                self._peer_log.warning("", f"DMQ6614: discovery-group '{self.name}' hears nothing: {error.strerror}")
                break
            effects += self._machine.receive(datagram, str(source[0]), self._clock.monotonic_ns())
            left -= len(datagram)
            if left <= 0:
                break
        self._tell(effects)
        self._arm()

    def _on_timer(self) -> None:
        self._timer = None
        self._due = 0
        self._tell(self._machine.handle_timer(self._clock.monotonic_ns()))
        self._arm()

    def _arm(self) -> None:
        """Looks for silent brokers when the first may be one."""
        due = self._machine.next_timer()
        if self._loop is None or due == NO_TIMER or (self._timer is not None and self._due <= due):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._due = due
        self._timer = self._clock.call_at(self._loop, due, self._on_timer)

    def _tell(self, effects: list[Effect]) -> None:
        changed = False
        for effect in effects:
            if isinstance(effect, NodeFound | NodeLost):
                changed = True
                self._note(effect)
            else:
                self._peer_log.warning(effect.source, f"{effect.reason} (discovery-group '{self.name}')")
        if changed and self._listeners_timer is None:
            now = self._clock.monotonic_ns()
            due = now if self._told_at is None else max(now, self._told_at + LEAST_PERIOD_NS)
            if due == now:
                self._tell_listeners()
            elif self._loop is not None:
                self._listeners_timer = self._clock.call_at(self._loop, MonotonicNs(due), self._tell_listeners)

    def _tell_listeners(self) -> None:
        self._listeners_timer = None
        self._told_at = self._clock.monotonic_ns()
        for listener in self.on_change:
            listener()

    def _note(self, effect: NodeFound | NodeLost) -> None:
        node = effect.node
        where = one_line(f"'{node.node_id}' at {node.host}:{node.port}", _SHOWN)
        what = "lost" if isinstance(effect, NodeLost) else "found" if effect.is_new else "moved"
        self._peer_log.info(node.host, f"DMQ6615: discovery-group '{self.name}': broker {where} is {what}")
