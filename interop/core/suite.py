"""Programs of Artemis's own clients, by CORE: on DelosMQ and on Artemis, with its newest client and with old ones."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.brokers.base import BrokerUnavailable
from benchmarks.java import compiled, tool
from interop.brokers import PASSWORD, USER, Broker, DelosMQ
from interop.client.suite import printed
from interop.java import SHARED, Client
from interop.maven import ARTEMIS, ARTEMIS_CLIENT, ARTEMIS_VERSION, fetched
from interop.missing import Missing
from interop.programs import Outcome, run
from interop.rounds import FAILED, Place, Round
from interop.routers.artemis import Artemis
from interop.routers.clients import Login

NAMES: Final = (
    "core-connections",
    "core-bodies",
    "core-headers",
    "core-acknowledgement",
    "core-transactions",
    "core-xa",
    "core-windows",
    "core-order",
    "core-subscriptions",
    "core-temporary",
    "core-selectors",
    "core-queues",
    "core-full",
    "core-large",
    "core-send-answers",
    "core-errors",
    "core-crossing",
)
_SOME: Final = ("core-bodies", "core-acknowledgement", "core-windows", "core-subscriptions", "core-large")
OLD_CLIENTS: Final = {"2.6.4": _SOME, "2.28.0": _SOME}
"""Wire versions 129, the oldest that is served, and 134; what a whole run has with them."""
_HERE: Final = Path(__file__).resolve().parent
_DIFFERENCES: Final = _HERE / "differences.txt"
_CONFIGURATION: Final = _HERE / "broker.xml"


def _configuration(port: int, data: Path | str) -> str:
    return _CONFIGURATION.read_text("utf-8").replace("{port}", str(port)).replace("{data}", str(data))


class CoreArtemis(Artemis):
    """Artemis as the programs expect it."""

    users = (Login(USER, PASSWORD),)

    def configuration(self) -> str:
        return _configuration(self.port, self.directory / "data")


class CoreDelosMQ(DelosMQ):
    """DelosMQ by the same file."""

    def configuration(self) -> str:
        return _configuration(self.port, "data")


def core_client(version: str, cache: Path) -> tuple[Client, Path]:
    """The programs with one version of the client, and the folder with Artemis's libraries.

    They are compiled for the newest client: old ones lack some of what they call, in cases that are not theirs.

    Raises:
        Missing: Java, Artemis or this client can't be had.
    """
    broker = fetched(ARTEMIS_VERSION, cache, ARTEMIS)
    libraries = sorted(broker.glob("*.jar"))
    used = libraries
    if version != ARTEMIS_VERSION:
        used = sorted(fetched(version, cache, ARTEMIS_CLIENT).glob("*.jar"))
    try:
        classes = compiled(_HERE / "java", libraries, cache / "classes", SHARED)
        java = tool("java")
    except BrokerUnavailable as error:
        raise Missing(f"The programs of CORE can't be run: {error}") from error
    path = ":".join(str(one) for one in (classes, *used))
    return Client(java, path, version, tuple(used)), broker


def play(used: Client, broker: Broker, programs: Sequence[str], case: str) -> dict[str, Outcome]:
    """All in one process: a virtual machine that is warm runs them in a third of the time."""
    started = time.monotonic()
    all_cases = run(used, broker, ",".join(programs), only=case, errors=broker.directory / "core.err")
    outcomes = {program: Outcome(ended=all_cases.ended) for program in programs}
    for name, lines in all_cases.cases.items():
        program, _, own = name.partition(": ")
        outcomes[program].cases[own] = lines
    took = time.monotonic() - started
    sys.stderr.write(f"{broker.name}: CORE: {len(all_cases.cases)} cases, {took:.1f} s {all_cases.ended}\n")
    return outcomes


def compare_core(version: str, cache: Path, wanted: argparse.Namespace) -> int:
    """The exit code of a round with one client.

    Args:
        wanted: of the command line; without programs all, or with an old client those that a whole run has.

    Raises:
        Missing: something can't be had.
        BrokerFailed: a broker does not start.
    """
    used, jars = core_client(version, cache)
    sys.stdout.write(f"\nArtemis client {version}, by CORE\n")
    sys.stdout.flush()
    artemis = Place(partial(CoreArtemis, jars=jars), "core-artemis", CoreArtemis.name)
    ours = Place(CoreDelosMQ, "core", DelosMQ.name)
    programs = wanted.core or OLD_CLIENTS.get(version, NAMES)
    if wanted.only:
        outcomes = (ours if wanted.only == "delosmq" else artemis).play(partial(play, used), programs, wanted.case)
        sys.stdout.write("".join(printed(program, outcome) for program, outcome in outcomes.items()))
        return FAILED if any(outcome.ended for outcome in outcomes.values()) else 0
    other = replace(artemis, folder="core-artemis-again") if wanted.twice else ours
    one_round = Round(artemis, other, partial(play, used), _DIFFERENCES)
    whole = not wanted.core and not wanted.case and version == ARTEMIS_VERSION
    return one_round.report(*one_round.run(programs, wanted.case), whole=whole)
