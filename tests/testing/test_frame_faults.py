"""Faults of frames: connections that are cut at one, acknowledgements that are lost, deliveries that come twice."""

import pytest

from delosmq.model.errors import MisuseError
from delosmq.testing import BrokerFixture
from tests.testing.support import StompPeer


def test_a_connection_is_cut_before_an_acknowledgement() -> None:
    with BrokerFixture() as broker, StompPeer(broker) as peer:
        peer.put("tea", "one pot")
        peer.subscribe("tea", "client-individual")
        message = peer.frame()
        fault = broker.cut_connection(before="ACK")
        peer.send("ACK", f"id:{message.headers['ack']}")
        assert peer.is_closed()
        assert fault.happened
        broker.queue("tea").wait_for(messages=1, delivering=0)
        assert "CUT BEFORE ACK" in str(broker.trace)


def test_a_connection_is_cut_after_an_acknowledgement() -> None:
    with BrokerFixture() as broker, StompPeer(broker) as peer:
        peer.put("tea", "one pot")
        peer.subscribe("tea", "client-individual")
        message = peer.frame()
        broker.cut_connection(after="ACK")
        peer.send("ACK", f"id:{message.headers['ack']}", "receipt:never")
        assert peer.is_closed()
        broker.queue("tea").assert_has(messages=0, acknowledged=1)


def test_a_connection_is_cut_before_and_after_a_frame_of_the_broker() -> None:
    with BrokerFixture() as broker:
        with StompPeer(broker) as peer:
            broker.cut_connection(before="RECEIPT", number=2)
            peer.put("tea", "confirmed")
            peer.send("SEND", "destination:/queue/tea", "receipt:never", body="not confirmed")
            assert peer.is_closed()
        assert broker.queue("tea").texts == ["confirmed", "not confirmed"]
        with StompPeer(broker) as peer:
            broker.cut_connection(after="MESSAGE")
            peer.subscribe("tea", "client-individual")
            assert peer.text() == "confirmed"
            assert peer.is_closed()
        broker.queue("tea").wait_for(messages=2, delivering=0)
        assert broker.queue("tea").messages[0].delivery_count == 1


def test_only_the_connection_is_cut_over_which_the_frame_comes() -> None:
    with BrokerFixture() as broker, StompPeer(broker) as peer, StompPeer(broker) as other:
        broker.cut_connection(before="SEND")
        peer.send("SEND", "destination:/queue/tea", body="lost")
        assert peer.is_closed()
        other.put("tea", "one pot")
        assert broker.queue("tea").texts == ["one pot"]


def test_frames_in_one_read_pass_up_to_the_fault() -> None:
    with BrokerFixture() as broker, StompPeer(broker) as peer:
        broker.cut_connection(before="SEND", number=3)
        frame = "SEND\ndestination:/queue/tea\n\n{}\0"
        peer.send_raw("".join(frame.format(number) for number in range(5)).encode())
        assert peer.is_closed()
        broker.queue("tea").wait_for(messages=2)
        assert broker.queue("tea").texts == ["0", "1"]


def test_a_frame_in_pieces_passes_whole_or_not_at_all() -> None:
    with BrokerFixture() as broker, StompPeer(broker) as peer:
        frame = b"SEND\ndestination:/queue/tea\nreceipt:put\n\nin pieces\0"
        for pieces in ((frame[:4], frame[4:]), (frame[:12], frame[12:20], frame[20:])):
            fault = broker.cut_connection(before="SEND", number=2)
            for piece in pieces:
                peer.send_raw(piece)
            assert peer.frame().command == "RECEIPT"
            broker.cancel_faults()
            assert not fault.happened
        peer.send_raw(frame[:12])
        broker.queue("tea").wait_for(messages=2)
        peer.send_raw(b"")
        broker.drop_frame("ACK")
        peer.send_raw(frame[12:])
        assert peer.frame().command == "RECEIPT"
        broker.queue("tea").assert_has(messages=3)


def test_an_acknowledgement_is_lost() -> None:
    with BrokerFixture() as broker:
        with StompPeer(broker) as peer:
            peer.put("tea", "one pot")
            peer.subscribe("tea", "client-individual")
            message = peer.frame()
            fault = broker.drop_frame("ACK")
            peer.send("ACK", f"id:{message.headers['ack']}")
            fault.wait()
            peer.put("tea", "two pots")
            broker.queue("tea").assert_has(messages=2, acknowledged=0)
        with StompPeer(broker) as peer:
            peer.subscribe("tea")
            assert peer.frame().headers["redelivered"] == "true"


