"""stomp.py, unmodified, with all that STOMP offers beside sending and receiving, against a broker on a journal."""

# BROKER-2, ACK-5

import itertools
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from stomp.utils import Frame

from delosmq.model.settings import SecurityMatch
from delosmq.security.access import PERMISSIONS
from tests.e2e.conftest import SETTINGS, journal_in
from tests.e2e.support import ADMIN, CONNECTIONS, HOST, Client, Inbox, RunningBroker

VERSIONS = ("1.0", "1.1", "1.2")
every_version = pytest.mark.parametrize("version", VERSIONS)
# Ending a durable subscription and browsing need permissions of their own.
PERMITTED = replace(
    SETTINGS,
    security_settings=(SecurityMatch("#", {permission: frozenset({"amq"}) for permission in PERMISSIONS}),),
)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    directory = tmp_path_factory.mktemp("journal")
    with RunningBroker(PERMITTED, lambda: journal_in(directory)) as running:
        yield running


class KnownClient(Client):
    """A connection with a ``client-id``."""

    def __init__(self, port: int, version: str, client_id: str) -> None:
        self.version = version
        self.inbox = Inbox()
        self.connection = CONNECTIONS[version]([(HOST, port)], reconnect_attempts_max=1)
        self.connection.set_listener("inbox", self.inbox)
        self._receipts = itertools.count(1)
        self.connection.connect(ADMIN.name, ADMIN.password, wait=True, headers={"client-id": client_id})


def ask(client: Client, call: str, *arguments: Any, **headers: str) -> None:
    """A command of stomp.py; waits for its receipt."""
    receipt = client.receipt()
    getattr(client.connection, call)(*arguments, headers={"receipt": receipt, **headers})
    client.confirmed(receipt)


def answer_in(client: Client, message: Frame, transaction: str) -> None:
    """ACK in a transaction, as this version names deliveries."""
    if client.version == "1.0":
        client.connection.ack(message.headers["message-id"], transaction=transaction)
    elif client.version == "1.1":
        client.connection.ack(message.headers["message-id"], message.headers["subscription"], transaction=transaction)
    else:
        client.connection.ack(message.headers["ack"], transaction=transaction)


# -- transactions ------------------------------------------------------------------------------------------------


@every_version
def test_a_transaction_takes_from_one_queue_and_puts_into_another(
    broker: RunningBroker, version: str, name: str
) -> None:
    with Client(broker.port, version) as client, Client(broker.port, version) as other:
        client.subscribe(f"/queue/{name}", ack="client-individual")
        other.subscribe(f"/queue/{name}.out")
        client.send(f"/queue/{name}", "order")
        client.bodies(1)
        work = client.connection.begin()
        client.send(f"/queue/{name}.out", "bill", transaction=work)
        answer_in(client, client.inbox.messages[0], work)
        other.send(f"/queue/{name}.out", "before")
        ask(client, "commit", work)
        assert other.bodies(2) == ["before", "bill"]
    with Client(broker.port, version) as late:
        late.subscribe(f"/queue/{name}")
        late.nothing_more_comes(f"/queue/{name}", 0)


@every_version
def test_an_aborted_transaction_leaves_no_trace(broker: RunningBroker, version: str, name: str) -> None:
    with Client(broker.port, version) as client:
        client.subscribe(f"/queue/{name}", ack="client-individual")
        client.send(f"/queue/{name}", "order")
        client.bodies(1)
        work = client.connection.begin()
        client.send(f"/queue/{name}", "never", transaction=work)
        answer_in(client, client.inbox.messages[0], work)
        ask(client, "abort", work)
        assert client.bodies(2) == ["order", "order"]
        assert client.inbox.messages[1].headers["redelivered"] == "true"
        client.nothing_more_comes(f"/queue/{name}", 2)


@every_version
def test_a_commit_of_a_thousand_messages_is_whole(broker: RunningBroker, version: str, name: str) -> None:
    with Client(broker.port, version) as client, Client(broker.port, version) as other:
        other.subscribe(f"/queue/{name}")
        work = client.connection.begin()
        for number in range(1_000):
            client.connection.send(f"/queue/{name}", str(number), transaction=work, headers={"persistent": "true"})
        ask(client, "commit", work)
        client.send(f"/queue/{name}", "after")
        assert other.bodies(1_001) == [*map(str, range(1_000)), "after"]


