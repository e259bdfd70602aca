r"""Heads of STOMP frames: their commands, header lines and escapes, and what these say of the body.

What the specifications leave open, or where versions differ:

- Padding. 1.0 trims spaces and tabs around names and values, as its own examples (``destination: /queue/a``) need.
  1.1 and 1.2 never trim, except around the number in ``content-length``.
- Escapes. None in 1.0 and in CONNECT, STOMP and CONNECTED. Undefined ones are refused.
- CONNECT and STOMP without ``accept-version`` and CONNECTED without ``version`` come from 1.0 peers and are trimmed.
- A colon inside a value is accepted unescaped: many clients don't escape it.
- A body where none may be is refused from 1.1 on and ignored in 1.0 ("The body of the SUBSCRIBE command is ignored").
  Frames with commands we don't know may have one, so that the session can refuse the command by name.

Source: STOMP 1.0; STOMP 1.1 and 1.2, "Value Encoding", "Body", "Size Limits", "Repeated Header Entries".
"""

from dataclasses import dataclass
from typing import Final

from delosmq.wire.stomp import errors
from delosmq.wire.stomp.versions import V10, V11, V12

BEGINNING_BYTES: Final = 34
"""What `check_command` looks at of a frame: the longest command with its line end."""
_MAX_COMMAND_BYTES: Final = 32
# Decimal digits of 2**63: more can't be a size, and int() of very long digit strings is slow.
_MAX_LENGTH_DIGITS: Final = 19

WITH_BODY: Final = 0
WITHOUT_BODY: Final = 1
CONNECTING: Final = 2

# Source: STOMP 1.2, "Body" and "Value Encoding". CONNECTING frames have no body and no escapes in any version.
COMMANDS: Final[dict[str, int]] = {
    "SEND": WITH_BODY,
    "MESSAGE": WITH_BODY,
    "ERROR": WITH_BODY,
    "ACK": WITHOUT_BODY,
    "NACK": WITHOUT_BODY,
    "SUBSCRIBE": WITHOUT_BODY,
    "UNSUBSCRIBE": WITHOUT_BODY,
    "BEGIN": WITHOUT_BODY,
    "COMMIT": WITHOUT_BODY,
    "ABORT": WITHOUT_BODY,
    "DISCONNECT": WITHOUT_BODY,
    "RECEIPT": WITHOUT_BODY,
    "CONNECT": CONNECTING,
    "STOMP": CONNECTING,
    "CONNECTED": CONNECTING,
}

# What is known of a body before it came.
NO_LENGTH: Final = -1
BODY_ALLOWED: Final = 0
BODY_REFUSED: Final = 1
BODY_IGNORED: Final = 2

_MEANINGS: Final[dict[str, str]] = {"\\": "\\", "n": "\n", "c": ":", "r": "\r"}


@dataclass(frozen=True)
class StompLimits:
    """What one frame may take; anything larger is refused before it is buffered.

    Attributes:
        max_head_bytes: command line and header lines together, line ends included.
        max_headers: header lines, repeated ones included.
        max_body_bytes: the body without NUL. 10 MiB fits a large message and keeps 1,000 hostile connections bounded.
        max_header_line_bytes: one header line, escapes included, line end not.
    """

    max_head_bytes: int = 65536
    max_headers: int = 1000
    max_body_bytes: int = 10 * 1024 * 1024
    max_header_line_bytes: int = 65536


def decode_head(
    text: str, block: bytes, version: int, limits: StompLimits
) -> tuple[str, dict[str, str], bytes, int, int]:
    """What a head says.

    Args:
        text: command line and header lines, without line end at the end; LF only.
        block: ``text`` in UTF-8.
        version: rules for commands other than CONNECT, STOMP and CONNECTED.

    Returns:
        ``command``, ``headers`` and ``head`` of the `StompFrame`, and the length of its body and the rule for it.

    Raises:
        PeerError: DMQ5001 to DMQ5013, scope connection.
    """
    lines = text.split("\n")
    command = lines.pop(0)
    kind = COMMANDS.get(command, -1)
    if kind < 0:
        check_command(text[:BEGINNING_BYTES].encode(), version)
        kind = WITH_BODY
    headers = _split_headers(command, lines, len(block), limits)
    # A command with other characters than A to Z was refused, so its length in bytes is the same.
    head = block[len(command) + 1 :]
    if kind == CONNECTING:
        offer = "version" if command == "CONNECTED" else "accept-version"
        version = V12 if offer in headers else V10
    if version == V10:
        if " " in text or "\t" in text:
            lines = [_trimmed(line) for line in lines]
            head = "\n".join(lines).encode()
            headers = _split_headers(command, lines, len(head), limits)
    elif kind != CONNECTING and "\\" in text:
        headers = _unescaped(lines, version)
    told_length = headers.get("content-length")
    length = NO_LENGTH if told_length is None else _decode_length(command, told_length, limits.max_body_bytes)
    if kind == WITH_BODY:
        rule = BODY_ALLOWED
    elif version == V10:
        rule = BODY_IGNORED
    elif length > 0:
        raise errors.body_not_allowed(command)
    else:
        rule = BODY_REFUSED
    return command, headers, head, length, rule


