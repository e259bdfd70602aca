"""Consumers of queues by wildcard: queues that come and go while they read, and the prefetch that they share."""

import pytest

from delosmq.model.message import ANYCAST
from delosmq.model.settings import QueueSettings, SecurityMatch
from delosmq.sessions.openwire.server.consumers.subscription import OpenWireSubscription, Source
from delosmq.wire.openwire.commands import (
    BEGIN,
    COMMIT_ONE_PHASE,
    DELIVERED_ACK,
    END,
    INDIVIDUAL_ACK,
    POISON_ACK,
    ROLLBACK,
    STANDARD_ACK,
    DestinationInfo,
    MessagePull,
)
from delosmq.wire.openwire.structures import TEMP_QUEUE, Destination, XATransactionId
from tests.sessions.openwire.support import OpenWireBench, code_of, queue
from tests.sessions.support import EVERYTHING

ORDERS = queue("orders.>")


def make(bench: OpenWireBench, *names: str) -> None:
    for name in names:
        bench.broker.resources.create_queue(QueueSettings(name, name, ANYCAST))
    bench.tick()


def test_a_queue_that_is_made_later_is_read_too() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    reader = client.consume(ORDERS)
    client.publish(queue("orders.new"), "m1 m2")
    client.publish(queue("other"), "m3")
    assert reader.bodies() == "m1 m2"
    reader.done(0, 1)
    assert bench.queue("orders.new").message_count == 0
    assert len(bench.queue("orders.new").holders) == 1


def test_one_that_another_client_makes() -> None:
    bench = OpenWireBench()
    client, other = bench.connect(), bench.connect()
    reader = client.consume(queue("*.new"))
    other.consume(queue("orders.new")).close()
    assert len(bench.queue("orders.new").holders) == 1
    other.publish(queue("orders.new"), "m1")
    assert reader.bodies() == "m1"


def test_one_that_an_operator_makes_deletes_and_makes_again() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    reader = client.consume(ORDERS)
    make(bench, "orders.a", "orders.b")
    client.publish(queue("orders.a"), "m1")
    assert reader.bodies() == "m1"
    bench.broker.resources.delete_queue("orders.a")
    bench.tick()
    make(bench, "orders.a")
    client.publish(queue("orders.a"), "m2")
    client.publish(queue("orders.b"), "m3")
    assert reader.bodies() == "m2 m3"
    reader.done(1, 1)
    reader.done(2, 2)


def test_what_a_deleted_queue_had_in_delivery_is_room_for_others() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    make(bench, "orders.a", "orders.b")
    reader = client.consume(ORDERS, 1)
    client.publish(queue("orders.a"), "a1")
    client.publish(queue("orders.b"), "b1")
    assert reader.bodies() == "a1"
    bench.broker.resources.delete_queue("orders.a")
    bench.tick()
    assert reader.bodies() == "b1"


def test_after_its_end_new_queues_are_left_alone() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    reader = client.consume(ORDERS)
    make(bench, "orders.a")
    reader.close()
    make(bench, "orders.b")
    assert [len(bench.queue(name).holders) for name in ("orders.a", "orders.b")] == [0, 0]


def test_the_end_of_its_connection_ends_it() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    client.consume(ORDERS)
    client.drop()
    make(bench, "orders.a")
    assert bench.queue("orders.a").holders == []


def test_all_queues_share_one_prefetch_and_take_turns() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    make(bench, "orders.a", "orders.b", "orders.c")
    for name in "abc":
        client.publish(queue(f"orders.{name}"), " ".join(f"{name}{number}" for number in range(1, 4)))
    reader = client.consume(ORDERS, 1)
    order: list[str] = []
    for index in range(9):
        body = reader.bodies()
        assert " " not in body
        order.append(body)
        reader.done(index)
    assert " ".join(order) == "a1 b1 c1 a2 b2 c2 a3 b3 c3"


def test_a_queue_that_never_rests_does_not_keep_the_others_waiting() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    make(bench, "orders.busy", "orders.quiet")
    reader = client.consume(ORDERS, 1)
    client.publish(queue("orders.busy"), "b1 b2 b3 b4")
    client.publish(queue("orders.quiet"), "q1")
    assert reader.bodies() == "b1"
    reader.done(0)
    assert reader.bodies() == "q1"
    reader.done(1)
    assert reader.bodies() == "b2"


