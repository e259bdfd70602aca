"""``delosmq spark audit``."""

from typing import TYPE_CHECKING, Annotated

import typer

from delosmq.cli.output import print_table
from delosmq.cli.spark.options import PipelineCall, of_pipeline_without_broker
from delosmq.spark import pipeline

if TYPE_CHECKING:
    from delosmq.spark.audit import AuditReport

SHOWN = 10
"""Rows of a table that are printed; the report has more, the folders have all."""
SHOWN_LETTERS = 60
TABLES = {
    "queues": ("queue", "archived", "enqueued", "acknowledged", "redelivered", "evicted", "expired", "dead_lettered"),
    "latency": ("queue", "step", "messages", "p50_ms", "p90_ms", "p99_ms", "p999_ms", "max_ms"),
    "producers": ("producer", "numbers", "first", "last", "gaps", "missing", "doubles"),
    "routers": ("router", "decision", "target", "connections", "share"),
}


@of_pipeline_without_broker
def audit(
    *,
    call: PipelineCall,
    to: Annotated[str, typer.Option(help="Directory for the tables and report.html; an earlier audit is replaced.")],
    archive: Annotated[str, typer.Option(help="Archive of messages, made by `delosmq spark archive`.")] = "",
    events: Annotated[str, typer.Option(help="Archive of a queue that is bound to delosmq.events.")] = "",
    producer_property: Annotated[str, typer.Option(help="Property of archived messages that names who sent.")] = "",
    sequence_property: Annotated[str, typer.Option(help="Property with the number that the sender gave it.")] = "",
) -> None:
    """Look for what was lost, doubled, slow or unbalanced in archives: tables, and one page of plots to read."""
    from delosmq.spark.audit import AuditRun, audit_checked, check_run

    run = AuditRun(to, archive, events, producer_property, sequence_property)
    check_run(run)
    if call.dry_run:
        call.say(f"would audit {run.source} to {to}; nothing was done")
        return
    spark = call.session("delosmq audit")
    report = audit_checked(spark, run, stop=pipeline.stop_on_signals(), on_progress=call.say)
    spark.stop()
    _show(report, call)
    call.close(
        {
            "audited": run.source,
            "messages": report.messages,
            "records": report.records,
            "damaged lines": report.damaged,
            "records lost": report.lost,
            "numbers missing": report.missing,
            "doubles": report.doubles,
            "report": report.report,
        }
    )


def _show(report: "AuditReport", call: PipelineCall) -> None:
    for name, columns in TABLES.items():
        table = report.tables[name]
        if table.rows:
            call.say("")
            rows = [{column: _cell(row[column]) for column in columns} for row in table.rows[:SHOWN]]
            print_table(rows, [(column, column.replace("_", " ")) for column in columns])
            if table.total > SHOWN:
                call.say(f"{table.total - SHOWN} more in {name}/")
    call.say("")


def _cell(value: object) -> object:
    """What can be printed: names come from messages, and may hold what moves a terminal about."""
    from delosmq.spark.audit.report.markup import printable

    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.1%}"
    return printable(value)[:SHOWN_LETTERS] if isinstance(value, str) else value
