"""The page: what stands out first, then a section for each question with its plot and its table."""

from delosmq.spark.audit.report import sections, units
from delosmq.spark.audit.report.audited import Audited, Period
from delosmq.spark.audit.report.markup import Markup, el, name
from delosmq.spark.audit.report.style import STYLE

# Nothing is fetched and nothing runs, whatever a name holds.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(audited: Audited) -> str:
    """The whole document."""
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=POLICY),
        el("meta", name="viewport", content="width=device-width,initial-scale=1"),
        el("title", "Audit of messages"),
        el("style", Markup(STYLE)),
    )
    main = el(
        "main",
        el("h1", "Audit of messages"),
        *_read(audited),
        _tiles(audited),
        el("ul", *_findings(audited), class_="found"),
        *(section(audited) for section in sections.ALL),
    )
    return "<!DOCTYPE html>\n" + el("html", head, el("body", main), lang="en") + "\n"


def _read(audited: Audited) -> list[Markup]:
    read = [
        el("p", units.counted(period.rows, what), " of ", name(path), _span(period), class_="soft read")
        for path, period, what in (
            (audited.archive, audited.archived, "message"),
            (audited.events, audited.told, "record of delosmq.events"),
        )
        if path
    ]
    return [*read, el("p", f"Made {audited.made_at:%Y-%m-%d %H:%M}. All times are UTC.", class_="soft read")]


def _span(period: Period) -> str:
    return f": {units.moment(period.first_ms)} to {units.moment(period.last_ms)}" if period.rows else ""


def _tiles(audited: Audited) -> Markup:
    tiles: list[tuple[str, str, str]] = []
    if audited.archive:
        tiles.append((units.count(audited.archived.rows), "messages in the archive", ""))
    tiles.append((units.count(audited.tables["queues"].total), "queues", ""))
    if audited.events:
        done = [row for row in audited.rows("latency") if row["step"] == "accepted to acknowledged" and row["messages"]]
        slow = max((row["p99_ms"] for row in done), default=None)
        tiles.append((units.duration(slow), "accepted to acknowledged: p99 of the slowest queue", ""))
        again, given = audited.total("queues", "redelivered"), audited.total("queues", "dispatched")
        tiles.append((units.share(again / given) if given else "–", "of deliveries came back", ""))
    missing, doubles = audited.total("gaps", "missing"), audited.tables["doubles"].total
    if audited.tables["producers"].total:
        tiles.append((units.count(missing), "missing numbers of producers", "bad" if missing else "good"))
    tiles.append((units.count(doubles), "messages found more than once", "bad" if doubles else "good"))
    return el(
        "div",
        *(el("div", el("b", value), el("span", text), class_=f"tile {kind}".strip()) for value, text, kind in tiles),
        class_="tiles",
    )


def _findings(audited: Audited) -> list[Markup]:
    """Sentences: what is wrong first, then what is fine, then what limits this audit."""
    bad, good, notes = _doubts(audited)
    if audited.damaged:
        bad.append(f"{units.counted(audited.damaged, 'line of the records')} left out, damaged.")
    if audited.lost:
        dropped = units.counted(audited.lost, "record")
        bad.append(
            f"The broker dropped {dropped}, as it says itself: counts of steps are too low, and gaps may"
            " be of records instead of messages. Raise delosmq-events in broker.xml."
        )
    if audited.archived.outside:
        notes.append(
            f"{units.counted(audited.archived.outside, 'message')} of the archive with timestamps far from all others"
            " (clocks of senders?) left out of the plot over time."
        )
    if audited.told.outside:
        notes.append(
            f"{units.counted(audited.told.outside, 'record')} with times far from all others (the clock of a broker?)"
            " left out of the plots over time."
        )
    if audited.unnumbered:
        notes.append(
            f"{units.counted(audited.unnumbered, 'message')} of the archive without a number in the properties"
            f" {audited.producer_property!r} and {audited.sequence_property!r}, hence not among the producers."
        )
    if not audited.events:
        notes.append("Without records of delosmq.events there are no latencies, rates or decisions of routers.")
    kinds = (("bad", bad), ("good", good), ("note", notes))
    return [el("li", text, class_=kind) for kind, texts in kinds for text in texts]


def _doubts(audited: Audited) -> tuple[list[str], list[str], list[str]]:
    bad: list[str] = []
    good: list[str] = []
    gaps, doubles, producers = (audited.tables[table] for table in ("gaps", "doubles", "producers"))
    if gaps.total:
        missing = units.counted(gaps.sums["missing"], "number of producers")
        bad.append(f"{missing} missing, in {units.counted(gaps.total, 'gap')}.")
    elif producers.total:
        numbering = units.counted(producers.total, "producer")
        good.append(f"No number missing between the first and the last of {numbering}.")
    if doubles.total:
        bad.append(f"{units.counted(doubles.total, 'message')} more than once in a queue.")
    elif audited.archived.rows:
        good.append("Each message id is in the archive once.")
    ends = {"evicted": "pushed out of the queue", "expired": "expired", "dead_lettered": "moved to the dead letters"}
    for column, text in ends.items():
        found = audited.total("queues", column)
        if found:
            bad.append(f"{units.counted(found, 'message')} {text}.")
    if audited.told.rows and not any(audited.total("queues", column) for column in ends):
        good.append("No message was evicted, expired or became a dead letter.")
    back = audited.total("latency", "clock_went_back")
    return bad, good, [f"{units.counted(back, 'time')} left out, as a clock went back."] if back else []
