"""Filters of a Spark query as the broker can apply them: bounds of sequence and time, and a selector.

Bounds are exact, so Spark need not look again. What goes into the selector is looked at by Spark once more: selectors
lack its types, and must only never leave out a message that Spark would keep.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from delosmq.spark.lease_requests import LARGEST_MS

LARGEST_SEQUENCE = (1 << 63) - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
_PREFIXED = re.compile(r"\s*[A-Za-z_]+\s*:")
"""A selector that begins with how it is to be read can't become a part of another one."""

NAMES = {
    "priority": "JMSPriority",
    "group_id": "JMSXGroupID",
    "correlation_id": "JMSCorrelationID",
    "type": "JMSType",
    "user": "JMSXUserID",
}
"""Columns and what selectors call them. Not message_id: selectors know the client's own, the column the broker's."""
TEXT_COLUMNS = frozenset(NAMES) - {"priority"}
_COMPARISONS = {GreaterThan: ">", GreaterThanOrEqual: ">=", LessThan: "<", LessThanOrEqual: "<=", EqualTo: "="}


@dataclass(frozen=True, slots=True)
class PushedFilters:
    """What the broker filters by: ``after`` < sequence <= ``until``, ``since_ms`` <= time < ``before_ms``, and
    ``terms`` of a selector, all of which must hold."""

    after: int = -1
    until: int = LARGEST_SEQUENCE
    since_ms: int = 0
    before_ms: int = LARGEST_MS
    terms: tuple[str, ...] = ()

    def selector(self, own: str) -> str:
        """The terms together with the selector `own` of the query's options; that alone if it can't be combined."""
        if not self.terms or (own and _PREFIXED.match(own)):
            return own
        return " AND ".join((*((f"({own})",) if own else ()), *self.terms))


def push(filters: Sequence[Filter]) -> tuple[PushedFilters, list[Filter]]:
    """What of `filters` the broker applies, and those that Spark still has to."""
    pushed, left = PushedFilters(), []
    for each in filters:
        column = _column(each)
        bound = _BOUNDS[column](pushed, each) if column in _BOUNDS else None
        if bound is not None:
            pushed = bound
            continue
        left.append(each)
        term = _term(each)
        if term:
            pushed = replace(pushed, terms=(*pushed.terms, term))
    return pushed, left


def _column(of: Filter) -> str:
    attribute: Any = getattr(of, "attribute", ())
    return str(attribute[0]) if len(attribute) == 1 else ""


def _sequence_bound(pushed: PushedFilters, of: Filter) -> PushedFilters | None:
    if isinstance(of, IsNotNull):
        return pushed  # it never is
    value = getattr(of, "value", None)
    if type(value) is not int:
        return None
    first, last = _bounds_of(of, value, value)
    if first is None and last is None:
        return None
    return replace(
        pushed,
        after=pushed.after if first is None else max(pushed.after, first - 1),
        until=pushed.until if last is None else min(pushed.until, last),
    )


def _time_bound(pushed: PushedFilters, of: Filter) -> PushedFilters | None:
    if isinstance(of, IsNotNull):
        return pushed
    value = getattr(of, "value", None)
    if not isinstance(value, datetime) or value.tzinfo is None:
        return None
    # The column has whole milliseconds: the last at or before the value, and the first at or after it.
    floor = (value - _EPOCH) // _MS
    ceiling = -((_EPOCH - value) // _MS)
    first, last = _bounds_of(of, floor, ceiling)
    if first is None and last is None:
        return None
    return replace(
        pushed,
        since_ms=pushed.since_ms if first is None else max(pushed.since_ms, first),
        before_ms=pushed.before_ms if last is None else max(0, min(pushed.before_ms, last + 1)),
    )


def _bounds_of(of: Filter, floor: int, ceiling: int) -> tuple[int | None, int | None]:
    """The first and the last whole value that passes, None for no such bound; `floor` and `ceiling` of the limit."""
    if isinstance(of, GreaterThan):
        return floor + 1, None
    if isinstance(of, GreaterThanOrEqual):
        return ceiling, None
    if isinstance(of, LessThan):
        return None, ceiling - 1
    if isinstance(of, LessThanOrEqual):
        return None, floor
    if isinstance(of, EqualTo):
        return ceiling, floor
    return None, None


_BOUNDS: dict[str, Callable[[PushedFilters, Filter], PushedFilters | None]] = {
    "sequence": _sequence_bound,
    "timestamp": _time_bound,
}


def _term(of: Filter) -> str:
    """A term of a selector that holds wherever the filter does; "" when there is none."""
    if isinstance(of, Not):
        # Only of what is never unknown in a selector where it is false in Spark, and the other way round.
        inner = _term(of.child) if isinstance(of.child, EqualTo) else ""
        return f"NOT ({inner})" if inner else ""
    column = _column(of)
    if column == "durable":
        return _durable(of)
    name = NAMES.get(column)
    if name is None:
        return ""
    if isinstance(of, IsNull):
        return f"{name} IS NULL"
    if isinstance(of, IsNotNull):
        return f"{name} IS NOT NULL"
    value = getattr(of, "value", None)
    if isinstance(of, In):
        return _one_of(column, name, value)
    literal = _literal(column, value)
    if not literal:
        return ""
    if column in TEXT_COLUMNS:
        return _text_term(of, name, literal, str(value))
    operator = _COMPARISONS.get(type(of), "")
    return f"{name} {operator} {literal}" if operator else ""


def _text_term(of: Filter, name: str, literal: str, value: str) -> str:
    if isinstance(of, EqualTo):
        return f"{name} = {literal}"
    if isinstance(of, StringStartsWith):
        return _like(name, f"{_escaped(value)}%")
    if isinstance(of, StringEndsWith):
        return _like(name, f"%{_escaped(value)}")
    if isinstance(of, StringContains):
        return _like(name, f"%{_escaped(value)}%")
    return ""


def _durable(of: Filter) -> str:
    value = getattr(of, "value", None)
    if isinstance(of, EqualTo) and isinstance(value, bool):
        return f"JMSDeliveryMode = '{'PERSISTENT' if value else 'NON_PERSISTENT'}'"
    return ""


def _one_of(column: str, name: str, values: Any) -> str:
    if not isinstance(values, list | tuple):
        return ""
    literals = [_literal(column, value) for value in values]
    if not literals or not all(literals):
        return ""
    if column in TEXT_COLUMNS:
        return f"{name} IN ({', '.join(literals)})"
    return "(" + " OR ".join(f"{name} = {literal}" for literal in literals) + ")"


def _literal(column: str, value: object) -> str:
    """`value` as a selector writes it; "" when it is of no type of that column."""
    if column in TEXT_COLUMNS:
        return _quoted(value) if isinstance(value, str) else ""
    return str(value) if type(value) is int else ""


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _like(name: str, pattern: str) -> str:
    return f"{name} LIKE {_quoted(pattern)} ESCAPE '!'"


def _escaped(text: str) -> str:
    return re.sub(r"([!%_])", r"!\1", text)
