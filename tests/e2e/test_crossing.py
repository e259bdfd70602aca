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
from delosmq.wire.openwire.commands import TEXT_MESSAGE
from delosmq.wire.openwire.structures import destination_of
from tests.e2e.openwire_peer import OpenWirePeer
from tests.patience import PATIENCE_S


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
        connection = socket.create_connection((broker.host, broker.stomp_port), PATIENCE_S)
        self.jms = OpenWirePeer(connection, broker.user, broker.password)
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
    acceptor = settings.acceptors[0]
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
