"""The blocking client against a broker, over sockets."""

# ACK-1, ACK-2, ACK-3, ACK-5, ACK-7, TTL-4

import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

import delosmq
from delosmq.client import (
    AckMode,
    ClientConnection,
    ClientError,
    ClientSession,
    ConnectionFactory,
    IllegalStateError,
    InvalidDestinationError,
    JmsMessage,
    MessageConsumer,
    RedeliveryPolicy,
    TextMessage,
    connect,
)
from delosmq.client.aio import AsyncConnection
from delosmq.client.options.connect_options import plan_for
from delosmq.client.threads import loop_thread
from delosmq.testing import TcpProxy
from tests.client.support import OpenSession
from tests.patience import PATIENCE_S

T = TypeVar("T")


def texts(consumer: MessageConsumer, count: int) -> list[str]:
    found = []
    for _ in range(count):
        message = consumer.receive(PATIENCE_S)
        assert message is not None
        found.append(message.text)
    return found


def left(connection: ClientConnection, name: str) -> list[str]:
    """What the queue holds and no consumer has."""
    with connection.create_session() as session:
        return [message.text for message in session.create_browser(name)]


def test_messages_are_sent_and_taken_in_a_loop(connection: ClientConnection, name: str) -> None:
    connection.send(name, "one pot of tea", properties={"price": 12})
    connection.send(name, "two pots")
    seen = [(message.text, message.properties) for message in connection.messages(name, timeout_s=0)]
    seen += [(message.text, message.properties) for message in connection.messages(name, timeout_s=0.1)]
    assert seen[:2] == [("one pot of tea", {"price": 12}), ("two pots", {})]
    assert left(connection, name) == []


def test_a_message_goes_back_when_its_turn_raises(
    connection: ClientConnection, name: str, open_session: OpenSession
) -> None:
    for text in ("good", "bad", "later"):
        connection.send(name, text)

    def work() -> None:
        for message in connection.messages(name, timeout_s=PATIENCE_S):
            if message.text == "bad":
                raise ValueError(message.text)

    with pytest.raises(ValueError, match="bad"):
        work()
    with open_session() as session:
        consumer = session.create_consumer(name)
        again = [consumer.receive(PATIENCE_S), consumer.receive(PATIENCE_S)]
        assert [(one.text, one.delivery_count) for one in again if one] == [("bad", 2), ("later", 1)]


def test_delosmq_connect_is_the_blocking_client(broker: delosmq.Broker, name: str) -> None:
    with delosmq.connect(broker.openwire_url, user=broker.user, password=broker.password) as connection:
        connection.send(name, "x")
        assert next(connection.messages(name)).text == "x"
    assert connection.closed


def test_a_factory_s_connection_delivers_nothing_until_it_is_started(broker: delosmq.Broker, name: str) -> None:
    factory = ConnectionFactory(f"{broker.openwire_url}?jms.userName={broker.user}", password=broker.password)
    with factory.create_connection() as connection:
        connection.send(name, "early")
        consumer = connection.create_session().create_consumer(name)
        assert consumer.receive(0) is None
        assert consumer.receive(0.05) is None
        connection.start()
        assert texts(consumer, 1) == ["early"]


@pytest.mark.parametrize("mode", [mode for mode in AckMode if mode != AckMode.TRANSACTED])
def test_what_is_acknowledged_does_not_come_again(
    connection: ClientConnection, name: str, mode: AckMode, open_session: OpenSession
) -> None:
    with open_session(mode) as session:
        consumer = session.create_consumer(name)
        producer = session.create_producer(name)
        for number in range(5):
            producer.send(f"m{number}")
        seen = [consumer.receive(PATIENCE_S) for _ in range(4)]
        third = seen[2]
        assert third is not None
        third.acknowledge()
    kept = {
        AckMode.AUTO: ["m4"],
        AckMode.DUPS_OK: ["m4"],
        # The session's range ends with what it has delivered, the fourth.
        AckMode.CLIENT: ["m4"],
        AckMode.INDIVIDUAL: ["m0", "m1", "m3", "m4"],
    }
    with open_session() as other:
        assert texts(other.create_consumer(name), len(kept[mode])) == kept[mode]


