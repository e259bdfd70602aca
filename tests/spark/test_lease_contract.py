"""What a broker promises about leases, checked over HTTP on the fake broker and, where it exists, on the real one."""

from typing import Any

import pytest

from delosmq.model.errors import BrokerError
from delosmq.spark.errors import (
    BodyTooLargeError,
    FencedError,
    ForeignIncarnationError,
    GroupBusyError,
    LeaseLostError,
    LoginRefusedError,
    OptionError,
    QueueMissingError,
)
from delosmq.spark.lease_client import Group, LeaseClient
from delosmq.spark.lease_requests import BrowseFilter, GroupWishes, RowChoice
from delosmq.spark.options import SourceDestination
from delosmq.spark.positions import ReadPosition
from delosmq.spark.schema import column_names
from tests.spark.brokers import BrokerUnderTest

QUEUE = SourceDestination("queue", "orders.archive")
MUCH = {"max_rows": 1_000, "max_bytes": 1 << 30}
NAMES = ("sequence", "body")


def no_sleep(pause_s: float) -> None:
    """For clients that must not wait."""


def open_group(client: LeaseClient, incarnation: str | None = None, name: str = "g") -> Group:
    return client.open_group(name, QUEUE, incarnation, sleep=no_sleep)


def bodies(client: LeaseClient, number: int, lo: int, hi: int) -> list[bytes]:
    batches = client.rows("g", number, lo, hi, NAMES)
    return [value for batch in batches for value in batch.column(1).to_pylist()]


@pytest.fixture
def broker(any_broker: BrokerUnderTest) -> BrokerUnderTest:
    any_broker.publish(QUEUE.name, [b"%d" % number for number in range(1_200)])
    return any_broker


@pytest.fixture
def client(broker: BrokerUnderTest, client_of: Any) -> LeaseClient:
    made = client_of(broker)
    assert isinstance(made, LeaseClient)
    return made


# PIPE-1
def test_a_lease_is_numbered_ordered_and_repeatable(client: LeaseClient):
    group = open_group(client)
    assert (group.queue, group.acked, group.lease) == (QUEUE.name, 0, 0)
    lease = client.lease(group, 0, **MUCH, wait_ms=0)
    assert (lease.number, lease.rows) == (1, 1_000)
    assert lease.first_sequence < lease.last_sequence
    assert lease.bytes > 0
    wanted = [b"%d" % number for number in range(1_000)]
    assert bodies(client, 1, 0, 1_000) == wanted
    assert bodies(client, 1, 0, 1_000) == wanted
    assert bodies(client, 1, 495, 505) == wanted[495:505]


def test_the_same_lease_comes_until_it_is_acknowledged(client: LeaseClient):
    group = open_group(client)
    first = client.lease(group, 0, **MUCH, wait_ms=0)
    assert client.lease(group, 0, max_rows=1, max_bytes=1, wait_ms=0) == first
    second = client.lease(group, 1, **MUCH, wait_ms=0)
    assert (second.number, second.rows) == (2, 200)
    with pytest.raises(LeaseLostError):
        bodies(client, 1, 0, 1)
    assert client.describe("g", 1, 2) == [second]


def test_an_empty_queue_answers_the_number_asked_with(client: LeaseClient):
    group = open_group(client)
    client.lease(group, 0, max_rows=5_000, max_bytes=1 << 30, wait_ms=0)
    nothing = client.lease(group, 1, **MUCH, wait_ms=1)
    assert (nothing.number, nothing.rows) == (1, 0)


def test_bytes_limit_a_lease_but_one_message_always_fits(client: LeaseClient):
    group = open_group(client)
    assert client.lease(group, 0, max_rows=1_000, max_bytes=1, wait_ms=0).rows == 1


def test_nothing_above_until_is_taken(client: LeaseClient, broker: BrokerUnderTest):
    group = open_group(client)
    until = client.stat("g").newest_sequence
    broker.publish(QUEUE.name, [b"later"])
    lease = client.lease(group, 0, max_rows=5_000, max_bytes=1 << 30, wait_ms=30_000, until=until)
    assert (lease.rows, lease.last_sequence) == (1_200, until)
    assert client.lease(group, 1, **MUCH, wait_ms=30_000, until=until).number == 1


def test_a_waiting_lease_gets_what_arrives(client: LeaseClient, broker: BrokerUnderTest, client_of: Any):
    group = open_group(client)
    client.lease(group, 0, max_rows=5_000, max_bytes=1 << 30, wait_ms=0)
    import threading

    answers = []
    thread = threading.Thread(target=lambda: answers.append(client.lease(group, 1, **MUCH, wait_ms=30_000)))
    thread.start()
    broker.publish(QUEUE.name, [b"new"])
    thread.join()
    assert [(lease.number, lease.rows) for lease in answers] == [(2, 1)]


