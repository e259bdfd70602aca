"""How two peers agree: each sends a WireFormatInfo at once, always loosely encoded, and both compute the same result.

    type u8 (1) | "ActiveMQ" | version i32 | flag | length i32 | primitive map

Source: WireFormatInfo, OpenWireFormat.renegotiateWireFormat and WireFormatNegotiator of the Java client.
"""

from struct import Struct
from typing import Final

from delosmq.model.properties import BOOLEAN_KIND, INT_KIND, LONG_KIND, STRING_KIND, TypedValue
from delosmq.wire.first_bytes import FOREIGN, MINE, UNDECIDED
from delosmq.wire.openwire import errors
from delosmq.wire.openwire.primitives import decode_map, encode_map
from delosmq.wire.openwire.structures import Structure
from delosmq.wire.openwire.wire_format import NEWEST_VERSION, WireFormat

WIRE_FORMAT_INFO: Final = 1
MAGIC: Final = b"ActiveMQ"
DEFAULT_INACTIVITY_MS: Final = 30_000
DEFAULT_INITIAL_DELAY_MS: Final = 10_000
DEFAULT_MAX_FRAME_BYTES: Final = 104_857_600
"""As Classic's activemq.xml has it."""

# Newer peers take no more. Source: WireFormatInfo.MAX_PROPERTY_SIZE and MAX_PROPERTY_BUFFER_SIZE.
_MOST_PROPERTIES: Final = 64
_LONGEST_PROPERTY_BYTES: Final = 512

_DELAY: Final = "MaxInactivityDurationInitalDelay"
_DELAY_OF_NMS: Final = "MaxInactivityDurationInitialDelay"

_HEAD: Final = Struct(">B8si?i")
_I32: Final = Struct(">i")
_MAGIC_AT: Final = 5
_LARGEST_LONG: Final = (1 << 63) - 1


class WireFormatInfo(Structure):
    """What a peer can do and wants. Times in ms, 0 for off.

    Attributes:
        max_frame_bytes: 0 or less for no wish.
        host: the name by which the peer looks for us; None when it does not say.
    """

    def __init__(self, version: int = NEWEST_VERSION) -> None:
        self.code = WIRE_FORMAT_INFO
        self.version = version
        self.stack_trace_enabled: bool = False
        self.tcp_no_delay_enabled: bool = True
        self.cache_enabled: bool = False
        self.tight_encoding_enabled: bool = False
        self.size_prefix_disabled: bool = False
        self.max_frame_size_enabled: bool = True
        self.cache_size: int = 0
        self.max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES
        self.max_inactivity_duration_ms: int = DEFAULT_INACTIVITY_MS
        self.max_inactivity_initial_delay_ms: int = DEFAULT_INITIAL_DELAY_MS
        self.provider_name: str | None = None
        self.provider_version: str | None = None
        self.platform_details: str | None = None
        self.host: str | None = None


class Agreement:
    """What follows from both sides' WireFormatInfo.

    Attributes:
        form: how commands are encoded from now on.
        read_timeout_ms: without any bytes for this long, the peer is gone; 0 for never. We write a KeepAliveInfo when
            idle for a third of it.
        initial_delay_ms: the timeout begins to count after this time.
    """

    def __init__(self, form: WireFormat, read_timeout_ms: int, initial_delay_ms: int) -> None:
        self.form = form
        self.read_timeout_ms = read_timeout_ms
        self.initial_delay_ms = initial_delay_ms


def agree(ours: WireFormatInfo, theirs: WireFormatInfo) -> Agreement:
    """The result of a negotiation; the peer computes the same.

    Raises:
        PeerError: DMQ5214, its version does not exist.
    """
    largest = [info.max_frame_bytes for info in (ours, theirs) if info.max_frame_bytes > 0]
    form = WireFormat(
        min(ours.version, theirs.version),
        tight=ours.tight_encoding_enabled and theirs.tight_encoding_enabled,
        caching=ours.cache_enabled and theirs.cache_enabled,
        stack_traces=ours.stack_trace_enabled and theirs.stack_trace_enabled,
        max_frame_bytes=min(largest) if largest else _LARGEST_LONG,
    )
    return Agreement(
        form,
        max(0, min(ours.max_inactivity_duration_ms, theirs.max_inactivity_duration_ms)),
        max(0, min(ours.max_inactivity_initial_delay_ms, theirs.max_inactivity_initial_delay_ms)),
    )


