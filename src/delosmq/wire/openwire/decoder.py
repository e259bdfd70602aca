"""Bytes to OpenWire commands: incremental, in bounded memory, each byte copied a fixed number of times.

    size i32 (without itself) | type u8 | fields

Source: OpenWireFormat of the Java client; `codec` for what stands in a frame.
"""

from dataclasses import dataclass
from struct import Struct
from typing import Final

from delosmq.model.errors import PeerError
from delosmq.wire.decoder import FrameDecoder
from delosmq.wire.openwire import errors
from delosmq.wire.openwire.acks import QUICK_SINCE, AckReader
from delosmq.wire.openwire.codec import FieldReader
from delosmq.wire.openwire.commands import MessageCommand, MessageDispatch
from delosmq.wire.openwire.messages import DispatchReader, MessageReader
from delosmq.wire.openwire.negotiation import DEFAULT_MAX_FRAME_BYTES, WIRE_FORMAT_INFO, decode_wire_format_info
from delosmq.wire.openwire.structures import (
    CONNECTION_INFO,
    CONSUMER_CONTROL,
    CONSUMER_INFO,
    DESTINATION_INFO,
    MESSAGE_ACK,
    MESSAGE_DISPATCH,
    MESSAGE_PULL,
    PRODUCER_INFO,
    REMOVE_SUBSCRIPTION_INFO,
    SESSION_INFO,
    TRANSACTION_INFO,
    Structure,
)
from delosmq.wire.openwire.wire_format import MESSAGES, NOT_FRAMES, WireFormat

_SIZE: Final = Struct(">i")
_SIZE_BYTES: Final = 4
_unpack_size: Final = _SIZE.unpack_from
_FIRST_NESTED_TYPE: Final = 100
_SMALL_BYTES: Final = 16_384
_LARGE_BYTES: Final = 1 << 20
"""From here on a copy less is worth the trouble."""
MOST_BESIDE_CONTENT_BYTES: Final = 1 << 20
"""Of a frame: the content of a message is kept as it is, but all else is decoded, and takes many times its bytes."""
MOST_CONTROL_BYTES: Final = 1 << 17
"""Of a command that announces or ends something, as the broker may keep it as long as the connection lasts."""
_CONTROL: Final = frozenset(
    (
        CONNECTION_INFO,
        SESSION_INFO,
        CONSUMER_INFO,
        PRODUCER_INFO,
        TRANSACTION_INFO,
        DESTINATION_INFO,
        REMOVE_SUBSCRIPTION_INFO,
        CONSUMER_CONTROL,
        MESSAGE_PULL,
    )
)
_LOOK_BYTES: Final = 1 << 16
"""Where the content of a message begins, unless its headers are unusually long."""


@dataclass(frozen=True)
class OpenWireLimits:
    """What one frame may take; anything larger is refused before it is buffered.

    Attributes:
        max_frame_bytes: without its size.
        max_first_frame_bytes: of the WireFormatInfo, which comes before the login.
    """

    max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES
    max_first_frame_bytes: int = 16_384


