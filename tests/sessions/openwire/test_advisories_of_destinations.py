"""Advisories of queues and topics, whoever makes them; who may listen, and what listening leaves behind."""

from dataclasses import replace

from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.settings import QueueSettings, SecurityMatch
from delosmq.sessions.openwire.server.protocol import ADVISORY_SETTINGS
from delosmq.wire.openwire.commands import (
    ADD_DESTINATION,
    REMOVE_DESTINATION,
    ConsumerInfo,
    DestinationInfo,
    MessageCommand,
    ProducerInfo,
    RemoveSubscriptionInfo,
)
from delosmq.wire.openwire.properties import decode_properties
from delosmq.wire.openwire.structures import TEMP_QUEUE, TEMP_TOPIC, Destination
from tests.sessions.openwire.support import ACCEPTOR, SECURITY, Client, OpenWireBench, Reader, code_of, queue, topic
from tests.sessions.support import EVERYTHING

QUEUES = topic("ActiveMQ.Advisory.Queue")
TOPICS = topic("ActiveMQ.Advisory.Topic")
TEMPORARY = topic("ActiveMQ.Advisory.TempQueue,ActiveMQ.Advisory.TempTopic")


def listen(client: Client, destination: Destination) -> Reader:
    return client.subscribe(client.consumer_info(destination, session=-1))


def told(reader: Reader) -> list[MessageCommand]:
    return [one.message for one in reader.take() if one.message is not None]


def destinations(reader: Reader) -> list[str]:
    """ "+" for those that were made, "-" for those that are gone."""
    found: list[str] = []
    for message in told(reader):
        info = message.data_structure
        assert isinstance(info, DestinationInfo)
        assert info.destination is not None
        signs = {ADD_DESTINATION: "+", REMOVE_DESTINATION: "-"}
        found.append(f"{signs[info.operation_type]}{info.destination.qualified_name()}")
    return found


# -- queues and topics -------------------------------------------------------------------------------------------------


def test_what_sends_and_subscriptions_make_is_told_of() -> None:
    bench = OpenWireBench()
    client = bench.connect("ID:me")
    queues, topics = listen(client, QUEUES), listen(client, TOPICS)
    client.publish(queue("a"), "m")
    (message,) = told(queues)
    info = message.data_structure
    assert isinstance(info, DestinationInfo)
    assert info.connection_id is not None
    assert info.connection_id.value == "ID:me"
    client.consume(queue("b"))
    client.consume(topic("t"))
    client.publish(topic("u"), "m")
    assert destinations(queues) == ["+queue://b"]
    assert destinations(topics) == ["+topic://t", "+topic://u"]
    client.publish(queue("a"), "m")
    client.publish(topic("t"), "m")
    assert (told(queues), told(topics)) == ([], [])


def test_what_an_operator_makes_and_deletes_is_told_of() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    queues, topics = listen(client, QUEUES), listen(client, TOPICS)
    bench.broker.resources.create_queue(QueueSettings("a", "a", ANYCAST))
    bench.broker.resources.create_queue(QueueSettings("part", "whole", ANYCAST))
    bench.broker.resources.create_address("t", {MULTICAST})
    bench.tick()
    assert destinations(queues) == ["+queue://a", "+queue://part"]
    assert destinations(topics) == ["+topic://t"]
    bench.broker.resources.delete_queue("a")
    bench.broker.resources.delete_address("t")
    bench.tick()
    assert destinations(queues) == ["-queue://a"]
    assert destinations(topics) == ["-topic://t"]


def test_clients_that_make_and_delete_them_by_command() -> None:
    bench = OpenWireBench()
    client = bench.connect("ID:me")
    queues = listen(client, QUEUES)
    info = DestinationInfo()
    info.destination = queue("a")
    client.ok(info)
    assert destinations(queues) == ["+queue://a"]
    info.operation_type = REMOVE_DESTINATION
    client.ok(info)
    assert destinations(queues) == ["-queue://a"]


def test_a_late_subscriber_is_told_what_is_there() -> None:
    bench = OpenWireBench(queues=(QueueSettings("a", "a"),))
    client = bench.connect(client_id="me")
    client.consume(topic("t"))
    client.consume(queue("Consumer.x.VirtualTopic.v"))
    client.durable("mine", topic("d"))
    assert destinations(listen(client, QUEUES)) == ["+queue://a", "+queue://Consumer.x.VirtualTopic.v"]
    assert destinations(listen(client, TOPICS)) == ["+topic://t", "+topic://VirtualTopic.v", "+topic://d"]


