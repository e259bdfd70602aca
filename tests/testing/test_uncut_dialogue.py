"""The test kit beside protocols whose frames it can't tell apart."""

from delosmq.model.protocol_names import CORE, SERVED_PROTOCOLS
from delosmq.testing.dialogue import DIALOGUES


def test_every_protocol_passes_the_tap() -> None:
    assert set(DIALOGUES) == set(SERVED_PROTOCOLS)


def test_bytes_of_core_pass_as_they_come_and_none_are_kept() -> None:
    dialogue = DIALOGUES[CORE]()
    for by_client in (True, False):
        (cut,) = dialogue.cut(b"ARTEMIS\0\0\0\x11", by_client=by_client)
        assert cut.raw == b"ARTEMIS\0\0\0\x11"
        assert not cut.tells
        assert dialogue.without_password(cut) == b""
        assert (dialogue.delivered(cut), dialogue.acknowledged(cut), dialogue.confirmation(cut)) == ("", "", b"")
