"""Addresses and queues that CORE clients make, delete and ask about."""

import pytest

from delosmq.model.message import ANY_ROUTING, ANYCAST, MULTICAST
from delosmq.model.settings import AcceptorSettings, QueueSettings, SecurityMatch
from delosmq.security.access import PERMISSIONS
from delosmq.wire.core.packet import Packet
from delosmq.wire.core.queue_packets import (
    BindingQuery,
    BindingQueryResponseV4,
    BindingQueryResponseV5,
    CreateAddressPacket,
    CreateQueuePacket,
    CreateSharedQueueV2,
    DeleteQueue,
    QueueQuery,
    QueueQueryResponseV3,
)
from delosmq.wire.core.session_packets import DisconnectConsumer
from tests.sessions.core.support import CoreBench, Session

CLOSED = {"#": {"auto_create_addresses": False, "auto_create_queues": False}}


def query(session: Session, name: str) -> QueueQueryResponseV3:
    return session.ask(QueueQuery(name), QueueQueryResponseV3)


def shared(name: str, topic: str, *, durable: bool = True, text: str | None = None) -> CreateSharedQueueV2:
    packet = CreateSharedQueueV2()
    packet.address = topic
    packet.queue_name = name
    packet.durable = durable
    packet.filter_string = text
    packet.routing_type = MULTICAST
    packet.requires_response = True
    return packet


def test_a_queue_is_made_with_its_address_and_its_attributes() -> None:
    bench = CoreBench()
    session = bench.session()
    packet = session.queue("orders", max_consumers=3, purge_on_no_consumers=True, filter_string="a = 1")
    packet.attributes.exclusive = True
    packet.attributes.ring_size = 7
    packet.attributes.last_value = True
    session.ok(packet)
    queue = bench.queue("orders")
    assert (queue.settings.max_consumers, queue.settings.ring_size, queue.settings.filter) == (3, 7, "a = 1")
    assert queue.in_force.last_value_key == "_AMQ_LVQ_NAME"
    assert queue.in_force.exclusive
    answer = query(session, "orders")
    assert (answer.exists, answer.durable, answer.address, answer.name) == (True, True, "orders", "orders")
    assert (answer.max_consumers, answer.routing_type, answer.filter_string) == (3, ANYCAST, "a = 1")
    assert (answer.attributes.exclusive, answer.attributes.ring_size) == (True, 7)
    assert session.refused(packet) == "QUEUE_EXISTS DMQ5645"


def test_a_query_tells_what_a_missing_queue_would_be() -> None:
    session = CoreBench(address_settings={"#": {"default_max_consumers": 5}}).session()
    answer = query(session, "topic::mine")
    assert (answer.exists, answer.name, answer.address, answer.auto_create_queues) == (False, "mine", "topic", True)
    assert (answer.max_consumers, answer.auto_created) == (5, False)
    assert query(session, "orders::mine").routing_type == MULTICAST  # as the settings say, whatever the address takes
    assert not query(CoreBench(address_settings=CLOSED).session(), "x").auto_create_queues


def test_a_query_tells_the_window_for_clients_that_name_none() -> None:
    session = CoreBench(address_settings={"orders": {"default_consumer_window_size": 0}}).session()
    assert query(session, "orders").default_consumer_window_size == 0
    session.ok(session.queue("orders"))
    assert query(session, "orders").default_consumer_window_size == 0
    assert query(session, "others").default_consumer_window_size == 1024 * 1024


def test_settings_that_are_larger_than_an_answer_can_say_are_told_as_the_largest() -> None:
    settings = {"default_max_consumers": 3_000_000_000, "default_consumers_before_dispatch": 3_000_000_000}
    session = CoreBench(address_settings={"#": {**settings, "default_group_buckets": 3_000_000_000}}).session()
    answer = query(session, "x")
    assert (answer.max_consumers, answer.attributes.consumers_before_dispatch) == (2**31 - 1, 2**31 - 1)
    session.ok(session.queue("x", max_consumers=-1))
    assert query(session, "x").attributes.group_buckets == 2**31 - 1
    bindings = session.ask(BindingQuery("x"), BindingQueryResponseV5)
    assert bindings.default_max_consumers == 2**31 - 1


def test_the_message_and_consumer_counts_are_told() -> None:
    session = CoreBench().session()
    session.ok(session.queue("orders"))
    session.send("orders", "a b")
    session.consumer("orders")
    answer = query(session, "orders")
    assert (answer.message_count, answer.consumer_count) == (2, 1)


