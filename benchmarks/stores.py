"""The store in PostgreSQL beside the journal and beside Artemis's JDBC store: ``python -m benchmarks.stores``.

A `delosmq run` on each store, and a stock Artemis with its JDBC store on the same server, take durable messages of 1 KB
over one STOMP connection, with 1, 16 and 256 receipts outstanding; for each the confirmed messages per second, and the
processor time of broker and database per message. They take turns, so that what else the machine does falls on all.
Artemis comes from Maven Central; where it can't be had the others go on without.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.brokers.artemis_tables import ArtemisOnTables
from benchmarks.machine import cpu_s, describe
from benchmarks.measure import fresh_directory
from benchmarks.takeover import command_of
from delosmq.testing import BrokerProcess
from interop.brokers import BrokerFailed
from interop.java import CACHE, Missing
from interop.maven import ARTEMIS, ARTEMIS_VERSION, fetched
from interop.routers.site import ADMIN
from tests.postgres_server import PostgresServer, on_postgres

BODY = bytes(1024)
OUTSTANDING = (1, 16, 256)
ROUND_S = 3.0
ROUNDS = 5
WARM_UP_S = 10.0
"""For each peer with the most outstanding, and not counted: a Java machine begins slowly."""
JOURNAL, TABLES, JDBC = "journal", "PostgreSQL", f"Artemis {ARTEMIS_VERSION}, JDBC"


@dataclass(frozen=True)
class Peer:
    """What takes messages."""

    name: str
    port: int
    pid: int


@dataclass(frozen=True)
class Figures:
    """One peer with so many outstanding: medians of all rounds."""

    store: str
    outstanding: int
    confirmed_per_s: int
    lowest: int
    highest: int
    broker_us: float
    database_us: float


class Load:
    """One connection, and so many receipts outstanding."""

    def __init__(self, port: int, outstanding: int) -> None:
        self._outstanding = outstanding
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        login = {"accept-version": "1.2", "host": "x", "login": ADMIN.user, "passcode": ADMIN.password}
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
def peers_in(directory: Path, server: PostgresServer, form: str) -> Iterator[list[Peer]]:
    """All that can be had, each on an empty store."""
    changes = on_postgres(server.url(server.schema()))
    with contextlib.ExitStack() as stack:
        peers = []
        for name, changed in ((JOURNAL, []), (TABLES, [changes])):
            broker = BrokerProcess(directory / name, changed, password=ADMIN.password, command=command_of(form))
            stack.enter_context(broker)
            broker.start()
            peers.append(Peer(name, broker.stomp_port, broker.pid))
        try:
            artemis = ArtemisOnTables(directory / "artemis", fetched(ARTEMIS_VERSION, CACHE, ARTEMIS), server)
            stack.enter_context(artemis)
            peers.append(Peer(JDBC, artemis.port, artemis.pid))
        except (Missing, BrokerFailed) as error:
            sys.stderr.write(f"without {JDBC}: {error}\n")
        yield peers


def one_round(peer: Peer, server: PostgresServer, outstanding: int, seconds: float) -> tuple[float, float, float]:
    """Confirmed messages per second; processor time of broker and database, in us for each message."""
    load = Load(peer.port, outstanding)
    before = cpu_s([peer.pid]), cpu_s([server.pid])
    began = time.perf_counter()
    confirmed = load.run(seconds)
    took = time.perf_counter() - began
    broker, database = cpu_s([peer.pid]) - before[0], cpu_s([server.pid]) - before[1]
    load.close()
    return confirmed / took, broker / confirmed * 1e6, database / confirmed * 1e6


def measure(peers: Sequence[Peer], server: PostgresServer, rounds: int, seconds: float) -> list[Figures]:
    results = []
    for outstanding in OUTSTANDING:
        found: dict[str, list[tuple[float, float, float]]] = {peer.name: [] for peer in peers}
        for _ in range(rounds):
            for peer in peers:
                found[peer.name].append(one_round(peer, server, outstanding, seconds))
        for name, seen in found.items():
            rates, brokers, databases = zip(*seen, strict=True)
            results.append(
                Figures(
                    name,
                    outstanding,
                    round(statistics.median(rates)),
                    round(min(rates)),
                    round(max(rates)),
                    round(statistics.median(brokers), 1),
                    0.0 if name == JOURNAL else round(statistics.median(databases), 1),
                )
            )
            sys.stderr.write(f"{results[-1]}\n")
    return results


def render(rows: Sequence[Figures]) -> str:
    """A table in Markdown."""
    lines = [
        "| store | outstanding | confirmed per second | lowest to highest | CPU of broker, us | of database, us |",
        "|---" * 6 + "|",
    ]
    for row in rows:
        lines.append(
            f"| {row.store} | {row.outstanding} | {row.confirmed_per_s:,} | {row.lowest:,} to {row.highest:,}"
            f" | {row.broker_us:.0f} | {row.database_us:.0f} |"
        )
    return "\n".join(lines)


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stores", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--round-s", type=float, default=ROUND_S)
    parser.add_argument("--warm-up-s", type=float, default=WARM_UP_S)
    parser.add_argument("--form", choices=("pure", "compiled"), default="compiled")
    parser.add_argument("--json", action="store_true", help="figures instead of a table")
    asked = parser.parse_args(given)
    server = PostgresServer()
    try:
        server.start()
        with fresh_directory() as directory, peers_in(directory, server, asked.form) as peers:
            for peer in peers:
                one_round(peer, server, OUTSTANDING[-1], asked.warm_up_s)
            rows = measure(peers, server, asked.rounds, asked.round_s)
            machine = describe(directory)
    finally:
        server.remove()
    if asked.json:
        json.dump({"machine": machine, "stores": [asdict(row) for row in rows]}, sys.stdout, indent=2)
    else:
        sys.stdout.write(f"{render(rows)}\n\nload at the end: {os.getloadavg()[0]:.1f}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
