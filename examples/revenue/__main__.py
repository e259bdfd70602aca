"""The revenue example: a broker, tills, Spark, accounting and an audit; `make run` shows it in short.

python -m examples.revenue DIRECTORY      an empty one: archives, checkpoint and report.json go there
"""

import json
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import delosmq
from delosmq.spark.archive import ArchiveRun, archive, read_archive
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
    streamed: list[Streamed] = []
    for half in ("10:00 to 10:10", "10:10 to 10:20, and one that is late"):
        say(f"Orders of {half}: they are sent, and Spark publishes the minutes that are over")
        send_orders(broker, lines)
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
    """Runs it; gives 0 when each order is in one place."""
    started = time.monotonic()
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True)
    spark = start_session("revenue")
    with delosmq.Broker(directory / "broker", config=CONFIG, stomp_port=0) as broker:
        outcome = run(spark, address_of(broker), directory.resolve())
    spark.stop()
    (directory / REPORT).write_text(json.dumps(asdict(outcome), indent=1) + "\n", encoding="utf-8")
    for result in outcome.revenue[:4] + outcome.revenue[-1:]:
        amount = f"{result['orders']:>4} {result['cents'] / 100:>10,.2f}"
        print(f"    {result['minute']}  {result['city']:<8} {amount}  {result['kind']}")
    account = outcome.account
    say(
        f"{account.orders} orders: {account.counted} counted in {outcome.minutes} messages, {account.late} too late and"
        f" corrected, {account.waiting} of minutes that are not over, {account.unreadable} unreadable"
    )
    say(f"Took {time.monotonic() - started:.0f} s")
    return 0 if account.balanced else 1


if __name__ == "__main__":
    sys.exit(main())
