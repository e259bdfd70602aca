"""A thousand peers that never read, and one that does: `python -m benchmarks.deaf_peers`.

A queue is filled, then the peers browse it with a window of -1 and read nothing. Memory (PSS) before, at its peak, when
all are stuck, and after they were cut off; what a client with a queue of its own sends and receives in a second before,
meanwhile and after.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import resource
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import machine
from benchmarks.brokers.base import RunningBroker
from benchmarks.brokers.delosmq import DelosMQ
from benchmarks.frames import connect_frame
from benchmarks.machine import free_port

RATE_S = 3.0
_LOOK_EVERY_S = 0.1
_OTHERS = 5
"""Connections that are not those peers, and more."""
_STUCK_AFTER_S = 3.0
"""Memory is at rest when it has not grown for so long."""


class Peer:
    """A blocking STOMP connection."""

    def __init__(self, port: int, driver: DelosMQ, receive_bytes: int = 0) -> None:
        self.socket = socket.socket()
        if receive_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.settimeout(60)
        self.socket.connect(("127.0.0.1", port))
        self.socket.sendall(connect_frame(driver.login, driver.passcode, driver.host))
        self.rest = b""
        self.frame()

    def frame(self) -> bytes:
        """The next frame."""
        while b"\0" not in self.rest:
            chunk = self.socket.recv(262_144)
            if not chunk:
                raise ConnectionError("the broker closed the connection")
            self.rest += chunk
        frame, _, self.rest = self.rest.partition(b"\0")
        return frame

    def fill(self, count: int, body: bytes) -> None:
        """Sends to the queue that is browsed."""
        for number in range(count):
            receipt = b"receipt:last\n" if number == count - 1 else b""
            self.socket.sendall(b"SEND\ndestination:/queue/browsed\n%b\n%b\0" % (receipt, body))
        self.frame()

    def round_trips_per_s(self, seconds: float) -> float:
        """Messages sent and received, one at a time, on a queue of its own."""
        until = time.monotonic() + seconds
        began = time.monotonic()
        count = 0
        while time.monotonic() < until:
            self.socket.sendall(b"SEND\ndestination:/queue/own\n\n" + b"x" * 1_024 + b"\0")
            self.frame()
            count += 1
        return round(count / (time.monotonic() - began), 1)


class Memory(threading.Thread):
    """Looks at the memory of a process tree all the time."""

    def __init__(self, roots: list[int]) -> None:
        super().__init__(daemon=True)
        self.roots = roots
        self.now = self.peak = machine.memory_mib(roots)
        self.grew_at = time.monotonic()

    def run(self) -> None:
        while True:
            with contextlib.suppress(OSError):
                self.now = machine.memory_mib(self.roots)
            if self.now > self.peak + 1:
                self.peak, self.grew_at = self.now, time.monotonic()
            time.sleep(_LOOK_EVERY_S)


def measure(arguments: argparse.Namespace, directory: Path) -> dict[str, object]:
    """One run."""
    driver = DelosMQ(f"delosmq-{arguments.form}", environment=arguments.environment)
    driver.version()
    port = free_port()
    driver.prepare(directory, port)
    broker_xml = directory / "instance" / "etc" / "broker.xml"
    options = f"connectionsAllowed={arguments.peers + 100};connectionTtl=-1"
    if arguments.timeout_s:
        options += f";soWriteTimeout={arguments.timeout_s * 1_000}"
    text = broker_xml.read_text().replace("protocols=STOMP", f"{options};protocols=STOMP", 1)
    broker_xml.write_text(text.replace("<global-max-size>1G<", f"<global-max-size>{arguments.global_max_size}<"))
    with RunningBroker(driver, directory, port, None) as running:
        wait_for(lambda: listens(port), 30)
        running.check_alive()
        honest = Peer(port, driver)
        honest.socket.sendall(b"SUBSCRIBE\nid:h\ndestination:/queue/own\nack:auto\n\n\0")
        filler = Peer(port, driver)
        filler.fill(arguments.messages, b"x" * arguments.size)
        found: dict[str, object] = {"rate_before": honest.round_trips_per_s(RATE_S)}
        memory = Memory(running.roots)
        found["mib_before"] = memory.now
        memory.start()
        peers = []
        for _ in range(arguments.peers):
            peer = Peer(port, driver, 16_384)
            peer.socket.sendall(
                b"SUBSCRIBE\nid:s\ndestination:/queue/browsed\nbrowser:true\nconsumer-window-size:-1\nack:client\n\n\0"
            )
            peers.append(peer)
        found["rate_meanwhile"] = honest.round_trips_per_s(RATE_S)
        while time.monotonic() < memory.grew_at + _STUCK_AFTER_S:
            time.sleep(_LOOK_EVERY_S)
        found["mib_stuck"], found["mib_peak"] = memory.now, memory.peak
        if arguments.timeout_s:
            wait_for(lambda: connected(port) < _OTHERS, 4 * arguments.timeout_s)
        else:
            for peer in peers:
                peer.socket.close()
        time.sleep(_STUCK_AFTER_S)
        found["still_connected"] = connected(port)
        found["rate_after"] = honest.round_trips_per_s(RATE_S)
        found["mib_after"] = memory.now
    return found


def connected(port: int) -> int:
    """How many connections the broker has on that port."""
    established = 0
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, _, state, *_ = line.split()
        established += state == "01" and local.endswith(f":{port:04X}")
    return established


def listens(port: int) -> bool:
    """Whether the broker is up."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_for(condition: Callable[[], bool], at_most_s: float) -> None:
    """Until it is so, or too late."""
    until = time.monotonic() + at_most_s
    while not condition() and time.monotonic() < until:
        time.sleep(_LOOK_EVERY_S)


def main() -> int:
    """One run, as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", type=int, default=1_000)
    parser.add_argument("--messages", type=int, default=310)
    parser.add_argument("--size", type=int, default=100_000, help="bytes of a message")
    parser.add_argument("--timeout-s", type=int, default=20, help="soWriteTimeout; 0 leaves it out, and peers leave")
    parser.add_argument("--global-max-size", default="1G")
    parser.add_argument("--form", choices=("pure", "compiled"), default="pure")
    parser.add_argument("--environment", default=".venv")
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    with tempfile.TemporaryDirectory(prefix="deaf-peers-") as directory:
        found = measure(arguments, Path(directory))
    json.dump({"machine": machine.describe(Path.cwd()), **vars(arguments), **found}, sys.stdout, indent=1)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
