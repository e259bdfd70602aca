"""``delosmq spark redrive``."""

from typing import Annotated

import typer

from delosmq.cli.spark.options import PipelineCall, of_pipeline_without_spark
from delosmq.spark import pipeline


@of_pipeline_without_spark
def redrive(
    *,
    call: PipelineCall,
    record: Annotated[
        str, typer.Option(help="Directory for the record of what went where; --dry-run needs none.")
    ] = "",
    queue: Annotated[str, typer.Option(help="Queue of dead letters.")] = "DLQ",
    selector: Annotated[str, typer.Option(help="Only messages that it lets through, as in \"region = 'EU'\".")] = "",
    origin: Annotated[list[str] | None, typer.Option(help="Original address or queue. Repeatable.")] = None,
    since: Annotated[str, typer.Option(help="Sent then or later, as in 2026-11-01T00:00:00Z.")] = "",
    before: Annotated[str, typer.Option(help="Sent before.")] = "",
    to: Annotated[str, typer.Option(help="Address or ADDRESS::QUEUE for all; default: where each came from.")] = "",
    rate: Annotated[float, typer.Option(help="Messages per second at most; 0 for no cap.")] = 0,
    time_to_live_ms: Annotated[int, typer.Option(min=0, help="Of what goes back; 0 for ever.")] = 0,
    kind: Annotated[str, typer.Option("--format", help="Of the record: jsonl or parquet.")] = "jsonl",
    max_rows: Annotated[int, typer.Option(min=1, max=50_000, help="Messages per batch at most.")] = 5_000,
) -> None:
    """Send dead letters back to where they came from, each once. SIGTERM and Ctrl-C stop between two batches."""
    from delosmq.spark.dead_letters.redrive import RedriveRun, plan_redrive
    from delosmq.spark.dead_letters.redrive import redrive as send_back
    from delosmq.spark.errors import OptionError

    run = RedriveRun(
        queue=queue,
        connection=call.connection,
        selector=selector,
        origins=tuple(origin or ()),
        since=since,
        before=before,
        to=to,
        rate=rate,
        time_to_live_ms=time_to_live_ms,
        record=record,
        record_format=kind,
        max_rows=max_rows,
    )
    if call.dry_run:
        plan = plan_redrive(run)
        call.close({"messages": plan.messages, **{f"would go to {name}": n for name, n in plan.counts.items()}})
        return
    if not record:
        raise OptionError("DMQ8254", "there is no record of what went where: name a directory for it with --record")
    report = send_back(run, stop=pipeline.stop_on_signals(), on_progress=call.say)
    counts = {f"sent to {name}": n for name, n in report.counts.items()}
    call.close({"messages": report.messages, "batches": report.batches, **counts, "record": record})
