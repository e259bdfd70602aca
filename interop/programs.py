"""Runs one program against one broker and gives the lines it printed, case by case."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from interop.brokers import Broker
from interop.java import Client

PROGRAMS: Final = (
    "acknowledgement",
    "redelivery",
    "selectors",
    "browsers",
    "temporary",
    "exclusive",
    "groups",
    "local-transactions",
    "xa-transactions",
    "destinations",
    "virtual-topics",
    "durable-subscribers",
    "advisories",
    "flow-control",
    "prefetch-policy",
    "topic-policy",
    "messages",
    "bad-input",
    "spring-listener",
    "connections",
    "tls",
    "large-messages",
    "failover",
    "lost-connections",
)
_LIMIT_S: Final = 600.0
_GAVE_UP: Final = 3
_CASE: Final = "case "
_LINE: Final = "  "
_REQUEST: Final = "@"
_NOTE: Final = "~ "

# What no two runs have in common.
_VARIABLE: Final = (
    (re.compile(r"\bID:[\w.-]+?-\d+-\d+-\d+:[\d:]+"), "ID:*"),
    (re.compile(r"Expiration:\d+"), "Expiration:*"),
    (re.compile(r"(127\.0\.0\.1|localhost):\d+"), "HOST:PORT"),
)


@dataclass(slots=True)
class Outcome:
    """What a program printed. Lines that start with ``~ `` are notes for the reader."""

    cases: dict[str, list[str]] = field(default_factory=dict)
    ended: str = ""
    """Why the program ended early; empty when it did not."""


def normalised(line: str) -> str:
    """The line without what is different in each run."""
    for pattern, replacement in _VARIABLE:
        line = pattern.sub(replacement, line)
    return line


def compared(lines: list[str]) -> list[str]:
    """The lines without notes."""
    return [line for line in lines if not line.startswith(_NOTE)]


def run(client: Client, broker: Broker, program: str, *, only: str = "", errors: Path) -> Outcome:
    """Run a program to its end, doing with the broker what the program asks for.

    Args:
        only: run the cases whose names start so.
        errors: file that standard error goes to.
    """
    outcome = Outcome()
    with errors.open("ab") as stderr:
        process = subprocess.Popen(
            client.command(broker.url, program, only),
            env=os.environ | broker.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            encoding="utf-8",
        )
    guard = threading.Timer(_LIMIT_S, process.kill)
    guard.start()
    try:
        _follow(process, broker, outcome)
    finally:
        guard.cancel()
        process.kill()
        code = process.wait()
    if code == -signal.SIGKILL:
        outcome.ended = f"killed after {_LIMIT_S:.0f} s"
    elif code == _GAVE_UP:
        outcome.ended = "given up: several cases hang"
    elif code:
        outcome.ended = f"exit code {code}, see {errors}"
    return outcome


def _follow(process: subprocess.Popen[str], broker: Broker, outcome: Outcome) -> None:
    assert process.stdout is not None
    assert process.stdin is not None
    lines: list[str] = []
    for raw in process.stdout:
        line = raw.rstrip("\n")
        if line.startswith(_CASE):
            lines = outcome.cases.setdefault(line.removeprefix(_CASE), [])
        elif line.startswith(_REQUEST):
            _obey(line.removeprefix(_REQUEST), broker)
            process.stdin.write("\n")
            process.stdin.flush()
        else:
            lines.append(normalised(line.removeprefix(_LINE)))
    process.wait()


def _obey(request: str, broker: Broker) -> None:
    if request in {"kill", "restart"}:
        broker.kill()
    elif request != "start":
        raise ValueError(f"the program asks for '{request}', which nobody knows")
    if request in {"start", "restart"}:
        broker.start()
