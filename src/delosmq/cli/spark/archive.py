"""``delosmq spark archive``."""

from typing import Annotated

import typer

from delosmq.cli.spark.options import PipelineCall, Trigger, of_pipeline
from delosmq.spark import pipeline
from delosmq.spark.errors import OptionError


@of_pipeline
def archive(
    *,
    call: PipelineCall,
    to: Annotated[str, typer.Option(help="Directory, or a location that Spark can write to.")],
    queue: Annotated[
        list[str] | None, typer.Option(help="Queue to archive; its messages are consumed. Repeatable.")
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(help="Multicast address to archive, through a durable subscription. Repeatable."),
    ] = None,
    kind: Annotated[str, typer.Option("--format", help="parquet, or delta for Delta Lake.")] = "parquet",
    group: Annotated[str, typer.Option(help="Name of the leases' group; default archive-QUEUE.")] = "",
    checkpoint: Annotated[str, typer.Option(help="Place of Spark's checkpoint; default TO/_checkpoint.")] = "",
    trigger: Trigger = pipeline.AVAILABLE_NOW,
    headers: Annotated[bool, typer.Option(help="Archive the application properties.")] = True,
    max_rows: Annotated[int, typer.Option(min=1, help="Messages per batch at most.")] = 50_000,
) -> None:
    """Archive queues to Parquet or Delta Lake, each message once. SIGTERM and Ctrl-C stop between two batches."""
    from delosmq.spark.archive.run import ArchiveRun, archive_checked, check_run, waiting

    sources = [f"queue:{name}" for name in queue or ()] + [f"topic:{name}" for name in topic or ()]
    if not sources:
        raise OptionError("DMQ7301", "name what to archive: --queue or --topic")
    run = ArchiveRun(
        subscribe=sources,
        to=to,
        connection=call.connection,
        group_id=group,
        checkpoint=checkpoint,
        trigger=trigger,
        include_headers=headers,
        max_rows=max_rows,
        kind=kind,
    )
    check_run(run)
    if call.dry_run:
        held = {f"messages in {source}": count for source, count in waiting(run).items()}
        call.close({"would archive": f"{run.source} to {to} ({kind})", **held})
        return
    spark = call.session(f"delosmq archive {run.source}")
    report = archive_checked(spark, run, stop=pipeline.stop_on_signals(), on_progress=call.say)
    call.close(
        {
            "archived": f"{run.source} to {to}",
            "messages": report.rows,
            "batches": report.batches,
            "still waiting": report.backlog,
        }
    )
    spark.stop()
