"""Options that the Spark commands share, and how each of these commands ends."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Console

from delosmq.cli.options import CaFile, CertFile
from delosmq.cli.output import plain_console
from delosmq.model.errors import BrokerError
from delosmq.spark import pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Servers = Annotated[
    str, typer.Option(envvar="DELOSMQ_SERVERS", help="HTTP addresses of the brokers, separated by commas.")
]
User = Annotated[str, typer.Option(envvar="DELOSMQ_USER", help="Login.")]
Password = Annotated[
    str, typer.Option(envvar="DELOSMQ_PASSWORD", help="Better in the variable or a file: others can see arguments.")
]
PasswordFile = Annotated[Path | None, typer.Option(help="File with the password as its only line.")]
Trigger = Annotated[str, typer.Option(help="available-now (until the present content is done) or continuous.")]
_SHARED: Final[dict[str, tuple[object, object]]] = {
    "servers": (Servers, "http://127.0.0.1:8161"),
    "user": (User, "admin"),
    "password": (Password, ""),
    "password_file": (PasswordFile, None),
    "ca_file": (CaFile, None),
    "cert_file": (CertFile, None),
    "master": (Annotated[str, typer.Option(help="Where Spark runs, as in spark://host:7077.")], "local[2,4]"),
    "dry_run": (
        Annotated[bool, typer.Option("--dry-run", help="Check all, say what would be done, do nothing.")],
        False,
    ),
}
"""Options of each pipeline, with their defaults."""
_LOGIN: Final = ("servers", "user", "password", "password_file", "ca_file", "cert_file")


@dataclass(frozen=True)
class PipelineCall:
    """How a pipeline was called: the options that all share. ``connection`` are options of the data source."""

    connection: Mapping[str, str] = field(repr=False)
    master: str
    dry_run: bool
    console: Console

    def say(self, line: str) -> None:
        """Print a line of progress."""
        self.console.print(line)

    def session(self, name: str) -> "SparkSession":
        """A Spark session at `master`, or an error with one sentence about why there is none."""
        return pipeline.open_session(name, self.master)

    def close(self, rows: Mapping[str, object]) -> None:
        """Print what was done, as a table."""
        for line in pipeline.closing_table(rows):
            self.say(line)


def of_pipeline(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the options that all pipelines share; it is called with ``call`` instead of them.

    What goes wrong is told in one sentence; the exit code is 2 for an option's value, otherwise 1.
    """
    return _with_shared(command, _SHARED)


def of_pipeline_without_spark(command: Callable[..., None]) -> Callable[..., None]:
    """The same for a pipeline that starts no Spark."""
    return _with_shared(command, {name: option for name, option in _SHARED.items() if name != "master"})


def of_pipeline_without_broker(command: Callable[..., None]) -> Callable[..., None]:
    """The same for a pipeline that asks no broker: there is no login among its options."""
    return _with_shared(command, {name: option for name, option in _SHARED.items() if name not in _LOGIN})


def _with_shared(command: Callable[..., None], shared: dict[str, tuple[object, object]]) -> Callable[..., None]:
    @wraps(command)
    def with_call(dry_run: bool, master: str = "", **given: Any) -> None:
        console = plain_console()
        login = connection(**{name: given.pop(name) for name in _LOGIN}) if "servers" in given else {}
        try:
            command(call=PipelineCall(login, master, dry_run, console), **given)
        except BrokerError as failure:
            console.print(str(failure))
            raise typer.Exit(pipeline.exit_code(failure)) from None

    own = [one for one in signature(command).parameters.values() if one.name != "call"]
    options = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in shared.items()
    ]
    with_call.__signature__ = signature(command).replace(parameters=[*own, *options])  # type: ignore[attr-defined]
    with_call.__annotations__ = {one.name: one.annotation for one in (*own, *options)}
    return with_call


def connection(
    *,
    servers: str,
    user: str,
    password: str,
    password_file: Path | None,
    ca_file: Path | None,
    cert_file: Path | None,
) -> dict[str, str]:
    """Options of the data source that say which broker and who asks."""
    options = {"servers": servers}
    if user:
        options["user"] = user
    if password_file is not None:
        options["passwordFile"] = str(password_file)
    elif password:
        options["password"] = password
    # The variables that name them may be set for other brokers.
    files = {"tls.caFile": ca_file, "tls.certFile": cert_file} if "https://" in servers else {}
    return options | {name: str(path) for name, path in files.items() if path is not None}
