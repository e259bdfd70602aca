r"""Bytes to STOMP frames: incremental, in bounded memory, one pass over the bytes.

    COMMAND EOL *(name ":" value EOL) EOL body NUL *EOL

What the specifications leave open, or where versions differ:

- Line ends. LF in all versions; CR LF too in 1.2, in CONNECT, STOMP and CONNECTED (sent before a version is agreed),
  in 1.0 (its peers trim header lines) and between frames. In 1.1 CR is an ordinary character, so a command line or
  blank line that ends in CR LF is refused with a sentence that says so, and a CR inside a header stays.
- Padding. 1.0 trims spaces and tabs around names and values, as its own examples (``destination: /queue/a``) need.
  1.1 and 1.2 never trim, except around the number in ``content-length``.
- Escapes. None in 1.0 and in CONNECT, STOMP and CONNECTED. Undefined ones are refused.
- CONNECT and STOMP without ``accept-version`` and CONNECTED without ``version`` come from 1.0 peers and are trimmed.
- A colon inside a value is accepted unescaped: many clients don't escape it.
- NUL inside a head is refused although the grammar allows it: it means that a blank line was forgotten, and waiting
  for one would swallow the next frame.
- A body where none may be is refused from 1.1 on and ignored in 1.0 ("The body of the SUBSCRIBE command is ignored").
  Frames with commands we don't know may have one, so that the session can refuse the command by name.

Source: STOMP 1.0; STOMP 1.1 and 1.2, "Value Encoding", "Body", "Size Limits", "Repeated Header Entries", "Augmented
BNF".
"""

import re
from dataclasses import dataclass
from typing import Final

from delosmq.model.errors import PeerError
from delosmq.wire.decoder import FrameDecoder
from delosmq.wire.stomp import errors
from delosmq.wire.stomp.encoder import unescape
from delosmq.wire.stomp.frames import COMMANDS, CONNECTING, V10, V11, V12, WITH_BODY, Pattern, StompFrame

# Most heads end within this many bytes; longer ones are searched in doubling steps, so that a head that ends in CR LF
# never makes us search far into the frames behind it.
_WINDOW_BYTES: Final = 512
_MAX_COMMAND_BYTES: Final = 32
# Decimal digits of 2**63: more can't be a size, and int() of very long digit strings is slow.
_MAX_LENGTH_DIGITS: Final = 19
_CR: Final = 13
_EOLS: Final = re.compile(rb"(?:\n+|\r\n)+")
_NO_LENGTH: Final = -1
_BODY_ALLOWED: Final = 0
_BODY_REFUSED: Final = 1
_BODY_IGNORED: Final = 2


@dataclass(frozen=True)
class StompLimits:
    """What one frame may take; anything larger is refused before it is buffered.

    Attributes:
        max_head_bytes: command line and header lines together, line ends included.
        max_headers: header lines, repeated ones included.
        max_body_bytes: the body without NUL. 10 MiB fits a large message and keeps 1,000 hostile connections bounded.
        max_header_line_bytes: one header line, escapes included, line end not.
    """

    max_head_bytes: int = 65536
    max_headers: int = 1000
    max_body_bytes: int = 10 * 1024 * 1024
    max_header_line_bytes: int = 65536


