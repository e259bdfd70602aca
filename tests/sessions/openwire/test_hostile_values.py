"""Names, ids, numbers and lengths that nobody can carry: each is refused, and everybody else goes on."""

# BROKER-4

from collections.abc import Callable
from dataclasses import replace

import pytest

from delosmq.model.properties import BYTES_KIND, INT_KIND, LIST_KIND, STRING_KIND, TypedValue
from delosmq.model.settings import SecurityMatch
from delosmq.security.access import PERMISSIONS, AccessControl
from delosmq.sessions.host import SessionServices
from delosmq.sessions.openwire.server.advisories.publisher import AdvisoryListener, AdvisoryPublisher
from delosmq.sessions.openwire.server.ids import following
from delosmq.sessions.openwire.server.java_exceptions import OpenWireError, shortened
from delosmq.wire.openwire.commands import (
    ADD_DESTINATION,
    REMOVE_DESTINATION,
    ConnectionControl,
    ConnectionInfo,
    ConsumerInfo,
    DestinationInfo,
    ExceptionResponse,
    KeepAliveInfo,
    MessageCommand,
    ProducerInfo,
    RemoveSubscriptionInfo,
    Response,
    SessionInfo,
)
from delosmq.wire.openwire.negotiation import WireFormatInfo
from delosmq.wire.openwire.primitives import encode_map
from delosmq.wire.openwire.structures import (
    TEMP_QUEUE,
    TEMP_TOPIC,
    BrokerId,
    Command,
    ConnectionId,
    ConsumerId,
    Destination,
    LocalTransactionId,
    MessageId,
    ProducerId,
    SessionId,
    XATransactionId,
)
from tests.sessions.openwire.support import ACCEPTOR, SECURITY, Client, OpenWireBench, code_of, queue, throwable, topic
from tests.sessions.support import EVERYTHING, PASSWORD, USER

A = queue("a")
LONE = "a\ud800b"
LONG = "x" * 65_000
MANY = ",".join([str(number) * 50 for number in range(90)])
ADVISORIES = "ActiveMQ.Advisory."


def tight(bench: OpenWireBench) -> Client:
    info = WireFormatInfo()
    info.tight_encoding_enabled = True
    client = bench.negotiate(info)
    client.log_in(f"ID:tight-{len(bench.clients)}")
    client.take()
    return client


# -- names and ids -----------------------------------------------------------------------------------------------------


def change(client: Client, destination: Destination, operation: int = ADD_DESTINATION) -> DestinationInfo:
    info = DestinationInfo()
    info.connection_id = ConnectionId(client.name)
    info.destination = destination
    info.operation_type = operation
    return info


@pytest.mark.parametrize("code", [queue("").code, topic("").code, TEMP_QUEUE, TEMP_TOPIC])
@pytest.mark.parametrize("name", [LONE, f"b,{LONE}", f"a::{LONE}", "b," * 5_000, MANY, LONG], ids=len)
def test_a_name_that_can_not_be(name: str, code: int) -> None:
    bench = OpenWireBench()
    client = bench.connect()
    other = bench.connect()
    other.consume(topic(f"{ADVISORIES}>"))
    destination = Destination(name, code)
    commands: list[Command] = [client.text(destination, "x"), client.consumer_info(destination)]
    commands += [client.producer_info(destination), change(client, destination)]
    commands.append(change(client, destination, REMOVE_DESTINATION))
    for command in commands:
        assert code_of(client.refused(command)) == "InvalidDestinationException DMQ5240"
    client.tell(client.text(destination, "without an answer"))
    client.publish(A, "fine")
    other.publish(A, "fine")


@pytest.mark.parametrize("field", ["client id", "connection id"])
@pytest.mark.parametrize("value", [LONE, LONG], ids=len)
def test_an_id_of_a_connection_that_can_not_be(field: str, value: str) -> None:
    bench = OpenWireBench()
    other = bench.connect()
    client = bench.negotiate()
    answer = client.log_in("ID:c", client_id=value) if field == "client id" else client.log_in(value)
    assert code_of(throwable(answer)) == "JMSException DMQ5275"
    other.publish(A, "fine")