@pytest.mark.parametrize(("version", "kind"), [(136, BindingQueryResponseV5), (134, BindingQueryResponseV4)])
def test_the_bindings_of_an_address(version: int, kind: type[BindingQueryResponseV4]) -> None:
    session = CoreBench().session(version)
    session.subscribe("one", "news")
    session.subscribe("two", "news")
    answer = session.ask(BindingQuery("news"), kind)
    assert (answer.exists, sorted(answer.queue_names)) == (True, ["one", "two"])
    if isinstance(answer, BindingQueryResponseV5):
        assert (answer.supports_multicast, answer.supports_anycast) == (True, False)
    answer = session.ask(BindingQuery("news::two"), kind)
    assert (answer.exists, answer.queue_names) == (True, ["two"])
    answer = session.ask(BindingQuery("nothing"), kind)
    assert (answer.exists, answer.queue_names, answer.auto_create_addresses) == (False, [], True)


def test_the_oldest_clients_get_queues_with_their_address() -> None:
    session = CoreBench().session(129)
    session.subscribe("one", "news")
    assert session.ask(BindingQuery("news::one"), BindingQueryResponseV4).queue_names == ["news::one"]


def test_nothing_is_made_where_the_settings_forbid_it() -> None:
    session = CoreBench(address_settings=CLOSED).session()
    assert session.refused(session.queue("orders")) == "ADDRESS_DOES_NOT_EXIST DMQ5637"


def test_an_address_takes_only_its_routing_types() -> None:
    queues = (QueueSettings("orders", "orders", ANYCAST),)
    session = CoreBench(address_settings=CLOSED, queues=queues).session()
    assert session.refused(session.queue("copy", "orders", MULTICAST)) == "INTERNAL_ERROR DMQ5648"


def test_a_filter_that_is_none_is_refused() -> None:
    session = CoreBench().session()
    assert session.refused(session.queue("orders", filter_string="a =")).startswith("INVALID_FILTER_EXPRESSION")


def test_an_address_is_made() -> None:
    bench = CoreBench()
    session = bench.session()
    packet = CreateAddressPacket()
    packet.address = "news"
    packet.routing_types = [MULTICAST]
    packet.requires_response = True
    session.ok(packet)
    assert bench.broker.addresses["news"].routing_types == {MULTICAST}
    assert not bench.broker.addresses["news"].auto_created
    packet.address = "other"
    packet.auto_created = True
    session.ok(packet)
    assert bench.broker.addresses["other"].auto_created


def test_the_old_form_makes_queues_of_topics_unless_the_name_says_otherwise() -> None:
    bench = CoreBench()
    session = bench.session()
    packet = CreateQueuePacket()
    packet.address = packet.queue_name = "jms.queue.orders"
    packet.requires_response = True
    session.ok(packet)
    assert bench.queue("jms.queue.orders").settings.routing_type == ANYCAST
    packet.address = packet.queue_name = "news"
    session.ok(packet)
    assert bench.queue("news").settings.routing_type == MULTICAST


def test_without_a_routing_type_the_settings_decide() -> None:
    bench = CoreBench(address_settings={"#": {"default_queue_routing_type": MULTICAST}})
    session = bench.session()
    session.ok(session.queue("orders", "orders", ANY_ROUTING))
    assert bench.queue("orders").settings.routing_type == MULTICAST


def test_prefixes_of_the_acceptor_give_the_routing_type() -> None:
    acceptor = AcceptorSettings("core", "localhost", 0, ("CORE",), anycast_prefixes=("q.",), multicast_prefixes=("t.",))
    bench = CoreBench(acceptor=acceptor)
    session = bench.session()
    session.ok(session.queue("q.orders", "q.orders", MULTICAST))
    assert bench.queue("orders").settings.routing_type == ANYCAST
    session.send("q.orders", "a")
    reader = session.consumer("q.orders")
    session.start()
    assert reader.bodies() == "a"


def test_a_queue_is_deleted() -> None:
    bench = CoreBench()
    session = bench.session()
    session.ok(session.queue("orders"))
    session.ok(DeleteQueue("orders"))
    assert "orders" not in bench.broker.queues
    assert session.refused(DeleteQueue("orders")) == "QUEUE_DOES_NOT_EXIST DMQ5640"


def test_a_queue_with_consumers_is_not_deleted() -> None:
    session = CoreBench().session()
    session.ok(session.queue("orders"))
    session.consumer("orders")
    assert session.refused(DeleteQueue("orders")) == "ILLEGAL_STATE DMQ5647"


def test_a_consumer_is_told_that_its_queue_is_gone() -> None:
    bench = CoreBench()
    session = bench.session()
    session.ok(session.queue("orders"))
    session.consumer("orders")
    bench.broker.resources.delete_queue("orders")
    bench.tick()
    (packet,) = session.take()
    assert isinstance(packet, DisconnectConsumer)
    assert packet.consumer_id == 0


# -- temporary ones, and subscriptions -------------------------------------------------------------------------------


