"""BEGIN, COMMIT, ABORT: sends and answers of one connection that happen together or not at all."""

# ACK-5

import pytest

from delosmq.engine.transactions.commit_steps import SMALL_OPERATIONS
from delosmq.engine.transactions.transactions import ACKNOWLEDGED_AT_ONCE
from delosmq.model.settings import AddressFullPolicy
from tests.sessions.support import Client, StompBench

LARGE = SMALL_OPERATIONS + 1
FULL_AT_ONE = {"full": {"max_size_messages": 1, "address_full_policy": AddressFullPolicy.BLOCK}}


def begin(client: Client, name: str = "t") -> None:
    client.frame("BEGIN", f"transaction:{name}")


def send(client: Client, body: str, *headers: str, to: str = "/queue/a") -> None:
    client.frame("SEND", f"destination:{to}", *headers, body=body)


def consumer(bench: StompBench, *headers: str, to: str = "/queue/a") -> Client:
    client = bench.connect()
    client.frame("SUBSCRIBE", "id:s", f"destination:{to}", *headers)
    return client


def acks(client: Client) -> list[str]:
    return [frame.headers["ack"] for frame in client.take() if frame.command == "MESSAGE"]


# -- sends -----------------------------------------------------------------------------------------------------------


def test_what_a_transaction_sends_comes_with_its_commit_in_order() -> None:
    bench = StompBench()
    client = consumer(bench)
    begin(client)
    send(client, "one", "transaction:t")
    send(client, "outside")
    send(client, "two", "transaction:t")
    assert client.take_bodies() == "outside"
    client.frame("COMMIT", "transaction:t", "receipt:r")
    frames = client.take()
    assert [f.body for f in frames if f.command == "MESSAGE"] == [b"one", b"two"]
    assert [f.headers["receipt-id"] for f in frames if f.command == "RECEIPT"] == ["r"]
    assert not any("transaction" in f.headers for f in frames)


def test_what_was_aborted_was_never_sent() -> None:
    bench = StompBench()
    client = consumer(bench)
    begin(client)
    send(client, "gone", "transaction:t")
    client.frame("ABORT", "transaction:t", "receipt:r")
    assert client.receipts() == ["r"]
    assert bench.queue("a").message_count == 0
    assert bench.broker.transactions.open == {}


def test_a_receipt_of_commit_waits_for_the_disk() -> None:
    bench = StompBench(hold=True)
    client = Client(bench)
    client.send("CONNECT\naccept-version:1.2\nhost:h\nlogin:anna\npasscode:correct horse\n\n\0")
    bench.sync()
    bench.tick()
    client.take()
    begin(client)
    send(client, "x", "transaction:t", "persistent:true")
    client.frame("COMMIT", "transaction:t", "receipt:r")
    assert client.receipts() == []
    bench.sync()
    bench.tick()
    assert client.receipts() == ["r"]


def test_several_transactions_are_open_side_by_side_and_names_are_free_again() -> None:
    bench = StompBench()
    client = consumer(bench)
    begin(client, "t")
    begin(client, "u")
    send(client, "t1", "transaction:t")
    send(client, "u1", "transaction:u")
    client.frame("COMMIT", "transaction:u")
    assert client.take_bodies() == "u1"
    begin(client, "u")
    client.frame("ABORT", "transaction:u")
    client.frame("COMMIT", "transaction:t")
    assert client.take_bodies() == "t1"
    assert not client.host.finished


def test_the_same_head_finds_the_transaction_of_its_name_each_time() -> None:
    bench = StompBench()
    client = consumer(bench)
    for _ in range(2):
        begin(client)
        send(client, "x", "transaction:t")
        client.frame("COMMIT", "transaction:t")
    assert client.take_bodies() == "x x"
    send(client, "late", "transaction:t")
    assert "header transaction of SEND is 't'" in client.error().headers["message"]


# -- answers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode, left", [("client", 0), ("client-individual", 1)])
def test_acknowledgements_count_with_the_commit(mode: str, left: int) -> None:
    bench = StompBench()
    client = consumer(bench, f"ack:{mode}")
    for body in ("one", "two"):
        send(client, body)
    last = acks(client)[-1]
    begin(client)
    client.frame("ACK", f"id:{last}", "transaction:t")
    assert bench.queue("a").message_count == 2
    client.frame("COMMIT", "transaction:t", "receipt:r")
    assert client.receipts() == ["r"]
    assert bench.queue("a").message_count == left


@pytest.mark.parametrize("command", ["ACK", "NACK"])
def test_what_an_aborted_transaction_answered_comes_again(command: str) -> None:
    bench = StompBench()
    client = consumer(bench, "ack:client")
    send(client, "one")
    send(client, "two")
    last = acks(client)[-1]
    begin(client)
    client.frame(command, f"id:{last}", "transaction:t")
    client.frame("ABORT", "transaction:t")
    frames = client.take()
    assert [(f.body, f.headers["redelivered"]) for f in frames] == [(b"one", "true"), (b"two", "true")]