def test_a_transaction_happens_as_a_whole(connection: ClientConnection, name: str, open_session: OpenSession) -> None:
    connection.send(name, "in")
    with open_session(AckMode.TRANSACTED) as session:
        consumer = session.create_consumer(f"{name}?consumer.prefetchSize=10")
        producer = session.create_producer(f"{name}.out")
        assert texts(consumer, 1) == ["in"]
        producer.send("half")
        assert left(connection, f"{name}.out") == []
        session.commit()
        assert left(connection, f"{name}.out") == ["half"]
        producer.send("never")
        session.rollback()
    assert left(connection, f"{name}.out") == ["half"]
    assert left(connection, name) == []


def test_a_rollback_delivers_again_and_counts(broker: delosmq.Broker, name: str) -> None:
    url = f"{broker.openwire_url}?jms.redeliveryPolicy.initialRedeliveryDelay=10"
    with connect(url, user=broker.user, password=broker.password) as connection:
        connection.send(name, "x")
        session = connection.create_session(AckMode.TRANSACTED)
        consumer = session.create_consumer(name)
        first = consumer.receive(PATIENCE_S)
        session.rollback()
        second = consumer.receive(PATIENCE_S)
        session.commit()
        assert first is not None
        assert second is not None
        assert (first.delivery_count, first.redelivered) == (1, False)
        assert (second.delivery_count, second.redelivered) == (2, True)


def test_a_destination_has_a_redelivery_policy_of_its_own(broker: delosmq.Broker, name: str) -> None:
    policies = {
        f"{name}.>": RedeliveryPolicy(maximum_redeliveries=0),
        f"{name}.patient": RedeliveryPolicy(initial_redelivery_delay_ms=0),
    }
    with connect(
        broker.openwire_url, user=broker.user, password=broker.password, redelivery_policies=policies
    ) as connection:
        session = connection.create_session(AckMode.TRANSACTED)
        seen = []
        for destination in (f"{name}.hasty", f"{name}.patient"):
            connection.send(destination, "x")
            consumer = session.create_consumer(destination)
            assert consumer.receive(PATIENCE_S) is not None
            session.rollback()
            again = consumer.receive(0)
            seen.append(None if again is None else again.delivery_count)
            session.commit()
            consumer.close()
        assert seen == [None, 2]


def test_a_producer_s_window_stands_behind_its_destination(
    connection: ClientConnection, name: str, open_session: OpenSession
) -> None:
    with open_session() as session:
        producer = session.create_producer(f"{name}?producer.windowSize=10")
        for number in range(5):
            producer.send(f"m{number}", persistent=False)
        assert texts(session.create_consumer(name), 5) == [f"m{number}" for number in range(5)]


def test_a_send_that_is_not_waited_for_tells_when_the_broker_has_the_message(
    connection: ClientConnection, name: str, open_session: OpenSession
) -> None:
    told: list[tuple[str, ClientError | None]] = []
    threads = set()

    def note(message_id: str, error: ClientError | None) -> None:
        told.append((message_id, error))
        threads.add(threading.current_thread().name.partition("_")[0])

    with open_session() as session:
        producer = session.create_producer(name)
        sent = [producer.send(f"m{number}", on_completion=note) for number in range(50)]
    assert told == [(one, None) for one in sent]  # closing the session waits for them
    assert threads == {"delosmq-listener"}
    assert left(connection, name) == [f"m{number}" for number in range(50)]