@pytest.mark.parametrize("name", [LONE, LONG], ids=len)
def test_a_name_of_a_subscription_that_can_not_be(name: str) -> None:
    bench = OpenWireBench()
    client = bench.connect(client_id="c")
    info = client.consumer_info(topic("t"))
    info.subscription_name = name
    assert code_of(client.refused(info)) == "JMSException DMQ5275"
    end = RemoveSubscriptionInfo()
    end.client_id = "c"
    end.subscription_name = name
    assert code_of(client.refused(end)) == "InvalidDestinationException DMQ5253"
    client.publish(A, "fine")


def properties(**entries: TypedValue) -> bytes:
    return encode_map(entries)


def grouped(command: MessageCommand, value: str) -> None:
    command.group_id = value


def deduplicated(command: MessageCommand, value: str) -> None:
    command.marshalled_properties = properties(_AMQ_DUPL_ID=TypedValue(STRING_KIND, value))


def deduplicated_by_bytes(command: MessageCommand, value: str) -> None:
    command.marshalled_properties = properties(_AMQ_DUPL_ID=TypedValue(BYTES_KIND, LONG.encode() * 2))


def identified(command: MessageCommand, value: str) -> None:
    command.message_id = MessageId(ProducerId(value, 1, 1), 1)


@pytest.mark.parametrize("spoil", [grouped, deduplicated, deduplicated_by_bytes, identified])
@pytest.mark.parametrize("value", [LONE, LONG], ids=len)
def test_an_id_in_a_message_that_can_not_be(spoil: Callable[[MessageCommand, str], None], value: str) -> None:
    bench = OpenWireBench()
    client = bench.negotiate()
    client.name = "ID:failover"
    info = ConnectionInfo()
    info.connection_id = ConnectionId(client.name)
    info.client_id = client.name
    info.user_name = USER
    info.password = PASSWORD
    info.fault_tolerant = True
    client.ok(info)
    command = client.text(A, "x")
    spoil(command, value)
    assert code_of(client.refused(command)) == "JMSException DMQ5275"
    client.publish(A, "fine")


@pytest.mark.parametrize(("gtrid", "branch"), [(65, 1), (1, 65), (70_000, 1), (1, 70_000)])
def test_a_branch_with_too_long_an_id(gtrid: int, branch: int) -> None:
    bench = OpenWireBench()
    client = bench.connect()
    xid = XATransactionId(1, b"g" * gtrid, b"b" * branch)
    for kind in (0, 1, 2, 3, 4, 6):
        told = client.refused(client.transaction_info(xid, kind))
        assert code_of(told) == "XAException DMQ5277"
        assert (told.message or "").endswith("xaErrorCode:-5")
    assert code_of(client.refused(client.text(A, "x", xid))) == "XAException DMQ5277"
    client.ok(client.transaction_info(XATransactionId(1, b"g" * 64, b"b" * 64), 0))


# -- what is told ------------------------------------------------------------------------------------------------------


def test_a_refusal_that_names_what_is_very_long() -> None:
    bench = OpenWireBench()
    for client in (bench.connect(), tight(bench)):
        transaction = LocalTransactionId(1, ConnectionId("\u20ac" * 10_000))
        told = client.refused(client.text(A, "x", transaction))
        assert code_of(told) == "JMSException DMQ5270"
        assert len(told.message or "") < 2_100
        told = client.refused(client.transaction_info(transaction, 3))
        assert (told.message or "").startswith("DMQ52")
        removal = client.remove_info(ConsumerId(LONG[:30_000], 1, 1))
        assert code_of(client.refused(removal)) == "JMSException DMQ5258"


def test_what_ends_a_long_refusal_stays() -> None:
    refusal = OpenWireError("DMQ5272", "x", f"{LONG} xaErrorCode:-6")
    assert str(refusal).endswith("xaErrorCode:-6")
    assert len(str(refusal)) < 2_000
    assert shortened("short") == "short"


