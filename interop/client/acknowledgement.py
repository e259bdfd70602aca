"""What the client acknowledges, frame by frame as the broker hears it, and what the broker makes of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from delosmq.client import AckMode, ClientSession, JmsMessage, MessageConsumer
from interop.client.stage import WAIT_S, ClientScript, FrameLog, Stage

SCRIPT: Final = ClientScript("python-acknowledgement")
AT_ONCE: Final = "jms.redeliveryPolicy.initialRedeliveryDelay=0&jms.redeliveryPolicy.redeliveryDelay=0"
SAID_AFTER: Final = {AckMode.CLIENT: (4,), AckMode.INDIVIDUAL: (2, 5)}
_SOON_S: Final = 0.01


def take_six(stage: Stage, session: ClientSession, consumer: MessageConsumer) -> None:
    """Six messages; the application says what it has to say after the fourth, or after the second and the fifth."""
    for number in range(1, 7):
        message = consumer.receive(WAIT_S)
        assert message is not None
        if number in SAID_AFTER.get(session.mode, ()):
            message.acknowledge()
        elif session.mode == AckMode.TRANSACTED and number == 4:
            session.commit()


def modes(mode: AckMode, kind: str) -> Callable[[Stage], None]:
    def play(stage: Stage) -> None:
        tap = stage.tap()
        connection = stage.connect("jms.prefetchPolicy.all=4", port=tap.port, client_id=stage.name("id"))
        destination = stage.name() if kind == "queue" else f"topic://{stage.name()}"
        with connection.create_session(mode) as session:
            if kind == "durable topic":
                consumer = session.create_durable_consumer(destination, "s")
            else:
                consumer = session.create_consumer(destination)
            stage.send(stage.connect(), destination, 8)
            take_six(stage, session, consumer)
        connection.close()
        stage.say("acknowledges", tap.acks())
        if kind == "queue":
            stage.say("left", stage.left(destination))

    return play


for each_mode in AckMode:
    for each_kind in ("queue", "topic", "durable topic"):
        SCRIPT.case(f"{each_mode.name} of a {each_kind}")(modes(each_mode, each_kind))


@SCRIPT.case("optimised")
def optimised(stage: Stage) -> None:
    tap = stage.tap()
    options = "jms.optimizeAcknowledge=true&jms.optimizeAcknowledgeTimeOut=600000&jms.prefetchPolicy.all=10"
    connection = stage.connect(options, port=tap.port)
    stage.send(stage.connect(), stage.name(), 20)
    with connection.create_session() as session:
        stage.say(stage.texts(session.create_consumer(stage.name()), 16))
    connection.close()
    stage.say("acknowledges", tap.acks())
    stage.say("left", stage.left(stage.name()))


def dispatched(stage: Stage, tap: FrameLog, session: ClientSession, count: int) -> None:
    """Waits until so many messages have come, and says how many came in the end."""
    end = time.monotonic() + WAIT_S
    while tap.dispatched() < count and time.monotonic() < end:
        time.sleep(_SOON_S)
    stage.barrier(session)
    stage.say("dispatched", tap.dispatched())


PREFETCHES: Final = (
    "jms.prefetchPolicy.queuePrefetch=3&jms.prefetchPolicy.topicPrefetch=4&jms.prefetchPolicy.durableTopicPrefetch=2"
    "&jms.prefetchPolicy.queueBrowserPrefetch=5&jms.prefetchPolicy.optimizeDurableTopicPrefetch=6"
)


def prefetch(kind: str, count: int, mode: AckMode = AckMode.CLIENT) -> Callable[[Stage], None]:
    def play(stage: Stage) -> None:
        tap = stage.tap()
        connection = stage.connect(PREFETCHES, port=tap.port, client_id=stage.name("id"))
        session = stage.session(connection, mode)
        topic = f"topic://{stage.name()}"
        if kind == "queue":
            session.create_consumer(stage.name())
        elif kind == "queue by its destination":
            session.create_consumer(f"{stage.name()}?consumer.prefetchSize=7")
        elif kind == "topic":
            session.create_consumer(topic)
        else:
            session.create_durable_consumer(topic, "s")
        stage.send(stage.connect(), stage.name() if kind.startswith("queue") else topic, 10)
        dispatched(stage, tap, session, count)

    return play


for each_kind, each_count in {"queue": 3, "queue by its destination": 7, "topic": 4, "durable topic": 2}.items():
    SCRIPT.case(f"prefetch of a {each_kind}")(prefetch(each_kind, each_count))
SCRIPT.case("prefetch of a durable topic in AUTO")(prefetch("durable topic", 6, AckMode.AUTO))


@SCRIPT.case("prefetch 0")
def pull(stage: Stage) -> None:
    tap = stage.tap()
    connection = stage.connect(port=tap.port)
    session = stage.session(connection)
    consumer = session.create_consumer(f"{stage.name()}?consumer.prefetchSize=0")
    stage.say("nothing there:", consumer.receive(0), consumer.receive(0.05))
    stage.send(stage.connect(), stage.name(), 3)
    stage.barrier(session)
    stage.say("dispatched", tap.dispatched())
    stage.say(stage.texts(consumer, 1))
    stage.say("dispatched", tap.dispatched())
    stage.attempt("listener", lambda: consumer.set_listener(print))
    session.close()
    stage.say("left", stage.left(stage.name()))


@SCRIPT.case("room by DELIVERED")
def room(stage: Stage) -> None:
    """With a prefetch of 4, CLIENT gets more than 4 messages without acknowledging any."""
    tap = stage.tap()
    connection = stage.connect(f"jms.prefetchPolicy.all=4&{AT_ONCE}", port=tap.port)
    session = stage.session(connection, AckMode.CLIENT)
    consumer = session.create_consumer(stage.name())
    stage.send(stage.connect(), stage.name(), 10)
    stage.say(stage.texts(consumer, 10))
    session.recover()
    stage.say(stage.texts(consumer, 2))
    connection.close()
    stage.say("acknowledges", tap.acks())
    stage.say("left", stage.left(stage.name()))


def counted(consumer: MessageConsumer) -> str:
    message = consumer.receive(WAIT_S)
    return "nothing" if message is None else f"{message.text} for the {message.delivery_count}. time"


@SCRIPT.case("rollback")
def rollback(stage: Stage) -> None:
    tap = stage.tap()
    connection = stage.connect(AT_ONCE, port=tap.port)
    stage.send(connection, stage.name(), 2)
    session = stage.session(connection, AckMode.TRANSACTED)
    consumer = session.create_consumer(stage.name())
    for _ in range(3):
        stage.say(counted(consumer), counted(consumer))
        session.rollback()
    stage.say(counted(consumer), counted(consumer))
    session.commit()
    connection.close()
    stage.say("acknowledges", tap.acks())
    stage.say("left", stage.left(stage.name()))


@SCRIPT.case("rollback by the end of the session")
def rollback_by_close(stage: Stage) -> None:
    connection = stage.connect()
    stage.send(connection, stage.name(), 1)
    with connection.create_session(AckMode.TRANSACTED) as session:
        session.create_producer(f"{stage.name()}.out").send("never")
        stage.say(counted(session.create_consumer(stage.name())))
    with connection.create_session() as session:
        stage.say(counted(session.create_consumer(stage.name())))
    stage.say("sent", stage.left(f"{stage.name()}.out"))


@SCRIPT.case("poison at the maximum")
def poison(stage: Stage) -> None:
    tap = stage.tap()
    queue = stage.name("individual")
    connection = stage.connect(f"{AT_ONCE}&jms.redeliveryPolicy.maximumRedeliveries=2", port=tap.port)
    connection.send(queue, "bad", properties={"who": "me"}, priority=7)
    session = stage.session(connection, AckMode.TRANSACTED)
    consumer = session.create_consumer(queue)
    for _ in range(3):
        stage.say(counted(consumer))
        session.rollback()
    connection.close()
    stage.say("acknowledges", tap.acks())
    stage.say("left", stage.left(queue))
    with stage.connect() as other, other.create_session() as looking:
        dead = looking.create_consumer(f"ActiveMQ.DLQ.Queue.{queue}").receive(WAIT_S)
        assert dead is not None
        stage.say(dead.text, dead.properties["who"], dead.priority, dead.persistent, dead.expiration_ms)
        stage.say("cause" if "dlqDeliveryFailureCause" in dead.properties else "no cause")


@SCRIPT.case("poison after six redeliveries by default")
def poison_by_default(stage: Stage) -> None:
    queue = stage.name("individual")
    connection = stage.connect(AT_ONCE)
    stage.send(connection, queue, 1)
    session = stage.session(connection, AckMode.TRANSACTED)
    consumer = session.create_consumer(queue)
    for _ in range(7):
        stage.say(counted(consumer))
        session.rollback()
    stage.say("nothing more:", consumer.receive(0.05))
    connection.close()
    stage.say("dead", stage.left(f"ActiveMQ.DLQ.Queue.{queue}"))


@SCRIPT.case("a listener that fails")
def listener(stage: Stage) -> None:
    tap = stage.tap()
    queue = stage.name("individual")
    connection = stage.connect(f"{AT_ONCE}&jms.redeliveryPolicy.maximumRedeliveries=2", port=tap.port)
    session = stage.session(connection)
    consumer = session.create_consumer(queue)
    heard: list[str] = []
    done = threading.Event()

    def listen(message: JmsMessage) -> None:
        heard.append(f"{message.text} {message.delivery_count}")
        if message.text == "m1":
            raise ValueError("as it should")
        done.set()

    consumer.set_listener(listen)
    stage.send(connection, queue, 2)
    done.wait(WAIT_S)
    connection.close()
    stage.say(heard)
    stage.say("acknowledges", tap.acks())
    stage.say("dead", stage.left(f"ActiveMQ.DLQ.Queue.{queue}"))


@SCRIPT.case("expired at the client")
def expired(stage: Stage) -> None:
    tap = stage.tap()
    connection = stage.connect(port=tap.port)
    session = stage.session(connection)
    consumer = session.create_consumer(stage.name())
    sending = stage.connect()
    sending.send(stage.name(), "old", time_to_live_ms=500, properties={"who": stage.name()})
    sending.send(stage.name(), "new")
    dispatched(stage, tap, session, 2)
    time.sleep(0.51)
    stage.say(stage.texts(consumer, 1))
    connection.close()
    stage.say("acknowledges", tap.acks())
    with stage.connect() as other, other.create_session() as looking:
        dead = looking.create_consumer("ActiveMQ.DLQ", f"who = '{stage.name()}'")
        stage.say("dead", stage.texts(dead, 1))


@SCRIPT.case("redelivered to others")
def to_others(stage: Stage) -> None:
    """What a closed consumer's application has seen counts, the rest of its prefetch does not."""
    connection = stage.connect()
    stage.send(connection, stage.name(), 3)
    with connection.create_session(AckMode.CLIENT) as session:
        stage.say(counted(session.create_consumer(stage.name())))
    with connection.create_session() as session:
        consumer = session.create_consumer(stage.name())
        stage.say([counted(consumer) for _ in range(3)])


@SCRIPT.case("forms of acknowledge")
def forms(stage: Stage) -> None:
    tap = stage.tap()
    first, second = stage.name("a"), stage.name("b")
    sending = stage.connect()
    stage.send(sending, first, 4)
    stage.send(sending, second, 4)
    connection = stage.connect(port=tap.port)
    with connection.create_session(AckMode.CLIENT) as session:
        one, two = session.create_consumer(first), session.create_consumer(second)
        stage.texts(one, 2)
        stage.texts(two, 1)
        session.acknowledge()
        stage.texts(one, 1)
        stage.texts(two, 1)
        one.acknowledge()
    connection.close()
    stage.say("acknowledges", tap.acks())
    stage.say("left", stage.left(first), stage.left(second))
