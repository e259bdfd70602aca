"""Input of the main job: what is taken, and what is refused by line number."""

import json
from pathlib import Path

import pytest

from examples.data.make_orders import order_lines
from examples.orders.events import InputError, parse_order, read_orders

GOOD = {"order_id": "o-1", "customer": "c", "placed_at": "2026-03-02T10:00:00Z", "amount": 9.5}


def test_generated_orders_are_good_and_the_same_for_the_same_seed(tmp_path: Path) -> None:
    lines = list(order_lines(200, 7))
    assert lines == list(order_lines(200, 7))
    assert lines != list(order_lines(200, 8))
    path = tmp_path / "orders.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    orders = read_orders(path)
    assert len({order.order_id for order in orders}) == 200


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"order_id": None}, "'order_id' must be a string"),
        ({"order_id": ""}, "'order_id' must be a string that is not empty"),
        ({"customer": 7}, "'customer' must be a string"),
        ({"placed_at": "yesterday"}, "'placed_at' is not ISO 8601: 'yesterday'"),
        ({"placed_at": "2026-03-02T10:00:00"}, "no time zone"),
        ({"placed_at": 5}, "'placed_at' must be a string"),
        ({"amount": "9"}, "'amount' must be a number"),
        ({"amount": -1}, "not negative"),
        ({"amount": True}, "'amount' must be a number"),
        ({"amount": float("nan")}, "'amount' must be a number"),
    ],
)
def test_a_wrong_field_is_named(change: dict[str, object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_order(json.dumps({**GOOD, **change}))


def test_bad_lines_are_refused_by_number_and_nothing_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "orders.jsonl"
    lines = [json.dumps(GOOD), "{", json.dumps({**GOOD, "order_id": "o-2"}), json.dumps(GOOD), "[1]", ""]
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(InputError) as refused:
        read_orders(path)
    text = str(refused.value)
    assert "3 bad line(s)" in text
    assert "line 2: not JSON" in text
    assert "line 4: order_id 'o-1' stands in line 1 already" in text
    assert "line 5: not a JSON object" in text


def test_an_empty_or_missing_file_is_refused(tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n\n", encoding="utf-8")
    with pytest.raises(InputError, match="holds no orders"):
        read_orders(empty)
    with pytest.raises(InputError, match="can't read"):
        read_orders(tmp_path / "missing.jsonl")
