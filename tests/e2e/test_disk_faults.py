"""A full disk and a failing sync under a whole broker with real clients."""

from dataclasses import replace
from pathlib import Path

import pytest

from delosmq.model.settings import AddressFullPolicy, AddressMatch, BrokerSettings, QueueSettings
from tests.e2e.conftest import SETTINGS as COMMON
from tests.e2e.faults import SMALL_JOURNAL, FaultyFiles, Watch, journal_on
from tests.e2e.support import Client, RunningBroker

BODY = "x" * 3000
SETTINGS: BrokerSettings = replace(
    COMMON,
    journal=SMALL_JOURNAL,
    queues=(QueueSettings("DLQ", "DLQ"), QueueSettings("q", "q"), QueueSettings("strict", "strict")),
    address_settings=(
        AddressMatch("#", {"dead_letter_address": "DLQ", "max_delivery_attempts": 1}),
        AddressMatch("strict", {"address_full_policy": AddressFullPolicy.FAIL}),
    ),
)


@pytest.fixture
def files(tmp_path: Path) -> FaultyFiles:
    return FaultyFiles(tmp_path)


def fill_the_disk(client: Client, files: FaultyFiles, watch: Watch, count: int = 100) -> list[str]:
    """Sends until nothing more is taken; gives the receipts of all that was sent."""
    files.full = True
    receipts = [client.receipt() for _ in range(count)]
    for number, receipt in enumerate(receipts):
        headers = {"persistent": "true", "receipt": receipt}
        client.connection.send("/queue/q", f"{number} {BODY}", headers=headers)
    watch.wait_blocked()
    return receipts


def test_producers_wait_for_space_and_go_on_by_themselves(files: FaultyFiles) -> None:
    watch = Watch()
    with RunningBroker(SETTINGS, lambda: journal_on(files), watch) as broker, Client(broker.port, "1.2") as producer:
        receipts = fill_the_disk(producer, files, watch)
        assert broker.get("/health/live")[0] == 200
        # Producers wait as soon as no file is ready. That the disk gives no more is known when making one has failed.
        reason = broker.get_until("/health/ready", 503)
        assert "room" in reason or "space" in reason or "full" in reason
        # Others go on: what needs no room is sent, received and acknowledged.
        with Client(broker.port, "1.2") as other:
            other.subscribe("/queue/other")
            other.send("/queue/other", "not durable", persistent=False)
            assert other.bodies(1) == ["not durable"]
            other.subscribe("/queue/q", "client-individual", key="q", **{"activemq.prefetchSize": "3"})
            other.bodies(4)
            other.acknowledge(other.inbox.messages[1])
        assert producer.inbox.receipts != receipts
        files.full = False
        watch.wait_unblocked()
        producer.inbox.wait(lambda inbox: inbox.receipts == receipts)
        assert broker.get("/health/ready")[0] == 200


def test_consumers_make_room_on_a_full_disk(files: FaultyFiles) -> None:
    watch = Watch()
    with RunningBroker(SETTINGS, lambda: journal_on(files), watch) as broker, Client(broker.port, "1.2") as producer:
        receipts = fill_the_disk(producer, files, watch)
        with Client(broker.port, "1.2") as consumer:
            consumer.subscribe("/queue/q", "auto")
            producer.inbox.wait(lambda inbox: inbox.receipts == receipts)
            assert consumer.bodies(100) == [f"{number} {BODY}" for number in range(100)]


def test_where_the_policy_is_fail_the_producer_is_told(files: FaultyFiles) -> None:
    watch = Watch()
    with RunningBroker(SETTINGS, lambda: journal_on(files), watch) as broker, Client(broker.port, "1.2") as producer:
        fill_the_disk(producer, files, watch)
        with Client(broker.port, "1.2") as strict:
            strict.connection.send("/queue/strict", BODY, headers={"persistent": "true", "receipt": "never"})
            error = strict.error()
            assert "DMQ2201" in error.headers["message"]
            assert not strict.inbox.receipts


