"""Numbers as people read them: durations, shares, times in UTC, round ends of axes."""

from datetime import UTC, datetime, timedelta
from math import ceil, floor, log10
from typing import Final

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
DAY_MS: Final = 86_400_000
_DURATIONS: Final = ((DAY_MS, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))
_TICKS_MS: Final = tuple(
    1_000 * seconds for seconds in (1, 2, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 21_600, 43_200)
) + tuple(DAY_MS * days for days in (1, 2, 7, 14, 30, 90, 365))
_SIZES: Final = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def count(value: int | float | None) -> str:
    """A number with commas; "–" for none."""
    if value is None:
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.3g}" if value < 1_000 else f"{value:,.0f}"


def counted(value: int, what: str) -> str:
    """A number of things, such as "1 gap" and "2 gaps"; of several words the first is the thing."""
    thing, _, rest = what.partition(" ")
    return f"{value:,} {thing}{'' if value == 1 else 's'}{' ' if rest else ''}{rest}"


def duration(ms: int | None) -> str:
    """A time span, in the unit that fits it."""
    if ms is None:
        return "–"
    for unit_ms, unit in _DURATIONS:
        if ms >= unit_ms:
            return f"{_three(ms / unit_ms)} {unit}"
    return f"{ms} ms"


def size(value: int | None) -> str:
    """A number of bytes, in the unit that fits it."""
    if value is None:
        return "–"
    for unit_bytes, unit in _SIZES:
        if value >= unit_bytes:
            return f"{_three(value / unit_bytes)} {unit}"
    return f"{value} bytes"


def share(value: float | None) -> str:
    """A share as percent; what is not nothing is not shown as 0."""
    if value is None:
        return "–"
    if 0 < value < 0.0001:
        return "< 0.01 %"
    return f"{value * 100:.2f}".rstrip("0").rstrip(".") + " %"


def moment(ms: int, *, seconds: bool = True) -> str:
    """A time in UTC; years that Python's dates don't have are told in ms."""
    try:
        return (EPOCH + timedelta(milliseconds=ms)).strftime("%Y-%m-%d %H:%M:%S" if seconds else "%Y-%m-%d %H:%M")
    except OverflowError:
        return f"{ms:,} ms"


def round_end(value: float) -> float:
    """The end of an axis from 0 that has `value` in it: 1, 2, 4, 5 or 8 times a power of ten, for round quarters."""
    if value <= 0:
        return 1.0
    power = 10.0 ** floor(log10(value))
    return next(step * power for step in (1, 2, 4, 5, 8, 10) if value <= step * power * 1.000001)


def time_ticks(first_ms: int, last_ms: int) -> list[tuple[int, str]]:
    """Round times, six at most, with labels that have what differs among them."""
    span = max(last_ms - first_ms, 1)
    step = next((step for step in _TICKS_MS if span <= 6 * step), span // 5)
    form = "%H:%M:%S" if step < 60_000 else "%H:%M" if span < DAY_MS else "%b %d %H:%M" if step < DAY_MS else "%Y-%m-%d"
    ticks = []
    for at in range(first_ms + -first_ms % step, last_ms + 1, step):
        try:
            ticks.append((at, (EPOCH + timedelta(milliseconds=at)).strftime(form)))
        except OverflowError:
            continue
    return ticks


def decades(longest_ms: int) -> list[int]:
    """Powers of ten from 1 ms up to one that is no less than `longest_ms`, at least 10."""
    return [10**power for power in range(max(ceil(log10(max(longest_ms, 1))), 1) + 1)]


def _three(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
