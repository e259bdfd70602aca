"""`python -m interop`: programs of the real Java client, and of ours, on DelosMQ and ActiveMQ Classic, compared; those
of Artemis's clients on DelosMQ and Artemis; and programs of connection routers, which show what they say.
"""

from __future__ import annotations

import argparse
import fcntl
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from interop.brokers import Broker, BrokerFailed, Classic, DelosMQ, NewestClassic
from interop.client.suite import EXPECTED as RECORDED
from interop.client.suite import SCRIPTS, outdated, printed, read_expected, run_script
from interop.core.suite import NAMES as CORE
from interop.core.suite import OLD_CLIENTS, compare_core
from interop.java import CACHE, Client, Missing, client
from interop.maven import ARTEMIS_VERSION, BROKER, DEBIAN, NEWEST, fetched
from interop.page import EXPECTED, PAGE, Converted, run_program
from interop.programs import PROGRAMS, Outcome, run
from interop.rounds import FAILED, Place, Round
from interop.routers.suite import NAMES as ROUTED
from interop.routers.suite import run_routers

_DIFFERENCES: Final = Path(__file__).resolve().parent / "openwire" / "differences.txt"
_CLASSIC: Final = Place(Classic, "classic", Classic.name)
_OURS: Final = Place(DelosMQ, "delosmq", DelosMQ.name)
_WITH_NEWEST: Final = (
    "acknowledgement",
    "redelivery",
    "selectors",
    "temporary",
    "groups",
    "local-transactions",
    "xa-transactions",
    "destinations",
    "virtual-topics",
    "durable-subscribers",
    "advisories",
    "topic-policy",
    "messages",
    "tls",
)
"""Of a whole run, with the newest client too. The others wait for most of their time, or try what brokers do."""


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m interop", description=__doc__)
    parser.add_argument(
        "programs", nargs="*", choices=[*PROGRAMS, *SCRIPTS, *CORE, *ROUTED, []], help="all without one"
    )
    parser.add_argument("--case", default="", metavar="START", help="only cases whose names start so")
    parser.add_argument(
        "--twice", action="store_true", help="compare Classic or Artemis with itself: do the programs see the same?"
    )
    parser.add_argument(
        "--only", choices=["classic", "artemis", "delosmq"], help="run against one broker and compare nothing"
    )
    parser.add_argument("--print", action="store_true", dest="printed", help="print the first broker's lines")
    parser.add_argument(
        "--client",
        metavar="VERSION",
        help=f"{DEBIAN}, or from Maven Central {NEWEST} or one such as 5.18.3; a whole run has all programs with "
        "the first, and some with the second",
    )
    parser.add_argument(
        "--broker",
        choices=[DEBIAN, NEWEST],
        default=DEBIAN,
        help=f"{NEWEST}: the programs of our client on Classic 6, from Maven Central; a whole run does this as well",
    )
    parser.add_argument(
        "--artemis-client",
        default=ARTEMIS_VERSION,
        metavar="VERSION",
        help=f"of programs by CORE, from Maven Central; a whole run has some with {' and '.join(OLD_CLIENTS)} too",
    )
    parser.add_argument("--jars", type=Path, help="folder with another version of the client, with what it needs")
    parser.add_argument("--allow-missing", action="store_true", help="succeed where Java or its libraries are missing")
    wanted = parser.parse_args(given)
    wanted.routed = [program for program in wanted.programs if program in ROUTED]
    wanted.core = [program for program in wanted.programs if program in CORE]
    wanted.programs = [program for program in wanted.programs if program not in (*ROUTED, *CORE)]
    return wanted


def _play(used: Client | None, broker: Broker, programs: Sequence[str], case: str) -> dict[str, Outcome]:
    """The outcome of each program; without a Java client those of ours alone."""
    outcomes: dict[str, Outcome] = {}
    for program in programs or (SCRIPTS if used is None else [*PROGRAMS, *SCRIPTS]):
        started = time.monotonic()
        if program in SCRIPTS:
            outcome = run_script(program, broker, case)
        else:
            assert used is not None  # as the arguments were checked
            outcome = run(used, broker, program, only=case, errors=broker.directory / f"{program}.err")
        outcomes[program] = outcome
        took = time.monotonic() - started
        sys.stderr.write(f"{broker.name}: {program}: {len(outcome.cases)} cases, {took:.1f} s {outcome.ended}\n")
    return outcomes


