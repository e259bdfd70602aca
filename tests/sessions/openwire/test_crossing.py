"""Messages that cross between STOMP and OpenWire, and between versions of OpenWire, through the hub form."""

import pytest

from delosmq.model.properties import BOOLEAN_KIND, DOUBLE_KIND, INT_KIND, LONG_KIND, STRING_KIND, TypedValue
from delosmq.model.settings import AcceptorSettings
from delosmq.sessions.protocol import Peer
from delosmq.sessions.stomp.session import StompSession
from delosmq.wire.openwire.commands import (
    BYTES_MESSAGE,
    MAP_MESSAGE,
    STREAM_MESSAGE,
    TEXT_MESSAGE,
    MessageCommand,
    MessageDispatch,
)
from delosmq.wire.openwire.primitives import encode_map, encode_stream
from delosmq.wire.openwire.properties import decode_properties
from delosmq.wire.stomp.decoder import StompDecoder, StompLimits
from delosmq.wire.stomp.frames import V12, Frame
from tests.sessions.openwire.support import Client, OpenWireBench, Reader, queue, text_of, topic
from tests.sessions.support import PASSWORD, USER, Host

A = queue("a")
ACCEPTOR = AcceptorSettings(
    "stomp", "localhost", 0, ("STOMP",), anycast_prefixes=("/queue/",), multicast_prefixes=("/topic/",)
)


class StompPeer:
    """A STOMP client of the same broker."""

    def __init__(self, bench: OpenWireBench) -> None:
        self.bench = bench
        peer = Peer("10.0.0.2:6000", f"stomp{len(bench.clients)}")
        self.session = StompSession(Host(), peer, ACCEPTOR, bench.services, bench.now)
        self.frame("CONNECT", "accept-version:1.2", "host:h", f"login:{USER}", f"passcode:{PASSWORD}")
        (connected,) = self.take()
        assert connected.command == "CONNECTED"

    def frame(self, command: str, *headers: str, body: bytes = b"") -> None:
        head = "\n".join((command, *headers)).encode()
        self.session.receive(head + b"\n\n" + body + b"\0", self.bench.now)
        self.bench.tick()

    def take(self) -> list[Frame]:
        raw = b""
        for _ in range(3):
            self.bench.tick()
            while chunk := self.session.outbox.take():
                raw += chunk
                self.session.outbox.confirm_written()
            self.session.handle_written(self.bench.now)
        decoder = StompDecoder(StompLimits())
        decoder.version = V12
        decoder.feed(raw)
        frames: list[Frame] = []
        while (frame := decoder.next_frame()) is not None:
            frames.append(frame)
        return frames


def pair() -> tuple[StompPeer, Client, Reader]:
    """A STOMP client, and an OpenWire consumer of queue a."""
    bench = OpenWireBench()
    client = bench.connect()
    return StompPeer(bench), client, client.consume(A)


def message(dispatch: MessageDispatch) -> MessageCommand:
    assert dispatch.message is not None
    return dispatch.message


# -- STOMP to OpenWire -------------------------------------------------------------------------------------------------


def test_a_text_from_stomp() -> None:
    stomp, _, reader = pair()
    stomp.frame("SEND", "destination:/queue/a", "priority:7", "persistent:true", "x:1", body="grüß".encode())
    (dispatch,) = reader.take()
    got = message(dispatch)
    assert got.code == TEXT_MESSAGE
    assert text_of(dispatch) == "grüß"
    assert (got.priority, got.persistent) == (7, True)
    assert got.destination is not None
    assert got.destination.qualified_name() == "queue://a"
    assert decode_properties(got.marshalled_properties)["x"].value == "1"


def test_bytes_from_stomp() -> None:
    stomp, _, reader = pair()
    stomp.frame("SEND", "destination:/queue/a", "content-length:3", body=b"a\0b")
    (dispatch,) = reader.take()
    got = message(dispatch)
    assert (got.code, got.content) == (BYTES_MESSAGE, b"a\0b")


def test_ids_of_messages_from_stomp_are_unique_and_are_acknowledged() -> None:
    """The client's check for duplicates would call them poison."""
    stomp, client, reader = pair()
    for body in (b"0", b"1", b"2"):
        stomp.frame("SEND", "destination:/queue/a", body=body)
    assert reader.bodies() == "0 1 2"
    assert len({reader.message_id(index).key() for index in range(3)}) == 3
    assert all(one.message is not None and one.message.producer_id is not None for one in reader.got)
    reader.done(0, 2)
    assert client.bench.queue("a").message_count == 0


def test_a_reply_address_from_stomp_is_one_that_openwire_answers() -> None:
    stomp, client, reader = pair()
    stomp.frame("SUBSCRIBE", "id:0", "destination:/queue/answers")
    stomp.frame("SEND", "destination:/queue/a", "reply-to:/queue/answers", "correlation-id:c", body=b"q")
    (dispatch,) = reader.take()
    got = message(dispatch)
    assert got.correlation_id == "c"
    assert got.reply_to is not None
    client.publish(got.reply_to, "answer")
    assert [frame.body for frame in stomp.take()] == [b"answer"]