def test_a_completion_may_use_its_session_and_even_close_it(
    connection: ClientConnection, name: str, open_session: OpenSession
) -> None:
    done = threading.Event()
    session = open_session()

    def go_on(message_id: str, error: ClientError | None) -> None:
        session.create_producer(f"{name}.next").send(message_id)
        session.close()
        done.set()

    message_id = session.create_producer(name).send("x", on_completion=go_on)
    assert done.wait(PATIENCE_S)
    assert left(connection, f"{name}.next") == [message_id]


def test_what_fails_too_often_is_a_dead_letter(broker: delosmq.Broker, name: str) -> None:
    options = "jms.redeliveryPolicy.initialRedeliveryDelay=0&jms.redeliveryPolicy.maximumRedeliveries=0"
    with connect(f"{broker.openwire_url}?{options}", user=broker.user, password=broker.password) as connection:
        connection.send(name, "poison", properties={"who": name})
        session = connection.create_session(AckMode.TRANSACTED)
        consumer = session.create_consumer(name)
        assert texts(consumer, 1) == ["poison"]
        session.rollback()
        dead = session.create_consumer("DLQ", f"who = '{name}'").receive(PATIENCE_S)
        assert dead is not None
        assert dead.text == "poison"


def test_a_listener_hears_each_message_in_one_thread(
    connection: ClientConnection, name: str, open_session: OpenSession
) -> None:  # ACK-3
    heard: list[tuple[str, int]] = []
    done = threading.Event()

    def listen(message: JmsMessage) -> None:
        heard.append((message.text, threading.get_ident()))
        if len(heard) == 3:
            done.set()

    session = open_session()
    consumer = session.create_consumer(name)
    consumer.set_listener(listen)
    for text in "abc":
        connection.send(name, text)
    assert done.wait(PATIENCE_S)
    with pytest.raises(IllegalStateError, match="DMQ9058"):
        consumer.set_listener(listen)
    with pytest.raises(IllegalStateError, match="DMQ9057"):
        consumer.receive(0)
    session.close()
    assert [text for text, _ in heard] == ["a", "b", "c"]
    assert len({thread for _, thread in heard} - {threading.get_ident()}) == 1


def test_a_listener_may_use_and_close_its_session(
    connection: ClientConnection, name: str, open_session: OpenSession
) -> None:
    done = threading.Event()
    session = open_session(AckMode.TRANSACTED)
    replies = session.create_producer(f"{name}.replies")

    def listen(message: JmsMessage) -> None:
        replies.send(message.text.upper())
        session.commit()
        session.close()
        done.set()

    session.create_consumer(name).set_listener(listen)
    connection.send(name, "x")
    assert done.wait(PATIENCE_S)
    assert left(connection, f"{name}.replies") == ["X"]


def test_a_prefetch_of_0_asks_for_each_message(
    connection: ClientConnection, name: str, open_session: OpenSession
) -> None:  # ACK-2, ACK-3
    session = open_session()
    consumer = session.create_consumer(f"{name}?consumer.prefetchSize=0")
    with pytest.raises(IllegalStateError, match="DMQ9005"):
        consumer.set_listener(lambda _: None)
    assert consumer.receive(0) is None
    assert consumer.receive(0.02) is None
    connection.send(name, "x")
    connection.send(name, "y")
    assert texts(consumer, 1) == ["x"]
    assert left(connection, name) == ["y"]


def test_a_selector_chooses(connection: ClientConnection, name: str, open_session: OpenSession) -> None:
    session = open_session()
    for price in (5, 50):
        connection.send(name, str(price), properties={"price": price})
    assert texts(session.create_consumer(name, "price > 10"), 1) == ["50"]
    assert left(connection, name) == ["5"]


def test_a_durable_subscription_keeps_what_comes_meanwhile(broker: delosmq.Broker, name: str) -> None:
    with connect(broker.openwire_url, user=broker.user, password=broker.password, client_id=name) as connection:
        session = connection.create_session()
        topic = session.topic(name)
        session.create_durable_consumer(topic, "s").close()
        connection.send(topic, "kept")
        consumer = session.create_durable_consumer(name, "s")
        assert texts(consumer, 1) == ["kept"]
        consumer.close()
        connection.unsubscribe("s")
        with pytest.raises(InvalidDestinationError, match="DMQ9021"):
            connection.unsubscribe("s")


