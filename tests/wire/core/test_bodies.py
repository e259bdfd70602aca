"""Bodies of every kind: as Java clients write them, to the hub form and back."""

import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delosmq.model.bodies import decode_map_body, decode_stream_body
from delosmq.model.errors import PeerError
from delosmq.model.message import (
    BYTES_BODY,
    EMPTY_BODY,
    MAP_BODY,
    OBJECT_BODY,
    STREAM_BODY,
    TEXT_BODY,
)
from delosmq.model.properties import (
    BOOLEAN_KIND,
    BYTE_KIND,
    BYTES_KIND,
    CHAR_KIND,
    DOUBLE_KIND,
    FLOAT_KIND,
    INT_KIND,
    LIST_KIND,
    LONG_KIND,
    MAP_KIND,
    NULL_KIND,
    SHORT_KIND,
    STRING_KIND,
    TypedValue,
)
from delosmq.wire.core.bodies import (
    body_kind,
    core_body,
    decode_object,
    decode_stream,
    decode_text,
    encode_stream,
    encode_text,
    hub_body,
    inflate,
)
from delosmq.wire.core.message import BYTES_TYPE, DEFAULT_TYPE, MAP_TYPE, OBJECT_TYPE, STREAM_TYPE, TEXT_TYPE
from delosmq.wire.core.properties import encode_properties
from tests.chance import tries
from tests.wire.core.support import golden_messages, texts

GOLDEN = golden_messages()
ENTRIES = {
    "boolean": (BOOLEAN_KIND, True),
    "byte": (BYTE_KIND, -2),
    "bytes": (BYTES_KIND, b"\1\2\xff"),
    "short": (SHORT_KIND, -300),
    "int": (INT_KIND, 70_000),
    "long": (LONG_KIND, 1 << 40),
    "float": (FLOAT_KIND, 1.5),
    "double": (DOUBLE_KIND, -2.25),
    "string": (STRING_KIND, "\0€😀"),
    "char": (CHAR_KIND, "€"),
}
STREAM = [
    *ENTRIES.values(),
    (NULL_KIND, None),
    (STRING_KIND, "long enough to be of the second form"),
    (NULL_KIND, None),
]

HUB_BODIES: dict[str, tuple[bytes, int]] = {
    "text": ("héllo 😀".encode(), TEXT_BODY),
    "text-empty": (b"", TEXT_BODY),
    "text-null": (b"", TEXT_BODY),
    "text-half": ("a\ufffd".encode(), TEXT_BODY),
    "bytes": (b"\1\2\xff", BYTES_BODY),
    # What the Java client makes of nothing, it reads as four bytes as well.
    "bytes-empty": (bytes(4), BYTES_BODY),
    "bytes-utf": (b"\0\x0ah\xc3\xa9\0\xed\xa0\xbd\xed\xb8\x80", BYTES_BODY),
    "map-empty": (b"{}", MAP_BODY),
    "map-one": (b'{"a":1}', MAP_BODY),
    "stream-empty": (b"[]", STREAM_BODY),
    "object": (b"\xac\xed\0\5t\0\1x", OBJECT_BODY),
    "object-null": (b"", OBJECT_BODY),
    "default": (b"", EMPTY_BODY),
    "core-default-empty": (b"", EMPTY_BODY),
    # Of the form that has no type of its own, only what cannot be anything else is read as text.
    "core-default-string": (b"\0\0\0\5\0h\0e\0l\0l\0o", BYTES_BODY),
    "core-default-nullable": (b"hello", TEXT_BODY),
    "core-bytes-empty": (b"", BYTES_BODY),
    "core-text-nobody": (b"", TEXT_BODY),
}


@pytest.mark.parametrize("name", HUB_BODIES)
def test_a_body_of_a_java_client(name: str) -> None:
    message = GOLDEN[name]
    assert hub_body(message.type, message.body) == HUB_BODIES[name]


@pytest.mark.parametrize(
    "name", ["text", "text-empty", "bytes", "bytes-utf", "map-empty", "map-one", "stream-empty", "object", "default"]
)
def test_a_body_comes_back_byte_for_byte(name: str) -> None:
    message = GOLDEN[name]
    assert core_body(*hub_body(message.type, message.body)) == (message.body, message.type)


def test_a_map_of_every_kind() -> None:
    message = GOLDEN["map"]
    body, kind = hub_body(message.type, message.body)
    entries = decode_map_body(body)
    assert kind == MAP_BODY
    assert entries is not None
    nothing = {"null": (NULL_KIND, None), "nullString": (NULL_KIND, None)}
    assert {name: (typed.kind, typed.value) for name, typed in entries.items()} == ENTRIES | nothing
    # Java's map has an order of its own, which stays.
    assert core_body(body, kind) == (message.body, MAP_TYPE)


