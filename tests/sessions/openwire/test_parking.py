"""Messages that wait for space, the ends of transactions that wait for them, and a connection that leaves meanwhile."""

from delosmq.model.settings import AddressFullPolicy
from delosmq.wire.openwire.commands import COMMIT_ONE_PHASE, STANDARD_ACK, ConnectionId, LocalTransactionId, Response
from tests.sessions.openwire.support import Client, OpenWireBench, Reader, queue

A = queue("a")
FULL = queue("full")
FULL_AT_ONE: dict[str, dict[str, object]] = {
    "full": {"max_size_messages": 1, "address_full_policy": AddressFullPolicy.BLOCK}
}


def full() -> tuple[OpenWireBench, Client, Reader, LocalTransactionId]:
    """A client that has acknowledged "0" of queue a in a transaction, and what its queue "full" is full of."""
    bench = OpenWireBench(address_settings=FULL_AT_ONE)
    bench.connect().publish(FULL, "first")
    client = bench.connect()
    client.publish(A, "0")
    reader = client.consume(A)
    reader.take()
    transaction = client.begin()
    reader.done(0, transaction=transaction)
    return bench, client, reader, transaction


def make_room(bench: OpenWireBench) -> str:
    """What the next consumer gets of the full queue, each message acknowledged."""
    reader = bench.connect().consume(FULL)
    taken = 0
    bodies: list[str] = []
    while text := reader.bodies():
        bodies.append(text)
        reader.client.ok(reader.ack(STANDARD_ACK, taken, first=taken))
        taken += 1
    return " ".join(bodies)


def test_a_commit_waits_for_its_own_messages_that_wait_for_space() -> None:
    bench, client, _, transaction = full()
    sent = client.feed(client.text(FULL, "second", transaction), answer=True)
    committed = client.feed(client.transaction_info(transaction, COMMIT_ONE_PHASE), answer=True)
    bench.tick()
    assert (client.answers(sent), client.answers(committed)) == ([], [])
    assert make_room(bench) == "first second"
    assert (len(client.answers(sent)), len(client.answers(committed))) == (1, 1)
    assert bench.queue("a").message_count == 0


def test_a_connection_that_is_lost_rolls_back_what_waits_to_be_committed() -> None:
    bench, client, _, transaction = full()
    client.tell(client.text(FULL, "second", transaction))
    client.tell(client.transaction_info(transaction, COMMIT_ONE_PHASE))
    client.drop()
    assert bench.broker.transactions == {}
    assert bench.connect().consume(A).bodies().startswith("0")
    assert make_room(bench) == "first"


def test_the_orderly_end_of_a_connection_waits_for_messages_that_wait_for_space() -> None:
    bench = OpenWireBench(address_settings=FULL_AT_ONE)
    bench.connect().publish(FULL, "first")
    client = bench.connect()
    sent = client.feed(client.text(FULL, "second"), answer=True)
    left = client.feed(client.remove_info(ConnectionId(client.name)), answer=True)
    bench.tick()
    assert (client.answers(sent), client.answers(left)) == ([], [])
    assert make_room(bench) == "first second"
    received = [one.correlation_id for one in client.take() if isinstance(one, Response)]
    assert received == [sent, left]
    # It is gone: others may have its name.
    bench.connect(client.name)
    assert not client.host.finished


def test_it_does_not_wait_for_messages_of_a_transaction_that_nobody_ends() -> None:
    bench, client, _, transaction = full()
    client.tell(client.text(FULL, "second", transaction))
    client.ok(client.remove_info(ConnectionId(client.name)))
    assert bench.broker.transactions == {}
    assert make_room(bench) == "first"
