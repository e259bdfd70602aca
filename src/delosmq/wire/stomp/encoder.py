r"""Frames to bytes, and the header lines that travel from a SEND to its MESSAGEs.

What a version cannot express becomes a space, because a frame that can't be sent would block its queue for ever:
NUL in headers (all versions; many clients cut frames at the first NUL), line feed and carriage return in 1.0 and in
CONNECT, STOMP and CONNECTED. A colon in a header name of 1.0 becomes ``_``.

Source: STOMP 1.1 and 1.2, "Value Encoding".
"""

from collections.abc import Iterable

from delosmq.model.errors import MisuseError
from delosmq.model.reserved_names import may_read_otherwise, reads_as
from delosmq.wire.stomp.decoder import StompFrame
from delosmq.wire.stomp.heads import COMMANDS, CONNECTING, WITH_BODY, escape, unescape
from delosmq.wire.stomp.versions import V10


def encode_frame(
    command: str, headers: Iterable[tuple[str, str]], body: bytes, version: int, content_length: bool = True
) -> bytes:
    """The frame as bytes, with its closing NUL.

    Args:
        headers: names and values not yet escaped, written in this order.
        content_length: append the header ``content-length``. It is also appended when the body contains NUL, as the
            frame could not be read otherwise, and never to commands that have no body.

    Raises:
        MisuseError: DMQ5014, when ``command`` may not have the body given.
    """
    kind = COMMANDS.get(command, WITH_BODY)
    if body and kind != WITH_BODY:
        raise MisuseError("DMQ5014", f"a {command} frame may not have a body: pass an empty one.")
    pairs = list(headers)
    if kind == WITH_BODY and (content_length or b"\0" in body):
        pairs.append(("content-length", str(len(body))))
    return b"%b\n\n%b\0" % (encode_head(command, pairs, version), body)


def encode_head(command: str, pairs: list[tuple[str, str]], version: int) -> bytes:
    """Command line and header lines, escaped, without line feed at the end."""
    lines = [command]
    lines += [f"{name}:{value}" for name, value in pairs]
    text = "\n".join(lines)
    # A few searches over the whole head cost less than looking for escapes in each name and value.
    count = len(pairs)
    plain = text.count("\n") == count and text.count(":") == count
    if plain and "\\" not in text and "\r" not in text and "\0" not in text:
        return text.encode()
    rules = V10 if COMMANDS.get(command) == CONNECTING else version
    lines = [command]
    lines += [f"{_escape_name(name, rules)}:{escape(value, rules)}" for name, value in pairs]
    return "\n".join(lines).encode()


def relay_head(frame: StompFrame, version: int, drop: frozenset[str]) -> bytes:
    r"""The header lines of a received SEND that go out unchanged in its MESSAGEs.

    Args:
        version: the version ``frame`` was decoded with.
        drop: decoded names to leave out, and what a lenient reader takes for one of them.

    Returns:
        Lines in the escapes of ``version``, each with its ``\n``, without dropped and repeated headers; maybe empty.
    """
    head = frame.head
    if not head:
        return b""
    lines = head.split(b"\n")
    headers = frame.headers
    if len(lines) == len(headers) and not may_read_otherwise(headers):
        # Nothing is repeated, so the two run side by side.
        kept = [lines[index] for index, name in enumerate(headers) if name not in drop]
    else:
        kept = _first_lines(lines, version, drop)
    if not kept:
        return b""
    relayed = b"\n".join(kept) + b"\n"
    if version != V10 and relayed.count(b":") != len(kept):
        # The sender left colons of values unescaped. We read that, as other brokers do, but don't write it.
        return transcode_head(relayed, version, version)
    return relayed


def transcode_head(head: bytes, from_version: int, to_version: int) -> bytes:
    r"""Header lines of one version in the escapes of another, with or without ``\n`` at the end as given.

    Raises:
        PeerError: DMQ5009, at an escape that ``from_version`` does not define. Heads from the decoder have none.
    """
    if not head:
        return head
    closed = head.endswith(b"\n")
    colons = head.count(b"\n") + (0 if closed else 1)
    if b"\\" not in head and b"\r" not in head and head.count(b":") == colons:
        return head
    if from_version == to_version == V10:
        return head
    text = head.decode()
    lines = (text[:-1] if closed else text).split("\n")
    transcoded = "\n".join([_transcode_line(line, from_version, to_version) for line in lines])
    return (transcoded + "\n" if closed else transcoded).encode()


def _transcode_line(line: str, from_version: int, to_version: int) -> str:
    name, _, value = line.partition(":")
    name = _escape_name(unescape(name, from_version), to_version)
    return f"{name}:{escape(unescape(value, from_version), to_version)}"


def _escape_name(name: str, version: int) -> str:
    escaped = escape(name, version)
    return escaped.replace(":", "_") if version == V10 else escaped


def _first_lines(lines: list[bytes], version: int, drop: frozenset[str]) -> list[bytes]:
    seen: set[str] = set()
    kept = []
    for line in lines:
        name = unescape(line.partition(b":")[0].decode(), version)
        if name not in seen:
            seen.add(name)
            if not reads_as(name, drop):
                kept.append(line)
    return kept
