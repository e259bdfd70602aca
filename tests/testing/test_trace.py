"""The trace of a broker under test: what passed through it, without what is secret, and printed when a test fails."""

from pathlib import Path

import pytest
import websocket

from delosmq.testing import BrokerFixture, Trace
from delosmq.testing.trace import MOST_BYTES, MOST_ENTRIES
from tests.patience import PATIENCE_S
from tests.testing.support import StompPeer, run_pytest

pytest_plugins = ["pytester"]


def shown(broker: BrokerFixture) -> list[str]:
    """The lines without their times."""
    return [line[9:] for line in broker.trace.lines]


def test_it_has_connections_frames_and_events_in_their_order() -> None:
    with BrokerFixture() as broker:
        broker.trace.clear()
        with StompPeer(broker) as peer:
            peer.put("tea", "one pot")
            peer.subscribe("tea", "client-individual")
            message = peer.frame()
            peer.answer("NACK", message)
            broker.queue("tea").wait_for(delivering=1)
    ack = message.headers["ack"]
    lines = shown(broker)
    assert lines.pop() == "the broker has stopped"
    assert lines[0].startswith("1 connected by STOMP from 127.0.0.1:")
    assert [line for line in lines if "heart-beat" not in line and "MESSAGE" not in line][1:-1] == [
        "1 > CONNECT accept-version=1.2",
        "1 > SEND destination=/queue/tea receipt=put 7 bytes 'one pot'",
        "queue 'tea' created",
        "1 < RECEIPT receipt-id=put",
        "1 > SUBSCRIBE destination=/queue/tea id=1 ack=client-individual",
        "queue 'tea' has consumer 1",
        f"1 > NACK id={ack} receipt=answered",
        "message 3 back in queue 'tea', deliveries: 1",
        "1 < RECEIPT receipt-id=answered",
        "message 3 back in queue 'tea', deliveries: 2",
        "queue 'tea' has consumer 1 no more",
    ]
    assert [line.split()[2] for line in lines if line.startswith("1 <")].count("MESSAGE") == 2
    assert lines[-1] == "1 disconnected"


def test_frames_of_openwire_have_their_names_and_what_matters() -> None:
    with BrokerFixture() as broker, broker.connect() as client:
        client.send("tea", "one pot")
        for message in client.messages("tea", timeout_s=10):
            assert message.text == "one pot"
            break
        lines = shown(broker)
    assert "1 > SessionInfo session_id=1" in lines
    (sent,) = [line for line in lines if "ActiveMQTextMessage" in line]
    assert sent.startswith("1 > ActiveMQTextMessage destination=queue://tea message_id=1:1:1 persistent=True")
    assert "7 bytes 'one pot'" in sent
    (got,) = [line for line in lines if "MessageDispatch" in line]
    assert "consumer_id=2:1 destination=queue://tea redelivery_counter=0 message_id=1:1:1 7 bytes 'one pot'" in got


def test_it_looks_into_a_web_socket() -> None:
    with BrokerFixture() as broker:
        url = f"ws://{broker.host}:{broker.stomp_port}"
        web_socket = websocket.create_connection(url, subprotocols=["v12.stomp"], timeout=PATIENCE_S)
        try:
            web_socket.send(f"CONNECT\naccept-version:1.2\nhost:h\nlogin:admin\npasscode:{broker.password}\n\n\0")
            assert web_socket.recv_data()[1].startswith(b"CONNECTED")
            fault = broker.drop_frame("SEND")
            for text in ("lost", "one pot"):
                web_socket.send(f"SEND\ndestination:/queue/tea\nreceipt:1\n\n{text}\0")
            assert web_socket.recv_data()[1].startswith(b"RECEIPT")
        finally:
            web_socket.shutdown()  # type: ignore[no-untyped-call]
        assert fault.happened
        assert broker.queue("tea").texts == ["one pot"]
        assert "1 > DROPPED SEND destination=/queue/tea receipt=1 4 bytes 'lost'" in shown(broker)


def test_passwords_and_tokens_are_not_in_it() -> None:
    with BrokerFixture(password="top-secret") as broker:
        with StompPeer(broker) as peer:
            peer.put("tea", "one pot", "authorization:Bearer top-secret", "token:top-secret")
        with broker.connect() as client:
            client.send("tea", "one pot", properties={"token": "top-secret"})
        assert "SEND" in str(broker.trace)
        assert "ActiveMQTextMessage" in str(broker.trace)
        assert "top-secret" not in str(broker.trace)