def test_a_rejection_counts_with_the_commit() -> None:
    bench = StompBench(
        address_settings={"#": {"max_delivery_attempts": 1, "dead_letter_address": "DLQ"}},
    )
    dead = consumer(bench, to="/queue/DLQ")
    client = consumer(bench, "ack:client-individual")
    send(client, "bad")
    (ack,) = acks(client)
    begin(client)
    client.frame("NACK", f"id:{ack}", "transaction:t")
    assert dead.take_bodies() == ""
    client.frame("COMMIT", "transaction:t", "receipt:r")
    assert client.receipts() == ["r"]
    assert dead.take_bodies() == "bad"
    assert bench.queue("a").message_count == 0


@pytest.mark.parametrize("first", ["ACK", "NACK"])
@pytest.mark.parametrize("second", ["ACK", "NACK"])
def test_each_delivery_is_answered_once_in_a_transaction_too(first: str, second: str) -> None:
    bench = StompBench()
    client = consumer(bench, "ack:client-individual")
    send(client, "x")
    (ack,) = acks(client)
    begin(client)
    client.frame(first, f"id:{ack}", "transaction:t")
    client.frame(second, f"id:{ack}")
    assert "no message is waiting for an answer" in client.error().headers["message"]


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_older_versions_have_transactions_too(version: str) -> None:
    bench = StompBench()
    client = bench.connect(version)
    client.frame("SUBSCRIBE", "id:s", "destination:/queue/a", "ack:client")
    send(client, "x")
    (message,) = client.take()
    begin(client)
    client.frame("ACK", f"message-id:{message.headers['message-id']}", "subscription:s", "transaction:t")
    send(client, "answer", "transaction:t", to="/queue/b")
    client.frame("COMMIT", "transaction:t")
    assert bench.queue("a").message_count == 0
    assert bench.queue("b").message_count == 1


# -- how a connection ends -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["lost", "eof", "error", "disconnect"])
@pytest.mark.parametrize("command", ["ACK", "NACK"])
def test_a_connections_end_rolls_its_transactions_back(end: str, command: str) -> None:
    bench = StompBench()
    client = consumer(bench, "ack:client")
    send(client, "x")
    (ack,) = acks(client)
    begin(client)
    client.frame(command, f"id:{ack}", "transaction:t")
    send(client, "never", "transaction:t")
    if end == "lost":
        client.session.connection_lost()
    elif end == "eof":
        client.session.handle_eof()
    elif end == "error":
        client.frame("FLY")
    else:
        client.frame("DISCONNECT", "receipt:bye")
        assert client.receipts() == ["bye"]
    bench.tick()
    assert bench.broker.transactions.open == {}
    assert bench.queue("a").pending.count == 1
    assert consumer(bench).take_bodies() == "x"


# -- what goes on in slices ------------------------------------------------------------------------------------------


def large(client: Client) -> None:
    begin(client, "big")
    for number in range(LARGE):
        client.feed(f"SEND\ndestination:/queue/a\ntransaction:big\n\n{number}\0")


def test_a_large_commit_stops_reading_and_is_answered_when_it_is_done() -> None:
    bench = StompBench()
    client = bench.connect()
    large(client)
    client.feed("COMMIT\ntransaction:big\nreceipt:big\n\n\0SEND\ndestination:/queue/a\nreceipt:after\n\nlast\0")
    assert not client.is_read()
    assert client.receipts() == []
    bench.tick()
    assert client.is_read()
    assert client.receipts() == ["big", "after"]
    assert bench.queue("a").message_count == LARGE + 1
    reader = consumer(bench)
    assert reader.take_bodies() == " ".join([*map(str, range(LARGE)), "last"])


@pytest.mark.parametrize("end", ["lost", "eof"])
def test_a_large_commit_under_way_is_done_though_nobody_waits_for_it(end: str) -> None:
    bench = StompBench()
    client = consumer(bench, "ack:client-individual", to="/queue/b")
    send(client, "back", to="/queue/b")
    (ack,) = acks(client)
    large(client)
    client.feed(f"NACK\nid:{ack}\ntransaction:big\n\n\0COMMIT\ntransaction:big\nreceipt:big\n\n\0")
    if end == "lost":
        client.session.connection_lost()
    else:
        client.session.handle_eof()
    bench.tick()
    assert bench.broker.transactions.open == {}
    assert bench.queue("a").message_count == LARGE
    assert bench.queue("b").pending.count == 1