def test_a_dead_letter_on_a_full_disk_is_not_lost(files: FaultyFiles, tmp_path: Path) -> None:
    watch = Watch()
    with RunningBroker(SETTINGS, lambda: journal_on(files), watch) as broker, Client(broker.port, "1.2") as producer:
        fill_the_disk(producer, files, watch)
        with Client(broker.port, "1.2") as consumer:
            consumer.subscribe("/queue/q", "client-individual", **{"activemq.prefetchSize": "20"})
            consumer.bodies(10)
            for frame in consumer.inbox.messages[:10]:
                consumer.connection.nack(frame.headers["ack"])
            # With its receipt, or an ERROR that says why there is none.
            consumer.connection.unsubscribe("s", receipt="off")
            consumer.inbox.wait(lambda inbox: bool(inbox.errors) or "off" in inbox.receipts)
        files.full = False
        watch.wait_unblocked()
        producer.inbox.wait(lambda inbox: len(inbox.receipts) == 100)
    with (
        RunningBroker(SETTINGS, lambda: journal_on(FaultyFiles(tmp_path))) as broker,
        Client(broker.port, "1.2") as client,
    ):
        client.subscribe("/queue/q")
        client.subscribe("/queue/DLQ", key="dead")
        numbers = sorted(int(body.split()[0]) for body in client.bodies(100))
        assert numbers == list(range(100))
        client.nothing_more_comes("/queue/q", 100)


def test_a_failing_sync_confirms_nothing_and_ends_the_broker_with_a_sentence(
    files: FaultyFiles, tmp_path: Path
) -> None:
    with RunningBroker(SETTINGS, lambda: journal_on(files)) as broker:
        with Client(broker.port, "1.2") as producer:
            producer.send("/queue/q", "confirmed")
            confirmed = list(producer.inbox.receipts)
            files.broken = True
            producer.connection.send("/queue/q", "doubtful", headers={"persistent": "true", "receipt": "never"})
            failure = broker.wait_ended()
            producer.inbox.wait(lambda inbox: inbox.closed)
            assert producer.inbox.receipts == confirmed
        assert "DMQ3019" in str(failure)
        assert str(tmp_path) in str(failure)
    with (
        RunningBroker(SETTINGS, lambda: journal_on(FaultyFiles(tmp_path))) as broker,
        Client(broker.port, "1.2") as client,
    ):
        client.subscribe("/queue/q")
        assert client.bodies(1) == ["confirmed"]


def test_a_message_larger_than_the_journal_takes_is_refused_and_leaves_nothing_behind(
    files: FaultyFiles, tmp_path: Path
) -> None:
    with RunningBroker(SETTINGS, lambda: journal_on(files)) as broker:
        with Client(broker.port, "1.2") as producer:
            producer.connection.send("/queue/q", "x" * 60_000, headers={"persistent": "true", "receipt": "never"})
            assert "journal-file-size" in producer.error().body
            assert not producer.inbox.receipts
        with Client(broker.port, "1.2") as client:
            client.subscribe("/queue/q", "client")
            client.nothing_more_comes("/queue/q", 0)
            client.send("/queue/q", "fits")
            assert client.bodies(2)[1] == "fits"
            client.acknowledge(client.inbox.messages[1])
    with (
        RunningBroker(SETTINGS, lambda: journal_on(FaultyFiles(tmp_path))) as broker,
        Client(broker.port, "1.2") as client,
    ):
        client.subscribe("/queue/q", "client")
        client.nothing_more_comes("/queue/q", 0)


def test_what_was_confirmed_survives_a_stop_and_what_was_not_durable_does_not(
    files: FaultyFiles, tmp_path: Path
) -> None:
    with RunningBroker(SETTINGS, lambda: journal_on(files)) as broker, Client(broker.port, "1.2") as client:
        client.send("/queue/q", "not durable", persistent=False)
        client.send("/queue/q", "durable")
        client.send("/queue/q", "acknowledged", priority=9)
        client.subscribe("/queue/q", "client-individual", **{"activemq.prefetchSize": "1"})
        assert client.bodies(1) == ["acknowledged"]
        client.acknowledge(client.inbox.messages[0])
    with (
        RunningBroker(SETTINGS, lambda: journal_on(FaultyFiles(tmp_path))) as broker,
        Client(broker.port, "1.2") as client,
    ):
        client.subscribe("/queue/q")
        client.nothing_more_comes("/queue/q", 1)
        assert client.inbox.messages[0].body == "durable"
