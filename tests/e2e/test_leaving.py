"""A client that sends to a full address and closes its connection at once, through sockets."""

import socket
from dataclasses import replace

import delosmq
from delosmq.embedded import default_settings
from delosmq.model.settings import AddressFullPolicy, AddressMatch
from delosmq.wire.openwire.commands import (
    STANDARD_ACK,
    TEXT_MESSAGE,
    MessageAck,
    MessageCommand,
    RemoveInfo,
    ShutdownInfo,
)
from delosmq.wire.openwire.structures import QUEUE, ConnectionId, ConsumerId, Destination, MessageId, ProducerId
from tests.e2e.openwire_peer import NAME, OpenWirePeer
from tests.patience import PATIENCE_S

FULL = Destination("full", QUEUE)


def text(body: bytes, number: int) -> MessageCommand:
    command = MessageCommand(TEXT_MESSAGE)
    command.producer_id = ProducerId(NAME, 1, 1)
    command.message_id = MessageId(command.producer_id, number)
    command.destination = FULL
    command.content = len(body).to_bytes(4, "big") + body
    return command


def connect(broker: delosmq.Broker) -> OpenWirePeer:
    connection = socket.create_connection((broker.host, broker.stomp_port), PATIENCE_S)
    return OpenWirePeer(connection, broker.user, broker.password)


def test_what_it_sent_arrives_once_there_is_room() -> None:
    settings = default_settings()
    acceptor = settings.acceptors[0]
    one_message = {"max_size_messages": 1, "address_full_policy": AddressFullPolicy.BLOCK}
    settings = replace(
        settings,
        acceptors=(replace(acceptor, protocols=("STOMP", "OPENWIRE")),),
        address_settings=(*settings.address_settings, AddressMatch("full", one_message)),
    )
    bodies = (b"one", b"two", b"three")
    with delosmq.Broker(settings=settings, http=False) as broker:
        with connect(broker) as leaving:
            removal = RemoveInfo()
            removal.object_id = ConnectionId(NAME)
            leaving.tell(*(text(body, number) for number, body in enumerate(bodies, 1)), removal, ShutdownInfo())
        with connect(broker) as reading:
            reading.consume(FULL)
            for body in bodies:
                message = reading.receive()
                assert bytes(message.content or b"")[4:] == body
                ack = MessageAck()
                ack.consumer_id, ack.destination = ConsumerId(NAME, 1, 1), FULL
                ack.ack_type, ack.message_count = STANDARD_ACK, 1
                ack.first_message_id = ack.last_message_id = message.message_id
                reading.call(ack)