def test_acknowledging_is_cumulative_and_idempotent(client: LeaseClient):
    group = open_group(client)
    client.lease(group, 0, max_rows=100, max_bytes=1 << 30, wait_ms=0)
    client.lease(group, 1, max_rows=100, max_bytes=1 << 30, wait_ms=0)
    assert client.ack(group, 2) == 2
    assert client.ack(group, 2) == 2
    assert client.ack(group, 1) == 2
    stat = client.stat("g")
    assert (stat.acked, stat.leased, stat.ready) == (2, 0, 1_000)


def test_stat_counts_ready_and_leased(client: LeaseClient):
    group = open_group(client)
    client.lease(group, 0, max_rows=100, max_bytes=1 << 30, wait_ms=0)
    stat = client.stat("g")
    assert (stat.ready, stat.leased, stat.acked, stat.lease) == (1_100, 100, 0, 1)
    assert stat.incarnation == group.incarnation
    assert client.queue(QUEUE.name).message_count == 1_200


def test_a_new_epoch_fences_the_old_reader_but_not_its_fetches(
    client: LeaseClient, broker: BrokerUnderTest, client_of: Any
):
    old = open_group(client)
    client.lease(old, 0, **MUCH, wait_ms=0)
    newer = open_group(client_of(broker), old.incarnation)
    assert newer.epoch > old.epoch
    assert newer.lease == 1
    for change in (lambda: client.lease(old, 1, **MUCH, wait_ms=0), lambda: client.ack(old, 1)):
        with pytest.raises(FencedError):
            change()
    assert bodies(client, 1, 0, 2) == [b"0", b"1"]


def test_a_second_reader_of_a_young_group_is_told_to_wait(client: LeaseClient, broker: BrokerUnderTest, client_of: Any):
    open_group(client)
    pauses: list[float] = []
    with pytest.raises(GroupBusyError, match="DMQ8021: "):
        client_of(broker).open_group("g", QUEUE, None, sleep=pauses.append)
    assert sum(pauses) == 90


def test_the_same_reader_may_open_a_young_group_again(client: LeaseClient):
    first = open_group(client)
    again = open_group(client)
    assert again.incarnation == first.incarnation
    assert again.epoch > first.epoch


def test_a_deleted_or_foreign_checkpoint_is_refused(client: LeaseClient, broker: BrokerUnderTest, client_of: Any):
    group = open_group(client)
    client.lease(group, 0, **MUCH, wait_ms=0)
    client.ack(group, 1)
    with pytest.raises(ForeignIncarnationError, match="DMQ8020: "):
        open_group(client_of(broker))
    with pytest.raises(ForeignIncarnationError, match="DMQ8020: "):
        open_group(client_of(broker), "somebody-else")


def test_a_group_that_is_gone_is_lost(client: LeaseClient):
    for call in (
        lambda: open_group(client, "gone"),
        lambda: client.stat("g"),
        lambda: client.describe("g", 0, 1),
        lambda: bodies(client, 1, 0, 1),
    ):
        with pytest.raises(LeaseLostError, match="DMQ8057: "):
            call()


def test_release_gives_back_in_order(client: LeaseClient):
    group = open_group(client)
    client.lease(group, 0, max_rows=10, max_bytes=1 << 30, wait_ms=0)
    client.lease(group, 1, max_rows=10, max_bytes=1 << 30, wait_ms=0)
    assert client.release(group) == 10
    again = open_group(client)
    assert again.incarnation != group.incarnation
    client.lease(again, 0, max_rows=3, max_bytes=1 << 30, wait_ms=0)
    assert bodies(client, 1, 0, 3) == [b"10", b"11", b"12"]


# PIPE-1
def test_a_topic_gets_a_subscription_that_starts_empty(client: LeaseClient, broker: BrokerUnderTest):
    broker.make_queue("prices.all", "prices", "MULTICAST")
    group = client.open_group("t", SourceDestination("topic", "prices"), None, sleep=no_sleep)
    assert group.queue
    assert client.lease(group, 0, **MUCH, wait_ms=0).number == 0


# PIPE-1
def test_a_topic_that_is_not_there_is_made(client: LeaseClient):
    group = client.open_group("t", SourceDestination("topic", "fresh"), None, sleep=no_sleep)
    assert client.lease(group, 0, **MUCH, wait_ms=0).number == 0
    assert (
        client.open_group("t", SourceDestination("topic", "fresh"), group.incarnation, sleep=no_sleep).queue
        == group.queue
    )


def test_a_missing_queue_is_named(client: LeaseClient):
    with pytest.raises(QueueMissingError, match="nowhere"):
        client.open_group("g", SourceDestination("queue", "nowhere"), None, sleep=no_sleep)
    with pytest.raises(QueueMissingError, match="nowhere"):
        client.queue("nowhere")


