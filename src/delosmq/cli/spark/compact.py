"""``delosmq spark compact``."""

from typing import Annotated

import typer

from delosmq.cli.output import plain_console
from delosmq.model.errors import BrokerError
from delosmq.spark.pipeline import FAILED, closing_table, exit_code


def compact(
    directory: Annotated[str, typer.Argument(help="Directory of an archive, as it was given to archive --to.")],
    *,
    megabytes: Annotated[int, typer.Option(min=1, help="Size of a file to put small ones together to.")] = 128,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, do nothing.")] = False,
) -> None:
    """Put the small files of an archive together; it may run meanwhile. Exit code 1 when a damaged file was found."""
    from delosmq.spark.archive.compact import compact_archive

    console = plain_console()
    try:
        report = compact_archive(
            directory, full_bytes=megabytes * 1024 * 1024, dry_run=dry_run, on_progress=console.print
        )
    except BrokerError as failure:
        console.print(str(failure))
        raise typer.Exit(exit_code(failure)) from None
    rows = {"files before": report.files_before, "files after": report.files_after, "damaged": len(report.damaged)}
    for line in closing_table({"would compact" if dry_run else "compacted": directory, **rows}):
        console.print(line)
    if report.damaged:
        raise typer.Exit(FAILED)
