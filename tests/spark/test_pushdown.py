"""Filters that a batch read leaves to the broker: those alone, and exactly those, that it applies as Spark would."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
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

from delosmq.model.properties import Properties
from delosmq.selectors.selector import parse_selector
from delosmq.spark.source.pushdown import PushedFilters, push

pytestmark = pytest.mark.spark

MOMENT = datetime(2026, 3, 1, tzinfo=UTC)
MS = int(MOMENT.timestamp() * 1000)
HALF = timedelta(microseconds=500)


@pytest.mark.parametrize(
    "given, after, until",
    [
        (GreaterThan(("sequence",), 5), 5, None),
        (GreaterThanOrEqual(("sequence",), 5), 4, None),
        (LessThan(("sequence",), 5), None, 4),
        (LessThanOrEqual(("sequence",), 5), None, 5),
        (EqualTo(("sequence",), 5), 4, 5),
        (IsNotNull(("sequence",)), None, None),
    ],
)
def test_bounds_of_sequences_are_the_brokers(given: Any, after: int | None, until: int | None):
    pushed, left = push([given])
    whole = PushedFilters()
    assert (pushed.after, pushed.until) == (whole.after if after is None else after, until or whole.until)
    assert left == []


@pytest.mark.parametrize(
    "given, since_ms, before_ms",
    [
        (GreaterThan(("timestamp",), MOMENT), MS + 1, None),
        (GreaterThan(("timestamp",), MOMENT + HALF), MS + 1, None),
        (GreaterThanOrEqual(("timestamp",), MOMENT), MS, None),
        (GreaterThanOrEqual(("timestamp",), MOMENT + HALF), MS + 1, None),
        (LessThan(("timestamp",), MOMENT), None, MS),
        (LessThan(("timestamp",), MOMENT + HALF), None, MS + 1),
        (LessThanOrEqual(("timestamp",), MOMENT), None, MS + 1),
        (LessThanOrEqual(("timestamp",), MOMENT + HALF), None, MS + 1),
        (EqualTo(("timestamp",), MOMENT), MS, MS + 1),
    ],
)
def test_bounds_of_time_are_the_brokers(given: Any, since_ms: int | None, before_ms: int | None):
    pushed, left = push([given])
    assert (pushed.since_ms, pushed.before_ms) == (since_ms or 0, before_ms or PushedFilters().before_ms)
    assert left == []


def test_no_message_has_a_time_between_two_milliseconds():
    pushed, _ = push([EqualTo(("timestamp",), MOMENT + HALF)])
    assert pushed.since_ms >= pushed.before_ms


def test_the_narrowest_bounds_count():
    pushed, _ = push([GreaterThan(("sequence",), 5), GreaterThan(("sequence",), 3), LessThan(("sequence",), 9)])
    assert (pushed.after, pushed.until) == (5, 8)


class Row(Properties):
    """A message with these headers."""

    def __init__(self, **values: Any) -> None:
        self.values = values

    def value(self, name: str) -> Any:
        return self.values.get(name)


@pytest.mark.parametrize(
    "given, through, stopped",
    [
        (GreaterThan(("priority",), 5), {"JMSPriority": 6}, {"JMSPriority": 5}),
        (In(("priority",), (1, 2)), {"JMSPriority": 2}, {"JMSPriority": 3}),
        (EqualTo(("type",), "it's"), {"JMSType": "it's"}, {"JMSType": "its"}),
        (Not(EqualTo(("type",), "a")), {"JMSType": "b"}, {"JMSType": "a"}),
        (In(("type",), ("a", "b")), {"JMSType": "b"}, {}),
        (IsNull(("group_id",)), {}, {"JMSXGroupID": "g"}),
        (IsNotNull(("group_id",)), {"JMSXGroupID": "g"}, {}),
        (StringStartsWith(("user",), "a%"), {"JMSXUserID": "a%b"}, {"JMSXUserID": "aab"}),
        (StringEndsWith(("user",), "_!"), {"JMSXUserID": "a_!"}, {"JMSXUserID": "aa!"}),
        (StringContains(("correlation_id",), "b"), {"JMSCorrelationID": "abc"}, {"JMSCorrelationID": "ac"}),
        (EqualTo(("durable",), True), {"JMSDeliveryMode": "PERSISTENT"}, {"JMSDeliveryMode": "NON_PERSISTENT"}),
    ],
)
def test_what_selectors_can_say_goes_to_the_broker_and_is_looked_at_again(given: Any, through: Any, stopped: Any):
    pushed, left = push([given])
    assert left == [given]
    for own in ("", "a IS NULL OR a = 1"):
        selector = parse_selector(pushed.selector(own))
        assert selector.matches(Row(**through))
        assert not selector.matches(Row(**stopped))
    assert not parse_selector(pushed.selector("a = 1")).matches(Row(**through))


@pytest.mark.parametrize(
    "given",
    [
        EqualTo(("body",), b"x"),
        EqualTo(("message_id",), "ID:1"),
        EqualTo(("sequence",), None),
        In(("sequence",), (1, 2)),
        Not(EqualTo(("sequence",), 1)),
        EqualTo(("timestamp",), MOMENT.replace(tzinfo=None)),
        EqualTo(("priority",), "4"),
        EqualTo(("type",), 4),
        EqualNullSafe(("type",), "a"),
        In(("type",), ("a", None)),
        In(("type",), ()),
        Not(In(("type",), ("a",))),
        GreaterThan(("type",), "a"),
        StringContains(("a", "type"), "b"),
        EqualTo(("properties", "type"), "b"),
    ],
)
def test_everything_else_is_left_to_spark(given: Any):
    assert push([given]) == (PushedFilters(), [given])


def test_a_selector_with_a_prefix_stays_as_it_is():
    pushed, left = push([EqualTo(("type",), "a")])
    own = "convert_string_expressions: a = 1"
    assert pushed.selector(own) == own
    assert left
