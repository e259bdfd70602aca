"""How long clients are without a broker: `python -m benchmarks takeover`, with a pair on one shared directory.

A producer and a consumer of our client with a ``failover:`` URL work all the time. The active broker is killed, and the
time counts until the consumer has a message that was sent after that. Then the other one is killed, and so on. It exits
with 1 when the median is above `AIM_S`, with default settings and a store of few messages: reading a large one takes
as long as after any restart, which is what ``--messages`` shows.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from statistics import median

from benchmarks.brokers.delosmq import DelosMQ
from benchmarks.frames import connect_frame
from benchmarks.measure import fresh_directory
from benchmarks.restart import FORMS, fill, same_body
from delosmq.client import connect
from delosmq.testing import BrokerPair, BrokerProcess
from tests.postgres_server import PostgresServer, on_postgres

AIM_S = 2.0
_QUEUE = "takeover"
_USER = _PASSWORD = "admin"
_PATIENCE_S = 600.0
_RETRY = "initialReconnectDelay=100&useExponentialBackOff=false"
"""Of the clients. By default the time between attempts doubles up to 30 s, which would be what is measured."""
_STORES = ("directory", "postgres")


class Traffic:
    """Messages that say when they were sent, all the time."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._over = False
        self._changed = threading.Condition()
        self._newest_sent_at = 0.0
        self._received_at = 0.0
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._produce, self._consume)]
        for thread in self._threads:
            thread.start()

    def _produce(self) -> None:
        with connect(self._url, user=_USER, password=_PASSWORD) as connection:
            while not self._over:
                connection.send(_QUEUE, repr(time.monotonic()))

    def _consume(self) -> None:
        with connect(self._url, user=_USER, password=_PASSWORD) as connection:
            while not self._over:
                for message in connection.messages(_QUEUE, timeout_s=0.5):
                    with self._changed:
                        self._received_at = time.monotonic()
                        self._newest_sent_at = max(self._newest_sent_at, float(message.text))
                        self._changed.notify_all()

    def await_sent_after(self, moment: float) -> float:
        """When the first message came that was sent after ``moment``."""
        with self._changed:
            came = self._changed.wait_for(lambda: self._newest_sent_at > moment, _PATIENCE_S)
            if not came:
                raise TimeoutError(f"no message within {_PATIENCE_S:g} s of a kill")
            return self._received_at

    def stop(self) -> None:
        self._over = True
        for thread in self._threads:
            thread.join(_PATIENCE_S)


@contextlib.contextmanager
def changes_for(store: str) -> Iterator[list[tuple[str, str]]]:
    """What to change in broker.xml, and the database meanwhile."""
    if store == "directory":
        yield []
        return
    server = PostgresServer()
    try:
        server.start()
        yield [on_postgres(server.url(server.schema()))]
    finally:
        server.remove()


def command_of(form: str) -> list[str]:
    """What runs a broker of this form."""
    driver = DelosMQ(f"delosmq-{form}", environment=FORMS[form])
    driver.version()
    return [str(driver.python), "-m", "delosmq.cli.main"]


def send_backlog(broker: BrokerProcess, messages: int, body_bytes: int) -> None:
    """Durable messages into a queue without consumers; returns when all are confirmed."""
    with socket.create_connection(("127.0.0.1", broker.stomp_port), timeout=_PATIENCE_S) as connection:
        connection.sendall(connect_frame(_USER, _PASSWORD, "localhost"))
        connection.recv(65_536)
        fill(connection, messages, same_body(body_bytes))


def measure(pair: BrokerPair, times: int, messages: int, body_bytes: int) -> list[float]:
    """Seconds from each kill to the first message at the next broker."""
    seconds: list[float] = []
    pair.start()
    if messages:
        send_backlog(pair.primary, messages, body_bytes)
    traffic = Traffic(f"{pair.openwire_url}?{_RETRY}")
    active, waiting = pair.primary, pair.backup
    for _ in range(times):
        traffic.await_sent_after(time.monotonic())
        killed_at = time.monotonic()
        active.kill()
        active.launch()  # as a service would, so that there is one who waits while the other one reads the store
        seconds.append(traffic.await_sent_after(killed_at) - killed_at)
        sys.stderr.write(f"{seconds[-1]:.2f} s\n")
        health = waiting.health()
        if health is not None and "DMQ6032" in health.detail:
            continue  # the one that was killed was back before this one had looked
        active.await_waiting()
        active, waiting = waiting, active
    traffic.stop()
    return seconds


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks takeover")
    parser.add_argument("--times", type=int, default=20, help="kills")
    parser.add_argument("--store", choices=_STORES, default="directory")
    parser.add_argument("--messages", type=int, default=0, help="durable ones that lie in a queue all the time")
    parser.add_argument("--body-bytes", type=int, default=10, help="of each of these")
    parser.add_argument("--form", choices=sorted(FORMS), default="compiled")
    asked = parser.parse_args(arguments)
    command = command_of(asked.form)
    waits = "<allow-failback>false</allow-failback>"
    with (
        fresh_directory() as directory,
        changes_for(asked.store) as changes,
        BrokerPair(directory, changes, backup=waits, command=command) as pair,
    ):
        seconds = sorted(measure(pair, asked.times, asked.messages, asked.body_bytes))
    middle = median(seconds)
    load = os.getloadavg()[0]
    sys.stdout.write(
        "| store | form | messages | kills | median s | least s | most s | load |\n" + "|---" * 8 + "|\n"
        f"| {asked.store} | {asked.form} | {asked.messages:,} | {len(seconds)} | {middle:.2f} | {seconds[0]:.2f}"
        f" | {seconds[-1]:.2f} | {load:.1f} |\n"
    )
    return 1 if middle > AIM_S and not asked.messages else 0
