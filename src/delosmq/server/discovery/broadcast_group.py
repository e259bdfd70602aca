"""A broadcast group while it runs: its socket, and its timer."""

import asyncio
import logging
import socket

from delosmq.cluster.datagram import FACTORY, AnnouncedConnector, Announcement
from delosmq.cluster.discovery import Broadcast
from delosmq.model.declared.discovery import BroadcastGroupSettings
from delosmq.model.declared.router import ConnectorSettings
from delosmq.server.clock import Appointment, ServerClock
from delosmq.server.discovery.multicast import open_sender
from delosmq.server.peer_log import PeerLog

_NS_PER_MS = 1_000_000


class BroadcastGroup:
    """One broadcast group, on the running loop.

    Args:
        start_id: of this start of the broker.
    """

    def __init__(
        self,
        settings: BroadcastGroupSettings,
        node_id: str,
        start_id: str,
        *,
        clock: ServerClock,
        logger: logging.Logger,
    ) -> None:
        self.name = settings.name
        self._settings = settings
        self._clock = clock
        self._peer_log = PeerLog(logger, remedy="look at the network of this machine")
        announcement = Announcement(node_id, start_id, tuple(_announced(one) for one in settings.connectors))
        self._machine = Broadcast(announcement, settings.broadcast_period_ms * _NS_PER_MS, clock.monotonic_ns())
        self._loop: asyncio.AbstractEventLoop | None = None
        self._socket: socket.socket | None = None
        self._timer: Appointment | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begins to announce.

        Raises:
            LimitError: it can't.
        """
        self._socket = open_sender(self._settings.local_bind_address, self._settings.local_bind_port)
        self._loop = loop
        self._on_timer()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            self._peer_log.close()

    def _on_timer(self) -> None:
        if self._socket is None or self._loop is None:
            return
        if self._machine.handle_timer(self._clock.monotonic_ns()):
            group = (self._settings.group_address, self._settings.group_port)
            try:
                self._socket.sendto(self._machine.datagram, group)
            except OSError as error:
                sentence = f"DMQ6616: broadcast-group '{self.name}' can't announce this broker: {error.strerror}"
                self._peer_log.warning("", f"{sentence}; look at the network and at local-bind-address")
        self._timer = self._clock.call_at(self._loop, self._machine.next_timer(), self._on_timer)


def _announced(connector: ConnectorSettings) -> AnnouncedConnector:
    """As Artemis writes what a connector's URL says: texts."""
    parameters: list[tuple[str, bool | int | str]] = [("host", connector.host), ("port", str(connector.port))]
    if connector.tls:
        parameters.append(("sslEnabled", "true"))
    return AnnouncedConnector(connector.name, FACTORY, tuple(parameters))
