"""The programs of the Python client, and what ActiveMQ Classic makes of them.

`expected.txt` is what ``make interop ARGS="PROGRAMS --only classic --print"`` prints: DelosMQ is compared with it where
there is no Classic, and Classic with it wherever there is one.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from interop.brokers import CONFIGURATIONS, PASSWORD, USER, Broker
from interop.client import acknowledgement, delivery, failures, messages
from interop.client.stage import BrokerSite, ClientCase, play_all
from interop.programs import Outcome

SCRIPTS: Final[dict[str, list[ClientCase]]] = {
    module.SCRIPT.program: module.SCRIPT.cases for module in (acknowledgement, delivery, messages, failures)
}
_TLS: Final = re.compile(r"^.*<acceptor name=\"tls\">.*\n", re.MULTILINE)
EXPECTED: Final = Path(__file__).resolve().parent / "expected.txt"


class ProcessSite(BrokerSite):
    """A broker of `make interop`."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.port = broker.port
        self.user, self.password = USER, PASSWORD

    def kill(self) -> None:
        self._broker.kill()

    def start(self) -> None:
        self._broker.start()


def configuration() -> str:
    """broker.xml of DelosMQ for these programs, on any port and without TLS."""
    return _TLS.sub("", (CONFIGURATIONS / "broker.xml").read_text("utf-8")).replace("{port}", "0")


def run_script(program: str, broker: Broker, only: str = "") -> Outcome:
    """What the cases whose names start with ``only`` say."""
    chosen = [case for case in SCRIPTS[program] if case.name.startswith(only)]
    return Outcome(play_all(chosen, ProcessSite(broker)))


def printed(program: str, outcome: Outcome) -> str:
    """As it stands in `expected.txt`."""
    return "".join(
        f"{program}: {case}\n" + "".join(f"  {line}\n" for line in lines) for case, lines in outcome.cases.items()
    )


def read_expected(path: Path = EXPECTED) -> dict[str, Outcome]:
    """By program."""
    found: dict[str, Outcome] = {}
    lines: list[str] = []
    for line in path.read_text("utf-8").split("\n"):
        if line.startswith("  "):
            lines.append(line.removeprefix("  "))
        elif line.startswith("python-"):
            program, _, case = line.partition(": ")
            lines = found.setdefault(program, Outcome()).cases.setdefault(case, [])
    return found


def outdated(program: str, seen: Outcome, expected: dict[str, Outcome]) -> list[str]:
    """The cases of which Classic says something else than `expected.txt`."""
    recorded = expected.get(program, Outcome()).cases
    return [case for case, lines in seen.cases.items() if recorded.get(case) != lines]
