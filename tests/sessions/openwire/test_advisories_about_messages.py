"""Advisories about messages and full addresses, each behind its setting. Source: ActiveMQ Classic 5.17."""

import pytest

from delosmq.engine.queues.credit import OpenCredit
from delosmq.model.ids import WallMs
from delosmq.model.message import ANYCAST, MULTICAST, TEXT_BODY, Message
from delosmq.model.settings import AddressFullPolicy, QueueSettings
from delosmq.sessions.openwire.server.advisories.pending_advisories import (
    NOTICES_AT_MOST,
    PendingAdvisories,
    PendingAdvisory,
)
from delosmq.sessions.openwire.server.advisories.publisher import AdvisoryListener, AdvisoryPublisher
from delosmq.wire.openwire.commands import (
    INDIVIDUAL_ACK,
    POISON_ACK,
    STANDARD_ACK,
    TEXT_MESSAGE,
    ConsumerInfo,
    DestinationInfo,
    MessageCommand,
    ProducerInfo,
)
from delosmq.wire.openwire.negotiation import WireFormatInfo
from delosmq.wire.openwire.properties import decode_properties
from delosmq.wire.openwire.structures import TEMP_QUEUE, BrokerId, ConsumerId, Destination
from tests.engine.support import Collector
from tests.sessions.openwire.support import Client, OpenWireBench, Reader, queue, topic
from tests.sessions.support import Host

Q = queue("q")
T = topic("t")


def bench_with(**fields: object) -> OpenWireBench:
    fields.setdefault("dead_letter_address", "DLQ")
    fields.setdefault("expiry_address", "DLQ")
    return OpenWireBench(queues=(QueueSettings("DLQ", "DLQ"),), address_settings={"#": fields})


def listen(client: Client, name: str) -> Reader:
    return client.subscribe(client.consumer_info(topic(f"ActiveMQ.Advisory.{name}"), session=-1))


def told(reader: Reader) -> list[MessageCommand]:
    return [one.message for one in reader.take() if one.message is not None]


def about(reader: Reader) -> list[str]:
    """The bodies of the messages that were told of; "-" for none."""
    found: list[str] = []
    for advisory in told(reader):
        message = advisory.data_structure
        assert isinstance(message, MessageCommand)
        assert message.code == TEXT_MESSAGE
        found.append("-" if message.content is None else message.content[4:].decode())
    return found


def properties(advisory: MessageCommand) -> dict[str, object]:
    """Those that not every advisory has."""
    entries = decode_properties(advisory.marshalled_properties)
    return {name: typed.value for name, typed in entries.items() if not name.startswith("originBroker")}


def send(client: Client, destination: Destination, body: str, *, persistent: bool = True) -> None:
    client.ok(client.text(destination, body, persistent=persistent))


# -- always ------------------------------------------------------------------------------------------------------------


def test_an_expired_message_is_told_of_and_is_a_dead_letter() -> None:
    bench = bench_with()
    client = bench.connect()
    expired, dead = listen(client, "Expired.Queue.q"), listen(client, "MessageDLQd.Queue.q")
    command = client.text(Q, "old")
    command.expiration = bench.clock.wall_ms() + 5
    client.ok(command)
    bench.pass_time(10)
    client.consume(Q)
    (advisory,) = told(expired)
    message = advisory.data_structure
    assert isinstance(message, MessageCommand)
    assert (message.content, advisory.priority) == (None, 0)
    assert command.message_id is not None
    assert properties(advisory) == {"orignalMessageId": command.message_id.key()}
    assert about(dead) == ["-"]


def test_without_a_place_for_it_an_expired_message_is_no_dead_letter() -> None:
    bench = bench_with(expiry_address="")
    client = bench.connect()
    expired, dead = listen(client, "Expired.Queue.q"), listen(client, "MessageDLQd.Queue.q")
    command = client.text(Q, "old")
    command.expiration = bench.clock.wall_ms() + 5
    client.ok(command)
    bench.pass_time(10)
    client.consume(Q)
    assert (about(expired), about(dead)) == (["-"], [])


def test_a_poisonous_message_is_told_of_as_a_dead_letter() -> None:
    bench = bench_with()
    client = bench.connect()
    dead = listen(client, "MessageDLQd.Queue.q")
    send(client, Q, "bad")
    reader = client.consume(Q)
    reader.take()
    client.ok(reader.ack(POISON_ACK, 0, first=0))
    (advisory,) = told(dead)
    assert properties(advisory) == {}
    assert isinstance(advisory.data_structure, MessageCommand)
    assert advisory.data_structure.destination is not None
    assert advisory.data_structure.destination.qualified_name() == "queue://q"


