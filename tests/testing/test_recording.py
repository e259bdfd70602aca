"""What clients did is written to a file, and done again on another broker."""

from pathlib import Path

import pytest

from delosmq.model.errors import MisuseError
from delosmq.testing import BrokerFixture
from delosmq.testing.dialogue import CutFrame, StompDialogue
from delosmq.testing.frame_recorder import FrameRecorder, recorded_frames
from tests.testing.support import StompPeer

GOLDEN = Path(__file__).resolve().parents[1] / "wire" / "openwire" / "golden"


def test_what_a_stomp_client_did_is_done_again(tmp_path: Path) -> None:
    place = tmp_path / "tea.txt"
    with BrokerFixture(password="top-secret") as broker, broker.recording(place), StompPeer(broker) as peer:
        for text in ("one pot", "two pots"):
            peer.put("tea", text)
        peer.subscribe("tea", "client-individual")
        first, second = peer.frame(), peer.frame()
        peer.answer("ACK", second)
        peer.answer("NACK", first)
    assert "top-secret" not in place.read_text()
    assert b"top-secret".hex() not in place.read_text()
    with BrokerFixture() as broker:
        with StompPeer(broker) as peer:
            peer.put("coffee", "takes an id")
        broker.replay(place)
        broker.queue("tea").wait_for(consumers=0, delivering=0)
        broker.queue("tea").assert_has(messages=1, acknowledged=1)
        assert broker.queue("tea").texts == ["one pot"]


def test_what_our_client_did_is_done_again_over_several_connections(tmp_path: Path) -> None:
    place = tmp_path / "tea.txt"
    with BrokerFixture() as broker, broker.recording(place), broker.connect() as shop:
        for number in range(3):
            shop.send("tea", f"{number}", properties={"kind": "green"})
        with broker.connect() as worker:
            for message in worker.messages("tea", timeout_s=10):
                if message.text == "2":
                    break
        shop.send("tea", "late")
    assert {one.connection for one in recorded_frames(place)} == {1, 2}
    with BrokerFixture() as broker:
        broker.replay(place)
        assert broker.queue("tea").texts == ["2", "late"]
        broker.queue("tea").assert_has(messages=2, acknowledged=2)
        assert broker.queue("tea").messages[0].properties["kind"] == "green"


def test_a_connection_that_comes_after_one_has_gone_has_a_number_of_its_own(tmp_path: Path) -> None:
    recorder, dialogue = FrameRecorder(), StompDialogue()
    for connection in (7, 8):
        recorder.begin(connection)
        recorder.note(connection, dialogue, CutFrame(b"CONNECT"), by_client=True)
    recorder.end(7)
    recorder.begin(9)
    for connection in (8, 9):
        recorder.note(connection, dialogue, CutFrame(b"SEND"), by_client=True)
    place = tmp_path / "tea.txt"
    place.write_text(recorder.text)
    assert [(one.connection, one.raw) for one in recorded_frames(place)] == [
        (1, b"CONNECT"),
        (2, b"CONNECT"),
        (1, b""),
        (2, b"SEND"),
        (3, b"SEND"),
    ]


def test_a_request_gets_its_reply_again(tmp_path: Path) -> None:
    place = tmp_path / "price.txt"
    with BrokerFixture() as broker, broker.recording(place), broker.connect() as service, broker.connect() as shop:
        session = service.create_session()
        consumer = session.create_consumer("prices")
        session.create_consumer("unused").close()
        producer = shop.create_session().create_producer("prices")
        producer.send("tea?")
        question = consumer.receive(10)
        assert question is not None
        service.send("answers", f"{question.text} 3")
    with BrokerFixture() as broker:
        broker.replay(place)
        assert broker.queue("answers").texts == ["tea? 3"]


@pytest.mark.parametrize("name", ["auto", "auto-tight", "transacted", "individual", "xa"])
def test_recordings_of_the_java_client_are_played_too(name: str) -> None:
    with BrokerFixture() as broker:
        broker.replay(GOLDEN / f"{name}.txt")
        broker.queue(f"interop.{name.replace('-', '_')}_").wait_for(consumers=0, delivering=0)


def test_connections_that_were_there_before_are_not_recorded(tmp_path: Path) -> None:
    place = tmp_path / "tea.txt"
    with BrokerFixture() as broker, StompPeer(broker) as before:
        with broker.recording(place), StompPeer(broker) as peer:
            before.put("tea", "before")
            broker.drop_frame("SEND")
            peer.send("SEND", "destination:/queue/tea", body="dropped")
            peer.put("tea", "recorded")
        before.put("tea", "after")
    with BrokerFixture() as broker:
        broker.replay(place)
        assert broker.queue("tea").texts == ["recorded"]


def test_an_answer_that_does_not_come_is_told_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("delosmq.testing.replay.WAIT_S", 0.05)
    place = tmp_path / "tea.txt"
    with BrokerFixture() as broker, broker.recording(place), StompPeer(broker) as peer:
        peer.put("tea", "one pot")
        peer.subscribe("tea")
        assert peer.text() == "one pot"
    with BrokerFixture() as broker:
        with StompPeer(broker) as other:
            other.subscribe("tea")
            with pytest.raises(AssertionError, match=r"tea\.txt:\d+: the broker does not send "):
                broker.replay(place)


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "tea.txt"
    place.write_text("tea for two\n")
    with BrokerFixture() as broker, pytest.raises(MisuseError, match=r"DMQ7210: .*tea\.txt is no recording"):
        broker.replay(place)
