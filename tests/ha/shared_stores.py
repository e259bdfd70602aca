"""The stores that a pair under load shares, and how an active broker that is paused loses each."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from delosmq.testing import BrokerPair
from tests.chaos.broker_process import ADDRESSES, PASSWORD
from tests.ha.network_lock import take_lock_away
from tests.postgres_server import PostgresServer, on_postgres
from tests.replicated_postgres import ReplicatedPostgres

CHANGES = (
    ("<journal-file-size>64M<", "<journal-file-size>64K<"),
    ("<addresses>", f"<addresses>{ADDRESSES}"),
)
STAYS = "<allow-failback>false</allow-failback>"
WITH_SERVER_LOCK = (sys.executable, "-m", "tests.ha.network_lock")


class SharedStore(ABC):
    """
    Attributes:
        fenced: what a broker that wakes says, one of these.
    """

    fenced: Sequence[str]

    @abstractmethod
    def pair(self, directory: Path) -> BrokerPair:
        """Both stay active until they end."""

    @abstractmethod
    def take_away(self) -> None:
        """From the active broker, which is paused."""

    @abstractmethod
    def crash(self) -> None:
        """The store's own server dies."""

    @abstractmethod
    def restart(self) -> None:
        """It is there again."""


class SharedDirectory(SharedStore):
    """
    Args:
        as_on_a_network: with a lock that is taken away from a broker that is paused.
    """

    fenced = ("another broker",)

    def __init__(self, *, as_on_a_network: bool) -> None:
        self._as_on_a_network = as_on_a_network

    def pair(self, directory: Path) -> BrokerPair:
        command = WITH_SERVER_LOCK if self._as_on_a_network else None
        pair = BrokerPair(directory, CHANGES, backup=STAYS, password=PASSWORD, command=command)
        self._path = pair.shared
        return pair

    def take_away(self) -> None:
        take_lock_away(self._path)

    def crash(self) -> None:
        raise NotImplementedError("a directory has no server that could die")

    def restart(self) -> None:
        raise NotImplementedError("a directory has no server that could die")


class SharedTables(SharedStore):
    """On new tables of a server, which `crash` kills; of two of them the standby is promoted then."""

    fenced = ("DMQ3071", "DMQ3050")

    def __init__(self, server: PostgresServer | ReplicatedPostgres) -> None:
        self._server = server

    def pair(self, directory: Path) -> BrokerPair:
        changes = [*CHANGES, on_postgres(self._server.url(self._server.schema()))]
        return BrokerPair(directory, changes, backup=STAYS, password=PASSWORD)

    def take_away(self) -> None:
        """The lease ends by itself."""

    def crash(self) -> None:
        self._server.kill()

    def restart(self) -> None:
        self._server.start()
