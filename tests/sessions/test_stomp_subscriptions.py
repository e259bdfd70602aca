"""What a SUBSCRIBE may ask beside messages: that they are kept, whose they may be, and who comes first."""

import pytest

from delosmq.model.message import MULTICAST
from delosmq.model.settings import QueueSettings, SecurityMatch
from delosmq.security.access import PERMISSIONS
from delosmq.sessions.stomp.server.subscription_options import DURABLE_NAMES
from tests.engine.support import RecordingStore
from tests.sessions.support import USER, Client, StompBench

NEWS = "/topic/news"


def send(bench: StompBench, body: str, *headers: str, to: str = NEWS) -> None:
    bench.clients[0].frame("SEND", f"destination:{to}", "persistent:true", *headers, body=body)


def known(bench: StompBench, client_id: str = "me", version: str = "1.2") -> Client:
    return bench.connect(version, f"client-id:{client_id}\n")


def durable(bench: StompBench, *headers: str, client_id: str = "me", name: str = "n") -> Client:
    client = known(bench, client_id)
    client.frame("SUBSCRIBE", "id:1", f"destination:{NEWS}", f"durable-subscription-name:{name}", *headers)
    return client


def started() -> StompBench:
    bench = StompBench()
    bench.connect()
    return bench


# -- durable ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("header", DURABLE_NAMES)
@pytest.mark.parametrize("end", ["DISCONNECT", "UNSUBSCRIBE", "lost"])
def test_a_durable_subscription_keeps_what_comes_while_nobody_reads_it(header: str, end: str) -> None:
    bench = started()
    client = known(bench)
    client.frame("SUBSCRIBE", "id:1", f"destination:{NEWS}", f"{header}:n")
    if end == "lost":
        client.session.connection_lost()
    else:
        client.frame(end, "id:1")
    send(bench, "missed")
    assert bench.queue("me.n").message_count == 1
    again = known(bench)
    again.frame("SUBSCRIBE", "id:2", f"destination:{NEWS}", f"{header}:n")
    assert again.take_bodies() == "missed"


def test_a_durable_subscription_is_there_after_a_restart() -> None:
    store = RecordingStore()
    bench = StompBench(store=store)
    bench.connect()
    durable(bench).session.connection_lost()
    send(bench, "kept")
    again = StompBench(store=RecordingStore(store.batches))
    again.connect()
    send(again, "new")
    assert durable(again).take_bodies() == "kept new"


def test_each_client_id_has_its_own() -> None:
    bench = started()
    one, two = durable(bench, client_id="one"), durable(bench, client_id="two")
    send(bench, "x")
    assert (one.take_bodies(), two.take_bodies()) == ("x", "x")


@pytest.mark.parametrize("header", DURABLE_NAMES)
@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_unsubscribe_with_the_name_ends_it_for_good(header: str, version: str) -> None:
    bench = started()
    client = known(bench, version=version)
    client.frame("SUBSCRIBE", "id:1", f"destination:{NEWS}", f"{header}:n")
    client.frame("UNSUBSCRIBE", "id:1", f"{header}:n", "receipt:r")
    assert client.receipts() == ["r"]
    assert "me.n" not in bench.broker.queues


@pytest.mark.parametrize("headers", [(), ("id:unknown",)])
def test_it_can_be_ended_without_a_subscription_of_this_connection(headers: tuple[str, ...]) -> None:
    bench = started()
    durable(bench).session.connection_lost()
    client = known(bench)
    client.frame("UNSUBSCRIBE", "durable-subscription-name:n", *headers, "receipt:r")
    assert client.receipts() == ["r"]
    assert "me.n" not in bench.broker.queues


def test_ending_one_that_is_not_there_is_no_error() -> None:
    client = known(started())
    client.frame("UNSUBSCRIBE", "durable-subscription-name:n", "receipt:r")
    assert client.receipts() == ["r"]


def test_one_that_another_connection_uses_can_not_be_ended() -> None:
    bench = started()
    user = durable(bench)
    thief = known(bench)
    thief.frame("UNSUBSCRIBE", "durable-subscription-name:n")
    assert "'me.n' is in use" in thief.error().headers["message"]
    send(bench, "x")
    assert user.take_bodies() == "x"


