"""What a conversion could not do, did in another way, or had no need to do: one sentence for each, with its line."""

import re
from collections.abc import Iterable
from enum import Enum
from typing import Final, NamedTuple


class RemarkKind(Enum):
    """What became of something in activemq.xml that is not simply converted; the value is its code."""

    NOT_YET = "DMQ4130"
    IMPOSSIBLE = "DMQ4131"
    UNKNOWN = "DMQ4132"
    WRONG = "DMQ4133"
    DIFFERENT = "DMQ4134"
    NEEDLESS = "DMQ4135"


LEFT_OUT: Final = frozenset({RemarkKind.NOT_YET, RemarkKind.IMPOSSIBLE, RemarkKind.UNKNOWN, RemarkKind.WRONG})
"""Kinds after which the converted broker lacks something that the old one had."""


class Remark(NamedTuple):
    """One of them.

    Attributes:
        line: of activemq.xml; 0 when it stands nowhere.
        sentence: what it would have done, and what to do instead.
    """

    line: int
    kind: RemarkKind
    sentence: str

    @property
    def left_out(self) -> bool:
        """Whether the converted broker lacks something."""
        return self.kind in LEFT_OUT


_NEEDLESS: Final = " is not needed: "
_NAME: Final = re.compile(r"('[^']+') of (.+)")


def _joined(remarks: Iterable[Remark]) -> list[Remark]:
    """The remarks, those about attributes of one element that are needless for the same reason as one."""
    made: list[Remark] = []
    # (line, element, reason) -> names
    groups: dict[tuple[int, str, str], list[str]] = {}
    for remark in remarks:
        what, needless, why = remark.sentence.partition(_NEEDLESS)
        found = _NAME.fullmatch(what) if needless and remark.kind is RemarkKind.NEEDLESS else None
        if found is None:
            made.append(remark)
        else:
            groups.setdefault((remark.line, found.group(2), why), []).append(found.group(1))
    for (line, place, why), names in groups.items():
        verb = _NEEDLESS if len(names) == 1 else " are not needed: "
        made.append(Remark(line, RemarkKind.NEEDLESS, f"{', '.join(names)} of {place}{verb}{why}"))
    return made


class ConversionReport:
    def __init__(self, file: str) -> None:
        self.file = file
        self._remarks: dict[Remark, None] = {}

    def add(self, kind: RemarkKind, line: int, sentence: str) -> None:
        """Notes one; the same sentence about the same line is noted once."""
        # Values of the file are repeated in sentences, which may go to a terminal.
        shown = "".join(letter if letter.isprintable() else "?" for letter in sentence)
        self._remarks[Remark(line, kind, shown)] = None

    def in_order(self) -> tuple[Remark, ...]:
        """All of them: what is left out, what is different, what is not needed, each in the order of the file."""
        return tuple(
            sorted(
                _joined(self._remarks), key=lambda one: (not one.left_out, one.kind is RemarkKind.NEEDLESS, one.line)
            )
        )

    def text(self, remark: Remark) -> str:
        """One line for people: code, file, line, sentence."""
        place = f"{self.file}:{remark.line}" if remark.line else self.file
        return f"{remark.kind.value}: {place}: {remark.sentence}"
