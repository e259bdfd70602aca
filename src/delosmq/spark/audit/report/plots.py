"""The plots of a report, drawn as SVG that stretches, with labels in HTML that stay readable on a narrow screen."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log10
from typing import Final

from delosmq.spark.audit.report import units
from delosmq.spark.audit.report.markup import Markup, Part, el, join

WIDTH: Final = 1_000
HEIGHT: Final = 300
LEAST_MS: Final = 0.5
"""Left end of an axis of durations: records know no less than 1 ms, and 0 has no place on a logarithmic one."""


@dataclass(frozen=True, slots=True)
class Series:
    """A line over time. Points: start of an interval in ms, and value; intervals without one have none."""

    label: Part
    points: dict[int, float]
    colour: int


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of a row, with what is written behind it."""

    value: float
    text: str
    colour: int
    hint: str = ""


def over_time(title: str, unit: str, series: Sequence[Series], width_ms: int, *, line: bool) -> Markup:
    """Steps over time from 0 up; with `line` there is a hole where nothing is known, otherwise the value is 0 there."""
    starts = [start for one in series for start in one.points]
    if not starts:
        return join()
    first, last = min(starts), max(starts) + width_ms
    top = units.round_end(max(value for one in series for value in one.points.values()))
    paths = [_steps(one, (first, last), top, width_ms, line=line) for one in series]
    grid = [el("line", x1=0, x2=WIDTH, y1=HEIGHT * part / 4, y2=HEIGHT * part / 4, class_="grid") for part in range(5)]
    svg = el("svg", *grid, *paths, view_box=f"0 0 {WIDTH} {HEIGHT}", aspect="none", role="img", aria_label=title)
    heights = [el("span", units.count(top * part / 4), style=f"bottom:{part * 25}%") for part in range(5)]
    times = [
        _tick((at - first) / (last - first), text, number)
        for number, (at, text) in enumerate(units.time_ticks(first, last))
    ]
    return el(
        "figure",
        el("figcaption", el("b", title), " ", el("span", unit, class_="unit")),
        legend([(one.label, one.colour) for one in series]),
        el("div", el("div", *heights, class_="ys"), el("div", svg, class_="area"), class_="frame"),
        el("div", *times, class_="xs"),
        el(
            "p",
            f"{units.moment(first)} to {units.moment(last)} UTC, in steps of {units.duration(width_ms)}",
            class_="axis",
        ),
        class_="plot",
    )


def _steps(series: Series, span: tuple[int, int], top: float, width_ms: int, *, line: bool) -> Markup:
    first, last = span
    parts: list[str] = []
    before: int | None = None
    starts = sorted(series.points) if line else range(first, last, width_ms)
    for start in starts:
        left, right = (WIDTH * (at - first) / (last - first) for at in (start, start + width_ms))
        height = HEIGHT * (1 - series.points.get(start, 0.0) / top)
        joint = "L" if before == start - width_ms else "M"
        parts.append(f"{joint}{left:.1f} {height:.1f}L{right:.1f} {height:.1f}")
        before = start
    drawn = el("path", d="".join(parts), class_=f"line c{series.colour}")
    if line or series.colour:
        return drawn
    return join(el("path", d=f"{''.join(parts)}L{WIDTH} {HEIGHT}L0 {HEIGHT}Z", class_="fill c0"), drawn)


def legend(entries: Sequence[tuple[Part, int]]) -> Markup | None:
    """What the colours mean; none for a single one."""
    if len(entries) < 2:
        return None
    return el("ul", *(el("li", el("i", class_=f"key c{colour}"), label) for label, colour in entries), class_="legend")


