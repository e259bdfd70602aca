"""What a client replays after a failover, in its order, and what a restart of the broker leaves."""

# ACK-2, ACK-5

from delosmq.wire.openwire.commands import (
    ADD_DESTINATION,
    BEGIN,
    COMMIT_ONE_PHASE,
    COMMIT_TWO_PHASE,
    PREPARE,
    RECOVER,
    STANDARD_ACK,
    ConnectionControl,
    ConnectionInfo,
    ConsumerControl,
    DataArrayResponse,
    DestinationInfo,
    MessagePull,
)
from delosmq.wire.openwire.structures import TEMP_QUEUE, ConnectionId, Destination, LocalTransactionId, XATransactionId
from tests.engine.support import RecordingStore
from tests.sessions.openwire.support import Client, OpenWireBench, Reader, queue, topic
from tests.sessions.support import PASSWORD, USER

A = queue("a")
B = queue("b")


def reconnect(bench: OpenWireBench, name: str) -> Client:
    """As far as the ConnectionInfo."""
    client = bench.negotiate()
    client.name = name
    control = ConnectionControl()
    control.fault_tolerant = True
    client.tell(control)
    info = ConnectionInfo()
    info.connection_id = ConnectionId(name)
    info.client_id = name
    info.user_name, info.password = USER, PASSWORD
    info.failover_reconnect = True
    client.ok(info)
    return client


def temporary(client: Client) -> DestinationInfo:
    info = DestinationInfo()
    info.connection_id = ConnectionId(client.name)
    info.destination = Destination(f"{client.name}:1", TEMP_QUEUE)
    info.operation_type = ADD_DESTINATION
    return info


def prefetch(reader: Reader, size: int) -> ConsumerControl:
    control = ConsumerControl()
    control.consumer_id = reader.id
    control.destination = reader.info.destination
    control.prefetch = size
    return control


def test_everything_is_there_again_after_a_failover() -> None:
    bench = OpenWireBench()
    bench.connect().publish(A, "0 1 2")
    client = reconnect(bench, "ID:c")
    client.ok(temporary(client))
    for session in (-1, 1):
        client.ok(client.session_info(session))
    advisories = client.subscribe(
        client.consumer_info(topic("ActiveMQ.Advisory.TempQueue,ActiveMQ.Advisory.TempTopic"), 0, session=-1)
    )
    client.ok(client.producer_info(B))
    reader = client.consume(A, 0)
    answers = client.consume(Destination("ID:c:1", TEMP_QUEUE), 0)
    transaction = LocalTransactionId(7, ConnectionId("ID:c"))
    client.ok(client.transaction_info(transaction, BEGIN))
    client.ok(client.text(B, "sent in it", transaction))
    assert (advisories.bodies() if advisories.take() else "", reader.bodies(), answers.bodies()) == ("", "", "")
    for one, size in ((advisories, 1000), (reader, 2), (answers, 1000)):
        client.tell(prefetch(one, size))
    assert len(advisories.take()) == 1
    assert reader.bodies() == "0 1"
    client.publish(Destination("ID:c:1", TEMP_QUEUE), "answer")
    assert answers.bodies() == "answer"
    assert bench.queue("b").message_count == 0
    client.ok(client.transaction_info(transaction, COMMIT_ONE_PHASE))
    assert bench.queue("b").message_count == 1


def test_an_outstanding_pull_is_replayed() -> None:
    bench = OpenWireBench()
    client = reconnect(bench, "ID:c")
    reader = client.consume(A, 0)
    pull = MessagePull()
    pull.consumer_id, pull.destination = reader.id, A
    client.tell(pull)
    # What it pulls with stays 0.
    client.publish(A, "0 1")
    assert reader.bodies() == "0"


def test_an_acknowledgement_of_before_the_failover_is_not_meant_for_the_consumer_of_after_it() -> None:
    bench = OpenWireBench()
    old = reconnect(bench, "ID:c")
    old.publish(A, "0")
    before = old.consume(A)
    before.take()
    client = reconnect(bench, "ID:c")
    info = client.consumer_info(A, 0)
    info.consumer_id = before.id
    after = client.subscribe(info)
    client.ok(before_ack(client, before))
    client.tell(prefetch(after, 10))
    assert after.bodies() == "0r1"


def before_ack(client: Client, before: Reader) -> ConsumerControl:
    """Sends the outstanding acknowledgement; then something harmless to wait for."""
    client.tell(before.ack(STANDARD_ACK, 0, first=0))
    return prefetch(before, 0)


def test_persistent_messages_outlive_the_broker_and_others_do_not() -> None:
    store = RecordingStore()
    client = OpenWireBench(store=store).connect()
    client.ok(client.text(A, "stays"))
    client.ok(client.text(A, "goes", persistent=False))
    bench = OpenWireBench(store=RecordingStore(store.batches))
    assert bench.connect().consume(A).bodies() == "stays"


def test_sequences_go_on_growing_after_a_restart() -> None:
    store = RecordingStore()
    client = OpenWireBench(store=store).connect()
    client.publish(A, "0")
    bench = OpenWireBench(store=RecordingStore(store.batches))
    client = bench.connect()
    client.publish(A, "1")
    reader = client.consume(A)
    assert reader.bodies() == "0 1"
    assert 0 < reader.sequence(0) < reader.sequence(1)


def test_a_prepared_branch_outlives_the_broker() -> None:
    store = RecordingStore()
    client = OpenWireBench(store=store).connect()
    client.publish(A, "0")
    reader = client.consume(A)
    reader.take()
    xid = XATransactionId(1, b"g", b"b")
    client.ok(client.transaction_info(xid, BEGIN))
    reader.done(0, transaction=xid)
    client.publish(B, "out", xid)
    client.ok(client.transaction_info(xid, PREPARE))
    bench = OpenWireBench(store=RecordingStore(store.batches))
    client = bench.connect()
    answer = client.call(client.transaction_info(None, RECOVER))
    assert isinstance(answer, DataArrayResponse)
    assert [one.key() for one in answer.values or [] if isinstance(one, XATransactionId)] == [xid.key()]
    client.ok(client.transaction_info(xid, COMMIT_TWO_PHASE))
    assert (bench.queue("a").message_count, bench.queue("b").message_count) == (0, 1)
