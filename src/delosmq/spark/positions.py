"""Where a read begins or ends: startingOffsets and endingOffsets."""

import json
from dataclasses import dataclass
from datetime import datetime

from delosmq.spark.errors import OptionError

EARLIEST = "earliest"
LATEST = "latest"
SEQUENCE = "sequence"
TIME = "time_ms"
FORMS = f'{EARLIEST}, {LATEST}, {{"sequence": n}}, {{"time_ms": n}} or {{"time": "2026-11-01T00:00:00Z"}}'
_LARGEST = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class ReadPosition:
    """A place in a queue: EARLIEST, LATEST, or SEQUENCE or TIME with a value (ms since 1970)."""

    kind: str
    value: int = 0

    def __str__(self) -> str:
        return json.dumps({self.kind: self.value}) if self.kind in (SEQUENCE, TIME) else self.kind


AT_EARLIEST, AT_LATEST = ReadPosition(EARLIEST), ReadPosition(LATEST)


def parse_position(name: str, text: str) -> ReadPosition:
    """The value of the option `name`.

    Raises:
        OptionError: it is none of the forms that there are.
    """
    word = text.strip().lower()
    if word in (EARLIEST, LATEST):
        return ReadPosition(word)
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        value = None
    if isinstance(value, dict) and len(value) == 1:
        ((kind, number),) = value.items()
        if kind in (SEQUENCE, TIME) and type(number) is int and 0 <= number <= _LARGEST:
            return ReadPosition(kind, number)
        if kind == "time" and isinstance(number, str):
            return ReadPosition(TIME, parse_time(name, number))
    raise OptionError("DMQ8007", f"{name} is {text!r} but should be {FORMS}")


def parse_time(name: str, text: str) -> int:
    """Milliseconds since 1970 of a date and time with a zone; ``name``: where it was given.

    Raises:
        OptionError: it is none.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise OptionError(
            "DMQ8007", f"the time {text!r} in {name} is no date and time with a zone, as in 2026-11-01T00:00:00Z"
        )
    return max(0, int(moment.timestamp() * 1000))
