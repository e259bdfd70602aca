"""A PostgreSQL of Debian's package for tests: in a directory of its own, on a free port of this machine.

It must not run as root, so it runs as the package's user then. Confirmed means on the disk: fsync is on.
"""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import psycopg
import pytest

from benchmarks.machine import free_port
from delosmq.model.settings import DatabaseStoreSettings
from tests.patience import PATIENCE_S

USER = "broker"
PASSWORD = "of the broker's login"
_SYSTEM_USER = "postgres"
_schemas = count(1)


def binaries() -> Path:
    """Where the newest PostgreSQL of this machine has its programs; the test fails where there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    if (initdb := shutil.which("initdb")) is not None:
        return Path(initdb).resolve().parent
    pytest.fail(
        "no PostgreSQL is installed (Debian, Ubuntu: apt install postgresql); leave these tests out with "
        "-m 'not postgres'"
    )


def on_postgres(url: str, *lines: str) -> tuple[str, str]:
    """The change of broker.xml that puts the store in this database; ``lines`` stand in ``<database-store>``."""
    escaped = url.replace("&", "&amp;")
    store = (
        f"<store><database-store><jdbc-connection-url>{escaped}</jdbc-connection-url><jdbc-user>{USER}"
        f"</jdbc-user><jdbc-password>{PASSWORD}</jdbc-password>{''.join(lines)}</database-store></store>"
    )
    return "<addresses>", f"{store}<addresses>"


class PostgresServer:
    """A server with one database, from the start of `start` to `stop` or `kill`, as often as one likes.

    Args:
        settings: lines of postgresql.conf.
        standby_of: a server that runs, of which this one is to be a standby.

    Attributes:
        port: of 127.0.0.1, the same after each start.
    """

    def __init__(self, *settings: str, standby_of: "PostgresServer | None" = None) -> None:
        self._programs = binaries()
        self._settings = settings
        self._user = _SYSTEM_USER if os.geteuid() == 0 else None
        self.directory = Path(tempfile.mkdtemp(prefix="delosmq-postgres-"))
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()
        if self._user is not None:
            account = pwd.getpwnam(self._user)
            os.chown(self.directory, account.pw_uid, account.pw_gid)
        if standby_of is not None:
            self.follow(standby_of)
            return
        self._run(
            "initdb", "--auth-local=trust", "--auth-host=scram-sha-256", "--username=admin", "--no-sync", "-D", "data"
        )

    def follow(self, primary: "PostgresServer") -> None:
        """Becomes, at its next start, a standby with a copy of what the primary has now; what was here is gone."""
        shutil.rmtree(self.directory / "data", ignore_errors=True)
        where = ["-h", str(primary.directory), "-p", str(primary.port), "-U", "admin"]
        self._run("pg_basebackup", "-D", "data", "-R", "-X", "stream", "-c", "fast", "--no-sync", *where)

    def promote(self) -> None:
        """Returns when this standby is a primary."""
        with self.admin() as connection:
            assert connection.execute("SELECT pg_promote(true, 60)").fetchone() == (True,)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), *arguments]
        subprocess.run(
            command, cwd=self.directory, user=self._user, check=True, capture_output=True, timeout=PATIENCE_S
        )

    def start(self) -> None:
        """Returns when it takes logins."""
        options = [
            *("listen_addresses=127.0.0.1", f"port={self.port}", f"unix_socket_directories={self.directory}"),
            *("fsync=on", "max_connections=40", "shared_buffers=32MB", "restart_after_crash=off", *self._settings),
        ]
        command = [str(self._programs / "postgres"), "-D", "data", *[part for one in options for part in ("-c", one)]]
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(command, cwd=self.directory, user=self._user, stderr=log, stdout=log)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                with self.admin() as connection:
                    if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = 'broker'").fetchone() is None:
                        connection.execute(
                            f"CREATE ROLE {USER} LOGIN PASSWORD '{PASSWORD.replace(chr(39), chr(39) * 2)}'"
                        )
                return
            except psycopg.OperationalError:
                assert self._process.poll() is None, (self.directory / "log").read_text("utf-8")
                assert time.monotonic() < deadline, "PostgreSQL does not come up"
                time.sleep(0.01)

    @contextmanager
    def admin(self) -> Iterator["psycopg.Connection[tuple[object, ...]]"]:
        """A connection that may do everything, and waits for no standby."""
        connection = psycopg.connect(
            host=str(self.directory),
            port=self.port,
            user="admin",
            dbname="postgres",
            autocommit=True,
            options="-c synchronous_commit=local",
        )
        try:
            yield connection
        finally:
            connection.close()

    def schema(self) -> str:
        """A new one, for one broker."""
        name = f"broker{next(_schemas)}"
        with self.admin() as connection:
            connection.execute(f"CREATE SCHEMA {name} AUTHORIZATION {USER}")
        return name

    def settings(self, schema: str, **changed: object) -> DatabaseStoreSettings:
        """Of a store in this schema."""
        options = {"host": "127.0.0.1", "port": str(self.port), "dbname": "postgres"}
        options["options"] = f"-c search_path={schema}"
        given: dict[str, object] = {
            "url": self.url(schema),
            "options": tuple(options.items()),
            "user": USER,
            "password": PASSWORD,
            **changed,
        }
        return DatabaseStoreSettings(**given)  # type: ignore[arg-type]

    def url(self, schema: str, *others: "PostgresServer") -> str:
        """With other servers, that of whichever is the primary."""
        hosts = ",".join(f"127.0.0.1:{server.port}" for server in (self, *others))
        primary = "&targetServerType=primary" if others else ""
        return f"jdbc:postgresql://{hosts}/postgres?currentSchema={schema}{primary}"

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Of the server; its sessions are its children."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """As if the machine had been switched off: nothing is written any more."""
        self._end(signal.SIGQUIT)

    def stop(self) -> None:
        """Ends sessions, and then itself."""
        self._end(signal.SIGINT)

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(PATIENCE_S)
            self._process = None

    def remove(self) -> None:
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)
