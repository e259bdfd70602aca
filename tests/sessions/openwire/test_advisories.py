"""What the broker tells: connections, temporary destinations, consumers, producers."""

import pytest

from delosmq.sessions.openwire.server.advisories.pending_advisories import (
    NOTICES_AT_MOST,
    PendingAdvisories,
    PendingAdvisory,
)
from delosmq.sessions.openwire.server.advisories.publisher import AdvisoryListener, AdvisoryPublisher
from delosmq.sessions.openwire.server.protocol import OpenWireProtocol
from delosmq.wire.openwire.commands import (
    ACTIVEMQ_MESSAGE,
    ADD_DESTINATION,
    REMOVE_DESTINATION,
    STANDARD_ACK,
    ConnectionInfo,
    ConsumerInfo,
    DestinationInfo,
    MessageCommand,
    ProducerInfo,
    RemoveInfo,
)
from delosmq.wire.openwire.negotiation import WireFormatInfo
from delosmq.wire.openwire.properties import decode_properties
from delosmq.wire.openwire.structures import TEMP_QUEUE, TEMP_TOPIC, BrokerId, ConnectionId, ConsumerId, Destination
from tests.sessions.openwire.support import Client, OpenWireBench, Reader, queue, topic

TEMPORARY = topic("ActiveMQ.Advisory.TempQueue,ActiveMQ.Advisory.TempTopic")
CONNECTIONS = topic("ActiveMQ.Advisory.Connection")
A = queue("a")
SETTINGS = {match.match: dict(match.fields) for match in OpenWireProtocol().address_settings}


def listen(client: Client, destination: Destination = TEMPORARY) -> Reader:
    """As clients do: a consumer on session -1, which they do not announce."""
    return client.subscribe(client.consumer_info(destination, session=-1))


def told(reader: Reader) -> list[MessageCommand]:
    return [one.message for one in reader.take() if one.message is not None]


def change(client: Client, code: int, operation: int) -> DestinationInfo:
    info = DestinationInfo()
    info.connection_id = ConnectionId(client.name)
    info.destination = Destination(f"{client.name}:1", code)
    info.operation_type = operation
    return info


def operations(reader: Reader) -> list[tuple[str, int]]:
    """What was told of destinations."""
    found: list[tuple[str, int]] = []
    for message in told(reader):
        info = message.data_structure
        assert isinstance(info, DestinationInfo)
        assert info.destination is not None
        found.append((info.destination.qualified_name(), info.operation_type))
    return found


# -- temporary destinations --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("code", "name"), [(TEMP_QUEUE, "temp-queue"), (TEMP_TOPIC, "temp-topic")])
def test_all_are_told_of_a_temporary_destination_and_of_its_end(code: int, name: str) -> None:
    bench = OpenWireBench()
    owner, other = bench.connect("ID:owner"), bench.connect()
    readers = [listen(owner), listen(other)]
    owner.ok(change(owner, code, ADD_DESTINATION))
    assert [operations(reader) for reader in readers] == [[(f"{name}://ID:owner:1", ADD_DESTINATION)]] * 2
    owner.ok(change(owner, code, REMOVE_DESTINATION))
    assert [operations(reader) for reader in readers] == [[(f"{name}://ID:owner:1", REMOVE_DESTINATION)]] * 2


def test_all_are_told_before_its_owner_is_answered() -> None:
    bench = OpenWireBench()
    owner = bench.connect("ID:owner")
    reader = listen(owner)
    command_id = owner.feed(change(owner, TEMP_QUEUE, ADD_DESTINATION), answer=True)
    bench.tick()
    assert len(operations(reader)) == 1
    assert len(owner.answers(command_id)) == 1


def test_a_late_subscriber_is_told_what_is_there() -> None:
    bench = OpenWireBench()
    owner, other = bench.connect("ID:owner"), bench.connect()
    early = listen(other)
    owner.ok(change(owner, TEMP_QUEUE, ADD_DESTINATION))
    operations(early)
    assert operations(listen(bench.connect())) == [("temp-queue://ID:owner:1", ADD_DESTINATION)]
    assert operations(early) == []