def test_a_large_commit_that_is_refused_ends_in_an_error() -> None:
    bench = StompBench()
    client = bench.connect()
    large(client)
    client.feed("SEND\ndestination:/queue/a\ntransaction:big\n_AMQ_DUPL_ID:d\n\nx\0")
    send(bench.connect(), "first", "_AMQ_DUPL_ID:d")
    client.feed("COMMIT\ntransaction:big\nreceipt:big\n\n\0")
    bench.tick()
    error = client.error()
    assert error.headers["receipt-id"] == "big"
    assert bench.queue("a").message_count == 1
    assert bench.broker.transactions.open == {}


# -- duplicates ------------------------------------------------------------------------------------------------------


def test_a_duplicate_in_a_transaction_is_said_at_its_commit() -> None:
    bench = StompBench()
    client = consumer(bench, "ack:client", to="/queue/b")
    send(client, "back", to="/queue/b")
    (ack,) = acks(client)
    send(client, "first", "_AMQ_DUPL_ID:d")
    begin(client)
    client.frame("NACK", f"id:{ack}", "transaction:t")
    send(client, "other", "transaction:t")
    send(client, "again", "_AMQ_DUPL_ID:d", "transaction:t", "receipt:s")
    assert client.receipts() == ["s"]
    client.frame("COMMIT", "transaction:t", "receipt:r")
    assert client.error().headers["receipt-id"] == "r"
    assert bench.queue("a").message_count == 1
    assert bench.queue("b").pending.count == 1
    assert bench.broker.transactions.open == {}


# -- a full address --------------------------------------------------------------------------------------------------


def full() -> tuple[StompBench, Client]:
    bench = StompBench(address_settings=FULL_AT_ONE)
    send(bench.connect(), "first", to="/queue/full")
    return bench, bench.connect()


def make_room(bench: StompBench) -> str:
    reader = consumer(bench, to="/queue/full")
    return reader.take_bodies()


def test_a_commit_waits_for_its_own_sends_that_wait_for_space() -> None:
    bench, client = full()
    begin(client)
    send(client, "second", "transaction:t", to="/queue/full")
    client.frame("COMMIT", "transaction:t", "receipt:r")
    assert client.receipts() == []
    assert make_room(bench) == "first second"
    assert client.receipts() == ["r"]


def test_a_commit_does_not_wait_for_a_send_that_has_got_its_space() -> None:
    bench, client = full()
    begin(client)
    send(client, "second", "transaction:t", "receipt:s", to="/queue/full")
    assert make_room(bench) == "first"
    assert client.receipts() == ["s"]
    client.frame("COMMIT", "transaction:t", "receipt:r")
    assert client.receipts() == ["r"]


def test_a_large_commit_that_is_done_lets_reading_go_on_though_a_send_still_waits() -> None:
    bench, client = full()
    large(client)
    send(client, "waits", "receipt:s", to="/queue/full")
    client.feed("COMMIT\ntransaction:big\nreceipt:r\n\n\0")
    assert not client.is_read()
    bench.tick()
    assert client.is_read()
    assert bench.queue("a").message_count == LARGE
    assert client.receipts() == []  # in the order of the frames
    make_room(bench)
    assert client.receipts() == ["s", "r"]


def test_a_commit_does_not_wait_for_the_sends_of_others() -> None:
    bench, client = full()
    begin(client)
    send(client, "through", "transaction:t")
    send(client, "waits", "receipt:s", to="/queue/full")
    client.frame("COMMIT", "transaction:t", "receipt:r")
    assert bench.queue("a").message_count == 1
    assert client.receipts() == []  # in the order of the frames
    make_room(bench)
    assert client.receipts() == ["s", "r"]


def test_a_large_commit_returns_what_it_rejected_before_its_receipt_has_its_turn() -> None:
    bench, client = full()
    client.frame("SUBSCRIBE", "id:s", "destination:/queue/b", "ack:client")
    send(client, "back", to="/queue/b")
    (ack,) = acks(client)
    large(client)
    client.frame("NACK", f"id:{ack}", "transaction:big")
    client.frame("UNSUBSCRIBE", "id:s")
    send(client, "waits", "receipt:s", to="/queue/full")
    client.frame("COMMIT", "transaction:big", "receipt:r")
    assert bench.queue("b").pending.count == 1
    assert client.receipts() == []
    make_room(bench)
    assert client.receipts() == ["s", "r"]


def test_a_large_commit_that_is_refused_says_so_though_sends_of_others_wait() -> None:
    bench, client = full()
    large(client)
    send(client, "again", "_AMQ_DUPL_ID:d", "transaction:big")
    send(bench.connect(), "first", "_AMQ_DUPL_ID:d")
    send(client, "waits", "receipt:s", to="/queue/full")
    client.frame("COMMIT", "transaction:big", "receipt:r")
    assert client.error().headers["receipt-id"] == "r"
    assert make_room(bench) == "first"
    assert bench.broker.transactions.open == {}


