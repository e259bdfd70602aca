"""The store in PostgreSQL beside the journal, on this machine: ``python -m benchmarks.stores``.

A `delosmq run` on each store takes durable messages of 1 KB over one STOMP connection, with 1, 16 and 256 receipts
outstanding; for each the confirmed messages per second, and the processor time of broker and database per message. The
stores take turns, so that what else the machine does falls on both. Then the time from a kill of the primary to the
first message that its backup delivers.
"""

from __future__ import annotations

import contextlib
import json
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.machine import cpu_s, describe
from delosmq.client import connect
from delosmq.testing import BrokerPair, BrokerProcess
from tests.chaos.broker_process import PASSWORD as CLIENT_PASSWORD
from tests.chaos.clients import Gone, StompPeer
from tests.postgres_server import PASSWORD, USER, PostgresServer

BODY = bytes(1024)
OUTSTANDING = (1, 16, 256)
ROUND_S = 3.0
ROUNDS = 5
TAKEOVERS = 10


def database_store(server: PostgresServer) -> tuple[str, str]:
    """What to change in broker.xml."""
    store = (
        f"<store><database-store><jdbc-connection-url>{server.url(server.schema())}</jdbc-connection-url><jdbc-user>"
        f"{USER}</jdbc-user><jdbc-password>{PASSWORD}</jdbc-password></database-store></store>"
    )
    return "<addresses>", f"{store}<addresses>"


class Load:
    """One connection, and so many receipts outstanding."""

    def __init__(self, broker: BrokerProcess, outstanding: int) -> None:
        self._outstanding = outstanding
        self._socket = socket.create_connection(("127.0.0.1", broker.stomp_port), timeout=60)
        login = {"accept-version": "1.2", "host": "x", "login": "admin", "passcode": CLIENT_PASSWORD}
        head = "".join(f"{name}:{value}\n" for name, value in login.items())
        self._socket.sendall(f"CONNECT\n{head}\n\0".encode())
        self._confirmed()
        headers = f"destination:/queue/load\npersistent:true\nreceipt:r\ncontent-length:{len(BODY)}\n"
        self._frame = f"SEND\n{headers}\n".encode() + BODY + b"\0"

    def _confirmed(self) -> int:
        while True:
            content = self._socket.recv(65_536)
            if not content or b"ERROR" in content:
                raise RuntimeError(f"the broker says {content!r}")
            if found := content.count(b"\0"):
                return found

    def run(self, seconds: float) -> int:
        """How many were confirmed in this time."""
        self._socket.sendall(self._frame * self._outstanding)
        confirmed = 0
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            found = self._confirmed()
            confirmed += found
            self._socket.sendall(self._frame * found)
        left = self._outstanding
        while left:
            left -= self._confirmed()
        return confirmed + self._outstanding

    def close(self) -> None:
        self._socket.close()


@contextlib.contextmanager
def running(broker: BrokerProcess) -> Iterator[BrokerProcess]:
    broker.start()
    try:
        yield broker
    finally:
        broker.end()


def measure(directory: Path, server: PostgresServer) -> list[dict[str, object]]:
    results: list[dict[str, object]] = []
    journal = BrokerProcess(directory / "journal", password=CLIENT_PASSWORD)
    tables = BrokerProcess(directory / "tables", [database_store(server)], password=CLIENT_PASSWORD)
    with running(journal), running(tables):
        for outstanding in OUTSTANDING:
            rates: dict[str, list[float]] = {"journal": [], "PostgreSQL": []}
            costs: dict[str, list[tuple[float, float]]] = {"journal": [], "PostgreSQL": []}
            for _ in range(ROUNDS):
                for name, broker in (("journal", journal), ("PostgreSQL", tables)):
                    load = Load(broker, outstanding)
                    before = cpu_s([broker.pid]), cpu_s([server.pid])
                    began = time.perf_counter()
                    confirmed = load.run(ROUND_S)
                    rates[name].append(confirmed / (time.perf_counter() - began))
                    spent = cpu_s([broker.pid]) - before[0], cpu_s([server.pid]) - before[1]
                    costs[name].append((spent[0] / confirmed * 1e6, spent[1] / confirmed * 1e6))
                    load.close()
            for name, values in rates.items():
                broker_us, database_us = (statistics.median(one) for one in zip(*costs[name], strict=True))
                results.append(
                    {
                        "store": name,
                        "outstanding": outstanding,
                        "confirmed_per_s": round(statistics.median(values)),
                        "lowest": round(min(values)),
                        "highest": round(max(values)),
                        "broker_us": round(broker_us, 1),
                        "database_us": round(database_us, 1) if name == "PostgreSQL" else 0.0,
                    }
                )
                print(results[-1], flush=True)
    return results


def takeover_s(directory: Path, server: PostgresServer) -> float:
    """From the kill to the first message at the new active broker, for a client with ``failover:``."""
    with BrokerPair(directory, [database_store(server)], password=CLIENT_PASSWORD) as pair:
        pair.start()
        with connect(f"tcp://127.0.0.1:{pair.primary.openwire_port}", user="admin", password=CLIENT_PASSWORD) as one:
            one.send("orders", "before the kill")
        began = time.perf_counter()
        pair.primary.kill()
        while True:
            with contextlib.suppress(*Gone):
                peer = StompPeer(pair.backup.stomp_port)
                peer.send("SUBSCRIBE", {"id": "s", "destination": "/queue/orders", "ack": "auto"})
                for command, _, _ in peer.frames():
                    if command == "MESSAGE":
                        peer.close()
                        return time.perf_counter() - began
            time.sleep(0.01)


def main() -> None:
    server = PostgresServer()
    server.start()
    try:
        with tempfile.TemporaryDirectory() as directory:
            found: dict[str, object] = {
                "machine": describe(Path(directory)),
                "stores": measure(Path(directory), server),
            }
            times = [takeover_s(Path(directory) / f"pair{turn}", server) for turn in range(TAKEOVERS)]
            found["takeover_s"] = [round(one, 2) for one in sorted(times)]
            print(f"kill to first message: median {statistics.median(times):.2f} s, longest {max(times):.2f} s")
        json.dump(found, sys.stdout, indent=2)
    finally:
        server.remove()


if __name__ == "__main__":
    main()