def test_a_late_subscriber_is_not_told_what_is_gone() -> None:
    bench = OpenWireBench()
    owner = bench.connect("ID:owner")
    owner.ok(change(owner, TEMP_QUEUE, ADD_DESTINATION))
    owner.drop()
    assert operations(listen(bench.connect())) == []


def test_the_end_of_a_connection_tells_of_its_temporary_destinations() -> None:
    bench = OpenWireBench()
    owner, other = bench.connect("ID:owner"), bench.connect()
    reader = listen(other)
    owner.ok(change(owner, TEMP_QUEUE, ADD_DESTINATION))
    operations(reader)
    owner.drop()
    assert operations(reader) == [("temp-queue://ID:owner:1", REMOVE_DESTINATION)]


def test_an_advisory_looks_as_clients_expect_it() -> None:
    bench = OpenWireBench()
    owner = bench.connect("ID:owner")
    reader = listen(owner)
    owner.ok(change(owner, TEMP_QUEUE, ADD_DESTINATION))
    (message,) = told(reader)
    assert (message.code, message.type, message.persistent) == (ACTIVEMQ_MESSAGE, "Advisory", False)
    assert message.destination is not None
    assert message.destination.qualified_name() == "topic://ActiveMQ.Advisory.TempQueue"
    names = set(decode_properties(message.marshalled_properties))
    assert {"originBrokerId", "originBrokerName", "originBrokerURL"} <= names


def test_the_consumer_of_advisories_acknowledges_as_clients_do() -> None:
    bench = OpenWireBench()
    owner = bench.connect("ID:owner")
    reader = owner.subscribe(owner.consumer_info(TEMPORARY, 4, session=-1))
    for _ in range(3):
        owner.ok(change(owner, TEMP_QUEUE, ADD_DESTINATION))
        owner.ok(change(owner, TEMP_QUEUE, REMOVE_DESTINATION))
    assert len(reader.take()) == 4
    owner.tell(reader.ack(STANDARD_ACK, 2, count=3))
    assert len(reader.take()) == 2


# -- connections -------------------------------------------------------------------------------------------------------


def test_connections_are_told_of_without_their_passwords() -> None:
    bench = OpenWireBench()
    reader = listen(bench.connect("ID:me"), CONNECTIONS)
    (mine,) = told(reader)
    assert isinstance(mine.data_structure, ConnectionInfo)
    other = bench.connect("ID:other", client_id="them")
    (message,) = told(reader)
    info = message.data_structure
    assert isinstance(info, ConnectionInfo)
    assert info.connection_id is not None
    assert (info.connection_id.value, info.client_id, info.password) == ("ID:other", "them", "")
    other.drop()
    (message,) = told(reader)
    assert isinstance(message.data_structure, RemoveInfo)
    assert isinstance(message.data_structure.object_id, ConnectionId)


# -- consumers and producers -------------------------------------------------------------------------------------------


def counts(messages: list[MessageCommand], name: str) -> list[object]:
    return [decode_properties(message.marshalled_properties)[name].value for message in messages]


def test_consumers_are_told_of_and_counted() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    reader = listen(client, topic("ActiveMQ.Advisory.Consumer.Queue.a"))
    first, second = client.consume(A), client.consume(A)
    messages = told(reader)
    assert counts(messages, "consumerCount") == [1, 2]
    info = messages[0].data_structure
    assert isinstance(info, ConsumerInfo)
    assert info.consumer_id is not None
    assert info.consumer_id.key() == first.id.key()
    second.close()
    (message,) = told(reader)
    assert counts([message], "consumerCount") == [1]
    assert isinstance(message.data_structure, RemoveInfo)
    assert isinstance(message.data_structure.object_id, ConsumerId)
    client.consume(topic("elsewhere"))
    assert told(reader) == []


def test_a_late_subscriber_is_told_of_consumers() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    client.consume(A)
    messages = told(listen(client, topic("ActiveMQ.Advisory.Consumer.Queue.a")))
    assert counts(messages, "consumerCount") == [1]


