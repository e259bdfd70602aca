"""`python -m interop`: programs of the real Java client, and of ours, on DelosMQ and ActiveMQ Classic, compared; and
programs of connection routers, which show what they say.
"""

from __future__ import annotations

import argparse
import fcntl
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from interop.brokers import Broker, BrokerFailed, Classic, DelosMQ, NewestClassic
from interop.client.suite import EXPECTED as RECORDED
from interop.client.suite import SCRIPTS, outdated, printed, read_expected, run_script
from interop.compare import Comparison, Verdict, compare, read_differences
from interop.java import CACHE, Client, Missing, client
from interop.maven import BROKER, DEBIAN, NEWEST, fetched
from interop.page import EXPECTED, PAGE, Converted, run_program
from interop.programs import PROGRAMS, Outcome, compared, run
from interop.routers.suite import NAMES as ROUTED
from interop.routers.suite import run_routers

_DIFFERENCES = Path(__file__).resolve().parent / "openwire" / "differences.txt"
_FAILED = 1
_ASKED_AGAIN: Final = 5
"""Cases at most, as a fault of ours makes many differ."""
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
    parser.add_argument("programs", nargs="*", choices=[*PROGRAMS, *SCRIPTS, *ROUTED, []], help="all without one")
    parser.add_argument("--case", default="", metavar="START", help="only cases whose names start so")
    parser.add_argument(
        "--twice", action="store_true", help="compare Classic with itself: do the programs see the same?"
    )
    parser.add_argument("--only", choices=["classic", "delosmq"], help="run against one broker and compare nothing")
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
    parser.add_argument("--jars", type=Path, help="folder with another version of the client, with what it needs")
    parser.add_argument("--allow-missing", action="store_true", help="succeed where Java or its libraries are missing")
    wanted = parser.parse_args(given)
    wanted.routed = [program for program in wanted.programs if program in ROUTED]
    wanted.programs = [program for program in wanted.programs if program not in ROUTED]
    return wanted


def _run_all(
    make: Callable[[Path], Broker], place: str, used: Client | None, wanted: argparse.Namespace
) -> dict[str, Outcome]:
    """The outcome of each program on a broker that starts empty; without a Java client those of ours alone."""
    directory = CACHE / "run" / place
    with make(directory) as broker:
        outcomes: dict[str, Outcome] = {}
        for program in wanted.programs or (SCRIPTS if used is None else [*PROGRAMS, *SCRIPTS]):
            started = time.monotonic()
            if program in SCRIPTS:
                outcome = run_script(program, broker, wanted.case)
            else:
                assert used is not None  # as the arguments were checked
                outcome = run(used, broker, program, only=wanted.case, errors=directory / f"{program}.err")
            outcomes[program] = outcome
            text = "".join(
                f"case {name}\n" + "".join(f"  {line}\n" for line in lines) for name, lines in outcome.cases.items()
            )
            (directory / f"{program}.txt").write_text(text)
            took = time.monotonic() - started
            sys.stderr.write(f"{place}: {program}: {len(outcome.cases)} cases, {took:.1f} s {outcome.ended}\n")
    return outcomes


def _table(comparisons: list[Comparison]) -> str:
    rows = [["program", "cases", "equal", "on purpose", "different"]]
    for one in comparisons:
        counts = (one.count(verdict) for verdict in (Verdict.EQUAL, Verdict.INTENDED, Verdict.DIFFERENT))
        rows.append([one.program, str(len(one.verdicts)), *(str(count) for count in counts)])
    return "\n".join(f"{row[0]:22}" + "".join(f"{cell:>12}" for cell in row[1:]) for row in rows)


def _report(expected: dict[str, Outcome], seen: dict[str, Outcome], names: tuple[str, str], whole: bool) -> int:
    differences = read_differences(_DIFFERENCES)
    comparisons = [compare(program, expected[program], seen[program], differences) for program in expected]
    problems = []
    for comparison in comparisons:
        for case, verdict in comparison.verdicts.items():
            if verdict is Verdict.DIFFERENT:
                problems.append(f"{comparison.program}: {case}")
                sys.stdout.write(f"\n{comparison.program}: {case}   (- {names[0]}, + {names[1]})\n")
                sys.stdout.write("".join(f"  {line}\n" for line in comparison.details[case]))
    for name, outcomes in zip(names, (expected, seen), strict=True):
        ended = [f"{name}: {program}: {one.ended}" for program, one in outcomes.items() if one.ended]
        broken = [
            f"{name}: {program}: {case} {line}"
            for program, one in outcomes.items()
            for case, lines in one.cases.items()
            for line in lines
            if name != DelosMQ.name and line.startswith(("hangs", "fails with"))
        ]
        problems += [*ended, *broken]
        if name != DelosMQ.name:
            recorded = read_expected()
            problems += [
                f"{RECORDED.name}: {program}: {case}: {name} says something else"
                for program, outcome in outcomes.items()
                if program in SCRIPTS
                for case in outdated(program, outcome, recorded)
            ]
    if whole and names[0] != names[1]:
        unused = [difference for difference in differences if not difference.used]
        problems += [f"{_DIFFERENCES.name}: {one.program} | {one.case}: nothing differs there" for one in unused]
    sys.stdout.write(f"\n{_table(comparisons)}\n\n")
    sys.stdout.write("".join(f"{problem}\n" for problem in problems))
    sys.stdout.write(f"{len(problems)} problems\n" if problems else "all equal, or different on purpose\n")
    return _FAILED if problems else 0


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
        make = DelosMQ if wanted.only == "delosmq" else Classic
        outcomes = _run_all(make, wanted.only, used, wanted)
        _print(outcomes, wanted)
        return _FAILED if any(outcome.ended for outcome in outcomes.values()) else 0
    other, place = (Classic, "classic-again") if wanted.twice else (DelosMQ, "delosmq")
    whole = not wanted.programs and not wanted.case
    code = _run_both((Classic, "classic"), (other, place), used, wanted, whole=whole)
    wrong = _page(used) if whole and other is DelosMQ else []
    sys.stdout.write("".join(f"{line}\n" for line in wrong))
    return _FAILED if wrong else code


