"""Reading order events: one JSON object a line, refused by number when it is wrong."""

import json
import math
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

FIELDS = ("order_id", "customer", "placed_at", "amount")
REASONS_SHOWN = 5


class InputError(Exception):
    """The input can't be used; the text is one sentence for people."""


@dataclass(frozen=True)
class Order:
    """One event.

    Attributes:
        line: as read, what is sent.
        amount: in the currency of the shop, not negative.
    """

    order_id: str
    amount: float
    line: str


def read_orders(path: Path) -> list[Order]:
    """All orders of a file.

    Raises:
        InputError: names each bad line by number, the first few of them.
    """
    orders: list[Order] = []
    first_seen: dict[str, int] = {}
    wrong: list[str] = []
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"DMQ7101: can't read {path}: {error}; give a readable UTF-8 file with INPUT=file.jsonl"
        ) from error
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            order = parse_order(line)
            if order.order_id in first_seen:
                raise ValueError(f"order_id '{order.order_id}' stands in line {first_seen[order.order_id]} already")
        except ValueError as error:
            wrong.append(f"line {number}: {error}")
            continue
        first_seen[order.order_id] = number
        orders.append(order)
    if wrong:
        shown = "\n  ".join(wrong[:REASONS_SHOWN])
        more = f"\n  and {len(wrong) - REASONS_SHOWN} more" if len(wrong) > REASONS_SHOWN else ""
        raise InputError(
            f"DMQ7102: {path} has {len(wrong)} bad line(s); nothing was sent. Mend them and run again:\n  {shown}{more}"
        )
    if not orders:
        raise InputError(f"DMQ7103: {path} holds no orders; give one JSON object a line with {', '.join(FIELDS)}")
    return orders


def parse_order(line: str) -> Order:
    """One line.

    Raises:
        ValueError: says which field is wrong.
    """
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON ({error.msg} at column {error.colno})") from error
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    for name in FIELDS:
        if name not in value:
            raise ValueError(f"'{name}' is missing")
    for name in ("order_id", "customer"):
        if not isinstance(value[name], str) or not value[name]:
            raise ValueError(f"'{name}' must be a string that is not empty")
    amount = value["amount"]
    if isinstance(amount, bool) or not isinstance(amount, int | float) or not math.isfinite(amount) or amount < 0:
        raise ValueError(f"'amount' must be a number that is not negative, not {json.dumps(amount)}")
    _check_moment(value["placed_at"])
    return Order(value["order_id"], float(amount), line.strip())


def _check_moment(value: object) -> None:
    if not isinstance(value, str):
        raise ValueError("'placed_at' must be a string in ISO 8601")
    try:
        moment = datetime.fromisoformat(value)
    except ValueError as error:
        raise ValueError(f"'placed_at' is not ISO 8601: '{value}'") from error
    if moment.tzinfo is None:
        raise ValueError(f"'placed_at' has no time zone: '{value}' (write 2026-03-02T10:00:00Z)")
