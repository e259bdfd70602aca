"""Java properties files: artemis-users.properties and artemis-roles.properties, cert-users.properties and
cert-roles.properties."""

import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from delosmq.config.findings import TWICE, UNREADABLE, Findings
from delosmq.model.declared.java_regex import JavaRegex
from delosmq.model.values import comma_separated
from delosmq.security.certificates import CertificateUsers
from delosmq.security.passwords import flaw_of_stored

_OWNER_ONLY: Final = 0o600
_BLANKS: Final = " \t\f"
_UNESCAPED: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPED: Final = {value: key for key, value in _UNESCAPED.items()}
_UNICODE_DIGITS: Final = re.compile(r"[0-9a-fA-F]{4}")
_SURROGATE_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")


class Entry(NamedTuple):
    """One ``key = value``; ``line`` counts from 1."""

    key: str
    value: str
    line: int = 0


def read_properties(path: Path) -> tuple[list[Entry], Findings]:
    """The entries of the file at ``path`` in its order, and what was found in it so far: a letter that is not ASCII, a
    bad escape, or a key given twice.

    Raises:
        FlawedFileError: not readable.

    Source: java.util.Properties.load(InputStream), but for letters beyond ASCII, which have to be written as
    ``\\uXXXX``: what an editor saves as UTF-8, Java would read as something else.
    """
    findings = Findings(str(path))
    try:
        content = path.read_bytes()
    except OSError as failure:
        missing = isinstance(failure, FileNotFoundError)
        remedy = "make it, if only an empty one" if missing else "let the user that runs this read it"
        findings.stop(UNREADABLE, 0, f"can't be read: {failure.strerror}; {remedy}")
    entries: list[Entry] = []
    first_lines: dict[str, int] = {}
    for line, text in _logical_lines(content, findings):
        entry = _parse_line(line, text, findings)
        if entry is None:
            continue
        if entry.key in first_lines:
            sentence = f"{entry.key!r} is already in line {first_lines[entry.key]}; keep one of the two"
            findings.add(TWICE, line, sentence)
        first_lines.setdefault(entry.key, line)
        entries.append(entry)
    return entries, findings


def write_properties(path: Path, entries: Sequence[Entry], comment: str) -> None:
    """Replaces the file at ``path`` at once or not at all; only its owner may read it.

    Args:
        comment: lines put at its head.
    """
    lines = [f"# {line}".rstrip() for line in comment.splitlines()]
    lines += [f"{_escape(entry.key, is_key=True)} = {_escape(entry.value, is_key=False)}" for entry in entries]
    replace_file(path, "\n".join([*lines, ""]).encode("ascii"))