def test_an_advisory_that_can_not_be_encoded_is_not_sent() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    reader = client.consume(A)
    publisher = AdvisoryPublisher(bench.broker, bench.clock, BrokerId("b"), "b")
    (consumer,) = bench.queue("a").holders
    for name in ("t", LONG * 2):
        publisher.join(AdvisoryListener(name, consumer, reader.id, client.host))
        publisher.tell(name, None)
        publisher.pass_on(name, client.text(A, name[:1]))
    bench.tick()
    assert len(reader.take()) == 2


def test_a_peer_gets_what_is_too_long_for_its_form() -> None:
    bench = OpenWireBench()
    reader = tight(bench).consume(A)
    client = bench.connect()
    command = client.text(A, "x")
    command.correlation_id = "c" * 60_000
    client.ok(command)
    assert reader.bodies() == "x"


@pytest.mark.parametrize("listens", [f"{ADVISORIES}Consumer.>", f"{ADVISORIES}>"])
def test_a_composite_of_many_names_while_somebody_listens(listens: str) -> None:
    bench = OpenWireBench()
    bench.connect().consume(topic(listens))
    client = bench.connect()
    names = ",".join(f"part.{number}." + "\u20ac" * 60 for number in range(100))
    client.subscribe(client.consumer_info(queue(names[:8_000])))
    client.ok(client.producer_info(queue(names[:8_000])))
    client.drop()
    assert [name for name, one in bench.broker.queues.items() if name.startswith("part") and one.holders] == []


def test_the_ids_of_commands_begin_anew() -> None:
    # They are 32 bits with a sign, and a connection may last for years.
    assert [following(number) for number in (0, (1 << 31) - 2, (1 << 31) - 1)] == [1, (1 << 31) - 1, 0]


# -- other connections -------------------------------------------------------------------------------------------------


def test_a_session_of_another_connection() -> None:
    bench = OpenWireBench()
    other = bench.connect("ID:other")
    heard = other.consume(topic(f"{ADVISORIES}Consumer.Queue.>"))
    client = bench.connect()
    info = SessionInfo()
    info.session_id = SessionId("ID:other", 1)
    assert code_of(client.refused(info)) == "JMSException DMQ5276"
    consumer = client.consumer_info(A)
    consumer.consumer_id = heard.id
    assert code_of(client.refused(consumer)) == "JMSException DMQ5257"
    producer = client.producer_info(A)
    producer.producer_id = ProducerId("ID:other", 1, 1)
    assert code_of(client.refused(producer)) == "JMSException DMQ5257"
    client.drop()
    heard.take()
    bench.connect().consume(A)
    assert len(heard.take()) == 1


def test_the_end_of_another_connection() -> None:
    bench = OpenWireBench()
    other = bench.connect("ID:other")
    client = bench.connect()
    assert code_of(client.refused(client.remove_info(ConnectionId("ID:other")))) == "JMSException DMQ5276"
    client.publish(A, "fine")
    other.publish(A, "fine")


def test_another_user_can_not_take_a_connection_over() -> None:
    bench = OpenWireBench()
    roles = frozenset({"all"})
    access = AccessControl({USER: "x", "eve": "y"}, {USER: roles, "eve": roles}, (EVERYTHING,), cache_key=b"k" * 32)
    for user in (USER, "eve"):
        access.finish(access.attempt(user, PASSWORD), True)
    services = bench.services
    bench.services = SessionServices(
        bench.broker,
        bench.gate,
        clock=bench.clock,
        access=access,
        conversions=services.conversions,
        server_name=services.server_name,
    )
    owner = bench.connect("ID:one", client_id="c")
    thief = bench.negotiate()
    answer = thief.log_in("ID:one", client_id="c", user="eve")
    assert code_of(throwable(answer)) == "SecurityException DMQ5278"
    assert thief.host.finished
    owner.publish(A, "fine")
    again = bench.negotiate()
    answer = again.log_in("ID:one", client_id="c")
    assert not isinstance(answer, ExceptionResponse)
    assert owner.host.finished


# -- rights ------------------------------------------------------------------------------------------------------------

TEMP_QUEUES = f"{ADVISORIES}TempQueue"