def test_a_stream_of_every_kind() -> None:
    message = GOLDEN["stream"]
    body, kind = hub_body(message.type, message.body)
    values = decode_stream_body(body)
    assert kind == STREAM_BODY
    assert values is not None
    order = ("boolean", "byte", "bytes", "short", "int", "long", "float", "double", "string", "char")
    assert [(typed.kind, typed.value) for typed in values] == [ENTRIES[name] for name in order] + STREAM[10:]
    assert core_body(body, kind) == (message.body, STREAM_TYPE)


@pytest.mark.parametrize(
    "text, start",
    [("x" * 8, "0a0100000008"), ("x" * 9, "0a01000000090009"), ("x" * 4_095, "0a0100000fff00001ffe")],
)
def test_strings_of_a_stream_have_three_forms(text: str, start: str) -> None:
    encoded = encode_stream([TypedValue(STRING_KIND, text)])
    assert encoded.hex().startswith(start)
    assert [(typed.kind, typed.value) for typed in decode_stream(encoded)] == [(STRING_KIND, text)]


def numbers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << bits), (1 << bits) - 1)


typed_values = st.one_of(
    st.builds(TypedValue, st.just(NULL_KIND), st.none()),
    st.builds(TypedValue, st.just(BOOLEAN_KIND), st.booleans()),
    st.builds(TypedValue, st.just(BYTE_KIND), numbers(7)),
    st.builds(TypedValue, st.just(SHORT_KIND), numbers(15)),
    st.builds(TypedValue, st.just(INT_KIND), numbers(31)),
    st.builds(TypedValue, st.just(LONG_KIND), numbers(63)),
    st.builds(TypedValue, st.just(FLOAT_KIND), st.floats(width=32, allow_nan=False)),
    st.builds(TypedValue, st.just(DOUBLE_KIND), st.floats(allow_nan=False)),
    st.builds(TypedValue, st.just(STRING_KIND), texts),
    st.builds(TypedValue, st.just(CHAR_KIND), st.characters(max_codepoint=0xFFFF, exclude_categories=("Cs",))),
    st.builds(TypedValue, st.just(BYTES_KIND), st.binary(max_size=12)),
)


@settings(max_examples=tries(60))
@given(st.dictionaries(texts, typed_values, max_size=8))
def test_any_map_comes_back(entries: dict[str, TypedValue]) -> None:
    body = encode_properties(entries)
    assert core_body(*hub_body(MAP_TYPE, body)) == (body, MAP_TYPE)


@settings(max_examples=tries(60))
@given(st.lists(typed_values, max_size=8))
def test_any_stream_comes_back(values: list[TypedValue]) -> None:
    body = encode_stream(values)
    assert core_body(*hub_body(STREAM_TYPE, body)) == (body, STREAM_TYPE)


@settings(max_examples=tries(60))
@given(texts)
def test_any_text_comes_back(text: str) -> None:
    body = encode_text(text)
    assert hub_body(TEXT_TYPE, body) == (text.encode(), TEXT_BODY)
    assert core_body(text.encode(), TEXT_BODY) == (body, TEXT_TYPE)


def test_null_is_no_text() -> None:
    assert encode_text(None) == b"\0" == GOLDEN["text-null"].body
    assert decode_text(b"") == ""


def test_what_follows_a_text_or_a_map_is_not_read() -> None:
    assert hub_body(TEXT_TYPE, encode_text("x") + b"more") == (b"x", TEXT_BODY)
    assert hub_body(MAP_TYPE, b"\0more") == (b"{}", MAP_BODY)
    assert hub_body(OBJECT_TYPE, b"\0\0\0\1xmore") == (b"x", OBJECT_BODY)


@pytest.mark.parametrize("core_type", [DEFAULT_TYPE, TEXT_TYPE, MAP_TYPE, STREAM_TYPE, OBJECT_TYPE])
def test_four_nuls_are_nothing(core_type: int) -> None:
    assert hub_body(core_type, bytes(4)) == hub_body(core_type, b"")
    assert body_kind(core_type, bytes(4)) == body_kind(core_type, b"")


def test_a_type_that_says_nothing_of_its_body_has_bytes() -> None:
    for core_type in (7, 8, 1, 99):
        assert hub_body(core_type, b"\0x") == (b"\0x", BYTES_BODY)
        assert body_kind(core_type, b"") == BYTES_BODY
    assert body_kind(DEFAULT_TYPE, b"x") == BYTES_BODY


def test_what_is_not_the_map_it_claims_to_be_becomes_bytes() -> None:
    for kind in (MAP_BODY, STREAM_BODY):
        assert core_body(b"oops", kind) == (b"oops", BYTES_TYPE)