def bars(
    rows: Sequence[tuple[Part, Sequence[Bar]]], top: float, axis: Sequence[str], mark: float | None = None
) -> Markup:
    """Bars from 0 to `top`, a few to a row, over an axis whose labels stand in equal distances; `mark` is a line."""
    drawn = []
    for label, row in rows:
        tracks = [
            el(
                "div",
                el(
                    "div",
                    el("i", class_=f"bar c{bar.colour}", style=f"width:{bar.value / top:.3%}") if bar.value else None,
                    class_="rail",
                ),
                el("span", bar.text, class_="value"),
                class_="track",
                title=bar.hint or None,
            )
            for bar in row
        ]
        line = None if mark is None else el("i", class_="mark", style=f"left:{100 * mark / top:.3f}%")
        tracks = [el("div", *tracks, el("div", line, class_="rail over") if line else None, class_="tracks")]
        drawn.append(el("div", el("div", label, class_="label"), *tracks, class_="row"))
    return el("div", *drawn, _axis([(part / (len(axis) - 1), text) for part, text in enumerate(axis)]), class_="bars")


@dataclass(frozen=True, slots=True)
class Range:
    """Percentiles of something, rising, in ms: p50, p90, p99, p99.9 and the longest."""

    what: str
    values: tuple[int, int, int, int, int]
    colour: int


MARKS: Final = ("p50", "p90", "p99", "p99.9", "max")
_SHAPES: Final = ("m50", "m90", "m99", "m999", "most")


def ranges(rows: Sequence[tuple[Part, Sequence[Range]]]) -> Markup:
    """Percentiles on a logarithmic axis of durations, a few to a row."""
    ticks = units.decades(max(one.values[-1] for _, row in rows for one in row))
    low, high = log10(LEAST_MS), log10(ticks[-1])

    def at(ms: int) -> float:
        return (log10(max(ms, LEAST_MS)) - low) / (high - low)

    drawn = []
    for label, row in rows:
        tracks = []
        for one in row:
            first, last = at(one.values[0]), at(one.values[-1])
            span = el("i", class_=f"span c{one.colour}", style=f"left:{first:.2%};width:{last - first:.2%}")
            marks = [
                el(
                    "i",
                    class_=f"{kind} c{one.colour}",
                    style=f"left:{at(ms):.2%}",
                    title=f"{text}: {units.duration(ms)}",
                )
                for kind, text, ms in zip(_SHAPES, MARKS, one.values, strict=True)
            ]
            said = ", ".join(f"{MARKS[number]} {units.duration(one.values[number])}" for number in (0, 2, 4))
            tracks += [
                el("div", el("span", one.what, class_=f"ink c{one.colour}"), f": {said}", class_="said"),
                el("div", span, *marks, class_="rail range"),
            ]
        drawn.append(el("div", el("div", label, class_="label"), el("div", *tracks, class_="tracks"), class_="row"))
    named = {1: "1 ms", 10: "10 ms", 100: "100 ms", 1_000: "1 s", 10_000: "10 s"}
    axis = [(at(ms), named.get(ms) or units.duration(ms)) for ms in ticks]
    kinds = [el("li", el("i", class_=f"shape {kind} c0"), text) for kind, text in zip(_SHAPES, MARKS, strict=True)]
    return join(
        el("ul", *kinds, class_="legend"),
        el("div", *drawn, _axis(axis), class_="bars"),
        el("p", "Time, on a logarithmic axis; below 1 ms stands at the left end.", class_="axis"),
    )


def strip(first: int, last: int, holes: Sequence[tuple[int, int]]) -> Markup:
    """Numbers from `first` to `last` as a band, with `holes` (both ends missing) in it."""
    span = last - first + 1
    cut = [
        el(
            "i",
            class_="hole",
            style=f"left:{(start - first) / span:.3%};width:{(end - start + 1) / span:.3%}",
            title=f"{start:,} to {end:,} are missing" if end > start else f"{start:,} is missing",
        )
        for start, end in holes
    ]
    return el("div", *cut, class_="strip")


def _axis(ticks: Sequence[tuple[float, str]]) -> Markup:
    labels = [_tick(at, text, number) for number, (at, text) in enumerate(ticks)]
    return el(
        "div",
        el("div", class_="label"),
        el("div", el("div", *labels, class_="rail ticks"), class_="tracks"),
        class_="row",
    )


def _tick(at: float, text: str, number: int) -> Markup:
    """A label below an axis, at its ends within them; each second one is left out on narrow screens."""
    place = "from" if at < 0.03 else "to" if at > 0.97 else ""
    return el("span", text, style=f"left:{at:.2%}", class_=f"{place} odd" if number % 2 else place or None)