def test_a_request_is_answered_to_a_temporary_queue(
    connection: ClientConnection, broker: delosmq.Broker, name: str, open_session: OpenSession
) -> None:
    with connect(broker.openwire_url, user=broker.user, password=broker.password) as other:
        session = open_session()
        replies = session.create_temporary_queue()
        answers = session.create_consumer(replies)
        session.create_producer(name).send(TextMessage("price of tea?", reply_to=replies, correlation_id="7"))
        request = next(other.messages(name))
        assert request.reply_to == replies
        assert request.reply_to is not None
        other.send(request.reply_to, TextMessage("two", correlation_id=request.correlation_id))
        answer = answers.receive(PATIENCE_S)
        assert answer is not None
        assert (answer.text, answer.correlation_id) == ("two", "7")
        with pytest.raises(InvalidDestinationError, match="DMQ9007"):
            with other.create_session() as foreign:
                foreign.create_consumer(replies)
        answers.close()
        session.delete_temporary(replies)
        with pytest.raises(InvalidDestinationError, match="DMQ9006"):
            session.create_producer().send("too late", destination=replies)


def test_an_exception_listener_may_close_its_connection(broker: delosmq.Broker) -> None:
    closed = threading.Event()
    with TcpProxy(broker.openwire_port) as proxy:
        url = f"tcp://127.0.0.1:{proxy.port}"
        connection = connect(url, user=broker.user, password=broker.password)

        def listen(_: ClientError) -> None:
            connection.close()
            closed.set()

        connection.set_exception_listener(listen)
        proxy.cut()
        assert closed.wait(PATIENCE_S)


def test_a_small_producer_window_lets_messages_through_one_by_one(broker: delosmq.Broker, name: str) -> None:  # ACK-7
    url = f"{broker.openwire_url}?jms.producerWindowSize=1&jms.useAsyncSend=true"
    with connect(url, user=broker.user, password=broker.password) as connection:
        session = connection.create_session()
        producer = session.create_producer(name)
        for number in range(20):
            producer.send(f"m{number}")
        assert texts(session.create_consumer(name), 20) == [f"m{number}" for number in range(20)]


@pytest.mark.parametrize("mode", [AckMode.AUTO, AckMode.INDIVIDUAL, AckMode.TRANSACTED])
def test_messages_come_once_and_in_order_however_they_are_fetched(
    connection: ClientConnection, name: str, mode: AckMode, open_session: OpenSession
) -> None:
    count = 400

    def send() -> None:
        with connection.create_session() as sending:
            producer = sending.create_producer(name)
            for number in range(count):
                producer.send(f"{number}", persistent=False)

    sender = threading.Thread(target=send)
    with open_session(mode) as session:
        consumer = session.create_consumer(f"{name}?consumer.prefetchSize=50")
        sender.start()
        seen = []
        for number in range(count):
            message = consumer.receive(PATIENCE_S)
            assert message is not None
            seen.append(int(message.text))
            if mode == AckMode.INDIVIDUAL:
                message.acknowledge()
            elif mode == AckMode.TRANSACTED and number % 7 == 6:
                session.commit()
        if mode == AckMode.TRANSACTED:
            session.commit()
        assert consumer.receive(0) is None
    sender.join()
    assert seen == list(range(count))
    assert left(connection, name) == []


def test_what_was_received_is_acknowledged_with_all_that_came_before(
    connection: ClientConnection, name: str, open_session: OpenSession
) -> None:
    for number in range(4):
        connection.send(name, f"m{number}")
    with open_session(AckMode.CLIENT) as session:
        consumer = session.create_consumer(name)
        assert texts(consumer, 2) == ["m0", "m1"]
        session.acknowledge()
        assert texts(consumer, 1) == ["m2"]
        consumer.close()
    assert left(connection, name) == ["m2", "m3"]