def test_taking_messages_makes_room_in_all_queues() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    make(bench, "orders.a", "orders.b")
    reader = client.consume(ORDERS, 1)
    client.publish(queue("orders.a"), "a1 a2")
    client.publish(queue("orders.b"), "b1")
    reader.take()
    client.ok(reader.ack(DELIVERED_ACK, 0, first=0))
    assert reader.bodies() == "b1"


def test_a_commit_makes_room_in_all_queues() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    make(bench, "orders.a", "orders.b")
    reader = client.consume(ORDERS, 1)
    client.publish(queue("orders.a"), "a1")
    client.publish(queue("orders.b"), "b1")
    assert reader.bodies() == "a1"
    transaction = client.begin()
    client.ok(reader.ack(STANDARD_ACK, 0, first=0, transaction=transaction))
    client.ok(client.transaction_info(transaction, 2))
    assert reader.bodies() == "b1"


def test_a_pull_takes_from_a_queue_that_is_made_later() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    reader = client.consume(ORDERS, 0)
    pull = MessagePull()
    pull.consumer_id = reader.id
    pull.destination = ORDERS
    client.ok(pull)
    client.publish(queue("orders.new"), "m1 m2")
    assert reader.bodies() == "m1"


def test_a_pull_that_does_not_wait_is_answered_where_there_is_no_queue() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    reader = client.consume(ORDERS, 0)
    pull = MessagePull()
    pull.consumer_id = reader.id
    pull.destination = ORDERS
    for timeout in (-1, 10):
        pull.timeout = timeout
        client.ok(pull)
        bench.pass_time(10)
    assert reader.take() == []
    assert reader.ended == 2
    client.publish(queue("orders.new"), "m1")
    assert reader.bodies() == ""


def test_a_selector_holds_for_queues_to_come() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    info = client.consumer_info(ORDERS)
    info.selector = "JMSPriority > 5"
    reader = client.subscribe(info)
    for body, priority in (("low", 4), ("high", 6)):
        command = client.text(queue("orders.new"), body)
        command.priority = priority
        client.ok(command)
    assert reader.bodies() == "high"


def test_a_queue_by_two_names_of_one_consumer_is_read_once() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    reader = client.consume(queue("orders.a,orders.>,orders.*"))
    client.publish(queue("orders.a"), "m1")
    client.publish(queue("orders.b"), "m2")
    assert reader.bodies() == "m1 m2"
    assert [len(bench.queue(name).holders) for name in ("orders.a", "orders.b")] == [1, 1]


def test_queues_of_virtual_topics_are_read_and_temporary_ones_are_not() -> None:
    bench = OpenWireBench()
    client, other = bench.connect(), bench.connect("Consumer.other")
    info = DestinationInfo()
    info.destination = Destination("Consumer.other:1", TEMP_QUEUE)
    other.ok(info)
    reader = client.consume(queue("Consumer.>"))
    other.consume(queue("Consumer.x.VirtualTopic.t")).close()
    assert [len(bench.queue(name).holders) for name in ("Consumer.other:1", "Consumer.x.VirtualTopic.t")] == [0, 1]
    client.publish(queue("Consumer.x.VirtualTopic.t"), "m1")
    assert reader.bodies() == "m1"


def test_queues_of_dead_letters_by_origin_are_read() -> None:
    bench = OpenWireBench(
        address_settings={
            "orders": {
                "dead_letter_address": "DLA",
                "auto_create_dead_letter_resources": True,
                "max_delivery_attempts": 1,
            }
        }
    )
    client = bench.connect()
    reader = client.consume(queue("DLQ.>"))
    client.publish(queue("orders"), "m1")
    victim = client.consume(queue("orders"))
    victim.take()
    client.ok(victim.ack(POISON_ACK, 0, first=0))
    assert reader.bodies() == "m1"


def test_a_new_queue_that_the_user_may_not_read_is_left_out_and_the_log_says_so() -> None:
    rights = dict(EVERYTHING.permissions)
    del rights["consume"]
    bench = OpenWireBench(security=(EVERYTHING, SecurityMatch("orders.secret", rights)))
    client = bench.connect()
    reader = client.consume(ORDERS)
    client.publish(queue("orders.secret"), "m1")
    client.publish(queue("orders.open"), "m2")
    assert reader.bodies() == "m2"
    (report,) = client.host.reports
    assert "orders.secret" in report.message