# -- durable subscriptions ---------------------------------------------------------------------------------------


@every_version
def test_a_durable_subscription_lives_through_reconnect_and_ends_when_told(
    broker: RunningBroker, version: str, name: str
) -> None:
    durable = {"durable-subscription-name": "kept"}
    with KnownClient(broker.port, version, name) as client:
        client.subscribe(f"/topic/{name}", **durable)
    with Client(broker.port, version) as sender:
        sender.send(f"/topic/{name}", "missed")
    with KnownClient(broker.port, version, name) as client:
        client.subscribe(f"/topic/{name}", **durable)
        assert client.bodies(1) == ["missed"]
        ask(client, "unsubscribe", "s", **durable)
        client.send(f"/topic/{name}", "late")
        client.subscribe(f"/topic/{name}", key="t", **durable)
        client.nothing_more_comes(f"/topic/{name}", 1)


def test_durable_subscription_schedule_and_duplicate_ids_survive_a_restart(tmp_path: Path) -> None:
    durable = {"durable-subscription-name": "kept", "selector": "colour = 'red'"}
    with RunningBroker(SETTINGS, lambda: journal_in(tmp_path)) as first:
        with KnownClient(first.port, "1.2", "me") as client:
            client.subscribe("/topic/t", **durable)
        with Client(first.port, "1.2") as sender:
            sender.send("/topic/t", "red", colour="red")
            sender.send("/topic/t", "blue", colour="blue")
            sender.connection.send(
                "/queue/later",
                "later",
                headers={"AMQ_SCHEDULED_DELAY": "1500", "persistent": "true", "_AMQ_DUPL_ID": "d"},
            )
            sender.send("/queue/flush", "x")
    with RunningBroker(SETTINGS, lambda: journal_in(tmp_path)) as second:
        with KnownClient(second.port, "1.2", "me") as client:
            client.subscribe("/topic/t", **durable)
            client.send("/topic/t", "new", colour="red")
            assert client.bodies(2) == ["red", "new"]
        with Client(second.port, "1.2") as client:
            client.connection.send("/queue/later", "again", headers={"persistent": "true", "_AMQ_DUPL_ID": "d"})
            client.subscribe("/queue/later")
            assert client.bodies(1) == ["later"]
            client.nothing_more_comes("/queue/later", 1)


# -- who gets what, and when -------------------------------------------------------------------------------------


@every_version
def test_a_selector_picks_and_leaves_the_rest(broker: RunningBroker, version: str, name: str) -> None:
    with Client(broker.port, version) as client, Client(broker.port, version) as other:
        client.subscribe(f"/queue/{name}", selector="colour = 'red' AND size LIKE 'x%'")
        client.send(f"/queue/{name}", "no", colour="blue", size="xl")
        client.send(f"/queue/{name}", "yes", colour="red", size="xl")
        assert client.bodies(1) == ["yes"]
        other.subscribe(f"/queue/{name}")
        assert other.bodies(1) == ["no"]


@every_version
def test_a_selector_that_can_not_be_read_is_shown(
    broker: RunningBroker, witness: Client, version: str, name: str
) -> None:
    with Client(broker.port, version) as client:
        client.connection.subscribe(f"/queue/{name}", "s", headers={"selector": "colour = = 'red'"})
        error = client.error()
        assert "DMQ5124" in error.headers["message"]
        assert "\n           ^" in error.body


@every_version
def test_a_scheduled_message_comes_later_and_an_expired_one_never(
    broker: RunningBroker, version: str, name: str
) -> None:
    with Client(broker.port, version) as client:
        client.subscribe(f"/queue/{name}")
        begun = time.monotonic()
        client.connection.send(f"/queue/{name}", "gone", headers={"expires": "1"})
        client.connection.send(f"/queue/{name}", "later", headers={"AMQ_SCHEDULED_DELAY": "300"})
        client.connection.send(f"/queue/{name}", "now")
        assert client.bodies(2) == ["now", "later"]
        # Not a matter of speed: earlier would be wrong on any machine.
        assert time.monotonic() - begun >= 0.3


