"""Records of what becomes of messages, as clients of STOMP and OpenWire cause and read them."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from delosmq.client import AckMode, ClientError, connect
from delosmq.embedded import default_settings
from delosmq.model.message import MULTICAST
from delosmq.model.settings import AddressMatch, BrokerSettings, QueueSettings
from delosmq.testing import BrokerFixture, BrokerProcess
from tests.patience import PATIENCE_S
from tests.testing.support import StompPeer

EVENTS = "delosmq.events"
TOPIC = f"topic://{EVENTS}"
LOG = QueueSettings("log", EVENTS, MULTICAST, durable=True)
STRICT = {"max_delivery_attempts": 2, "dead_letter_address": "DLQ", "redelivery_delay": 0}


def settings(**fields: Any) -> BrokerSettings:
    base = default_settings()
    return replace(
        base,
        delosmq_events=10_000,
        queues=(*base.queues, LOG, QueueSettings("ring", "ring", ring_size=1)),
        address_settings=(*base.address_settings, AddressMatch("strict", STRICT)),
        **fields,
    )


@pytest.fixture
def broker() -> Iterator[BrokerFixture]:
    with BrokerFixture(settings=settings()) as running:
        yield running


def told(broker: BrokerFixture) -> list[dict[str, Any]]:
    """All records so far."""
    broker.clock.advance(seconds=2)
    return [json.loads(line) for text in broker.queue("log").texts for line in text.splitlines()]


def told_of(broker: BrokerFixture, address: str) -> list[dict[str, Any]]:
    return [one for one in told(broker) if one.get("address") == address]


def kinds(records: list[dict[str, Any]]) -> list[str]:
    return [one["event"] for one in records]


# -- kinds, each caused by both protocols ------------------------------------------------------------------------


def test_stomp_is_told_of_from_send_to_ack(broker: BrokerFixture) -> None:
    with StompPeer(broker) as peer:
        peer.put("orders", "tea")
        peer.subscribe("orders", ack="client-individual")
        peer.answer("ACK", peer.frame())
    enqueue, dispatch, acknowledge = told_of(broker, "orders")
    assert kinds([enqueue, dispatch, acknowledge]) == ["enqueue", "dispatch", "acknowledge"]
    assert enqueue["user"] == dispatch["user"] == acknowledge["user"] == broker.user
    assert enqueue["producer"] != ""
    assert "producer_sequence" not in enqueue
    assert enqueue["accepted_ms"] == acknowledge["accepted_ms"] <= enqueue["time_ms"] <= acknowledge["time_ms"]
    assert dispatch["consumer"] == acknowledge["consumer"]
    assert enqueue["message_id"] == acknowledge["message_id"] == f"ID:{enqueue['sequence']}"
    assert dispatch["delivery_count"] == 1


def test_openwire_is_told_of_with_producer_and_number(broker: BrokerFixture) -> None:
    with broker.connect() as connection:
        with connection.create_session() as session, session.create_producer("orders") as producer:
            producer.send("tea")
            producer.send("milk")
        assert [message.text for message in connection.messages("orders", timeout_s=0.1)] == ["tea", "milk"]
    records = told_of(broker, "orders")
    assert sorted(kinds(records)) == ["acknowledge"] * 2 + ["dispatch"] * 2 + ["enqueue"] * 2
    sent = [one for one in records if one["event"] == "enqueue"]
    assert [one["producer_sequence"] for one in sent] == [1, 2]
    assert sent[0]["producer"] == sent[1]["producer"]
    assert sent[0]["producer"].startswith("ID:")
    assert {one["accepted_ms"] for one in records} <= {one["time_ms"] for one in sent}


def test_openwire_in_a_transaction(broker: BrokerFixture) -> None:
    with broker.connect() as connection, connection.create_session(AckMode.TRANSACTED) as session:
        session.create_producer("orders").send("tea")
        assert told_of(broker, "orders") == []
        session.commit()
        assert kinds(told_of(broker, "orders")) == ["enqueue"]


def reject_by_stomp(broker: BrokerFixture) -> None:
    with StompPeer(broker) as peer:
        peer.put("strict", "tea")
        peer.subscribe("strict", ack="client-individual")
        peer.answer("NACK", peer.frame())
        peer.answer("NACK", peer.frame())


def reject_by_openwire(broker: BrokerFixture) -> None:
    """A client that counts deliveries rolls back in itself; its end gives the message back."""
    with broker.connect() as connection:
        connection.send("strict", "tea")
        for _ in range(2):
            with broker.connect() as worker, worker.create_session(AckMode.CLIENT) as session:
                assert session.create_consumer("strict").receive(timeout_s=PATIENCE_S) is not None


def test_redelivered_and_dead_by_stomp(broker: BrokerFixture) -> None:
    reject_by_stomp(broker)
    records = told_of(broker, "strict")
    assert kinds(records) == ["enqueue", "dispatch", "redeliver", "dispatch", "dead-letter"]
    assert [one.get("delivery_count") for one in records] == [None, 1, 1, 2, 2]
    assert records[-1]["cause"] == "DLQ"
    assert kinds(told_of(broker, "DLQ")) == ["enqueue"]


def test_redelivered_by_openwire(broker: BrokerFixture) -> None:
    reject_by_openwire(broker)
    records = told_of(broker, "strict")
    assert kinds(records)[:4] == ["enqueue", "dispatch", "redeliver", "dispatch"]


def test_replaced_and_expired(broker: BrokerFixture) -> None:
    with broker.connect() as connection:
        connection.send("ring", "a")
        connection.send("ring", "b")
        connection.send("orders", "tea", time_to_live_ms=1_000)
        broker.clock.advance(seconds=60)
        broker.queue("orders").wait_for(messages=0)
    first, out, second = told_of(broker, "ring")
    assert kinds([first, out, second]) == ["enqueue", "replace", "enqueue"]
    assert first["sequence"] == out["sequence"] < second["sequence"]
    assert kinds(told_of(broker, "orders")) == ["enqueue", "expire"]


# -- reading -----------------------------------------------------------------------------------------------------


def test_a_stomp_client_reads_records_as_text(broker: BrokerFixture) -> None:
    with StompPeer(broker) as peer:
        peer.send("SUBSCRIBE", f"destination:/topic/{EVENTS}", "id:1", "ack:auto", "receipt:s")
        assert peer.frame().command == "RECEIPT"
        peer.put("orders", "tea")
        broker.clock.advance(seconds=2)
        message = peer.frame()
    assert message.headers["content-type"] == "application/x-ndjson"
    assert message.headers["_DELOSMQ_RECORDS"] == "1"
    assert json.loads(message.body)["event"] == "enqueue"


def test_an_openwire_client_reads_them_as_a_text_message(broker: BrokerFixture) -> None:
    with broker.connect() as connection, connection.create_session() as session:
        consumer = session.create_consumer(TOPIC)
        connection.send("orders", "tea")
        broker.clock.advance(seconds=2)
        message = consumer.receive(timeout_s=PATIENCE_S)
        assert message is not None
        assert json.loads(message.text)["event"] == "enqueue"
        assert message.properties["_DELOSMQ_RECORDS"] == "1"
        # That it was dispatched is not recorded.
        assert [one["event"] for one in told(broker)] == ["enqueue"]


def test_connecting_and_advisories_are_not_recorded(broker: BrokerFixture) -> None:
    with broker.connect() as connection, connection.create_session() as session:
        session.create_consumer("orders")
        session.create_consumer("topic://ActiveMQ.Advisory.>")
        session.create_temporary_queue()
        assert told(broker) == []


# -- who may -----------------------------------------------------------------------------------------------------


def test_no_client_sends_there(broker: BrokerFixture) -> None:
    for destination in (f"/topic/{EVENTS}", f"/queue/{EVENTS}", f"/topic/{EVENTS}::log"):
        with StompPeer(broker) as peer:
            peer.send("SEND", f"destination:{destination}", "receipt:r", body="forged")
            refusal = peer.frame()
            assert (refusal.command, "DMQ1002" in refusal.headers["message"]) == ("ERROR", True)
    with broker.connect() as connection, connection.create_session() as session:
        with pytest.raises(ClientError, match="DMQ1002"):
            session.create_producer(TOPIC)
    assert told(broker) == []


def test_the_mark_of_a_sender_is_taken_off(broker: BrokerFixture) -> None:
    with StompPeer(broker) as peer:
        peer.put("orders", "tea", "_DELOSMQ_RECORDS:1")
        peer.subscribe("orders")
        assert "_DELOSMQ_RECORDS" not in peer.frame().headers
    assert kinds(told_of(broker, "orders"))[0] == "enqueue"


# -- switched off, bounds, life ----------------------------------------------------------------------------------


def test_by_default_there_is_no_address_and_no_record() -> None:
    with BrokerFixture() as broker, StompPeer(broker) as peer:
        peer.put("orders", "tea")
        broker.clock.advance(seconds=2)
        assert EVENTS not in broker.composed.broker.addresses


def test_records_that_are_too_many_are_told_as_lost() -> None:
    few = replace(settings(), delosmq_events=2)
    with BrokerFixture(settings=few) as broker:
        broker.clock.freeze()
        with StompPeer(broker) as peer:
            for _ in range(5):
                peer.put("orders", "tea")
        records = told(broker)
    assert kinds(records) == ["lost", "enqueue", "enqueue"]
    assert records[0]["cause"].startswith("3 records: ")


def test_the_end_of_a_broker_tells_what_waits_and_its_queue_keeps_it(tmp_path: Path) -> None:
    with BrokerFixture(tmp_path, settings=settings()) as broker:
        broker.clock.freeze()
        with StompPeer(broker) as peer:
            peer.put("orders", "tea", "persistent:true")
        assert broker.queue("log").texts == []
        broker.restart()
        assert kinds([json.loads(line) for text in broker.queue("log").texts for line in text.splitlines()]) == [
            "enqueue"
        ]
        assert kinds(told_of(broker, "orders")) == ["enqueue"]


def test_a_kill_may_lose_records_of_the_last_second_and_nothing_else(tmp_path: Path) -> None:
    switch = ("<acceptors>", "<delosmq-events>1000</delosmq-events><acceptors>")
    with BrokerProcess(tmp_path / "broker", [switch]) as broker:
        broker.start()
        login = {"user": "admin", "password": "admin"}
        url = f"tcp://127.0.0.1:{broker.openwire_port}"
        with connect(url, **login) as connection, connection.create_session() as session:
            reader = session.create_consumer(TOPIC)
            connection.send("orders", "tea")
            first = reader.receive(timeout_s=PATIENCE_S)
            assert first is not None
            assert kinds([json.loads(line) for line in first.text.splitlines()]) == ["enqueue"]
            connection.send("orders", "milk")
            broker.kill()
        broker.start()
        with connect(url, **login) as connection, connection.create_session() as session:
            reader = session.create_consumer(TOPIC)
            got = [message.text for message in connection.messages("orders", timeout_s=1)]
            assert got == ["tea", "milk"]
            again = reader.receive(timeout_s=PATIENCE_S)
            assert again is not None
            assert "acknowledge" in kinds([json.loads(line) for line in again.text.splitlines()])
