"""Body length of HTTP/1: refuses requests with an ambiguous end, as a proxy in front may see another request in them.

Source: RFC 9112, sections 2.2, 5.2, 6.1 and 6.3. What h11 refuses itself is not repeated here.
"""

import re
from typing import Any, Final

import h11

_END_OF_HEAD: Final = re.compile(rb"\n\r?\n")
_BARE_LINE_END: Final = re.compile(rb"(?<!\r)\n|\r(?!\n)")
_FOLDED: Final = re.compile(rb"\n[ \t]")
_LENGTH: Final = re.compile(rb"(?im)^content-length[ \t]*:")
_CODING: Final = re.compile(rb"(?im)^transfer-encoding[ \t]*:")
_OLD_VERSION: Final = re.compile(rb"[^\n]* HTTP/1\.0\r?\n")


def ambiguity_of(head: bytes) -> str:
    """What makes the end of a request ambiguous; "" for nothing.

    Args:
        head: the request line and the headers, with the empty line.
    """
    if _FOLDED.search(head):
        return "a header goes on in a second line; write it in one"
    if _BARE_LINE_END.search(head):
        return "a line of its head does not end with CR LF; end each so"
    lengths = len(_LENGTH.findall(head))
    if lengths > 1:
        return "Content-Length is there twice; write it once"
    coding = _CODING.search(head) is not None
    if coding and lengths:
        return "Content-Length and Transfer-Encoding are both there; write one of them"
    if coding and _OLD_VERSION.match(head):
        return "HTTP/1.0 has no Transfer-Encoding; write Content-Length"
    return ""


class CheckedConnection(h11.Connection):
    """Refuses ambiguous requests, which h11 accepts.

    Attributes:
        ambiguity: why the last request was refused; "" when h11 refused it.
    """

    def __init__(self, max_head_bytes: int) -> None:
        super().__init__(h11.SERVER, max_head_bytes)
        self.ambiguity: str = ""

    def next_event(self) -> Any:
        """As h11's.

        Raises:
            h11.RemoteProtocolError: this is no request, or its end is ambiguous.
        """
        ambiguity = ""
        if self.their_state is h11.IDLE:
            waiting, _ = self.trailing_data
            end = _END_OF_HEAD.search(waiting)
            ambiguity = "" if end is None else ambiguity_of(waiting[: end.end()])
        event = super().next_event()
        if ambiguity and isinstance(event, h11.Request):
            self.ambiguity = ambiguity
            raise h11.RemoteProtocolError(ambiguity)
        return event
