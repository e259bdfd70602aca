"""`python -m benchmarks clients`: clients beside each other; Markdown on standard output, progress on standard error.

    python -m benchmarks clients --rounds 5 --json results.json
    python -m benchmarks clients --brokers classic --share 0.2 --clients "delosmq blocking, compiled;stomp.py"

Each client is one process, pinned to a core of its own. Rounds take the clients in turn; medians are shown.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks import machine
from benchmarks.brokers.base import CHECKOUT, BrokerUnavailable
from benchmarks.clients.brokers import PASSWORD, PROTOCOLS, USER, BenchBroker, java, proton_python, python_of, running

OPERATIONS: Final = {"send": 20_000, "confirm": 8_000, "receive": 20_000}
SESSIONS: Final = (1, 16)
BODY_BYTES: Final = 1_000
WARM_UP: Final = 0.1
JAVA_WARM_UP: Final = 2.0
"""Of the messages that count: a virtual machine compiles as it runs."""
_TIMEOUT_S: Final = 300.0
_WORKER: Final = str(Path(__file__).with_name("worker.py"))


@dataclass(frozen=True)
class Contender:
    """A client. ``kind`` is one of `worker`, or "java"; ``form`` that of DelosMQ's, or ""."""

    name: str
    kind: str
    protocol: str
    form: str = ""

    @property
    def warm_up(self) -> float:
        return JAVA_WARM_UP if self.kind == "java" else WARM_UP

    def command(self, job: dict[str, Any]) -> list[str]:
        if self.kind == "java":
            words = (job["operation"], job["urls"]["openwire"], job["queue"], job["sessions"], job["messages"])
            return java("Worker", *(str(word) for word in (*words, job["warm_up"], job["body_bytes"], USER, PASSWORD)))
        python = proton_python() if self.kind == "proton" else python_of(self.form or "pure")
        return [str(python), _WORKER, self.kind, json.dumps(job)]


FILLER: Final = Contender("filler", "asyncio", "openwire", "compiled")
CONTENDERS: Final = (
    Contender("delosmq blocking, compiled", "blocking", "openwire", "compiled"),
    Contender("delosmq asyncio, compiled", "asyncio", "openwire", "compiled"),
    Contender("delosmq blocking, pure", "blocking", "openwire", "pure"),
    Contender("delosmq asyncio, pure", "asyncio", "openwire", "pure"),
    Contender("stomp.py", "stomp.py", "stomp"),
    Contender("proton blocking", "proton", "amqp"),
    Contender("Java client", "java", "openwire"),
)


@dataclass(frozen=True)
class Measured:
    broker: str
    client: str
    operation: str
    sessions: int
    per_s: float
    cpu_us: float


class ClientFailed(Exception):
    """A client ended without having done its job."""