@pytest.mark.parametrize("address", [TEMP_QUEUES, f"{ADVISORIES}Connection"])
@pytest.mark.parametrize("kind", ["of a queue", "a queue", "durable"])
def test_whoever_may_create_nothing_makes_no_queue_of_an_advisory_address(address: str, kind: str) -> None:
    granted = {name: frozenset({"all"} if name == "consume" else ()) for name in PERMISSIONS}
    bench = OpenWireBench(security=(SecurityMatch("#", granted),))
    client = bench.connect(client_id="c")
    name = f"{address}::mine" if kind == "of a queue" else address
    info = client.consumer_info(queue(name) if kind == "a queue" else topic(name))
    info.subscription_name = "s" if kind == "durable" else None
    told = client.refused(info)
    assert told.class_name == SECURITY, told.message
    assert list(bench.broker.queues) == []
    client.consume(topic(address))


def test_whoever_may_do_nothing_hears_of_temporary_destinations_only() -> None:
    bench = OpenWireBench(security=(SecurityMatch("#", {name: frozenset() for name in PERMISSIONS}),))
    client = bench.connect()
    client.consume(topic(TEMP_QUEUES))
    assert client.refused(client.consumer_info(queue(TEMP_QUEUES))).class_name == SECURITY
    assert client.refused(client.consumer_info(topic(f"{ADVISORIES}Connection"))).class_name == SECURITY


def test_paths_through_other_brokers_are_not_kept() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    consumer, producer = client.consumer_info(queue("a")), client.producer_info(queue("a"))
    consumer.broker_path = producer.broker_path = [BrokerId("b") for _ in range(1_000)]
    consumer.network_consumer_path = [ConsumerId("ID:b", 1, 1) for _ in range(1_000)]
    client.ok(consumer)
    client.ok(producer)
    for kind in ("Consumer", "Producer"):
        (told,) = bench.connect().consume(topic(f"{ADVISORIES}{kind}.Queue.a")).take()
        assert told.message is not None
        info = told.message.data_structure
        assert isinstance(info, ConsumerInfo | ProducerInfo)
        assert info.broker_path is None
        assert not isinstance(info, ConsumerInfo) or info.network_consumer_path is None


# -- bounds ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("logged_in", [False, True])
def test_who_does_not_read_is_not_read_before_its_login_and_after_its_end(logged_in: bool) -> None:
    bench = OpenWireBench(acceptor=replace(ACCEPTOR, reply_limit_bytes=1_000))
    client = bench.negotiate()
    if logged_in:
        client.log_in("ID:c")
        client.ok(client.remove_info(ConnectionId("ID:c")))
    client.reads = False
    for _ in range(1_000):
        client.feed(ConnectionControl(), answer=True)
    assert not client.is_read()
    assert client.session.outbox.reply_bytes < 2_000
    client.reads = True
    bench.tick()
    assert client.is_read()
    assert sum(isinstance(one, Response) for one in client.take()) == 1_000


def test_who_stays_after_the_end_of_its_connection_is_closed() -> None:
    bench = OpenWireBench()
    client = bench.connect("ID:c")
    client.ok(client.remove_info(ConnectionId("ID:c")))
    bench.pass_time(9_000)
    client.tell(KeepAliveInfo())
    assert not client.host.finished
    bench.pass_time(2_000)
    assert client.host.finished


def test_who_logs_in_again_may_stay() -> None:
    bench = OpenWireBench()
    client = bench.connect("ID:c")
    client.ok(client.remove_info(ConnectionId("ID:c")))
    client.log_in("ID:c")
    bench.pass_time(11_000)
    client.publish(A, "fine")


def nested(lists: int, entries: int) -> bytes:
    inner = TypedValue(LIST_KIND, [TypedValue(INT_KIND, 1)] * entries)
    return encode_map({"_AMQ_DUPL_ID": TypedValue(LIST_KIND, [inner] * lists)})


def test_all_nested_lists_of_a_message_have_one_limit() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    command = client.text(A, "x")
    command.marshalled_properties = nested(10, 10_000)
    client.tell(command)
    assert code_of(client.error()) == "IOException DMQ5212"
    bench.connect().publish(A, "fine")
