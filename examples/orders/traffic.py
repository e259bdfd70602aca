"""The traffic of the main job: unmodified stomp.py producers and consumers over real sockets."""

import json
import threading
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import stomp

from examples.orders.broker_process import Address
from examples.orders.events import Order

PRODUCERS = 4
CONSUMERS = 3
OUTSTANDING = 200
STALLED_AFTER_S = 60.0
ORDERS = "/topic/orders"
WORK = "orders::orders.work"
PRICES = "/topic/prices"
LAST_PRICES = "prices::prices.last"
DEAD = "/queue/DLQ"
GOODBYE = "goodbye"
# One order in 40 fails once and succeeds when it is redelivered; one in 500 is poison and fails always.
FAILS_ONCE_IN = 40
POISON_IN = 500


class TrafficError(Exception):
    """The broker refused something or stopped answering."""


@dataclass
class Receipts:
    """What clients know for certain, because the broker confirmed it."""

    published: list[str] = field(default_factory=list)
    acknowledged: list[str] = field(default_factory=list)
    dead: list[str] = field(default_factory=list)
    redelivered: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


def connect(address: Address, listener: stomp.ConnectionListener) -> Any:
    """A logged-in STOMP 1.2 connection."""
    connection = stomp.Connection12([(address.host, address.stomp_port)], heartbeats=(0, 0))
    connection.set_listener("", listener)
    connection.connect(address.user, address.password, wait=True)
    return connection


class _Confirming(stomp.ConnectionListener):  # type: ignore[misc]  # stomp.py ships no types
    """Turns receipts into calls and lets at most `OUTSTANDING` of them be awaited."""

    def __init__(self, confirmed: Callable[[str], None]) -> None:
        self._confirmed = confirmed
        self._room = threading.Semaphore(OUTSTANDING)
        self.error = ""

    def reserve(self) -> None:
        if not self._room.acquire(timeout=STALLED_AFTER_S):
            raise TrafficError(self.error or f"no receipt for {STALLED_AFTER_S:.0f} s")

    def drained(self) -> None:
        for _ in range(OUTSTANDING):
            self.reserve()

    def on_receipt(self, frame: Any) -> None:
        receipt = frame.headers["receipt-id"]
        if receipt != GOODBYE:
            self._confirmed(receipt)
            self._room.release()

    def on_error(self, frame: Any) -> None:
        self.error = frame.headers.get("message", frame.body)

    def on_disconnected(self) -> None:
        self.error = self.error or "the broker closed the connection"


def produce(address: Address, orders: list[Order], receipts: Receipts) -> None:
    """Publishes orders durably; an order counts as published when its receipt is here."""

    def confirmed(receipt: str) -> None:
        with receipts.lock:
            receipts.published.append(receipt)

    listener = _Confirming(confirmed)
    connection = connect(address, listener)
    for order in orders:
        listener.reserve()
        if listener.error:
            raise TrafficError(listener.error)
        connection.send(
            ORDERS,
            order.line,
            content_type="application/json",
            headers={"persistent": "true", "receipt": order.order_id, "order-id": order.order_id},
        )
        connection.send(PRICES, f"{order.amount:.2f}", headers={"order-id": order.order_id})
    listener.drained()
    connection.disconnect(receipt=GOODBYE)


