"""The sections of a report. Each says what it shows, or why there is nothing to show."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from delosmq.spark.audit.report import units
from delosmq.spark.audit.report.audited import Audited, Period
from delosmq.spark.audit.report.markup import Markup, Part, el, join, name
from delosmq.spark.audit.report.plots import Bar, Range, Series, bars, legend, over_time, ranges, strip
from delosmq.spark.audit.tables import Row, Table

PLOTTED: Final = 5
"""Queues that a plot tells apart; tables have more."""
NO_EVENTS: Final = (
    "No records were read. Switch them on with delosmq-events in broker.xml, bind a durable queue to delosmq.events, "
    "archive it and name that archive with --events."
)
STEPS: Final = {"accepted to dispatched": 0, "dispatched to acknowledged": 2, "accepted to acknowledged": 1}
RATES: Final = {"redelivery": 0, "eviction": 4, "expiry": 2, "dead_letter": 1}
_SECOND, _MINUTE, _HOUR = 1_000, 60_000, 3_600_000

Cell = Callable[[Any], Part]


def _traffic(audited: Audited) -> Markup:
    archived = _per_time(audited.rows("archived_traffic"), ("messages",), audited.archived)
    told = _per_time(audited.rows("traffic"), ("enqueued", "dispatched", "acknowledged"), audited.told)
    return join(
        el("h2", "Traffic"),
        _plot_by_queue(
            "Messages in the archive, by their timestamps", audited.rows("archived_traffic"), audited.archived
        )
        if archived
        else _empty("The archive holds no messages." if audited.archive else "No archive of messages was read."),
        over_time(*told, audited.told.width_ms, line=False)
        if told
        else _empty(NO_EVENTS if not audited.events else "No record tells of a queue."),
        el("p", "How many messages there were, and what the archive has of them:"),
        _table(
            audited.tables["queues"],
            {
                "queue": ("queue", name),
                "archived": ("archived", units.count),
                "body_bytes": ("bodies", units.size),
                "most_deliveries": ("most deliveries of one", units.count),
                "enqueued": ("enqueued", units.count),
                "dispatched": ("dispatched", units.count),
                "acknowledged": ("acknowledged", units.count),
            },
        ),
    )


def _per_time(rows: list[Row], columns: Sequence[str], period: Period) -> tuple[str, str, list[Series]] | None:
    sums: dict[str, dict[int, float]] = {column: {} for column in columns}
    for row in rows:
        for column in columns:
            sums[column][row["start"]] = sums[column].get(row["start"], 0) + row[column]
    if not rows:
        return None
    per, unit = _rate(max(value for one in sums.values() for value in one.values()), period.width_ms)
    series = [
        Series(column, {start: value * per for start, value in one.items()}, colour)
        for colour, (column, one) in enumerate(sums.items())
    ]
    return "Steps of messages, by the broker's clock", unit, series


def _plot_by_queue(title: str, rows: list[Row], period: Period) -> Markup:
    totals: dict[str | None, int] = {}
    for row in rows:
        totals[row["queue"]] = totals.get(row["queue"], 0) + row["messages"]
    named = sorted((queue for queue in totals if queue is not None), key=lambda queue: -totals[queue])
    plotted = named if len(named) <= PLOTTED and None not in totals else named[: PLOTTED - 1]
    points: dict[str | None, dict[int, float]] = {queue: {} for queue in plotted}
    for row in rows:
        of_queue = points.setdefault(row["queue"] if row["queue"] in points else None, {})
        of_queue[row["start"]] = of_queue.get(row["start"], 0) + row["messages"]
    per, unit = _rate(max(value for one in points.values() for value in one.values()), period.width_ms)
    series = [
        Series(
            "all other queues" if queue is None else name(queue),
            {start: count * per for start, count in one.items()},
            colour,
        )
        for colour, (queue, one) in enumerate(points.items())
    ]
    return over_time(title, unit, series, period.width_ms, line=False)


def _rate(most: float, width_ms: int) -> tuple[float, str]:
    """What a count per interval is to be multiplied by, and the unit that then gives numbers above 1."""
    for unit_ms, unit in ((_SECOND, "second"), (_MINUTE, "minute"), (_HOUR, "hour")):
        if most * unit_ms / width_ms >= 1:
            return unit_ms / width_ms, f"messages per {unit}"
    return 86_400_000 / width_ms, "messages per day"


def _latency(audited: Audited) -> Markup:
    rows = [row for row in audited.rows("latency") if row["messages"]]
    heading = el("h2", "How long messages took")
    if not rows:
        why = "No message has both ends of a step among the records, such as enqueue and dispatch."
        return join(heading, _empty(why if audited.events else NO_EVENTS))
    most = list(dict.fromkeys(row["queue"] for row in rows))[:PLOTTED]
    shown: list[tuple[Part, list[Range]]] = [
        (
            name(queue),
            [
                Range(step, _percentiles(row), colour)
                for step, colour in STEPS.items()
                for row in rows
                if (row["queue"], row["step"]) == (queue, step)
            ],
        )
        for queue in most
    ]
    over = audited.rows("latency_over_time")
    longest = max((row["p99_ms"] for row in over), default=0)
    unit_ms, unit = (1, "ms") if longest < 10_000 else (1_000, "s") if longest < 600_000 else (60_000, "minutes")
    lines = [
        Series(
            label,
            {row["start"]: row[column] / unit_ms for row in over if row["step"] == "accepted to acknowledged"},
            colour,
        )
        for colour, (label, column) in enumerate((("p50", "p50_ms"), ("p99", "p99_ms")))
    ]
    columns: dict[str, tuple[str, Cell]] = {
        "step": ("step", str),
        "messages": ("messages", units.count),
        **{column: (label, units.duration) for label, column in _PERCENTILES.items()},
    }
    return join(
        heading,
        el("p", "Percentiles per queue: p99 of 2 s means that 99 of 100 messages took 2 s at most."),
        el("div", ranges(shown), class_="panel wide"),
        over_time(
            "Accepted to acknowledged, all queues, by when it ended", unit, lines, audited.told.width_ms, line=True
        ),
        _table(audited.tables["latency"], {"queue": ("queue", name), **columns}),
        el("p", "The same for each consumer:"),
        _table(
            audited.tables["latency_by_consumer"], {"queue": ("queue", name), "consumer": ("consumer", name), **columns}
        ),
    )


_PERCENTILES: Final = {"p50": "p50_ms", "p90": "p90_ms", "p99": "p99_ms", "p99.9": "p999_ms", "max": "max_ms"}


def _percentiles(row: Row) -> tuple[int, int, int, int, int]:
    p50, p90, p99, p999, most = (row[column] for column in _PERCENTILES.values())
    return p50, p90, p99, p999, most


def _ends(audited: Audited) -> Markup:
    heading = el("h2", "Redelivered, evicted, expired, dead")
    if not audited.told.rows:
        return join(heading, _empty(NO_EVENTS if not audited.events else "There are no records."))
    rows = [row for row in audited.rows("queues") if any(row[f"{rate}_rate"] for rate in RATES)]
    rows.sort(key=lambda row: -max(row[f"{rate}_rate"] or 0 for rate in RATES))
    plot = _empty("No message of the queues below was redelivered, evicted, expired or became a dead letter.")
    if rows:
        top = units.round_end(max(row[f"{rate}_rate"] or 0 for row in rows for rate in RATES))
        drawn = [
            (
                name(row["queue"]),
                [
                    Bar(row[f"{rate}_rate"] or 0, units.share(row[f"{rate}_rate"]), colour, rate)
                    for rate, colour in RATES.items()
                ],
            )
            for row in rows[: 2 * PLOTTED]
        ]
        labels = ("redelivered, of deliveries", "evicted", "expired", "dead letters; each of messages enqueued")
        plot = el(
            "div",
            legend(list(zip(labels, RATES.values(), strict=True))),
            bars(drawn, top, [units.share(top * part / 4) for part in range(5)]),
            class_="panel",
        )
    cells: dict[str, tuple[str, Cell]] = {"queue": ("queue", name)}
    for column, rate in (
        ("redelivered", "redelivery"),
        ("evicted", "eviction"),
        ("expired", "expiry"),
        ("dead_lettered", "dead_letter"),
    ):
        cells[column] = (column.replace("_", "-"), units.count)
        cells[f"{rate}_rate"] = ("rate", units.share)
    return join(heading, plot, _table(audited.tables["queues"], cells, hot=("dead_lettered", "expired", "evicted")))


def _routers(audited: Audited) -> Markup:
    heading = el("h2", "Connection routers")
    rows = audited.rows("routers")
    if not rows:
        why = "No connection router decided anything." if audited.events else NO_EVENTS
        return join(heading, _empty(why))
    panels = []
    for router in dict.fromkeys(row["router"] for row in rows):
        targets: dict[str, int] = {}
        for row in rows:
            if row["router"] == router:
                targets[row["target"]] = targets.get(row["target"], 0) + row["connections"]
        whole = sum(targets.values())
        top = units.round_end(max(targets.values()) / whole)
        drawn = [
            (name(target), [Bar(count / whole, f"{count:,} ({count / whole:.0%})", 0)])
            for target, count in sorted(targets.items(), key=lambda item: -item[1])[: 4 * PLOTTED]
        ]
        panels.append(
            el(
                "div",
                el("b", name(router)),
                el(
                    "p",
                    f"{units.counted(whole, 'connection')}; dashed: an equal share for each of {len(targets)}.",
                    class_="axis",
                ),
                bars(drawn, top, [units.share(top * part / 4) for part in range(5)], mark=1 / len(targets)),
                class_="panel",
            )
        )
    cells: dict[str, tuple[str, Cell]] = {
        **{column: (column, name) for column in ("router", "decision", "target", "reason")},
        "connections": ("connections", units.count),
        "share": ("share of its router", units.share),
    }
    return join(heading, *panels[:PLOTTED], _table(audited.tables["routers"], cells))


def _producers(audited: Audited) -> Markup:
    heading = el("h2", "Numbers of producers")
    table = audited.tables["producers"]
    if not table.total:
        return join(
            heading,
            _empty(
                "Nothing that was read has numbers of producers. Records have them for messages sent over OpenWire; for"
                " other protocols let producers set two properties, and name these with --producer-property and "
                "--sequence-property."
            ),
        )
    found = [row for row in table.rows if row["missing"]][: 2 * PLOTTED]
    holes = audited.rows("gaps")
    drawn = [
        el(
            "div",
            el("div", name(row["producer"]), class_="label"),
            el(
                "div",
                strip(
                    row["first"],
                    row["last"],
                    [
                        (hole["first_missing"], hole["last_missing"])
                        for hole in holes
                        if (hole["source"], hole["producer"]) == (row["source"], row["producer"])
                    ],
                ),
                el(
                    "div",
                    f"{row['first']:,} to {row['last']:,}: {row['missing']:,} missing in "
                    f"{units.counted(row['gaps'], 'gap')}",
                    class_="said",
                ),
                class_="tracks",
            ),
            class_="row",
        )
        for row in found
    ]
    panel = el(
        "div",
        *drawn,
        el(
            "p",
            "Numbers from first to last; missing ones in red, no narrower than can be seen "
            f"({_part(audited.tables['gaps'], 'widest gaps')} drawn).",
            class_="axis",
        ),
        class_="panel",
    )
    return join(
        heading,
        el("p", "Each producer numbers what it sends. A missing number is a message that is nowhere in what was read."),
        panel if drawn else _empty("No producer has a gap between its first and its last number."),
        _table(
            table,
            {
                "producer": ("producer", name),
                "source": ("numbers from", str),
                **{
                    column: (column, units.count)
                    for column in ("numbers", "first", "last", "gaps", "missing", "doubles")
                },
            },
            hot=("missing", "doubles"),
        ),
    )


def _doubles(audited: Audited) -> Markup:
    table = audited.tables["doubles"]
    if not table.total:
        return join(el("h2", "Doubles"), _empty("No message id and no number of a producer is in one queue twice."))
    cells: dict[str, tuple[str, Cell]] = {
        "queue": ("queue", name),
        "source": ("found by", str),
        "name": ("message id or producer", name),
        "number": ("number", units.count),
        "times": ("times", units.count),
        "first_at": ("first", units.moment),
        "last_at": ("last", units.moment),
    }
    return join(el("h2", "Doubles"), _table(table, cells))


def _terms(audited: Audited) -> Markup:
    terms = {
        "accepted to dispatched": "from when the broker accepted a message until a consumer or lease got it first.",
        "dispatched to acknowledged": "from the last delivery of a message until it was consumed.",
        "percentiles": "of whole ms, approximate: their rank is right to a ten-thousandth of the messages.",
        "redelivery rate": "deliveries that came back, of all deliveries.",
        "eviction, expiry and dead-letter rate": "messages with that end, of those enqueued in the same queue.",
        "evicted": "pushed out by a ring or by a newer message of the same key in a last-value queue.",
        "missing": "numbers between the first and the last of a producer that are in no queue."
        " What lies before or after is not known.",
        "doubles": "the same number of a producer, or in the archive the same message id and timestamp,"
        " more than once in one queue.",
    }
    parts = [part for term, text in terms.items() for part in (el("dt", term), el("dd", text))]
    folders = ", ".join(audited.tables)
    return join(
        el("h2", "How to read this"),
        el("dl", *parts),
        el(
            "p",
            f"The tables are beside this page, as Parquet, each whole in a folder of its own: {folders}.",
            class_="soft",
        ),
    )


ALL: Final = (_traffic, _latency, _ends, _routers, _producers, _doubles, _terms)


def _empty(why: str) -> Markup:
    return el("div", why, class_="empty")


def _part(table: Table, what: str) -> str:
    return f"{len(table.rows):,} of {table.total:,} {what}" if table.total > len(table.rows) else f"all {what}"


def _table(table: Table, columns: dict[str, tuple[str, Cell]], hot: Sequence[str] = ()) -> Markup | None:
    """A table with `columns`: heading and how a value is written. Numbers other than 0 in columns of `hot` are red."""
    if not table.rows:
        return None
    text = {column for column, (_, write) in columns.items() if write in (name, str)}
    heads = [el("th", heading, class_=None if column in text else "n") for column, (heading, _) in columns.items()]
    rows = []
    for row in table.rows:
        cells = []
        for column, (_, write) in columns.items():
            kind = "" if column in text else "n hot" if column in hot and row[column] else "n"
            value = row[column]
            cells.append(el("td", "–" if value is None else write(value), class_=kind or None))
        rows.append(el("tr", *cells))
    shown = el("div", el("table", el("thead", el("tr", *heads)), el("tbody", *rows)), class_="scroll", tabindex=0)
    if table.total == len(table.rows):
        return shown
    return join(shown, el("p", f"{_part(table, 'rows')}; all are in the folder {table.name}.", class_="axis"))
