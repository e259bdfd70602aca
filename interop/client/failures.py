"""What goes wrong: refusals, misuse, brokers that die."""

from __future__ import annotations

import threading
from typing import Any, Final, cast

from delosmq.client import AckMode, ClientConnection, ClientError, connect
from interop.client.stage import WAIT_S, ClientScript, Stage

SCRIPT: Final = ClientScript("python-failures")


def opened(url: str, user: str = "", password: str = "", client_id: str = "") -> None:
    connect(url, user=user, password=password, client_id=client_id).close()


@SCRIPT.case("logins")
def logins(stage: Stage) -> None:
    user, password = stage.place.user, stage.place.password
    stage.attempt("right password", lambda: opened(stage.url(), user, password))
    stage.attempt("wrong password", lambda: opened(stage.url(), user, "wrong"))
    stage.attempt("no password", lambda: opened(stage.url(), user))
    stage.attempt("unknown user", lambda: opened(stage.url(), "nobody", password))
    stage.attempt("nobody", lambda: opened(stage.url()))
    stage.attempt("wrong password, by failover", lambda: opened(stage.failover(), user, "wrong"))
    with stage.connect(client_id="py-login"):
        stage.attempt("client id in use", lambda: opened(stage.url(), user, password, "py-login"))
    stage.attempt("client id after use", lambda: opened(stage.url(), user, password, "py-login"))


@SCRIPT.case("TLS where there is none")
def tls(stage: Stage) -> None:
    options = "transport.connectionTimeout=2000"
    stage.attempt("ssl", lambda: opened(f"ssl://127.0.0.1:{stage.place.port}?{options}"))


@SCRIPT.case("wrong options and modes")
def options(stage: Stage) -> None:
    stage.attempt("option", lambda: opened(stage.url("jms.useAsyncSends=true")))
    stage.attempt("value", lambda: opened(stage.url("jms.useAsyncSend=perhaps")))
    stage.attempt("scheme", lambda: opened("amqp://127.0.0.1:1"))
    connection = stage.connect()
    stage.attempt("mode", lambda: connection.create_session(cast("Any", "AUTO")))
    session = stage.session(connection)
    stage.attempt("consumer option", lambda: session.create_consumer("q?consumer.prefetch=1"))
    stage.attempt("property", lambda: connection.send(stage.name(), "x", properties={"a": cast("Any", object())}))
    stage.attempt("afterwards", lambda: connection.send(stage.name(), "x"))
    stage.say("left", stage.left(stage.name()))


@SCRIPT.case("misuse")
def misuse(stage: Stage) -> None:
    connection = stage.connect()
    stage.send(connection, stage.name(), 2)
    session = stage.session(connection)
    consumer = session.create_consumer(stage.name())
    stage.attempt("commit in AUTO", session.commit)
    stage.attempt("rollback in AUTO", session.rollback)
    stage.say(stage.texts(consumer, 1))
    heard: list[str] = []
    came = threading.Event()

    def listen(message: object) -> None:
        heard.append(str(getattr(message, "text", "")))
        came.set()

    consumer.set_listener(listen)
    stage.attempt("receive beside a listener", lambda: consumer.receive(0))
    stage.attempt("a second listener", lambda: consumer.set_listener(print))
    came.wait(WAIT_S)
    stage.say(heard)
    consumer.close()
    stage.attempt("closed consumer", lambda: consumer.receive(0))
    with connection.create_session(AckMode.TRANSACTED) as transacted:
        stage.attempt("acknowledge in a transaction", transacted.acknowledge)
        stage.attempt("recover in a transaction", transacted.recover)
    stage.attempt("closed session", lambda: transacted.create_producer())
    session.close()
    connection.close()
    stage.attempt("closed connection", lambda: connection.send(stage.name(), "x"))


@SCRIPT.case("too large")
def too_large(stage: Stage) -> None:
    connection = stage.connect("wireFormat.maxFrameSize=5000")
    session = stage.session(connection, AckMode.CLIENT)
    connection.send(stage.name(), "before")
    consumer = session.create_consumer(stage.name())
    stage.say(stage.texts(consumer, 1))
    stage.attempt("too large", lambda: connection.send(stage.name(), "x" * 10_000))
    connection.send(stage.name(), "after")
    stage.say(stage.texts(consumer, 1))
    session.close()
    stage.say("left", stage.left(stage.name()))