def test_stomp_to_a_virtual_topic_s_queue() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    reader = client.consume(queue("Consumer.me.VirtualTopic.t"))
    stomp = StompPeer(bench)
    stomp.frame("SEND", "destination:/topic/VirtualTopic.t", body=b"x")
    (dispatch,) = reader.take()
    destination = message(dispatch).destination
    assert destination is not None
    assert destination.qualified_name() == "queue://Consumer.me.VirtualTopic.t"


def test_a_group_from_stomp_stays_with_its_consumer() -> None:
    stomp, client, reader = pair()
    other = client.consume(A)
    for body in (b"0", b"1", b"2"):
        stomp.frame("SEND", "destination:/queue/a", "JMSXGroupID:g", body=body)
    assert sorted((reader.bodies(), other.bodies())) == ["", "0 1 2"]
    assert {message(one).group_id for one in reader.got + other.got} == {"g"}


# -- OpenWire to STOMP -------------------------------------------------------------------------------------------------


def test_a_text_from_openwire() -> None:
    stomp, client, reader = pair()
    reader.close()
    stomp.frame("SUBSCRIBE", "id:0", "destination:/queue/a")
    command = client.text(A, "grüß")
    command.correlation_id = "c"
    command.type = "kind"
    command.priority = 7
    command.reply_to = queue("answers")
    command.marshalled_properties = encode_map(
        {
            "text": TypedValue(STRING_KIND, "t"),
            "int": TypedValue(INT_KIND, -1),
            "long": TypedValue(LONG_KIND, 1 << 40),
            "double": TypedValue(DOUBLE_KIND, 1.5),
            "flag": TypedValue(BOOLEAN_KIND, True),
        }
    )
    client.ok(command)
    (frame,) = stomp.take()
    assert frame.body == "grüß".encode()
    headers = frame.headers
    assert (headers["correlation-id"], headers["type"], headers["priority"]) == ("c", "kind", "7")
    assert headers["destination"] == "/queue/a"
    assert headers["reply-to"] == "/queue/answers"
    assert (headers["text"], headers["int"], headers["long"]) == ("t", "-1", str(1 << 40))
    assert (headers["double"], headers["flag"]) == ("1.5", "true")


def test_bytes_from_openwire() -> None:
    stomp, client, reader = pair()
    reader.close()
    stomp.frame("SUBSCRIBE", "id:0", "destination:/queue/a")
    command = client.text(A, "")
    command.code, command.content = BYTES_MESSAGE, b"a\0b"
    client.ok(command)
    (frame,) = stomp.take()
    assert frame.body == b"a\0b"
    assert frame.headers["content-length"] == "3"


@pytest.mark.parametrize(
    ("code", "content"),
    [
        (MAP_MESSAGE, encode_map({"k": TypedValue(INT_KIND, 5)})),
        (STREAM_MESSAGE, encode_stream([TypedValue(INT_KIND, 5), TypedValue(STRING_KIND, "x")])),
    ],
)
def test_maps_and_streams_come_to_stomp_as_text_of_json(code: int, content: bytes) -> None:
    stomp, client, reader = pair()
    reader.close()
    stomp.frame("SUBSCRIBE", "id:0", "destination:/queue/a")
    command = client.text(A, "")
    command.code, command.content = code, content
    client.ok(command)
    (frame,) = stomp.take()
    assert b"5" in frame.body
    assert frame.body[:1] in (b"{", b"[")


def test_a_selector_of_stomp_looks_at_openwire_s_properties() -> None:
    stomp, client, reader = pair()
    reader.close()
    stomp.frame("SUBSCRIBE", "id:0", "destination:/topic/t", "selector:n > 4")
    for number in (3, 5):
        command = client.text(topic("t"), str(number))
        command.marshalled_properties = encode_map({"n": TypedValue(INT_KIND, number)})
        client.ok(command)
    assert [frame.body for frame in stomp.take()] == [b"5"]


def test_a_selector_of_openwire_looks_at_stomp_s_headers() -> None:
    stomp, client, reader = pair()
    reader.close()
    info = client.consumer_info(A)
    info.selector = "colour = 'red'"
    red = client.subscribe(info)
    for colour in ("red", "blue"):
        stomp.frame("SEND", "destination:/queue/a", f"colour:{colour}", body=colour.encode())
    assert red.bodies() == "red"


def test_both_share_one_queue() -> None:
    stomp, client, reader = pair()
    stomp.frame("SUBSCRIBE", "id:0", "destination:/queue/a", "ack:client-individual")
    client.publish(A, "0 1 2 3")
    assert reader.bodies() == "0 2"
    assert [frame.body for frame in stomp.take()] == [b"1", b"3"]
    client.drop()
    assert [frame.body for frame in stomp.take()] == [b"0", b"2"]


# -- between versions --------------------------------------------------------------------------------------------------


def test_redelivery_counts_cross() -> None:
    stomp, client, reader = pair()
    stomp.frame("SEND", "destination:/queue/a", body=b"x")
    assert reader.bodies() == "x"
    client.drop()
    assert client.bench.connect().consume(A).bodies() == "xr1"
