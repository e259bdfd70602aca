"""The Spark commands as far as they go without Spark."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

import delosmq
from delosmq.cli.spark.app import spark_app
from delosmq.model.settings import BrokerSettings, QueueSettings
from delosmq.spark.archive import ArchiveReport, ArchiveRun
from delosmq.spark.pipeline import closing_table
from tests.spark.fake_broker import FakeBroker


@pytest.mark.parametrize(
    ("more", "code", "says"),
    [
        (("--trigger", "now"), 2, "DMQ8050: "),
        (("--servers", "http://h:99999"), 2, "DMQ8003: "),
        (("--queue", "nope"), 1, "DMQ8024: "),
        (("--to", "/proc/x"), 1, "DMQ8062: /proc/x can't be written to"),
        (("--to", "https://bucket/x"), 2, "DMQ8063: Spark can't write to https://bucket/x"),
        (("--to", "file://elsewhere/x"), 2, "DMQ8063: "),
        (("--password", "wrong"), 1, "DMQ8011: "),
    ],
)
def test_an_archive_is_refused_in_one_sentence_before_spark(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, more: tuple[str, ...], code: int, says: str
) -> None:
    def no_spark(name: str, master: str) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("delosmq.spark.pipeline.open_session", no_spark)
    broker = FakeBroker()
    try:
        broker.make_queue("q")
        login = ("--servers", broker.servers, "--user", broker.user, "--password", broker.password)
        given = ("archive", "--queue", "q", "--to", str(tmp_path / "a"), *login, *more)
        ended = CliRunner().invoke(spark_app, given)
    finally:
        broker.stop()
    assert (ended.exit_code, ended.output.count("\n")) == (code, 1), ended.output
    assert ended.output.startswith(says)
    assert not list(tmp_path.iterdir())


def test_the_doctor_logs_in_as_admin_and_tells_a_refused_login_from_a_missing_broker() -> None:
    broker = FakeBroker()
    try:
        given = ("doctor", "--no-session", "--servers", broker.servers, "--password", broker.password)
        refused = CliRunner(env={"DELOSMQ_USER": None}).invoke(spark_app, given)
        broker.user = "admin"
        accepted = CliRunner(env={"DELOSMQ_USER": None}).invoke(spark_app, given)
    finally:
        broker.stop()
    assert "refused broker   DMQ8011: " in refused.output
    assert "refused the login of user 'admin'" in refused.output
    assert "-> correct --user and --password-file" in refused.output
    assert "start the broker" not in refused.output
    assert "accepts the login" in accepted.output


def test_an_archive_asks_the_broker_once_before_spark_does(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[str] = []

    def session(name: str, master: str) -> None:
        asked.append("Spark")

    def check(run: ArchiveRun) -> None:
        asked.append("broker")

    def follow(*_: object) -> ArchiveReport:
        return ArchiveReport()

    monkeypatch.setattr("delosmq.spark.pipeline.open_session", session)
    monkeypatch.setattr("delosmq.spark.pipeline.stop_on_signals", lambda: None)
    monkeypatch.setattr("delosmq.spark.archive.run.check_run", check)
    monkeypatch.setattr("delosmq.spark.archive.run._archive", follow)
    CliRunner().invoke(spark_app, ("archive", "--queue", "q", "--to", str(tmp_path), "--password", "x"))
    assert asked == ["broker", "Spark"]


@pytest.mark.parametrize(
    ("settings", "code"), [({"durable": False}, "DMQ2409"), ({"non_destructive": True}, "DMQ2410")]
)
def test_a_queue_that_has_no_leases_is_refused_before_spark(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: dict[str, bool], code: str
) -> None:
    monkeypatch.setattr("delosmq.spark.pipeline.open_session", lambda name, master: pytest.fail("Spark was started"))
    queues = (QueueSettings("q", "q", **settings),)  # type: ignore[arg-type]
    with delosmq.Broker(settings=BrokerSettings(queues=queues)) as broker:
        login = ("--servers", broker.http_url, "--user", broker.user, "--password", broker.password)
        ended = CliRunner().invoke(spark_app, ("archive", "--queue", "q", "--to", str(tmp_path / "a"), *login))
    assert (ended.exit_code, ended.output.count("\n")) == (1, 1), ended.output
    assert code in ended.output or "queue 'q' is no" in ended.output


def test_a_dry_run_checks_all_says_what_waits_and_does_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("delosmq.spark.pipeline.open_session", lambda name, master: pytest.fail("Spark was started"))
    with delosmq.Broker() as broker:
        with delosmq.connect(broker.openwire_url, user=broker.user, password=broker.password) as connection:
            for _ in range(3):
                connection.send("orders", "tea")
        login = ("--servers", broker.http_url, "--user", broker.user, "--password", broker.password)
        given = ("archive", "--topic", "prices", "--queue", "orders", "--to", str(tmp_path / "a"), *login, "--dry-run")
        ended = CliRunner().invoke(spark_app, given)
        refused = CliRunner().invoke(spark_app, (*given, "--queue", "nope"))
    assert (ended.exit_code, ended.output) == (
        0,
        f"would archive             queue:orders, topic:prices to {tmp_path / 'a'} (parquet)\n"
        "messages in queue:orders  3\n",
    )
    assert (refused.exit_code, refused.output[:9]) == (1, "DMQ8024: ")
    assert not list(tmp_path.iterdir())


def test_numbers_of_the_closing_table_have_commas() -> None:
    assert closing_table({"messages": 1234567, "to": "a"}) == ["messages  1,234,567", "to        a"]
