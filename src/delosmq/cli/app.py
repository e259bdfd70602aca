"""All commands but ``run``, which is only listed here."""

import sys
from pathlib import Path
from typing import Annotated

import click
import typer
from rich.console import Console

from delosmq.cli.queue_commands import queue_app
from delosmq.cli.spark_commands import spark_app
from delosmq.model.errors import BrokerError

FAILED = 1

app = typer.Typer(no_args_is_help=True, add_completion=False, help="DelosMQ, a durable message broker.")
app.add_typer(queue_app, name="queue")
app.add_typer(spark_app, name="spark")


@app.command()
def create(
    directory: Annotated[Path, typer.Argument(help="New or empty directory.")],
    *,
    user: Annotated[str, typer.Option(help="Administrator.")] = "admin",
    password_stdin: Annotated[bool, typer.Option(help="Read the password from standard input.")] = False,
    host: Annotated[str, typer.Option(help="Address the STOMP acceptor listens on.")] = "127.0.0.1",
    stomp_port: Annotated[int, typer.Option(help="Port of the STOMP acceptor.")] = 61613,
    http_port: Annotated[int, typer.Option(help="Port of the HTTP interface.")] = 8161,
) -> None:
    """Make an instance directory with one administrator; a random password is shown once."""
    from delosmq.cli.create import create_command

    password = sys.stdin.readline().rstrip("\n") if password_stdin else None
    create_command(directory, user=user, password=password, host=host, stomp_port=stomp_port, http_port=http_port)


@app.command()
def mask() -> None:
    """Print the stored form of the password on standard input, for artemis-users.properties."""
    from delosmq.cli.create import mask_command

    mask_command(sys.stdin.readline().rstrip("\n"))


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []})
def run(context: typer.Context) -> None:
    """Run the broker of an instance directory."""
    from delosmq.cli.run import run_main

    raise typer.Exit(run_main(context.args))


def run_app() -> int:
    """Runs the command line; one sentence and exit code 1 for everything a user can mend."""
    try:
        app(standalone_mode=False)
    except BrokerError as error:
        Console(stderr=True).print(str(error), markup=False, highlight=False, soft_wrap=True)
        return FAILED
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        return FAILED
    return 0
