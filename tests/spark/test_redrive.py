"""Dead letters go back where they came from, each once, whatever ends a run."""

# PIPE-2

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import delosmq
from delosmq.cli.spark.app import spark_app
from delosmq.model.errors import BrokerError
from delosmq.model.settings import AddressFullPolicy, AddressMatch, BrokerSettings
from delosmq.spark.dead_letters import RedriveRun, plan_redrive, redrive
from delosmq.spark.dead_letters.redrive import ACKNOWLEDGED, PUBLISHED, RECORDED, STAGED
from delosmq.spark.lease_client import LeaseClient
from delosmq.spark.lease_requests import GroupWishes
from tests.spark.letters import call, consume, fail, send, stomp_connection


class KillError(BaseException):
    """As if the process ended here."""


@pytest.fixture
def broker() -> Iterator[delosmq.Broker]:
    with delosmq.Broker() as running:
        yield running


def login(broker: delosmq.Broker) -> dict[str, str]:
    return {"servers": str(broker.http_url), "user": broker.user, "password": broker.password}


def dead_orders(broker: delosmq.Broker, count: int) -> list[str]:
    bodies = [f"order {number}" for number in range(count)]
    send(broker, "/queue/orders", bodies)
    fail(broker, "/queue/orders", count)
    return bodies


def count(broker: delosmq.Broker, queue: str) -> int:
    held: int = call(broker, "GET", f"/api/v1/queues/{queue}")["message_count"]
    return held


def record(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for file in sorted(directory.glob("*.jsonl")) for line in file.read_text().splitlines()]


def run_command(broker: delosmq.Broker, *given: str) -> Any:
    who = ("--servers", str(broker.http_url), "--user", broker.user, "--password", broker.password)
    return CliRunner().invoke(spark_app, ("redrive", *who, *given))


def test_a_letter_that_is_larger_than_a_part_of_many_goes_back_with_the_others(broker: delosmq.Broker):
    large = "x" * 7_000_000
    send(broker, "/queue/orders", ["before", large, "after"])
    fail(broker, "/queue/orders", 3)
    assert redrive(RedriveRun("DLQ", login(broker))).messages == 3
    assert (count(broker, "DLQ"), count(broker, "orders")) == (0, 3)
    assert {len(frame.body) for frame in consume(broker, "/queue/orders", 3)} == {6, 7_000_000, 5}


def test_what_consumers_failed_on_is_triaged_redriven_and_consumed(broker: delosmq.Broker, tmp_path: Path):
    send(broker, "/queue/orders", ["a text"], region="EU", **{"correlation-id": "c7"})
    send(broker, "/queue/orders", ["bytes"], **{"content-length": "5", "priority": "7"})
    fail(broker, "/queue/orders", 2)
    dry = run_command(broker, "--dry-run").output
    assert dry == "messages            2\nwould go to orders  2\n"
    without_record = run_command(broker)
    assert (without_record.exit_code, without_record.output[:8]) == (2, "DMQ8254:")
    assert "--record" in without_record.output
    assert (count(broker, "DLQ"), list(tmp_path.iterdir())) == (2, [])

    ended = run_command(broker, "--record", str(tmp_path / "record"))
    assert ended.exit_code == 0, ended.output
    assert "sent to orders  2\n" in ended.output

    frames = {frame.body: frame.headers for frame in consume(broker, "/queue/orders", 2)}
    text, binary = frames["a text"], frames["bytes"]
    assert (text["region"], text["correlation-id"], text["redriven_count"]) == ("EU", "c7", "1")
    assert "content-length" not in text
    assert (binary["content-length"], binary["priority"]) == ("5", "7")
    assert not [name for name in (*text, *binary) if name.startswith("_AMQ_ORIG")]
    assert text["original_message_id"].startswith("ID:")
    assert [(row["from"], row["to"]) for row in record(tmp_path / "record")] == [("DLQ", "orders")] * 2
    assert count(broker, "DLQ") == 0
    assert call(broker, "GET", "/api/v1/leases")["leases"] == []
    assert call(broker, "GET", "/api/v1/staging/applications")["applications"] == []


def test_a_message_that_fails_again_is_counted_and_keeps_its_first_id(broker: delosmq.Broker):
    dead_orders(broker, 1)
    (letter,) = call(broker, "GET", "/api/v1/queues/DLQ/messages")["messages"]
    first = f"ID:{letter['properties']['_AMQ_ORIG_MESSAGE_ID']}"
    redrive(RedriveRun("DLQ", login(broker)))
    fail(broker, "/queue/orders", 1)
    redrive(RedriveRun("DLQ", login(broker)))
    (frame,) = consume(broker, "/queue/orders", 1)
    assert frame.headers["redriven_count"] == "2"
    assert frame.headers["original_message_id"] == first