class OpenWireDecoder(FrameDecoder):
    """Cuts a byte stream into commands.

    The first frame is a WireFormatInfo, and no other is taken before `agreed` was called.

    Attributes:
        closed: True once a frame was refused, or after `close`; from then on nothing is read.
    """

    # The stream not decoded yet is _buffer[_offset:], then _later, then _small, which collects small chunks. These are
    # joined when the frame is complete. _later_size counts both.
    def __init__(self, limits: OpenWireLimits, unread: frozenset[int] = frozenset()) -> None:
        """
        Args:
            unread: types of commands that are decoded without their fields.
        """
        self.closed: bool = False
        self._unread = unread
        self._limits: OpenWireLimits = limits
        self._quick_bytes: int = min(limits.max_frame_bytes, MOST_BESIDE_CONTENT_BYTES)
        self._form: WireFormat | None = None
        self._messages: MessageReader | None = None
        self._dispatches: DispatchReader | None = None
        self._acks: AckReader | None = None
        self._buffer: bytes = b""
        self._offset: int = 0
        self._later: list[bytes] = []
        self._later_size: int = 0
        self._small: bytearray = bytearray()

    @property
    def buffered_bytes(self) -> int:
        return len(self._buffer) - self._offset + self._later_size

    def set_limits(self, limits: OpenWireLimits) -> None:
        """In force from the next frame on."""
        self._limits = limits
        self._quick_bytes = min(limits.max_frame_bytes, MOST_BESIDE_CONTENT_BYTES)

    def agreed(self, form: WireFormat) -> None:
        """How the frames from the next one on are encoded."""
        self._form = form
        self._messages = MessageReader(form) if form.plain else None
        self._dispatches = DispatchReader(form) if form.plain and MESSAGE_DISPATCH not in self._unread else None
        self._acks = AckReader(form) if form.plain and form.version >= QUICK_SINCE else None

    def next_frame(self, chunk: bytes = b"") -> Structure | None:
        """The next complete command, or None when more bytes are needed or the decoder is closed.

        Raises:
            PeerError: DMQ5200 to DMQ5222, scope connection, once; the decoder is closed then and has freed its bytes.
        """
        if chunk and not self.closed:
            self._add(chunk)
        try:
            at = self._offset + _SIZE_BYTES
            if self._form is not None and at <= len(self._buffer):
                (size,) = _unpack_size(self._buffer, self._offset)
                end = at + size
                if 0 < size <= self._quick_bytes and end <= len(self._buffer):
                    self._offset = end
                    return self._decode(at, end)
            return self._next_slowly()
        except PeerError:
            self.close()
            raise

    def _add(self, chunk: bytes) -> None:
        if self._offset >= len(self._buffer) and self._later_size == 0:
            self._buffer = chunk
            self._offset = 0
        else:
            self._later_size += len(chunk)
            if len(chunk) < _SMALL_BYTES:
                self._small += chunk
                if len(self._small) < _SMALL_BYTES:
                    return
                chunk = bytes(self._small)
                self._small = bytearray()
            elif self._small:
                self._later.append(bytes(self._small))
                self._small = bytearray()
            self._later.append(chunk)

    def _next_slowly(self) -> Structure | None:
        """A frame that is refused, or does not lie in one piece."""
        if not self._has(_SIZE_BYTES):
            return None
        (size,) = _unpack_size(self._buffer, self._offset)
        self._check_size(size)
        if size >= _LARGE_BYTES and self._messages is not None and self._lies_in_pieces(_SIZE_BYTES + size):
            message = self._take_large(self._messages, _SIZE_BYTES + size)
            if message is not None:
                return message
        if not self._has(_SIZE_BYTES + size):
            return None
        at = self._offset + _SIZE_BYTES
        self._offset = at + size
        command = self._decode(at, at + size)
        if size > MOST_BESIDE_CONTENT_BYTES:
            message = command.message if isinstance(command, MessageDispatch) else command
            content = message.content if isinstance(message, MessageCommand) else None
            beside = size - (0 if content is None else len(content))
            if beside > MOST_BESIDE_CONTENT_BYTES:
                raise errors.too_much_beside_content(beside, MOST_BESIDE_CONTENT_BYTES)
        return command

    def _has(self, count: int) -> bool:
        """Whether ``count`` bytes are there; they lie in one piece then."""
        buffered = len(self._buffer) - self._offset
        if buffered >= count:
            return True
        if buffered + self._later_size < count:
            return False
        self._buffer = b"".join((self._buffer[self._offset :], *self._later, self._small))
        self._offset = 0
        self._later = []
        self._later_size = 0
        self._small = bytearray()
        return True

    def _lies_in_pieces(self, count: int) -> bool:
        """Whether ``count`` bytes are there, but not in one piece."""
        buffered = len(self._buffer) - self._offset
        return buffered < count <= buffered + self._later_size

    def _take_large(self, messages: MessageReader, count: int) -> Structure | None:
        """A large message: its content is put together at once, instead of with its frame first.

        Returns None, with nothing changed, when it is no message or its content is not where it should be.
        """
        pieces = [self._buffer[self._offset :], *self._later, bytes(self._small)]
        start = b""
        index = 0
        while len(start) < _LOOK_BYTES and index < len(pieces):
            start += pieces[index]
            index += 1
        if start[_SIZE.size] not in MESSAGES:
            return None
        content_at = messages.content_at(start, _SIZE.size)
        if content_at < 0:
            return None
        (length,) = _SIZE.unpack_from(start, content_at - _SIZE.size)
        tail_size = count - content_at - length
        if length < 0 or tail_size < 1:
            return None
        if count - length > MOST_BESIDE_CONTENT_BYTES:
            raise errors.too_much_beside_content(count - length, MOST_BESIDE_CONTENT_BYTES)
        content, rest = _split([start[content_at:], *pieces[index:]], length)
        frame = b"".join((start[_SIZE.size : content_at - _SIZE.size - 1], b"\0", rest[:tail_size]))
        self._buffer = rest
        self._offset = tail_size
        self._later = []
        self._later_size = 0
        self._small = bytearray()
        message = messages.read(frame, 0, len(frame))
        message.content = content
        message.before = message.before[:-1] + b"\1"
        return message

    def _check_size(self, size: int) -> None:
        if size < 1:
            raise errors.frame_size(size)
        if self._form is None:
            # A size says little about bytes that are not OpenWire at all.
            if self._has(_SIZE.size + 1) and self._buffer[self._offset + _SIZE.size] != WIRE_FORMAT_INFO:
                raise errors.not_openwire(self._buffer[self._offset : self._offset + 16])
            if size > self._limits.max_first_frame_bytes:
                raise errors.first_too_large(size, self._limits.max_first_frame_bytes)
        elif size > self._limits.max_frame_bytes:
            unread = max(_SIZE_BYTES + size - self.buffered_bytes, 0)
            raise errors.frame_too_large(size, self._limits.max_frame_bytes, unread)
        elif (
            size > MOST_BESIDE_CONTENT_BYTES
            and self._has(_SIZE.size + 1)
            and not self._has_content(self._buffer[self._offset + _SIZE.size])
        ):
            raise errors.too_much_beside_content(size, MOST_BESIDE_CONTENT_BYTES)

    def _has_content(self, code: int) -> bool:
        return code in MESSAGES or (code == MESSAGE_DISPATCH and code not in self._unread)

    def _decode(self, at: int, end: int) -> Structure:
        code = self._buffer[at]
        form = self._form
        if code == WIRE_FORMAT_INFO:
            return decode_wire_format_info(self._buffer[at:end])
        if form is None:
            raise errors.not_openwire(self._buffer[at - _SIZE.size : end])
        messages = self._messages
        if messages is not None and code in MESSAGES and code in form.layout:
            return messages.read(self._buffer, at, end)
        acks = self._acks
        if acks is not None and code == MESSAGE_ACK:
            return acks.read(self._buffer, at, end)
        dispatches = self._dispatches
        if dispatches is not None and code == MESSAGE_DISPATCH:
            return dispatches.read(self._buffer, at, end)
        if code >= _FIRST_NESTED_TYPE or code in NOT_FRAMES or code not in form.layout:
            raise errors.unknown_type(code, form.version)
        if end - at > MOST_CONTROL_BYTES and code in _CONTROL:
            raise errors.control_too_large(code, end - at, MOST_CONTROL_BYTES)
        if code in self._unread:
            return FieldReader(self._buffer, at, end, form).read_start()
        return FieldReader(self._buffer, at, end, form).read_command()

    def close(self) -> None:
        self.closed = True
        self._buffer = b""
        self._offset = 0
        self._later = []
        self._later_size = 0
        self._small = bytearray()


def _split(pieces: list[bytes], length: int) -> tuple[bytes, bytes]:
    """The first ``length`` bytes of all pieces, and the others; each is copied once."""
    taken: list[bytes] = []
    index = 0
    while length >= len(pieces[index]):
        taken.append(pieces[index])
        length -= len(pieces[index])
        index += 1
    taken.append(pieces[index][:length])
    return b"".join(taken), b"".join((pieces[index][length:], *pieces[index + 1 :]))
