"""The revenue example: a broker, tills, Spark, accounting and an audit; `make run` shows it in short.

python -m examples.revenue DIRECTORY      a new one: archives, checkpoint, audit and report.json go there
"""

import argparse
import json
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import delosmq
from delosmq.spark.archive import ArchiveRun, archive, read_archive
from delosmq.spark.audit import AuditReport, AuditRun, audit
from delosmq.spark.session import start_session
from examples.orders.broker_process import Address
from examples.revenue.clients import LATE_ORDER, NO_ORDER, order_lines, send_orders, take_revenue
from examples.revenue.corrections import Account, correct
from examples.revenue.stream import Streamed, publish_minutes, read_shops

CONFIG = Path(__file__).parent / "broker.xml"
ORDERS = 1_200
REPORT = "report.json"


@dataclass(frozen=True)
class Outcome:
    """What one run did. Attributes: minutes, corrections: messages that accounting took."""

    account: Account
    dropped: int
    minutes: int
    corrections: int
    revenue: list[dict[str, Any]]


def run(spark: Any, broker: Address, directory: Path) -> Outcome:
    """Twenty minutes of orders, in two halves; the second begins with an order that is too late."""
    login = login_of(broker)
    orders = list(order_lines(ORDERS))
    lines = [*orders[: ORDERS // 2], NO_ORDER]
    sent = 0
    streamed: list[Streamed] = []
    for half in ("10:00 to 10:10", "10:10 to 10:20, and one that is late"):
        say(f"Orders of {half}: they are sent, and Spark publishes the minutes that are over")
        send_orders(broker, lines, first=sent + 1)
        sent += len(lines)
        streamed.append(publish_minutes(spark, login, directory / "checkpoint", max_orders=len(lines)))
        lines = [json.dumps(LATE_ORDER), *orders[ORDERS // 2 :]]
    say("Orders and revenue are archived, and what came too late is corrected")
    archive_all(spark, login, directory)
    account = correct(spark, login, archived(spark, directory), read_shops(spark))
    frames = take_revenue(broker)
    results = [{**json.loads(frame.body), "kind": frame.headers["kind"]} for frame in frames]
    corrections = sum(result["kind"] == "correction" for result in results)
    dropped = sum(each.dropped for each in streamed)
    return Outcome(account, dropped, len(results) - corrections, corrections, results)


def audited(spark: Any, broker: Address, directory: Path) -> AuditReport:
    """What became of all messages, by the archive and by the broker's records of each step, as a page with plots.

    The till numbers its orders in a property, so that a gap or a double would be seen.
    """
    archive_all(spark, login_of(broker), directory)
    archive(spark, ArchiveRun("events.archive", str(directory / "events"), login_of(broker)))
    messages, records, to = (str(directory / name) for name in ("archive", "events", "audit"))
    report = audit(spark, AuditRun(to, messages, records, producer_property="till", sequence_property="number"))
    say("Everything is audited")
    return report


def address_of(broker: delosmq.Broker) -> Address:
    """Where it listens."""
    assert broker.http_port is not None
    return Address(broker.host, broker.stomp_port, broker.http_port, broker.user, broker.password)


def login_of(broker: Address) -> dict[str, str]:
    """Options of the data source."""
    return {"servers": broker.http_url, "user": broker.user, "password": broker.password}


def archive_all(spark: Any, login: Mapping[str, str], directory: Path) -> None:
    """What waits in the queues for the archive."""
    archive(spark, ArchiveRun(["orders.archive", "revenue.archive"], str(directory / "archive"), login))


def archived(spark: Any, directory: Path) -> Any:
    """All that was archived so far."""
    return read_archive(spark, str(directory / "archive"))


def say(text: str) -> None:
    print(f"• {text}", flush=True)


def main() -> int:
    """Runs it; gives 0 when each order is in one place, and is there once."""
    started = time.monotonic()
    parser = argparse.ArgumentParser(prog="python -m examples.revenue", description="Revenue per minute, as a stream.")
    parser.add_argument("directory", type=Path, help="a new one, for archives, checkpoint, audit and report.json")
    parser.add_argument("--no-audit", action="store_true", help="ends when accounting has the revenue")
    arguments = parser.parse_args()
    directory: Path = arguments.directory.resolve()
    try:
        directory.mkdir(parents=True)
    except FileExistsError:
        parser.error(f"{directory} is there already; name a new directory, or remove it")
    spark = start_session("revenue")
    with delosmq.Broker(directory / "broker", config=CONFIG, stomp_port=0) as broker:
        outcome = run(spark, address_of(broker), directory)
        report = None if arguments.no_audit else audited(spark, address_of(broker), directory)
    spark.stop()
    (directory / REPORT).write_text(json.dumps(asdict(outcome), indent=1) + "\n", encoding="utf-8")
    show(outcome)
    passed = outcome.account.balanced
    if report is not None:
        say(f"{report.missing} numbers of the till missing, {report.doubles} doubled: {report.report}")
        passed = passed and not report.missing and not report.doubles
    say(f"Took {time.monotonic() - started:.0f} s")
    return 0 if passed else 1


def show(outcome: Outcome) -> None:
    """Some of the revenue, and where each order is."""
    for result in outcome.revenue[:4] + outcome.revenue[-1:]:
        amount = f"{result['orders']:>4} {result['cents'] / 100:>10,.2f}"
        print(f"    {result['minute']}  {result['city']:<8} {amount}  {result['kind']}")
    account = outcome.account
    say(
        f"{account.orders} orders: {account.counted} counted in {outcome.minutes} messages, {account.late} too late and"
        f" corrected, {account.waiting} of minutes that are not over, {account.unreadable} unreadable"
    )


if __name__ == "__main__":
    sys.exit(main())
