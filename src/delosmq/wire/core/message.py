"""A message of CORE, kept as it came.

    body end i32 (13 + size of the body) | body | headers

    headers   id i64 | address: 00 or 01, SimpleString | user id: 00 or 01, 16 bytes | type u8 | durable flag
              | expiration i64 (0 never) | timestamp i64 | priority i8 | properties

It tells no length: what follows it in a frame is cut off from the frame's end. The id is the broker's, and changes on
the way, so the headers are kept from the address on. Properties and body are decoded when they are asked for.

Source: CoreMessage of the Java client.
"""

from struct import Struct
from typing import Final

from delosmq.model.message import DEFAULT_PRIORITY
from delosmq.wire.core import errors
from delosmq.wire.core.properties import NO_PROPERTIES
from delosmq.wire.core.strings import decode_simple, encode_simple

DEFAULT_TYPE: Final = 0
OBJECT_TYPE: Final = 2
TEXT_TYPE: Final = 3
BYTES_TYPE: Final = 4
MAP_TYPE: Final = 5
STREAM_TYPE: Final = 6
EMBEDDED_TYPE: Final = 7
LARGE_EMBEDDED_TYPE: Final = 8
"""The last two hold a message of AMQP."""

USER_ID_BYTES: Final = 16
NO_BODY_END: Final = 13
BEFORE_BODY_BYTES: Final = 4
_AFTER_BODY_END_BYTES: Final = 9
_I32: Final = Struct(">i")
_unpack_i32: Final = _I32.unpack_from
_I64: Final = Struct(">q")
_unpack_i64: Final = _I64.unpack_from
_ID_BYTES: Final = 8
# type, durable, expiration, timestamp, priority
_RUN: Final = Struct(">BBqqb")
_unpack_run: Final = _RUN.unpack_from
_RUN_BYTES: Final = 19
EXPIRATION_IN_RUN: Final = 2
_SMALLEST_HEAD_BYTES: Final = 1 + 1 + _RUN_BYTES + 1
_MOST_REMEMBERED_BYTES: Final = 1024
_ADDRESS_START: Final = Struct(">Bi")
_WHERE: Final = "a message"


class CoreMessage:
    """One message as it travels.

    Attributes:
        message_id: the broker's; 0 before it has one.
        address: None when the session's default address is meant.
        user_id: 16 bytes that its sender gave it, a UUID; empty for none.
        type: one of the ``*_TYPE`` constants.
        expiration, timestamp: wall clock in ms; 0 for never, and for none.
        body: as it is encoded; empty for a large message, whose body follows in packets of its own.
        head: the headers from the address on, as they are encoded; empty before `encode_head`.
        expiration_at, properties_at: where these stand in the head.
    """

    def __init__(self) -> None:
        self.message_id: int = 0
        self.address: str | None = None
        self.user_id: bytes = b""
        self.type: int = DEFAULT_TYPE
        self.durable: bool = False
        self.expiration: int = 0
        self.timestamp: int = 0
        self.priority: int = DEFAULT_PRIORITY
        self.body: bytes = b""
        self.head: bytes = b""
        self.expiration_at: int = 0
        self.properties_at: int = 0

    @property
    def properties(self) -> bytes:
        """As they are encoded; `delosmq.wire.core.properties` reads them."""
        return self.head[self.properties_at :] if self.head else NO_PROPERTIES

    @property
    def encoded_size(self) -> int:
        """Bytes of the whole message, as clients count what they acknowledge and send."""
        return BEFORE_BODY_BYTES + len(self.body) + _ID_BYTES + len(self.head)

    def encode_head(self, properties: bytes) -> None:
        """Encodes the headers anew, from the fields, with these properties."""
        pieces: list[bytes] = []
        if self.address is None:
            pieces.append(b"\0")
        else:
            address = encode_simple(self.address)
            pieces.append(_ADDRESS_START.pack(1, len(address)))
            pieces.append(address)
        pieces.append(b"\1" + self.user_id if self.user_id else b"\0")
        start = b"".join(pieces)
        durable = 1 if self.durable else 0
        run = _RUN.pack(self.type, durable, self.expiration, self.timestamp, self.priority)
        self.expiration_at = len(start) + EXPIRATION_IN_RUN
        self.properties_at = len(start) + _RUN_BYTES
        self.head = b"".join((start, run, properties))

    def add(self, pieces: list[bytes]) -> None:
        """The whole message, behind ``pieces``."""
        pieces.append(_I32.pack(NO_BODY_END + len(self.body)))
        pieces.append(self.body)
        self.add_headers(pieces)

    def add_headers(self, pieces: list[bytes]) -> None:
        """The message without its body, behind ``pieces``."""
        if not self.head:
            self.encode_head(NO_PROPERTIES)
        pieces.append(_I64.pack(self.message_id))
        pieces.append(self.head)


def user_id_of(head: bytes) -> bytes:
    """The 16 bytes that its sender gave a message; empty for none."""
    at = _user_id_at(head)
    return head[at + 1 : at + 1 + USER_ID_BYTES] if head[at] == 1 else b""


