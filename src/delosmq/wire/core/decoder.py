"""Bytes to CORE packets: incremental, in bounded memory, each byte copied a fixed number of times.

    'ARTEMIS' | frames: size i32 (without itself) | type i8 | channel i64 | fields

Source: ActiveMQFrameDecoder2 and ProtocolHandler of Artemis; `codec` for what stands in a frame.
"""

from dataclasses import dataclass
from struct import Struct
from typing import Final

from delosmq.model.errors import PeerError
from delosmq.wire.core import errors
from delosmq.wire.core.codec import CLASSES, PacketReader
from delosmq.wire.core.packet import (
    CREATE_ADDRESS,
    CREATE_PRODUCER,
    CREATE_QUEUE,
    CREATE_QUEUE_V2,
    CREATE_SHARED_QUEUE,
    CREATE_SHARED_QUEUE_V2,
    CREATESESSION,
    CREATESESSION_V2,
    NEWEST_VERSION,
    SESS_ADD_METADATA,
    SESS_ADD_METADATA2,
    SESS_BINDINGQUERY,
    SESS_CREATECONSUMER,
    SESS_PRODUCER_REQUEST_CREDITS,
    SESS_QUEUEQUERY,
    SESS_RECEIVE_CONTINUATION,
    SESS_RECEIVE_MSG,
    SESS_SEND,
    SESS_SEND_CONTINUATION,
    SESS_UNIQUE_ADD_METADATA,
    SESS_XA_START,
    Packet,
)
from delosmq.wire.decoder import FrameDecoder
from delosmq.wire.first_bytes import FOREIGN, MINE, UNDECIDED

HANDSHAKE: Final = b"ARTEMIS"
"""What a client sends before its first frame; never answered."""
DEFAULT_MAX_FRAME_BYTES: Final = 100 * 1024 * 1024
MOST_BESIDE_BODY_BYTES: Final = 1 << 20
"""Of a frame: the body of a message is kept as it is, but all else may be decoded, and takes many times its bytes."""
MOST_CONTROL_BYTES: Final = 1 << 17
"""Of a packet that announces something, as the broker may keep it as long as the connection lasts."""

_SIZE: Final = Struct(">i")
_unpack_size: Final = _SIZE.unpack_from
_SIZE_BYTES: Final = 4
_SMALLEST_BYTES: Final = 9
_SMALL_BYTES: Final = 16_384
_WITH_BODY: Final = frozenset((SESS_SEND, SESS_RECEIVE_MSG, SESS_SEND_CONTINUATION, SESS_RECEIVE_CONTINUATION))
_CONTROL: Final = frozenset(
    (
        CREATESESSION,
        CREATESESSION_V2,
        CREATE_ADDRESS,
        CREATE_PRODUCER,
        CREATE_QUEUE,
        CREATE_QUEUE_V2,
        CREATE_SHARED_QUEUE,
        CREATE_SHARED_QUEUE_V2,
        SESS_ADD_METADATA,
        SESS_ADD_METADATA2,
        SESS_BINDINGQUERY,
        SESS_CREATECONSUMER,
        SESS_PRODUCER_REQUEST_CREDITS,
        SESS_QUEUEQUERY,
        SESS_UNIQUE_ADD_METADATA,
        SESS_XA_START,
    )
)


def detect(start: bytes) -> int:
    """Whether a connection that begins with ``start`` speaks CORE."""
    if start.startswith(HANDSHAKE):
        return MINE
    return UNDECIDED if HANDSHAKE.startswith(start) else FOREIGN


@dataclass(frozen=True)
class CoreLimits:
    """What one frame may take; anything larger is refused before it is buffered.

    Attributes:
        max_frame_bytes: without its size.
        max_first_frame_bytes: of frames before a session is there, as they come before the login.
    """

    max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES
    max_first_frame_bytes: int = 16_384


