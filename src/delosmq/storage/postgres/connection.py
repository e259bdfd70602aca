"""One connection to PostgreSQL, by libpq's calls that do not block: each wait has an end and can be broken off.

psycopg's cursors are not used: of a commit they would do in ten steps of Python, each of which wants the interpreter
lock back from a busy loop, what is one send and one wait.
"""

import contextlib
import select
import socket
import threading
import time
from collections.abc import Sequence
from typing import Final

from psycopg import Error, pq

from delosmq.model.settings import DatabaseStoreSettings

CONNECT_TIMEOUT_S: Final = 5.0
BINARY: Final = 1
UNKNOWN: Final = "08007"
"""SQLSTATE: it is not known whether a transaction counts."""
_NO_RESULT: Final = "no answer came"
_WAIT_FOR_STANDBY: Final = b"SyncRepWaitForLSN"
"""The function of PostgreSQL that warns when its wait is broken off, by ``statement_timeout`` or ``pg_cancel_backend``,
in whichever language; the transaction is then answered as if the standby had it."""

Parameter = int | float | str | bytes | None
Row = tuple[bytes | None, ...]


class DatabaseError(Exception):
    """What PostgreSQL or the way to it answered.

    Attributes:
        state: SQLSTATE; "" when the connection is lost or could not be made.
        sentence: PostgreSQL's own, on one line.
    """

    def __init__(self, state: str, sentence: str) -> None:
        super().__init__(sentence)
        self.state = state
        self.sentence = " ".join(sentence.split())


class StoppedError(Exception):
    """A wait was broken off: the store is being closed."""


class Statement:
    """One that is prepared on each connection at its first use; ``$n`` are its parameters."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name.encode()
        self.text = " ".join(text.split()).encode()


class DatabaseConnection:
    """A session of the database; not to be shared by threads.

    Args:
        stop: breaks off every wait, which then raises StoppedError. Looked at several times a second.

    Raises:
        DatabaseError: it can't be made.
    """

    def __init__(self, settings: DatabaseStoreSettings, stop: threading.Event | None = None) -> None:
        self._timeout_s = settings.network_timeout_ms / 1000 or float("inf")
        self._stop = stop
        self._prepared: set[bytes] = set()
        self._not_on_standby = ""
        self._connection: pq.abc.PGconn | None = None
        deadline = time.monotonic() + CONNECT_TIMEOUT_S
        try:
            connection = self._connection = pq.PGconn.connect_start(_conninfo(settings))
            self._connect(connection, deadline)
        except BaseException as error:
            self.close()
            if isinstance(error, Error):
                raise DatabaseError(error.sqlstate or "", str(error)) from error
            raise
        connection.nonblocking = 1
        connection.notice_handler = self._note

    def _connect(self, connection: pq.abc.PGconn, deadline: float) -> None:
        while True:
            status = connection.connect_poll()
            if status == pq.PollingStatus.OK:
                return
            if status == pq.PollingStatus.FAILED:
                sentence = connection.error_message.decode("utf-8", "replace")
                raise DatabaseError(_state_of_login(sentence), sentence or "the connection failed")
            self._wait(connection, select.POLLOUT if status == pq.PollingStatus.WRITING else select.POLLIN, deadline)

    def close(self) -> None:
        """Ends the session; may be repeated."""
        if self._connection is not None:
            self._connection.finish()
            self._connection = None

    def parameter(self, name: str) -> str:
        """A setting of the server that it reports at login."""
        value = self._open().parameter_status(name.encode())
        return "" if value is None else value.decode("utf-8", "replace")

    def run(self, statement: Statement, *parameters: Parameter) -> list[Row]:
        """Its rows, each value in PostgreSQL's binary form.

        Raises:
            DatabaseError: it failed, or the connection did, or no answer came within jdbc-network-timeout; then the
                connection is closed, and whether the statement counts is unknown. So it is with state `UNKNOWN`: it is
                committed, but perhaps not at a synchronous standby.
        """
        deadline = time.monotonic() + self._timeout_s
        connection = self._open()
        try:
            if statement.name not in self._prepared:
                connection.send_prepare(statement.name, statement.text)
                self._results(connection, deadline)
                self._prepared.add(statement.name)
            values = [one if isinstance(one, bytes) or one is None else str(one).encode() for one in parameters]
            formats = [BINARY if isinstance(one, bytes) else 0 for one in parameters]
            connection.send_query_prepared(statement.name, values, param_formats=formats, result_format=BINARY)
            return self._results(connection, deadline)
        except Error as error:
            self.close()
            raise DatabaseError(error.sqlstate or "", str(error)) from error

    def run_text(self, text: str) -> list[Row]:
        """The rows, as text, of several statements without parameters, separated by semicolons: one transaction.

        Raises:
            DatabaseError: as for `run`.
        """
        deadline = time.monotonic() + self._timeout_s
        connection = self._open()
        try:
            connection.send_query(text.encode())
            return self._results(connection, deadline)
        except Error as error:
            self.close()
            raise DatabaseError(error.sqlstate or "", str(error)) from error

    def _open(self) -> pq.abc.PGconn:
        if self._connection is None:
            raise DatabaseError("", "the connection is closed")
        return self._connection

    def _results(self, connection: pq.abc.PGconn, deadline: float) -> list[Row]:
        while connection.flush():
            self._wait(connection, select.POLLIN | select.POLLOUT, deadline)
            connection.consume_input()
        rows: list[Row] = []
        failure: DatabaseError | None = None
        while True:
            while connection.is_busy():
                self._wait(connection, select.POLLIN, deadline)
                connection.consume_input()
            result = connection.get_result()
            if result is None:
                break
            if result.status == pq.ExecStatus.TUPLES_OK:
                rows = [
                    tuple([result.get_value(row, column) for column in range(result.nfields)])
                    for row in range(result.ntuples)
                ]
            elif result.status not in (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.EMPTY_QUERY) and failure is None:
                failure = _failure(result)
        not_on_standby, self._not_on_standby = self._not_on_standby, ""
        if not_on_standby and failure is None:
            failure = DatabaseError(UNKNOWN, not_on_standby)
        if failure is not None:
            if connection.status == pq.ConnStatus.BAD:
                self.close()
            raise failure
        return rows

    def _note(self, notice: pq.abc.PGresult) -> None:
        if notice.error_field(pq.DiagnosticField.SOURCE_FUNCTION) == _WAIT_FOR_STANDBY:
            self._not_on_standby = _failure(notice).sentence

    def _wait(self, connection: pq.abc.PGconn, events: int, deadline: float) -> None:
        poll = select.poll()
        poll.register(connection.socket, events)
        while True:
            if self._stop is not None and self._stop.is_set():
                self.close()
                raise StoppedError
            left = deadline - time.monotonic()
            if left <= 0:
                self.close()
                raise DatabaseError("", "no answer came in time")
            if poll.poll(min(left, 0.25) * 1000):
                return


def whole(value: bytes | None) -> int:
    """A number of a row."""
    return int.from_bytes(value or b"", "big", signed=True)


def array(kind: int, values: Sequence[bytes]) -> bytes:
    """An array in PostgreSQL's binary form, of elements that have theirs; ``kind`` is their oid."""
    if not values:
        return b"".join([number.to_bytes(4, "big") for number in (0, 0, kind)])
    head = [number.to_bytes(4, "big") for number in (1, 0, kind, len(values), 1)]
    return b"".join([*head, *[part for value in values for part in (len(value).to_bytes(4, "big"), value)]])