def check_command(beginning: bytes, version: int) -> str:
    """The command if ``beginning``, maybe incomplete, is one; the start of a frame and at most `BEGINNING_BYTES`.

    Raises:
        PeerError: DMQ5001 to DMQ5003, scope connection.
    """
    line, newline, _ = beginning.partition(b"\n")
    name = line.removesuffix(b"\r")
    before_nul, nul, _ = name.partition(b"\0")
    if name and not (before_nul.isalpha() and before_nul.isupper() and len(before_nul) <= _MAX_COMMAND_BYTES):
        raise errors.not_a_command(beginning)
    if newline and not name:
        raise errors.not_a_command(beginning)
    command = before_nul.decode()
    if nul:
        raise errors.no_blank_line(command)
    if newline and name is not line and version == V11 and COMMANDS.get(command) != CONNECTING:
        raise errors.carriage_return(command, V11)
    return command


def _split_headers(command: str, lines: list[str], size_bytes: int, limits: StompLimits) -> dict[str, str]:
    if len(lines) > limits.max_headers:
        raise errors.too_many_headers(command, len(lines), limits.max_headers)
    if size_bytes > limits.max_header_line_bytes:
        for index, line in enumerate(lines):
            if len(line.encode()) > limits.max_header_line_bytes:
                raise errors.line_too_long(command, index + 1, limits.max_header_line_bytes)
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name:
            raise errors.not_a_header(command, lines.index(line) + 1)
        headers[name] = value
    if len(headers) != len(lines):
        # Some are repeated, and the last one won.
        headers = _first_wins(lines)
    return headers


def _decode_length(command: str, value: str, most: int) -> int:
    digits = value.strip(" ")
    if not (digits.isdigit() and digits.isascii()):
        raise errors.content_length_not_a_number(command)
    length = int(digits) if len(digits) <= _MAX_LENGTH_DIGITS else most + 1
    if length > most:
        raise errors.body_too_large(command, most)
    return length


def _trimmed(line: str) -> str:
    name, colon, value = line.partition(":")
    return name.strip(" \t") + colon + value.strip(" \t")


def _first_wins(lines: list[str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers.setdefault(name, value)
    return headers


def _unescaped(lines: list[str], version: int) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers.setdefault(unescape(name, version), unescape(value, version))
    return headers


def escape(value: str, version: int) -> str:
    """A header name or value as it is written in frames of ``version`` (10, 11 or 12), except connecting ones."""
    if "\0" in value:
        value = value.replace("\0", " ")
    if version == V10:
        return value.replace("\n", " ").replace("\r", " ")
    if "\\" in value:
        value = value.replace("\\", "\\\\")
    if ":" in value:
        value = value.replace(":", "\\c")
    if "\n" in value:
        value = value.replace("\n", "\\n")
    if version == V12 and "\r" in value:
        value = value.replace("\r", "\\r")
    return value


def unescape(value: str, version: int) -> str:
    r"""The reverse of ``escape``; in 1.0 nothing is an escape.

    Raises:
        PeerError: DMQ5009, scope connection, at an escape that ``version`` does not define (``\r`` in 1.1 too).
    """
    if version == V10 or "\\" not in value:
        return value
    pieces = []
    start = 0
    at = value.find("\\")
    while at >= 0:
        letter = value[at + 1 : at + 2]
        meaning = _MEANINGS.get(letter)
        if meaning is None or (letter == "r" and version == V11):
            raise errors.undefined_escape(value[at : at + 2], version)
        pieces.append(value[start:at])
        pieces.append(meaning)
        start = at + 2
        at = value.find("\\", start)
    pieces.append(value[start:])
    return "".join(pieces)
