"""The same programs on two brokers, at the same time, and what is equal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from interop.brokers import Broker, DelosMQ
from interop.compare import Comparison, Difference, Verdict, compare, read_differences
from interop.java import CACHE
from interop.programs import Outcome, compared

FAILED: Final = 1
_ASKED_AGAIN: Final = 5
"""Cases at most, as a fault of ours makes many differ."""

Play = Callable[[Broker, Sequence[str], str], dict[str, Outcome]]
"""Runs programs, or those of their cases whose names start so, on a broker."""


@dataclass(frozen=True, slots=True)
class Place:
    """One of the two brokers.

    Attributes:
        folder: below `CACHE`/run, for its data and what it and the programs print.
        name: as the comparison calls it.
    """

    make: Callable[[Path], Broker]
    folder: str
    name: str

    def play(self, play: Play, programs: Sequence[str], case: str, suffix: str = "") -> dict[str, Outcome]:
        """The outcome of each program on a broker that starts empty."""
        directory = CACHE / "run" / (self.folder + suffix)
        with self.make(directory) as broker:
            outcomes = play(broker, programs, case)
        for program, outcome in outcomes.items():
            text = "".join(
                f"case {name}\n" + "".join(f"  {line}\n" for line in lines) for name, lines in outcome.cases.items()
            )
            (directory / f"{program}.txt").write_text(text)
        return outcomes


@dataclass(slots=True)
class Round:
    """Programs on the broker that their client was made for, and on ours, or on the first one again.

    Attributes:
        differences: the file that lists those on purpose.
        problems: found elsewhere, which fail the round as well.
    """

    expected: Place
    seen: Place
    play: Play
    differences: Path
    problems: list[str] = field(default_factory=list)

    def run(self, programs: Sequence[str], case: str) -> tuple[dict[str, Outcome], dict[str, Outcome]]:
        """What the programs see on the one and on the other."""
        # At the same time, as most of it is waiting.
        with ThreadPoolExecutor(2) as pool:
            one, other = (pool.submit(place.play, self.play, programs, case) for place in (self.expected, self.seen))
        outcomes = one.result(), other.result()
        if self.seen.name == DelosMQ.name:
            for program, differing in self._different(*outcomes)[:_ASKED_AGAIN]:
                self._ask_again(program, differing, *outcomes)
        return outcomes

    def _comparisons(
        self, expected: dict[str, Outcome], seen: dict[str, Outcome], differences: list[Difference]
    ) -> list[Comparison]:
        return [compare(program, expected[program], seen[program], differences) for program in expected]

    def _different(self, expected: dict[str, Outcome], seen: dict[str, Outcome]) -> list[tuple[str, str]]:
        """Programs and cases that differ, and are not meant to."""
        return [
            (one.program, case)
            for one in self._comparisons(expected, seen, read_differences(self.differences))
            for case, verdict in one.verdicts.items()
            if verdict is Verdict.DIFFERENT and case in expected[one.program].cases and case in seen[one.program].cases
        ]

    def _ask_again(self, program: str, case: str, expected: dict[str, Outcome], seen: dict[str, Outcome]) -> None:
        """Asks both brokers once more, one after the other. Where DelosMQ says what it said and the other one now says
        it too, that one's first answer was a race within it, and the second one counts."""
        again = [
            place.play(self.play, [program], case, "-once-more")[program].cases.get(case)
            for place in (self.expected, self.seen)
        ]
        steady = again[1] is not None and compared(again[1]) == compared(seen[program].cases[case])
        if again[0] is not None and again[1] is not None and steady and compared(again[0]) == compared(again[1]):
            expected[program].cases[case] = again[0]
            name = self.expected.name
            sys.stdout.write(f"\n{program}: {case}: {name} says something else the second time, and DelosMQ does not\n")

    def report(self, expected: dict[str, Outcome], seen: dict[str, Outcome], *, whole: bool) -> int:
        """Tells what differs; the exit code.

        Args:
            whole: all programs ran, so that a difference on purpose that nothing needs is a problem.
        """
        differences = read_differences(self.differences)
        comparisons = self._comparisons(expected, seen, differences)
        problems = []
        for comparison in comparisons:
            for case, verdict in comparison.verdicts.items():
                if verdict is Verdict.DIFFERENT:
                    problems.append(f"{comparison.program}: {case}")
                    told = f"{comparison.program}: {case}   (- {self.expected.name}, + {self.seen.name})"
                    lines = "".join(f"  {line}\n" for line in comparison.details[case])
                    sys.stdout.write(f"\n{told}\n{lines}")
        problems += [*_broken(self.expected.name, expected), *_broken(self.seen.name, seen), *self.problems]
        if whole and self.expected.name != self.seen.name:
            unused = [difference for difference in differences if not difference.used]
            problems += [
                f"{self.differences.name}: {one.program} | {one.case}: nothing differs there" for one in unused
            ]
        sys.stdout.write(f"\n{_table(comparisons)}\n\n")
        sys.stdout.write("".join(f"{problem}\n" for problem in problems))
        sys.stdout.write(f"{len(problems)} problems\n" if problems else "all equal, or different on purpose\n")
        return FAILED if problems else 0


def _broken(name: str, outcomes: dict[str, Outcome]) -> list[str]:
    """Programs that ended early; and cases that broke, on the broker that the programs are made for."""
    ended = [f"{name}: {program}: {one.ended}" for program, one in outcomes.items() if one.ended]
    if name == DelosMQ.name:
        return ended
    return ended + [
        f"{name}: {program}: {case} {line}"
        for program, one in outcomes.items()
        for case, lines in one.cases.items()
        for line in lines
        if line.startswith(("hangs", "fails with"))
    ]


def _table(comparisons: list[Comparison]) -> str:
    rows = [["program", "cases", "equal", "on purpose", "different"]]
    for one in comparisons:
        counts = (one.count(verdict) for verdict in (Verdict.EQUAL, Verdict.INTENDED, Verdict.DIFFERENT))
        rows.append([one.program, str(len(one.verdicts)), *(str(count) for count in counts)])
    return "\n".join(f"{row[0]:22}" + "".join(f"{cell:>12}" for cell in row[1:]) for row in rows)
