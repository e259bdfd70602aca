"""Artemis with its JDBC store on PostgreSQL: a stock broker of Maven Central, with its own defaults for that store."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from interop.routers.artemis import Artemis
from tests.postgres_server import PASSWORD, USER, PostgresServer


class ArtemisOnTables(Artemis):
    """Has tables of its own in a new schema of the server.

    Args:
        jars: the folder with its libraries and the driver of PostgreSQL.
    """

    options = ("-Xmx1g", "-XX:-UsePerfData")

    def __init__(self, directory: Path, jars: Path, server: PostgresServer) -> None:
        super().__init__(directory, jars)
        login = f"user={USER}&amp;password={quote(PASSWORD)}"
        self._url = f"{server.url(server.schema())}&amp;{login}"

    def store(self) -> str:
        driver = "<jdbc-driver-class-name>org.postgresql.Driver</jdbc-driver-class-name>"
        url = f"<jdbc-connection-url>{self._url}</jdbc-connection-url>"
        names = "".join(
            f"<{element}-table-name>{name}</{element}-table-name>"
            for element, name in (
                ("bindings", "BINDINGS"),
                ("message", "MESSAGES"),
                ("large-message", "LARGE_MESSAGES"),
                ("page-store", "PAGE_STORE"),
                ("node-manager-store", "NODE_MANAGER_STORE"),
            )
        )
        return (
            "<persistence-enabled>true</persistence-enabled>"
            f"<store><database-store>{driver}{url}{names}</database-store></store>"
        )

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid
