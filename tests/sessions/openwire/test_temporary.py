"""Temporary destinations: whose they are, who may use them, when they end."""

from dataclasses import replace

import pytest

from delosmq.wire.openwire.commands import ADD_DESTINATION, REMOVE_DESTINATION, DestinationInfo
from delosmq.wire.openwire.structures import TEMP_QUEUE, TEMP_TOPIC, ConnectionId, Destination
from tests.sessions.openwire.support import ACCEPTOR, Client, OpenWireBench, change, code_of, queue, throwable, topic

KINDS = (TEMP_QUEUE, TEMP_TOPIC)


def make(client: Client, code: int = TEMP_QUEUE, number: int = 1) -> Destination:
    """A temporary destination, named as clients do."""
    destination = Destination(f"{client.name}:{number}", code)
    client.ok(change(client, destination, ADD_DESTINATION))
    return destination


@pytest.mark.parametrize("code", KINDS)
def test_request_and_reply_across_connections(code: int) -> None:
    bench = OpenWireBench()
    server, client = bench.connect(), bench.connect()
    requests = server.consume(queue("requests"))
    answers = make(client, code)
    replies = client.consume(answers)
    request = client.text(queue("requests"), "question")
    request.reply_to = answers
    client.ok(request)
    (dispatch,) = requests.take()
    assert dispatch.message is not None
    assert dispatch.message.reply_to is not None
    assert dispatch.message.reply_to.code == code
    server.publish(dispatch.message.reply_to, "answer")
    (reply,) = replies.take()
    assert reply.message is not None
    assert reply.message.destination is not None
    assert reply.message.destination.code == code
    replies.done(0)


@pytest.mark.parametrize("code", KINDS)
def test_it_ends_with_its_connection(code: int) -> None:
    bench = OpenWireBench()
    owner, other = bench.connect(), bench.connect()
    destination = make(owner, code)
    owner.consume(destination)
    other.publish(destination, "x")
    owner.drop()
    assert destination.name not in bench.broker.addresses
    assert code_of(other.refused(other.text(destination, "y"))) == "DestinationDoesNotExistException DMQ5241"


@pytest.mark.parametrize("code", KINDS)
def test_it_ends_when_its_connection_says_so(code: int) -> None:
    bench = OpenWireBench()
    owner, other = bench.connect(), bench.connect()
    destination = make(owner, code)
    owner.ok(change(owner, destination, REMOVE_DESTINATION))
    assert destination.name not in bench.broker.addresses
    assert code_of(other.refused(other.text(destination, "y"))) == "DestinationDoesNotExistException DMQ5241"
    assert code_of(owner.refused(owner.consumer_info(destination))) == "DestinationDoesNotExistException DMQ5241"
    assert code_of(other.refused(other.producer_info(destination))) == "DestinationDoesNotExistException DMQ5241"
    # Again is nothing.
    owner.ok(change(owner, destination, REMOVE_DESTINATION))


@pytest.mark.parametrize("code", KINDS)
def test_it_is_not_made_twice(code: int) -> None:
    """A failover replays it."""
    bench = OpenWireBench()
    owner = bench.connect()
    destination = make(owner, code)
    owner.publish(destination, "kept")
    make(owner, code)
    assert destination.name in bench.broker.addresses


def test_its_name_is_its_owner_s() -> None:
    bench = OpenWireBench()
    owner, other = bench.connect(), bench.connect()
    destination = make(owner)
    for operation in (ADD_DESTINATION, REMOVE_DESTINATION):
        exception = other.refused(change(other, destination, operation))
        assert code_of(exception) == "InvalidDestinationException DMQ5242"
    other.publish(destination, "x")
    assert owner.consume(destination).bodies() == "x"


def test_it_may_be_deleted_while_somebody_reads_it() -> None:
    bench = OpenWireBench()
    owner = bench.connect()
    destination = make(owner)
    reader = owner.consume(destination)
    owner.ok(change(owner, destination, REMOVE_DESTINATION))
    assert destination.name not in bench.broker.addresses
    reader.close()


def test_a_connection_has_no_more_than_it_may() -> None:
    bench = OpenWireBench(acceptor=replace(ACCEPTOR, max_subscriptions=3))
    owner = bench.connect()
    for number in range(bench.acceptor.max_subscriptions):
        owner.feed(change(owner, Destination(f"{owner.name}:{number}", TEMP_QUEUE), ADD_DESTINATION))
    bench.tick()
    assert owner.take() == []
    one_more = change(owner, Destination(f"{owner.name}:more", TEMP_QUEUE), ADD_DESTINATION)
    assert code_of(owner.refused(one_more)) == "ResourceAllocationException DMQ5244"


def test_the_orderly_end_of_a_connection_ends_them_too() -> None:
    bench = OpenWireBench()
    owner = bench.connect()
    destinations = [make(owner, TEMP_QUEUE, 1), make(owner, TEMP_TOPIC, 2)]
    owner.ok(owner.remove_info(ConnectionId(owner.name)))
    assert not {destination.name for destination in destinations} & set(bench.broker.addresses)


def test_a_connection_that_comes_again_elsewhere_makes_its_own_anew() -> None:
    """A failover, before the broker knows that the old connection is gone."""
    bench = OpenWireBench()
    owner = bench.connect("ID:same")
    destination = make(owner)
    again = bench.connect("ID:same")
    assert destination.name not in bench.broker.addresses
    make(again)
    reader = again.consume(destination)
    bench.connect().publish(destination, "x")
    assert reader.bodies() == "x"


def test_nobody_makes_a_destination_in_the_name_of_another_connection() -> None:
    bench = OpenWireBench()
    watcher = bench.connect()
    heard = watcher.consume(topic("ActiveMQ.Advisory.TempQueue"))
    victim, liar = bench.connect("ID:victim"), bench.connect("ID:liar")
    wrong = change(liar, Destination("ID:victim:1", TEMP_QUEUE), ADD_DESTINATION)
    wrong.connection_id = ConnectionId(victim.name)
    assert code_of(throwable(liar.call(wrong))) == "JMSException DMQ5293"
    assert ("ID:victim:1" in bench.broker.addresses, heard.take()) == (False, [])
    # Who says nothing is known all the same.
    silent = change(liar, Destination("ID:liar:1", TEMP_QUEUE), ADD_DESTINATION)
    silent.connection_id = None
    liar.ok(silent)
    (told,) = heard.take()
    assert told.message is not None
    info = told.message.data_structure
    assert isinstance(info, DestinationInfo)
    assert info.connection_id is not None
    assert info.connection_id.value == "ID:liar"


@pytest.mark.parametrize("code", KINDS)
@pytest.mark.parametrize("name", ["orders", "ID:victim:1", "ID:liar", "ID:liar-2:1"])
def test_a_name_that_is_not_of_its_connection_is_refused(code: int, name: str) -> None:
    bench = OpenWireBench()
    liar = bench.connect("ID:liar")
    wrong = change(liar, Destination(name, code), ADD_DESTINATION)
    assert code_of(liar.refused(wrong)) == "InvalidDestinationException DMQ5295"
    assert name not in bench.broker.addresses


def test_what_is_there_already_does_not_become_temporary() -> None:
    bench = OpenWireBench()
    liar, other = bench.connect("ID:liar"), bench.connect()
    other.publish(queue("ID:liar:1"), "x")
    wrong = change(liar, Destination("ID:liar:1", TEMP_QUEUE), ADD_DESTINATION)
    assert code_of(liar.refused(wrong)) == "InvalidDestinationException DMQ5295"
    assert other.consume(queue("ID:liar:1")).bodies() == "x"
