"""The sentences with which malformed or oversized OpenWire frames are refused.

None of them repeats the value of a field, because that may be a credential.
"""

from typing import Final

from delosmq.model.errors import MisuseError, PeerError, error_of, peer_error

_CHECK: Final = "Check that the client speaks OpenWire to this port, and that no proxy between changes its bytes."


class InflatesTooFarError(PeerError):
    """A compressed body is small as it was sent, and too large for a reader that can't inflate it."""


@peer_error("DMQ5200")
def not_openwire(start: bytes) -> str:
    return (
        "an OpenWire connection begins with a WireFormatInfo (type 1, then 'ActiveMQ'), but these bytes came instead:"
        f" {start[:12]!r}. {_CHECK}"
    )


@peer_error("DMQ5201")
def frame_size(size: int) -> str:
    return f"a frame announces a size of {size} bytes; at least its type follows the size. {_CHECK}"


@peer_error("DMQ5202")
def _frame_too_large(size: int, limit: int) -> str:
    return (
        f"a frame of {size} bytes is larger than the limit of {limit}: send smaller messages, or raise"
        " openwireMaxFrameSize of the acceptor."
    )


def frame_too_large(size: int, limit: int, unread: int) -> PeerError:
    error = _frame_too_large(size, limit)
    error.unread_bytes = unread
    return error


@peer_error("DMQ5203")
def unknown_type(code: int, version: int) -> str:
    return (
        f"the data type {code} does not exist in OpenWire version {version} or is no command: use a client that speaks"
        " versions 1 to 12."
    )


@peer_error("DMQ5204")
def truncated(code: int) -> str:
    return f"a field reaches over the end of the frame of type {code}. {_CHECK}"


@peer_error("DMQ5205")
def not_modified_utf8() -> str:
    return (
        "a string is not modified UTF-8, which writes NUL in two bytes and characters beyond 16 bits as two surrogates"
        " of three bytes: encode strings as java.io.DataOutput.writeUTF does."
    )


@peer_error("DMQ5206")
def negative_length(what: str, length: int) -> str:
    return f"the length of a {what} is {length}, but lengths are not negative. {_CHECK}"


@peer_error("DMQ5207")
def too_deep(limit: int) -> str:
    return f"values are nested deeper than the limit of {limit}: send flatter ones."


@peer_error("DMQ5208")
def wrong_type(name: str, code: int) -> str:
    return f"the field '{name}' holds a value of type {code}, which does not belong there. {_CHECK}"


@peer_error("DMQ5209")
def missing(name: str) -> str:
    return f"the field '{name}' is null, but needs a value: set it."


@peer_error("DMQ5210")
def left_over(code: int, count: int) -> str:
    return f"{count} bytes follow the last field of the frame of type {code}. {_CHECK}"


@peer_error("DMQ5211")
def unknown_tag(tag: int) -> str:
    return f"{tag} tags no primitive value: the tags are 0 to 13. {_CHECK}"


@peer_error("DMQ5212")
def too_many_entries(count: int, limit: int) -> str:
    return f"a map or list announces {count} entries, more than its bytes or the limit of {limit} allow: send fewer."


@peer_error("DMQ5213")
def not_cached(index: int) -> str:
    return f"the cached value {index} was never sent on this connection. {_CHECK}"


@peer_error("DMQ5214")
def no_such_version(version: int) -> str:
    return f"OpenWire version {version} does not exist: offer version 1 or later."


@peer_error("DMQ5215")
def first_too_large(size: int, limit: int) -> str:
    return f"a first frame of {size} bytes is larger than the limit of {limit}: send a WireFormatInfo. {_CHECK}"


@peer_error("DMQ5216")
def not_inflatable() -> str:
    return "a message says that its body is compressed, but the body is not zlib: send it as the client does."


@error_of("DMQ5217", InflatesTooFarError)
def inflates_too_far(limit: int) -> str:
    return f"a compressed body inflates to more than the limit of {limit} bytes: send smaller messages."


@error_of("DMQ5218", MisuseError)
def not_a_head() -> str:
    return "a stored OpenWire message has a head of an unknown form: start the release that wrote it."


@error_of("DMQ5219", MisuseError)
def text_too_long(length: int) -> str:
    return f"a string of {length} bytes doesn't fit into an OpenWire field: cut it to 65,535."


@peer_error("DMQ5220")
def not_an_end(at: int) -> str:
    return f"bytes follow the last primitive value at {at}. {_CHECK}"


@peer_error("DMQ5221")
def properties_on_first_too_large(limit: int) -> str:
    return f"a value in the WireFormatInfo is longer than {limit} bytes: shorten it."


@peer_error("DMQ5222")
def not_a_text() -> str:
    return "the length of a text body is not that of its bytes: send 4 bytes of length and modified UTF-8."


@peer_error("DMQ5224")
def too_much_beside_content(size: int, limit: int) -> str:
    return (
        f"a frame has {size} bytes beside the content of a message, and {limit} may be: send what is large as the body"
        " of a message, not in its properties."
    )


@peer_error("DMQ5298")
def control_too_large(code: int, size: int, limit: int) -> str:
    return (
        f"a command of type {code} has {size} bytes, and {limit} may be: leave out its path through other brokers, or"
        " shorten its names."
    )


@error_of("DMQ5223", MisuseError)
def not_in_version(code: int, version: int) -> str:
    return f"OpenWire version {version} has no data type {code}: send something else instead."
