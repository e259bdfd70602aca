"""Which messages come to whom, and when: selectors, browsers, subscriptions, temporary destinations, groups, times."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import Final

from delosmq.client import (
    AckMode,
    ClientConnection,
    InvalidDestinationError,
    JmsDestination,
    MessageConsumer,
    TextMessage,
)
from interop.client.stage import WAIT_S, ClientScript, Stage

SCRIPT: Final = ClientScript("python-delivery")


@SCRIPT.case("selectors")
def selectors(stage: Stage) -> None:
    connection = stage.connect()
    for price in (5, 50, 500):
        connection.send(stage.name(), str(price), properties={"price": price, "name": f"it's {price}"})
    session = stage.session(connection)
    with session.create_consumer(stage.name(), "price BETWEEN 10 AND 100") as consumer:
        stage.say(stage.texts(consumer, 1))
    with session.create_consumer(f"{stage.name()}?consumer.selector=price > 100") as consumer:
        stage.say(stage.texts(consumer, 1))
    stage.say("left", stage.left(stage.name()))
    for wrong in ("price >", "LIKE 'x'", "a = 'b"):
        stage.attempt(wrong, lambda wrong=wrong: session.create_consumer(stage.name(), wrong))  # type: ignore[misc]
    stage.attempt("afterwards", lambda: session.create_consumer(stage.name(), "price IS NULL"))


@SCRIPT.case("browser")
def browser(stage: Stage) -> None:
    connection = stage.connect("jms.prefetchPolicy.queueBrowserPrefetch=2")
    for number in range(7):
        connection.send(stage.name(), f"m{number}", properties={"odd": number % 2 == 1})
    session = stage.session(connection)
    looking = session.create_browser(stage.name())
    stage.say([message.text for message in looking])
    connection.send(stage.name(), "later")
    stage.say([message.text for message in looking])
    stage.say([message.text for message in session.create_browser(stage.name(), "odd = TRUE")])
    stage.say([message.text for message in session.create_browser(stage.name("empty"))])
    stage.say("left", stage.left(stage.name()))


@SCRIPT.case("durable subscription")
def durable(stage: Stage) -> None:
    topic = f"topic://{stage.name()}"
    with stage.connect(client_id="py-durable") as connection, connection.create_session() as session:
        session.create_durable_consumer(topic, "s").close()
    stage.send(stage.connect(), topic, 2)
    connection = stage.connect(client_id="py-durable")
    session = stage.session(connection)
    with session.create_durable_consumer(topic, "s") as consumer:
        stage.say(stage.texts(consumer, 2))
        stage.attempt("a second consumer", lambda: session.create_durable_consumer(topic, "s"))
        stage.attempt("unsubscribe while it is in use", lambda: connection.unsubscribe("s"))
    stage.send(connection, topic, 1)
    with session.create_durable_consumer(topic, "s", "a = 1") as consumer:
        connection.send(topic, "chosen", properties={"a": 1})
        stage.say("with another selector", stage.texts(consumer, 1))
    stage.attempt("unsubscribe", lambda: connection.unsubscribe("s"))
    stage.attempt("unsubscribe again", lambda: connection.unsubscribe("s"))
    other = stage.session(stage.connect())
    stage.attempt("without a client id", lambda: other.create_durable_consumer(topic, "s"))


@SCRIPT.case("topics")
def topics(stage: Stage) -> None:
    connection = stage.connect()
    session = stage.session(connection)
    topic = stage.name()
    two = [session.create_consumer(f"topic://{topic}.a") for _ in range(2)]
    below = session.create_consumer(f"topic://{topic}.>")
    beside = session.create_consumer(f"topic://{topic}.*.c")
    other = session.create_consumer(f"topic://{topic}.a", no_local=True)
    connection.send(f"topic://{topic}.a", "one")
    connection.send(f"topic://{topic}.b.c", "two")
    stage.connect().send(f"topic://{topic}.a", "from elsewhere")
    stage.say([stage.texts(consumer, 2) for consumer in two])
    stage.say(stage.texts(below, 3))
    stage.say(stage.texts(beside, 1))
    stage.say(stage.texts(other, 1))


@SCRIPT.case("composite destination")
def composite(stage: Stage) -> None:
    connection = stage.connect()
    first, second = stage.name("a"), stage.name("b")
    connection.send(f"{first},{second}", "both")
    stage.say(stage.left(first), stage.left(second))
    session = stage.session(connection)
    consumer = session.create_consumer(f"{first},{second}")
    connection.send(first, "m1")
    connection.send(second, "m2")
    stage.say(sorted(stage.texts(consumer, 2)))


@SCRIPT.case("temporary destinations")
def temporary(stage: Stage) -> None:
    connection, other = stage.connect(), stage.connect()
    session, foreign = stage.session(connection), stage.session(other)
    replies = session.create_temporary_queue()
    answers = session.create_consumer(replies)
    session.create_producer(stage.name()).send(TextMessage("question", reply_to=replies, correlation_id="7"))
    request = foreign.create_consumer(stage.name()).receive(WAIT_S)
    assert request is not None
    assert request.reply_to is not None
    stage.say("reply to", request.reply_to == replies, request.reply_to.is_temporary)
    other.send(request.reply_to, TextMessage("answer", correlation_id=request.correlation_id))
    answer = answers.receive(WAIT_S)
    assert answer is not None
    stage.say(answer.text, answer.correlation_id)
    stage.attempt("consumer of another connection", lambda: foreign.create_consumer(replies))
    stage.attempt("deleted while it is in use", lambda: session.delete_temporary(replies))
    answers.close()
    stage.attempt("deleted", lambda: session.delete_temporary(replies))
    stage.attempt("send to what is deleted", lambda: connection.send(replies, "late"))
    topic = session.create_temporary_topic()
    listening = [session.create_consumer(topic) for _ in range(2)]
    _send_once_known(other, topic, "to all")
    stage.say([stage.texts(consumer, 1) for consumer in listening])


def _send_once_known(connection: ClientConnection, destination: JmsDestination, text: str) -> None:
    """Sends to a temporary destination of another connection, of which the news may still be under way."""
    end = time.monotonic() + WAIT_S
    while True:
        try:
            connection.send(destination, text)
            return
        except InvalidDestinationError:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)


@SCRIPT.case("request and reply")
def request_reply(stage: Stage) -> None:
    connection = stage.connect()

    def serve() -> None:
        with stage.connect() as service:
            for count, request in enumerate(service.messages(stage.name()), 1):
                service.reply(request, request.text.upper())
                if count == 2:
                    break

    thread = threading.Thread(target=serve)
    thread.start()
    for text in ("tea", "cup"):
        stage.say(connection.request(stage.name(), text, timeout_s=WAIT_S).text)
    thread.join(WAIT_S)
    stage.attempt("nobody answers", lambda: connection.request(stage.name("nobody"), "x", timeout_s=0.05))


@SCRIPT.case("groups")
def groups(stage: Stage) -> None:
    connection = stage.connect()
    session = stage.session(connection)
    consumers = [session.create_consumer(f"{stage.name()}?consumer.prefetchSize=10") for _ in range(2)]
    for number in range(12):
        connection.send(stage.name(), TextMessage(f"{number}", group_id=f"g{number % 4}"))
    came: dict[str, set[int]] = {}
    order: dict[str, list[int]] = {}
    count = 0
    while count < 12:
        for index, consumer in enumerate(consumers):
            while (message := consumer.receive(0.02)) is not None:
                assert message.group_id is not None
                came.setdefault(message.group_id, set()).add(index)
                order.setdefault(message.group_id, []).append(int(message.text))
                count += 1
    stage.say("consumers of each group", [len(came[group]) for group in sorted(came)])
    stage.say("groups of each consumer", sorted(sum(one == {index} for one in came.values()) for index in range(2)))
    stage.say("in order", all(numbers == sorted(numbers) for numbers in order.values()))


@SCRIPT.case("priorities")
def priorities(stage: Stage) -> None:
    connection = stage.connect()
    queue = stage.name("priorities")
    for priority in (1, 9, 4, 9, 0):
        connection.send(queue, f"{priority}", priority=priority)
    stage.say(stage.texts(stage.session(connection).create_consumer(queue), 5))


def consumers(stage: Stage, *destinations: str) -> tuple[ClientConnection, list[MessageConsumer]]:
    """A connection with one session that consumes all of these."""
    connection = stage.connect()
    session = stage.session(connection)
    return connection, [session.create_consumer(destination) for destination in destinations]


@SCRIPT.case("exclusive consumer")
def exclusive(stage: Stage) -> None:
    connection, (first, second) = consumers(stage, *[f"{stage.name()}?consumer.exclusive=true"] * 2)
    stage.send(connection, stage.name(), 4)
    stage.say(stage.texts(first, 3), second.receive(0.05))
    first.close()
    stage.say(stage.texts(second, 1))


@SCRIPT.case("consumer priority")
def consumer_priority(stage: Stage) -> None:
    connection, (low, high) = consumers(stage, *[f"{stage.name()}?consumer.priority={one}" for one in (1, 5)])
    stage.send(connection, stage.name(), 3)
    stage.say(stage.texts(high, 3), low.receive(0.05))


@SCRIPT.case("delay")
def delay(stage: Stage) -> None:
    """All are sent at one time, by a commit."""
    connection = stage.connect()
    session = stage.session(connection, AckMode.TRANSACTED)
    producer = session.create_producer(stage.name())
    producer.send("later", delay_ms=400)
    producer.send("late", delay_ms=200)
    producer.send("now")
    session.commit()
    stage.say(stage.texts(stage.session(connection).create_consumer(stage.name()), 3))


@SCRIPT.case("expired at the broker")
def expired(stage: Stage) -> None:
    connection = stage.connect()
    mine = {"who": stage.name()}
    connection.send(stage.name(), "not persistent", time_to_live_ms=50, persistent=False, properties=mine)
    connection.send(stage.name(), "old", time_to_live_ms=50, properties=mine)
    connection.send(stage.name(), "new", time_to_live_ms=600_000, properties=mine)
    consumer = stage.session(connection).create_consumer("ActiveMQ.DLQ", f"who = '{stage.name()}'")
    dead = consumer.receive(WAIT_S)
    assert dead is not None
    stage.say("dead", dead.text, dead.expiration_ms)
    stage.say("left", stage.left(stage.name()))
    stage.say("nothing more:", consumer.receive(0))


@SCRIPT.case("loop that raises")
def loop_that_raises(stage: Stage) -> None:
    connection = stage.connect()
    stage.send(connection, stage.name(), 3)
    with suppress(ValueError):
        for message in connection.messages(stage.name(), timeout_s=WAIT_S):
            if message.text == "m2":
                raise ValueError("as it should")
    again = []
    for message in connection.messages(stage.name(), timeout_s=WAIT_S):
        again.append(f"{message.text} {message.redelivered}")
        if len(again) == 2:
            break
    stage.say(again)


@SCRIPT.case("stopped connection")
def stopped(stage: Stage) -> None:
    connection = stage.connect()
    consumer = stage.session(connection).create_consumer(stage.name())
    connection.stop()
    connection.send(stage.name(), "x")
    stage.say(consumer.receive(0.05))
    connection.start()
    stage.say(stage.texts(consumer, 1))


@SCRIPT.case("advisories")
def advisories(stage: Stage) -> None:
    connection = stage.connect()
    session = stage.session(connection)
    news = session.create_consumer(f"topic://ActiveMQ.Advisory.Consumer.Queue.{stage.name()}")
    consumer = session.create_consumer(stage.name())
    for _ in range(2):
        message = news.receive(WAIT_S)
        assert message is not None
        stage.say(message.type, type(message).__name__, message.properties.get("consumerCount"))
        consumer.close()
    topics = session.create_consumer(f"topic://ActiveMQ.Advisory.NoConsumer.Topic.{stage.name('advised')}")
    connection.send(f"topic://{stage.name('advised')}", "to nobody", persistent=False)
    message = topics.receive(WAIT_S)
    assert message is not None
    stage.say(message.type, sorted(message.properties))


@SCRIPT.case("two consumers share")
def shared(stage: Stage) -> None:
    connection = stage.connect()
    session = stage.session(connection, AckMode.CLIENT)
    consumers = [session.create_consumer(f"{stage.name()}?consumer.prefetchSize=1") for _ in range(2)]
    stage.send(connection, stage.name(), 2)
    stage.say(sorted(stage.texts(consumers[0], 1) + stage.texts(consumers[1], 1)))
