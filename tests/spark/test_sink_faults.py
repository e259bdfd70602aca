"""The sink in a running Spark when the broker, the address or the way between them fails: each row is there once."""

# PIPE-1

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import delosmq
from delosmq.model.settings import AddressFullPolicy, AddressMatch, BrokerSettings
from delosmq.spark import staging_client
from delosmq.spark.options import parse_options
from delosmq.spark.staging_client import SendDefaults, StagingClient, WriteAttempt
from delosmq.spark.transport import Transport
from tests.e2e.faults import FaultyFiles, journal_on
from tests.e2e.support import ADMIN, RunningBroker
from tests.e2e.test_disk_faults import SETTINGS as FULL_DISK
from tests.patience import PATIENCE_S
from tests.spark.brokers import RealBroker, StompBroker
from tests.spark.interceptor import Interceptor
from tests.spark.processes import KillableBroker

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

LIMIT = 30
POLICIES = {"block": AddressFullPolicy.BLOCK, "fail": AddressFullPolicy.FAIL, "drop": AddressFullPolicy.DROP}


def login(broker: StompBroker, servers: str = "") -> dict[str, str]:
    return {"servers": servers or broker.servers, "user": broker.user, "password": broker.password}


def connection_of(broker: StompBroker) -> Any:
    return parse_options({**login(broker), "subscribe": "any"}).connection


def call(broker: StompBroker, path: str, method: str = "GET") -> dict[str, Any]:
    transport = Transport(connection_of(broker))
    try:
        return transport.call(method, f"/api/v1/{path}", None if method == "GET" else {})
    finally:
        transport.close()


def bodies_in(broker: StompBroker, queue: str) -> list[bytes]:
    """In their order."""
    bodies: list[bytes] = []
    after = 0
    while True:
        page = call(broker, f"queues/{queue}/messages?limit=100&after={after}")
        bodies += [message["text"].encode() for message in page["messages"]]
        if len(page["messages"]) < 100:
            return bodies
        after = page["messages"][-1]["sequence"]


def staged_parts(broker: StompBroker) -> list[str]:
    return [part["part"] for part in call(broker, "staging/parts")["parts"]]


def await_that(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline, "what was waited for did not come"
        time.sleep(0.02)


class LimitedBroker(StompBroker):
    """A broker whose addresses ``block``, ``fail`` and ``drop`` take `LIMIT` messages."""

    def __init__(self) -> None:
        matches = tuple(
            AddressMatch(name, {"max_size_messages": LIMIT, "address_full_policy": policy})
            for name, policy in POLICIES.items()
        )
        self._broker = delosmq.Broker(settings=BrokerSettings(address_settings=matches))
        self._broker.__enter__()
        super().__init__(str(self._broker.http_url), self._broker.stomp_port, self._broker.user, self._broker.password)
        for name in POLICIES:
            self.make_queue(name)

    def stop(self) -> None:
        self._broker.__exit__(None, None, None)


@pytest.fixture
def limited() -> Iterator[LimitedBroker]:
    broker = LimitedBroker()
    yield broker
    broker.stop()


@pytest.fixture
def broker() -> Iterator[RealBroker]:
    made = RealBroker()
    made.make_queue("out")
    yield made
    made.stop()


def write(spark: Any, count: int, options: dict[str, str]) -> None:
    frame = spark.range(0, count, 1, 2).selectExpr("cast(id as string) as body")
    frame.write.format("delosmq").mode("append").options(**options).save()


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("fail", r"DMQ8175: .*'fail' refuses the message .*FAIL"),
        ("drop", r"DMQ8179: .* found no room at drop, .*BLOCK"),
    ],
)
def test_a_full_address_that_blocks_no_sender_fails_the_batch_and_nothing_of_it_is_sent_or_staged(
    spark: Any, limited: LimitedBroker, address: str, says: str
):
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match=says):
        write(spark, LIMIT + 2, {**login(limited), "queue": address})
    await_that(lambda: staged_parts(limited) == [])
    assert bodies_in(limited, address) == []
    write(spark, LIMIT, {**login(limited), "queue": address})
    assert len(bodies_in(limited, address)) == LIMIT


def test_a_batch_larger_than_its_address_takes_is_refused_with_the_remedy(spark: Any, limited: LimitedBroker):
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match=r"larger than address 'block' takes.*maxOffsetsPerTrigger"):
        write(spark, LIMIT + 2, {**login(limited), "queue": "block"})
    await_that(lambda: staged_parts(limited) == [])
    write(spark, LIMIT, {**login(limited), "queue": "block"})  # what the other had staged is gone
    assert len(bodies_in(limited, "block")) == LIMIT


