"""Findings about a configuration file: collected, so that one start names all that is wrong with it."""

from difflib import get_close_matches
from enum import Enum
from typing import Final, NamedTuple, NoReturn

from delosmq.model.errors import ConfigurationError

# What several of the readers find; every other code stands where it is raised.
UNREADABLE: Final = "DMQ4001"
UNSAFE_XML: Final = "DMQ4003"
UNKNOWN_NAME: Final = "DMQ4004"
WRONG_VALUE: Final = "DMQ4005"
NOT_SUPPORTED: Final = "DMQ4006"
MISSING: Final = "DMQ4007"
TWICE: Final = "DMQ4008"
UNKNOWN_PLACEHOLDER: Final = "DMQ4009"
CONTRADICTION: Final = "DMQ4012"
NO_INSTANCE: Final = "DMQ4030"
WRONG_INSTANCE_VALUE: Final = "DMQ4034"
NO_USERS: Final = "DMQ4021"
ROLES_OF_STRANGERS: Final = "DMQ4022"
ROLES_WITHOUT_USER: Final = "DMQ4112"
NAMES_WITHOUT_EFFECT: Final = "DMQ4101"
WITHOUT_EFFECT_HERE: Final = "DMQ4110"
LEFT_OUT: Final = "DMQ4115"

# Others in a line with one of these come from it.
_SPEAK_ALONE: Final = frozenset({UNSAFE_XML, UNKNOWN_PLACEHOLDER})

_MOST_REPORTED: Final = 20
_MOST_FOUND: Final = 1_000
"""Then the rest of the file is not looked at: what is wrong so often is no configuration."""

# Below this likeness (0 to 1) a suggestion misleads more than it helps.
_LEAST_LIKENESS: Final = 0.4


class FindingKind(Enum):
    """What a finding means for the start."""

    MISTAKE = "mistake"
    UNSUPPORTED = "unsupported"
    LEFT_OUT = "left out"
    IGNORED = "ignored"
    NOTICE = "notice"

    @property
    def stops(self) -> bool:
        return self in (FindingKind.MISTAKE, FindingKind.UNSUPPORTED)


class Finding(NamedTuple):
    """One thing to be said.

    Attributes:
        line: 0 when it is in none.
        sentence: what it is, and what to do.
        name: of what is unsupported, left out or ignored, as ``--without`` takes it; "" for the others.
    """

    line: int
    code: str
    sentence: str
    kind: FindingKind = FindingKind.MISTAKE
    name: str = ""


class FlawedFileError(ConfigurationError):
    """A file with mistakes.

    Attributes:
        findings: all that was found in it.
    """

    def __init__(self, code: str, message: str, findings: "Findings") -> None:
        super().__init__(code, message)
        self.findings = findings


class Findings:
    """What was found in one file.

    Args:
        file: the file as its reader knows it.
        without: names that are left out where they would stop the start.

    Attributes:
        found: in the order of the file, what is in no line first.
    """

    def __init__(self, file: str, without: frozenset[str] = frozenset()) -> None:
        self.file = file
        self._without = without
        self._found: list[Finding] = []
        self._stopping = 0
        self._settled: dict[int, str] = {}

    @property
    def found(self) -> list[Finding]:
        """All of it, in the order of the file."""
        return sorted(self._found, key=lambda finding: finding.line)

    def add(self, code: str, line: int, sentence: str) -> None:
        """Notes one mistake; ``sentence`` says what is wrong and what to do.

        Raises:
            FlawedFileError: there are very many.
        """
        found = Finding(line, code, sentence)
        if self._settled.get(line, code) != code or (line in self._settled and found in self._found):
            return
        if code in _SPEAK_ALONE:
            self._settled[line] = code
        self._note(found)

    def _note(self, finding: Finding) -> None:
        self._found.append(finding)
        self._stopping += finding.kind.stops
        if self._stopping == _MOST_FOUND:
            sentence = f"{_MOST_FOUND} mistakes, so the rest of the file was not looked at; correct these first"
            self._found.append(Finding(finding.line, "DMQ4037", sentence))
            self.raise_if_any()

    def stop(self, code: str, line: int, sentence: str) -> NoReturn:
        """Notes a mistake beyond which nothing can be read, and raises FlawedFileError."""
        self.add(code, line, sentence)
        self.raise_if_any()
        raise AssertionError("a mistake stops the start")

    def refuse(self, name: str, line: int, sentence: str) -> None:
        """Notes that ``name`` can't be obeyed and must not be ignored; unless it is left out on purpose."""
        left_out = name in self._without
        kind = FindingKind.LEFT_OUT if left_out else FindingKind.UNSUPPORTED
        self._note(Finding(line, LEFT_OUT if left_out else NOT_SUPPORTED, sentence, kind, name))

    def ignore(self, name: str, line: int, sentence: str) -> None:
        """Notes that ``name`` is known and does nothing yet."""
        self._found.append(Finding(line, NAMES_WITHOUT_EFFECT, sentence, FindingKind.IGNORED, name))

    def notice(self, code: str, line: int, sentence: str) -> None:
        """Notes what the operator should know although the start goes on."""
        self._found.append(Finding(line, code, sentence, FindingKind.NOTICE))

    def raise_if_any(self) -> None:
        """Raises FlawedFileError that names everything which stops the start, in the order of the file."""
        stopping = [finding for finding in self.found if finding.kind.stops]
        if not stopping:
            return
        if len(stopping) == 1:
            raise FlawedFileError(stopping[0].code, self._line(stopping[0]), self)
        shown = [f"  {finding.code}: {self._line(finding)}" for finding in stopping[:_MOST_REPORTED]]
        if len(stopping) > _MOST_REPORTED:
            shown.append(f"  and {len(stopping) - _MOST_REPORTED} more; `delosmq check` lists all")
        head = f"{self.file} has {len(stopping)} mistakes; correct them:"
        raise FlawedFileError("DMQ4000", "\n".join([head, *shown]), self)

    def notices(self) -> list[str]:
        """What a start logs once: sentences with their codes."""
        said: list[str] = []
        ignored = self.names(FindingKind.IGNORED)
        if ignored:
            said.append(
                f"{NAMES_WITHOUT_EFFECT}: {self.file}: known but not in effect yet, hence ignored: {', '.join(ignored)}"
            )
        return said + [
            f"{finding.code}: {self._line(finding) if finding.line else finding.sentence}"
            for finding in self._found
            if finding.kind is FindingKind.NOTICE
        ]

    def names(self, kind: FindingKind) -> list[str]:
        """The names of findings of one kind, each once, in the order in which they were found."""
        return list(dict.fromkeys(finding.name for finding in self._found if finding.kind is kind))

    def place(self, line: int) -> str:
        """How messages name ``line`` of the file."""
        return f"{self.file}:{line}" if line else self.file

    def _line(self, finding: Finding) -> str:
        return f"{self.place(finding.line)}: {finding.sentence}"


def nearest(name: str, known: list[str], *, likeness: float = _LEAST_LIKENESS) -> str:
    """ "; did you mean ..." with the known name that looks most like ``name``, or "" when none does.

    Args:
        likeness: how much alike they have to be, 0 to 1.
    """
    by_lower = {candidate.lower(): candidate for candidate in known}
    close = get_close_matches(name.lower(), list(by_lower), n=1, cutoff=likeness)
    return f"; did you mean {by_lower[close[0]]!r}?" if close else ""
