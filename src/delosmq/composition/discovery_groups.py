"""The broadcast and discovery groups of a running broker."""

import asyncio
import logging
import uuid

from delosmq.model.settings import BrokerSettings
from delosmq.server.clock import ServerClock
from delosmq.server.discovery.broadcast_group import BroadcastGroup
from delosmq.server.discovery.discovery_group import DiscoveryGroup


class DiscoveryGroups:
    """All groups that broker.xml names.

    Attributes:
        by_name: those that find others, once they `listen`.
    """

    def __init__(self, settings: BrokerSettings, clock: ServerClock, logger: logging.Logger) -> None:
        self.by_name: dict[str, DiscoveryGroup] = {}
        self._settings = settings
        self._clock = clock
        self._logger = logger
        self._broadcasts: list[BroadcastGroup] = []

    def listen(self, node_id: str) -> None:
        """Begins to look for others; before a client is served. Called in the running loop.

        Raises:
            LimitError: a group can't be heard.
        """
        loop = asyncio.get_running_loop()
        for settings in self._settings.discovery_groups:
            group = DiscoveryGroup(settings, node_id, clock=self._clock, logger=self._logger)
            group.start(loop)
            self.by_name[settings.name] = group

    def announce(self, node_id: str) -> None:
        """Tells others of this broker; once it serves clients.

        Raises:
            LimitError: nothing can be sent.
        """
        loop = asyncio.get_running_loop()
        start_id = str(uuid.uuid4())
        for settings in self._settings.broadcast_groups:
            group = BroadcastGroup(settings, node_id, start_id, clock=self._clock, logger=self._logger)
            self._broadcasts.append(group)
            group.start(loop)

    def close(self) -> None:
        """Is heard and hears no more."""
        for broadcast in self._broadcasts:
            broadcast.stop()
        for group in self.by_name.values():
            group.stop()