def test_a_durable_subscription_has_one_consumer() -> None:
    bench = started()
    user = durable(bench)
    second = durable(bench)
    assert "'me.n' is in use" in second.error().headers["message"]
    send(bench, "x")
    assert user.take_bodies() == "x"


def test_its_selector_stands_before_its_queue() -> None:
    bench = started()
    durable(bench, "selector:colour = 'red'").session.connection_lost()
    send(bench, "red", "colour:red")
    send(bench, "blue", "colour:blue")
    assert bench.queue("me.n").message_count == 1
    assert durable(bench, "selector:  colour = 'red' ").take_bodies() == "red"


def test_another_selector_makes_another_subscription_of_it() -> None:
    bench = started()
    durable(bench).session.connection_lost()
    send(bench, "old")
    assert durable(bench, "selector:colour = 'red'").take_bodies() == ""
    assert bench.queue("me.n").message_count == 0


@pytest.mark.parametrize("command", ["SUBSCRIBE", "UNSUBSCRIBE"])
def test_a_durable_name_needs_a_client_id(command: str) -> None:
    client = started().connect()
    client.frame(command, "id:1", f"destination:{NEWS}", "durable-subscription-name:n")
    message = client.error().headers["message"]
    assert "DMQ5125" in message
    assert f"durable-subscription-name of {command}" in message


@pytest.mark.parametrize("destination", ["/queue/a", "a::b", "/temp-topic/t"])
def test_a_durable_subscription_is_to_a_topic(destination: str) -> None:
    client = known(started())
    client.frame("SUBSCRIBE", "id:1", f"destination:{destination}", "durable-subscription-name:n")
    assert "DMQ5126" in client.error().headers["message"]


@pytest.mark.parametrize("name", ["", "a::b", "x" * 1_100])
@pytest.mark.parametrize("command", ["SUBSCRIBE", "UNSUBSCRIBE"])
def test_a_durable_name_must_make_sense(name: str, command: str) -> None:
    client = known(started())
    client.frame(command, "id:1", f"destination:{NEWS}", f"durable-subscription-name:{name}")
    assert "header durable-subscription-name" in client.error().headers["message"]


def without(permission: str, address: str) -> tuple[SecurityMatch, ...]:
    everything = {name: frozenset({"all"}) for name in PERMISSIONS}
    return (
        SecurityMatch("#", everything),
        SecurityMatch(address, {name: roles for name, roles in everything.items() if name != permission}),
    )


def test_making_one_needs_the_permission_to_create_durable_queues() -> None:
    bench = StompBench(security=without("createDurableQueue", "news"))
    bench.connect()
    assert "'createDurableQueue'" in durable(bench).error().headers["message"]


def test_ending_one_needs_the_permission_to_delete_durable_queues() -> None:
    bench = StompBench(security=without("deleteDurableQueue", "news"))
    bench.connect()
    client = durable(bench)
    client.frame("UNSUBSCRIBE", "id:1", "durable-subscription-name:n")
    assert "'deleteDurableQueue'" in client.error().headers["message"]
    assert "me.n" in bench.broker.queues


def test_a_subscription_of_the_same_name_does_not_push_out_a_queue_one_may_not_delete() -> None:
    bench = StompBench(
        security=without("deleteDurableQueue", "secret"), queues=(QueueSettings("me.n", "secret", MULTICAST),)
    )
    bench.connect()
    assert "'deleteDurableQueue'" in durable(bench).error().headers["message"]
    assert bench.queue("me.n").address.name == "secret"


# -- no-local --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("header", ["no-local:true", "activemq.noLocal:true"])
@pytest.mark.parametrize("destination", ["/topic/t", "/queue/t", "t"])
def test_no_local_hides_what_the_own_connection_sends(header: str, destination: str) -> None:
    bench = started()
    client = bench.connect()
    client.frame("SEND", f"destination:{destination}", body="before")
    client.frame("SUBSCRIBE", "id:1", f"destination:{destination}", header)
    client.frame("SEND", f"destination:{destination}", body="mine")
    send(bench, "theirs", to=destination)
    assert client.take_bodies() == "theirs"