def test_a_wrong_password_is_refused(broker: BrokerUnderTest, client_of: Any):
    with pytest.raises(LoginRefusedError, match="DMQ8011: "):
        client_of(broker, password="wrong").queue(QUEUE.name)


def test_all_columns_arrive_with_their_types(client: LeaseClient):
    group = open_group(client)
    client.lease(group, 0, max_rows=10, max_bytes=1 << 30, wait_ms=0)
    names = column_names(include_headers=True)
    rows = [row for batch in client.rows("g", 1, 0, 2, names) for row in batch.to_pylist()]
    assert [row["body"] for row in rows] == [b"0", b"1"]
    assert rows[0]["queue"] == QUEUE.name
    assert dict(rows[0]["properties"])["number"] == "1"
    assert rows[0]["protocol"].lower().startswith("stomp")
    assert rows[0]["sequence"] < rows[1]["sequence"]


def test_browsing_takes_nothing_and_includes_what_is_leased(client: LeaseClient):
    client.lease(open_group(client), 0, max_rows=10, max_bytes=1 << 30, wait_ms=0)
    queue = client.queue(QUEUE.name)
    for _ in range(2):
        batches = list(client.browse(QUEUE.name, 0, queue.newest_sequence, ("body",)))
        assert [value for batch in batches for value in batch.column(0).to_pylist()] == [
            b"%d" % number for number in range(1_200)
        ]
    assert client.queue(QUEUE.name) == queue
    middle = queue.oldest_sequence + 99
    part = [row for batch in client.browse(QUEUE.name, 0, middle, NAMES) for row in batch.to_pylist()]
    assert max(row["sequence"] for row in part) <= middle


# -- version 2 ---------------------------------------------------------------------------------------------------------


def leased(client: LeaseClient, group: Group, number: int = 1, **wanted: Any) -> list[dict[str, Any]]:
    """The rows of a lease that is made now."""
    lease = client.lease(group, number - 1, **MUCH, wait_ms=0)
    choice = RowChoice(**wanted)
    return [
        row
        for batch in client.rows(group.name, number, 0, lease.rows, NAMES, wanted=choice)
        for row in batch.to_pylist()
    ]


def opened_with(client: LeaseClient, name: str, **wishes: Any) -> Group:
    return client.open_group(name, SourceDestination("queue", "v2"), None, sleep=no_sleep, wishes=GroupWishes(**wishes))


@pytest.fixture
def numbered(broker: BrokerUnderTest) -> BrokerUnderTest:
    """Ten messages in the queue v2, of priority 5 or 4 in turn, in the message groups a, b and c."""
    headers = [{"priority": str(5 - at % 2), "JMSXGroupID": "abc"[at % 3], "type": f"t{at}"} for at in range(10)]
    broker.publish("v2", [b"%d" % number for number in range(10)], headers=headers)
    return broker


def test_a_broker_tells_its_version_and_limits(client: LeaseClient):
    group = open_group(client)
    assert {"touch"} <= group.features
    assert (group.limits.max_rows, group.limits.max_bytes) == (1_000_000, 1 << 30)


def test_more_than_a_broker_leases_at_once_is_not_asked_for(client: LeaseClient):
    assert client.lease(open_group(client), 0, max_rows=1 << 31, max_bytes=1 << 40, wait_ms=0).rows == 1_200


def test_a_group_begins_where_it_is_told_to(client: LeaseClient, numbered: BrokerUnderTest):
    first = client.queue("v2").oldest_sequence
    rows = [row for batch in client.browse("v2", 0, first + 9, ("sequence", "timestamp")) for row in batch.to_pylist()]
    accepted_ms = int(rows[0]["timestamp"].timestamp() * 1000)
    ways = {
        "sequence": (ReadPosition("sequence", first + 3), 7),
        "time": (ReadPosition("time_ms", accepted_ms), 10),
        "future": (ReadPosition("time_ms", accepted_ms + 86_400_000), 0),
        "latest": (ReadPosition("latest"), 0),
    }
    for name, (start, count) in ways.items():
        group = opened_with(client, name, start=start)
        assert client.lease(group, 0, **MUCH, wait_ms=0).rows == count, name
        client.release(group)


def test_a_selector_leases_only_what_it_lets_through(client: LeaseClient, numbered: BrokerUnderTest):
    group = opened_with(client, "selecting", selector="JMSPriority = 5")
    assert sorted(row["body"] for row in leased(client, group)) == [b"0", b"2", b"4", b"6", b"8"]
    for other in ("JMSPriority = 4", ""):
        with pytest.raises(OptionError, match=r"DMQ8070: "):
            opened_with(client, "selecting", selector=other)


def test_a_wrong_selector_is_refused(client: LeaseClient, numbered: BrokerUnderTest):
    with pytest.raises(BrokerError, match=r"(?i)expected"):
        opened_with(client, "selecting", selector="JMSPriority = = 5")