def test_a_temporary_queue_lasts_as_long_as_its_connection() -> None:
    bench = CoreBench()
    client = bench.connect()
    session = client.open()
    session.ok(session.queue("tmp-1", temporary=True, durable=False))
    assert query(session, "tmp-1").temporary
    session.close()
    assert "tmp-1" in bench.broker.queues
    client.leave()
    assert "tmp-1" not in bench.broker.queues
    assert "tmp-1" not in bench.broker.addresses


def test_a_temporary_queue_is_deleted_by_its_client() -> None:
    bench = CoreBench()
    session = bench.session()
    session.ok(session.queue("tmp-1", temporary=True, durable=False))
    session.ok(DeleteQueue("tmp-1"))
    assert "tmp-1" not in bench.broker.addresses
    session.ok(session.queue("tmp-1", temporary=True, durable=False))
    session.client.leave()
    assert "tmp-1" not in bench.broker.addresses


def test_a_temporary_topic_has_a_queue_that_takes_nothing() -> None:
    bench = CoreBench()
    session = bench.session()
    session.ok(session.queue("tt", "tt", MULTICAST, temporary=True, durable=False, filter_string="_AMQX=-1"))
    session.ok(session.queue("sub", "tt", MULTICAST, temporary=True, durable=False))
    reader = session.consumer("sub")
    session.start()
    session.publish("tt", "a")
    assert reader.bodies() == "a"
    assert bench.queue("tt").message_count == 0
    session.client.leave()
    assert "tt" not in bench.broker.addresses


def test_a_subscriber_of_a_topic_has_a_temporary_queue_of_its_own() -> None:
    bench = CoreBench()
    session = bench.session()
    session.ok(session.queue("uuid", "news", MULTICAST, temporary=True, durable=False))
    reader = session.consumer("uuid")
    session.start()
    bench.session().publish("news", "a b")
    assert reader.bodies() == "a b"
    session.client.leave()
    assert "uuid" not in bench.broker.queues


def test_a_shared_subscription_must_be_the_same() -> None:
    session = CoreBench().session()
    session.ok(shared("mine", "news", text="a = 1"))
    session.ok(shared("mine", "news", text="a = 1"))
    assert session.refused(shared("mine", "news")) == "INVALID_TRANSIENT_QUEUE_USE DMQ5646"
    assert session.refused(shared("mine", "other", text="a = 1")) == "INVALID_TRANSIENT_QUEUE_USE DMQ5646"


def test_a_shared_subscription_that_is_not_durable_goes_with_its_last_consumer() -> None:
    bench = CoreBench()
    session = bench.session()
    session.ok(shared("mine", "news", durable=False))
    session.consumer("mine")
    session.client.leave()
    assert "mine" not in bench.broker.queues


def test_one_that_never_had_a_consumer_goes_with_the_connection() -> None:
    bench = CoreBench()
    session = bench.session()
    session.ok(shared("mine", "news", durable=False))
    session.client.leave()
    assert "mine" not in bench.broker.queues


@pytest.mark.parametrize("temporary", [True, False])
def test_a_queue_that_another_connection_made_again_stays_when_its_first_maker_leaves(temporary: bool) -> None:
    bench = CoreBench()
    make = bench.session().queue("mine", "news", MULTICAST, temporary=True) if temporary else shared("mine", "news")
    make.durable = False
    first, other = bench.session(), bench.session()
    first.ok(make)
    other.ok(DeleteQueue("mine"))
    other.ok(make)
    first.client.leave()
    assert "mine" in bench.broker.queues
    other.client.leave()
    assert "mine" not in bench.broker.queues


def test_a_durable_subscription_stays_and_gets_messages() -> None:
    bench = CoreBench()
    session = bench.session()
    session.subscribe("client.name", "news")
    session.client.leave()
    other = bench.session()
    other.publish("news", "a")
    reader = other.consumer("news::client.name")
    other.start()
    assert reader.bodies() == "a"


# -- permissions -----------------------------------------------------------------------------------------------------


def rights(*missing: str) -> tuple[SecurityMatch, ...]:
    return (SecurityMatch("#", {one: frozenset({"all"}) for one in PERMISSIONS if one not in missing}),)


def deleting(session: Session) -> Packet:
    return DeleteQueue("there")


def durable(session: Session) -> Packet:
    return session.queue("orders")


def passing(session: Session) -> Packet:
    return session.queue("orders", durable=False)


@pytest.mark.parametrize(
    ("right", "make"),
    [("createDurableQueue", durable), ("createNonDurableQueue", passing), ("deleteDurableQueue", deleting)],
)
def test_what_the_user_may_not_do_is_refused(right: str, make: object) -> None:
    assert callable(make)
    queues = (QueueSettings("there", "there", ANYCAST),)
    session = CoreBench(security=rights(right), queues=queues).session()
    assert session.refused(make(session)).startswith("SECURITY_EXCEPTION")
