"""``delosmq spark replay``."""

from typing import Annotated

import typer

from delosmq.cli.spark.options import PipelineCall, of_pipeline


@of_pipeline
def replay(
    *,
    call: PipelineCall,
    archive: Annotated[str, typer.Option("--from", help="Directory of an archive, as it was given to archive --to.")],
    since: Annotated[str, typer.Option(help="Messages sent then or later, as in 2026-11-01T00:00:00Z.")] = "",
    before: Annotated[str, typer.Option(help="Messages sent before.")] = "",
    address: Annotated[list[str] | None, typer.Option(help="Messages sent to this address. Repeatable.")] = None,
    where: Annotated[str, typer.Option(help="A condition of Spark SQL, as in \"properties['region'] = 'EU'\".")] = "",
    to: Annotated[str, typer.Option(help="Address or ADDRESS::QUEUE for all; default: the address of each.")] = "",
    timing: Annotated[str, typer.Option(help="now, or original: as long after the first as then.")] = "now",
    speed: Annotated[float, typer.Option(help="With original timing: how many times as fast.")] = 1.0,
    lead: Annotated[
        float | None,
        typer.Option(help="With original timing: seconds until the first is due, for staging all of them; 10."),
    ] = None,
    name: Annotated[str, typer.Option(help="Another name sends the same messages once more.")] = "",
) -> None:
    """Send messages of an archive again, each once: all of them, or, if anything fails, none."""
    from delosmq.spark.replay import ReplayReport, ReplayRun, check_replay, plan_replay
    from delosmq.spark.replay import replay as send_again

    run = ReplayRun(
        archive=archive,
        connection=call.connection,
        since=since,
        before=before,
        addresses=tuple(address or ()),
        where=where,
        to=to,
        timing=timing,
        speed=speed,
        lead_s=lead,
        name=name,
    )

    def close(report: ReplayReport, verb: str) -> None:
        counts = {f"{verb} {target}": count for target, count in report.counts.items()}
        call.close({"messages": report.messages, **counts, "sent before": "yes" if report.published_before else "no"})

    if check_replay(run) and not call.dry_run:
        call.say("this replay was sent before, and nothing is sent now; another --name sends it once more")
        return
    spark = call.session(f"delosmq replay {archive}")
    if call.dry_run:
        close(plan_replay(spark, run), "would go to")
    else:
        close(send_again(spark, run, on_progress=call.say), "sent to")
    spark.stop()