def test_a_dropped_message_is_no_dead_letter() -> None:
    bench = bench_with(dead_letter_address="")
    client = bench.connect()
    dead = listen(client, "MessageDLQd.>")
    send(client, Q, "bad")
    reader = client.consume(Q)
    reader.take()
    client.ok(reader.ack(POISON_ACK, 0, first=0))
    assert about(dead) == []


def test_what_expires_for_a_subscription_is_told_of_its_topic() -> None:
    bench = bench_with()
    client = bench.connect(client_id="me")
    client.durable("mine", T).close()
    expired = listen(client, "Expired.Topic.t")
    command = client.text(T, "old")
    command.expiration = bench.clock.wall_ms() + 5
    client.ok(command)
    bench.pass_time(10)
    client.durable("mine", T)
    assert about(expired) == ["-"]


# -- behind settings ---------------------------------------------------------------------------------------------------


def test_each_message_that_is_sent() -> None:
    bench = bench_with(advisory_for_delivery=True)
    client = bench.connect()
    queues, topics = listen(client, "MessageDelivered.Queue.q"), listen(client, "MessageDelivered.Topic.t")
    send(client, Q, "m1")
    send(client, T, "m2")  # nobody takes it
    (advisory,) = told(queues)
    assert properties(advisory).keys() == {"orignalMessageId", "orignalDestination"}
    assert properties(advisory)["orignalDestination"] == "queue://q"
    assert about(topics) == ["-"]
    client.consume(T)
    client.consume(T)
    send(client, T, "m3")
    assert about(topics) == ["-"]  # one, however many take it


def test_a_queue_that_is_deleted_amid_a_large_commit_harms_nobody() -> None:
    bench = OpenWireBench(queues=(QueueSettings("q", "q"),), address_settings={"#": {"advisory_for_delivery": True}})
    client = bench.connect()
    delivered = listen(client, "MessageDelivered.Queue.q")
    transaction = client.begin()
    for number in range(2_000):
        client.feed(client.text(Q, f"m{number}", transaction))
    bench.tick()
    client.feed(client.transaction_info(transaction, 2))
    while bench.queue("q").message_count == 0:
        assert bench.broker.tick()
    assert bench.queue("q").message_count < 2_000
    bench.broker.resources.delete_queue("q")
    bench.tick()
    told(delivered)
    send(client, Q, "after")
    assert about(delivered) == ["-"]
    assert not client.host.finished


def test_a_message_to_a_virtual_topic_is_told_of_for_its_queues_and_for_the_topic() -> None:
    bench = bench_with(advisory_for_delivery=True)
    client = bench.connect()
    reader = listen(client, "MessageDelivered.>")
    a, b, virtual = queue("Consumer.A.VirtualTopic.x"), queue("Consumer.B.VirtualTopic.x"), topic("VirtualTopic.x")
    client.consume(a)
    client.consume(b)

    def heard() -> list[object]:
        return [properties(advisory)["orignalDestination"] for advisory in told(reader)]

    send(client, virtual, "m1")
    assert heard() == [f"queue://{a.name}", f"queue://{b.name}", f"topic://{virtual.name}"]
    send(client, a, "m2")  # this queue alone
    assert heard() == [f"queue://{a.name}"]
    client.consume(virtual)
    send(client, virtual, "m3")
    assert sorted(map(str, heard())) == [f"queue://{a.name}", f"queue://{b.name}", f"topic://{virtual.name}"]


def test_each_message_that_is_sent_in_a_transaction_is_told_of_at_its_commit() -> None:
    bench = bench_with(advisory_for_delivery=True, include_body_for_advisory=True)
    client = bench.connect()
    reader = listen(client, "MessageDelivered.Queue.q")
    transaction = client.begin()
    client.publish(Q, "m1 m2", transaction)
    assert about(reader) == []
    client.ok(client.transaction_info(transaction, 2))
    assert about(reader) == ["m1", "m2"]


