"""Questions in one protocol, answers in the other: queues, topics and temporary destinations."""

import pytest

from delosmq.model.settings import AcceptorSettings, SecurityMatch
from delosmq.security.access import PERMISSIONS
from delosmq.wire.openwire.commands import ADD_DESTINATION, REMOVE_DESTINATION, DestinationInfo
from delosmq.wire.openwire.structures import TEMP_QUEUE, TEMP_TOPIC, TOPIC, Destination
from tests.sessions.openwire.stomp_peer import StompPeer
from tests.sessions.openwire.support import Client, OpenWireBench, Reader, code_of, queue, text_of, topic
from tests.sessions.openwire.test_temporary import make

WORK = queue("work")


def start() -> tuple[OpenWireBench, Client, StompPeer]:
    bench = OpenWireBench()
    return bench, bench.connect(), StompPeer(bench)


# -- OpenWire asks, STOMP answers --------------------------------------------------------------------------------------


def asked(client: Client, stomp: StompPeer, reply_to: Destination) -> str:
    """Where STOMP is to answer."""
    stomp.frame("SUBSCRIBE", "id:w", "destination:/queue/work")
    question = client.text(WORK, "question")
    question.reply_to = reply_to
    client.ok(question)
    (request,) = stomp.take()
    return request.headers["reply-to"]


@pytest.mark.parametrize(("reply_to", "shown"), [(queue("rr"), "/queue/rr"), (topic("rr"), "/topic/rr")])
def test_stomp_answers_to_a_queue_or_topic(reply_to: Destination, shown: str) -> None:
    _, client, stomp = start()
    replies = client.consume(reply_to)
    address = asked(client, stomp, reply_to)
    assert address == shown
    stomp.frame("SEND", f"destination:{address}", body=b"answer")
    assert replies.bodies() == "answer"


@pytest.mark.parametrize("code", [TEMP_QUEUE, TEMP_TOPIC])
def test_stomp_answers_to_a_temporary_destination_of_a_jms_client(code: int) -> None:
    _, client, stomp = start()
    mine = make(client, code)
    replies = client.consume(mine)
    address = asked(client, stomp, mine)
    assert address == f"/remote-temp-{'queue' if code == TEMP_QUEUE else 'topic'}/{mine.name}"
    stomp.frame("SEND", f"destination:{address}", "correlation-id:1", body=b"answer")
    (reply,) = replies.take()
    assert text_of(reply) == "answer"
    assert reply.message is not None
    assert reply.message.destination is not None
    assert reply.message.destination.qualified_name() == mine.qualified_name()
    client.drop()
    stomp.frame("SEND", f"destination:{address}", "receipt:r", body=b"late")
    assert [frame.command for frame in stomp.take()] == ["RECEIPT"]


def test_the_prefixes_are_those_of_the_consumer_s_acceptor() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    acceptor = AcceptorSettings(
        "other", "localhost", 0, ("STOMP",), anycast_prefixes=("jms.queue.",), multicast_prefixes=("jms.topic.",)
    )
    stomp = StompPeer(bench, acceptor)
    stomp.frame("SUBSCRIBE", "id:w", "destination:jms.queue.work")
    question = client.text(WORK, "question")
    question.reply_to = topic("rr")
    client.ok(question)
    (request,) = stomp.take()
    assert request.headers["reply-to"] == "jms.topic.rr"


# -- STOMP asks, OpenWire answers --------------------------------------------------------------------------------------


def asked_by_stomp(stomp: StompPeer, requests: Reader, reply_to: str) -> Destination:
    stomp.frame("SEND", "destination:/queue/work", f"reply-to:{reply_to}", body=b"question")
    (request,) = requests.take()
    assert request.message is not None
    assert request.message.reply_to is not None
    return request.message.reply_to


@pytest.mark.parametrize("reply_to", ["/queue/rr", "/topic/rr"])
def test_openwire_answers_to_a_queue_or_topic(reply_to: str) -> None:
    _, client, stomp = start()
    requests = client.consume(WORK)
    stomp.frame("SUBSCRIBE", "id:r", f"destination:{reply_to}")
    answers = asked_by_stomp(stomp, requests, reply_to)
    assert answers.qualified_name() == ("topic://rr" if answers.code == TOPIC else "queue://rr")
    client.publish(answers, "answer")
    assert [frame.body for frame in stomp.take()] == [b"answer"]


