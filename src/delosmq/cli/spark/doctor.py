"""``delosmq spark doctor``."""

import os
from typing import Annotated

import typer
from rich.console import Console

from delosmq.cli.options import CaFile, CertFile
from delosmq.cli.spark.options import Password, PasswordFile, User, connection
from delosmq.spark.pipeline import FAILED


def doctor(
    *,
    servers: Annotated[str, typer.Option(help="Also log in to a broker: its HTTP address.")] = "",
    user: User = "admin",
    password: Password = "",
    password_file: PasswordFile = None,
    ca_file: CaFile = None,
    cert_file: CertFile = None,
    session: Annotated[bool, typer.Option(help="Also start a Spark session (takes seconds).")] = True,
) -> None:
    """Say line by line what Spark needs, what is here, and what to do about the rest."""
    from delosmq.spark.doctor import examine

    console = Console(highlight=False, emoji=False, soft_wrap=True)
    login = None
    if servers:
        login = connection(
            servers=servers,
            user=user,
            password=password,
            password_file=password_file,
            ca_file=ca_file,
            cert_file=cert_file,
        )
    sound = True
    for finding in examine(os.environ, session=session, connection=login):
        sound = sound and finding.good
        mark = "[green]ok[/green]     " if finding.good else f"[red]{finding.fault}[/red]"
        console.print(f"{mark} {finding.name:<8} ", end="")
        console.print(finding.text, markup=False)
        if finding.remedy and not finding.good:
            console.print(f"                 -> {finding.remedy}", markup=False)
    if not sound:
        raise typer.Exit(FAILED)
