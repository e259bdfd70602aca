"""One connection of stomp.py whose frames are read one by one, and which says clearly when the broker is dead."""

import queue
import time
from types import TracebackType
from typing import Any

import stomp
from stomp.exception import StompException
from stomp.utils import Frame

from tests.chaos.broker_process import PASSWORD, USER
from tests.patience import PATIENCE_S


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Arrival:
    """A frame, and when it came."""

    def __init__(self, frame: Frame) -> None:
        self.at_ms = now_ms()
        self.command = str(frame.cmd)
        self.headers: dict[str, str] = frame.headers
        self.body = str(frame.body)


class StompPyPeer(stomp.ConnectionListener):  # type: ignore[misc]
    """Raises EOFError from everything once the broker has gone.

    Args:
        client_id: for durable subscriptions.
    """

    def __init__(self, port: int, client_id: str = "") -> None:
        self._arrivals: queue.SimpleQueue[Arrival | None] = queue.SimpleQueue()
        self._connection = stomp.Connection12([("127.0.0.1", port)], reconnect_attempts_max=1, heartbeats=(0, 0))
        self._connection.set_listener("peer", self)
        headers = {"client-id": client_id} if client_id else {}
        self.call(self._connection.connect, USER, PASSWORD, wait=True, headers=headers)

    def __enter__(self) -> "StompPyPeer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.drop_socket()

    def drop_socket(self) -> None:
        self._connection.transport.disconnect_socket()

    def call(self, command: Any, *values: Any, **named: Any) -> None:
        try:
            command(*values, **named)
        except (OSError, StompException) as error:
            raise EOFError(f"the broker has gone: {error}") from error
        except AttributeError as error:
            # stomp.py drops its socket in another thread, perhaps between looking at it and using it.
            if self._connection.transport.socket is not None:
                raise
            raise EOFError("the broker has gone") from error

    # -- commands ----------------------------------------------------------------------------------------------------

    def send(self, destination: str, body: str, headers: dict[str, str]) -> None:
        """Sends a persistent message."""
        self.call(self._connection.send, destination, body, headers={"persistent": "true", **headers})

    def subscribe(self, destination: str, ack: str, headers: dict[str, str]) -> None:
        self.call(self._connection.subscribe, destination, "s", ack=ack, headers=headers)

    def unsubscribe(self) -> None:
        """Returns when it is done; what came meanwhile is dropped."""
        self.call(self._connection.unsubscribe, "s", receipt="unsubscribed")
        self.skip_to_receipt("unsubscribed")

    def ack(self, ack_id: str, receipt: str | None = None, transaction: str | None = None) -> None:
        self.call(self._connection.ack, ack_id, transaction, receipt)

    def nack(self, ack_id: str, receipt: str) -> None:
        self.call(self._connection.nack, ack_id, receipt=receipt)

    def begin(self, transaction: str) -> None:
        self.call(self._connection.begin, transaction)

    def commit(self, transaction: str) -> None:
        """Its receipt is named like the transaction."""
        self.call(self._connection.commit, transaction, headers={"receipt": transaction})

    def abort(self, transaction: str) -> None:
        """Its receipt is named like the transaction."""
        self.call(self._connection.abort, transaction, headers={"receipt": transaction})

    # -- what comes --------------------------------------------------------------------------------------------------

    def next(self, say: str = "nothing comes from the broker any more") -> Arrival:
        """The next MESSAGE or RECEIPT; ``say`` when there is none."""
        try:
            arrival = self._arrivals.get(timeout=PATIENCE_S)
        except queue.Empty:
            raise AssertionError(say) from None
        if arrival is None or (arrival.command == "ERROR" and "is stopping" in arrival.body):
            raise EOFError("the broker has gone")
        assert arrival.command != "ERROR", f"{arrival.headers} {arrival.body}"
        return arrival

    def next_message(self, say: str = "no message comes any more") -> Arrival:
        while True:
            arrival = self.next(say)
            if arrival.command == "MESSAGE":
                return arrival

    def skip_to_receipt(self, receipt: str) -> None:
        while True:
            arrival = self.next()
            if arrival.command == "RECEIPT" and arrival.headers["receipt-id"] == receipt:
                return

    def on_message(self, frame: Frame) -> None:
        self._arrivals.put(Arrival(frame))

    on_receipt = on_message
    on_error = on_message

    def on_disconnected(self) -> None:
        self._arrivals.put(None)