class Worker(_Confirming):
    """A consumer of `orders.work`: acknowledges one by one, fails some."""

    def __init__(self, receipts: Receipts) -> None:
        super().__init__(self._acknowledged)
        self._receipts = receipts
        self._connection: Any = None
        self._unconfirmed = 0
        self._settled = threading.Condition()

    def start(self, address: Address) -> None:
        """Subscribes."""
        self._connection = connect(address, self)
        self._connection.subscribe(WORK, id="work", ack="client-individual", headers={"activemq.prefetchSize": "100"})

    def stop(self) -> None:
        """Waits until each acknowledgement is confirmed, then disconnects cleanly."""
        with self._settled:
            if not self._settled.wait_for(lambda: self._unconfirmed == 0, STALLED_AFTER_S):
                raise TrafficError(self.error or f"{self._unconfirmed} acknowledgements were never confirmed")
        self._connection.disconnect(receipt=GOODBYE)

    def _acknowledged(self, receipt: str) -> None:
        with self._receipts.lock:
            self._receipts.acknowledged.append(receipt)

    def on_message(self, frame: Any) -> None:
        order_id = json.loads(frame.body)["order_id"]
        again = frame.headers.get("redelivered") == "true"
        if again:
            with self._receipts.lock:
                self._receipts.redelivered += 1
        chance = zlib.crc32(order_id.encode())
        if chance % POISON_IN == 0 or (chance % FAILS_ONCE_IN == 0 and not again):
            self._connection.nack(frame.headers["ack"])
        else:
            with self._settled:
                self._unconfirmed += 1
            self._connection.ack(frame.headers["ack"], receipt=order_id)

    def on_receipt(self, frame: Any) -> None:
        receipt = frame.headers["receipt-id"]
        if receipt == GOODBYE:
            return
        self._acknowledged(receipt)
        with self._settled:
            self._unconfirmed -= 1
            self._settled.notify_all()


class Reader(stomp.ConnectionListener):  # type: ignore[misc]  # stomp.py ships no types
    """Takes what a queue holds right now and acknowledges it."""

    def __init__(self) -> None:
        self.frames: list[Any] = []
        self.confirmed = 0
        self._changed = threading.Condition()
        self._connection: Any = None

    def on_message(self, frame: Any) -> None:
        self._connection.ack(frame.headers["ack"], receipt=frame.headers["message-id"])
        with self._changed:
            self.frames.append(frame)
            self._changed.notify_all()

    def on_receipt(self, frame: Any) -> None:
        with self._changed:
            self.confirmed += 1
            self._changed.notify_all()

    def read(self, address: Address, destination: str, count: int) -> list[Any]:
        """``count`` messages, each confirmed as acknowledged."""
        self._connection = connect(address, self)
        self._connection.subscribe(destination, id="read", ack="client-individual")
        with self._changed:
            if not self._changed.wait_for(lambda: self.confirmed >= count, STALLED_AFTER_S):
                raise TrafficError(f"{destination} gave {self.confirmed} of {count} messages")
        self._connection.disconnect()
        return self.frames


class Traffic:
    """Producers and consumers side by side, with counts to show while they work."""

    def __init__(self, address: Address, orders: list[Order]) -> None:
        self.receipts = Receipts()
        self._address = address
        self._orders = orders
        self._failures: list[Exception] = []

    def run(self, progress: Callable[[Receipts], None]) -> Receipts:
        """Publishes everything and works until `orders.work` is empty.

        Raises:
            TrafficError: the broker refused something or stopped answering.
        """
        workers = [Worker(self.receipts) for _ in range(CONSUMERS)]
        for worker in workers:
            worker.start(self._address)
        parts = [self._orders[index::PRODUCERS] for index in range(PRODUCERS)]
        threads = [threading.Thread(target=self._produce, args=(part,), daemon=True) for part in parts]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads) or self._address.queue("orders.work")["message_count"]:
            progress(self.receipts)
            self._check(workers)
            time.sleep(0.5)
        self._check(workers)
        for worker in workers:
            worker.stop()
        dead = self._address.queue("DLQ")["message_count"]
        for frame in Reader().read(self._address, DEAD, dead):
            self.receipts.dead.append(json.loads(frame.body)["order_id"])
        progress(self.receipts)
        return self.receipts

    def last_prices(self) -> list[str]:
        """What the ring queue kept."""
        count = self._address.queue("prices.last")["message_count"]
        return [frame.body for frame in Reader().read(self._address, LAST_PRICES, count)]

    def _produce(self, orders: list[Order]) -> None:
        try:
            produce(self._address, orders, self.receipts)
        except Exception as error:  # handed to the main thread, which raises it
            self._failures.append(error)

    def _check(self, workers: list[Worker]) -> None:
        for worker in workers:
            if worker.error:
                raise TrafficError(worker.error)
        if self._failures:
            raise TrafficError(str(self._failures[0])) from self._failures[0]
