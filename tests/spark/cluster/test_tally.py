"""The count that `make cluster` ends with sees what is missing, what came twice and what nobody sent."""

import pytest

from tests.spark.both_scene import Tally, tally

pytestmark = pytest.mark.spark


def test_each_message_once_in_any_order_is_right():
    assert tally("q", [b"1", b"2"], [b"2", b"1"]) == Tally("q", sent=2, arrived=2, lost=0, doubled=0, strange=0)
    assert tally("q", [b"1", b"2"], [b"2", b"1"]).is_right


@pytest.mark.parametrize(
    ("arrived", "lost", "doubled", "strange"),
    [([b"1"], 1, 0, 0), ([b"1", b"2", b"2", b"2"], 0, 2, 0), ([b"1", b"2", b"9"], 0, 0, 1), ([b"1", b"1"], 1, 1, 0)],
    ids=["lost", "doubled", "strange", "one for another"],
)
def test_what_is_wrong_is_counted(arrived: list[bytes], lost: int, doubled: int, strange: int):
    found = tally("q", [b"1", b"2"], arrived)
    assert (found.lost, found.doubled, found.strange) == (lost, doubled, strange)
    assert not found.is_right