@every_version
def test_a_group_stays_with_one_consumer(broker: RunningBroker, version: str, name: str) -> None:
    with Client(broker.port, version) as one, Client(broker.port, version) as two:
        one.subscribe(f"/queue/{name}")
        two.subscribe(f"/queue/{name}")
        for number in range(10):
            one.send(f"/queue/{name}", f"g{number % 2}.{number}", JMSXGroupID=f"g{number % 2}")
        assert one.bodies(5) == [f"g0.{number}" for number in range(0, 10, 2)]
        assert two.bodies(5) == [f"g1.{number}" for number in range(1, 10, 2)]


@every_version
def test_an_exclusive_consumer_is_followed_by_the_next(broker: RunningBroker, version: str, name: str) -> None:
    exclusive = {"activemq.exclusive": "true"}
    with Client(broker.port, version) as standby:
        with Client(broker.port, version) as owner:
            owner.subscribe(f"/queue/{name}", ack="client", **exclusive)
            standby.subscribe(f"/queue/{name}", ack="client", **exclusive)
            for body in ("one", "two"):
                standby.send(f"/queue/{name}", body)
            assert owner.bodies(2) == ["one", "two"]
            assert not standby.inbox.messages
        assert standby.bodies(2) == ["one", "two"]


@every_version
def test_the_highest_priority_is_served_first(broker: RunningBroker, version: str, name: str) -> None:
    with Client(broker.port, version) as low, Client(broker.port, version) as high:
        low.subscribe(f"/queue/{name}")
        high.subscribe(f"/queue/{name}", **{"activemq.priority": "5"})
        for number in range(4):
            low.send(f"/queue/{name}", str(number))
        assert high.bodies(4) == ["0", "1", "2", "3"]
        assert not low.inbox.messages


@every_version
@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_no_local_hides_own_messages(broker: RunningBroker, version: str, kind: str, name: str) -> None:
    with Client(broker.port, version) as client, Client(broker.port, version) as other:
        client.subscribe(f"/{kind}/{name}", **{"no-local": "true"})
        client.send(f"/{kind}/{name}", "mine")
        other.send(f"/{kind}/{name}", "theirs")
        assert client.bodies(1) == ["theirs"]


@every_version
def test_a_duplicate_is_confirmed_and_dropped(broker: RunningBroker, version: str, name: str) -> None:
    with Client(broker.port, version) as client:
        client.subscribe(f"/queue/{name}")
        for body in ("first", "second"):
            receipt = client.receipt()
            headers = {"_AMQ_DUPL_ID": "d", "persistent": "true", "receipt": receipt}
            client.connection.send(f"/queue/{name}", body, headers=headers)
            client.confirmed(receipt)
        assert client.bodies(1) == ["first"]
        client.nothing_more_comes(f"/queue/{name}", 1)


# -- request and reply, browsers ---------------------------------------------------------------------------------


@every_version
@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_a_request_is_answered_to_its_temporary_destination(
    broker: RunningBroker, version: str, kind: str, name: str
) -> None:
    with Client(broker.port, version) as asking, Client(broker.port, "1.2") as answering:
        asking.subscribe(f"/temp-{kind}/answers", key="a")
        answering.subscribe(f"/queue/{name}")
        asking.send(f"/queue/{name}", "question", reply_to=f"/temp-{kind}/answers", correlation_id="7")
        answering.bodies(1)
        request = answering.inbox.messages[0].headers
        answering.send(request["reply-to"], "answer", correlation_id=request["correlation-id"])
        assert asking.bodies(1) == ["answer"]
        answer = asking.inbox.messages[0].headers
        assert (answer["correlation-id"], answer["destination"]) == ("7", f"/temp-{kind}/answers")
        asking.drop()
        answering.send(request["reply-to"], "late")
        assert not answering.inbox.errors


@every_version
def test_a_browser_shows_all_and_takes_nothing(broker: RunningBroker, version: str, name: str) -> None:
    with Client(broker.port, version) as client, Client(broker.port, version) as other:
        client.send(f"/queue/{name}", "one")
        client.send(f"/queue/{name}", "two")
        client.subscribe(f"/queue/{name}", key="b", browser="true")
        assert client.bodies(3)[:2] == ["one", "two"]
        assert client.inbox.messages[2].headers["browser"] == "end"
        other.subscribe(f"/queue/{name}")
        assert other.bodies(2) == ["one", "two"]
