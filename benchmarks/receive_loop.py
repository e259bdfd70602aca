"""A consumer for each message, as JmsTemplate.receive has it: `python -m benchmarks.receive_loop`.

A queue is filled, then the real Java client makes a session and a consumer (prefetch 1,000), receives one message and
closes both, again and again; what the consumer had in its prefetch goes back each time. Microseconds of a call and of
the broker's processors for it, medians, at DelosMQ and at ActiveMQ Classic in the same run, in turns. The order is
checked, and that no message says it comes again.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import java, machine
from benchmarks.brokers.activemq import ActiveMQ
from benchmarks.brokers.base import CACHE, BrokerUnavailable, Driver, RunningBroker
from benchmarks.brokers.delosmq import DelosMQ
from benchmarks.deaf_peers import listens, wait_for
from benchmarks.machine import free_port

_SOURCES = Path(__file__).resolve().parent / "openwire" / "receive"
_MAIN = "bench.ReceiveLoop"
_CLIENT_ROUNDS = 3
"""In one virtual machine; the first warms it."""


def calls_us(driver: Driver, arguments: argparse.Namespace, waiting: int) -> tuple[list[float], float]:
    """Microseconds of a call, of all rounds but the first, and of the broker's processors, of all rounds with filling
    the queue."""
    with tempfile.TemporaryDirectory(prefix="receive-loop-") as folder:
        directory = Path(folder)
        port = free_port()
        driver.prepare(directory, port)
        with RunningBroker(driver, directory, port, None) as running:
            wait_for(lambda: listens(port), 60)
            running.check_alive()
            libraries, _ = java.client_libraries()
            classes = java.compiled(_SOURCES, libraries, CACHE / "receive")
            command = [java.tool("java"), "-XX:+UseSerialGC", "-cp", ":".join(map(str, [classes, *libraries])), _MAIN]
            url = f"tcp://127.0.0.1:{port}?tcpNoDelay=true"
            numbers = (waiting, min(arguments.calls, waiting), arguments.size, _CLIENT_ROUNDS)
            command += [url, driver.login, driver.passcode, *map(str, numbers), str(arguments.persistent).lower()]
            before_s = machine.cpu_s(running.roots)
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
            cpu_s = machine.cpu_s(running.roots) - before_s
            if done.returncode:
                raise BrokerUnavailable(f"{driver.name}: {done.stderr[-2_000:]}")
    figures = [float(line) for line in done.stdout.split()]
    return figures[1:], cpu_s * 1e6 / (len(figures) * numbers[1])


def main() -> int:
    """All rounds, as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--waiting", default="1000,10000", help="messages in the queue, separated by commas")
    parser.add_argument("--calls", type=int, default=1_000)
    parser.add_argument("--size", type=int, default=1_024)
    parser.add_argument("--persistent", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--form", choices=("pure", "compiled"), default="compiled")
    arguments = parser.parse_args()
    environment = ".venv" if arguments.form == "pure" else ".venv-compiled"
    ours = DelosMQ(f"delosmq-{arguments.form}", environment=environment, protocol="OPENWIRE")
    brokers: list[Driver] = [ours, ActiveMQ("activemq", group_commit=False, scheme="tcp")]
    found: dict[str, object] = {"machine": machine.describe(Path.cwd()), **vars(arguments)}
    for broker in brokers:
        broker.version()
    for waiting in map(int, arguments.waiting.split(",")):
        calls: dict[str, list[float]] = {broker.name: [] for broker in brokers}
        cpu: dict[str, list[float]] = {broker.name: [] for broker in brokers}
        for number in range(arguments.rounds):
            for broker in brokers if number % 2 == 0 else brokers[::-1]:
                figures, cpu_us = calls_us(broker, arguments, waiting)
                calls[broker.name] += figures
                cpu[broker.name].append(cpu_us)
        for what, measured in (("us of a call", calls), ("us of processors", cpu)):
            medians = {name: round(statistics.median(figures), 1) for name, figures in measured.items()}
            ratio = round(medians[ours.name] / medians["activemq"], 2)
            found[f"{waiting} waiting, {what}"] = {**medians, "ratio": ratio}
    json.dump(found, sys.stdout, indent=1)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
