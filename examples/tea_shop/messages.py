"""What the parts of the shop send each other, as JSON; and where to."""

import json
from dataclasses import asdict, dataclass

ORDERS = "orders"
INVOICES = "invoices"
PRICES = "prices"
DEAD_ORDERS = "orders.dead"


class BadOrderError(ValueError):
    """Nobody can do anything with it."""


@dataclass(frozen=True)
class Order:
    order_id: str
    item: str
    count: int

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Order":
        """
        Raises:
            BadOrderError: it is no order.
        """
        try:
            order = cls(**json.loads(text))
        except (ValueError, TypeError) as error:
            raise BadOrderError(f"no order: {error}") from None
        if type(order.count) is not int or order.count < 1:
            raise BadOrderError(f"order {order.order_id}: can't send {order.count!r} of {order.item}")
        return order


@dataclass(frozen=True)
class Invoice:
    order_id: str
    cents: int

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Invoice":
        return cls(**json.loads(text))