def test_what_no_local_hides_of_a_topic_does_not_pile_up() -> None:
    bench = started()
    client = bench.connect()
    client.frame("SUBSCRIBE", "id:1", "destination:/topic/t", "no-local:true")
    client.frame("SEND", "destination:/topic/t", body="mine")
    assert [queue.message_count for queue in bench.broker.queues.values()] == [0]


def test_what_no_local_hides_of_a_queue_is_there_for_others() -> None:
    bench = started()
    client = bench.connect()
    client.frame("SUBSCRIBE", "id:1", "destination:/queue/a", "no-local:true")
    client.frame("SEND", "destination:/queue/a", body="mine")
    other = bench.connect()
    other.frame("SUBSCRIBE", "id:1", "destination:/queue/a")
    assert other.take_bodies() == "mine"


@pytest.mark.parametrize(
    "selector", ["colour = 'red'", "hyphenated_props\\ccolour = 'red'", "colour = 'red' OR colour = 'pink'"]
)
def test_no_local_and_a_selector_count_together(selector: str) -> None:
    bench = started()
    client = bench.connect()
    client.frame("SUBSCRIBE", "id:1", "destination:/topic/t", "no-local:true", f"selector:{selector}")
    client.frame("SEND", "destination:/topic/t", "colour:red", body="mine")
    send(bench, "red", "colour:red", to="/topic/t")
    send(bench, "blue", "colour:blue", to="/topic/t")
    assert client.take_bodies() == "red"


def test_a_durable_subscription_without_own_messages_is_the_same_after_the_next_connect() -> None:
    bench = started()
    client = durable(bench, "no-local:true", client_id="it's me")
    client.frame("SEND", f"destination:{NEWS}", body="mine")
    client.session.connection_lost()
    send(bench, "theirs")
    assert durable(bench, "no-local:true", client_id="it's me").take_bodies() == "theirs"


def test_messages_are_marked_only_on_a_connection_that_hides_its_own() -> None:
    bench = started()
    watcher = bench.connect()
    watcher.frame("SUBSCRIBE", "id:1", "destination:/topic/t")
    client = bench.connect()
    client.frame("SEND", "destination:/topic/t", body="plain")
    client.frame("SUBSCRIBE", "id:1", "destination:/topic/t", "no-local:true")
    client.frame("SEND", "destination:/topic/t", body="marked")
    plain, marked = watcher.take()
    assert "__AMQ_CID" not in plain.headers
    assert marked.headers["__AMQ_CID"]


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_a_client_can_not_pass_for_another_connection(version: str) -> None:
    bench = started()
    reader = bench.connect(headers="client-id:me\n")
    reader.frame("SUBSCRIBE", "id:1", "destination:/topic/t", "no-local:true")
    other = bench.connect(version)
    other.frame("SEND", "destination:/topic/t", "__AMQ_CID:me", "x:1", body="theirs")
    (got,) = reader.take()
    assert (got.body, got.headers["x"], "__AMQ_CID" in got.headers) == (b"theirs", "1", False)


# -- who comes first -------------------------------------------------------------------------------------------------


def reader(bench: StompBench, *headers: str) -> Client:
    client = bench.connect()
    client.frame("SUBSCRIBE", "id:1", "destination:/queue/a", "ack:client", *headers)
    return client


def test_an_exclusive_subscription_gets_everything() -> None:  # EXCL-1
    bench = started()
    owner, standby = reader(bench, "activemq.exclusive:true"), reader(bench, "activemq.exclusive:true")
    for body in ("one", "two", "three"):
        send(bench, body, to="/queue/a")
    assert (owner.take_bodies(), standby.take_bodies()) == ("one two three", "")
    owner.session.connection_lost()
    bench.tick()
    assert standby.take_bodies() == "one two three"


def test_a_higher_priority_is_served_first_while_it_has_room() -> None:
    bench = started()
    low = reader(bench, "activemq.priority:-1")
    middle = reader(bench)
    high = reader(bench, "activemq.priority:10", "activemq.prefetchSize:2")
    for number in range(3):
        send(bench, str(number), to="/queue/a")
    assert (high.take_bodies(), middle.take_bodies(), low.take_bodies()) == ("0 1", "2", "")


