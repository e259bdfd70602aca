r"""STOMP frames, and bytes to frames: incremental, in bounded memory, one pass over the bytes.

    COMMAND EOL *(name ":" value EOL) EOL body NUL *EOL

What a head says is told by `heads`, which a SEND with the head of the one before does not need. What the
specifications leave open, or where versions differ, about where a frame ends:

- Line ends. LF in all versions; CR LF too in 1.2, in CONNECT, STOMP and CONNECTED (sent before a version is agreed),
  in 1.0 (its peers trim header lines) and between frames. In 1.1 CR is an ordinary character, so a command line or
  blank line that ends in CR LF is refused with a sentence that says so, and a CR inside a header stays.
- NUL inside a head is refused although the grammar allows it: it means that a blank line was forgotten, and waiting
  for one would swallow the next frame.

Source: STOMP 1.0; STOMP 1.1 and 1.2, "Body", "Size Limits", "Augmented BNF".
"""

import re
from typing import Final

from delosmq.model.errors import PeerError
from delosmq.wire.decoder import FrameDecoder
from delosmq.wire.stomp import errors
from delosmq.wire.stomp.heads import (
    BEGINNING_BYTES,
    BODY_ALLOWED,
    BODY_IGNORED,
    BODY_REFUSED,
    COMMANDS,
    CONNECTING,
    NO_LENGTH,
    StompLimits,
    check_command,
    decode_head,
)
from delosmq.wire.stomp.versions import V10, V11, V12

# Most heads end within this many bytes; longer ones are searched in doubling steps, so that a head that ends in CR LF
# never makes us search far into the frames behind it.
_WINDOW_BYTES: Final = 512
_CR: Final = 13
_EOLS: Final = re.compile(rb"(?:\n+|\r\n)+")

NO_PATTERN: Final = 0
_SEND_LINE: Final = b"SEND\n"
_RECEIPT: Final = b"\nreceipt:"


class StompFrame:
    r"""One STOMP frame as it was received.

    Attributes:
        command: for example ``SEND``.
        headers: decoded names and values in the order received; the first of repeated headers wins. Treat it as
            read-only: ``encoder.relay_head`` matches it with ``head`` by position.
        head: the header lines as received, still escaped, joined by ``\n`` and without one at the end; without
            command line and blank line. CR LF of the versions that have it is ``\n`` here, and what STOMP 1.0 trims
            is gone. Repeated headers are still in it.
        body: without the closing NUL.
        pattern: frames of one decoder with the same number, other than `NO_PATTERN`, have equal headers but for the
            value of ``receipt``, so interpreters of headers may keep what they found.
    """

    __slots__ = ("body", "command", "head", "headers", "pattern")

    command: str
    headers: dict[str, str]
    head: bytes
    body: bytes
    pattern: int

    def __init__(self, command: str, headers: dict[str, str], head: bytes = b"", body: bytes = b"") -> None:
        self.command = command
        self.headers = headers
        self.head = head
        self.body = body
        self.pattern = NO_PATTERN

    def __repr__(self) -> str:
        # Names only: values may be credentials, and frames end up in logs.
        return f"Frame({self.command}, headers={list(self.headers)}, body_size_bytes={len(self.body)})"


class Pattern:
    """The head of the last SEND, to recognise the next one by: most producers change nothing but the receipt.

    Recognising saves 2 of 9 us per small message in pure Python: decoding the head and interpreting it again.

    Attributes:
        number: of this pattern; a decoder never gives one twice.
        version: the rules it was decoded with, never those of 1.0, which trims.
        before: the head up to the receipt's value, or all of it when it has no receipt.
        after: the head behind that value.
        length: what the decoder made of ``content-length``.
    """

    def __init__(self) -> None:
        self.number: int = NO_PATTERN
        self.version: int = V10
        self.before: bytes = b""
        self.after: bytes = b""
        self.has_receipt: bool = False
        self.headers: dict[str, str] = {}
        self.length: int = 0

    def learn(self, frame: StompFrame, block: bytes, version: int, length: int) -> None:
        """Takes a frame and ``block``, its whole head, to compare later ones with."""
        self.number += 1
        self.version = version
        self.headers = frame.headers
        self.length = length
        # Of repeated receipts the first one counts.
        at = block.find(_RECEIPT)
        self.has_receipt = at >= 0
        if at < 0:
            self.before = block
            self.after = b""
        else:
            start = at + len(_RECEIPT)
            end = block.find(b"\n", start)
            self.before = block[:start]
            self.after = b"" if end < 0 else block[end:]
        frame.pattern = self.number

    def match(self, block: bytes) -> StompFrame | None:
        """The frame that begins with ``block``, when that differs from the last head in the receipt at most."""
        before = self.before
        if not self.has_receipt:
            if block != before:
                return None
            frame = StompFrame("SEND", self.headers, block[len(_SEND_LINE) :])
            frame.pattern = self.number
            return frame
        end = len(block) - len(self.after)
        if end < len(before) or not block.startswith(before) or not block.endswith(self.after):
            return None
        value = block[len(before) : end]
        # Line ends and escapes are left to those who know them.
        if not value.isascii():
            return None
        receipt = value.decode()
        if "\\" in receipt or not receipt.isprintable():
            return None
        headers = self.headers.copy()
        headers["receipt"] = receipt
        frame = StompFrame("SEND", headers, block[len(_SEND_LINE) :])
        frame.pattern = self.number
        return frame


