"""``delosmq spark triage``."""

from typing import Annotated

import typer

from delosmq.cli.spark.options import PipelineCall, of_pipeline_without_spark


@of_pipeline_without_spark
def triage(
    *,
    call: PipelineCall,
    queue: Annotated[list[str] | None, typer.Option(help="Queue of dead letters. Repeatable.")] = None,
    selector: Annotated[str, typer.Option(help="Only messages that it lets through, as in \"region = 'EU'\".")] = "",
    to: Annotated[str, typer.Option(help="Also write the groups to this file, .parquet or .json.")] = "",
) -> None:
    """Group dead letters by cause, origin and shape. Takes nothing from the queues."""
    from delosmq.spark.dead_letters.triage import TriageRun, check_triage, group_lines
    from delosmq.spark.dead_letters.triage import triage as group

    run = TriageRun(queues=queue or ("DLQ",), connection=call.connection, selector=selector, to=to)
    if call.dry_run:
        call.close({f"messages in {name}": held for name, held in check_triage(run).items()})
        return
    report = group(run, on_progress=call.say)
    for line in group_lines(report.groups):
        call.say(line)
    call.close({"messages": report.messages, "groups": len(report.groups), **({"written to": to} if to else {})})
