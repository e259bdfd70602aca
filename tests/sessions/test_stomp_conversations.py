"""Whole conversations as data, however the bytes are cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sessions.conversations import CONVERSATIONS
from tests.sessions.support import Client, StompBench


@pytest.mark.parametrize("version", CONVERSATIONS)
def test_a_conversation_goes_byte_by_byte_as_written_down(version: str) -> None:
    client = Client(StompBench())
    for turn in CONVERSATIONS[version]:
        client.send(turn.sent)
        assert client.take_raw() == turn.expected
    assert client.host.finished


@given(st.sampled_from(sorted(CONVERSATIONS)), st.data())
def test_it_goes_the_same_way_however_the_bytes_are_cut(version: str, data: st.DataObject) -> None:
    client = Client(StompBench())
    for turn in CONVERSATIONS[version]:
        cuts = data.draw(st.lists(st.integers(0, len(turn.sent)), max_size=5).map(sorted))
        for start, end in zip([0, *cuts], [*cuts, len(turn.sent)], strict=True):
            client.feed(turn.sent[start:end])
        client.bench.tick()
        assert sorted(client.take_raw().split(b"\0")) == sorted(turn.expected.split(b"\0"))
