"""The strings of CORE.

    SimpleString   size i32 | UTF-16, little-endian
    String         units i32 | up to 8 units: big-endian UTF-16; up to 4094: size u16, characters; more: a SimpleString

A character is a unit of UTF-16 in one to three bytes: NUL takes one, what lies beyond 16 bits is a pair of surrogates
of three bytes each. Half a pair, which Java's strings may hold, becomes the replacement character.

Source: SimpleString and UTF8Util of the Java client.
"""

from struct import Struct
from typing import Final

SHORT_BELOW_UNITS: Final = 9
LONG_FROM_UNITS: Final = 4095
_I32: Final = Struct(">i")
_pack_i32: Final = _I32.pack
_SIZES: Final = Struct(">iH")


def decode_simple(encoded: bytes) -> str:
    """The text of a SimpleString; of an odd byte at its end nothing remains."""
    return encoded.decode("utf-16-le", "replace")


def encode_simple(text: str) -> bytes:
    """The characters of a SimpleString, without its size."""
    return text.encode("utf-16-le", "surrogatepass")


def add_simple(text: str, pieces: list[bytes]) -> None:
    """A SimpleString, behind ``pieces``."""
    encoded = text.encode("utf-16-le", "surrogatepass")
    pieces.append(_pack_i32(len(encoded)))
    pieces.append(encoded)


def decode_characters(encoded: bytes) -> str:
    """Characters of one to three bytes.

    Raises:
        UnicodeDecodeError: they are none.
    """
    if encoded.isascii():
        return encoded.decode("ascii")
    text = encoded.decode("utf-8", "surrogatepass")
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def encode_characters(text: str) -> bytes:
    if text.isascii():
        return text.encode("ascii")
    units = text.encode("utf-16-be", "surrogatepass")
    # Each unit by itself, so that pairs are not joined.
    apart = [chr(units[at] << 8 | units[at + 1]) for at in range(0, len(units), 2)]
    return "".join(apart).encode("utf-8", "surrogatepass")


def decode_string(encoded: bytes, at: int) -> tuple[str, int]:
    """The String that begins at ``at``, and where it ends.

    Raises:
        IndexError: it reaches over the end.
        UnicodeDecodeError: its characters are none.
    """
    units = int.from_bytes(encoded[at : at + _I32.size])
    at += _I32.size
    if units < SHORT_BELOW_UNITS:
        end = at + 2 * units
        text = encoded[at:end].decode("utf-16-be", "replace")
    elif units < LONG_FROM_UNITS:
        at += 2
        end = at + int.from_bytes(encoded[at - 2 : at])
        text = decode_characters(encoded[at:end])
    else:
        at += _I32.size
        end = at + int.from_bytes(encoded[at - _I32.size : at])
        text = decode_simple(encoded[at:end])
    if end > len(encoded) or at > len(encoded):
        raise IndexError
    return text, end


def add_string(text: str, pieces: list[bytes]) -> None:
    """A String, behind ``pieces``."""
    units = len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
    if units < SHORT_BELOW_UNITS:
        pieces.append(_pack_i32(units))
        pieces.append(text.encode("utf-16-be", "surrogatepass"))
    elif units < LONG_FROM_UNITS:
        characters = encode_characters(text)
        pieces.append(_SIZES.pack(units, len(characters)))
        pieces.append(characters)
    else:
        pieces.append(_pack_i32(units))
        add_simple(text, pieces)
