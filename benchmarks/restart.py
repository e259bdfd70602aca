"""What a restart costs: `python -m benchmarks restart`, with a queue full of small messages before and after.

Durable messages are sent over STOMP into one queue of `delosmq run` on a disk; then the broker is stopped and started
again. Memory is that of the broker's main process, beyond what it has when it is started empty, and stands beside what
the messages are accounted for. It exits with 1 when a restarted broker takes more than `AIM_MEMORY` of that, or the
compiled form more processor time than `AIM_START_S` for at most two million messages: time on the clock is that of the
machine and whatever else runs there.
"""

from __future__ import annotations

import argparse
import base64
import json
import re
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks import machine
from benchmarks.brokers.base import BrokerUnavailable, RunningBroker
from benchmarks.brokers.delosmq import DelosMQ
from benchmarks.frames import connect_frame
from benchmarks.load import GeneratorError
from benchmarks.measure import fresh_directory

AIM_MEMORY = 1.1
"""Times what is accounted, in the restarted process; its peak while it starts included."""
AIM_START_S = 8.0
"""Of processor time until the first client is served, compiled."""
AIM_MESSAGES = 2_000_000

FORMS = {"pure": ".venv", "compiled": ".venv-compiled"}
_PER_RECEIPT = 2_000
_PATIENCE_S = 600.0
_KIB = 1024
_MIB = 1024 * 1024


@dataclass(frozen=True)
class Figures:
    """One run. Memory in MiB; `sent`, `started` and `peak` without what the empty broker takes (`idle`)."""

    form: str
    messages: int
    body_bytes: int
    accounted: float
    idle: float
    sent: float
    started: float
    peak: float
    send_cpu_s: float
    start_s: float
    start_cpu_s: float

    @property
    def times_accounted(self) -> float:
        """The most memory that the restarted broker took, over what its messages are accounted for."""
        return max(self.started, self.peak) / self.accounted


def memory_bytes(pid: int) -> tuple[int, int]:
    """Resident memory of a process, now and at its highest."""
    text = Path(f"/proc/{pid}/status").read_text()
    found = dict(re.findall(r"^(VmRSS|VmHWM):\s+(\d+) kB", text, re.MULTILINE))
    return int(found["VmRSS"]) * _KIB, int(found["VmHWM"]) * _KIB


def await_connection(broker: RunningBroker) -> socket.socket:
    """A connection that is logged in, once the broker serves."""
    driver = broker.driver
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        broker.check_alive()
        try:
            connection = socket.create_connection(("127.0.0.1", broker.port), timeout=_PATIENCE_S)
        except ConnectionRefusedError:
            time.sleep(0.01)
            continue
        connection.sendall(connect_frame(driver.login, driver.passcode, driver.host))
        if not connection.recv(65536).startswith(b"CONNECTED\n"):
            raise GeneratorError("the broker does not answer CONNECT")
        return connection
    raise GeneratorError(f"the broker does not serve within {_PATIENCE_S:.0f} s")


def same_body(size: int) -> Callable[[int], bytes]:
    """For `fill`: all messages alike."""
    content = b"x" * size
    return lambda number: content


def fill(
    connection: socket.socket,
    messages: int,
    body: Callable[[int], bytes],
    *,
    queue: str = "bench.restart",
    properties: Mapping[str, str] | None = None,
) -> None:
    """Sends durable messages; returns when the broker has confirmed all of them.

    Args:
        body: of a message by its number, all of one length.
    """
    more = "".join(f"{name}:{value}\n" for name, value in (properties or {}).items())
    head = f"SEND\ndestination:/queue/{queue}\npersistent:true\n{more}content-length:{len(body(0))}\n".encode()
    for first in range(0, messages, _PER_RECEIPT):
        last = min(first + _PER_RECEIPT, messages) - 1
        plain = b"".join(head + b"\n" + body(number) + b"\0" for number in range(first, last))
        connection.sendall(plain + head + b"receipt:r\n\n" + body(last) + b"\0")
        answer = b""
        while b"receipt-id:r" not in answer:
            piece = connection.recv(65536)
            if not piece or b"ERROR\n" in piece:
                raise GeneratorError(f"the broker answers {piece[:300]!r}")
            answer += piece


