"""The worker: makes an invoice of each order, once, whatever fails."""

import logging

import delosmq
from delosmq.client import AckMode, ClientConnection
from examples.tea_shop.messages import INVOICES, ORDERS, Invoice, Order
from examples.tea_shop.pricing import ask_price

LOG = logging.getLogger(__name__)

RETRIES = (
    "jms.redeliveryPolicy.initialRedeliveryDelay={delay_ms}"
    "&jms.redeliveryPolicy.redeliveryDelay={delay_ms}"
    "&jms.redeliveryPolicy.maximumRedeliveries=2"
    "&jms.nonBlockingRedelivery=true"
)
"""An order is tried three times, then it is a dead letter; other orders do not wait for it."""


def connect(url: str, user: str, password: str, *, retry_after_s: float = 300) -> ClientConnection:
    """A connection that is made again when it breaks."""
    options = RETRIES.format(delay_ms=int(retry_after_s * 1_000))
    return delosmq.connect(f"failover:({url})?{options}", user=user, password=password)


class OrderWorker:
    """Takes orders one by one.

    Attributes:
        price_timeout_s: how long the pricing service may take.
    """

    def __init__(self, connection: ClientConnection) -> None:
        self.price_timeout_s: float = 5
        self._connection = connection
        self._session = connection.create_session(AckMode.TRANSACTED)
        self._orders = self._session.create_consumer(ORDERS)
        self._invoices = self._session.create_producer(INVOICES)

    def handle_next(self, timeout_s: float | None = None) -> bool:
        """Waits for an order and handles it. False: there was none in time."""
        message = self._orders.receive(timeout_s)
        if message is None:
            return False
        try:
            order = Order.from_json(message.text)
            price = ask_price(self._connection, order.item, self.price_timeout_s)
            self._invoices.send(Invoice(order.order_id, order.count * price).to_json())
            self._session.commit()  # the order is gone and the invoice is there, or neither
        except Exception as error:
            LOG.warning("delivery %d of %s failed: %s", message.delivery_count, message.message_id, error)
            self._session.rollback()
        return True
