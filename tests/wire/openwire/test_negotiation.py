"""How both sides agree, and how a connection is recognised."""

import pytest

from delosmq.model.errors import PeerError
from delosmq.model.properties import INT_KIND, LONG_KIND, STRING_KIND, TypedValue
from delosmq.wire.first_bytes import FOREIGN, MINE, UNDECIDED
from delosmq.wire.openwire.negotiation import (
    WireFormatInfo,
    agree,
    decode_wire_format_info,
    detect,
    encode_wire_format_info,
)
from delosmq.wire.openwire.primitives import decode_map, encode_map


def info(**changes: object) -> WireFormatInfo:
    made = WireFormatInfo()
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def test_an_info_comes_back() -> None:
    sent = info(
        version=11,
        cache_enabled=True,
        tight_encoding_enabled=True,
        cache_size=1024,
        max_frame_bytes=(1 << 63) - 1,
        max_inactivity_duration_ms=1,
        max_inactivity_initial_delay_ms=2,
        provider_name="DelosMQ",
        host="h",
    )
    frame = encode_wire_format_info(sent)
    assert int.from_bytes(frame[:4]) == len(frame) - 4
    back = decode_wire_format_info(frame[4:])
    assert vars_of(back) == vars_of(sent)
    entries = decode_map(frame[22:])
    assert entries["MaxInactivityDurationInitalDelay"].value == entries["MaxInactivityDurationInitialDelay"].value == 2
    assert (entries["CacheSize"].kind, entries["MaxFrameSize"].kind) == (INT_KIND, LONG_KIND)
    assert len(frame) < 1024


def vars_of(made: WireFormatInfo) -> list[object]:
    names = [name for name in dir(made) if not name.startswith("_")]
    return [getattr(made, name) for name in names]


def test_the_smaller_wish_wins() -> None:
    theirs = info(version=10, max_frame_bytes=5_000, max_inactivity_duration_ms=0, tight_encoding_enabled=True)
    agreement = agree(info(), theirs)
    assert (agreement.form.version, agreement.form.max_frame_bytes, agreement.form.plain) == (10, 5_000, True)
    assert (agreement.read_timeout_ms, agreement.initial_delay_ms) == (0, 10_000)
    assert agree(info(), info(version=99, max_frame_bytes=0)).form.version == 12
    assert agree(info(max_frame_bytes=0), info(max_frame_bytes=-1)).form.max_frame_bytes == (1 << 63) - 1
    both = agree(
        info(tight_encoding_enabled=True, cache_enabled=True, stack_trace_enabled=True),
        info(tight_encoding_enabled=True, cache_enabled=True, stack_trace_enabled=True),
    ).form
    assert (both.tight, both.caching, both.stack_traces, both.plain) == (True, True, True, False)
    with pytest.raises(PeerError, match="DMQ5214"):
        agree(info(), info(version=0))


def frame_of(entries: dict[str, TypedValue]) -> bytes:
    encoded = encode_map(entries)
    return b"\1ActiveMQ\0\0\0\x0c\1" + len(encoded).to_bytes(4) + encoded


def test_what_has_another_type_counts_as_off() -> None:
    back = decode_wire_format_info(
        frame_of(
            {
                "CacheEnabled": TypedValue(STRING_KIND, "true"),
                "TightEncodingEnabled": TypedValue(INT_KIND, 1),
                "MaxInactivityDuration": TypedValue(STRING_KIND, "9"),
                "MaxInactivityDurationInitialDelay": TypedValue(LONG_KIND, 9),
                "Host": TypedValue(INT_KIND, 1),
            }
        )
    )
    assert (back.cache_enabled, back.tight_encoding_enabled, back.host) == (False, False, None)
    assert (back.max_inactivity_duration_ms, back.max_inactivity_initial_delay_ms) == (0, 9)
    assert decode_wire_format_info(b"\1ActiveMQ\0\0\0\x0c\0").version == 12


@pytest.mark.parametrize(
    "frame, code",
    [
        (b"\1ActiveMX\0\0\0\x0c\0", "DMQ5200"),
        (b"\1Active", "DMQ5200"),
        (b"\1ActiveMQ\0\0\0", "DMQ5204"),
        (b"\1ActiveMQ\0\0\0\x0c\0x", "DMQ5210"),
        (b"\1ActiveMQ\0\0\0\x0c\1\0\0", "DMQ5204"),
        (b"\1ActiveMQ\0\0\0\x0c\1\0\0\0\x09\0\0\0\0", "DMQ5204"),
        (frame_of({str(i): TypedValue(INT_KIND, 1) for i in range(65)}), "DMQ5212"),
        (frame_of({"x": TypedValue(STRING_KIND, "x" * 513)}), "DMQ5221"),
    ],
)
def test_a_malformed_info_is_refused(frame: bytes, code: str) -> None:
    with pytest.raises(PeerError, match=code):
        decode_wire_format_info(frame)


def test_a_connection_is_recognised_by_its_first_bytes() -> None:
    frame = encode_wire_format_info(info())
    for length in range(len(frame)):
        assert detect(frame[:length]) == (MINE if length >= 13 else UNDECIDED)
    for foreign in (
        b"CONNECT\n",
        b"\x16\x03\1",
        b"AMQP\0",
        b"\0\0\0\x0a\2Act",
        b"\0\0\0\x0a\1Acc",
        b"\1\0\0\0\1ActiveMQ",
    ):
        assert detect(foreign) == FOREIGN
