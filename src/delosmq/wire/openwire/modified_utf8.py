"""Java's modified UTF-8: NUL takes two bytes, what lies beyond 16 bits is a pair of surrogates of three bytes each.

Source: java.io.DataInput, "Modified UTF-8".
"""

import re
from typing import Final

from delosmq.wire.openwire import errors

LONGEST_BYTES: Final = 0xFFFF
"""What a length of 16 bits can announce."""

_ENCODED_NUL: Final = b"\xc0\x80"
_FOUR_BYTES: Final = re.compile(rb"[\xf0-\xff]")
_ASTRAL: Final = re.compile("([\U00010000-\U0010ffff])")
_SURROGATES: Final = re.compile(r"[\ud800-\udfff]")
_BEYOND: Final = 0x10000
_MOST_BYTES_PER_CHARACTER: Final = 6


def decode_text(encoded: bytes) -> str:
    """The text. Surrogates without a partner, which Java's strings may hold, stay as they are.

    Raises:
        PeerError: DMQ5205, when ``encoded`` is not modified UTF-8.
    """
    if encoded.isascii():
        return encoded.decode("ascii")
    if _FOUR_BYTES.search(encoded) is not None:
        raise errors.not_modified_utf8()
    try:
        return encoded.decode()
    except UnicodeDecodeError:
        return _decode_odd(encoded)


def _decode_odd(encoded: bytes) -> str:
    """What Python's UTF-8 has no place for: two-byte NULs and surrogates."""
    try:
        text = encoded.replace(_ENCODED_NUL, b"\0").decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise errors.not_modified_utf8() from None
    return text.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")


def encode_text(text: str) -> bytes:
    """Modified UTF-8 of any string."""
    if text.isascii():
        encoded = text.encode("ascii")
    else:
        encoded = _split_astral(text).encode("utf-8", "surrogatepass")
    return encoded.replace(b"\0", _ENCODED_NUL) if b"\0" in encoded else encoded


def cut_text(text: str, limit: int) -> tuple[str, bytes]:
    """As much of the text's start as surely fits into ``limit`` bytes, and its modified UTF-8."""
    text = text[: limit // _MOST_BYTES_PER_CHARACTER]
    return text, encode_text(text)


def _split_astral(text: str) -> str:
    pieces = _ASTRAL.split(text)
    for i in range(1, len(pieces), 2):
        beyond = ord(pieces[i]) - _BEYOND
        pieces[i] = chr(0xD800 + (beyond >> 10)) + chr(0xDC00 + (beyond & 0x3FF))
    return "".join(pieces)


def is_well_formed(text: str) -> bool:
    """Whether there are no lone surrogates in it."""
    return text.isascii() or _SURROGATES.search(text) is None


def well_formed(text: str) -> str:
    """The text with question marks instead of lone surrogates, which no other protocol can carry."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
