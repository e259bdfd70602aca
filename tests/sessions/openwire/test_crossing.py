"""Messages that cross between STOMP and OpenWire, and between versions of OpenWire, through the hub form."""

from delosmq.wire.openwire.commands import BYTES_MESSAGE, TEXT_MESSAGE, MessageCommand, MessageDispatch
from delosmq.wire.openwire.properties import decode_properties
from tests.sessions.openwire.stomp_peer import StompPeer
from tests.sessions.openwire.support import Client, OpenWireBench, Reader, queue, text_of

A = queue("a")


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


def test_a_selector_of_openwire_looks_at_stomp_s_headers() -> None:
    stomp, client, reader = pair()
    reader.close()
    info = client.consumer_info(A)
    info.selector = "colour = 'red'"
    red = client.subscribe(info)
    for colour in ("red", "blue"):
        stomp.frame("SEND", "destination:/queue/a", f"colour:{colour}", body=colour.encode())
    assert red.bodies() == "red"


# -- between versions --------------------------------------------------------------------------------------------------


def test_redelivery_counts_cross() -> None:
    stomp, client, reader = pair()
    stomp.frame("SEND", "destination:/queue/a", body=b"x")
    assert reader.bodies() == "x"
    client.drop()
    assert client.bench.connect().consume(A).bodies() == "xr1"