def _run_on_newest(cache: Path, wanted: argparse.Namespace) -> int:
    """The programs of our client on Classic 6. Raises Missing and BrokerFailed."""
    if any(program not in SCRIPTS for program in wanted.programs):
        raise Missing(
            f"With --broker {NEWEST} name some of {', '.join(SCRIPTS)}: programs of Java bring their broker's client."
        )
    jars = fetched(NEWEST, cache, BROKER)
    sys.stdout.write(f"\nthe Python client, on ActiveMQ Classic {NewestClassic.version_of(jars)}\n")
    sys.stdout.flush()
    newest = partial(NewestClassic, jars=jars)
    return _run_both((newest, "classic-newest"), (DelosMQ, "delosmq-again"), None, wanted, whole=False)


def _run_both(
    first: tuple[Callable[[Path], Broker], str],
    second: tuple[Callable[[Path], Broker], str],
    used: Client | None,
    wanted: argparse.Namespace,
    *,
    whole: bool,
) -> int:
    # At the same time, as most of it is waiting.
    with ThreadPoolExecutor(2) as pool:
        one, other = (pool.submit(_run_all, make, place, used, wanted) for make, place in (first, second))
    _print(one.result(), wanted)
    names = (Classic.name, DelosMQ.name if second[0] is DelosMQ else Classic.name)
    expected, seen = one.result(), other.result()
    if second[0] is DelosMQ:
        for program, case in _different(expected, seen)[:_ASKED_AGAIN]:
            _ask_again(program, case, (expected, seen), (first, second), used)
    return _report(expected, seen, names, whole)


def _different(expected: dict[str, Outcome], seen: dict[str, Outcome]) -> list[tuple[str, str]]:
    """Programs and cases that differ, and are not meant to."""
    differences = read_differences(_DIFFERENCES)
    comparisons = [compare(program, expected[program], seen[program], differences) for program in expected]
    return [
        (one.program, case)
        for one in comparisons
        for case, verdict in one.verdicts.items()
        if verdict is Verdict.DIFFERENT and case in expected[one.program].cases and case in seen[one.program].cases
    ]


def _ask_again(
    program: str,
    case: str,
    before: tuple[dict[str, Outcome], dict[str, Outcome]],
    brokers: tuple[tuple[Callable[[Path], Broker], str], tuple[Callable[[Path], Broker], str]],
    used: Client | None,
) -> None:
    """Asks both brokers once more, one after the other. Where DelosMQ says what it said and Classic now says it too,
    the first answer was a race within Classic, and the second one counts."""
    wanted = argparse.Namespace(programs=[program], case=case)
    again = [
        _run_all(make, f"{place}-once-more", used if program in PROGRAMS else None, wanted)[program].cases.get(case)
        for make, place in brokers
    ]
    steady = again[1] is not None and compared(again[1]) == compared(before[1][program].cases[case])
    if again[0] is not None and again[1] is not None and steady and compared(again[0]) == compared(again[1]):
        before[0][program].cases[case] = again[0]
        sys.stdout.write(f"\n{program}: {case}: Classic says something else when asked again, and DelosMQ does not\n")


def _print(outcomes: dict[str, Outcome], wanted: argparse.Namespace) -> None:
    if wanted.printed:
        for program, outcome in outcomes.items():
            sys.stdout.write(printed(program, outcome))


def _show_routers(used: Client, cache: Path, programs: Sequence[str]) -> int:
    """The exit code of programs of connection routers. Raises Missing when Artemis is, after all others."""
    sys.stdout.write("\nconnection routers\n")
    problems = run_routers(used, cache, programs)
    sys.stdout.write("".join(f"{problem}\n" for problem in problems))
    return _FAILED if problems else 0


@dataclass(frozen=True, slots=True)
class Ways:
    """How a run gets and uses clients.

    Attributes:
        fetch: gives the folder of a version; raises Missing.
        prepare: compiles the programs for the client in a folder, None for that of the packages; raises Missing.
        compare: gives the exit code of a run with one client; raises Missing and BrokerFailed.
        compare_newest: the same of our client on Classic 6.
        show_routers: the same of programs of connection routers with one client.
    """

    fetch: Callable[[str, Path], Path] = fetched
    prepare: Callable[[Path | None], Client] = client
    compare: Callable[[Client, argparse.Namespace], int] = _run_with
    compare_newest: Callable[[Path, argparse.Namespace], int] = _run_on_newest
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
    """With one client, but in a whole run some programs with the newest one as well, and ours on the newest broker,
    when these can be had."""
    if wanted.broker == NEWEST:
        return ways.compare_newest(ways.cache, wanted)
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
    # Last of all, so that "all equal" is not the last word of a run that left something out.
    sys.stdout.write("".join(f"\nNOT COMPARED: {one}\n" for one in missing))
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
        return 0 if wanted.allow_missing else _FAILED
    except BrokerFailed as error:
        sys.stderr.write(f"{error}\n")
        return _FAILED


if __name__ == "__main__":
    sys.exit(main())
