"""``block-timeout``: a send that has waited so long for room fails, whatever the protocol."""

# ACK-7

from delosmq.model.settings import AddressFullPolicy
from delosmq.wire.openwire.commands import COMMIT_ONE_PHASE, ExceptionResponse, ProducerAck, Response
from tests.sessions.openwire.support import ROLLED_BACK, Client, OpenWireBench, queue, throwable
from tests.sessions.support import StompBench

FULL = queue("full")
OTHER = queue("other")
LATE = "DMQ2652: 'full' had no room for the message for 1000 ms (block-timeout)"
ONE_MESSAGE: dict[str, object] = {"max_size_messages": 1, "address_full_policy": AddressFullPolicy.BLOCK}
SETTINGS: dict[str, dict[str, object]] = {
    "full": {**ONE_MESSAGE, "block_timeout": 1_000},
    "other": ONE_MESSAGE,
}


def full(settings: dict[str, dict[str, object]] = SETTINGS) -> tuple[OpenWireBench, Client]:
    """A client of a broker whose queues "full" and "other" have no room."""
    bench = OpenWireBench(address_settings=settings)
    client = bench.connect()
    client.publish(FULL, "first")
    client.publish(OTHER, "first")
    return bench, client


def failure(client: Client, command_id: int) -> str:
    (answer,) = client.answers(command_id)
    assert isinstance(answer, ExceptionResponse)
    assert answer.exception is not None
    assert answer.exception.class_name == "javax.jms.ResourceAllocationException"
    return answer.exception.message or ""


def test_a_send_fails_when_it_has_waited_so_long() -> None:
    bench, client = full()
    sent = client.feed(client.text(FULL, "second"), answer=True)
    bench.pass_time(999)
    assert client.answers(sent) == []
    bench.pass_time(1)
    assert failure(client, sent).startswith(LATE)
    assert (bench.queue("full").message_count, client.session.reading) == (1, True)
    # The connection goes on, and so does the address.
    reader = client.consume(FULL)
    assert reader.bodies() == "first"
    reader.done(0)
    client.publish(FULL, "third")
    assert reader.bodies() == "third"


def test_room_that_comes_in_time_is_enough() -> None:
    bench, client = full()
    sent = client.feed(client.text(FULL, "second"), answer=True)
    bench.pass_time(900)
    reader = bench.connect().consume(FULL)
    assert reader.bodies() == "first"
    reader.done(0)
    (answer,) = client.answers(sent)
    assert type(answer) is Response
    bench.pass_time(5_000)
    assert client.take() == []


def test_each_send_waits_from_when_it_came() -> None:
    bench, client = full()
    first = client.feed(client.text(FULL, "second"), answer=True)
    bench.pass_time(600)
    second = client.feed(client.text(FULL, "third"), answer=True)
    bench.pass_time(400)
    assert failure(client, first).startswith(LATE)
    assert client.answers(second) == []
    bench.pass_time(599)
    assert client.answers(second) == []
    bench.pass_time(1)
    assert failure(client, second).startswith(LATE)


def test_what_waits_behind_another_address_fails_once_it_is_its_turn() -> None:
    bench, client = full()
    other = client.feed(client.text(OTHER, "second"), answer=True)
    late = client.feed(client.text(FULL, "second"), answer=True)
    bench.pass_time(5_000)
    assert (client.answers(other), client.answers(late)) == ([], [])
    reader = bench.connect().consume(OTHER)
    assert reader.bodies() == "first"
    reader.done(0)
    bench.tick()
    received = client.take()
    assert type(received[0]) is Response
    assert isinstance(received[1], ExceptionResponse)


def test_without_the_setting_it_waits_for_ever() -> None:
    bench, client = full({"#": ONE_MESSAGE})
    sent = client.feed(client.text(FULL, "second"), answer=True)
    bench.pass_time(100_000_000)
    assert client.answers(sent) == []
    assert bench.broker.next_timer_at < bench.now + 40_000 * 1_000_000


def test_a_connection_that_has_gone_is_not_asked_for_any_more() -> None:
    bench, client = full()
    client.tell(client.text(FULL, "second"))
    client.drop()
    bench.pass_time(5_000)
    assert bench.queue("full").message_count == 1


def test_a_transaction_whose_send_failed_without_an_answer_can_not_be_committed() -> None:
    bench, client = full()
    transaction = client.begin()
    client.tell(client.text(FULL, "second", transaction))
    bench.pass_time(1_000)
    client.take()
    committed = client.feed(client.transaction_info(transaction, COMMIT_ONE_PHASE), answer=True)
    bench.tick()
    (answer,) = client.answers(committed)
    assert isinstance(answer, ExceptionResponse)
    assert throwable(answer).class_name == ROLLED_BACK
    assert bench.queue("full").message_count == 1


def test_a_commit_behind_it_goes_on() -> None:
    bench, client = full()
    transaction = client.begin()
    sent = client.feed(client.text(FULL, "second", transaction), answer=True)
    committed = client.feed(client.transaction_info(transaction, COMMIT_ONE_PHASE), answer=True)
    bench.pass_time(1_000)
    assert failure(client, sent).startswith(LATE)
    assert len(client.answers(committed)) == 1
    assert not [one for one in client.take() if isinstance(one, ProducerAck)]


def test_a_stomp_connection_ends_with_an_error() -> None:
    bench = StompBench(address_settings=SETTINGS)
    client = bench.connect()
    client.frame("SEND", "destination:/queue/full", body="first")
    client.frame("SEND", "destination:/queue/full", "receipt:r", body="second")
    bench.tick()
    assert client.take() == []
    bench.clock.now_ms += 999
    bench.tick()
    assert client.take() == []
    bench.clock.now_ms += 1
    bench.tick()
    (error,) = client.take()
    assert (error.command, error.headers["receipt-id"]) == ("ERROR", "r")
    assert error.headers["message"].startswith(LATE)
    assert client.host.finished
