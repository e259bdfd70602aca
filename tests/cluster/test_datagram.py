"""The datagram of discovery: as Artemis writes it, and nothing that is hostile costs more than a refusal."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delosmq.cluster.datagram import (
    FACTORY,
    LARGEST_DATAGRAM_BYTES,
    MOST_CONNECTORS,
    MOST_PARAMETERS,
    AnnouncedConnector,
    Announcement,
    decode_announcement,
    encode_announcement,
)
from delosmq.model.errors import PeerError

RECORDED = bytes.fromhex((Path(__file__).parent / "recorded" / "artemis-2.44.0.hex").read_text("ascii"))
TEXT = st.text(st.characters(blacklist_categories=("Cs",)), max_size=40) | st.text(
    "aß€😀\0", min_size=4, max_size=1_000
)
VALUE = st.booleans() | st.integers(-(1 << 63), (1 << 63) - 1) | TEXT
CONNECTOR = st.builds(AnnouncedConnector, TEXT, TEXT, st.lists(st.tuples(TEXT, VALUE), max_size=5).map(tuple))
ANNOUNCEMENT = st.builds(
    Announcement, TEXT.filter(bool), TEXT, st.lists(CONNECTOR, max_size=MOST_CONNECTORS).map(tuple)
)


def test_a_datagram_of_artemis_is_read_and_written_the_same() -> None:  # CLUS-1
    found = decode_announcement(RECORDED)
    assert [(connector.name, connector.factory) for connector in found.connectors] == [
        ("netty", FACTORY),
        ("typed", FACTORY),
    ]
    plain, typed = found.connectors
    assert (plain.text("host"), plain.text("port"), plain.text("sslEnabled")) == ("127.0.0.1", "16616", "false")
    assert dict(plain.parameters)["$.EP.ünïcode"] == "grüßeundwünsche"
    assert typed.parameters == (
        ("host", "127.0.0.1"),
        ("port", 16616),
        ("sslEnabled", True),
        ("connectionTTL", 60000),
        ("a", "b"),
    )
    assert len(found.node_id) == len(found.start_id) == 36
    # All but the long, which is small: numbers are written as short as they can be.
    longer = b"\x02" + (60000).to_bytes(8, "big")
    assert RECORDED.count(longer) == 1
    assert encode_announcement(found) == RECORDED.replace(longer, b"\x01" + (60000).to_bytes(4, "big"))


@given(ANNOUNCEMENT)
def test_what_is_written_is_read(announcement: Announcement) -> None:
    assert decode_announcement(encode_announcement(announcement)) == announcement


@pytest.mark.parametrize("end", range(0, len(RECORDED), 7))
def test_a_datagram_that_is_cut_is_refused(end: int) -> None:
    with pytest.raises(PeerError, match="DMQ6601"):
        decode_announcement(RECORDED[:end])


def test_what_follows_counts_for_nothing() -> None:
    assert decode_announcement(RECORDED + bytes(1_000)) == decode_announcement(RECORDED)


@given(
    st.binary(max_size=300)
    | st.tuples(st.integers(0, len(RECORDED)), st.binary(max_size=30)).map(
        lambda change: RECORDED[: change[0]] + change[1] + RECORDED[change[0] + len(change[1]) :]
    )
)
def test_any_bytes_are_read_or_refused(datagram: bytes) -> None:
    try:
        decode_announcement(datagram)
    except PeerError:
        return  # and nothing else is raised


def number(value: int) -> bytes:
    return (value & 0xFFFFFFFF).to_bytes(4, "big")


IDS = number(1) + b"\0n" + number(1) + b"\0s"
CONNECTOR_HEAD = IDS + number(1) + number(0) + number(0)


@pytest.mark.parametrize(
    "datagram, why",
    [
        (number(0) + number(0) + number(0), "no node"),
        (number(-1), "-1 characters"),
        (number(2_000_000_000), "characters"),
        (number(9) + b"\xff\xff" + b"x" * 9, "within a field"),
        (number(9) + b"\0\x02\xff\xff", "modified UTF-8"),
        (IDS + number(-1), "-1 connectors"),
        (IDS + number(MOST_CONNECTORS + 1), "9 connectors"),
        (CONNECTOR_HEAD + number(MOST_PARAMETERS + 1), "201 parameters"),
        (CONNECTOR_HEAD + number(1) + number(0) + b"\x04", "type 4"),
    ],
)
def test_a_hostile_field_is_refused_before_anything_is_made_of_it(datagram: bytes, why: str) -> None:
    with pytest.raises(PeerError, match=why):
        decode_announcement(datagram.ljust(LARGEST_DATAGRAM_BYTES if "field" not in why else 0, b"\0"))
