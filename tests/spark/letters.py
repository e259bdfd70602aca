"""Dead letters for tests: made by STOMP consumers that fail, and consumed by one that does not."""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol

import stomp

import delosmq
from tests.patience import PATIENCE_S

ATTEMPTS: Final = 10
"""max-delivery-attempts, as it is by default."""


class StompLogin(Protocol):
    """Where a broker listens for STOMP, and who asks."""

    user: str
    password: str

    @property
    def host(self) -> str:
        """Its address."""

    @property
    def stomp_port(self) -> int:
        """Its port."""


@contextmanager
def stomp_connection(broker: StompLogin) -> Iterator[stomp.Connection12]:
    # Without a length a body is text.
    connection = stomp.Connection12([(broker.host, broker.stomp_port)], auto_content_length=False)
    connection.connect(broker.user, broker.password, wait=True)
    try:
        yield connection
    finally:
        connection.disconnect()


def send(broker: StompLogin, destination: str, bodies: Sequence[str], **headers: str) -> None:
    """Durable messages; returns when the last is confirmed."""
    with stomp_connection(broker) as connection:
        confirmed = stomp.listener.WaitingListener("last")
        connection.set_listener("confirmed", confirmed)
        for at, body in enumerate(bodies, 1):
            last = {"receipt": "last"} if at == len(bodies) else {}
            connection.send(destination, body, headers={"persistent": "true", **headers, **last})
        confirmed.wait_on_receipt()


class _Collector(stomp.ConnectionListener):
    def __init__(self, count: int, answer: Any) -> None:
        self.frames: list[Any] = []
        self.complete = threading.Event()
        self._count = count
        self._answer = answer

    def on_message(self, frame: Any) -> None:
        if len(self.frames) < self._count:
            self._answer(frame)
            self.frames.append(frame)
        if len(self.frames) >= self._count:
            self.complete.set()


def fail(broker: StompLogin, destination: str, count: int, **headers: str) -> None:
    """A consumer that refuses `count` messages as often as it gets them, until they are dead letters."""
    _take(broker, destination, count * ATTEMPTS, "nack", headers)


def consume(broker: StompLogin, destination: str, count: int) -> list[Any]:
    """The frames that a consumer acknowledges."""
    return _take(broker, destination, count, "ack", {})


def _take(broker: StompLogin, destination: str, count: int, verb: str, headers: Mapping[str, str]) -> list[Any]:
    with stomp_connection(broker) as connection:
        collector = _Collector(count, lambda frame: getattr(connection, verb)(frame.headers["ack"]))
        connection.set_listener("collector", collector)
        connection.subscribe(destination, id="s", ack="client-individual", headers=dict(headers))
        assert collector.complete.wait(PATIENCE_S), f"{len(collector.frames)} of {count} came"
        settled = stomp.listener.WaitingListener("settled")
        connection.set_listener("settled", settled)
        connection.unsubscribe("s", receipt="settled")
        settled.wait_on_receipt()
        return collector.frames


def call(broker: delosmq.Broker, method: str, path: str, body: Mapping[str, object] | None = None) -> Any:
    """A call of the broker's HTTP interface; any answer but an error."""
    import httpx

    answer = httpx.request(
        method, f"{broker.http_url}{path}", json=body, auth=(broker.user, broker.password), timeout=PATIENCE_S
    )
    assert answer.is_success, answer.text
    return json.loads(answer.text)
