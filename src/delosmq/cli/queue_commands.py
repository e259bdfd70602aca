"""``delosmq queue``."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from delosmq.cli.http_client import HttpClient
from delosmq.cli.output import plain_console

queue_app = typer.Typer(no_args_is_help=True, help="Queues of a running broker.")

COLUMNS = (
    ("name", "NAME"),
    ("address", "ADDRESS"),
    ("routing_type", "ROUTING"),
    ("consumer_count", "CONSUMERS"),
    ("message_count", "MESSAGES"),
    ("delivering_count", "DELIVERING"),
    ("messages_added", "ADDED"),
    ("messages_acknowledged", "ACKED"),
    ("messages_replaced", "REPLACED"),
    ("messages_killed", "KILLED"),
    ("ring_size", "RING"),
)


@queue_app.callback()
def queue() -> None:
    """Queues of a running broker."""


@queue_app.command()
def stat(
    url: Annotated[str, typer.Option(help="HTTP address of the broker.")] = "http://127.0.0.1:8161",
    user: Annotated[str, typer.Option(envvar="DELOSMQ_USER", help="Login.")] = "admin",
    password_file: Annotated[Path | None, typer.Option(help="File that holds the password.")] = None,
) -> None:
    """Show what each queue holds. The password comes from --password-file or DELOSMQ_PASSWORD."""
    queues = HttpClient(url, user, password_file).get("/api/v1/queues")["queues"]
    table = Table(box=None, pad_edge=False)
    for field, title in COLUMNS:
        table.add_column(title, justify="left" if field in ("name", "address", "routing_type") else "right")
    for row in queues:
        table.add_row(*(str(row[field]) for field, _ in COLUMNS))
    if not queues:
        plain_console(stderr=True).print(f"there is no queue that user '{user}' may view")
    # Wide enough for any name: output that is piped must not be cut to a terminal's width.
    Console(highlight=False, markup=False, emoji=False, width=None if sys.stdout.isatty() else 240).print(table)
