"""Queues and addresses that were made by use go again when nobody uses them."""

import pytest

from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.settings import BrokerSettings, QueueSettings
from tests.engine.routing_support import RoutingBench

SCAN_MS = 30_000


def used_once(bench: RoutingBench, name: str = "q") -> None:
    """A message that is sent and consumed, on a queue made by that."""
    bench.put(name, "A", routing=ANYCAST)
    consumer, port = bench.consume(name)
    bench.take_all(consumer, port)
    bench.broker.consumers.close(consumer)


def test_a_queue_unused_in_two_scans_goes_with_its_address():
    bench = RoutingBench()
    used_once(bench)
    bench.later(SCAN_MS)
    assert "q" in bench.broker.queues
    bench.later(SCAN_MS)
    assert ("q" in bench.broker.queues, "q" in bench.broker.addresses) == (False, False)
    assert "q" not in bench.restart().broker.queues


def test_use_between_two_scans_keeps_a_queue():
    bench = RoutingBench()
    used_once(bench)
    bench.later(SCAN_MS)
    used_once(bench)
    bench.later(SCAN_MS)
    assert "q" in bench.broker.queues


def test_a_queue_that_nobody_used_goes_too():
    bench = RoutingBench()
    transaction = bench.broker.transactions.begin("c")
    bench.broker.transactions.send(transaction, bench.message("q", "A"), routing=ANYCAST)
    bench.broker.transactions.rollback(transaction)
    assert "q" in bench.broker.queues
    for _ in range(2):
        bench.later(SCAN_MS)
    assert "q" not in bench.broker.queues


def test_a_queue_goes_only_after_its_delay():
    bench = RoutingBench(addresses={"#": {"auto_delete_queues_delay": 100_000}})
    used_once(bench)
    for _ in range(3):
        bench.later(SCAN_MS)
    assert "q" in bench.broker.queues
    for _ in range(2):
        bench.later(SCAN_MS)
    assert "q" not in bench.broker.queues


@pytest.mark.parametrize(("limit", "stays"), [(0, True), (1, False), (-1, False)])
def test_messages_keep_a_queue_above_the_count_allowed(limit: int, stays: bool):
    bench = RoutingBench(addresses={"#": {"auto_delete_queues_message_count": limit}})
    used_once(bench)
    bench.put("q", "B", routing=ANYCAST)
    for _ in range(2):
        bench.later(SCAN_MS)
    assert ("q" in bench.broker.queues) is stays
    assert bench.broker.used_bytes == 0 or stays


def test_consumers_leases_and_open_transactions_keep_a_queue():
    bench = RoutingBench()
    for name in ("read", "leased", "claimed", "free"):
        used_once(bench, name)
    bench.consume("read")
    bench.broker.lease_groups.open("group", queue="leased", topic="", run="run", incarnation=None)
    bench.broker.queues["claimed"].pending_commits = 1
    for _ in range(3):
        bench.later(SCAN_MS)
    assert sorted(bench.broker.queues) == ["claimed", "leased", "read"]


def test_a_lease_group_keeps_its_queue_while_its_reader_is_away():
    bench = RoutingBench()
    used_once(bench)
    bench.broker.lease_groups.open("group", queue="q", topic="", run="run", incarnation=None)
    again = bench.restart()
    for _ in range(3):
        again.later(SCAN_MS)
    assert "q" in again.broker.queues


def test_queues_made_on_purpose_stay_unless_settings_say_otherwise():
    queues = (
        QueueSettings("plain", "plain", ANYCAST),
        QueueSettings("own", "own", ANYCAST, auto_delete=True),
        QueueSettings("created", "created.x", ANYCAST),
    )
    bench = RoutingBench(
        BrokerSettings(queues=queues),
        addresses={"created.#": {"auto_delete_created_queues": True}, "kept.#": {"auto_delete_queues": False}},
    )
    used_once(bench, "kept.q")
    for name in ("plain", "own"):
        used_once(bench, name)
    for _ in range(3):
        bench.later(SCAN_MS)
    assert sorted(bench.broker.queues) == ["kept.q", "plain"]
    assert "own" in bench.broker.addresses


def test_after_a_restart_unused_queues_go_after_two_scans():
    bench = RoutingBench()
    bench.put("q", "A", routing=ANYCAST)
    consumer, port = bench.consume("q")
    bench.take_all(consumer, port)
    again = bench.restart()
    again.later(SCAN_MS)
    assert "q" in again.broker.queues
    again.later(SCAN_MS)
    assert "q" not in again.broker.queues


