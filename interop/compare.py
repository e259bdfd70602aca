"""What is equal, what differs on purpose, and what is wrong."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from interop.programs import Outcome, compared


class Verdict(Enum):
    """Of one case."""

    EQUAL = "equal"
    DIFFERENT = "different"
    INTENDED = "differs on purpose"


@dataclass(slots=True)
class Difference:
    """One that is meant. `case` may end with ``*``."""

    program: str
    case: str
    reason: str
    used: bool = False

    def covers(self, program: str, case: str) -> bool:
        """Is it about this case?"""
        same = case.startswith(self.case[:-1]) if self.case.endswith("*") else case == self.case
        return program == self.program and same


@dataclass(slots=True)
class Comparison:
    """Of one program on two brokers."""

    program: str
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    details: dict[str, list[str]] = field(default_factory=dict)

    def count(self, verdict: Verdict) -> int:
        """How many cases have it."""
        return list(self.verdicts.values()).count(verdict)


def read_differences(path: Path) -> list[Difference]:
    """The list of what differs on purpose. Raises ValueError for a line that is not ``program | case | reason``."""
    found = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        program, _, rest = line.partition(" | ")
        case, _, reason = rest.rpartition(" | ")
        if not (program.strip() and case.strip() and reason.strip()):
            raise ValueError(f"{path}:{number}: not of the form `program | case | reason`")
        found.append(Difference(program.strip(), case.strip(), reason.strip()))
    return found


def compare(program: str, expected: Outcome, seen: Outcome, differences: list[Difference]) -> Comparison:
    """Marks those entries of `differences` as used that a difference needs."""
    comparison = Comparison(program)
    for case in [*expected.cases, *(case for case in seen.cases if case not in expected.cases)]:
        wanted, got = (
            compared(outcome.cases[case]) if case in outcome.cases else ["(the case did not run)"]
            for outcome in (expected, seen)
        )
        if wanted == got:
            comparison.verdicts[case] = Verdict.EQUAL
            continue
        meant = [difference for difference in differences if difference.covers(program, case)]
        for difference in meant:
            difference.used = True
        comparison.verdicts[case] = Verdict.INTENDED if meant else Verdict.DIFFERENT
        comparison.details[case] = [
            line
            for line in difflib.unified_diff(wanted, got, n=2, lineterm="")
            if line[:3] not in {"---", "+++", "@@ "}
        ]
    return comparison
