"""The brokers that the Spark tests run on: the fake one, and the real one behind the same few methods."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from itertools import cycle
from typing import Protocol

import delosmq
from tests.patience import PATIENCE_S
from tests.spark.fake_broker import FakeBroker


class BrokerUnderTest(Protocol):
    """What a test needs of a broker."""

    user: str
    password: str

    @property
    def servers(self) -> str:
        """The data source's option."""

    def make_queue(self, name: str, address: str | None = None, routing_type: str = "ANYCAST") -> None:
        """A durable queue."""

    def publish(
        self, name: str, bodies: list[bytes], address: str | None = None, headers: Sequence[Mapping[str, str]] = ({},)
    ) -> None:
        """Messages into the queue, with `headers` in turn; returns when they are confirmed."""

    def stop(self) -> None:
        """End it."""


class StompBroker:
    """A broker that is published to by stomp.py over a real socket.

    Args:
        servers: the data source's option.
    """

    def __init__(self, servers: str, stomp_port: int, user: str, password: str) -> None:
        self.servers = servers
        self.user, self.password = user, password
        self.host, self.stomp_port = "127.0.0.1", stomp_port

    def make_queue(self, name: str, address: str | None = None, routing_type: str = "ANYCAST") -> None:
        import httpx

        body = {"name": name, "address": address or name, "routing_type": routing_type, "durable": True}
        answer = httpx.post(
            f"{self.servers}/api/v1/queues", json=body, auth=(self.user, self.password), timeout=PATIENCE_S
        )
        assert answer.status_code in (201, 409), answer.text

    def publish(
        self, name: str, bodies: list[bytes], address: str | None = None, headers: Sequence[Mapping[str, str]] = ({},)
    ) -> None:
        import stomp
        from stomp.listener import WaitingListener

        self.make_queue(name, address)
        connection = stomp.Connection12([(self.host, self.stomp_port)])
        confirmed = WaitingListener("last")
        connection.set_listener("confirmed", confirmed)
        connection.connect(self.user, self.password, wait=True)
        for at, (body, given) in enumerate(zip(bodies, cycle(headers), strict=False), 1):
            sent = {"persistent": "true", "destination-type": "ANYCAST", "number": str(at), **given}
            if at == len(bodies):
                sent["receipt"] = "last"
            connection.send(address or name, body, headers=sent)
        confirmed.wait_on_receipt()
        connection.disconnect()


class RealBroker(StompBroker):
    """An embedded broker."""

    def __init__(self) -> None:
        self._broker = delosmq.Broker()
        self._broker.__enter__()
        super().__init__(str(self._broker.http_url), self._broker.stomp_port, self._broker.user, self._broker.password)

    def stop(self) -> None:
        self._broker.__exit__(None, None, None)


BROKERS: dict[str, type[FakeBroker] | type[RealBroker]] = {"fake": FakeBroker}
if find_spec("delosmq.embedded") is not None:
    BROKERS["real"] = RealBroker