def test_who_listens_to_everything_is_not_told_what_is_there_but_when_it_goes() -> None:
    bench = OpenWireBench(queues=(QueueSettings("a", "a"),))
    client = bench.connect()
    reader = listen(client, topic("ActiveMQ.Advisory.>"))
    assert told(reader) == []
    bench.broker.resources.delete_queue("a")
    bench.tick()
    assert destinations(reader) == ["-queue://a"]


def test_what_is_for_the_broker_alone_is_not_told_of() -> None:
    bench = OpenWireBench(address_settings={"t": {"retroactive_message_count": 3}})
    client = bench.connect("ID:me")
    queues, topics = listen(client, QUEUES), listen(client, TOPICS)
    client.consume(topic("t"))
    client.consume(topic("news.>"))
    for name, code in (("ID:me:1", TEMP_QUEUE), ("ID:me:2", TEMP_TOPIC)):
        temporary = DestinationInfo()
        temporary.destination = Destination(name, code)
        client.ok(temporary)
    assert destinations(queues) == []
    assert destinations(topics) == ["+topic://t"]


def test_many_come_a_slice_at_a_time() -> None:
    bench = OpenWireBench()
    for number in range(250):
        bench.broker.resources.create_queue(QueueSettings(f"q{number}", f"q{number}", ANYCAST))
    client = bench.connect()
    assert len(destinations(listen(client, QUEUES))) == 250


def test_a_temporary_one_that_an_operator_deletes_is_gone_when_its_owner_says_so() -> None:
    bench = OpenWireBench()
    client = bench.connect("ID:me")
    info = DestinationInfo()
    info.destination = Destination("ID:me:1", TEMP_QUEUE)
    info.operation_type = ADD_DESTINATION
    client.ok(info)
    heard = listen(client, TEMPORARY)
    assert destinations(heard) == ["+temp-queue://ID:me:1"]
    bench.broker.resources.delete_queue("ID:me:1")
    bench.broker.resources.delete_address("ID:me:1")
    bench.tick()
    info.operation_type = REMOVE_DESTINATION
    client.ok(info)
    assert destinations(heard) == ["-temp-queue://ID:me:1"]


def test_many_temporary_ones_come_to_a_late_subscriber() -> None:
    bench = OpenWireBench()
    client = bench.connect("ID:me")
    for number in range(250):
        info = DestinationInfo()
        info.destination = Destination(f"ID:me:{number}", TEMP_QUEUE)
        client.feed(info)
    bench.tick()
    assert len(destinations(listen(bench.connect(), TEMPORARY))) == 250


# -- consumers, producers, connections ---------------------------------------------------------------------------------


def test_a_composite_consumer_is_told_of_once_and_a_producer_for_each_part() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    both = queue("a,b")
    consumers = listen(client, topic("ActiveMQ.Advisory.Consumer.>"))
    producers = listen(client, topic("ActiveMQ.Advisory.Producer.>"))
    client.consume(both)
    client.ok(client.producer_info(both))
    names = [one.destination.name for one in told(consumers) if one.destination is not None]
    assert names == ["ActiveMQ.Advisory.Consumer.Queue.a&sbquo;b"]
    names = [one.destination.name for one in told(producers) if one.destination is not None]
    assert names == ["ActiveMQ.Advisory.Producer.Queue.a", "ActiveMQ.Advisory.Producer.Queue.b"]
    late = listen(client, topic("ActiveMQ.Advisory.Producer.Queue.b"))
    (message,) = told(late)
    assert isinstance(message.data_structure, ProducerInfo)
    assert message.target_consumer_id is not None
    assert message.target_consumer_id.key() == late.id.key()


def test_consumers_of_other_protocols_count() -> None:
    bench = OpenWireBench(queues=(QueueSettings("a", "a"),))
    client = bench.connect()
    reader = listen(client, topic("ActiveMQ.Advisory.Consumer.Queue.a"))
    other = bench.connect()
    other.consume(queue("a,c"))
    client.consume(queue("a"))
    (message,) = told(reader)
    assert decode_properties(message.marshalled_properties)["consumerCount"].value == 2


def test_the_end_of_a_durable_subscription_is_told_of() -> None:
    bench = OpenWireBench()
    client = bench.connect(client_id="me")
    client.durable("mine", topic("t")).close()
    reader = listen(client, topic("ActiveMQ.Advisory.Consumer.Topic.t"))
    info = RemoveSubscriptionInfo()
    info.client_id = "me"
    info.subscription_name = "mine"
    client.ok(info)
    (message,) = told(reader)
    assert isinstance(message.data_structure, RemoveSubscriptionInfo)