def test_its_memory_is_bounded() -> None:
    trace = Trace()
    for number in range(MOST_ENTRIES + 2):
        trace.note(f"{number}")
    lines = trace.lines
    assert (len(lines), lines[0], lines[-1][9:]) == (MOST_ENTRIES + 1, "(2 older lines not kept)", "1001")
    with BrokerFixture() as broker, StompPeer(broker) as peer:
        for _ in range(MOST_BYTES // 10_000 + 10):
            peer.put("tea", "x" * 10_000)
        assert len(broker.trace.lines) < 3 * MOST_BYTES // 10_000
        peer.put("tea", "y" * MOST_BYTES)
        assert f"{MOST_BYTES} bytes 'yyy" in str(broker.trace)


def test_what_is_no_frame_passes_and_is_answered() -> None:
    with BrokerFixture() as broker, StompPeer(broker) as peer:
        peer.send("SEND", "no header")
        assert peer.frame().command == "ERROR"
        assert peer.is_closed()
        assert "1 < ERROR" in str(broker.trace)


def test_it_has_what_the_test_did(tmp_path: Path) -> None:
    with BrokerFixture(tmp_path) as broker:
        broker.trace.clear()
        broker.clock.advance(minutes=5)
        broker.cut_connection(before="ACK", number=2)
        broker.crash()
        broker.start()
        assert [line for line in shown(broker) if "queue" not in line] == [
            "the test turns the clock by 0:05:00",
            "the test orders CUT BEFORE ACK number 2",
            "the test has the broker crash",
            "the broker has stopped",
            "the broker has started",
        ]


def test_heart_beats_are_left_out() -> None:
    with BrokerFixture() as broker, broker.connect():
        broker.clock.advance(minutes=5)
        assert "KeepAliveInfo" not in str(broker.trace)


def test_a_reset_begins_it_anew() -> None:
    with BrokerFixture() as broker:
        with StompPeer(broker):
            broker.reset()
        with StompPeer(broker):
            assert [line[:11] for line in shown(broker) if "connected" in line] == ["1 connected"]


def test_a_failed_test_prints_its_own_and_a_good_one_none(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
from delosmq.testing import BrokerFixture


def test_good(broker_client, broker):
    broker_client.send("good", "one pot")


def test_bad(broker_client, whole_session_broker):
    broker_client.send("before", "one pot")
    assert False


def test_worse(broker_client, whole_session_broker):
    broker_client.send("tea", "one pot")
    with BrokerFixture() as another, another.connect() as client:
        client.send("coffee", "one cup")
        raise ValueError("no milk")
"""
    )
    found = run_pytest(pytester, "-p", "no:randomly")
    found.assert_outcomes(passed=1, failed=2)
    found.stdout.fnmatch_lines(
        [
            "*test_bad*",
            "*- what passed through the broker -*",
            "* 1 connected by OPENWIRE from *",
            "* 1 > ActiveMQTextMessage destination=queue://before *'one pot'*",
            "*test_worse*",
            "*- what passed through the broker -*",
        ]
    )
    text = found.stdout.str()
    assert "queue://good" not in text
    assert text.count("queue://before ") == 1
    assert "queue://tea " in text
    assert "queue://coffee " in text


@pytest.mark.parametrize("shown_too", [False, True])
def test_what_clients_subscribe_to_for_themselves_is_seen_when_it_is_asked_for(shown_too: bool) -> None:
    with BrokerFixture(ports=False) as broker:
        broker.trace.shows_advisories = shown_too
        with broker.connect() as client, client.create_session() as session:
            client.send("tea", "one pot")
            session.create_temporary_queue()
            names, advisory_names = broker.queue_names, broker.advisory_queue_names
        lines = shown(broker)
    assert [name.partition(":")[0] for name in names] == ["DLQ", "ID", "tea"]
    assert [name.rpartition(".")[0] for name in advisory_names] == [
        "ActiveMQ.Advisory.TempQueue",
        "ActiveMQ.Advisory.TempTopic",
    ]
    about = [line for line in lines if "Advisory" in line or "consumer_id=-1" in line or "object_id=-1:" in line]
    assert (len(about) > 5) if shown_too else (about == [])
    assert any("temp-queue://" in line for line in lines)


def test_advisories_that_a_test_consumes_are_seen() -> None:
    with BrokerFixture(ports=False) as broker, broker.connect() as client, client.create_session() as session:
        consumer = session.create_consumer("topic://ActiveMQ.Advisory.Queue")
        client.send("tea", "one pot")
        assert consumer.receive(10) is not None
        lines = shown(broker)
    seen = [line.split()[2] for line in lines if "topic://ActiveMQ.Advisory.Queue " in line]
    assert seen[:2] == ["ConsumerInfo", "MessageDispatch"]