def test_producers_are_told_of_and_counted() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    reader = listen(client, topic("ActiveMQ.Advisory.Producer.Topic.t"))
    first, second = client.producer_info(topic("t")), client.producer_info(topic("t"))
    client.ok(first)
    client.ok(second)
    client.ok(client.producer_info(None))
    messages = told(reader)
    assert counts(messages, "producerCount") == [1, 2]
    assert isinstance(messages[0].data_structure, ProducerInfo)
    client.ok(client.remove_info(first.producer_id))
    (message,) = told(reader)
    assert counts([message], "producerCount") == [1]


def test_the_end_of_a_connection_tells_of_all_that_it_had() -> None:
    bench = OpenWireBench()
    client, other = bench.connect(), bench.connect()
    consumers = listen(client, topic("ActiveMQ.Advisory.Consumer.>"))
    producers = listen(client, topic("ActiveMQ.Advisory.Producer.>"))
    other.consume(A)
    other.ok(other.producer_info(A))
    told(consumers)
    told(producers)
    other.drop()
    assert counts(told(consumers), "consumerCount") == [0]
    assert counts(told(producers), "producerCount") == [0]


def test_consumers_of_advisories_are_not_told_of() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    reader = listen(client, topic("ActiveMQ.Advisory.Consumer.>"))
    listen(client)
    assert told(reader) == []


def test_versions_that_know_less_are_told_too() -> None:
    bench = OpenWireBench()
    owner = bench.connect("ID:owner")
    old = bench.negotiate(WireFormatInfo(1))
    old.log_in("ID:old")
    reader = listen(old)
    owner.ok(change(owner, TEMP_QUEUE, ADD_DESTINATION))
    assert operations(reader) == [("temp-queue://ID:owner:1", ADD_DESTINATION)]


def test_a_listener_that_does_not_keep_up_misses_the_oldest() -> None:
    bench = OpenWireBench(address_settings=SETTINGS)
    client = bench.connect()
    reader = client.subscribe(client.consumer_info(topic("ActiveMQ.Advisory.Consumer.>"), 1, session=-1))
    for _ in range(505):
        client.consume(A).close()
    (kept,) = (one for one in bench.broker.queues.values() if one.name != "a")
    assert kept.message_count == 1_001  # one is in delivery
    assert len(reader.take()) == 1


def test_a_new_listener_is_told_of_all_temporary_destinations() -> None:
    bench = OpenWireBench(address_settings=SETTINGS)
    for name in ("ID:one", "ID:two"):
        owner = bench.connect(name)
        for number in range(750):
            info = change(owner, TEMP_QUEUE, ADD_DESTINATION)
            info.destination = Destination(f"{name}:{number}", TEMP_QUEUE)
            owner.feed(info)
        bench.tick()
    client = bench.connect()
    reader = client.subscribe(client.consumer_info(topic("ActiveMQ.Advisory.TempQueue"), 10, session=-1))
    (kept,) = bench.broker.addresses["ActiveMQ.Advisory.TempQueue"].multicast
    assert kept.message_count == 1_500
    assert len(reader.take()) == 10


class Nothing(PendingAdvisory):
    def __init__(self, told: list[str], name: str) -> None:
        self._told = told
        self._name = name

    def tell(self, room: int) -> int:
        self._told.append(self._name)
        return room


def test_what_a_new_listener_needs_is_told_however_much_else_waits() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    publisher = AdvisoryPublisher(bench.broker, bench.clock, BrokerId("b"), "b")
    reader = client.consume(topic("t"))
    (consumer,) = bench.broker.addresses["t"].multicast[0].holders
    publisher.join(AdvisoryListener("t", consumer, reader.id, client.host))
    notices = PendingAdvisories(publisher)
    told: list[str] = []
    for _ in range(NOTICES_AT_MOST):
        notices.add(Nothing(told, ""))
    notices.add(Nothing(told, "lost"))
    notices.add(Nothing(told, "needed"), needed=True)
    while len(told) <= NOTICES_AT_MOST:
        notices.go_on()
    assert told[-1] == "needed"
    assert "lost" not in told