def test_a_removal_is_not_told_of_once_its_temporary_destination_is_gone() -> None:
    bench = OpenWireBench()
    owner, other = bench.connect("ID:owner"), bench.connect()
    reader = listen(other, topic("ActiveMQ.Advisory.Consumer.>"))
    info = DestinationInfo()
    info.destination = Destination("ID:owner:1", TEMP_QUEUE)
    owner.ok(info)
    consumer = owner.consume(info.destination)
    (message,) = told(reader)
    assert isinstance(message.data_structure, ConsumerInfo)
    other_consumer = owner.consume(info.destination)
    other_consumer.close()
    assert len(told(reader)) == 2
    info.operation_type = REMOVE_DESTINATION
    owner.ok(info)
    consumer.close()
    assert told(reader) == []


def test_the_address_of_the_broker_is_that_of_its_acceptor() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    (message,) = told(listen(client, topic("ActiveMQ.Advisory.Connection")))
    entries = decode_properties(message.marshalled_properties)
    assert entries["originBrokerURL"].value == "tcp://localhost:61616"
    assert entries["originBrokerName"].value == "delosmq"


# -- who may listen ----------------------------------------------------------------------------------------------------


def test_without_advisories_clients_listen_in_vain() -> None:
    bench = OpenWireBench(acceptor=replace(ACCEPTOR, support_advisory=False))
    client = bench.connect("ID:me")
    readers = [listen(client, destination) for destination in (TEMPORARY, QUEUES)]
    info = DestinationInfo()
    info.destination = Destination("ID:me:1", TEMP_QUEUE)
    client.ok(info)
    client.publish(queue("a"), "m")
    assert [told(reader) for reader in readers] == [[], []]
    assert not [name for name in bench.broker.addresses if name.startswith("ActiveMQ.")]
    for reader in readers:
        reader.close()


def test_all_may_hear_of_temporary_destinations_and_others_need_a_right() -> None:
    mine = SecurityMatch("mine", dict(EVERYTHING.permissions))
    bench = OpenWireBench(security=(mine,))
    client = bench.connect()
    listen(client, TEMPORARY)
    refused = client.refused(client.consumer_info(QUEUES))
    assert refused.class_name == SECURITY
    assert "ActiveMQ.Advisory.Queue" in (refused.message or "")


def test_consuming_is_all_the_right_it_takes() -> None:
    only = SecurityMatch("ActiveMQ.Advisory.#", {"consume": frozenset({"all"})})
    bench = OpenWireBench(security=(only,))
    listen(bench.connect(), QUEUES)


# -- what it leaves ----------------------------------------------------------------------------------------------------


def test_advisory_topics_come_and_go_with_their_subscribers() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    readers = [listen(client, destination) for destination in (TEMPORARY, QUEUES, topic("ActiveMQ.Advisory.>"))]
    client.publish(queue("a"), "m")
    for reader in readers:
        reader.close()
    assert not [name for name in bench.broker.addresses if name.startswith("ActiveMQ.")]
    assert not [name for name in bench.broker.queues if name.startswith("ActiveMQ.")]


def test_nothing_is_kept_for_nobody() -> None:
    bench = OpenWireBench(address_settings={"#": {"advisory_for_delivery": True}})
    client = bench.connect()
    client.publish(queue("a"), "m")
    assert not [name for name in bench.broker.addresses if name.startswith("ActiveMQ.")]


def test_advisory_topics_have_settings_of_their_own() -> None:
    strict = {"auto_create_addresses": False, "expiry_delay": 5, "expiry_address": "late"}
    bench = OpenWireBench(
        address_settings={ADVISORY_SETTINGS.match: ADVISORY_SETTINGS.fields, "#": strict},
        queues=(QueueSettings("late", "late"),),
        acceptor=replace(ACCEPTOR, max_inactivity_duration_ms=0),
    )
    client = bench.connect()
    info = client.consumer_info(topic("ActiveMQ.Advisory.Connection"), 0)
    client.ok(info)
    bench.connect()
    bench.pass_time(60_000)
    assert bench.queue("late").message_count == 0
    assert bench.broker.addresses["ActiveMQ.Advisory.Connection"].multicast[0].message_count == 2


def test_clients_may_not_send_there() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    reader = listen(client, QUEUES)
    assert code_of(client.refused(client.text(QUEUES, "m1"))) == "SecurityException DMQ1002"
    assert reader.take() == []