def test_each_message_that_is_consumed() -> None:
    bench = bench_with(advisory_for_consumed=True, include_body_for_advisory=True)
    client = bench.connect()
    consumed = listen(client, "MessageConsumed.Queue.q")
    client.publish(Q, "m1 m2 m3 m4")
    reader = client.consume(Q)
    reader.take()
    reader.done(0)
    assert about(consumed) == ["m1"]
    client.ok(reader.ack(INDIVIDUAL_ACK, 2))
    transaction = client.begin()
    client.ok(reader.ack(STANDARD_ACK, 1, first=1, transaction=transaction))
    assert about(consumed) == ["m3"]
    client.ok(client.transaction_info(transaction, 2))
    reader.done(3, 3)
    assert about(consumed) == ["m2", "m4"]


def test_what_a_transaction_consumed_of_a_queue_that_was_deleted_meanwhile_is_told() -> None:
    bench = bench_with(advisory_for_consumed=True)
    consumed = listen(bench.connect(), "MessageConsumed.Queue.q")
    for number in range(50):
        client = bench.connect()
        client.publish(Q, f"m{number}")
        reader = client.consume(Q)
        reader.take()
        transaction = client.begin()
        client.ok(reader.ack(STANDARD_ACK, 0, transaction=transaction))
        bench.broker.resources.delete_queue("q")
        bench.tick()
        assert about(consumed) == []
        client.ok(client.transaction_info(transaction, 2))
        assert about(consumed) == ["-"]
        client.drop()
        bench.tick()
    assert 0 < len(bench.broker.bindings.deleted) < 20


@pytest.mark.parametrize("again", [True, False], ids=["deleted-again", "there"])
def test_what_a_transaction_consumed_is_told_of_its_queue_though_another_one_has_the_name_now(again: bool) -> None:
    bench = bench_with(advisory_for_consumed=True)
    of_queue = listen(bench.connect(), "MessageConsumed.Queue.q")
    of_topics = listen(bench.connect(), "MessageConsumed.Topic.>")
    client = bench.connect()
    client.publish(Q, "m1")
    reader = client.consume(Q)
    reader.take()
    first = client.begin()
    client.ok(reader.ack(STANDARD_ACK, 0, transaction=first))
    reader.close()
    bench.broker.resources.delete_queue("q")
    bench.broker.resources.create_queue(QueueSettings("q", "t", MULTICAST))
    bench.tick()
    second = client.begin()
    if again:
        client.publish(T, "m2")
        reader = client.consume(topic("t::q"))
        reader.take()
        client.ok(reader.ack(STANDARD_ACK, 0, transaction=second))
        bench.broker.resources.delete_queue("q")
        bench.tick()
    client.ok(client.transaction_info(first, 2))
    assert (len(told(of_queue)), len(told(of_topics))) == (1, 0)
    client.ok(client.transaction_info(second, 2))
    assert (len(told(of_queue)), len(told(of_topics))) == (0, int(again))


def test_topics_tell_of_consumed_messages_for_durable_subscriptions_alone() -> None:
    bench = bench_with(advisory_for_consumed=True)
    client = bench.connect(client_id="me")
    consumed = listen(client, "MessageConsumed.Topic.t")
    plain, durable = client.consume(T), client.durable("mine", T)
    send(client, T, "m1")
    plain.take()
    durable.take()
    plain.done(0)
    assert about(consumed) == []
    durable.done(0)
    assert about(consumed) == ["-"]


def test_a_message_without_a_consumer_comes_itself() -> None:
    bench = bench_with(advisory_if_no_consumers=True)
    client = bench.connect()
    queues, topics = listen(client, "NoConsumer.Queue.q"), listen(client, "NoConsumer.Topic.t")
    for destination, reader in ((Q, queues), (T, topics)):
        send(client, destination, "kept")
        assert told(reader) == []
        send(client, destination, "lost", persistent=False)
        (message,) = told(reader)
        assert message.content == b"\0\0\0\4lost"
        assert (message.code, message.type, message.priority) == (TEXT_MESSAGE, None, 4)
        assert properties(message) == {}
        assert message.destination is not None
        assert message.destination.name.startswith("ActiveMQ.Advisory.NoConsumer.")
        client.consume(destination)
        send(client, destination, "read", persistent=False)
        assert told(reader) == []


def test_what_a_ring_discards() -> None:
    bench = bench_with(advisory_for_discarding_messages=True, default_ring_size=1, include_body_for_advisory=True)
    client = bench.connect()
    discarded = listen(client, "MessageDiscarded.Topic.t")
    reader = client.consume(T, 1)
    client.publish(T, "m1 m2 m3 m4")
    assert reader.bodies() == "m1"
    first, second = told(discarded)
    assert isinstance(second.data_structure, MessageCommand)
    assert second.data_structure.content == b"\0\0\0\2m3"
    assert properties(first)["discardedCount"] == 1
    assert properties(second)["discardedCount"] == 2
    assert properties(second)["consumerId"] == reader.id.key()
    assert properties(second)["orignalDestination"] == "topic://t"