def _outdated(name: str, outcomes: dict[str, Outcome]) -> list[str]:
    """Programs of our client of which a Classic says something else than is recorded."""
    recorded = read_expected()
    return [
        f"{RECORDED.name}: {program}: {case}: {name} says something else"
        for program, outcome in outcomes.items()
        if program in SCRIPTS
        for case in outdated(program, outcome, recorded)
    ]


def _page(used: Client) -> list[str]:
    """What is wrong with the steps of the page about coming from ActiveMQ; nothing, if all is well."""
    directory = CACHE / "run" / "page"
    with Converted(directory) as broker:
        printed = run_program(used, broker.port, directory)
        said = broker.said if isinstance(broker, Converted) else ""
    wrong = [] if printed == EXPECTED else [f"{PAGE.name}: the program prints {printed!r}"]
    return wrong + ([f"{PAGE.name}: `delosmq convert` says {said!r}"] if said else [])


def _run_with(used: Client, wanted: argparse.Namespace) -> int:
    if wanted.only:
        place = _OURS if wanted.only == "delosmq" else _CLASSIC
        outcomes = place.play(partial(_play, used), wanted.programs, wanted.case)
        _print(outcomes, wanted)
        return FAILED if any(outcome.ended for outcome in outcomes.values()) else 0
    other = Place(Classic, "classic-again", Classic.name) if wanted.twice else _OURS
    whole = not wanted.programs and not wanted.case
    code = _run_both(_CLASSIC, other, used, wanted, whole=whole)
    wrong = _page(used) if whole and other is _OURS else []
    sys.stdout.write("".join(f"{line}\n" for line in wrong))
    return FAILED if wrong else code


def _run_on_newest(cache: Path, wanted: argparse.Namespace) -> int:
    """The programs of our client on Classic 6. Raises Missing and BrokerFailed."""
    if any(program not in SCRIPTS for program in wanted.programs):
        raise Missing(
            f"With --broker {NEWEST} name some of {', '.join(SCRIPTS)}: programs of Java bring their broker's client."
        )
    jars = fetched(NEWEST, cache, BROKER)
    sys.stdout.write(f"\nthe Python client, on ActiveMQ Classic {NewestClassic.version_of(jars)}\n")
    sys.stdout.flush()
    newest = Place(partial(NewestClassic, jars=jars), "classic-newest", Classic.name)
    again = Place(DelosMQ, "delosmq-again", DelosMQ.name)
    return _run_both(newest, again, None, wanted, whole=False)


def _run_both(expected: Place, seen: Place, used: Client | None, wanted: argparse.Namespace, *, whole: bool) -> int:
    one_round = Round(expected, seen, partial(_play, used), _DIFFERENCES)
    outcomes = one_round.run(wanted.programs, wanted.case)
    _print(outcomes[0], wanted)
    for place, seen_there in zip((expected, seen), outcomes, strict=True):
        if place.name != DelosMQ.name:
            one_round.problems += _outdated(place.name, seen_there)
    return one_round.report(*outcomes, whole=whole)


def _print(outcomes: dict[str, Outcome], wanted: argparse.Namespace) -> None:
    if wanted.printed:
        for program, outcome in outcomes.items():
            sys.stdout.write(printed(program, outcome))


def _show_routers(used: Client, cache: Path, programs: Sequence[str]) -> int:
    """The exit code of programs of connection routers. Raises Missing when Artemis is, after all others."""
    sys.stdout.write("\nconnection routers\n")
    problems = run_routers(used, cache, programs)
    sys.stdout.write("".join(f"{problem}\n" for problem in problems))
    return FAILED if problems else 0