def test_an_address_may_outlive_its_last_queue_by_a_delay():
    bench = RoutingBench(addresses={"#": {"auto_delete_addresses_delay": 50_000}})
    consumer, _ = bench.listen("news")
    bench.broker.consumers.close(consumer)
    bench.later(SCAN_MS)
    assert "news" in bench.broker.addresses
    bench.later(SCAN_MS)
    bench.later(SCAN_MS)
    assert "news" not in bench.broker.addresses


def test_addresses_stay_where_settings_say_so():
    bench = RoutingBench(addresses={"#": {"auto_delete_addresses": False}})
    consumer, _ = bench.listen("news")
    bench.broker.consumers.close(consumer)
    for _ in range(3):
        bench.later(SCAN_MS)
    assert "news" in bench.broker.addresses


def test_an_address_that_never_had_a_queue_goes_when_nothing_was_sent_to_it_between_two_scans():
    bench = RoutingBench()
    for name in ("left", "used"):
        bench.put(name, "A", routing=MULTICAST)
    for _ in range(3):
        bench.later(SCAN_MS)
        bench.put("used", "A", routing=MULTICAST)
    assert sorted(bench.broker.addresses) == ["used"]


def test_an_address_that_a_durable_subscription_made_goes_with_it():
    bench = RoutingBench()
    consumer, _ = bench.listen("news", name="me", durable=True)
    bench.broker.consumers.close(consumer)
    again = bench.restart()
    assert "news" in again.broker.addresses
    again.broker.resources.unsubscribe("me")
    assert again.broker.addresses.keys() == again.restart().broker.addresses.keys() == set()


@pytest.mark.parametrize("fields", [{"retroactive_message_count": 3}, {"subscription_recovery_retained": True}])
def test_an_address_stays_while_it_keeps_messages_for_queues_to_come(fields: dict[str, object]):
    bench = RoutingBench(addresses={"#": fields})
    for name in ("empty", "kept"):
        bench.broker.consumers.close(bench.listen(name)[0])
    bench.put("kept", "A", routing=MULTICAST, **{"ActiveMQ.Retain": "true"})
    for _ in range(4):
        bench.later(SCAN_MS)
    assert sorted(bench.broker.addresses) == ["kept"]
    assert all("empty" not in name for name in bench.restart().broker.queues)


def test_the_scan_can_be_switched_off():
    bench = RoutingBench(BrokerSettings(address_queue_scan_period_ms=-1))
    used_once(bench)
    for _ in range(3):
        bench.later(SCAN_MS)
    assert "q" in bench.broker.queues


def test_scanning_many_queues_takes_several_ticks():
    bench = RoutingBench()
    for number in range(1_200):
        bench.broker.resources.create_queue(
            QueueSettings(f"q{number}", f"q{number}", ANYCAST, durable=False, auto_created=True)
        )
    bench.clock.now_ms += SCAN_MS
    ticks = 1
    while bench.broker.tick():
        ticks += 1
    assert ticks >= 4


@pytest.mark.parametrize("settings", [{}, {"auto_delete_addresses": False}, {"auto_delete_addresses_delay": 600_000}])
@pytest.mark.parametrize("count", [1, 300])
@pytest.mark.parametrize("prepared", [False, True])
def test_a_commit_finds_a_queue_for_what_was_sent_to_one_that_went(
    settings: dict[str, object], count: int, prepared: bool
):  # ACK-5
    bench = RoutingBench(addresses={"#": settings})
    used_once(bench)
    broker = bench.broker
    if prepared:
        broker.branches.timeout_ms = 10_000_000
    transaction = broker.branches.start(b"x") if prepared else broker.transactions.begin("s")
    for number in range(count):
        broker.transactions.send(transaction, bench.message("q", str(number)), routing=ANYCAST)
    for _ in range(3):
        bench.later(SCAN_MS)
    assert "q" not in broker.queues  # what is sent claims it only with the commit
    if prepared:
        broker.branches.end(b"x")
        broker.branches.prepare(b"x")
        bench.run()
        broker.branches.commit(b"x", False)
    else:
        broker.transactions.commit(transaction)
    bench.run()
    words = " ".join(str(number) for number in range(count))
    assert bench.pending("q") == words
    assert bench.restart().pending("q") == words
