"""What is wrong with a configuration file: collected, so that one start names all of it."""

from difflib import get_close_matches
from typing import Final, NamedTuple

from delosmq.model.errors import ConfigurationError

# What several of the readers find; every other code stands where it is raised.
UNREADABLE: Final = "DMQ4001"
UNSAFE_XML: Final = "DMQ4003"
UNKNOWN_NAME: Final = "DMQ4004"
WRONG_VALUE: Final = "DMQ4005"
NOT_SUPPORTED: Final = "DMQ4006"
MISSING: Final = "DMQ4007"
TWICE: Final = "DMQ4008"
CONTRADICTION: Final = "DMQ4012"
WRONG_INSTANCE_VALUE: Final = "DMQ4034"
NO_USERS: Final = "DMQ4021"
ROLES_OF_STRANGERS: Final = "DMQ4022"
ROLES_OF_NOBODY: Final = "DMQ4112"
NAMES_WITHOUT_EFFECT: Final = "DMQ4101"
WITHOUT_EFFECT_HERE: Final = "DMQ4110"

_MOST_REPORTED: Final = 20

# Below this likeness (0 to 1) a suggestion misleads more than it helps.
_LEAST_LIKENESS: Final = 0.4


class Finding(NamedTuple):
    """One mistake, with the line it stands in (0 when it is in none)."""

    line: int
    code: str
    sentence: str


class Findings:
    """The mistakes of one file.

    Args:
        file: the file as its reader knows it.
    """

    def __init__(self, file: str) -> None:
        self._file = file
        self._found: list[Finding] = []

    def add(self, code: str, line: int, sentence: str) -> None:
        """Notes one mistake; ``sentence`` says what is wrong and what to do."""
        self._found.append(Finding(line, code, sentence))

    def raise_if_any(self) -> None:
        """Raises ConfigurationError that names every mistake found, in the order of the file."""
        if not self._found:
            return
        ordered = sorted(self._found, key=lambda finding: finding.line)
        if len(ordered) == 1:
            raise ConfigurationError(ordered[0].code, self._line(ordered[0]))
        shown = [f"  {finding.code}: {self._line(finding)}" for finding in ordered[:_MOST_REPORTED]]
        if len(ordered) > _MOST_REPORTED:
            shown.append(f"  and {len(ordered) - _MOST_REPORTED} more")
        head = f"{self._file} has {len(ordered)} mistakes; correct them and start again:"
        raise ConfigurationError("DMQ4000", "\n".join([head, *shown]))

    def place(self, line: int) -> str:
        """How messages name ``line`` of the file."""
        return f"{self._file}:{line}" if line else self._file

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
