"""Conversations of clients with a broker as text: one line for each frame, in hexadecimal digits.

    # connection 1              what follows is of this connection
    > 434f4e4e454354...         from the client
    < 434f4e4e45435445...       from the broker
    # connection 1 is gone      the client has let go of it, or it was cut

Within one direction the order is that of the wire; between the two, and between connections, that of arrival. Other
lines that begin with ``#`` are comments.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from delosmq.testing.dialogue import CutFrame, Dialogue

_HEADER: Final = (
    "# Recorded by delosmq.testing; passwords are left out.",
    "# > from the client, < from the broker; each line is one frame.",
)
_CONNECTION: Final = "# connection "
GONE: Final = " is gone"


@dataclass(frozen=True, slots=True)
class RecordedFrame:
    """One line.

    Attributes:
        line: its number in the file, from 1 on.
        raw: b"" where the connection is gone.
    """

    line: int
    connection: int
    by_client: bool
    raw: bytes


def line_of_connection(number: int, *, gone: bool = False) -> str:
    return f"{_CONNECTION}{number}{GONE if gone else ''}"


def line_of_frame(raw: bytes, *, by_client: bool) -> str:
    return f"{'>' if by_client else '<'} {raw.hex()}"


def recorded_frames(path: Path) -> Iterator[RecordedFrame]:
    """What stands in a file."""
    connection = 1
    for number, line in enumerate(path.read_text("ascii").splitlines(), 1):
        if line.startswith(_CONNECTION):
            name = line.removeprefix(_CONNECTION)
            if name.endswith(GONE):
                yield RecordedFrame(number, int(name.removesuffix(GONE)), True, b"")
            else:
                connection = int(name)
        elif line and line[0] != "#":
            yield RecordedFrame(number, connection, line[0] == ">", bytes.fromhex(line[2:]))


class FrameRecorder:
    """Takes down what passes over the connections that are made while it records. On the broker's thread."""

    def __init__(self) -> None:
        self._lines = [*_HEADER]
        self._numbers: dict[int, int] = {}
        self._made = 0
        self._last = 0

    @property
    def text(self) -> str:
        return "\n".join([*self._lines, ""])

    def begin(self, connection: int) -> None:
        """A connection is made; its number in the recording counts from 1."""
        self._made += 1
        self._numbers[connection] = self._made

    def note(self, connection: int, dialogue: Dialogue, cut: CutFrame, *, by_client: bool) -> None:
        """Takes down a frame that has passed."""
        if connection in self._numbers:
            number = self._numbers[connection]
            if number != self._last:
                self._last = number
                self._lines.append(line_of_connection(number))
            self._lines.append(line_of_frame(dialogue.without_password(cut), by_client=by_client))

    def end(self, connection: int) -> None:
        """A connection is gone."""
        if connection in self._numbers:
            self._lines.append(line_of_connection(self._numbers.pop(connection), gone=True))