def test_an_acknowledgement_of_our_client_is_lost() -> None:
    with BrokerFixture() as broker:
        fault = broker.drop_frame("MessageAck")
        with broker.connect() as client:
            client.send("tea", "one pot")
            for message in client.messages("tea", timeout_s=10):
                assert message.text == "one pot"
                message.acknowledge()
                fault.wait()
                break
        broker.queue("tea").wait_for(messages=1, consumers=0, acknowledged=0)


def test_a_stomp_client_gets_a_delivery_twice_and_acknowledges_twice() -> None:
    with BrokerFixture() as broker, StompPeer(broker) as peer:
        for text in ("one pot", "two pots"):
            peer.put("tea", text)
        broker.deliver_twice(number=2)
        peer.subscribe("tea", "client-individual")
        messages = [peer.frame() for _ in range(3)]
        assert [bytes(one.body) for one in messages] == [b"one pot", b"two pots", b"two pots"]
        for message in messages:
            peer.answer("ACK", message)
        broker.queue("tea").assert_has(messages=0, acknowledged=2, consumers=1)


def test_our_client_gets_a_delivery_twice_and_acknowledges_twice() -> None:
    with BrokerFixture() as broker, broker.connect() as client:
        failures: list[Exception] = []
        client.set_exception_listener(failures.append)
        broker.deliver_twice()
        client.send("tea", "one pot")
        client.send("tea", "two pots")
        texts = []
        for message in client.messages("tea", timeout_s=10):
            texts.append(message.text)
            if message.text == "two pots":
                message.acknowledge()
                break
        assert texts == ["one pot", "one pot", "two pots"]
        broker.queue("tea").wait_for(messages=0)
        assert failures == []


def test_a_client_that_fails_over_meets_a_cut() -> None:
    with BrokerFixture() as broker:
        url = f"failover:({broker.openwire_url})?initialReconnectDelay=1"
        with broker.connect(url) as client:
            faults = [broker.cut_connection(before="Message"), broker.cut_connection(after="Message", number=3)]
            for text in ("one pot", "two pots"):
                client.send("tea", text)
            for fault in faults:
                fault.wait()
        assert broker.queue("tea").texts == ["one pot", "two pots"]


def test_a_client_in_the_process_meets_them_too() -> None:
    with BrokerFixture(ports=False) as broker, broker.connect() as client:
        broker.deliver_twice()
        broker.drop_frame("MessageAck", number=2)
        client.send("tea", "x" * 300_000)
        client.send("tea", "two pots")
        sizes = []
        for message in client.messages("tea", timeout_s=10):
            sizes.append(len(message.text))
            if message.text == "two pots":
                break
        assert sizes == [300_000, 300_000, 8]
        assert "TWICE MessageDispatch" in str(broker.trace)


@pytest.mark.parametrize(
    "order, said",
    [
        (
            lambda broker: broker.drop_frame("ACKK"),
            "DMQ7207: neither STOMP nor OpenWire has a frame 'ACKK'; name it .*; did you mean 'ACK'",
        ),
        (lambda broker: broker.cut_connection(before="MessageAk"), "did you mean 'MessageAck'"),
        (lambda broker: broker.cut_connection(after="ack"), "did you mean 'ACK'"),
        (lambda broker: broker.drop_frame("ACK", number=0), "DMQ7208: there is no ACK number 0; they count from 1"),
        (lambda broker: broker.deliver_twice(number=True), "DMQ7208: there is no delivery number True"),
        (lambda broker: broker.cut_connection(), "DMQ7209: cut_connection takes either before= or after="),
        (lambda broker: broker.cut_connection(before="ACK", after="ACK"), "DMQ7209"),
    ],
)
def test_a_wrong_name_or_number_is_refused(order, said) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(MisuseError, match=said):
        order(BrokerFixture())


def test_a_fault_that_does_not_happen_is_told() -> None:
    with BrokerFixture() as broker, StompPeer(broker) as peer:
        fault = broker.drop_frame("SEND", number=2)
        peer.put("tea", "one pot")
        with pytest.raises(AssertionError, match=r"SEND number 2 did not come within 0.01 s: there were 1"):
            fault.wait(timeout_s=0.01)


def test_a_reset_takes_faults_back() -> None:
    with BrokerFixture() as broker:
        broker.drop_frame("SEND")
        broker.reset()
        with StompPeer(broker) as peer:
            peer.put("tea", "one pot")