@pytest.mark.parametrize("moment", [STAGED, PUBLISHED, RECORDED, ACKNOWLEDGED])
def test_a_run_that_is_killed_is_gone_on_with(broker: delosmq.Broker, tmp_path: Path, moment: str):
    bodies = dead_orders(broker, 5)
    run = RedriveRun("DLQ", login(broker), record=str(tmp_path), max_rows=2)

    def die(step: str, number: int) -> None:
        if (step, number) == (moment, 2):
            raise KillError

    with pytest.raises(KillError):
        redrive(run, on_step=die)
    report = redrive(run)
    assert report.repeated == (moment in (PUBLISHED, RECORDED))
    assert sorted(frame.body for frame in consume(broker, "/queue/orders", 5)) == bodies
    assert (count(broker, "orders"), count(broker, "DLQ")) == (0, 0)
    assert len({row["message_id"] for row in record(tmp_path)}) == len(record(tmp_path)) == 5
    assert call(broker, "GET", "/api/v1/staging/parts")["parts"] == []


def test_a_second_run_takes_over_and_the_first_one_stops(broker: delosmq.Broker):
    bodies = dead_orders(broker, 4)
    run = RedriveRun("DLQ", login(broker), max_rows=2)

    def overtaken(step: str, number: int) -> None:
        if (step, number) == (STAGED, 2):
            assert redrive(run).messages == 2

    with pytest.raises(BrokerError):
        redrive(run, on_step=overtaken)
    assert sorted(frame.body for frame in consume(broker, "/queue/orders", 4)) == bodies
    assert (count(broker, "orders"), count(broker, "DLQ")) == (0, 0)


def test_the_end_of_a_run_leaves_the_group_to_the_run_that_took_it_over(broker: delosmq.Broker):
    dead_orders(broker, 4)
    run = RedriveRun("DLQ", login(broker), max_rows=2)
    options = run.options()
    newer = LeaseClient(options.connection)
    stop = threading.Event()

    def overtaken(step: str, number: int) -> None:
        if step == ACKNOWLEDGED:
            stop.set()
            known = newer.stat(run.group).incarnation
            wishes = GroupWishes(selector=run.full_selector)
            newer.open_group(run.group, options.destination, known, sleep=time.sleep, wishes=wishes)

    assert redrive(run, stop=stop, on_step=overtaken).messages == 2
    assert newer.stat(run.group).acked == 1
    newer.close()
    assert redrive(run).messages == 2


def test_only_the_subscription_that_failed_gets_its_message_again(broker: delosmq.Broker):
    for queue in ("news.a", "news.b"):
        call(broker, "POST", "/api/v1/queues", {"name": queue, "address": "news", "routing_type": "MULTICAST"})
    send(broker, "/topic/news", ["headline"])
    fail(broker, "/queue/news::news.a", 1)
    assert redrive(RedriveRun("DLQ", login(broker))).counts == {"news::news.a": 1}
    assert (count(broker, "news.a"), count(broker, "news.b")) == (1, 1)


def test_filters_leave_the_rest_in_the_queue(broker: delosmq.Broker):
    dead_orders(broker, 1)
    hostile = "it's, \x1b[31m odd"
    for queue in ("returns", hostile):
        send(broker, f"/queue/{queue}", ["x"], region="EU")
        fail(broker, f"/queue/{queue}", 1)
    send(broker, "/queue/DLQ", ["was never anywhere else"])
    assert redrive(RedriveRun("DLQ", login(broker), selector="region = 'EU'", origins=("returns",))).counts == {
        "returns": 1
    }
    assert redrive(RedriveRun("DLQ", login(broker), origins=(hostile,))).counts == {hostile: 1}
    assert redrive(RedriveRun("DLQ", login(broker), before="2001-01-01T00:00:00Z")).messages == 0
    assert redrive(RedriveRun("DLQ", login(broker), since="2001-01-01T00:00:00Z")).counts == {"orders": 1}
    assert count(broker, "DLQ") == 1
    assert redrive(RedriveRun("DLQ", login(broker), to="returns")).counts == {"returns": 1}


def test_a_queue_of_any_name_may_hold_dead_letters():
    name = "dead, 'or' alive%/"
    settings = BrokerSettings(address_settings=(AddressMatch("orders", {"dead_letter_address": name}),))
    with delosmq.Broker(settings=settings) as broker:
        call(broker, "POST", "/api/v1/queues", {"name": name})
        dead_orders(broker, 1)
        assert redrive(RedriveRun(name, login(broker))).counts == {"orders": 1}


