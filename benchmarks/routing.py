"""What a connection router costs a client: `python -m benchmarks routing`.

The time from a connect to the first message, straight to a target and by way of a router with 1 and with 100 targets,
one connection after the other, in turns. Then connections that come at a fixed rate, 10,000 in a minute, whether the
router keeps up or not: a connection counts from the moment it was due until it knows its target. Targets are stand-ins
(`target_stubs`), so that the router is what is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.machine import cpu_s
from benchmarks.measure import fresh_directory
from benchmarks.takeover import command_of
from delosmq.testing import BrokerProcess

TARGETS = 100
_HOST = "127.0.0.1"
_LOGIN = "admin"
_PATIENCE_S = 60.0
_REDIRECT = re.compile(rb"redirect-to:([^\n]+)")
_SUBSCRIBE = b"SUBSCRIBE\nid:0\ndestination:q\n\n\0"
_NEAR = 0.99


@dataclass(frozen=True)
class Rate:
    """What became of connections at a fixed rate; times in ms."""

    connections: int
    refused: int
    took_s: float
    median_ms: float
    p99_ms: float
    longest_ms: float
    router_cpu_s: float


def connect_frame(client_id: str) -> bytes:
    return (
        f"CONNECT\naccept-version:1.2\nhost:h\nlogin:{_LOGIN}\npasscode:{_LOGIN}\nclient-id:{client_id}\n\n\0".encode()
    )


@contextlib.contextmanager
def stubs(count: int) -> Iterator[list[int]]:
    """The ports of so many targets."""
    command = [sys.executable, "-m", "benchmarks.target_stubs", str(count)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())
        assert process.stdin is not None
        process.stdin.close()


def router(directory: Path, ports: Sequence[int], form: str) -> BrokerProcess:
    """A broker whose acceptor for STOMP routes to these ports."""
    connectors = "".join(f'<connector name="t{port}">tcp://{_HOST}:{port}</connector>' for port in ports)
    refs = "".join(f"<connector-ref>t{port}</connector-ref>" for port in ports)
    pool = (
        f"<username>{_LOGIN}</username><password>{_LOGIN}</password><quorum-size>{len(ports)}</quorum-size>"
        f"<quorum-timeout>60000</quorum-timeout><static-connectors>{refs}</static-connectors>"
    )
    element = (
        '<connection-router name="r"><key-type>CLIENT_ID</key-type><policy name="CONSISTENT_HASH"/>'
        f"<pool>{pool}</pool></connection-router>"
    )
    changes = [
        ("protocols=STOMP", "protocols=STOMP;router=r"),
        ("<acceptors>", f"<connectors>{connectors}</connectors><acceptors>"),
        ("<security-settings>", f"<connection-routers>{element}</connection-routers><security-settings>"),
    ]
    return BrokerProcess(directory, changes, password=_LOGIN, command=command_of(form))


def read_until(peer: socket.socket, end: bytes) -> bytes:
    found = b""
    while end not in found:
        piece = peer.recv(65_536)
        if not piece:
            raise ConnectionError(f"the connection ends with {found!r}")
        found += piece
    return found


def first_message_s(port: int, client_id: str) -> float:
    """From the connect to the first message, at the target to which the client is sent, if it is."""
    began = time.perf_counter()
    while True:
        with socket.create_connection((_HOST, port), _PATIENCE_S) as peer:
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            peer.sendall(connect_frame(client_id))
            answer = read_until(peer, b"\0")
            redirect = _REDIRECT.search(answer)
            if redirect is not None:
                port = int(redirect[1].decode().replace("\\c", ":").rpartition(":")[2])
                continue
            if not answer.startswith(b"CONNECTED"):
                raise ConnectionError(f"not let in: {answer!r}")
            peer.sendall(_SUBSCRIBE)
            read_until(peer, b"\0")
            return time.perf_counter() - began


async def _ask(port: int, client_id: str, due: float) -> float | None:
    """From the moment it was due until the client knows its target; None when it is told none."""
    try:
        reader, writer = await asyncio.open_connection(_HOST, port)
        writer.write(connect_frame(client_id))
        answer = await asyncio.wait_for(reader.readuntil(b"\0"), _PATIENCE_S)
        took = time.perf_counter() - due
        writer.close()
    except (OSError, asyncio.IncompleteReadError, TimeoutError):
        return None
    return took if _REDIRECT.search(answer) else None


async def _at_a_rate(port: int, connections: int, seconds: float) -> tuple[list[float | None], float]:
    began = time.perf_counter()
    tasks = []
    for number in range(connections):
        due = began + number * seconds / connections
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        tasks.append(asyncio.create_task(_ask(port, f"client-{number}", due)))
    found = await asyncio.gather(*tasks)
    return found, time.perf_counter() - began


def at_a_rate(broker: BrokerProcess, connections: int, seconds: float) -> Rate:
    before = cpu_s([broker.pid])
    found, took = asyncio.run(_at_a_rate(broker.stomp_port, connections, seconds))
    spent = cpu_s([broker.pid]) - before
    times = sorted(one * 1_000 for one in found if one is not None)
    if not times:
        raise ConnectionError(f"no client was told a target: {broker.log}")
    near = times[int(len(times) * _NEAR)]
    return Rate(connections, len(found) - len(times), took, statistics.median(times), near, times[-1], spent)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks routing", description=__doc__)
    parser.add_argument("--times", type=int, default=1_000, help="first messages, each way")
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=60.0, help="in which they come")
    parser.add_argument("--form", choices=("pure", "compiled"), default="compiled")
    asked = parser.parse_args(arguments)
    with (
        fresh_directory() as directory,
        stubs(TARGETS) as ports,
        router(directory / "one", ports[:1], asked.form) as one,
        router(directory / "many", ports, asked.form) as many,
    ):
        for broker in (one, many):
            broker.start()
        ways = {
            "straight to the target": ports[0],
            "by a router with 1 target": one.stomp_port,
            f"by a router with {TARGETS} targets": many.stomp_port,
        }
        times: dict[str, list[float]] = {way: [] for way in ways}
        for number in range(-20, asked.times):
            for way, port in ways.items():
                took = first_message_s(port, f"client-{number}") * 1_000
                if number >= 0:  # those before warm up
                    times[way].append(took)
        rate = at_a_rate(many, asked.connections, asked.seconds)
    lines = ["| connect to first message | median ms | p99 ms |", "|---|---|---|"]
    for way, values in times.items():
        values.sort()
        lines.append(f"| {way} | {statistics.median(values):.2f} | {values[int(len(values) * _NEAR)]:.2f} |")
    lines += [
        "",
        "| connections | in s | refused | median ms | p99 ms | most ms | CPU of the router, s | load |",
        "|---" * 8 + "|",
        f"| {rate.connections:,} | {rate.took_s:.1f} | {rate.refused} | {rate.median_ms:.2f} | {rate.p99_ms:.2f}"
        f" | {rate.longest_ms:.1f} | {rate.router_cpu_s:.1f} | {os.getloadavg()[0]:.1f} |",
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if rate.refused else 0
