"""The sentences with which malformed or oversized STOMP frames are refused.

None of them repeats a header's value or more than the first bytes of a line, because those may be credentials.
"""

from delosmq.model.errors import peer_error
from delosmq.wire.stomp.versions import V12, version_name

# Enough to recognise TLS (16 03 01), HTTP ("GET / HT") and the like.
_SHOWN_BYTES = 8


@peer_error("DMQ5001")
def not_a_command(start: bytes) -> str:
    return (
        "this does not look like STOMP: a frame begins with a command of 1 to 32 capital letters on a line of its own,"
        f" but these bytes came instead: {start[:_SHOWN_BYTES]!r}. Check that the client speaks STOMP to this port"
        " (without TLS unless the acceptor has it) and that content-length was right in the frame before."
    )


@peer_error("DMQ5002")
def no_blank_line(command: str) -> str:
    return (
        f"the head of the {command} frame contains NUL: a frame needs a blank line between headers and body, also when"
        " both are empty. End the headers with an empty line, and leave NUL out of header names and values."
    )


@peer_error("DMQ5003")
def carriage_return(command: str, version: int) -> str:
    if version == V12:
        message = (
            f"the head of the {command} frame contains a carriage return that no line feed follows:"
            " write it as \\r inside header names and values."
        )
    else:
        message = (
            f"the lines of the {command} frame end in CR LF, but STOMP {version_name(version)} was negotiated, where"
            " lines end in LF only: end lines in LF, or offer 1.2 in accept-version."
        )
    return message


@peer_error("DMQ5004")
def head_too_large(command: str, limit_bytes: int) -> str:
    return (
        f"the command and headers of the {command} frame are larger than the limit of {limit_bytes} bytes:"
        " send fewer or shorter headers, or move content to the body."
    )


@peer_error("DMQ5005")
def line_too_long(command: str, line_number: int, limit_bytes: int) -> str:
    return (
        f"header line {line_number} of the {command} frame is longer than the limit of {limit_bytes} bytes:"
        " shorten it, or move content to the body."
    )


@peer_error("DMQ5006")
def too_many_headers(command: str, count: int, limit: int) -> str:
    return f"the {command} frame has {count} headers, more than the limit of {limit}: send fewer."


@peer_error("DMQ5007")
def not_a_header(command: str, line_number: int) -> str:
    return (
        f"header line {line_number} of the {command} frame is not name:value: write a non-empty name, a colon and the"
        " value, and write line feeds inside a value as \\n (from STOMP 1.1 on)."
    )


@peer_error("DMQ5008")
def not_utf8(command: str) -> str:
    return f"the headers of the {command} frame are not UTF-8: encode header names and values as UTF-8."


@peer_error("DMQ5009")
def undefined_escape(sequence: str, version: int) -> str:
    known = "\\r, \\n, \\c and \\\\" if version == V12 else "\\n, \\c and \\\\"
    return (
        f"a header contains the escape {sequence!a}, which STOMP {version_name(version)} does not define:"
        f" it knows {known}; write a backslash as \\\\."
    )


@peer_error("DMQ5010")
def content_length_not_a_number(command: str) -> str:
    return (
        f"content-length of the {command} frame is not a number of bytes: send decimal digits, or leave the header out"
        " for a body without NUL."
    )


@peer_error("DMQ5011")
def body_too_large(command: str, limit_bytes: int) -> str:
    return f"the body of the {command} frame is larger than the limit of {limit_bytes} bytes: send smaller messages."


@peer_error("DMQ5012")
def no_nul_after_body(command: str, length_bytes: int) -> str:
    return (
        f"no NUL follows the {length_bytes} bytes of body that content-length of the {command} frame announced:"
        " send the body's size in bytes (not characters) as content-length, and end the frame with NUL."
    )


@peer_error("DMQ5013")
def body_not_allowed(command: str) -> str:
    return (
        f"the {command} frame has a body, but only SEND, MESSAGE and ERROR may have one: end the frame with NUL right"
        " after the blank line."
    )
