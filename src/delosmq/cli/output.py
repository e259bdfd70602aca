"""Output for people: as it is written, without what rich would read into it."""

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import IO, Any, Final

from rich.console import Console
from rich.table import Table

_PIPED_WIDTH: Final = 4_000


def plain_console(*, stderr: bool = False, file: IO[str] | None = None) -> Console:
    """A console that prints names as they are: no markup, no emoji for ``:tea:``, no wrapping."""
    return Console(stderr=stderr, file=file, markup=False, emoji=False, highlight=False, soft_wrap=True)


def print_table(rows: Sequence[dict[str, Any]], columns: Sequence[tuple[str, str]]) -> None:
    """Rows under headings, numbers on the right.

    Args:
        columns: field and heading.
    """
    table = Table(box=None, pad_edge=False)
    for field, title in columns:
        numeric = bool(rows) and all(type(row[field]) is int for row in rows)
        table.add_column(title, justify="right" if numeric else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(shown_value(row[field]) for field, _ in columns))
    # Wide enough for any name: output that is piped must not be cut to a terminal's width.
    width = None if sys.stdout.isatty() else _PIPED_WIDTH
    console = Console(highlight=False, markup=False, emoji=False, width=width)
    with console.capture() as captured:
        console.print(table)
    sys.stdout.write("\n".join(line.rstrip() for line in captured.get().split("\n")))


def print_json(rows: Sequence[dict[str, Any]]) -> None:
    """Rows for programs."""
    sys.stdout.write(json.dumps(rows, ensure_ascii=False, indent=2) + "\n")


def tell_missing(what: str, page: dict[str, Any], user: str, name_filter: str, *, found: bool) -> None:
    """Says on standard error that nothing was found, and what ``page``, the last of a list, could not show."""
    console = plain_console(stderr=True)
    if not found:
        named = f" with '{name_filter}' in its name" if name_filter else ""
        console.print(f"there is no {what}{named} that user '{user}' may view")
    # A broker of an earlier version says nothing of it.
    if page.get("notice"):
        console.print(page["notice"])


def shown_time(at_ms: int) -> str:
    """A time in UTC; "" for none."""
    if not at_ms:
        return ""
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def shown_value(value: object) -> str:
    """A value as people read it: yes and no, lists with commas."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ",".join(str(item) for item in value)
    return str(value)