class StompDecoder(FrameDecoder):
    """Cuts a byte stream into frames.

    ``feed`` bytes, then call ``next_frame`` until it gives None. Frames are decoded one at a time, so a ``version``
    set after CONNECT is in force for the frame behind it, also when both came in one chunk.

    Attributes:
        version: rules for frames other than CONNECT, STOMP and CONNECTED; 1.0 until the session sets it.
        heartbeats: line ends read between frames so far. A frame's optional line end behind its NUL counts too.
        closed: True once a frame was refused, or after `close`; from then on nothing is read.
    """

    # The stream not decoded yet is _buffer[_offset:] + _partial. _partial holds a frame that is not complete yet, so
    # that a frame in many chunks is collected in linear time, and chunks fed before older frames were taken.
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
        self._length: int = _NO_LENGTH
        self._body_rule: int = _BODY_ALLOWED
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

    def feed(self, chunk: bytes) -> None:
        if self.closed or not chunk:
            return
        if self._offset < len(self._buffer):
            self._partial += chunk
        elif not self._partial:
            self._buffer = chunk
            self._offset = 0
        elif len(self._partial) <= len(chunk):
            self._buffer = b"".join((self._partial, chunk))
            self._offset = 0
            self._partial = bytearray()
        else:
            self._partial += chunk

    def next_frame(self) -> StompFrame | None:
        """The next complete frame, or None when more bytes are needed or the decoder is closed.

        Raises:
            PeerError: DMQ5001 to DMQ5013, scope connection, once; the decoder is closed then and has freed its bytes.
        """
        try:
            while True:
                if self._offset >= len(self._buffer):
                    self._buffer = b""
                    self._offset = 0
                    if not self._partial or not self._is_ready():
                        return None
                    self._buffer = bytes(self._partial)
                    self._partial = bytearray()
                frame = self._pending
                if frame is None:
                    frame = self._take_head()
                if frame is not None and self._take_body(frame):
                    return frame
                rest = self._buffer[self._offset :]
                self._buffer = b""
                self._offset = 0
                if not self._partial:
                    self._partial += rest
                    return None
                self._partial[:0] = rest
        except PeerError:
            self.close()
            raise

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
        if self._length != _NO_LENGTH:
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
            self._body_rule = _BODY_ALLOWED
        else:
            try:
                text = block.decode()
            except UnicodeDecodeError:
                return self._take_odd_head(start, end)
            if odd or "\r" in text or "\0" in text:
                return self._take_odd_head(start, end)
            frame = self._decode_head(text, block)
            if short and frame.command == "SEND" and self.version != V10:
                pattern.learn(frame, block, self.version, self._length)
        self._offset = end + 2
        self._searched = 0
        return frame

    def _take_odd_head(self, start: int, end: int) -> StompFrame:
        """A head with CR, NUL or bytes that are not UTF-8; when it has CR, ``end`` may stand in the body or later."""
        buffer = self._buffer
        command = self._check_command(buffer[start : start + _MAX_COMMAND_BYTES + 2])
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
        frame = self._decode_head(text, block)
        self._offset = end + 1 + len(blank_line)
        self._searched = 0
        return frame

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
        command = self._check_command(bytes(source[start : start + _MAX_COMMAND_BYTES + 2]))
        if source.find(b"\0", start + self._searched, limit) >= 0:
            raise errors.no_blank_line(command)
        if limit - start >= most + 2:
            raise errors.head_too_large(command, most)
        self._searched = max(0, limit - start - 2)
        return -1

    def _check_command(self, beginning: bytes) -> str:
        """The command if ``beginning``, maybe incomplete, is one; the start of a frame and at most 34 bytes."""
        line, newline, _ = beginning.partition(b"\n")
        name = line.removesuffix(b"\r")
        before_nul, nul, _ = name.partition(b"\0")
        if name and not (before_nul.isalpha() and before_nul.isupper() and len(before_nul) <= _MAX_COMMAND_BYTES):
            raise errors.not_a_command(beginning)
        if newline and not name:
            raise errors.not_a_command(beginning)
        command = before_nul.decode()
        if nul:
            raise errors.no_blank_line(command)
        if newline and name is not line and self.version == V11 and COMMANDS.get(command) != CONNECTING:
            raise errors.carriage_return(command, V11)
        return command

    def _decode_head(self, text: str, block: bytes) -> StompFrame:
        """The frame without its body; what is known of the body goes to _length and _body_rule.

        Args:
            text: command line and header lines, without line end at the end; LF only.
            block: ``text`` in UTF-8.
        """
        lines = text.split("\n")
        command = lines.pop(0)
        kind = COMMANDS.get(command, -1)
        if kind < 0:
            self._check_command(text[: _MAX_COMMAND_BYTES + 2].encode())
            kind = WITH_BODY
        headers = self._split_headers(command, lines, len(block))
        # A command with other characters than A to Z was refused, so its length in bytes is the same.
        head = block[len(command) + 1 :]
        rules = self.version
        if kind == CONNECTING:
            told = "version" if command == "CONNECTED" else "accept-version"
            rules = V12 if told in headers else V10
        if rules == V10:
            if " " in text or "\t" in text:
                lines = [_trimmed(line) for line in lines]
                head = "\n".join(lines).encode()
                headers = self._split_headers(command, lines, len(head))
        elif kind != CONNECTING and "\\" in text:
            headers = _unescaped(lines, rules)
        self._length = self._decode_length(command, headers)
        if kind == WITH_BODY:
            self._body_rule = _BODY_ALLOWED
        elif rules == V10:
            self._body_rule = _BODY_IGNORED
        elif self._length > 0:
            raise errors.body_not_allowed(command)
        else:
            self._body_rule = _BODY_REFUSED
        return StompFrame(command, headers, head)

    def _split_headers(self, command: str, lines: list[str], size_bytes: int) -> dict[str, str]:
        limits = self._limits
        if len(lines) > limits.max_headers:
            raise errors.too_many_headers(command, len(lines), limits.max_headers)
        if size_bytes > limits.max_header_line_bytes:
            for index, line in enumerate(lines):
                if len(line.encode()) > limits.max_header_line_bytes:
                    raise errors.line_too_long(command, index + 1, limits.max_header_line_bytes)
        headers: dict[str, str] = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon or not name:
                raise errors.not_a_header(command, lines.index(line) + 1)
            headers[name] = value
        if len(headers) != len(lines):
            # Some are repeated, and the last one won.
            headers = _first_wins(lines)
        return headers

    def _decode_length(self, command: str, headers: dict[str, str]) -> int:
        value = headers.get("content-length")
        if value is None:
            return _NO_LENGTH
        digits = value.strip(" ")
        if not (digits.isdigit() and digits.isascii()):
            raise errors.content_length_not_a_number(command)
        most = self._limits.max_body_bytes
        length = int(digits) if len(digits) <= _MAX_LENGTH_DIGITS else most + 1
        if length > most:
            raise errors.body_too_large(command, most)
        return length

    def _take_body(self, frame: StompFrame) -> bool:
        """Whether the frame is complete; its body is set then."""
        buffer = self._buffer
        start = self._offset
        length = self._length
        if length == _NO_LENGTH:
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
        if self._body_rule != _BODY_IGNORED:
            frame.body = buffer[start:end]
        self._pending = None
        self._searched = 0
        self._offset = end + 1
        return True

    def _find_nul(self, source: bytes | bytearray, start: int) -> int:
        """Where the NUL after a body without content-length stands, or -1 when it did not come yet."""
        pending = self._pending
        command = pending.command if pending is not None else ""
        if self._body_rule == _BODY_REFUSED and start < len(source) and source[start] != 0:
            raise errors.body_not_allowed(command)
        most = self._limits.max_body_bytes
        end = source.find(b"\0", start + self._searched, start + most + 1)
        if end < 0:
            if len(source) - start > most:
                raise errors.body_too_large(command, most)
            self._searched = len(source) - start
        return end


def _trimmed(line: str) -> str:
    name, colon, value = line.partition(":")
    return name.strip(" \t") + colon + value.strip(" \t")


def _first_wins(lines: list[str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers.setdefault(name, value)
    return headers


def _unescaped(lines: list[str], version: int) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers.setdefault(unescape(name, version), unescape(value, version))
    return headers
