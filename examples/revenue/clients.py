"""The two ends, with an unmodified STOMP client: tills that send orders, accounting that takes the revenue."""

import json
import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from stomp.listener import WaitingListener

from examples.orders.broker_process import Address
from examples.orders.traffic import Reader, connect

OPENED_AT = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)
SHOPS = ("s-1", "s-2", "s-3", "s-4", "s-5")
"""s-5 is new, and not in the table yet."""
LATE_ORDER = {"order_id": "o-late", "shop": "s-4", "placed_at": "2026-03-02T10:01:30+00:00", "cents": 990}
"""Of a till that was offline for a while."""
NO_ORDER = "no order"


def order_lines(count: int, *, seed: int = 5) -> Iterator[str]:
    """`count` orders, one a second, each up to 30 s before its turn, as if on ways of different length."""
    chance = random.Random(seed)
    for number in range(count):
        placed_at = OPENED_AT + timedelta(seconds=max(0, number - chance.randrange(31)))
        order = {
            "order_id": f"o-{number:05d}",
            "shop": chance.choice(SHOPS),
            "placed_at": placed_at.isoformat(),
            "cents": chance.randrange(100, 5_000),
        }
        yield json.dumps(order)


def send_orders(broker: Address, lines: Sequence[str], *, first: int = 1) -> None:
    """Sends each order as a durable message, numbered from `first` on; returns when the broker has them all."""
    confirmed = WaitingListener("last")
    connection = connect(broker, confirmed)
    for number, line in enumerate(lines, start=first):
        headers = {"persistent": "true", "till": "till-1", "number": str(number)}
        if number == first + len(lines) - 1:
            headers["receipt"] = "last"
        connection.send("/topic/orders", line, content_type="application/json", headers=headers)
    confirmed.wait_on_receipt()
    connection.disconnect()


def take_revenue(broker: Address) -> list[Any]:
    """The frames that wait for accounting now, each acknowledged."""
    waiting = broker.queue("revenue.accounting")["message_count"]
    return Reader().read(broker, "revenue::revenue.accounting", waiting)