class CoreDecoder(FrameDecoder):
    """Cuts a byte stream into packets.

    Attributes:
        closed: True once a frame was refused, or after `close`; from then on nothing is read.
    """

    # The stream not decoded yet is _buffer[_offset:], then _later, then _small, which collects small chunks. These are
    # joined when the frame is complete. _later_size counts both.
    def __init__(self, limits: CoreLimits, unread: frozenset[int] = frozenset(), *, handshake: bool = False) -> None:
        """
        Args:
            unread: types of packets that are decoded without their fields.
            handshake: the peer is a client, which begins with `HANDSHAKE`.
        """
        self.closed: bool = False
        self._limits: CoreLimits = limits
        self._unread = unread
        self._greeted: bool = not handshake
        self._most_bytes: int = limits.max_first_frame_bytes
        self._quick_bytes: int = limits.max_first_frame_bytes
        self._agreed: bool = False
        self._reader: PacketReader = PacketReader(NEWEST_VERSION)
        self._buffer: bytes = b""
        self._offset: int = 0
        self._later: list[bytes] = []
        self._later_size: int = 0
        self._small: bytearray = bytearray()

    @property
    def buffered_bytes(self) -> int:
        return len(self._buffer) - self._offset + self._later_size

    def agreed(self, version: int) -> None:
        """A session is there: how the frames from the next one on are encoded, and the limits for them."""
        self._agreed = True
        self._most_bytes = self._limits.max_frame_bytes
        self._quick_bytes = min(self._most_bytes, MOST_CONTROL_BYTES)
        if version != self._reader.version:
            self._reader = PacketReader(version)

    def next_frame(self, chunk: bytes = b"") -> Packet | None:
        """The next complete packet, or None when more bytes are needed or the decoder is closed.

        Raises:
            PeerError: DMQ5600 to DMQ5611, scope connection, once; the decoder is closed then and has freed its bytes.
        """
        if chunk and not self.closed:
            self._add(chunk)
        try:
            at = self._offset + _SIZE_BYTES
            if self._greeted and at <= len(self._buffer):
                (size,) = _unpack_size(self._buffer, self._offset)
                end = at + size
                if _SMALLEST_BYTES <= size <= self._quick_bytes and end <= len(self._buffer):
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

    def _next_slowly(self) -> Packet | None:
        """A frame that is refused, large, or does not lie in one piece."""
        if not self._greeted and not self._greet():
            return None
        if not self._has(_SIZE_BYTES):
            return None
        (size,) = _unpack_size(self._buffer, self._offset)
        self._check_size(size)
        if not self._has(_SIZE_BYTES + size):
            return None
        at = self._offset + _SIZE_BYTES
        self._offset = at + size
        return self._decode(at, at + size)

    def _greet(self) -> bool:
        """Whether the handshake is there."""
        if not self._has(len(HANDSHAKE)):
            if self.buffered_bytes and self._has(self.buffered_bytes):
                start = self._buffer[self._offset :]
                if not HANDSHAKE.startswith(start):
                    raise errors.not_core(start)
            return False
        start = self._buffer[self._offset : self._offset + len(HANDSHAKE)]
        if start != HANDSHAKE:
            raise errors.not_core(start)
        self._offset += len(HANDSHAKE)
        self._greeted = True
        return True

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

    def _check_size(self, size: int) -> None:
        if size < _SMALLEST_BYTES:
            raise errors.frame_size(size)
        if size > self._most_bytes:
            if not self._agreed:
                raise errors.too_large_before_session(size, self._most_bytes)
            unread = max(_SIZE_BYTES + size - self.buffered_bytes, 0)
            raise errors.frame_too_large(size, self._most_bytes, unread)
        if size > self._quick_bytes and self._has(_SIZE_BYTES + 1):
            code = _signed(self._buffer[self._offset + _SIZE_BYTES])
            if code in _CONTROL:
                raise errors.control_too_large(code, size, MOST_CONTROL_BYTES)
            if size > MOST_BESIDE_BODY_BYTES and (code not in _WITH_BODY or code in self._unread):
                raise errors.too_much_beside_body(size, MOST_BESIDE_BODY_BYTES)

    def _decode(self, at: int, end: int) -> Packet:
        code = _signed(self._buffer[at])
        if code in self._unread:
            return self._start_of(code, at, end)
        packet = self._reader.read(self._buffer, at, end)
        if end - at > MOST_BESIDE_BODY_BYTES:
            beside = end - at - packet.body_bytes
            if beside > MOST_BESIDE_BODY_BYTES:
                raise errors.too_much_beside_body(beside, MOST_BESIDE_BODY_BYTES)
        return packet

    def _start_of(self, code: int, at: int, end: int) -> Packet:
        """A packet without its fields."""
        packet = CLASSES[code]() if code in CLASSES else Packet()
        packet.code = code
        packet.channel = int.from_bytes(self._buffer[at + 1 : at + _SMALLEST_BYTES], signed=True)
        packet.size_bytes = end - at + _SIZE_BYTES
        return packet

    def close(self) -> None:
        self.closed = True
        self._buffer = b""
        self._offset = 0
        self._later = []
        self._later_size = 0
        self._small = bytearray()


def _signed(byte: int) -> int:
    return byte - 256 if byte > 127 else byte