def test_parts_keep_message_groups_together(client: LeaseClient, numbered: BrokerUnderTest):
    group = opened_with(client, "parted")
    whole = leased(client, group)
    parts = [leased(client, group, part=part, of=2) for part in range(2)]
    assert sorted(row["sequence"] for rows in parts for row in rows) == [
        row["sequence"] for row in sorted(whole, key=lambda row: row["sequence"])
    ]
    of_group = [{int(row["body"]) % 3 for row in rows} for rows in parts]
    assert not of_group[0] & of_group[1]
    assert all(rows == [row for row in whole if row in rows] for rows in parts)


def test_long_bodies_are_refused_or_referred_to(client: LeaseClient, broker: BrokerUnderTest):
    broker.publish("v2", [b"short", b"much too long"])
    group = opened_with(client, "bodies")
    client.lease(group, 0, **MUCH, wait_ms=0)
    with pytest.raises(BodyTooLargeError, match=r"DMQ8068: .*13 bytes"):
        list(client.rows("bodies", 1, 0, 2, ("body",), wanted=RowChoice(max_body_bytes=5)))
    choice = RowChoice(max_body_bytes=5, references=True)
    names = ("body", "body_reference")
    short, long = [row for batch in client.rows("bodies", 1, 0, 2, names, wanted=choice) for row in batch.to_pylist()]
    assert short == {"body": b"short", "body_reference": None}
    assert (long["body"], client.body(long["body_reference"])) == (b"", b"much too long")
    client.ack(group, 1)
    with pytest.raises(LeaseLostError):
        client.body(long["body_reference"])


def test_a_touch_is_for_the_newest_reader(client: LeaseClient, broker: BrokerUnderTest, client_of: Any):
    old = open_group(client)
    client.touch(old)
    other = client_of(broker)
    newer = open_group(other, old.incarnation)
    other.touch(newer)
    with pytest.raises(FencedError):
        client.touch(old)
    client.release(newer)
    with pytest.raises(LeaseLostError):
        other.touch(newer)


def test_rows_and_bodies_are_of_the_life_of_the_group_that_is_asked_for(client: LeaseClient, broker: BrokerUnderTest):
    broker.publish("bodies", [b"of another queue"])
    choice = RowChoice(max_body_bytes=1, references=True)

    def read(group: Group) -> list[dict[str, Any]]:
        found = client.rows("g", 1, 0, 1, ("body", "body_reference"), wanted=choice, incarnation=group.incarnation)
        return [row for batch in found for row in batch.to_pylist()]

    before = open_group(client)
    client.lease(before, 0, max_rows=3, max_bytes=1 << 30, wait_ms=0)
    client.release(before)
    group = client.open_group("g", SourceDestination("queue", "bodies"), None, sleep=no_sleep)
    client.lease(group, 0, max_rows=3, max_bytes=1 << 30, wait_ms=0)
    with pytest.raises(LeaseLostError, match="DMQ8057: "):
        read(before)
    (row,) = read(group)
    assert client.body(row["body_reference"]) == b"of another queue"
    with pytest.raises(LeaseLostError, match="DMQ8057: "):
        client.body(row["body_reference"].replace(group.incarnation, before.incarnation))


def test_a_group_is_released_by_the_run_that_has_it(client: LeaseClient, broker: BrokerUnderTest, client_of: Any):
    old = open_group(client)
    newer = open_group(client_of(broker), old.incarnation)
    with pytest.raises(FencedError, match="DMQ8022: "):
        client.release(old)
    assert client.release(newer) == 0
    again = open_group(client)
    for ended in (old, newer):
        with pytest.raises(FencedError):
            client.release(ended)
    assert client.stat("g").incarnation == again.incarnation


def test_stat_tells_when_a_group_ends(client: LeaseClient):
    open_group(client)
    ends = client.stat("g").expires_in_ms
    assert ends is not None
    assert ends > 3_600_000


@pytest.mark.parametrize(
    "wanted, bodies",
    [
        (BrowseFilter("JMSPriority = 5"), [b"0", b"2", b"4", b"6", b"8"]),
        (BrowseFilter("JMSType = 't3' OR JMSXGroupID = 'a'"), [b"0", b"3", b"6", b"9"]),
        (BrowseFilter(since_ms=1), [b"%d" % number for number in range(10)]),
        (BrowseFilter(before_ms=1), []),
    ],
)
def test_browsing_filters(client: LeaseClient, numbered: BrokerUnderTest, wanted: BrowseFilter, bodies: list[bytes]):
    newest = client.queue("v2").newest_sequence
    found = client.browse("v2", 0, newest, ("body",), wanted=wanted)
    assert [value for batch in found for value in batch.column(0).to_pylist()] == bodies
