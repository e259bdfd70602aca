"""What a user may not do is refused with a SecurityException, and the connection goes on."""

from delosmq.model.settings import SecurityMatch
from delosmq.security.access import PERMISSIONS
from delosmq.wire.openwire.commands import ADD_DESTINATION, REMOVE_DESTINATION, ConnectionError, RemoveSubscriptionInfo
from delosmq.wire.openwire.structures import TEMP_QUEUE, Command, Destination
from tests.sessions.openwire.support import SECURITY, Client, OpenWireBench, change, queue, topic
from tests.sessions.support import EVERYTHING, USER

A = queue("a")


def allowed(*permissions: str) -> OpenWireBench:
    """A broker that allows these everywhere."""
    granted = {name: frozenset({"all"} if name in permissions else ()) for name in PERMISSIONS}
    return OpenWireBench(security=(SecurityMatch("#", granted),))


def denied(client: Client, command: Command) -> str:
    exception = client.refused(command)
    assert exception.class_name == SECURITY, exception.message
    return exception.message or ""


def test_sending() -> None:
    bench = allowed("consume", "createAddress", "createDurableQueue")
    client = bench.connect()
    reader = client.consume(A)
    assert "'a'" in denied(client, client.text(A, "x"))
    denied(client, client.producer_info(A))
    client.tell(client.text(A, "x"))
    (error,) = client.take()
    assert isinstance(error, ConnectionError)
    assert error.exception is not None
    assert error.exception.class_name == SECURITY
    assert reader.bodies() == ""


def test_temporary_destinations_have_permissions_of_their_own() -> None:
    nothing: dict[str, frozenset[str]] = {name: frozenset() for name in PERMISSIONS}
    making = {"createAddress": frozenset({"all"}), "createNonDurableQueue": frozenset({"all"})}
    security = (SecurityMatch("#", nothing), SecurityMatch("temp.#", {**nothing, **making}))
    client = OpenWireBench(security=security).connect()
    name = Destination(f"{client.name}:1", TEMP_QUEUE)
    assert "'ID:" in denied(client, change(client, name, ADD_DESTINATION))
    client = OpenWireBench(security=security, temporary_namespace="temp").connect()
    client.ok(change(client, name, ADD_DESTINATION))
    assert name.name in client.bench.broker.addresses


def test_a_denied_send_dooms_its_transaction() -> None:
    bench = allowed("consume", "createAddress", "createDurableQueue")
    client = bench.connect()
    transaction = client.begin()
    client.tell(client.text(A, "x", transaction))
    client.take()
    assert "DMQ5273" in (client.refused(client.transaction_info(transaction, 2)).message or "")


def test_consuming() -> None:
    bench = allowed("send", "createAddress", "createDurableQueue", "browse")
    client = bench.connect()
    client.publish(A, "x")
    denied(client, client.consumer_info(A))
    denied(client, client.consumer_info(topic("t")))
    browser = client.consumer_info(A)
    browser.browser = True
    assert client.subscribe(browser).bodies() == "x"


def test_browsing() -> None:
    bench = allowed("send", "consume", "createAddress", "createDurableQueue")
    client = bench.connect()
    client.publish(A, "x")
    browser = client.consumer_info(A)
    browser.browser = True
    denied(client, browser)
    assert client.consume(A).bodies() == "x"


def test_creating_by_sending_and_by_subscribing() -> None:
    bench = allowed("send", "consume")
    client = bench.connect()
    for command in (client.text(A, "x"), client.consumer_info(A), client.consumer_info(topic("t"))):
        denied(client, command)
    durable = client.consumer_info(topic("t"))
    denied(client, durable)
    bench.broker.resources.create_address("t", {0, 1})
    denied(client, durable)
    assert bench.broker.queues == {}


def test_creating_and_deleting_by_name() -> None:
    bench = allowed("send", "consume", "createAddress")
    client = bench.connect()
    denied(client, change(client, A, ADD_DESTINATION))
    bench.broker.resources.create_address("known", {0, 1})
    denied(client, change(client, queue("known"), REMOVE_DESTINATION))
    assert "known" in bench.broker.addresses


def test_temporary_destinations() -> None:
    bench = allowed("send", "consume", "createAddress")
    client = bench.connect()
    destination = Destination(f"{client.name}:1", TEMP_QUEUE)
    denied(client, change(client, destination, ADD_DESTINATION))
    bench = allowed("createAddress", "createNonDurableQueue")
    owner, other = bench.connect(), bench.connect()
    destination = Destination(f"{owner.name}:1", TEMP_QUEUE)
    owner.ok(change(owner, destination, ADD_DESTINATION))
    # Whoever is told its name may send to it.
    other.publish(destination, "x")
    assert owner.consume(destination).bodies() == "x"


def test_one_part_of_a_composite_that_is_denied_denies_all() -> None:
    everything = {name: frozenset({"all"}) for name in PERMISSIONS}
    closed: dict[str, frozenset[str]] = {name: frozenset() for name in PERMISSIONS}
    bench = OpenWireBench(security=(SecurityMatch("#", everything), SecurityMatch("closed", closed)))
    client = bench.connect()
    client.publish(A, "first")
    denied(client, client.text(queue("a,closed"), "x"))
    assert bench.queue("a").message_count == 1
    denied(client, client.consumer_info(queue("a,closed")))
    assert bench.queue("a").holders == []


def test_unsubscribing() -> None:
    bench = allowed("send", "consume", "createAddress", "createDurableQueue", "createNonDurableQueue")
    client = bench.connect(client_id="me")
    client.durable("s", topic("t")).close()
    info = RemoveSubscriptionInfo()
    info.subscription_name, info.client_id = "s", "me"
    denied(client, info)


def test_advisories_need_no_permission() -> None:
    bench = allowed()
    client = bench.connect()
    client.consume(topic("ActiveMQ.Advisory.TempQueue,ActiveMQ.Advisory.TempTopic"))


def test_what_a_reload_takes_away_counts_for_a_connection_that_has_sent_before() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    client.ok(client.text(A, "x"))
    bench.services.access.reload({USER: "stored"}, {USER: frozenset({"none"})}, (EVERYTHING,))
    client.session.rights_changed()
    denied(client, client.text(A, "y"))
    bench.services.access.reload({USER: "stored"}, {USER: frozenset({"all"})}, (EVERYTHING,))
    client.session.rights_changed()
    client.ok(client.text(A, "z"))
    bench.services.access.reload({}, {USER: frozenset({"all"})}, (EVERYTHING,))  # the user is gone
    client.session.rights_changed()
    denied(client, client.text(A, "y"))