def test_a_place_that_is_gone_is_told_before_anything_is_taken(broker: delosmq.Broker, tmp_path: Path):
    dead_orders(broker, 2)
    call(broker, "DELETE", "/api/v1/queues/orders?force=true")
    ended = run_command(broker, "--record", str(tmp_path))
    assert (ended.exit_code, ended.output.count("\n")) == (1, 1), ended.output
    assert ended.output.startswith("DMQ8239: message ID:")
    assert "came from queue 'orders' of address 'orders', and there is none: create it" in ended.output
    assert call(broker, "GET", "/api/v1/leases")["leases"] == []
    assert run_command(broker, "--record", str(tmp_path), "--to", "elsewhere").output.startswith("DMQ8239: --to names")
    assert run_command(broker, "--dry-run", "--to", "orders::").output.startswith("DMQ8239: --to is 'orders::'")
    call(broker, "POST", "/api/v1/queues", {"name": "elsewhere"})
    assert "sent to elsewhere  2" in run_command(broker, "--record", str(tmp_path), "--to", "elsewhere").output


def test_what_an_address_would_drop_is_not_sent():
    full = AddressMatch("small", {"max_size_messages": 3, "address_full_policy": AddressFullPolicy.DROP})
    dead = AddressMatch("#", {"dead_letter_address": "DLQ"})
    with delosmq.Broker(settings=BrokerSettings(address_settings=(dead, full))) as broker:
        call(broker, "POST", "/api/v1/queues", {"name": "DLQ"})
        dead_orders(broker, 5)
        call(broker, "POST", "/api/v1/queues", {"name": "small"})
        run = RedriveRun("DLQ", login(broker), to="small")
        with pytest.raises(BrokerError, match="found no room"):
            redrive(run)
        assert count(broker, "small") == 0
        (group,) = call(broker, "GET", "/api/v1/leases")["leases"]
        call(broker, "POST", f"/api/v1/leases/{run.group.replace('/', '%2F')}/release", {})
        assert (group["group"], count(broker, "DLQ")) == (run.group, 5)


def test_messages_that_are_not_durable_stay_so_and_the_record_can_be_parquet(broker: delosmq.Broker, tmp_path: Path):
    import pyarrow.dataset as dataset

    with stomp_connection(broker) as connection:
        connection.send("/queue/orders", "light", headers={"persistent": "false"})
    fail(broker, "/queue/orders", 1)
    redrive(RedriveRun("DLQ", login(broker), record=str(tmp_path), record_format="parquet"))
    assert dataset.dataset(tmp_path).to_table()["to"].to_pylist() == ["orders"]
    assert call(broker, "GET", "/api/v1/queues/orders")["durable_message_count"] == 0
    assert count(broker, "orders") == 1


def test_each_kind_of_body_goes_back_as_it_came(broker: delosmq.Broker):
    bodies = [None, "", {"m": 1, "b": b"\x00\xff"}, [1, b"z"], b"\x01\x00", "t"]
    with delosmq.connect(broker.openwire_url, user=broker.user, password=broker.password) as connection:
        for body in bodies:
            connection.send("kinds", body)
        with connection.create_session() as session:
            sent = [(type(message), message.body) for message in session.create_browser("kinds")]
            assert redrive(RedriveRun("kinds", login(broker), to="kinds")).messages == len(bodies)
            assert [(type(message), message.body) for message in session.create_browser("kinds")] == sent
    assert len({kind for kind, _ in sent}) == 5


def test_the_rate_bounds_batches(broker: delosmq.Broker):
    dead_orders(broker, 3)
    seen: list[str] = []
    report = redrive(RedriveRun("DLQ", login(broker), rate=20_000), on_progress=seen.append)
    assert (report.batches, report.messages) == (1, 3)
    assert RedriveRun("DLQ", {}, rate=3.5).batch_rows == 3
    assert RedriveRun("DLQ", {}, rate=0.5).batch_rows == 1
    assert seen == ["batch 1: 3 messages; 3 in this run"]


def test_an_empty_queue_is_no_error_and_leaves_nothing(broker: delosmq.Broker, tmp_path: Path):
    ended = run_command(broker, "--record", str(tmp_path / "record"))
    assert ended.exit_code == 0, ended.output
    assert "messages  0" in ended.output
    assert call(broker, "GET", "/api/v1/leases")["leases"] == []
    assert plan_redrive(RedriveRun("DLQ", login(broker))).messages == 0


@pytest.mark.parametrize(
    ("given", "code", "says"),
    [
        (("--queue", "nope"), 1, "DMQ8024: "),
        (("--rate", "-1"), 2, "DMQ8234: the rate is -1.0"),
        (("--format", "csv"), 2, "DMQ8234: the record's format is 'csv'"),
        (("--since", "yesterday"), 2, "DMQ8007: the time 'yesterday' in since"),
        (("--record", "/proc/x"), 1, "DMQ8238: the record can't be written to /proc/x"),
        (("--password", "wrong"), 1, "DMQ8011: "),
    ],
)
def test_what_is_wrong_is_told_in_one_sentence(
    broker: delosmq.Broker, tmp_path: Path, given: tuple[str, ...], code: int, says: str
):
    ended = run_command(broker, "--record", str(tmp_path), *given)
    assert (ended.exit_code, ended.output.count("\n")) == (code, 1), ended.output
    assert ended.output.startswith(says)