@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_openwire_answers_to_a_temporary_destination_of_stomp(kind: str) -> None:
    _, client, stomp = start()
    requests = client.consume(WORK)
    stomp.frame("SUBSCRIBE", "id:r", f"destination:/temp-{kind}/r")
    answers = asked_by_stomp(stomp, requests, f"/temp-{kind}/r")
    assert answers.is_temporary
    client.publish(answers, "answer")
    (reply,) = stomp.take()
    assert (reply.body, reply.headers["destination"]) == (b"answer", f"/temp-{kind}/r")
    stomp.drop()
    assert code_of(client.refused(client.text(answers, "late"))) == "DestinationDoesNotExistException DMQ5241"


def test_stomp_passes_a_question_of_jms_on_to_jms() -> None:
    bench, client, stomp = start()
    mine = make(client)
    address = asked(client, stomp, mine)
    others = bench.connect().consume(queue("more work"))
    stomp.frame("SEND", "destination:/queue/more work", f"reply-to:{address}", body=b"question")
    (request,) = others.take()
    assert request.message is not None
    assert request.message.reply_to is not None
    assert request.message.reply_to.qualified_name() == mine.qualified_name()


def test_jms_passes_a_question_of_stomp_on_to_stomp() -> None:
    bench, client, stomp = start()
    other = StompPeer(bench)
    stomp.frame("SUBSCRIBE", "id:r", "destination:/temp-queue/r")
    answers = asked_by_stomp(stomp, client.consume(queue("work")), "/temp-queue/r")
    other.frame("SUBSCRIBE", "id:w", "destination:/queue/more work")
    question = client.text(queue("more work"), "question")
    question.reply_to = answers
    client.ok(question)
    (request,) = other.take()
    assert request.headers["reply-to"] == answers.name.replace("temp-queue.", "/remote-temp-queue/")
    other.frame("SEND", f"destination:{request.headers['reply-to']}", body=b"answer")
    assert [frame.body for frame in stomp.take()] == [b"answer"]


def test_stomp_tells_who_asked_to_another_stomp_client_as_before() -> None:
    bench, _, stomp = start()
    other = StompPeer(bench)
    other.frame("SUBSCRIBE", "id:w", "destination:/queue/work")
    stomp.frame("SEND", "destination:/queue/work", "reply-to:/queue/rr", body=b"q")
    assert [frame.headers["reply-to"] for frame in other.take()] == ["/queue/rr"]


# -- clients refuse to send to what they have not heard of -------------------------------------------------------------


def told(reader: Reader) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    for dispatch in reader.take():
        assert dispatch.message is not None
        info = dispatch.message.data_structure
        assert isinstance(info, DestinationInfo)
        assert info.destination is not None
        found.append((info.destination.qualified_name(), info.operation_type))
    return found


def test_jms_clients_are_told_of_temporary_destinations_of_stomp() -> None:
    bench, client, stomp = start()
    advisories = client.consume(topic("ActiveMQ.Advisory.TempQueue"))
    stomp.frame("SUBSCRIBE", "id:r", "destination:/temp-queue/r")
    ((name, operation),) = told(advisories)
    assert operation == ADD_DESTINATION
    assert name.startswith("temp-queue://temp-queue.stomp")
    late = bench.connect().consume(topic("ActiveMQ.Advisory.TempQueue"))
    assert told(late) == [(name, ADD_DESTINATION)]
    stomp.drop()
    assert told(advisories) == [(name, REMOVE_DESTINATION)]


def test_those_from_before_the_first_jms_client_are_told_of_too() -> None:
    bench = OpenWireBench()
    stomp = StompPeer(bench)
    stomp.frame("SUBSCRIBE", "id:r", "destination:/temp-queue/r")
    ((_, operation),) = told(bench.connect().consume(topic("ActiveMQ.Advisory.TempQueue")))
    assert operation == ADD_DESTINATION


# -- what is temporary by name alone gets nobody round permissions -----------------------------------------------------


def test_a_queue_is_not_a_temporary_one_because_it_is_called_so() -> None:
    everyone = frozenset({"all"})
    nothing_there = SecurityMatch("secret", {permission: frozenset() for permission in PERMISSIONS})
    elsewhere = SecurityMatch("#", dict.fromkeys(PERMISSIONS, everyone))
    bench = OpenWireBench(security=(elsewhere, nothing_there))
    bench.broker.resources.create_address("secret", {1})
    client = bench.connect()
    disguised = Destination("secret", TEMP_QUEUE)
    assert "DMQ5241" in code_of(client.refused(client.text(disguised, "x")))
    assert "DMQ5241" in code_of(client.refused(client.consumer_info(disguised)))