def test_a_full_address_and_its_fast_producer() -> None:
    bench = OpenWireBench(
        address_settings={
            "q": {
                "max_size_messages": 1,
                "address_full_policy": AddressFullPolicy.FAIL,
                "advisory_when_full": True,
                "advisory_for_fast_producers": True,
            }
        }
    )
    client = bench.connect()
    full, fast = listen(client, "FULL.Queue.q"), listen(client, "FastProducer.Queue.q")
    producer = client.producer_info(Q)
    client.ok(producer)
    send(client, Q, "m1")
    assert (told(full), told(fast)) == ([], [])
    command = client.text(Q, "m2")
    command.producer_id = producer.producer_id
    client.refused(command)
    (advisory,) = told(full)
    assert advisory.data_structure is None
    assert properties(advisory).keys() == {"usageName", "usageCount"}
    assert properties(advisory)["usageName"] == "memory"
    (advisory,) = told(fast)
    assert isinstance(advisory.data_structure, ProducerInfo)
    assert producer.producer_id is not None
    assert properties(advisory) == {"producerId": producer.producer_id.key()}


def test_a_slow_consumer_of_a_queue() -> None:
    bench = bench_with(advisory_for_slow_consumers=True)
    client = bench.connect()
    slow = listen(client, "SlowConsumer.Queue.q")
    reader = client.consume(Q, 2)
    client.publish(Q, "m1 m2")
    assert told(slow) == []
    client.publish(Q, "m3 m4")
    (advisory,) = told(slow)
    assert isinstance(advisory.data_structure, ConsumerInfo)
    assert properties(advisory) == {"consumerId": reader.id.key()}
    reader.take()
    reader.done(0, 1)
    assert reader.bodies() == "m3 m4"
    client.publish(Q, "m5")
    assert len(told(slow)) == 1  # it was quick meanwhile


def test_a_slow_consumer_of_a_topic_has_more_waiting_than_its_prefetch() -> None:
    bench = bench_with(advisory_for_slow_consumers=True)
    client = bench.connect()
    slow = listen(client, "SlowConsumer.Topic.t")
    reader = client.consume(T, 2)
    client.publish(T, "m1 m2 m3 m4")
    assert told(slow) == []
    client.publish(T, "m5")
    bench.pass_time(20_000)  # it is looked at now and then
    assert len(told(slow)) == 1
    client.publish(T, "m6")
    bench.pass_time(5_000)
    assert told(slow) == []
    reader.close()


def test_one_that_was_full_twice_is_told_of_once() -> None:
    bench = bench_with(advisory_for_slow_consumers=True)
    client = bench.connect()
    slow = listen(client, "SlowConsumer.Topic.t")
    reader = client.consume(T, 2)
    client.publish(T, "m1 m2 m3")
    reader.take()
    reader.done(0, 1)
    client.publish(T, "m4 m5 m6 m7")
    bench.pass_time(11_000)
    assert len(told(slow)) == 1


def test_a_consumer_that_has_room_again_is_not_slow() -> None:
    bench = bench_with(advisory_for_slow_consumers=True)
    client = bench.connect()
    slow = listen(client, "SlowConsumer.Topic.t")
    reader = client.consume(T, 2)
    client.publish(T, "m1 m2 m3")
    reader.take()
    reader.done(0, 1)
    assert reader.bodies() == "m3"
    client.publish(T, "m4")
    bench.pass_time(11_000)
    assert told(slow) == []
    client.publish(T, "m5 m6 m7")
    bench.pass_time(11_000)
    assert len(told(slow)) == 1


@pytest.mark.parametrize(
    "name",
    ["MessageDelivered", "MessageConsumed", "NoConsumer", "MessageDiscarded", "SlowConsumer", "FULL", "FastProducer"],
)
def test_by_default_nothing_is_told_of_these(name: str) -> None:
    bench = OpenWireBench(address_settings={"q": {"default_ring_size": 2}})
    client = bench.connect()
    heard = listen(client, f"{name}.>")
    for _ in range(3):
        send(client, Q, "m", persistent=False)
    reader = client.consume(Q, 1)
    reader.take()
    reader.done(0)
    assert told(heard) == []