class StompDecoder(FrameDecoder):
    """Cuts a byte stream into frames.

    Frames are decoded one at a time, so a ``version`` set after CONNECT is in force for the frame behind it, also when
    both came in one chunk.

    Attributes:
        version: rules for frames other than CONNECT, STOMP and CONNECTED; 1.0 until the session sets it.
        heartbeats: line ends read between frames so far. A frame's optional line end behind its NUL counts too.
        closed: True once a frame was refused, or after `close`; from then on nothing is read.
    """

    # The stream not decoded yet is _buffer[_offset:], or _partial: a frame that is not complete yet, so that a frame in
    # many chunks is collected in linear time.
    def __init__(self, limits: StompLimits) -> None:
        self.version: int = V10
        self.heartbeats: int = 0
        self.closed: bool = False
        self._limits: StompLimits = limits
        self._window_bytes: int = min(_WINDOW_BYTES, limits.max_head_bytes + 1)
        self._buffer: bytes = b""
        self._offset: int = 0
        self._partial: bytearray = bytearray()
        # How far the incomplete frame was searched in vain, from _offset.
        self._searched: int = 0
        # The frame that has its head read and its body not, and its content-length.
        self._pending: StompFrame | None = None
        self._length: int = NO_LENGTH
        self._body_rule: int = BODY_ALLOWED
        self._pattern: Pattern = Pattern()
        # Heads longer than a line may be could hide one that is too long.
        self._most_pattern_bytes: int = min(_WINDOW_BYTES, limits.max_header_line_bytes)

    @property
    def buffered_bytes(self) -> int:
        return len(self._buffer) - self._offset + len(self._partial)

    def set_limits(self, limits: StompLimits) -> None:
        """In force from the next frame on; a peer that is known may be given more."""
        self._limits = limits
        self._window_bytes = min(_WINDOW_BYTES, limits.max_head_bytes + 1)
        self._most_pattern_bytes = min(_WINDOW_BYTES, limits.max_header_line_bytes)

    def next_frame(self, chunk: bytes = b"") -> StompFrame | None:
        """The next complete frame, or None when more bytes are needed or the decoder is closed.

        Raises:
            PeerError: DMQ5001 to DMQ5013, scope connection, once; the decoder is closed then and has freed its bytes.
        """
        try:
            if chunk:
                self._add(chunk)
            if self._offset >= len(self._buffer):
                self._buffer = b""
                self._offset = 0
                return None
            frame = self._pending or self._take_head()
            if frame is not None and self._take_body(frame):
                return frame
            self._partial += self._buffer[self._offset :]
            self._buffer = b""
            self._offset = 0
            return None
        except PeerError:
            self.close()
            raise

    def _add(self, chunk: bytes) -> None:
        partial = self._partial
        if self.closed:
            return
        if self._offset < len(self._buffer):
            # For callers that don't wait for None; sessions do, as this copies what is left each time.
            chunk = self._buffer[self._offset :] + chunk
        elif partial:
            if len(partial) > len(chunk):
                partial += chunk
                if not self._is_ready():
                    return
                chunk = bytes(partial)
            else:
                chunk = b"".join((partial, chunk))
            self._partial = bytearray()
        self._buffer = chunk
        self._offset = 0

    def close(self) -> None:
        self.closed = True
        self._buffer = b""
        self._offset = 0
        self._partial = bytearray()
        self._pending = None

    def _is_ready(self) -> bool:
        """Whether _partial holds what the incomplete frame waits for: the end of its head, or of its body."""
        partial = self._partial
        if self._pending is None:
            return partial[0] <= _CR or self._find_head_end(partial, 0) >= 0
        if self._length != NO_LENGTH:
            return len(partial) > self._length
        return self._find_nul(partial, 0) >= 0

    def _take_head(self) -> StompFrame | None:
        buffer = self._buffer
        start = self._offset
        if buffer[start] <= _CR:
            start = self._skip_eols(start)
            if start == len(buffer):
                return None
        end = buffer.find(b"\n\n", start + self._searched, start + self._window_bytes)
        if end < 0:
            end = self._find_head_end(buffer, start)
            if end < 0:
                return None
        block = buffer[start:end]
        odd = buffer[end + 1] == _CR
        frame: StompFrame | None = None
        pattern = self._pattern
        short = end - start <= self._most_pattern_bytes
        if short and not odd and pattern.version == self.version:
            frame = pattern.match(block)
        if frame is not None:
            self._length = pattern.length
            self._body_rule = BODY_ALLOWED
        else:
            try:
                text = block.decode()
            except UnicodeDecodeError:
                return self._take_odd_head(start, end)
            if odd or "\r" in text or "\0" in text:
                return self._take_odd_head(start, end)
            version = self.version
            command, headers, head, self._length, self._body_rule = decode_head(text, block, version, self._limits)
            frame = StompFrame(command, headers, head)
            if short and version != V10 and command == "SEND":
                pattern.learn(frame, block, version, self._length)
        self._offset = end + 2
        self._searched = 0
        return frame

    def _take_odd_head(self, start: int, end: int) -> StompFrame:
        """A head with CR, NUL or bytes that are not UTF-8; when it has CR, ``end`` may stand in the body or later."""
        buffer = self._buffer
        command = check_command(buffer[start : start + BEGINNING_BYTES], self.version)
        crlf_end = buffer.find(b"\n\r\n", start, end + 3)
        blank_line = b"\r\n" if crlf_end >= 0 else b"\n"
        if crlf_end >= 0:
            end = crlf_end
        block = buffer[start : end + 1]
        if b"\0" in block:
            raise errors.no_blank_line(command)
        connecting = COMMANDS.get(command) == CONNECTING
        if connecting or self.version != V11:
            block = block.replace(b"\r\n", b"\n")
        elif crlf_end >= 0:
            raise errors.carriage_return(command, V11)
        if b"\r" in block and self.version == V12 and not connecting:
            raise errors.carriage_return(command, V12)
        block = block[:-1]
        try:
            text = block.decode()
        except UnicodeDecodeError as error:
            raise errors.not_utf8(command) from error
        command, headers, head, self._length, self._body_rule = decode_head(text, block, self.version, self._limits)
        self._offset = end + 1 + len(blank_line)
        self._searched = 0
        return StompFrame(command, headers, head)

    def _skip_eols(self, start: int) -> int:
        buffer = self._buffer
        eols = _EOLS.match(buffer, start)
        if eols is not None:
            end = eols.end()
            self.heartbeats += buffer.count(b"\n", start, end)
            start = end
            self._offset = end
        return start

    def _find_head_end(self, source: bytes | bytearray, start: int) -> int:
        """Where the LF before the blank line stands, or -1 when it did not come yet and still may."""
        most = self._limits.max_head_bytes
        limit = min(len(source), start + most + 2)
        position = start + self._searched
        step = _WINDOW_BYTES
        while position < limit:
            stop = min(position + step, limit)
            end = source.find(b"\n\n", position, min(stop, start + most + 1))
            crlf_end = source.find(b"\n\r\n", position, stop if end < 0 else end + 2)
            if crlf_end >= 0:
                return crlf_end
            if end >= 0:
                return end
            if stop == limit:
                break
            # Both ends may straddle two steps.
            position = stop - 2
            step *= 2
        command = check_command(bytes(source[start : start + BEGINNING_BYTES]), self.version)
        if source.find(b"\0", start + self._searched, limit) >= 0:
            raise errors.no_blank_line(command)
        if limit - start >= most + 2:
            raise errors.head_too_large(command, most)
        self._searched = max(0, limit - start - 2)
        return -1

    def _take_body(self, frame: StompFrame) -> bool:
        """Whether the frame is complete; its body is set then."""
        buffer = self._buffer
        start = self._offset
        length = self._length
        if length == NO_LENGTH:
            self._pending = frame
            end = self._find_nul(buffer, start)
            if end < 0:
                return False
        else:
            end = start + length
            if end >= len(buffer):
                self._pending = frame
                return False
            if buffer[end] != 0:
                raise errors.no_nul_after_body(frame.command, length)
        if self._body_rule != BODY_IGNORED:
            frame.body = buffer[start:end]
        self._pending = None
        self._searched = 0
        self._offset = end + 1
        return True

    def _find_nul(self, source: bytes | bytearray, start: int) -> int:
        """Where the NUL after a body without content-length stands, or -1 when it did not come yet."""
        pending = self._pending
        command = pending.command if pending is not None else ""
        if self._body_rule == BODY_REFUSED and start < len(source) and source[start] != 0:
            raise errors.body_not_allowed(command)
        most = self._limits.max_body_bytes
        end = source.find(b"\0", start + self._searched, start + most + 1)
        if end < 0:
            if len(source) - start > most:
                raise errors.body_too_large(command, most)
            self._searched = len(source) - start
        return end