@SCRIPT.case("a broker that dies without failover")
def dies(stage: Stage) -> None:
    connection = stage.connect()
    stage.send(connection, stage.name(), 2)
    session = stage.session(connection, AckMode.CLIENT)
    consumer = session.create_consumer(stage.name())
    stage.say(stage.texts(consumer, 1))
    waiting = session.create_consumer(stage.name("empty"))
    heard: list[ClientError] = []
    told = threading.Event()

    def hear(error: ClientError) -> None:
        heard.append(error)
        told.set()

    connection.set_exception_listener(hear)
    ended: list[str] = []
    thread = threading.Thread(target=lambda: ended.append(outcome(connection, lambda: waiting.receive(WAIT_S))))
    thread.start()
    stage.place.kill()
    thread.join(WAIT_S)
    told.wait(WAIT_S)
    stage.say("who waits:", ended, "listener:", [type(error).__name__ for error in heard])
    stage.attempt("send", lambda: connection.send(stage.name(), "x"))
    stage.say("closed", connection.closed)
    stage.place.start()
    stage.say("left", sorted(stage.left(stage.name())))


def outcome(connection: ClientConnection, work: Any) -> str:
    try:
        return str(work())
    except ClientError as error:
        return type(error).__name__


@SCRIPT.case("failover")
def failover(stage: Stage) -> None:
    connection = stage.connect(url=stage.failover())
    session = stage.session(connection)
    producer = session.create_producer(stage.name())
    consumer = session.create_consumer(stage.name())
    replies = session.create_temporary_queue()
    answers = session.create_consumer(replies)
    for text in ("a", "b", "c"):
        producer.send(text)
    stage.say(stage.texts(consumer, 2))
    stage.place.kill()
    sending = threading.Thread(target=lambda: connection.send(stage.name(), "sent meanwhile"))
    sending.start()
    stage.place.start()
    sending.join(WAIT_S)
    producer.send("d")
    stage.say(sorted(stage.texts(consumer, 3)))
    connection.send(replies, "answer")
    stage.say(stage.texts(answers, 1))
    session.close()
    stage.say("left", stage.left(stage.name()))


@SCRIPT.case("failover in transactions")
def failover_transacted(stage: Stage) -> None:
    connection = stage.connect(url=stage.failover())
    source, target = stage.name("in"), stage.name("out")
    stage.send(connection, source, 1)
    sends, takes = stage.session(connection, AckMode.TRANSACTED), stage.session(connection, AckMode.TRANSACTED)
    sends.create_producer(target).send("sent")
    consumer = takes.create_consumer(source)
    stage.say(stage.texts(consumer, 1))
    takes.create_producer(target).send("half")
    stage.place.kill()
    stage.place.start()
    stage.attempt("commit of what was sent", sends.commit)
    stage.attempt("commit of what was received", takes.commit)
    again = consumer.receive(WAIT_S)
    assert again is not None
    stage.say(again.text)
    stage.attempt("commit", takes.commit)
    stage.say("out", stage.left(target), "in", stage.left(source))


@SCRIPT.case("failover of what was not acknowledged")
def failover_client(stage: Stage) -> None:
    connection = stage.connect(url=stage.failover())
    stage.send(connection, stage.name(), 3)
    session = stage.session(connection, AckMode.CLIENT)
    consumer = session.create_consumer(stage.name())
    stage.say(stage.texts(consumer, 2))
    stage.place.kill()
    stage.place.start()
    stage.say(sorted(stage.texts(consumer, 3)))
    session.acknowledge()
    session.close()
    stage.say("left", stage.left(stage.name()))


@SCRIPT.case("failover of a durable subscription")
def failover_durable(stage: Stage) -> None:
    connection = stage.connect(url=stage.failover(), client_id="py-failover")
    session = stage.session(connection)
    consumer = session.create_durable_consumer(f"topic://{stage.name()}", "s")
    connection.send(f"topic://{stage.name()}", "before")
    stage.say(stage.texts(consumer, 1))
    stage.place.kill()
    stage.place.start()
    connection.send(f"topic://{stage.name()}", "after")
    stage.say(stage.texts(consumer, 1))
    consumer.close()
    stage.attempt("unsubscribe", lambda: connection.unsubscribe("s"))
