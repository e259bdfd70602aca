"""The measures of order: each counts what it says, and a limit only becomes lower."""

import pytest

from tools import house

pytestmark = pytest.mark.sources


def test_what_is_worse_fails_and_what_is_better_becomes_the_limit() -> None:
    limits = {"one": 10, "other": 3}
    found = {"one": 11, "other": 2}
    (sentence,) = house.exceeded(found, limits)
    assert sentence.startswith("one: 11, and 10 are allowed")
    assert house.lowered(found, limits) == {"one": 10, "other": 2}
    assert house.exceeded(limits, limits) == []


def test_a_durable_send_is_followed_up_to_its_record_the_same_way_each_time() -> None:
    first = house.way_of_a_durable_send()
    assert house.way_of_a_durable_send() == first  # nothing but zeros where the modules are compiled