def test_what_was_reserved_for_an_interrupted_caller_is_not_lost(broker: delosmq.Broker, name: str) -> None:
    """Ctrl-C comes when the message is in the caller's hands already: the worst time for it."""

    class Interrupted(loop_thread.LoopThread):
        interrupts = False

        def run(self, work: Coroutine[Any, Any, T]) -> T:
            done = super().run(work)
            if self.interrupts:
                self.interrupts = False
                raise KeyboardInterrupt
            return done

    thread = Interrupted()
    connection = thread.run(
        AsyncConnection.open(plan_for(broker.openwire_url, user=broker.user, password=broker.password))
    )
    thread.call(connection.start)
    inner = thread.run(connection.create_session())
    session = ClientSession(thread, inner, connection)
    consumer = MessageConsumer(thread, thread.run(inner.create_consumer(name)), session)
    thread.run(connection.send(name, "x"))
    thread.interrupts = True
    with pytest.raises(KeyboardInterrupt):
        consumer.receive(PATIENCE_S)
    message = consumer.receive(PATIENCE_S)
    assert message is not None
    assert (message.text, message.delivery_count) == ("x", 1)
    thread.run(connection.close())
    thread.end()


def test_an_acknowledgement_covers_what_was_received_before_it_alone(broker: delosmq.Broker, name: str) -> None:
    """The loop hears of it late, when the application has received more, by this consumer and by another."""

    class Late(loop_thread.LoopThread):
        late: list[Callable[[], object]] | None = None

        def soon(self, function: Callable[[], object]) -> None:
            if self.late is None:
                super().soon(function)
            else:
                self.late.append(function)

    thread = Late()
    connection = thread.run(
        AsyncConnection.open(plan_for(broker.openwire_url, user=broker.user, password=broker.password))
    )
    thread.call(connection.start)
    inner = thread.run(connection.create_session(AckMode.CLIENT))
    session = ClientSession(thread, inner, connection)
    first, second = (session.create_consumer(f"{name}.{number}") for number in range(2))
    for text in ("a", "b"):
        for consumer in (first, second):
            thread.run(connection.send(consumer.destination, text))
    assert second.receive(PATIENCE_S) is not None
    thread.call(lambda: None)
    thread.late = []
    message = first.receive(PATIENCE_S)
    assert message is not None
    message.acknowledge()
    assert [texts(consumer, 1) for consumer in (first, second)] == [["b"], ["b"]]
    late, thread.late = thread.late, None
    for function in late:
        thread.soon(function)
    session.close()
    with connect(broker.openwire_url, user=broker.user, password=broker.password) as other:
        assert [left(other, f"{name}.{number}") for number in range(2)] == [["b"], ["b"]]
    thread.run(connection.close())
    thread.end()


def test_one_thread_serves_all_connections_and_ends_with_the_last(broker: delosmq.Broker) -> None:
    def threads() -> list[str]:
        return [one.name for one in threading.enumerate() if one.name == "delosmq-client"]

    with connect(broker.openwire_url, user=broker.user, password=broker.password):
        with connect(broker.openwire_url, user=broker.user, password=broker.password) as inner:
            with inner.create_session() as session:
                consumers = [session.create_consumer("thread.count") for _ in range(5)]
                assert len(consumers) == 5
            assert len(threads()) == 1
        assert len(threads()) == 1
    assert threads() == []


def test_a_request_waits_for_its_reply(connection: ClientConnection, broker: delosmq.Broker, name: str) -> None:
    with connect(broker.openwire_url, user=broker.user, password=broker.password) as service:

        def serve() -> None:
            service.reply(next(service.messages(name)), {"price": 2})

        thread = threading.Thread(target=serve)
        thread.start()
        assert connection.request(name, "tea", timeout_s=PATIENCE_S).body == {"price": 2}
        thread.join(PATIENCE_S)