def as_uuid(octets: bytes) -> bytes:
    """A user id as Java clients read any 16 bytes: as a UUID of version 1, whatever those of its bits say that tell.
    Source: UUID of artemis-commons."""
    version = 0x10 | octets[6] & 0x0F
    variant = 0x80 | octets[8] & 0x3F
    return b"".join((octets[:6], bytes((version, octets[7], variant)), octets[9:]))


def type_of(head: bytes) -> int:
    """The type of a message: one of the ``*_TYPE`` constants, or another."""
    return head[_run_at(head)]


def with_address(head: bytes, address: str) -> bytes:
    """A head with another address."""
    encoded = encode_simple(address)
    return b"".join((_ADDRESS_START.pack(1, len(encoded)), encoded, head[_user_id_at(head) :]))


def with_fields(head: bytes, *, durable: bool, expiration: int, priority: int) -> bytes:
    """A head with what the broker may have changed; the same one when it has changed nothing."""
    at = _run_at(head)
    kind, durable_flag, old_expiration, timestamp, old_priority = _unpack_run(head, at)
    if old_expiration == expiration and old_priority == priority and (durable_flag != 0) == durable:
        return head
    run = _RUN.pack(kind, 1 if durable else 0, expiration, timestamp, priority)
    return b"".join((head[:at], run, head[at + _RUN_BYTES :]))


def _user_id_at(head: bytes) -> int:
    """Where the flag of the user id stands."""
    if not head[0]:
        return 1
    (size,) = _unpack_i32(head, 1)
    return _ADDRESS_START.size + int(size)


def _run_at(head: bytes) -> int:
    """Where the type stands."""
    at = _user_id_at(head)
    return at + 1 + USER_ID_BYTES if head[at] == 1 else at + 1


class CoreMessageReader:
    """Reads messages of one connection; remembers the address of the last one."""

    def __init__(self) -> None:
        self._start: bytes = b""
        self._address: str = ""

    def read(self, encoded: bytes, at: int, end: int) -> CoreMessage:
        """The message that fills ``encoded`` from ``at`` to ``end``.

        Raises:
            PeerError: DMQ5604 to DMQ5606, it reaches beyond, or is malformed.
        """
        if at + BEFORE_BODY_BYTES > end:
            raise errors.truncated(_WHERE, "body", at)
        (body_end,) = _unpack_i32(encoded, at)
        headers_at = at + body_end - _AFTER_BODY_END_BYTES
        if body_end < NO_BODY_END:
            raise errors.negative_length(_WHERE, "body", at)
        if headers_at > end:
            raise errors.truncated(_WHERE, "body", at)
        message = self.read_headers(encoded, headers_at, end)
        message.body = encoded[at + BEFORE_BODY_BYTES : headers_at]
        return message

    def read_headers(self, encoded: bytes, at: int, end: int) -> CoreMessage:
        """The same of a message without its body.

        Raises:
            PeerError: DMQ5604 to DMQ5606, it reaches beyond, or is malformed.
        """
        start = at + _ID_BYTES
        if start > end:
            raise errors.truncated(_WHERE, "headers", at)
        message = self.read_head(encoded, start, end)
        (message.message_id,) = _unpack_i64(encoded, at)
        return message

    def read_head(self, encoded: bytes, start: int, end: int) -> CoreMessage:
        """The same without its id: of a head, as a message keeps it.

        Raises:
            PeerError: DMQ5604 to DMQ5606, it reaches beyond, or is malformed.
        """
        if start + _SMALLEST_HEAD_BYTES > end:
            raise errors.truncated(_WHERE, "headers", start)
        message = CoreMessage()
        at = self._read_address(message, encoded, start, end)
        if at >= end:
            raise errors.truncated(_WHERE, "userID", at)
        if encoded[at] == 1:
            message.user_id = encoded[at + 1 : at + 1 + USER_ID_BYTES]
            at += USER_ID_BYTES
        at += 1
        if at + _RUN_BYTES >= end:
            raise errors.truncated(_WHERE, "type to properties", at)
        message.type, durable, message.expiration, message.timestamp, message.priority = _unpack_run(encoded, at)
        message.durable = durable != 0
        message.head = encoded[start:end]
        message.expiration_at = at + EXPIRATION_IN_RUN - start
        message.properties_at = at + _RUN_BYTES - start
        return message

    def _read_address(self, message: CoreMessage, encoded: bytes, at: int, end: int) -> int:
        """Returns where it ends."""
        known = self._start
        if known and encoded.startswith(known, at) and at + len(known) <= end:
            message.address = self._address
            return at + len(known)
        if not encoded[at]:
            return at + 1
        (size,) = _unpack_i32(encoded, at + 1)
        if size < 0:
            raise errors.negative_length(_WHERE, "address", at)
        text_at = at + _ADDRESS_START.size
        text_end: int = text_at + size
        if text_end > end:
            raise errors.truncated(_WHERE, "address", at)
        if size & 1:
            raise errors.not_a_string(_WHERE, "address", at)
        address = decode_simple(encoded[text_at:text_end])
        message.address = address
        if size <= _MOST_REMEMBERED_BYTES:
            self._start = encoded[at:text_end]
            self._address = address
        return text_end
