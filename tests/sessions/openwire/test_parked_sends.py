"""Messages that wait for space, the ends of transactions that wait for them, and a connection that leaves meanwhile."""

from delosmq.model.errors import StorageError
from delosmq.model.settings import AddressFullPolicy
from delosmq.wire.openwire.commands import COMMIT_ONE_PHASE, STANDARD_ACK, Response, ShutdownInfo
from delosmq.wire.openwire.structures import ConnectionId, LocalTransactionId
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
    assert bench.broker.transactions.open == {}
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
    assert bench.broker.transactions.open == {}
    assert make_room(bench) == "first"


# -- a client that leaves without waiting ------------------------------------------------------------------------------


def departed(
    settings: dict[str, dict[str, object]] = FULL_AT_ONE, *, says_so: bool = True
) -> tuple[OpenWireBench, Client]:
    """A client that sent "second" and "third" to the full queue and left at once."""
    bench = OpenWireBench(address_settings=settings)
    client = bench.connect(client_id="me")
    client.publish(FULL, "first")
    client.publish(A, "0")
    client.consume(A).take()
    for body in ("second", "third"):
        client.tell(client.text(FULL, body, persistent=False))
    client.tell(client.remove_info(ConnectionId(client.name)))
    if says_so:
        client.tell(ShutdownInfo())
    client.session.handle_eof()
    bench.tick()
    return bench, client


def test_what_a_client_sent_before_it_left_in_order_is_not_lost() -> None:
    bench, client = departed()
    assert (client.host.finished, bench.queue("full").message_count) == (False, 1)
    assert make_room(bench) == "first second third"
    assert client.host.reasons == [None]
    assert client.take() == []


def test_nor_when_it_does_not_even_say_that_it_goes() -> None:
    bench, client = departed(says_so=False)
    assert make_room(bench) == "first second third"
    assert client.host.reasons == [None]


def test_a_shutdown_alone_is_an_orderly_end_too() -> None:
    bench = OpenWireBench(address_settings=FULL_AT_ONE)
    client = bench.connect()
    client.publish(FULL, "first")
    client.tell(client.text(FULL, "second", persistent=False))
    client.tell(ShutdownInfo())
    assert make_room(bench) == "first second"
    assert client.host.reasons == [None]


def test_all_else_of_a_client_that_left_ends_at_once() -> None:
    bench, client = departed()
    again = bench.connect(client_id="me")
    assert again.consume(A).bodies() == "0"
    assert client.session.next_timer() == 0
    bench.pass_time(10_000_000)
    assert not client.host.finished


def test_what_waits_is_refused_when_it_has_waited_too_long() -> None:
    bench, client = departed({"full": {**FULL_AT_ONE["full"], "block_timeout": 1_000}})
    bench.pass_time(1_000)
    assert client.host.reasons == [None]
    assert make_room(bench) == "first"


def test_a_socket_that_breaks_or_a_broker_that_stops_ends_the_wait() -> None:
    bench, client = departed()
    client.drop()
    assert make_room(bench) == "first"
    bench, client = departed()
    reason = StorageError("DMQ0000", "the broker stops")
    client.session.fail(reason)
    assert client.host.reasons == [reason]
    assert make_room(bench) == "first"


def test_sends_of_transactions_are_no_part_of_it() -> None:
    bench, client, _, transaction = full()
    client.tell(client.text(FULL, "mine", persistent=False))
    client.tell(client.text(FULL, "never", transaction))
    client.tell(client.transaction_info(transaction, COMMIT_ONE_PHASE))
    client.tell(client.remove_info(ConnectionId(client.name)))
    client.tell(ShutdownInfo())
    assert bench.broker.transactions.open == {}
    assert bench.connect().consume(A).bodies() == "0"
    assert make_room(bench) == "first mine"
    assert client.host.reasons == [None]


def test_a_client_that_leaves_with_nothing_but_transactions_is_gone_at_once() -> None:
    _, client, _, transaction = full()
    client.tell(client.text(FULL, "never", transaction))
    client.tell(ShutdownInfo())
    assert client.host.reasons == [None]