class Bench:
    """One broker that runs, and its clients."""

    def __init__(self, broker: BenchBroker, core: int | None, share: float) -> None:
        self._broker = broker
        self._core = core
        self._share = share
        self._queues = 0

    def measure(self, contender: Contender, operation: str, sessions: int) -> Measured:
        """
        Raises:
            BrokerUnavailable: the client can't be had.
            ClientFailed: it ended without having done the job.
        """
        self._queues += 1
        messages = max(int(OPERATIONS[operation] * self._share) // 16 * 16, 160)
        job = {
            "operation": operation,
            "urls": self._broker.urls,
            "user": USER,
            "password": PASSWORD,
            "queue": f"bench.{self._queues}",
            "sessions": sessions,
            "messages": messages,
            "warm_up": int(messages * contender.warm_up) // 16 * 16,
            "body_bytes": BODY_BYTES,
        }
        if operation == "receive":
            for queue, count in ((job["queue"], messages), (f"{job['queue']}.warm", job["warm_up"])):
                self._run(FILLER, {**job, "operation": "send", "queue": queue, "messages": count, "warm_up": 16})
        took = self._run(contender, job)
        cpu_us = took["cpu_s"] / messages * 1e6
        return Measured(self._broker.name, contender.name, operation, sessions, messages / took["elapsed_s"], cpu_us)

    def _run(self, contender: Contender, job: dict[str, Any]) -> dict[str, float]:
        command = contender.command(job)
        with machine.pinned(self._core):
            process = subprocess.Popen(
                command, cwd="/", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
        try:
            said, complaint = process.communicate("\n", _TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            said, complaint = process.communicate()
        if process.returncode:
            what = f"{job['operation']} with {job['sessions']} sessions"
            raise ClientFailed(f"{contender.name} fails at {what}: {complaint.strip()[-400:]}")
        took: dict[str, float] = json.loads(said.splitlines()[-1])
        return took


def compare(name: str, contenders: list[Contender], rounds: int, share: float) -> list[Measured]:
    """All cells of one broker. Raises BrokerUnavailable."""
    broker_core, client_core = machine.cores()
    with running(name, broker_core) as broker:
        able = [one for one in contenders if one.protocol in broker.urls]
        return measure_in_turn(Bench(broker, client_core, share), able, rounds)


def measure_in_turn(bench: Bench, contenders: list[Contender], rounds: int) -> list[Measured]:
    """All cells. A client that can't be had is left out of the rest, one that fails of this round of the cell."""
    measured = []
    missing: set[str] = set()
    for number in range(rounds):
        for operation in OPERATIONS:
            for sessions in SESSIONS:
                turn = number % max(len(contenders), 1)
                for contender in (*contenders[turn:], *contenders[:turn]):
                    if contender.name in missing:
                        continue
                    try:
                        one = bench.measure(contender, operation, sessions)
                    except (BrokerUnavailable, ClientFailed) as error:
                        if isinstance(error, BrokerUnavailable):
                            missing.add(contender.name)
                        print(f"left out: {error}", file=sys.stderr)
                        continue
                    measured.append(one)
                    print(
                        f"{number + 1}/{rounds} {one.broker} {operation} {sessions}: {contender.name}"
                        f" {one.per_s:,.0f}/s {one.cpu_us:.1f} us",
                        file=sys.stderr,
                    )
    return measured


def tables(measured: list[Measured]) -> str:
    """Markdown: for each broker a row per client, with messages per second and microseconds of processor time."""
    lines = []
    columns = [(operation, sessions) for operation in OPERATIONS for sessions in SESSIONS]
    for broker in dict.fromkeys(one.broker for one in measured):
        lines += [
            "",
            f"| {broker} | " + " | ".join(f"{operation}, {sessions}" for operation, sessions in columns) + " |",
        ]
        lines.append("|---" * (len(columns) + 1) + "|")
        for client in dict.fromkeys(one.client for one in measured if one.broker == broker):
            cells = [_cell(measured, broker, client, *column) for column in columns]
            lines.append(f"| {client} | " + " | ".join(cells) + " |")
    return "\n".join(lines[1:])


def _cell(measured: list[Measured], broker: str, client: str, operation: str, sessions: int) -> str:
    here = (broker, client, operation, sessions)
    found = [one for one in measured if (one.broker, one.client, one.operation, one.sessions) == here]
    if not found:
        return "-"
    return f"{median(one.per_s for one in found):,.0f} ({median(one.cpu_us for one in found):.1f})"


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser("benchmarks clients")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--share", type=float, default=1.0, help="of the messages")
    parser.add_argument("--brokers", default=",".join(PROTOCOLS))
    parser.add_argument("--clients", default=";".join(one.name for one in CONTENDERS), help="separated by ;")
    parser.add_argument("--json", type=Path, help="writes what was measured, too")
    chosen = parser.parse_args(words)
    names = [one.name for one in CONTENDERS]
    wanted = [name.strip() for name in chosen.clients.split(";")]
    unknown = [name for name in wanted if name not in names]
    if unknown:
        parser.error(f"there is no client {unknown[0]!r}; name some of: {'; '.join(names)}")
    contenders = [one for one in CONTENDERS if one.name in wanted]
    conditions = machine.describe(CHECKOUT)
    measured: list[Measured] = []
    for broker in chosen.brokers.split(","):
        try:
            measured += compare(broker, contenders, chosen.rounds, chosen.share)
        except BrokerUnavailable as error:
            print(f"left out: {error}", file=sys.stderr)
    if chosen.json is not None:
        fields = {"conditions": conditions, "measured": [vars(one) for one in measured]}
        chosen.json.write_text(json.dumps(fields, indent=1) + "\n", "utf-8")
    print(tables(measured))
    return 0 if measured else 1