def test_maps_within_maps_become_their_json_text() -> None:
    assert decode_stream(core_body(b'[{"map":{"a":1}},{"list":[true]}]', STREAM_BODY)[0])[0].value == '{"a":1}'
    inner = {"m": TypedValue(MAP_KIND, {"a": TypedValue(INT_KIND, 1)}), "l": TypedValue(LIST_KIND, [])}
    assert [typed.value for typed in decode_stream(encode_stream(list(inner.values())))] == ['{"a":1}', "[]"]
    body, core_type = core_body(b'{"m":{"map":{"a":1}}}', MAP_BODY)
    assert hub_body(core_type, body) == (b'{"m":"{\\"a\\":1}"}', MAP_BODY)


# --- what is malformed


@pytest.mark.parametrize(
    "core_type, body",
    [
        (TEXT_TYPE, b"\1\0\0\0"),
        (TEXT_TYPE, b"\1\xff\xff\xff\xff"),
        (TEXT_TYPE, b"\1\0\0\0\3abc"),
        (TEXT_TYPE, b"\1\x7f\xff\xff\xfeab"),
        (OBJECT_TYPE, b"\0\0\0"),
        (OBJECT_TYPE, b"\xff\xff\xff\xff"),
        (OBJECT_TYPE, b"\0\0\0\5abc"),
        (MAP_TYPE, b"\1\x7f\xff\xff\xff"),
        (MAP_TYPE, b"\1\0\0\0\1\0\0\0\0\1"),
        (STREAM_TYPE, b"\0"),
        (STREAM_TYPE, b"\1"),
        (STREAM_TYPE, b"\x0c"),
        (STREAM_TYPE, b"\x06\0\0"),
        (STREAM_TYPE, b"\x02"),
        (STREAM_TYPE, b"\x0a"),
        (STREAM_TYPE, b"\x0a\1\0\0\0\2\0a"),
        (STREAM_TYPE, b"\x0a\1\0\0\0\x09\0\1"),
        (STREAM_TYPE, b"\x0a\1\0\0\0\x09\0\1\xff"),
        (STREAM_TYPE, b"\x0a\1\0\0\0\x09"),
        (STREAM_TYPE, b"\x0a\1\xff\xff\xff\xff\xff\xff\xff\xff"),
        (STREAM_TYPE, b"\x0a\1\x7f\xff\xff\xff\0\0\0"),
        (STREAM_TYPE, b"\x04\xff\xff\xff\xff"),
        (STREAM_TYPE, b"\x04\x7f\xff\xff\xffx"),
    ],
)
def test_a_malformed_body_is_shown_as_bytes(core_type: int, body: bytes) -> None:
    assert hub_body(core_type, body) == (body, BYTES_BODY)
    if core_type == STREAM_TYPE:
        with pytest.raises(PeerError):
            decode_stream(body)


def test_half_a_string_of_default_type_is_bytes() -> None:
    assert hub_body(DEFAULT_TYPE, b"\1\0\0\0\3abc") == (b"\1\0\0\0\3abc", BYTES_BODY)
    assert hub_body(DEFAULT_TYPE, b"\1\0\0\0\2a\0more") == (b"\1\0\0\0\2a\0more", BYTES_BODY)


def test_a_body_of_more_values_than_may_be_is_not_built() -> None:
    most = b"\x02\xff" * 65_536
    assert len(decode_stream(most)) == 65_536
    with pytest.raises(PeerError, match="DMQ5608"):
        decode_stream(most + b"\x02\xff")
    many = b"\1" + (65_537).to_bytes(4) + b"\0\0\0\0\0" * 65_537
    assert hub_body(MAP_TYPE, many) == (many, BYTES_BODY)


def test_an_object_is_never_looked_at() -> None:
    assert decode_object(b"\0\0\0\2\xac\xed") == b"\xac\xed"


def test_a_compressed_body_of_a_java_client_is_inflated() -> None:
    message = GOLDEN["compressed-text"]
    assert hub_body(TEXT_TYPE, inflate(message.body, 1 << 20)) == (b"x" * 60_000, TEXT_BODY)
    assert inflate(GOLDEN["compressed-bytes"].body, 204_800) == bytes(204_800)


def test_a_bomb_is_not_inflated() -> None:
    with pytest.raises(PeerError, match="DMQ5615"):
        inflate(zlib.compress(bytes(1_000_000)), 10_000)
    with pytest.raises(PeerError, match="DMQ5614"):
        inflate(b"not zlib", 10_000)
    with pytest.raises(PeerError, match="DMQ5614"):
        inflate(zlib.compress(b"cut")[:-2], 10_000)