@dataclass(frozen=True, slots=True)
class Ways:
    """How a run gets and uses clients.

    Attributes:
        fetch: gives the folder of a version; raises Missing.
        prepare: compiles the programs for the client in a folder, None for that of the packages; raises Missing.
        compare: gives the exit code of a run with one client; raises Missing and BrokerFailed.
        compare_newest: the same of our client on Classic 6.
        compare_core: the same with one version of Artemis's client.
        show_routers: the same of programs of connection routers with one client.
    """

    fetch: Callable[[str, Path], Path] = fetched
    prepare: Callable[[Path | None], Client] = client
    compare: Callable[[Client, argparse.Namespace], int] = _run_with
    compare_newest: Callable[[Path, argparse.Namespace], int] = _run_on_newest
    compare_core: Callable[[str, Path, argparse.Namespace], int] = compare_core
    show_routers: Callable[[Client, Path, Sequence[str]], int] = _show_routers
    cache: Path = CACHE


WAYS: Final = Ways()


def _compare(ways: Ways, jars: Path | None, wanted: argparse.Namespace, missing: list[str]) -> int:
    """With one client.

    Args:
        missing: gets a sentence when programs of routers went without Artemis in a whole run.
    """
    used = ways.prepare(jars)
    sys.stdout.write(f"\nActiveMQ client {used.version}\n")
    sys.stdout.flush()
    code = 0 if wanted.routed and not wanted.programs else ways.compare(used, wanted)
    if wanted.routed:
        return ways.show_routers(used, ways.cache, wanted.routed) or code
    if wanted.only or wanted.twice or wanted.programs or wanted.case:
        return code
    try:
        return ways.show_routers(used, ways.cache, ()) or code
    except Missing as error:
        missing.append(f"Artemis as a target of routers. {error}")
        return code


def _compare_all(ways: Ways, wanted: argparse.Namespace) -> int:
    """With one client, but in a whole run some programs with the newest one as well, ours on the newest broker, and
    those of Artemis's clients, when these can be had."""
    if wanted.broker == NEWEST:
        return ways.compare_newest(ways.cache, wanted)
    if wanted.core:
        return ways.compare_core(wanted.artemis_client, ways.cache, wanted)
    missing: list[str] = []
    first = wanted.jars if wanted.client in (None, DEBIAN) else ways.fetch(wanted.client, ways.cache)
    code = _compare(ways, first, wanted, missing)
    some = wanted.only or wanted.twice or wanted.programs or wanted.routed or wanted.case
    if not (some or wanted.client or wanted.jars):
        try:
            newest = ways.fetch(NEWEST, ways.cache)
            some_programs = argparse.Namespace(**{**vars(wanted), "programs": list(_WITH_NEWEST)})
            code = _compare(ways, newest, some_programs, missing) or code
        except Missing as error:
            missing.append(f"the newest client. {error}")
        try:
            code = ways.compare_newest(ways.cache, wanted) or code
        except Missing as error:
            missing.append(f"the newest broker. {error}")
        code = _compare_core(ways, wanted, missing) or code
    # Last of all, so that "all equal" is not the last word of a run that left something out.
    sys.stdout.write("".join(f"\nNOT COMPARED: {one}\n" for one in missing))
    return code


def _compare_core(ways: Ways, wanted: argparse.Namespace, missing: list[str]) -> int:
    """With each client of Artemis; of those that can't be had `missing` tells."""
    code = 0
    for version in (ARTEMIS_VERSION, *OLD_CLIENTS):
        try:
            code = ways.compare_core(version, ways.cache, wanted) or code
        except Missing as error:
            missing.append(f"Artemis's client {version}, by CORE. {error}")
    return code


def main(given: Sequence[str] | None = None, ways: Ways = WAYS) -> int:
    """The exit code: 0 when everything is equal or different on purpose."""
    wanted = _arguments(given)
    ways.cache.mkdir(exist_ok=True)
    try:
        with (ways.cache / "lock").open("w") as lock:
            # Two runs would share directories; the second one waits.
            fcntl.flock(lock, fcntl.LOCK_EX)
            return _compare_all(ways, wanted)
    except Missing as error:
        taken = ", which --allow-missing takes for success" if wanted.allow_missing else ""
        sys.stderr.write(f"NOTHING COMPARED{taken}. {error}\n")
        return 0 if wanted.allow_missing else FAILED
    except BrokerFailed as error:
        sys.stderr.write(f"{error}\n")
        return FAILED


if __name__ == "__main__":
    sys.exit(main())
