"""The datagram by which a broker says where it is.

    String node id | String id of this start | int count | count x connector
    connector: String name | String factory class | int count | count x (String key | byte type | value)
    type: 0 boolean (1 byte) | 1 int | 2 long | 3 String. Numbers are big-endian.

    String: int length in UTF-16 units, then below 9 units a short for each, below 4095 a short with the count of bytes
    and modified UTF-8, else an int with the count of bytes and UTF-16 little-endian.

Source: Artemis, BroadcastGroupImpl.broadcastConnectors, TransportConfiguration.encode, UTF8Util.writeString. One of a
broker of version 2.44.0 is in tests/cluster/recorded.
"""

import struct
from dataclasses import dataclass
from typing import Final

from delosmq.model.errors import PeerError, peer_error
from delosmq.wire.openwire.modified_utf8 import decode_text, encode_text

MOST_CONNECTORS: Final = 8
MOST_PARAMETERS: Final = 200
"""Of a connector. An acceptor of Artemis knows about eighty."""
LONGEST_TEXT: Final = 4_094
"""UTF-16 units of what is decoded; names, hosts and numbers are shorter."""
LARGEST_DATAGRAM_BYTES: Final = 65_507
"""What UDP over IPv4 carries."""

FACTORY: Final = "org.apache.activemq.artemis.core.remoting.impl.netty.NettyConnectorFactory"
"""What Artemis calls a connector over TCP."""

_SHORT_BELOW: Final = 9
_TRUE: Final = b"\xff"
_BOOLEAN: Final = 0
_INT: Final = 1
_LONG: Final = 2
_STRING: Final = 3
_INT_BOUND: Final = 1 << 31
_NUMBER: Final = struct.Struct(">i")
_LONG_NUMBER: Final = struct.Struct(">q")
_BYTE_COUNT: Final = struct.Struct(">H")

ParameterValue = bool | int | str


@peer_error("DMQ6601")
def datagram_malformed(detail: str) -> str:
    return f"a datagram of discovery can't be read: {detail}; only brokers should send to this group"


@dataclass(frozen=True)
class AnnouncedConnector:
    """Where a broker can be reached.

    Attributes:
        parameters: as in the URL of the connector: ``host``, ``port``, ``sslEnabled`` and others.
    """

    name: str
    factory: str
    parameters: tuple[tuple[str, ParameterValue], ...]

    def text(self, key: str) -> str:
        """A parameter as text, "" for one that is not there; a truth as ``true`` or ``false``."""
        value = dict(self.parameters).get(key, "")
        return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class Announcement:
    """What one datagram says.

    Attributes:
        node_id: of the broker, over restarts; start_id: of this start.
    """

    node_id: str
    start_id: str
    connectors: tuple[AnnouncedConnector, ...]


# -- reading ---------------------------------------------------------------------------------------------------------


def decode_announcement(datagram: bytes) -> Announcement:
    """What a datagram says; what follows in it counts for nothing.

    Raises:
        PeerError: it is malformed, or has more than a broker may say.
    """
    reading = _Reading(datagram)
    node_id = reading.text()
    start_id = reading.text()
    if not node_id:
        raise datagram_malformed("it names no node")
    count = reading.count("connectors", MOST_CONNECTORS)
    return Announcement(node_id, start_id, tuple([_connector(reading) for _ in range(count)]))


def _connector(reading: "_Reading") -> AnnouncedConnector:
    name = reading.text()
    factory = reading.text()
    count = reading.count("parameters of a connector", MOST_PARAMETERS)
    return AnnouncedConnector(name, factory, tuple([(reading.text(), reading.value()) for _ in range(count)]))


class _Reading:
    """A datagram, and how far it was read."""

    def __init__(self, datagram: bytes) -> None:
        self._datagram = datagram
        self._at: int = 0

    def count(self, what: str, most: int) -> int:
        number = self._number()
        if not 0 <= number <= most:
            raise datagram_malformed(f"it has {number} {what}, and 0 to {most} may be")
        return number

    def text(self) -> str:
        units = self._number()
        if not 0 <= units <= LONGEST_TEXT:
            raise datagram_malformed(f"a text has {units} characters, and {LONGEST_TEXT} may be")
        if units < _SHORT_BELOW:
            encoded = self._take(units * 2)
            return encoded.decode("utf-16-be", "replace")
        size = _BYTE_COUNT.unpack(self._take(_BYTE_COUNT.size))[0]
        encoded = self._take(size)
        try:
            return decode_text(encoded)
        except PeerError:
            raise datagram_malformed("a text is not modified UTF-8") from None

    def value(self) -> ParameterValue:
        kind = self._take(1)[0]
        if kind == _BOOLEAN:
            return self._take(1) != b"\0"
        if kind == _INT:
            return self._number()
        if kind == _LONG:
            return int(_LONG_NUMBER.unpack(self._take(_LONG_NUMBER.size))[0])
        if kind == _STRING:
            return self.text()
        raise datagram_malformed(f"a parameter has the type {kind}, and 0 to 3 are known")

    def _number(self) -> int:
        return int(_NUMBER.unpack(self._take(_NUMBER.size))[0])

    def _take(self, size: int) -> bytes:
        start = self._at
        self._at += size
        if self._at > len(self._datagram):
            raise datagram_malformed(f"it ends after {len(self._datagram)} bytes, within a field")
        return self._datagram[start : self._at]


# -- writing ---------------------------------------------------------------------------------------------------------


def encode_announcement(announcement: Announcement) -> bytes:
    """The datagram; see `decode_announcement`."""
    parts = [_text(announcement.node_id), _text(announcement.start_id), _NUMBER.pack(len(announcement.connectors))]
    for connector in announcement.connectors:
        parts += [_text(connector.name), _text(connector.factory), _NUMBER.pack(len(connector.parameters))]
        for key, value in connector.parameters:
            parts += [_text(key), _value(value)]
    return b"".join(parts)


def _text(text: str) -> bytes:
    wide = text.encode("utf-16-be", "surrogatepass")
    units = len(wide) // 2
    length = _NUMBER.pack(units)
    if units < _SHORT_BELOW:
        return length + wide
    if units <= LONGEST_TEXT:
        encoded = encode_text(text)
        return length + _BYTE_COUNT.pack(len(encoded)) + encoded
    little = text.encode("utf-16-le", "surrogatepass")
    return length + _NUMBER.pack(len(little)) + little


def _value(value: ParameterValue) -> bytes:
    if isinstance(value, bool):
        return bytes((_BOOLEAN,)) + (_TRUE if value else b"\0")
    if isinstance(value, str):
        return bytes((_STRING,)) + _text(value)
    if -_INT_BOUND <= value < _INT_BOUND:
        return bytes((_INT,)) + _NUMBER.pack(value)
    return bytes((_LONG,)) + _LONG_NUMBER.pack(value)
