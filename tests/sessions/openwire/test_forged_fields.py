"""The fields of an OpenWire message that are the broker's to set: whatever way a message goes, and whoever reads it."""

from collections.abc import Callable

import pytest

from delosmq.wire.openwire.commands import POISON_ACK, ConnectionInfo, ConsumerInfo, MessageCommand
from delosmq.wire.openwire.negotiation import WireFormatInfo
from delosmq.wire.openwire.structures import BrokerId, ConnectionId, ConsumerId, Structure
from tests.fuzz.openwire_forged import FORGED, check_headers, check_message, forge
from tests.sessions.openwire.stomp_peer import StompPeer
from tests.sessions.openwire.support import Client, OpenWireBench, Reader, queue, topic
from tests.sessions.support import PASSWORD, USER

A = queue("a")
SETTINGS: dict[str, dict[str, object]] = {"#": {"dead_letter_address": "DLQ", "expiry_address": "ExpiryQueue"}}


def plain(client: Client) -> str:
    client.ok(forged(client))
    return "a"


def forged(client: Client, name: str = "a") -> MessageCommand:
    message = client.text(queue(name), "x")
    forge(message)
    return message


def composite(client: Client) -> str:
    client.ok(forged(client, "a,b"))
    return "b"


def transacted(client: Client) -> str:
    transaction = client.begin()
    message = forged(client)
    message.transaction_id = transaction
    client.ok(message)
    client.ok(client.transaction_info(transaction, 2))
    return "a"


def virtual(client: Client) -> str:
    client.consume(queue("Consumer.x.VirtualTopic.v")).close()
    message = forged(client)
    message.destination = topic("VirtualTopic.v")
    client.ok(message)
    return "Consumer.x.VirtualTopic.v"


def dead(client: Client) -> str:
    reader = client.consume(A)
    client.ok(forged(client))
    assert reader.bodies() == "x"
    client.ok(reader.ack(POISON_ACK, 0))
    return "DLQ"


def expired(client: Client) -> str:
    message = forged(client)
    message.expiration = message.timestamp + 10
    client.ok(message)
    client.bench.pass_time(60_000)
    return "ExpiryQueue"


def given_back(client: Client) -> str:
    reader = client.consume(A)
    client.ok(forged(client))
    assert reader.bodies() == "x"
    reader.close(reader.sequence(0))
    return "a"


WAYS: dict[str, Callable[[Client], str]] = {
    "plain": plain,
    "composite": composite,
    "in a transaction": transacted,
    "to a virtual topic": virtual,
    "dead letter": dead,
    "expired": expired,
    "given back": given_back,
}
"""What a sender does, and where the message is afterwards."""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("version", "tight"), [(1, False), (9, False), (12, False), (12, True)])
def test_what_the_broker_vouches_for_no_sender_sets(way: str, version: int, tight: bool) -> None:
    bench = OpenWireBench(address_settings=SETTINGS)
    info = WireFormatInfo(version)
    info.tight_encoding_enabled = tight
    sender = bench.negotiate(info)
    sender.log_in("ID:sender")
    place = WAYS[way](sender)
    assert bench.queue(place).pending.count == 1
    for read_in in (1, 9, 12):
        reader = bench.negotiate(WireFormatInfo(read_in))
        reader.log_in(f"ID:reader-{read_in}")
        browser = reader.consumer_info(queue(place))
        browser.browser = True
        (dispatch,) = reader.subscribe(browser).take()
        check_message(dispatch)
    stomp = StompPeer(bench)
    stomp.frame("SUBSCRIBE", "id:s", f"destination:/queue/{place}", "browser:true")
    (frame, *_) = stomp.take()
    check_headers(frame.headers)


def advised(reader: Reader) -> list[Structure | None]:
    """What the advisories are about that came since the last call."""
    return [dispatch.message.data_structure for dispatch in reader.take() if dispatch.message is not None]


def test_where_a_connection_comes_from_is_what_the_broker_sees() -> None:
    bench = OpenWireBench()
    listener = bench.connect()
    reader = listener.consume(topic("ActiveMQ.Advisory.Connection"))
    reader.take()
    liar = bench.negotiate()
    info = ConnectionInfo()
    info.connection_id = ConnectionId("ID:liar")
    info.client_id = "liar"
    info.user_name, info.password = USER, PASSWORD
    info.client_ip = FORGED
    info.broker_path = [BrokerId(FORGED)]
    liar.ok(info)
    (told,) = advised(reader)
    assert isinstance(told, ConnectionInfo)
    assert (told.client_ip, told.broker_path) == ("tcp://10.0.0.1:5000", None)


def test_a_consumer_is_that_of_its_connections_client() -> None:
    bench = OpenWireBench()
    listener, liar = bench.connect(), bench.connect(client_id="liar")
    reader = listener.consume(topic("ActiveMQ.Advisory.Consumer.Topic.t"))
    info = liar.consumer_info(topic("t"))
    info.client_id = FORGED
    info.broker_path = [BrokerId(FORGED)]
    info.network_consumer_path = [ConsumerId(FORGED, 1, 1)]
    liar.ok(info)
    (told,) = advised(reader)
    assert isinstance(told, ConsumerInfo)
    assert (told.client_id, told.broker_path, told.network_consumer_path) == ("liar", None, None)