def encode_wire_format_info(info: WireFormatInfo) -> bytes:
    """The frame. Both spellings of the initial delay are sent: Java and CMS read one, NMS the other."""
    entries: dict[str, TypedValue] = {
        "StackTraceEnabled": TypedValue(BOOLEAN_KIND, info.stack_trace_enabled),
        "TcpNoDelayEnabled": TypedValue(BOOLEAN_KIND, info.tcp_no_delay_enabled),
        "CacheEnabled": TypedValue(BOOLEAN_KIND, info.cache_enabled),
        "TightEncodingEnabled": TypedValue(BOOLEAN_KIND, info.tight_encoding_enabled),
        "SizePrefixDisabled": TypedValue(BOOLEAN_KIND, info.size_prefix_disabled),
        "MaxFrameSizeEnabled": TypedValue(BOOLEAN_KIND, info.max_frame_size_enabled),
        "CacheSize": TypedValue(INT_KIND, info.cache_size),
        "MaxFrameSize": TypedValue(LONG_KIND, info.max_frame_bytes),
        "MaxInactivityDuration": TypedValue(LONG_KIND, info.max_inactivity_duration_ms),
        _DELAY: TypedValue(LONG_KIND, info.max_inactivity_initial_delay_ms),
        _DELAY_OF_NMS: TypedValue(LONG_KIND, info.max_inactivity_initial_delay_ms),
    }
    texts = {
        "ProviderName": info.provider_name,
        "ProviderVersion": info.provider_version,
        "PlatformDetails": info.platform_details,
        "Host": info.host,
    }
    entries.update((name, TypedValue(STRING_KIND, text)) for name, text in texts.items() if text is not None)
    encoded = encode_map(entries)
    frame = _HEAD.pack(WIRE_FORMAT_INFO, MAGIC, info.version, True, len(encoded)) + encoded
    return _I32.pack(len(frame)) + frame


def decode_wire_format_info(encoded: bytes) -> WireFormatInfo:
    """The info from a frame without its size. What is missing or has another type counts as off.

    Raises:
        PeerError: DMQ5200 to DMQ5221, scope connection.
    """
    if encoded[1 : 1 + len(MAGIC)] != MAGIC:
        raise errors.not_openwire(encoded)
    if len(encoded) < _HEAD.size - _I32.size:
        raise errors.truncated(WIRE_FORMAT_INFO)
    (version,) = _I32.unpack_from(encoded, 1 + len(MAGIC))
    info = WireFormatInfo(version)
    entries = _decode_entries(encoded, _HEAD.size - _I32.size - 1)
    info.stack_trace_enabled = _flag(entries, "StackTraceEnabled")
    info.tcp_no_delay_enabled = _flag(entries, "TcpNoDelayEnabled")
    info.cache_enabled = _flag(entries, "CacheEnabled")
    info.tight_encoding_enabled = _flag(entries, "TightEncodingEnabled")
    info.size_prefix_disabled = _flag(entries, "SizePrefixDisabled")
    info.max_frame_size_enabled = _flag(entries, "MaxFrameSizeEnabled")
    info.cache_size = _number(entries, "CacheSize")
    info.max_frame_bytes = _number(entries, "MaxFrameSize")
    info.max_inactivity_duration_ms = _number(entries, "MaxInactivityDuration")
    delay = _DELAY if _DELAY in entries else _DELAY_OF_NMS
    info.max_inactivity_initial_delay_ms = _number(entries, delay)
    info.provider_name = _text(entries, "ProviderName")
    info.provider_version = _text(entries, "ProviderVersion")
    info.platform_details = _text(entries, "PlatformDetails")
    info.host = _text(entries, "Host")
    return info


def _decode_entries(encoded: bytes, flag_at: int) -> dict[str, TypedValue]:
    start = flag_at + 1
    if not encoded[flag_at]:
        if len(encoded) > start:
            raise errors.left_over(WIRE_FORMAT_INFO, len(encoded) - start)
        return {}
    if len(encoded) < start + _I32.size:
        raise errors.truncated(WIRE_FORMAT_INFO)
    (length,) = _I32.unpack_from(encoded, start)
    start += _I32.size
    if length != len(encoded) - start:
        raise errors.truncated(WIRE_FORMAT_INFO)
    entries = decode_map(encoded[start:])
    if len(entries) > _MOST_PROPERTIES:
        raise errors.too_many_entries(len(entries), _MOST_PROPERTIES)
    for typed in entries.values():
        value = typed.value
        if isinstance(value, str | bytes | dict | list) and len(value) > _LONGEST_PROPERTY_BYTES:
            raise errors.properties_on_first_too_large(_LONGEST_PROPERTY_BYTES)
    return entries


def _flag(entries: dict[str, TypedValue], name: str) -> bool:
    typed = entries.get(name)
    return typed is not None and typed.value is True


def _number(entries: dict[str, TypedValue], name: str) -> int:
    typed = entries.get(name)
    value = None if typed is None else typed.value
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _text(entries: dict[str, TypedValue], name: str) -> str | None:
    typed = entries.get(name)
    value = None if typed is None else typed.value
    return value if isinstance(value, str) else None


def detect(start: bytes) -> int:
    """Whether a connection that begins with ``start`` speaks OpenWire: a size below 16 MiB, the type, the magic."""
    pattern = b"\0"
    if start[:1] != pattern[: len(start[:1])]:
        return FOREIGN
    known = start[4 : _MAGIC_AT + len(MAGIC)]
    expected = bytes((WIRE_FORMAT_INFO,)) + MAGIC
    if not expected.startswith(known):
        return FOREIGN
    return MINE if known == expected else UNDECIDED