# -- who is told, and when ---------------------------------------------------------------------------------------------


def test_nothing_is_told_of_advisories_themselves() -> None:
    bench = bench_with(advisory_for_delivery=True, advisory_for_consumed=True, advisory_if_no_consumers=True)
    client = bench.connect()
    everything = listen(client, ">")
    send(client, Q, "m1")
    names = [one.destination.name for one in told(everything) if one.destination is not None]
    assert [name for name in names if "Message" in name] == ["ActiveMQ.Advisory.MessageDelivered.Queue.q"]


def test_messages_of_other_protocols_and_of_management_are_told_of_too() -> None:
    bench = bench_with(advisory_for_delivery=True)
    client = bench.connect()
    reader = listen(client, "MessageDelivered.Queue.q")
    bench.broker.resources.create_queue(QueueSettings("q", "q", ANYCAST))
    head = b"SEND\ndestination:/queue/q\n\n"
    bench.broker.producers.send(Message("q", "stomp/12", head, b"hello", body_kind=TEXT_BODY, timestamp_ms=WallMs(1)))
    bench.tick()
    assert about(reader) == ["-"]


@pytest.mark.parametrize("version", [1, 9, 11])
def test_older_clients_are_told_too(version: int) -> None:
    bench = bench_with(advisory_for_delivery=True, advisory_if_no_consumers=True, include_body_for_advisory=True)
    client, old = bench.connect(), bench.negotiate(WireFormatInfo(version))
    old.log_in("ID:old")
    delivered, itself = listen(old, "MessageDelivered.Queue.q"), listen(old, "NoConsumer.Queue.q")
    send(client, Q, "m1", persistent=False)
    assert about(delivered) == ["m1"]
    assert itself.bodies() == "m1"


def test_many_are_told_a_slice_at_a_time() -> None:
    bench = bench_with(advisory_for_delivery=True)
    client = bench.connect()
    reader = listen(client, "MessageDelivered.Queue.q")
    transaction = client.begin()
    for _ in range(250):
        client.feed(client.text(Q, "m", transaction))
    client.ok(client.transaction_info(transaction, 2))
    assert len(told(reader)) == 250


class Count(PendingAdvisory):
    """Counts how often it is told."""

    def __init__(self) -> None:
        self.told = 0

    def tell(self, room: int) -> int:
        self.told += 1
        return room


def test_notices_have_a_limit_and_the_log_says_so_once() -> None:
    bench = OpenWireBench()
    host = Host()
    publisher = AdvisoryPublisher(bench.broker, bench.clock, BrokerId("ID:b"), "b")
    notices = PendingAdvisories(publisher)
    notice = Count()
    notices.add(notice)
    notices.go_on()
    assert notice.told == 0  # nobody listens
    consumer = bench.broker.consumers.subscribe("ActiveMQ.Advisory.Queue", Collector(), OpenCredit())
    publisher.join(AdvisoryListener("ActiveMQ.Advisory.Queue", consumer, ConsumerId("ID:me", -1, 1), host))
    for _ in range(NOTICES_AT_MOST + 2):
        notices.add(notice)
    assert [report.code for report in host.reports] == ["DMQ5280"]
    while host.wakes:
        host.wakes = 0
        before = notice.told
        notices.go_on()
        assert notice.told - before <= 100
    assert notice.told == NOTICES_AT_MOST


def test_when_the_one_that_was_woken_leaves_another_goes_on() -> None:
    bench = bench_with(advisory_for_delivery=True)
    first, second = bench.connect(), bench.connect()
    listen(first, "Connection")
    reader = listen(second, "MessageDelivered.Queue.q")
    second.feed(second.text(Q, "m"))
    assert first.host.wakes == 1
    first.drop()
    assert about(reader) == ["-"]


def test_a_temporary_queue_is_a_kind_of_its_own() -> None:
    bench = bench_with(advisory_for_delivery=True)
    client = bench.connect("ID:me")
    delivered = listen(client, "MessageDelivered.>")
    info = DestinationInfo()
    info.destination = Destination("ID:me:1", TEMP_QUEUE)
    client.ok(info)
    send(client, Destination("ID:me:1", TEMP_QUEUE), "m1")
    (advisory,) = told(delivered)
    assert advisory.destination is not None
    assert advisory.destination.name == "ActiveMQ.Advisory.MessageDelivered.TempQueue.ID:me:1"
    assert properties(advisory)["orignalDestination"] == "temp-queue://ID:me:1"