@pytest.mark.parametrize(
    "header", ["activemq.exclusive:false", "no-local:false", "browser:false", "activemq.priority:0"]
)
def test_what_is_switched_off_costs_nothing(header: str) -> None:
    bench = started()
    client = reader(bench, header)
    send(bench, "x", to="/queue/a")
    assert client.take_bodies() == "x"
    (consumer,) = bench.queue("a").holders
    assert consumer.options.plain


def test_whose_a_subscription_is_can_be_asked() -> None:
    bench = started()
    bench.clients[0].frame("SUBSCRIBE", "id:1", "destination:/queue/a")
    port = bench.queue("a").holders[0].port
    assert (port.connection_name(), port.user_name()) == ("10.0.0.1:5000", USER)


# -- names -----------------------------------------------------------------------------------------------------------


def test_a_queue_of_another_address_is_not_read_by_its_name_alone() -> None:
    bench = StompBench(queues=(QueueSettings("all", "news", MULTICAST),))
    client = bench.connect()
    client.frame("SEND", "destination:/topic/news", body="x")
    client.frame("SUBSCRIBE", "id:1", "destination:/queue/all")
    (error,) = client.take()
    assert error.headers["message"].startswith("DMQ5132: queue 'all' is on another address")
    assert b"subscribe to 'ADDRESS::all'" in error.body
    assert b"news" not in error.body
    again = bench.connect()
    again.frame("SUBSCRIBE", "id:1", "destination:/queue/news\\c\\call")
    assert again.take_bodies() == "x"


def test_one_that_the_broker_made_there_is() -> None:
    bench = StompBench()
    bench.connect().frame("SUBSCRIBE", "id:1", "destination:/queue/DLQ\\c\\cDLQ.orders")
    assert bench.queue("DLQ.orders").address.name == "DLQ"
    bench.clients[0].frame("UNSUBSCRIBE", "id:1")
    client = bench.connect()
    client.frame("SEND", "destination:/queue/DLQ\\c\\cDLQ.orders", body="x")
    client.frame("SUBSCRIBE", "id:1", "destination:/queue/DLQ.orders")
    (message,) = client.take()
    assert message.body == b"x"
    assert message.headers["destination"] == "/queue/DLQ.orders"
    assert "DLQ.orders" not in bench.broker.addresses


def test_a_queue_that_is_on_another_address_than_was_said_is_not_read() -> None:
    bench = StompBench()
    bench.connect().frame("SUBSCRIBE", "id:1", "destination:/queue/DLQ.orders")
    client = bench.connect()
    client.frame("SUBSCRIBE", "id:1", "destination:/queue/DLQ\\c\\cDLQ.orders")
    (error,) = client.take()
    assert error.headers["message"].startswith("DMQ2110")
    assert b"subscribe to 'ADDRESS::DLQ.orders'" in error.body


def test_a_send_to_a_wildcard_goes_to_that_very_name() -> None:
    bench = StompBench()
    client = bench.connect()
    client.frame("SUBSCRIBE", "id:one", "destination:/topic/news.uk")
    client.frame("SUBSCRIBE", "id:all", "destination:/topic/news.*")
    client.frame("SEND", "destination:/topic/news.*", body="x")
    assert [frame.headers["subscription"] for frame in client.take()] == ["all"]


def test_a_wildcard_of_queues_is_a_queue_with_copies_that_goes_when_it_is_unread_and_empty() -> None:
    bench = StompBench()
    client = bench.connect()
    client.frame("SUBSCRIBE", "id:1", "destination:/queue/jobs.*")
    client.frame("SEND", "destination:/queue/jobs.uk", body="x")
    assert (client.take_bodies(), bench.queue("jobs.uk").message_count) == ("x", 1)
    assert bench.queue("jobs.*").settings.durable
    client.frame("UNSUBSCRIBE", "id:1")
    for _ in range(4):
        bench.pass_time(30_000)
        client.frame("SEND", "destination:/topic/alive")
    assert list(bench.broker.queues) == ["jobs.uk"]
