"""The broker that Spark reads and writes: `delosmq run`, what fills it, and what shows that rows arrived."""

from __future__ import annotations

import contextlib
import socket
import sys
from typing import Final

from benchmarks.brokers.base import BrokerUnavailable
from benchmarks.frames import connect_frame
from benchmarks.restart import fill
from benchmarks.spark.rows import HEADERS, body
from benchmarks.takeover import command_of
from delosmq.spark.lease_client import LeaseClient
from delosmq.spark.options import ConnectionOptions, parse_options
from delosmq.testing import BrokerProcess

USER: Final = "admin"
PASSWORD: Final = "admin"


def broker_command(form: str | None) -> tuple[str, list[str]]:
    """The form, by default compiled if it is there, and the command of `BrokerProcess`.

    Raises:
        BrokerUnavailable: it is not there.
    """
    if form is not None:
        return form, command_of(form)
    try:
        return "compiled", command_of("compiled")
    except BrokerUnavailable as error:
        print(f"the pure form instead: {error}", file=sys.stderr, flush=True)
        return "pure", command_of("pure")


def login_to(broker: BrokerProcess) -> dict[str, str]:
    """Options of the data source."""
    return {"servers": f"127.0.0.1:{broker.http_port}", "user": USER, "password": PASSWORD}


def connection_to(broker: BrokerProcess) -> ConnectionOptions:
    return parse_options({**login_to(broker), "subscribe": "any"}).connection


def fill_queue(broker: BrokerProcess, queue: str, rows: int) -> None:
    """Durable messages over STOMP; returns when all are confirmed."""
    with socket.create_connection(("127.0.0.1", broker.stomp_port)) as connection:
        connection.sendall(connect_frame(USER, PASSWORD, "localhost"))
        connection.recv(65_536)
        fill(connection, rows, body, queue=queue, properties=HEADERS)


def arrived(broker: BrokerProcess, queue: str, rows: int) -> int:
    """How many messages are in the queue, which they enter in slices after the sink was answered."""
    client = LeaseClient(connection_to(broker))
    with contextlib.closing(client):
        with contextlib.suppress(TimeoutError):
            broker.wait_for(lambda: client.queue(queue).message_count >= rows, f"{rows} messages in {queue}")
        return client.queue(queue).message_count