def test_many_new_queues_are_taken_up_a_slice_at_a_time() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    client.consume(ORDERS)
    for number in range(250):
        bench.broker.resources.create_queue(QueueSettings(f"orders.{number}", f"orders.{number}", ANYCAST))
    bench.tick()
    assert all(len(queue.holders) == 1 for queue in bench.broker.queues.values())


# -- what a consumer of several queues keeps ---------------------------------------------------------------------------


def sources_of(bench: OpenWireBench, name: str) -> OpenWireSubscription:
    (consumer,) = bench.queue(name).holders
    port = consumer.port
    assert type(port) is Source
    return port.subscription


@pytest.mark.parametrize("kind", [STANDARD_ACK, INDIVIDUAL_ACK])
@pytest.mark.parametrize("transacted", [False, True])
def test_nothing_is_kept_of_what_was_acknowledged(kind: int, transacted: bool) -> None:
    bench = OpenWireBench()
    client = bench.connect()
    reader = client.consume(queue("q.a,q.b"))
    order = sources_of(bench, "q.a").order
    assert order is not None
    for index in range(30):
        client.publish(queue("q.a,q.b"), "x")
        reader.take()
        transaction = client.begin() if transacted else None
        for one in (index * 2 + 1, index * 2):
            client.ok(reader.ack(kind, one, first=one, transaction=transaction))
        if transaction is not None:
            client.ok(client.transaction_info(transaction, COMMIT_ONE_PHASE))
    assert bench.queue("q.a").message_count == 0
    assert len(order) == 0


def test_what_other_connections_commit_is_forgotten_with_later_messages() -> None:
    bench = OpenWireBench()
    client, other = bench.connect(), bench.connect()
    reader = client.consume(queue("q.a,q.b"))
    order = sources_of(bench, "q.a").order
    assert order is not None
    for index in range(20):
        client.publish(queue("q.a"), "x")
        reader.take()
        branch = XATransactionId(1, b"%d" % index, b"b")
        client.ok(client.transaction_info(branch, BEGIN))
        client.ok(reader.ack(INDIVIDUAL_ACK, index, transaction=branch))
        client.ok(client.transaction_info(branch, END))
        other.ok(other.transaction_info(branch, COMMIT_ONE_PHASE))
        assert len(order) <= 2


def test_what_was_rolled_back_is_in_the_order_of_its_second_dispatch() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    reader = client.consume(queue("q.a,q.b"))
    client.publish(queue("q.a"), "a")
    client.publish(queue("q.b"), "b")
    reader.take()
    transaction = client.begin()
    reader.done(0, 1, transaction)
    client.ok(client.transaction_info(transaction, ROLLBACK))
    # Still in delivery: acknowledged as a range, as its client does once it delivered it again.
    reader.done(0, 1)
    assert (bench.queue("q.a").message_count, bench.queue("q.b").message_count) == (0, 0)


def test_queues_that_were_not_turned_away_are_not_asked_again() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    reader = client.consume(queue("q.a,q.b"), prefetch=1)
    client.publish(queue("q.a"), "a1 a2")
    subscription = sources_of(bench, "q.a")
    assert [source.queue_name for source in subscription.refused_sources] == ["q.a"]
    client.publish(queue("q.b"), "b1")
    assert sorted(source.queue_name for source in subscription.refused_sources) == ["q.a", "q.b"]
    assert reader.bodies() == "a1"
    reader.done(0)
    assert reader.bodies() == "b1"
    reader.done(1)
    assert reader.bodies() == "a2"


def test_a_wildcard_leaves_out_queues_that_the_user_may_not_read_and_the_log_says_so() -> None:
    rights = dict(EVERYTHING.permissions)
    del rights["consume"]
    bench = OpenWireBench(security=(EVERYTHING, SecurityMatch("orders.secret", rights)))
    client = bench.connect()
    client.publish(queue("orders.secret"), "m1")
    # Nothing but what is forbidden: refused.
    assert code_of(client.refused(client.consumer_info(ORDERS))).startswith("SecurityException")
    client.publish(queue("orders.open"), "m2")
    assert client.consume(ORDERS).bodies() == "m2"
    (report,) = client.host.reports
    assert report.code == "DMQ5282"
    assert "orders.secret" in report.message
