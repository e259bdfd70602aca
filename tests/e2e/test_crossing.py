"""stomp.py and an OpenWire peer ask and answer each other, through sockets and the prefixes of a real acceptor."""

import queue
import socket
from collections.abc import Iterator
from dataclasses import replace

import pytest
import stomp
from stomp.utils import Frame

import delosmq
from delosmq.embedded import default_settings
from delosmq.model.virtual_topics import CLASSIC
from delosmq.wire.openwire.codec import encode_command
from delosmq.wire.openwire.commands import (
    ADD_DESTINATION,
    TEMP_QUEUE,
    TEXT_MESSAGE,
    Command,
    ConnectionId,
    ConnectionInfo,
    ConsumerId,
    ConsumerInfo,
    Destination,
    DestinationInfo,
    ExceptionResponse,
    MessageCommand,
    MessageDispatch,
    MessageId,
    ProducerId,
    ProducerInfo,
    Response,
    SessionId,
    SessionInfo,
    Structure,
    destination_of,
)
from delosmq.wire.openwire.decoder import OpenWireDecoder, OpenWireLimits
from delosmq.wire.openwire.negotiation import WireFormatInfo, agree, encode_wire_format_info

PATIENCE_S = 15.0
NAME = "ID:peer-1-2-3:1"


class OpenWirePeer:
    """As much of a JMS client as questions and answers need."""

    def __init__(self, broker: delosmq.Broker) -> None:
        self._socket = socket.create_connection((broker.host, broker.stomp_port), PATIENCE_S)
        self._decoder = OpenWireDecoder(OpenWireLimits())
        self._received: list[Structure] = []
        self._commands = 0
        info = WireFormatInfo()
        self._socket.sendall(encode_wire_format_info(info))
        theirs = self._next()
        assert isinstance(theirs, WireFormatInfo)
        self._form = agree(info, theirs).form
        self._decoder.agreed(self._form)
        connection = ConnectionInfo()
        connection.connection_id = ConnectionId(NAME)
        connection.user_name, connection.password = broker.user, broker.password
        session = SessionInfo()
        session.session_id = SessionId(NAME, 1)
        producer = ProducerInfo()
        producer.producer_id = ProducerId(NAME, 1, 1)
        for command in (connection, session, producer):
            self.call(command)

    def _next(self) -> Structure:
        while (frame := self._decoder.next_frame()) is None:
            chunk = self._socket.recv(65_536)
            assert chunk, "the broker closed the connection"
            self._decoder.feed(chunk)
        return frame

    def call(self, command: Command) -> None:
        self._commands += 1
        command.command_id, command.response_required = self._commands, True
        self._socket.sendall(encode_command(command, self._form))
        while not isinstance(answer := self._next(), Response):
            self._received.append(answer)
        assert not isinstance(answer, ExceptionResponse), answer.exception and answer.exception.message

    def consume(self, destination: Destination) -> None:
        info = ConsumerInfo()
        info.consumer_id = ConsumerId(NAME, 1, 1)
        info.destination, info.prefetch_size = destination, 10
        self.call(info)

    def make_temporary(self) -> Destination:
        info = DestinationInfo()
        info.connection_id, info.operation_type = ConnectionId(NAME), ADD_DESTINATION
        info.destination = Destination(f"{NAME}:1", TEMP_QUEUE)
        self.call(info)
        return info.destination

    def send(self, destination: Destination, text: bytes, reply_to: Destination | None = None) -> None:
        command = MessageCommand(TEXT_MESSAGE)
        command.producer_id = ProducerId(NAME, 1, 1)
        command.message_id = MessageId(command.producer_id, self._commands)
        command.destination, command.reply_to = destination, reply_to
        command.content = len(text).to_bytes(4, "big") + text
        self.call(command)

    def receive(self) -> MessageCommand:
        while True:
            frame = self._received.pop(0) if self._received else self._next()
            if isinstance(frame, MessageDispatch) and frame.message is not None:
                return frame.message

    def close(self) -> None:
        self._socket.close()


class Inbox(stomp.ConnectionListener):  # type: ignore[misc]  # stomp.py has no types
    def __init__(self) -> None:
        self.frames: queue.Queue[Frame] = queue.Queue()

    def on_message(self, frame: Frame) -> None:
        self.frames.put(frame)

    def next(self) -> Frame:
        return self.frames.get(timeout=PATIENCE_S)


class Meeting:
    """A broker whose one acceptor speaks both, and a client of each kind."""

    def __init__(self, broker: delosmq.Broker) -> None:
        self.jms = OpenWirePeer(broker)
        self.inbox = Inbox()
        self.stomp = stomp.Connection12([(broker.host, broker.stomp_port)])
        self.stomp.set_listener("inbox", self.inbox)
        self.stomp.connect(broker.user, broker.password, wait=True)

    def close(self) -> None:
        self.stomp.disconnect()
        self.jms.close()


@pytest.fixture
def meeting() -> Iterator[Meeting]:
    settings = default_settings()
    (acceptor,) = settings.acceptors
    both = replace(
        acceptor,
        protocols=("STOMP", "OPENWIRE"),
        anycast_prefixes=("jms.queue.",),
        multicast_prefixes=("jms.topic.",),
        virtual_topics=CLASSIC,
    )
    with delosmq.Broker(settings=replace(settings, acceptors=(both,)), http=False) as broker:
        made = Meeting(broker)
        yield made
        made.close()


def test_jms_asks_and_stomp_answers(meeting: Meeting) -> None:
    mine = meeting.jms.make_temporary()
    meeting.jms.consume(mine)
    meeting.stomp.subscribe("jms.queue.work", id="1")
    meeting.jms.send(destination_of("queue://work"), "grüß".encode(), reply_to=mine)
    question = meeting.inbox.next()
    assert question.body == "grüß"
    assert "content-length" not in question.headers
    meeting.stomp.send(question.headers["reply-to"], "answer", headers={"amq-msg-type": "text"})
    answer = meeting.jms.receive()
    assert (answer.code, answer.content) == (TEXT_MESSAGE, b"\0\0\0\6answer")


def test_stomp_asks_and_jms_answers(meeting: Meeting) -> None:
    meeting.jms.consume(destination_of("queue://work"))
    meeting.stomp.subscribe("/temp-queue/r", id="1")
    for reply_to in ("/temp-queue/r", "jms.queue.rr"):
        meeting.stomp.send("jms.queue.work", "question", headers={"reply-to": reply_to})
        answers = meeting.jms.receive().reply_to
        assert answers is not None
        meeting.jms.send(answers, b"answer")
        if not answers.is_temporary:
            assert answers.qualified_name() == "queue://rr"
            meeting.stomp.subscribe(reply_to, id="2")
        assert meeting.inbox.next().body == "answer"


def test_stomp_reads_a_virtual_topic(meeting: Meeting) -> None:
    meeting.stomp.set_listener("receipts", waiter := stomp.WaitingListener("subscribed"))
    meeting.stomp.subscribe("jms.queue.Consumer.A.VirtualTopic.x", id="1", headers={"receipt": "subscribed"})
    waiter.wait_on_receipt()
    meeting.jms.send(destination_of("topic://VirtualTopic.x"), b"news")
    frame = meeting.inbox.next()
    assert (frame.body, frame.headers["destination"]) == ("news", "jms.queue.Consumer.A.VirtualTopic.x")
