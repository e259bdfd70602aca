"""Strings and primitive values: modified UTF-8, tags, maps; what is malformed is refused with a sentence."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delosmq.model.bodies import decode_map_body, decode_stream_body, encode_map_body, encode_stream_body
from delosmq.model.errors import PeerError
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
    property_text,
)
from delosmq.wire.openwire.modified_utf8 import decode_text, encode_text, well_formed
from delosmq.wire.openwire.primitives import (
    MOST_DEPTH,
    decode_map,
    decode_stream,
    encode_map,
    encode_stream,
)

any_text = st.text(alphabet=st.characters(codec=None, exclude_categories=()), max_size=20)


def whole(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)


flat = st.one_of(
    st.just(TypedValue(NULL_KIND, None)),
    st.builds(TypedValue, st.just(BOOLEAN_KIND), st.booleans()),
    st.builds(TypedValue, st.just(BYTE_KIND), whole(8)),
    st.builds(TypedValue, st.just(CHAR_KIND), st.integers(0, 0xFFFF).map(chr)),
    st.builds(TypedValue, st.just(SHORT_KIND), whole(16)),
    st.builds(TypedValue, st.just(INT_KIND), whole(32)),
    st.builds(TypedValue, st.just(LONG_KIND), whole(64)),
    st.builds(TypedValue, st.just(DOUBLE_KIND), st.floats(allow_nan=False)),
    st.builds(TypedValue, st.just(FLOAT_KIND), st.floats(width=32, allow_nan=False)),
    st.builds(TypedValue, st.just(STRING_KIND), any_text),
    st.builds(TypedValue, st.just(BYTES_KIND), st.binary(max_size=10)),
)
typed = st.recursive(
    flat,
    lambda inner: st.one_of(
        st.builds(TypedValue, st.just(LIST_KIND), st.lists(inner, max_size=4)),
        st.builds(TypedValue, st.just(MAP_KIND), st.dictionaries(any_text, inner, max_size=4)),
    ),
    max_leaves=8,
)


def plain(value: TypedValue) -> object:
    inner = value.value
    if isinstance(inner, dict):
        return value.kind, {key: plain(each) for key, each in inner.items()}
    if isinstance(inner, list):
        return value.kind, [plain(each) for each in inner]
    return value.kind, type(inner), inner


# --- text


@given(any_text)
def test_any_text_comes_back(text: str) -> None:
    encoded = encode_text(text)
    assert b"\0" not in encoded
    # Surrogates that stand side by side are one character, as Java sees it.
    assert decode_text(encoded) == text.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")


def test_text_is_encoded_as_java_does() -> None:
    assert encode_text("a\0é€") == b"a\xc0\x80\xc3\xa9\xe2\x82\xac"
    assert encode_text("\U0001f600") == b"\xed\xa0\xbd\xed\xb8\x80"
    assert decode_text(b"\xed\xa0\xbd\xed\xb8\x80") == "\U0001f600"
    assert decode_text(b"\xc0\x80") == "\0"
    assert decode_text(b"\xed\xa0\xbd") == "\ud83d"


@pytest.mark.parametrize("encoded", [b"\xf0\x9f\x98\x80", b"\xff", b"\xc3", b"\x80", b"\xe2\x82", b"\xc0\x81"])
def test_what_is_not_modified_utf8_is_refused(encoded: bytes) -> None:
    with pytest.raises(PeerError, match="DMQ5205"):
        decode_text(encoded)


def test_lone_surrogates_become_question_marks_elsewhere() -> None:
    assert well_formed("a\ud800b") == "a?b"
    assert well_formed("aé\U0001f600") == "aé\U0001f600"


# --- primitive values


@given(st.dictionaries(any_text, typed, max_size=5))
def test_any_map_comes_back(entries: dict[str, TypedValue]) -> None:
    back = decode_map(encode_map(entries))
    joined = {decode_text(encode_text(key)): value for key, value in entries.items()}
    assert list(back) == list(joined)
    for key, value in back.items():
        # Its texts come back as Java sees them; see test_any_text_comes_back.
        assert encode_stream([value]) == encode_stream([joined[key]])
        assert value.kind == joined[key].kind


@given(st.lists(typed, max_size=5))
def test_any_stream_comes_back(values: list[TypedValue]) -> None:
    encoded = encode_stream(values)
    back = decode_stream(encoded)
    assert [value.kind for value in back] == [value.kind for value in values]
    assert encode_stream(back) == encoded


def test_values_stand_as_the_client_writes_them() -> None:
    entries = {
        "b": TypedValue(BOOLEAN_KIND, True),
        "y": TypedValue(BYTE_KIND, -1),
        "s": TypedValue(SHORT_KIND, 2),
        "i": TypedValue(INT_KIND, 3),
        "l": TypedValue(LONG_KIND, 4),
        "f": TypedValue(FLOAT_KIND, 1.5),
        "d": TypedValue(DOUBLE_KIND, 1.5),
        "t": TypedValue(STRING_KIND, "x"),
    }
    assert encode_map(entries).hex(" ") == (
        "00 00 00 08 00 01 62 01 01 00 01 79 02 ff 00 01 73 04 00 02 00 01 69 05 00 00 00 03"
        " 00 01 6c 06 00 00 00 00 00 00 00 04 00 01 66 08 3f c0 00 00 00 01 64 07 3f f8 00 00 00 00 00 00"
        " 00 01 74 09 00 01 78"
    )
    assert decode_map(b"\xff\xff\xff\xff") == {}


def test_long_strings_have_a_tag_of_their_own() -> None:
    assert encode_stream([TypedValue(STRING_KIND, "x" * 8190)])[0] == 9
    big = encode_stream([TypedValue(STRING_KIND, "é" * 100_000)])
    assert big[:5] == b"\x0d" + (200_000).to_bytes(4)
    assert decode_stream(big)[0].value == "é" * 100_000


def test_a_key_that_does_not_fit_is_left_out() -> None:
    assert list(
        decode_map(encode_map({"k" * 70_000: TypedValue(NULL_KIND, None), "a": TypedValue(NULL_KIND, None)}))
    ) == ["a"]


@pytest.mark.parametrize(
    "encoded, code",
    [
        (b"", "DMQ5204"),
        (b"\0\0\0\1", "DMQ5212"),
        (b"\0\0\0\1\0\1a", "DMQ5204"),
        (b"\x7f\xff\xff\xff" + bytes(100), "DMQ5212"),
        (b"\0\0\0\1\0\1a\x0e", "DMQ5211"),
        (b"\0\0\0\1\0\1a\x09\0\2x", "DMQ5204"),
        (b"\0\0\0\1\0\1a\x0a\xff\xff\xff\xff", "DMQ5206"),
        (b"\0\0\0\1\0\1a\x0d\xff\xff\xff\xfe", "DMQ5206"),
        (b"\0\0\0\1\0\1a\x0c\x7f\xff\xff\xff", "DMQ5212"),
        (b"\0\0\0\0x", "DMQ5220"),
        (b"\0\0\0\1\0\1\xff\0", "DMQ5205"),
        (b"\0\0\0\1\0\1a\x06\0\0", "DMQ5204"),
    ],
)
def test_a_malformed_map_is_refused(encoded: bytes, code: str) -> None:
    with pytest.raises(PeerError, match=code):
        decode_map(encoded)


def test_maps_are_nested_to_a_depth_and_have_a_number_of_entries() -> None:
    def nested(depth: int) -> bytes:
        return b"\0\0\0\1\0\1a\x0c" + b"\0\0\0\1\x0c" * depth + b"\0\0\0\0"

    assert decode_map(nested(MOST_DEPTH - 2))
    with pytest.raises(PeerError, match="DMQ5207"):
        decode_map(nested(MOST_DEPTH))
    for encoded in (bytes(70_000), b"\x0c" + (70_000).to_bytes(4) + bytes(70_000)):
        with pytest.raises(PeerError, match="DMQ5212"):
            decode_stream(encoded)


# --- the hub form of maps and streams


@given(st.dictionaries(any_text, typed, max_size=5), st.lists(typed, max_size=5))
def test_json_keeps_every_type(entries: dict[str, TypedValue], values: list[TypedValue]) -> None:
    back = decode_map_body(encode_map_body(entries))
    assert back is not None
    assert {key: plain(value) for key, value in back.items()} == {k: plain(v) for k, v in entries.items()}
    again = decode_stream_body(encode_stream_body(values))
    assert again is not None
    assert [plain(value) for value in again] == [plain(value) for value in values]


def test_json_reads_naturally() -> None:
    entries = {"n": TypedValue(INT_KIND, 1), "l": TypedValue(LONG_KIND, 1), "d": TypedValue(DOUBLE_KIND, 1.0)}
    assert encode_map_body(entries) == b'{"n":1,"l":{"long":1},"d":1.0}'
    assert decode_map_body(b"[1]") is None
    assert decode_map_body(b"\xff") is None
    assert decode_stream_body(b"{}") is None
    assert decode_stream_body(b"[" * 100_000) is None
    odd = decode_stream_body(
        b'[{"byte":300},{"double":"inf"},{"long":"x"},{"bytes":"%%"},1e999,{"double":1%b}]' % (b"0" * 400)
    )
    assert odd is not None
    assert [value.kind for value in odd] == [4, 7, 11, 11, 7, 7]
    assert odd[1].value == math.inf


@pytest.mark.parametrize(
    "value, kind, text",
    [
        (True, BOOLEAN_KIND, "true"),
        (-7, LONG_KIND, "-7"),
        (1.0, DOUBLE_KIND, "1.0"),
        (0.1, DOUBLE_KIND, "0.1"),
        (0.10000000149011612, FLOAT_KIND, "0.1"),
        (1e10, DOUBLE_KIND, "1.0E10"),
        (-1.25e-5, DOUBLE_KIND, "-1.25E-5"),
        (1234567.5, DOUBLE_KIND, "1234567.5"),
        (1e7, DOUBLE_KIND, "1.0E7"),
        (16777216.0, FLOAT_KIND, "1.6777216E7"),
        (0.001, DOUBLE_KIND, "0.001"),
        (math.nan, DOUBLE_KIND, "NaN"),
        (-math.inf, FLOAT_KIND, "-Infinity"),
        (-0.0, DOUBLE_KIND, "-0.0"),
        (b"\x0a\xff", BYTES_KIND, "0AFF"),
        ("x", STRING_KIND, "x"),
    ],
)
def test_values_without_types_read_as_java_prints_them(value: object, kind: int, text: str) -> None:
    assert isinstance(value, str | bool | int | float | bytes)
    assert property_text(value, kind) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_can_be_read_back_from_its_text(value: float) -> None:
    assert float(property_text(value, DOUBLE_KIND)) == value
