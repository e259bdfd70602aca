"""The sentences with which malformed or oversized OpenWire frames are refused.

None of them repeats the value of a field, because that may be a credential.
"""

from typing import Final

from delosmq.model.errors import MisuseError, PeerError

_CHECK: Final = "Check that the client speaks OpenWire to this port, and that no proxy between changes its bytes."


class InflatesTooFarError(PeerError):
    """A compressed body is small as it was sent, and too large for a reader that can't inflate it."""


def not_openwire(start: bytes) -> PeerError:
    return PeerError(
        "DMQ5200",
        "an OpenWire connection begins with a WireFormatInfo (type 1, then 'ActiveMQ'), but these bytes came instead:"
        f" {start[:12]!r}. {_CHECK}",
    )


def frame_size(size: int) -> PeerError:
    return PeerError(
        "DMQ5201", f"a frame announces a size of {size} bytes; at least its type follows the size. {_CHECK}"
    )


def frame_too_large(size: int, limit: int, unread: int) -> PeerError:
    error = PeerError(
        "DMQ5202",
        f"a frame of {size} bytes is larger than the limit of {limit}: send smaller messages, or raise"
        " openwireMaxFrameSize of the acceptor.",
    )
    error.unread_bytes = unread
    return error


def unknown_type(code: int, version: int) -> PeerError:
    return PeerError(
        "DMQ5203",
        f"the data type {code} does not exist in OpenWire version {version} or is no command: use a client that speaks"
        " versions 1 to 12.",
    )


def truncated(code: int) -> PeerError:
    return PeerError("DMQ5204", f"a field reaches over the end of the frame of type {code}. {_CHECK}")


def not_modified_utf8() -> PeerError:
    return PeerError(
        "DMQ5205",
        "a string is not modified UTF-8, which writes NUL in two bytes and characters beyond 16 bits as two surrogates"
        " of three bytes: encode strings as java.io.DataOutput.writeUTF does.",
    )


def negative_length(what: str, length: int) -> PeerError:
    return PeerError("DMQ5206", f"the length of a {what} is {length}, but lengths are not negative. {_CHECK}")


def too_deep(limit: int) -> PeerError:
    return PeerError("DMQ5207", f"values are nested deeper than the limit of {limit}: send flatter ones.")


def wrong_type(name: str, code: int) -> PeerError:
    return PeerError(
        "DMQ5208", f"the field '{name}' holds a value of type {code}, which does not belong there. {_CHECK}"
    )


def missing(name: str) -> PeerError:
    return PeerError("DMQ5209", f"the field '{name}' is null, but needs a value: set it.")


def left_over(code: int, count: int) -> PeerError:
    return PeerError("DMQ5210", f"{count} bytes follow the last field of the frame of type {code}. {_CHECK}")


def unknown_tag(tag: int) -> PeerError:
    return PeerError("DMQ5211", f"{tag} tags no primitive value: the tags are 0 to 13. {_CHECK}")


def too_many_entries(count: int, limit: int) -> PeerError:
    return PeerError(
        "DMQ5212",
        f"a map or list announces {count} entries, more than its bytes or the limit of {limit} allow: send fewer.",
    )


def not_cached(index: int) -> PeerError:
    return PeerError("DMQ5213", f"the cached value {index} was never sent on this connection. {_CHECK}")


def no_such_version(version: int) -> PeerError:
    return PeerError("DMQ5214", f"OpenWire version {version} does not exist: offer version 1 or later.")


def first_too_large(size: int, limit: int) -> PeerError:
    return PeerError(
        "DMQ5215", f"a first frame of {size} bytes is larger than the limit of {limit}: send a WireFormatInfo. {_CHECK}"
    )


def not_inflatable() -> PeerError:
    return PeerError(
        "DMQ5216", "a message says that its body is compressed, but the body is not zlib: send it as the client does."
    )


def inflates_too_far(limit: int) -> InflatesTooFarError:
    return InflatesTooFarError(
        "DMQ5217", f"a compressed body inflates to more than the limit of {limit} bytes: send smaller messages."
    )


def not_a_head() -> MisuseError:
    return MisuseError(
        "DMQ5218", "a stored OpenWire message has a head of an unknown form: start the release that wrote it."
    )


def text_too_long(length: int) -> MisuseError:
    return MisuseError("DMQ5219", f"a string of {length} bytes doesn't fit into an OpenWire field: cut it to 65,535.")


def not_an_end(at: int) -> PeerError:
    return PeerError("DMQ5220", f"bytes follow the last primitive value at {at}. {_CHECK}")


def properties_on_first_too_large(limit: int) -> PeerError:
    return PeerError("DMQ5221", f"a value in the WireFormatInfo is longer than {limit} bytes: shorten it.")


def not_a_text() -> PeerError:
    return PeerError(
        "DMQ5222", "the length of a text body is not that of its bytes: send 4 bytes of length and modified UTF-8."
    )


def too_much_beside_content(size: int, limit: int) -> PeerError:
    return PeerError(
        "DMQ5224",
        f"a frame has {size} bytes beside the content of a message, and {limit} may be: send what is large as the body"
        " of a message, not in its properties.",
    )


def control_too_large(code: int, size: int, limit: int) -> PeerError:
    return PeerError(
        "DMQ5298",
        f"a command of type {code} has {size} bytes, and {limit} may be: leave out its path through other brokers, or"
        " shorten its names.",
    )


def not_in_version(code: int, version: int) -> MisuseError:
    return MisuseError("DMQ5223", f"OpenWire version {version} has no data type {code}: send something else instead.")