def accounted_bytes(broker: RunningBroker) -> int:
    """What all messages count against the memory limit, as the broker says."""
    bootstrap = (broker.directory / "instance" / "etc" / "bootstrap.xml").read_text()
    base = re.search(r"http://127\.0\.0\.1:\d+", bootstrap)
    if base is None:
        raise GeneratorError("the instance has no HTTP interface")
    login = base64.b64encode(f"{broker.driver.login}:{broker.driver.passcode}".encode()).decode()
    request = urllib.request.Request(f"{base[0]}/api/v1/broker", headers={"Authorization": f"Basic {login}"})
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            with urllib.request.urlopen(request, timeout=_PATIENCE_S) as answer:
                return int(json.load(answer)["memory_used_bytes"])
        except urllib.error.URLError as error:  # HTTP follows a moment after the acceptors
            if isinstance(error, urllib.error.HTTPError) or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def measure(form: str, messages: int, body_bytes: int) -> Figures:
    """Fills, stops and starts a broker in a fresh directory.

    Raises:
        BrokerUnavailable: the form is not there or the broker does not start.
        GeneratorError: it does not take the messages.
    """
    driver = DelosMQ(f"delosmq-{form}", environment=FORMS[form])
    driver.version()
    core, _ = machine.cores()
    with fresh_directory() as directory:
        port = machine.free_port()
        driver.prepare(directory, port)
        with RunningBroker(driver, directory, port, core) as broker:
            connection = await_connection(broker)
            accounted_bytes(broker)
            idle, _ = memory_bytes(broker.roots[0])
            cpu_before = machine.cpu_s(broker.roots)
            fill(connection, messages, same_body(body_bytes))
            send_cpu_s = machine.cpu_s(broker.roots) - cpu_before
            accounted = accounted_bytes(broker)
            sent, _ = memory_bytes(broker.roots[0])
            connection.close()
        with RunningBroker(driver, directory, port, core) as broker:
            await_connection(broker).close()
            start_s = time.perf_counter() - broker.started_at
            start_cpu_s = machine.cpu_s(broker.roots)
            if accounted_bytes(broker) != accounted:
                raise GeneratorError(
                    f"{accounted_bytes(broker)} bytes are accounted after the restart, not {accounted}"
                )
            started, peak = memory_bytes(broker.roots[0])
    return Figures(
        form,
        messages,
        body_bytes,
        accounted / _MIB,
        idle / _MIB,
        (sent - idle) / _MIB,
        (started - idle) / _MIB,
        (peak - idle) / _MIB,
        send_cpu_s,
        start_s,
        start_cpu_s,
    )


def render(rows: list[Figures]) -> list[str]:
    """A table in Markdown."""
    lines = [
        "| form | messages | body, bytes | accounted, MiB | before the stop, MiB | after the start, MiB | peak, MiB"
        " | peak / accounted | start, s | CPU, s | CPU of sending, s |",
        "|---" * 11 + "|",
    ]
    for row in rows:
        lines.append(
            f"| {row.form} | {row.messages:,} | {row.body_bytes:,} | {row.accounted:,.0f} | {row.sent:,.0f}"
            f" | {row.started:,.0f} | {row.peak:,.0f} | {row.times_accounted:.2f} | {row.start_s:.1f}"
            f" | {row.start_cpu_s:.1f} | {row.send_cpu_s:.1f} |"
        )
    return lines


def shortfalls(rows: list[Figures]) -> list[str]:
    """Aims that were not met."""
    found = []
    for row in rows:
        if row.times_accounted > AIM_MEMORY:
            found.append(f"{row.form} takes {row.times_accounted:.2f} times what is accounted; the aim is {AIM_MEMORY}")
        if row.form == "compiled" and row.messages <= AIM_MESSAGES and row.start_cpu_s > AIM_START_S:
            found.append(f"{row.form} starts with {row.start_cpu_s:.1f} s of processor time; the aim is {AIM_START_S}")
    return found


def main(argv: list[str] | None = None) -> int:
    """Measure and print the table. 1 when an aim was not met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks restart", description=__doc__)
    parser.add_argument("--form", choices=sorted(FORMS), action="append", help="pure, compiled; both by default")
    parser.add_argument("--messages", type=int, default=2_000_000)
    parser.add_argument("--body-bytes", type=int, default=10)
    parser.add_argument("--json", action="store_true", help="print figures instead of a table")
    arguments = parser.parse_args(argv)
    rows: list[Figures] = []
    for form in arguments.form or list(FORMS):
        try:
            rows.append(measure(form, arguments.messages, arguments.body_bytes))
        except (BrokerUnavailable, GeneratorError) as reason:
            print(reason, file=sys.stderr)
            return 2
    print(json.dumps([asdict(row) for row in rows], indent=1) if arguments.json else "\n".join(render(rows)))
    short = shortfalls(rows)
    for line in short:
        print(f"falls short: {line}")
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