def test_a_batch_waits_for_room_at_its_address(spark: Any, limited: LimitedBroker):
    limited.publish("block", [b"before"] * (LIMIT - 1))
    seen: list[bytes] = []

    def make_room() -> None:
        await_that(lambda: any(part["age_ms"] == -1 for part in call(limited, "staging/parts")["parts"]))
        seen.extend(bodies_in(limited, "block"))
        call(limited, "queues/block/purge", "POST")

    consumer = threading.Thread(target=make_room)
    consumer.start()
    write(spark, 10, {**login(limited), "queue": "block"})
    consumer.join(PATIENCE_S)
    assert seen == [b"before"] * (LIMIT - 1)
    assert sorted(map(int, bodies_in(limited, "block"))) == list(range(10))


def test_a_task_that_waits_says_what_is_staged_at_the_full_address(
    limited: LimitedBroker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    import pyarrow as pa

    def rows(count: int) -> Iterator[pa.RecordBatch]:
        return iter([pa.record_batch({"body": ["x"] * count})])

    monkeypatch.setattr(staging_client, "WAIT_MS", 0)
    first = StagingClient(connection_of(limited), SendDefaults("block"))
    parts = first.stage_rows("first", 3, rows(LIMIT - 1))
    second = StagingClient(connection_of(limited), SendDefaults("block"), WriteAttempt("a"), pause_s=0.02)
    waiting = threading.Thread(target=second.stage_rows, args=("second", 0, rows(2)))
    waiting.start()
    await_that(lambda: "DMQ8170" in caplog.text)
    assert f"batch 3 of 'first' {LIMIT - 1} messages" in caplog.text
    first.discard("first", 3, parts)
    waiting.join(PATIENCE_S)
    assert not waiting.is_alive()
    first.close()
    second.close()


def test_a_batch_that_meets_a_full_disk_waits_until_there_is_space(spark: Any, tmp_path: Path):
    files = FaultyFiles(tmp_path)

    def make_space() -> None:
        running.get_until("/health/ready", 503)
        files.full = False

    with RunningBroker(FULL_DISK, lambda: journal_on(files)) as running:
        broker = StompBroker(running.http_url, running.port, ADMIN.name, ADMIN.password)
        broker.make_queue("out")
        files.full = True
        operator = threading.Thread(target=make_space)
        operator.start()
        frame = spark.range(0, 200, 1, 2).selectExpr("concat(id, repeat('x', 3000)) as body")
        frame.write.format("delosmq").mode("append").options(**login(broker), queue="out").save()
        operator.join(PATIENCE_S)
        assert not files.full
        await_that(lambda: call(broker, "queues/out")["message_count"] == 200)
        assert staged_parts(broker) == []


def test_a_publication_whose_answer_is_lost_is_repeated_and_each_row_there_once(spark: Any, broker: RealBroker):
    proxy = Interceptor(broker.servers)
    published: list[str] = []

    def lose_the_first_answer(when: str, path: str, body: bytes) -> None:
        if when == "after" and path.endswith("/publish"):
            published.append(path)
            if len(published) == 1:
                raise ConnectionAbortedError

    proxy.hook = lose_the_first_answer
    write(spark, 50, {**login(broker, proxy.servers), "queue": "out", "transactionalId": "t"})
    proxy.stop()
    assert len(published) == 2
    assert sorted(map(int, bodies_in(broker, "out"))) == list(range(50))


def test_a_broker_that_is_killed_while_staging_and_after_publishing_has_each_row_once(spark: Any, tmp_path: Path):
    broker = KillableBroker(tmp_path / "broker")
    broker.make_queue("out")
    proxy = Interceptor(broker.servers)
    kills: list[str] = []
    lock = threading.Lock()

    def kill(when: str, path: str, body: bytes) -> None:
        with lock:
            moment = f"{when} {'publish' if path.endswith('/publish') else 'part' if '/parts/' in path else ''}"
            if moment in kills or moment not in ("before part", "after part", "after publish"):
                return
            kills.append(moment)
            broker.process.kill()
            broker.process.start()
            raise ConnectionAbortedError

    proxy.hook = kill
    write(spark, 50, {**login(broker, proxy.servers), "queue": "out", "transactionalId": "t"})
    proxy.stop()
    assert kills == ["before part", "after part", "after publish"]
    assert sorted(map(int, bodies_in(broker, "out"))) == list(range(50))
    assert staged_parts(broker) == []
    broker.stop()