def test_an_abort_makes_parked_sends_of_its_transaction_void() -> None:
    bench, client = full()
    begin(client)
    send(client, "void", "transaction:t", "receipt:s", to="/queue/full")
    assert client.receipts() == []
    client.frame("ABORT", "transaction:t", "receipt:r")
    assert client.receipts() == ["s", "r"]
    send(client, "not parked", "receipt:n", to="/queue/a")
    assert client.receipts() == ["n"]
    assert make_room(bench) == "first"


def test_disconnect_commits_what_it_was_told_to_and_no_more() -> None:
    bench, client = full()
    begin(client, "t")
    begin(client, "u")
    send(client, "second", "transaction:t", to="/queue/full")
    send(client, "void", "transaction:u", to="/queue/full")
    client.frame("COMMIT", "transaction:t", "receipt:r")
    client.frame("DISCONNECT", "receipt:bye")
    assert make_room(bench) == "first second"
    assert client.receipts() == ["r", "bye"]
    assert bench.broker.transactions.open == {}


def test_a_connection_that_is_lost_commits_nothing_that_was_still_parked() -> None:
    bench, client = full()
    begin(client)
    send(client, "second", "transaction:t", to="/queue/full")
    client.frame("COMMIT", "transaction:t")
    client.session.connection_lost()
    assert bench.broker.transactions.open == {}
    assert make_room(bench) == "first"


def test_a_large_commit_that_was_parked_goes_on_in_slices() -> None:
    bench, client = full()
    large(client)
    send(client, "parked", "transaction:big", to="/queue/full")
    client.frame("COMMIT", "transaction:big", "receipt:r")
    client.frame("SEND", "destination:/queue/a", "receipt:after", body="last")
    make_room(bench)
    assert client.receipts() == ["r", "after"]
    assert bench.queue("a").message_count == LARGE + 1
    send(client, "not parked", "receipt:n", to="/queue/a")
    assert client.receipts() == ["n"]


# -- bad input -------------------------------------------------------------------------------------------------------


def test_a_name_is_taken_until_its_transaction_ends() -> None:
    client = StompBench().connect()
    begin(client)
    client.frame("BEGIN", "transaction:t", "receipt:r")
    assert "already" in client.error().headers["message"]


def test_open_transactions_are_limited() -> None:
    bench = StompBench()
    client = bench.connect()
    for number in range(101):
        client.frame("BEGIN", f"transaction:{number}")
    assert "100 transactions open" in client.error().headers["message"]
    assert bench.broker.transactions.open == {}


@pytest.mark.parametrize("command", ["COMMIT", "ABORT"])
def test_ended_transactions_do_not_count(command: str) -> None:
    client = StompBench().connect()
    for number in range(101):
        client.frame("BEGIN", f"transaction:{number}")
        client.frame(command, f"transaction:{number}")
    assert not client.host.finished


@pytest.mark.parametrize("command", ["ACK", "NACK"])
def test_an_answer_in_no_transaction_is_refused(command: str) -> None:
    bench = StompBench()
    client = consumer(bench, "ack:client")
    send(client, "x")
    (ack,) = acks(client)
    client.frame(command, f"id:{ack}", "transaction:none")
    assert f"header transaction of {command}" in client.error().headers["message"]
    assert bench.queue("a").message_count == 1


def test_another_connections_transaction_is_unknown() -> None:
    bench = StompBench()
    begin(bench.connect())
    client = bench.connect()
    client.frame("COMMIT", "transaction:t")
    assert "no open transaction of this connection" in client.error().headers["message"]


# -- acknowledgements of very many -----------------------------------------------------------------------------------


@pytest.mark.parametrize("in_transaction", [False, True])
def test_a_large_cumulative_ack_stops_reading_and_is_answered_when_it_is_done(in_transaction: bool) -> None:
    bench = StompBench()
    producer = bench.connect()
    for number in range(ACKNOWLEDGED_AT_ONCE + 1):
        producer.feed(f"SEND\ndestination:/queue/a\n\n{number}\0")
    client = consumer(bench, "ack:client", "consumer-window-size:-1")
    ids: list[str] = []
    for _ in range(ACKNOWLEDGED_AT_ONCE):
        bench.tick()
        ids += acks(client)
    assert len(ids) == ACKNOWLEDGED_AT_ONCE + 1
    begin(client)
    header = "transaction:t\n" if in_transaction else ""
    client.feed(f"ACK\nid:{ids[-1]}\nreceipt:ack\n{header}\n\0COMMIT\ntransaction:t\nreceipt:commit\n\n\0")
    assert not client.is_read()
    assert client.receipts() == []
    for _ in range(3):
        bench.tick()
    assert client.is_read()
    assert client.receipts() == ["ack", "commit"]
    assert bench.queue("a").message_count == 0
