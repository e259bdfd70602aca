"""The sentences with which malformed or oversized CORE frames are refused.

None of them repeats the value of a field, because that may be a credential.
"""

from typing import Final

from delosmq.model.errors import LimitError, MisuseError, PeerError, error_of, peer_error

_CHECK: Final = "Check that the client speaks CORE to this port, and that no proxy between changes its bytes."


class InflatedTooFarError(PeerError):
    """A compressed body is small as it was sent, and too large for a reader that can't inflate it."""


@peer_error("DMQ5600")
def not_core(start: bytes) -> str:
    return f"a CORE connection begins with 'ARTEMIS', but these bytes came instead: {start[:12]!r}. {_CHECK}"


@peer_error("DMQ5601")
def frame_size(size: int) -> str:
    return f"a frame announces a size of {size} bytes; at least its type and its channel follow the size. {_CHECK}"


@peer_error("DMQ5602")
def _frame_too_large(size: int, limit: int) -> str:
    return (
        f"a frame of {size} bytes is larger than the limit of {limit}: let the client send what is larger as a large"
        " message (minLargeMessageSize)."
    )


def frame_too_large(size: int, limit: int, unread: int) -> PeerError:
    error = _frame_too_large(size, limit)
    error.unread_bytes = unread
    return error


@peer_error("DMQ5603")
def unknown_type(code: int) -> str:
    return f"a packet is of type {code}, which does not exist: use a client of Artemis 2.0 or later."


@peer_error("DMQ5604")
def truncated(where: str, field: str, at: int) -> str:
    return f"the field '{field}' at byte {at} of {where} reaches over the end of its frame. {_CHECK}"


@peer_error("DMQ5605")
def not_a_string(where: str, field: str, at: int) -> str:
    return (
        f"the field '{field}' at byte {at} of {where} is no string: strings are UTF-16 in an even number"
        " of bytes, or characters of one to three bytes. Encode them as the Java client does."
    )


@peer_error("DMQ5606")
def negative_length(where: str, field: str, at: int) -> str:
    return f"the field '{field}' at byte {at} of {where} has a negative length. {_CHECK}"


@peer_error("DMQ5607")
def unknown_value(where: str, field: str, at: int) -> str:
    return (
        f"the field '{field}' at byte {at} of {where} has a value that means nothing: use one of those"
        " that the Java client knows."
    )


@peer_error("DMQ5608")
def too_many_entries(where: str, field: str, count: int) -> str:
    return f"the field '{field}' of {where} announces {count} entries, more than may follow. {_CHECK}"


@peer_error("DMQ5609")
def too_large_before_session(size: int, limit: int) -> str:
    return (
        f"a frame of {size} bytes came before a session was created, when no more than {limit} are taken: create the"
        " session first."
    )


@peer_error("DMQ5610")
def too_much_beside_body(size: int, limit: int) -> str:
    return (
        f"a packet has {size} bytes beside the body of a message, more than the {limit} that are taken: put less into"
        " properties, names and filters."
    )


@peer_error("DMQ5611")
def control_too_large(code: int, size: int, limit: int) -> str:
    return (
        f"a packet of type {code} has {size} bytes, but of what is kept as long as its connection only {limit} are"
        " taken: use shorter names and filters."
    )


@error_of("DMQ5612", MisuseError)
def no_such_type(code: int) -> str:
    return f"a packet of type {code} can't be encoded: use one of the classes of delosmq.wire.core."


@error_of("DMQ5613", LimitError)
def id_too_long(name: str, size: int, limit: int) -> str:
    return f"the property {name} of a message has a length of {size}, and {limit} may be: use a shorter one."


@peer_error("DMQ5614")
def not_inflatable() -> str:
    return "a body is marked as compressed and is not zlib: compress it as the Java client does."


@error_of("DMQ5615", InflatedTooFarError)
def inflates_too_far(limit: int) -> str:
    return f"a compressed body inflates to more than {limit} bytes: send it uncompressed, or as several messages."


@error_of("DMQ5616", MisuseError)
def not_a_head(protocol: str) -> str:
    return f"a message of protocol '{protocol}' is none of CORE: convert it to the hub form first."
