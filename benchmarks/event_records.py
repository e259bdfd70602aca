"""What event records cost, pure and compiled: `python -m benchmarks.event_records`.

Two clients of one protocol, without sockets and without a disk: a message of 1 KB is sent, delivered and acknowledged,
which makes three records. Cases come in turn in each round; the least processor time of all rounds counts, and ratios
are within a form.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from typing import Final

from benchmarks.engine import FORMS, ROOT
from benchmarks.fixed_work import ONE_QUEUE, Conversation, OpenWireConversation, StompConversation, recording
from delosmq.model.message import MULTICAST
from delosmq.model.reserved_names import EVENTS_ADDRESS
from delosmq.model.settings import BrokerSettings, QueueSettings

MESSAGES: Final = 4_096
BEFORE: Final = 512
PROTOCOLS: Final[dict[str, type[Conversation]]] = {"STOMP": StompConversation, "OpenWire": OpenWireConversation}


def reader(*, durable: bool) -> QueueSettings:
    """A queue of records that stays small."""
    return QueueSettings("told", EVENTS_ADDRESS, MULTICAST, durable=durable, ring_size=10)


CASES: Final[dict[str, BrokerSettings]] = {
    "off": ONE_QUEUE,
    "on, no queue bound": recording(None),
    "on, a queue that is not durable": recording(reader(durable=False)),
    "on, a durable queue": recording(reader(durable=True)),
}


class Played:
    """A conversation that was held once, and is played again."""

    def __init__(self, kind: type[Conversation], settings: BrokerSettings) -> None:
        self._conversation = kind(settings)
        self._said = self._conversation.hold(BEFORE + MESSAGES, durable=True)
        self.best_us = float("inf")

    def play(self) -> None:
        """All of it to a new broker; only the last messages count."""
        bench = self._conversation.new_bench()
        reads = 2 * MESSAGES // 16
        written: list[tuple[int, bytes]] = []

        def note(to: int, piece: bytes) -> None:
            written.append((to, piece))

        for number, chunk in self._said[:-reads]:
            bench.turn(number, chunk, note)
        written.clear()
        start = time.process_time_ns()
        for number, chunk in self._said[-reads:]:
            bench.turn(number, chunk, note)
        self.best_us = min(self.best_us, (time.process_time_ns() - start) / MESSAGES / 1_000)


def measure(rounds: int) -> dict[str, dict[str, float]]:
    """us for a message, by protocol and case."""
    played = {
        protocol: {case: Played(kind, settings) for case, settings in CASES.items()}
        for protocol, kind in PROTOCOLS.items()
    }
    for _ in range(rounds):
        for cases in played.values():
            for one in cases.values():
                one.play()
    return {protocol: {case: one.best_us for case, one in cases.items()} for protocol, cases in played.items()}


def main() -> int:
    """Measures each form in an interpreter of its own, or this one."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.event_records", description=__doc__)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--here", action="store_true", help="this interpreter's form, as JSON")
    arguments = parser.parse_args()
    if arguments.here:
        sys.stdout.write(json.dumps(measure(arguments.rounds)) + "\n")
        return 0
    for form, python in FORMS.items():
        command = [str(python), "-m", "benchmarks.event_records", "--here", "--rounds", str(arguments.rounds)]
        answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        for protocol, cases in json.loads(answer.stdout).items():
            for case, us in cases.items():
                rate = 1_000_000 / us
                ratio = us / cases["off"]
                sys.stdout.write(f"{form}, {protocol}, {case}: {us:.1f} us, {rate:,.0f} a second, {ratio:.2f} x off\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
