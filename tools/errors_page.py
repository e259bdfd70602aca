"""Writes docs/errors.md from the table of errors: `PYTHONPATH=. python -m tools.errors_page`."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from delosmq.model.errors import ERRORS, BrokerError, DeclaredError, Scope
from delosmq.sessions.openwire.server import errors as openwire_commands
from delosmq.sessions.stomp.server import errors as stomp_commands
from delosmq.wire.openwire import errors as openwire_frames
from delosmq.wire.stomp import errors as stomp_frames

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "errors.md"
SECTIONS: Final = {
    "STOMP: frames": stomp_frames.__name__,
    "STOMP: commands": stomp_commands.__name__,
    "OpenWire: frames": openwire_frames.__name__,
    "OpenWire: commands": openwire_commands.__name__,
}
ENDS: Final = {Scope.CONNECTION: "the connection", Scope.SESSION: "the session", Scope.LINK: "the command", None: ""}
HEAD: Final = """# What the protocols tell clients

Each error has a code that stays the same from version to version; the sentence after it may become better. `{}` holds
the name of what a sentence names. Over STOMP it is an ERROR frame; over OpenWire an exception, of which Java clients
get the class that is named here. What the engine refuses whatever the protocol (codes from DMQ2001 on: no permission,
no such queue, a limit) says itself what to do. What the broker writes to its log, and which of it is worth an alert, is
in [logging](how-to/logging.md); mistakes in broker.xml are in [configuration](configuration.md#check).
"""


class Named(int):
    """A number that shows as the name of the parameter that it stands for."""

    name: str

    def __format__(self, form: str) -> str:
        return f"{{{self.name}}}"


class NamedError(BrokerError):
    """An error that shows as the name of the parameter that it stands for."""

    def __str__(self) -> str:
        return self.message


def placeholder(name: str, kind: object) -> object:
    """What stands for a parameter of a sentence."""
    if kind is int:
        number = Named(12)
        number.name = name
        return number
    if kind is bytes:
        return b"{%s}" % name.encode()
    if kind is str:
        return f"{{{name}}}"
    if isinstance(kind, type) and issubclass(kind, BrokerError):
        return NamedError("", f"{{{name}}}")
    return {f"{{{name}}}": ""}


def sentence_of(error: DeclaredError) -> str:
    """The sentence of an error with the names of its parameters."""
    parameters = inspect.signature(error.sentence).parameters.values()
    return error.sentence(*(placeholder(one.name, one.annotation) for one in parameters))


def lines_of(module: str) -> Iterator[str]:
    """The rows of a section."""
    for error in sorted((one for one in ERRORS if one.sentence.__module__ == module), key=lambda one: one.code):
        says = re.sub(r"([\\*<|])", r"\\\1", sentence_of(error))
        condition = f"`{error.condition.rpartition('.')[2]}`" if error.condition else ""
        yield f"| {error.code} | {ENDS[error.scope]} | {condition} | {says} |"


def page() -> str:
    """The page as it should be."""
    parts = [HEAD]
    for title, module in SECTIONS.items():
        parts.append(
            "\n".join(
                [f"## {title}\n", "| code | ends | exception | says |", "|---|---|---|---|", *lines_of(module), ""]
            )
        )
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