BIGINT: Final = 20
BYTEA: Final = 17


def numbers(values: Sequence[int]) -> bytes:
    """An array of bigint."""
    return array(BIGINT, [value.to_bytes(8, "big", signed=True) for value in values])


def contents(values: Sequence[bytes]) -> bytes:
    """An array of bytea."""
    return array(BYTEA, values)


def _failure(result: pq.abc.PGresult) -> DatabaseError:
    state = result.error_field(pq.DiagnosticField.SQLSTATE)
    sentence = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or result.error_message
    return DatabaseError((state or b"").decode(), sentence.decode("utf-8", "replace") or _NO_RESULT)


# libpq gives no SQLSTATE of a refused login.
_LOGIN_STATES: Final = {
    "password authentication failed": "28P01",
    "no password supplied": "28P01",
    "no pg_hba.conf entry": "28000",
    'role "': "28000",
    'database "': "3D000",
    "starting up": "57P03",
    "shutting down": "57P03",
    "too many": "53300",
}


def _state_of_login(sentence: str) -> str:
    return next((state for part, state in _LOGIN_STATES.items() if part in sentence), "")


def _conninfo(settings: DatabaseStoreSettings) -> bytes:
    options = dict(settings.options)
    _resolve(options)
    if settings.user:
        options["user"] = settings.user
    if settings.password:
        options["password"] = settings.password
    options["application_name"] = "delosmq"
    options["client_encoding"] = "UTF8"
    options["connect_timeout"] = str(int(CONNECT_TIMEOUT_S))
    if settings.network_timeout_ms:
        options["tcp_user_timeout"] = str(settings.network_timeout_ms)
    return " ".join([f"{name}='{_escaped(value)}'" for name, value in options.items()]).encode()


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "\\'")


def _resolve(options: dict[str, str]) -> None:
    """Looks up names of hosts here, where it holds up no other thread: libpq keeps the interpreter lock meanwhile."""
    hosts: list[tuple[str, str, str]] = []
    ports = options.get("port", "").split(",")
    for index, host in enumerate(options["host"].split(",")):
        port = ports[index] if index < len(ports) else ports[-1]
        if host.startswith("/"):
            return
        found: list[str] = []
        with contextlib.suppress(OSError):
            addresses = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            found = list(dict.fromkeys([str(address[4][0]) for address in addresses]))
        if not found:
            return  # libpq says it better
        hosts += [(host, address, port) for address in found]
    options["host"] = ",".join([host for host, _, _ in hosts])
    options["hostaddr"] = ",".join([address for _, address, _ in hosts])
    options["port"] = ",".join([port for _, _, port in hosts])
