"""``delosmq spark``: the commands of the data pipeline."""

import os
import signal
import threading
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from delosmq.cli.output import plain_console
from delosmq.model.errors import BrokerError
from delosmq.spark.errors import OptionError, SparkMissingError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

spark_app = typer.Typer(no_args_is_help=True, help="Read queues with Spark: check the machine, archive to Parquet.")

FAILED = 1
MISUSED = 2
Servers = Annotated[str, typer.Option(help="HTTP addresses of the brokers, separated by commas.")]
User = Annotated[str, typer.Option(envvar="DELOSMQ_USER", help="Login.")]
Password = Annotated[
    str, typer.Option(envvar="DELOSMQ_PASSWORD", help="Better in the variable or a file: others can see arguments.")
]
PasswordFile = Annotated[Path | None, typer.Option(help="File with the password as its only line.")]


@spark_app.command()
def doctor(
    servers: Annotated[str, typer.Option(help="Also log in to a broker: its HTTP address.")] = "",
    user: User = "admin",
    password: Password = "",
    password_file: PasswordFile = None,
    session: Annotated[bool, typer.Option(help="Also start a Spark session (takes seconds).")] = True,
) -> None:
    """Say line by line what Spark needs, what is here, and what to do about the rest."""
    from delosmq.spark.doctor import examine

    console = Console(highlight=False, emoji=False, soft_wrap=True)
    connection = _connection(servers, user, password, password_file) if servers else None
    sound = True
    for finding in examine(os.environ, session=session, connection=connection):
        sound = sound and finding.good
        mark = "[green]ok[/green]     " if finding.good else f"[red]{finding.fault}[/red]"
        console.print(f"{mark} {finding.name:<8} ", end="")
        console.print(finding.text, markup=False)
        if finding.remedy and not finding.good:
            console.print(f"                 -> {finding.remedy}", markup=False)
    if not sound:
        raise typer.Exit(FAILED)


@spark_app.command()
def archive(
    *,
    to: Annotated[str, typer.Option(help="Directory, or a location that Spark can write to.")],
    queue: Annotated[str, typer.Option(help="Queue to archive; its messages are consumed.")] = "",
    topic: Annotated[str, typer.Option(help="Multicast address to archive, through a durable subscription.")] = "",
    servers: Servers = "http://127.0.0.1:8161",
    user: User = "admin",
    password: Password = "",
    password_file: PasswordFile = None,
    group: Annotated[str, typer.Option(help="Name of the leases' group; default archive-QUEUE.")] = "",
    checkpoint: Annotated[str, typer.Option(help="Place of Spark's checkpoint; default TO/_checkpoint.")] = "",
    trigger: Annotated[str, typer.Option(help="available-now (until the present content is done) or continuous.")] = (
        "available-now"
    ),
    headers: Annotated[bool, typer.Option(help="Archive the application properties.")] = True,
    max_rows: Annotated[int, typer.Option(min=1, help="Messages per batch at most.")] = 50_000,
    master: Annotated[str, typer.Option(help="Where Spark runs, as in spark://host:7077.")] = "local[2,4]",
) -> None:
    """Archive a queue to Parquet by day, each message once. SIGTERM and Ctrl-C stop between two batches."""
    console = plain_console()
    if bool(queue) == bool(topic):
        console.print("DMQ7301: name either --queue or --topic", markup=False)
        raise typer.Exit(MISUSED)
    from delosmq.spark.archive import ArchiveRun, archive_checked, check_run

    run = ArchiveRun(
        subscribe=f"queue:{queue}" if queue else f"topic:{topic}",
        to=to,
        connection=_connection(servers, user, password, password_file),
        group_id=group,
        checkpoint=checkpoint,
        trigger=trigger,
        include_headers=headers,
        max_rows=max_rows,
    )
    try:
        check_run(run)
        spark = _session(f"delosmq archive {run.source}", master)
        stop = _stop_on_signals()
        report = archive_checked(spark, run, stop=stop, on_progress=lambda line: console.print(line, markup=False))
    except BrokerError as failure:
        console.print(str(failure), markup=False)
        raise typer.Exit(MISUSED if isinstance(failure, OptionError) else FAILED) from None
    console.print(f"archived {report.rows} messages in {report.batches} batches to {to}", markup=False)
    spark.stop()


def _session(name: str, master: str) -> "SparkSession":
    """A session, or one sentence about why there is none."""
    from delosmq.spark.session import start_session

    try:
        return start_session(name, master=master)
    except BrokerError:
        raise
    except Exception as failure:  # pyspark and py4j raise many unrelated types; all mean the same here
        why = str(failure).strip().partition("\n")[0] or type(failure).__name__
        raise SparkMissingError(
            "DMQ8061", f"Spark did not start at {master} ({why}): `delosmq spark doctor` looks for what it lacks"
        ) from failure


def _connection(servers: str, user: str, password: str, password_file: Path | None) -> dict[str, str]:
    options = {"servers": servers}
    if user:
        options["user"] = user
    if password_file is not None:
        options["passwordFile"] = str(password_file)
    elif password:
        options["password"] = password
    return options


def _stop_on_signals() -> threading.Event:
    """Set by SIGTERM and SIGINT; after the session is there, because pyspark puts a handler of its own in place."""
    stop = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    return stop
