"""All commands but ``run``, which is only listed here."""

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from delosmq import __version__
from delosmq.cli.address_commands import address_app, lease_app, staged_app, transaction_app
from delosmq.cli.explain_commands import explain_app
from delosmq.cli.output import plain_console
from delosmq.cli.queue_commands import queue_app
from delosmq.cli.router_commands import router_app
from delosmq.cli.spark.app import spark_app
from delosmq.cli.usage import FAILED, exit_code
from delosmq.model.errors import BrokerError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="DelosMQ, a durable message broker.",
)
app.add_typer(queue_app, name="queue")
app.add_typer(address_app, name="address")
app.add_typer(transaction_app, name="transaction")
app.add_typer(router_app, name="router")
app.add_typer(lease_app, name="lease")
app.add_typer(staged_app, name="staged")
app.add_typer(explain_app, name="explain")
app.add_typer(spark_app, name="spark")


def _show_version(wanted: bool) -> None:
    if wanted:
        plain_console().print(__version__)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """DelosMQ, a durable message broker."""


@app.command()
def create(
    directory: Annotated[Path, typer.Argument(help="New or empty directory.")],
    *,
    user: Annotated[str, typer.Option(help="Administrator.")] = "admin",
    password_stdin: Annotated[
        bool, typer.Option("--password-stdin", help="Read the password: the first line of standard input.")
    ] = False,
    host: Annotated[str, typer.Option(help="Address the acceptors listen on.")] = "127.0.0.1",
    stomp_port: Annotated[int, typer.Option(help="Port of the STOMP acceptor.")] = 61613,
    openwire_port: Annotated[int, typer.Option(help="Port of the OpenWire acceptor.")] = 61616,
    http_host: Annotated[str, typer.Option(help="Address the HTTP interface listens on.")] = "127.0.0.1",
    http_port: Annotated[int, typer.Option(help="Port of the HTTP interface.")] = 8161,
    ssl_key: Annotated[
        Path | None, typer.Option(help="PEM file with certificate, chain and key: the HTTP interface speaks TLS.")
    ] = None,
    ssl_trust: Annotated[
        Path | None, typer.Option(help="PEM file with the certificates that clients are checked against.")
    ] = None,
    use_client_auth: Annotated[
        bool,
        typer.Option("--use-client-auth", help="HTTP clients must have a certificate that --ssl-trust vouches for."),
    ] = False,
) -> None:
    """Make an instance directory with one administrator; a random password is shown once."""
    from delosmq.cli.create import create_command, web_bind

    password = sys.stdin.readline().rstrip("\n") if password_stdin else None
    create_command(
        directory,
        user=user,
        password=password,
        host=host,
        stomp_port=stomp_port,
        openwire_port=openwire_port,
        web=web_bind(http_host, http_port, ssl_key, ssl_trust, use_client_auth=use_client_auth),
    )


@app.command()
def mask() -> None:
    """Print the stored form of the password on standard input, for artemis-users.properties."""
    from delosmq.cli.create import mask_command

    mask_command(sys.stdin.readline().rstrip("\n"))


@app.command()
def convert(
    source: Annotated[Path, typer.Argument(help="activemq.xml of ActiveMQ Classic.")],
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="New or empty directory; without it broker.xml is printed.")
    ] = None,
    define: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="What ${NAME} stands for; repeatable.")
    ] = None,
    properties: Annotated[
        Path | None, typer.Option(help="File that says what ${...} stands for, such as credentials.properties.")
    ] = None,
    password_stdin: Annotated[
        bool,
        typer.Option("--password-stdin", help="Read the administrator's password: the first line of standard input."),
    ] = False,
    http_port: Annotated[int, typer.Option(help="Port of the HTTP interface.")] = 8161,
) -> None:
    """Convert an activemq.xml; what can't be converted is listed, and the exit code is 3 then."""
    from delosmq.cli.convert import convert_command, read_definitions

    known = {**os.environ, **read_definitions(define or [], properties)}
    password = sys.stdin.readline().rstrip("\n") if password_stdin else None
    raise typer.Exit(convert_command(source, output, properties=known, password=password, http_port=http_port))


@app.command()
def check(
    path: Annotated[Path, typer.Argument(help="Instance directory, or a broker.xml.")],
    *,
    define: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="What ${NAME} stands for; repeatable.")
    ] = None,
    without: Annotated[
        list[str] | None, typer.Option(metavar="NAME,NAME", help="Names to leave out, as `delosmq run` takes them.")
    ] = None,
) -> None:
    """List all mistakes and all that is not supported, left out or ignored; the exit code is 1 if no broker starts."""
    from delosmq.cli.check import check_command
    from delosmq.cli.convert import read_definitions

    known = {**os.environ, **read_definitions(define or [], None)}
    raise typer.Exit(check_command(path, properties=known, without=without or []))


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []})
def run(context: typer.Context) -> None:
    """Run the broker of an instance directory."""
    from delosmq.cli.run import run_main

    raise typer.Exit(run_main(context.args))


def _show_flags_as_flags(command: Any, context: Any) -> None:
    """Takes the type away that typer's help shows of an option that has no value."""
    for parameter in command.get_params(context):
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    for name, below in getattr(command, "commands", {}).items():
        _show_flags_as_flags(below, below.context_class(below, info_name=name, parent=context))


def run_app() -> int:
    """Runs the command line; one sentence and exit code 1 for everything a user can mend, 2 for a wrong call."""
    try:
        command = typer.main.get_command(app)
        if "--help" in sys.argv:
            _show_flags_as_flags(command, command.context_class(command))
        command()
    except BrokerError as error:
        plain_console(stderr=True).print(str(error))
        return exit_code(error)
    except SystemExit as leave:
        return leave.code if isinstance(leave.code, int) else 0 if leave.code is None else FAILED
    return 0