def replace_file(path: Path, content: bytes) -> None:
    """Writes ``content`` to ``path``, readable by its owner only; after a crash either the old or the new is there."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), _OWNER_ONLY)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def load_users(path: Path) -> dict[str, str]:
    """User -> stored form of the password.

    Raises:
        FlawedFileError: as `read_properties`, or a password is plain text or of an unknown form. The message never
            holds the password.
    """
    entries, findings = read_properties(path)
    for entry in entries:
        flaw = flaw_of_stored(entry.value)
        if flaw:
            sentence = f"the password of {entry.key!r} {flaw}; put there what `delosmq mask` prints for it"
            findings.add("DMQ4020", entry.line, sentence)
    findings.raise_if_any()
    return {entry.key: entry.value for entry in entries}


def load_roles(path: Path) -> dict[str, frozenset[str]]:
    """User -> roles, from a file of ``role = user,user``."""
    entries, findings = read_properties(path)
    findings.raise_if_any()
    roles: dict[str, set[str]] = {}
    for entry in entries:
        for user in comma_separated(entry.value):
            roles.setdefault(user, set()).add(entry.key)
    return {user: frozenset(held) for user, held in roles.items()}


def load_certificate_users(users: Path, roles: Path) -> CertificateUsers | None:
    """Users by the certificates of TLS clients; None when there is no file ``users``.

    Args:
        users: of ``user = distinguished name``, or of an expression between slashes; roles: of ``role = user,user``.

    Raises:
        FlawedFileError: as `read_properties`; an expression can't be read, or two users have one name.
    """
    if not users.exists():
        return None
    entries, findings = read_properties(users)
    names: dict[str, str] = {}
    patterns: list[tuple[JavaRegex, str]] = []
    for entry in entries:
        value = entry.value
        if len(value) > len("//") and value.startswith("/") and value.endswith("/"):
            try:
                patterns.append((JavaRegex(value[1:-1]), entry.key))
            except ValueError as rule:
                findings.add("DMQ4070", entry.line, f"{value!r} of {entry.key!r} must be {rule}")
        elif value in names:
            sentence = f"{value!r} is already that of {names[value]!r}; keep one of the two"
            findings.add(TWICE, entry.line, sentence)
        else:
            names[value] = entry.key
    findings.raise_if_any()
    return CertificateUsers(names, tuple(patterns), load_roles(roles))


def _logical_lines(content: bytes, findings: Findings) -> list[tuple[int, str]]:
    # A line that ends in an odd number of backslashes goes on in the next one; leading blanks of that don't count.
    logical: list[tuple[int, str]] = []
    open_line: tuple[int, str] | None = None
    for number, raw in enumerate(re.split(rb"\r\n|\r|\n", content), start=1):
        if not raw.isascii():
            sentence = "a letter that is not ASCII; write it as \\uXXXX (é is \\u00e9)"
            findings.add("DMQ4010", number, sentence)
            continue
        text = raw.decode("ascii").lstrip(_BLANKS)
        if open_line is None and (not text or text[0] in "#!"):
            continue
        start, before = open_line or (number, "")
        if (len(text) - len(text.rstrip("\\"))) % 2:
            open_line = (start, before + text[:-1])
        else:
            logical.append((start, before + text))
            open_line = None
    if open_line is not None:
        logical.append(open_line)
    return logical


def _parse_line(line: int, text: str, findings: Findings) -> Entry | None:
    end = 0
    while end < len(text) and text[end] not in _BLANKS + "=:":
        end += 2 if text[end] == "\\" else 1
    end = min(end, len(text))
    rest = text[end:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    try:
        key, value = _unescape(text[:end]), _unescape(rest)
    except ValueError as flaw:
        findings.add("DMQ4010", line, str(flaw))
        return None
    if not key:
        findings.add("DMQ4010", line, "no name before the '='; write name = value")
        return None
    # Java keeps blanks at the end of a value; here they are never meant.
    return Entry(key, value.rstrip(_BLANKS), line)


def _unescape(text: str) -> str:
    parts: list[str] = []
    i = 0
    while i < len(text):
        if text[i] != "\\":
            parts.append(text[i])
            i += 1
        elif text[i + 1 : i + 2] == "u":
            digits = text[i + 2 : i + 6]
            if not _UNICODE_DIGITS.fullmatch(digits):
                raise ValueError("\\u must be followed by four hexadecimal digits; a backslash itself is written \\\\")
            parts.append(chr(int(digits, 16)))
            i += 6
        else:
            escaped = text[i + 1 : i + 2]
            parts.append(_UNESCAPED.get(escaped, escaped))
            i += 2
    joined = _SURROGATE_PAIR.sub(
        lambda pair: pair.group().encode("utf-16", "surrogatepass").decode("utf-16"), "".join(parts)
    )
    if any("\ud800" <= letter <= "\udfff" for letter in joined):
        raise ValueError("half of a \\uXXXX\\uXXXX pair; write both halves")
    return joined


def _escape(text: str, *, is_key: bool) -> str:
    parts: list[str] = []
    for i, letter in enumerate(text):
        if letter in _ESCAPED:
            parts.append("\\" + _ESCAPED[letter])
        elif letter == "\\" or (letter in "=:#! " and is_key) or (letter == " " and i == 0):
            parts.append("\\" + letter)
        elif " " <= letter <= "~":
            parts.append(letter)
        else:
            encoded = letter.encode("utf-16-be")
            parts += [f"\\u{encoded[k : k + 2].hex()}" for k in range(0, len(encoded), 2)]
    return "".join(parts)
