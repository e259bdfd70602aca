"""CORE clients and clients of other protocols on one broker."""

from delosmq.model.message import MULTICAST
from delosmq.wire.core.properties import decode_properties
from tests.sessions.core.support import CoreBench
from tests.sessions.openwire.stomp_peer import StompPeer


def test_a_message_of_stomp_reaches_a_core_client() -> None:
    bench = CoreBench()
    session = bench.session()
    session.ok(session.queue("orders"))
    StompPeer(bench).frame("SEND", "destination:/queue/orders", "colour:red", body=b"tea")
    reader = session.consumer("orders")
    session.start()
    (packet,) = reader.take()
    assert packet.message.address == "orders"
    assert decode_properties(packet.message.properties)["colour"].value == "red"
    assert "tea".encode("utf-16-le") in packet.message.body
    reader.done(0)
    assert bench.queue("orders").message_count == 0


def test_a_message_of_core_reaches_a_stomp_client() -> None:
    bench = CoreBench()
    peer = StompPeer(bench)
    peer.frame("SUBSCRIBE", "id:1", "destination:/topic/news")
    session = bench.session()
    session.publish("news", "tea")
    (frame,) = [one for one in peer.take() if one.command == "MESSAGE"]
    assert frame.body == b"tea"


def test_a_stomp_client_answers_to_a_temporary_queue_of_core() -> None:
    bench = CoreBench()
    session = bench.session()
    session.ok(session.queue("uuid-1", temporary=True, durable=False))
    reader = session.consumer("uuid-1")
    session.start()
    peer = StompPeer(bench)
    peer.frame("SUBSCRIBE", "id:1", "destination:/queue/ask")
    session.ok(session.send_packet("ask", "how", JMSReplyTo="temp-queue://uuid-1"))
    (frame,) = [one for one in peer.take() if one.command == "MESSAGE"]
    peer.frame("SEND", f"destination:{frame.headers['reply-to']}", body=b"so")
    (packet,) = reader.take()
    assert "so".encode("utf-16-le") in packet.message.body


def test_a_stomp_message_of_a_topic_is_credited_by_its_whole_frame() -> None:
    bench = CoreBench()
    session = bench.session()
    session.ok(session.queue("mine", "news", MULTICAST))
    peer = StompPeer(bench)
    for body in (b"a", b"b"):
        peer.frame("SEND", "destination:/topic/news", body=body)
    reader = session.consumer("mine", credits=1)
    session.start()
    (packet,) = reader.take()
    reader.flow(packet.size_bytes - 1)
    assert reader.take() == []
    reader.flow(1)
    assert len(reader.take()) == 1
