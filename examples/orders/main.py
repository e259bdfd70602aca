"""The main job: ``make run``.

Starts a broker on its journal, sends orders through it with unmodified STOMP clients, archives them with Spark while
the traffic runs, reports and audits. Ends with 0 only if nothing was lost, doubled or strange.

Environment: INPUT=file.jsonl (default: generated orders), KEEP=1 (leave the broker up), OUT=directory (default:
orders-run), STOMP_PORT, HTTP_PORT.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from examples.data.make_orders import DEFAULT_COUNT, DEFAULT_SEED, order_lines
from examples.orders.broker_process import BrokerFailed, BrokerProcess
from examples.orders.events import InputError, read_orders
from examples.orders.report import Report, load_report, write_receipts
from examples.orders.traffic import Receipts, Traffic, TrafficError

HERE = Path(__file__).parent
CONFIG = HERE.parent / "broker.xml"
SPACE_NEEDED_BYTES = 1024 * 1024 * 1024
ARCHIVE_TIMEOUT_S = 300.0
ARCHIVE_ROWS = 5_000
GROUP = "orders-archive"
MARKER = ".delosmq-orders-run"

console = Console(highlight=False, soft_wrap=True)


class JobFailed(Exception):
    """One sentence for people."""


def main() -> int:
    """Runs the job; gives the exit code."""
    started = time.monotonic()
    try:
        out = prepare_output(Path(os.environ.get("OUT", "orders-run")))
        orders = read_orders(input_file(out))
        ports = [checked_port("STOMP_PORT", 61613), checked_port("HTTP_PORT", 8161)]
        check_java()
        broker = BrokerProcess(out / "broker", CONFIG, stomp_port=ports[0], http_port=ports[1])
        step(f"Starting a broker on its journal in {broker.directory}")
        broker.start()
    except (InputError, JobFailed, BrokerFailed) as error:
        return refuse(str(error))
    archive: subprocess.Popen[bytes] | None = None
    revenue: subprocess.Popen[bytes] | None = None
    try:
        archive = start_archive(broker, out)
        traffic = Traffic(broker.address, orders)
        step(f"Publishing {len(orders)} orders, working on them, failing some on purpose")
        receipts = traffic.run(lambda so_far: progress(so_far, broker, len(orders)))
        prices = traffic.last_prices()
        step("Starting the second example beside it, revenue per minute")
        revenue = start_revenue(out)
        finish_archive(archive, broker, out)
        step("Reporting and auditing with Spark")
        result = make_report(out, receipts)
        show(result, prices, finish_revenue(revenue, out), out, time.monotonic() - started)
        if os.environ.get("KEEP"):
            keep(broker)
    except (TrafficError, JobFailed) as error:
        return refuse(f"{error} (the broker's log: {broker.log})")
    except KeyboardInterrupt:
        return refuse("stopped by you; nothing is left running")
    finally:
        for child in (archive, revenue):
            if child is not None and child.poll() is None:
                child.kill()
        broker.stop()
        (out / "password").unlink(missing_ok=True)
    return 0 if result.audit.passed else 1


def step(text: str) -> None:
    """One line of progress."""
    console.print(f"[bold]•[/bold] {text}")


def refuse(text: str) -> int:
    """One clear sentence, and a code that says so."""
    console.print(f"[red]The job could not be done:[/red] {text}")
    return 2


def prepare_output(out: Path) -> Path:
    """An empty output directory; an earlier run of ours is replaced, anything else is left alone."""
    if out.exists() and any(out.iterdir()):
        if not (out / MARKER).exists():
            raise JobFailed(f"DMQ7201: {out} holds files that are not of this job; choose another directory with OUT=")
        shutil.rmtree(out)
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / MARKER).touch()
    except OSError as error:
        raise JobFailed(
            f"DMQ7202: can't write to {out}: {error.strerror}; choose another directory with OUT="
        ) from error
    free = shutil.disk_usage(out).free
    if free < SPACE_NEEDED_BYTES:
        raise JobFailed(
            f"DMQ7203: only {free // 2**20} MiB are free on the disk of {out}, the job needs 1024; make room or choose"
            " another directory with OUT="
        )
    return out.resolve()


def input_file(out: Path) -> Path:
    """The user's input, or generated orders."""
    given = os.environ.get("INPUT")
    if given:
        return Path(given)
    path = out / "orders.jsonl"
    path.write_text("\n".join(order_lines(DEFAULT_COUNT, DEFAULT_SEED)) + "\n", encoding="utf-8")
    return path


def checked_port(variable: str, default: int) -> int:
    """A port that can be listened on."""
    text = os.environ.get(variable, str(default))
    if not text.isdigit() or not 0 < int(text) < 65536:
        raise JobFailed(f"DMQ7204: {variable}={text} is no port; give a number from 1 to 65535")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", int(text)))
        except OSError as error:
            raise JobFailed(
                f"DMQ7205: port {text} is in use; stop what listens there or choose another with {variable}="
            ) from error
    return int(text)


def check_java() -> None:
    """Spark needs Java; better to say so before the traffic than after it."""
    from delosmq.model.errors import BrokerError
    from delosmq.spark.machine.java import ensure_java

    try:
        ensure_java()
    except BrokerError as error:
        raise JobFailed(str(error)) from error


def start_archive(broker: BrokerProcess, out: Path) -> "subprocess.Popen[bytes]":
    """The Spark pipeline, as a user would start it, once it reads."""
    step(f"Starting Spark to archive queue orders.archive to {out / 'archive'}")
    secret = out / "password"
    secret.touch(mode=0o600)
    secret.write_text(broker.address.password, encoding="utf-8")
    command = [sys.executable, "-m", "delosmq.cli.main", "spark", "archive", "--queue", "orders.archive"]
    command += [
        "--to",
        str(out / "archive"),
        "--trigger",
        "continuous",
        "--group",
        GROUP,
        "--max-rows",
        str(ARCHIVE_ROWS),
    ]
    command += ["--servers", broker.address.http_url, "--user", broker.address.user, "--password-file", str(secret)]
    with (out / "archive.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    wait_for(lambda: bool(broker.address.get("/api/v1/leases")["leases"]), process, out)
    return process


def wait_for(reached: "object", process: "subprocess.Popen[bytes]", out: Path) -> None:
    """Until ``reached()``; the pipeline must be alive meanwhile."""
    deadline = time.monotonic() + ARCHIVE_TIMEOUT_S
    assert callable(reached)
    while not reached():
        if process.poll() is not None:
            raise JobFailed(f"DMQ7206: the archive pipeline ended early; see {out / 'archive.log'}")
        if time.monotonic() > deadline:
            process.kill()
            raise JobFailed(
                f"DMQ7207: the archive pipeline made no end within {ARCHIVE_TIMEOUT_S:.0f} s; see {out / 'archive.log'}"
            )
        time.sleep(0.2)


def finish_archive(process: "subprocess.Popen[bytes]", broker: BrokerProcess, out: Path) -> None:
    """Waits until everything is archived and acknowledged, then stops the pipeline."""
    step("Waiting until the archive has everything")
    wait_for(lambda: broker.address.queue("orders.archive")["message_count"] == 0, process, out)
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def progress(receipts: Receipts, broker: BrokerProcess, total: int) -> None:
    """One line while the traffic runs."""
    waiting = broker.address.queue("orders.archive")["message_count"]
    console.print(
        f"    published {len(receipts.published):>6}/{total}   acknowledged {len(receipts.acknowledged):>6}"
        f"   redelivered {receipts.redelivered:>5}   waiting for the archive {waiting:>6}"
    )


def make_report(out: Path, receipts: Receipts) -> Report:
    """The Spark job over the archive."""
    write_receipts(out / "receipts", receipts)
    log = out / "report.log"
    command = [sys.executable, "-m", "examples.orders.report", str(out), str(receipts.redelivered)]
    with log.open("wb") as output:
        ended = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False)
    if ended.returncode != 0:
        raise JobFailed(f"DMQ7208: the report failed; see {log}")
    return load_report(out / "report" / "report.json")


def start_revenue(out: Path) -> "subprocess.Popen[bytes]":
    """The stream processor's example, with a broker of its own, as a user would start it."""
    command = [sys.executable, "-m", "examples.revenue", "--no-audit", str(out / "revenue")]
    with (out / "revenue.log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)


def finish_revenue(process: "subprocess.Popen[bytes]", out: Path) -> dict[str, int]:
    """Where its orders are, by what the table calls it."""
    log = out / "revenue.log"
    try:
        code = process.wait(ARCHIVE_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        code = -1
    if code != 0:
        raise JobFailed(f"DMQ7120: the example of revenue per minute failed; see {log}")
    value = json.loads((out / "revenue" / "report.json").read_text(encoding="utf-8"))
    account = value["account"]
    return {
        "orders for revenue per minute": account["orders"],
        f"in {value['minutes']} sums of a minute and city": account["counted"],
        "too late, in a correction": account["late"],
        "of minutes that are not over": account["waiting"],
        "unreadable": account["unreadable"],
    }


def show(result: Report, prices: list[str], revenue: dict[str, int], out: Path, took_s: float) -> None:
    """The one table at the end, where the files are, what to try next."""
    audit = result.audit
    table = Table(title="Orders: what became of each", title_justify="left")
    table.add_column("orders")
    table.add_column("count", justify="right")
    for name, value in asdict(audit).items():
        bad = name in ("lost", "doubled", "strange") and value
        table.add_row(name.replace("_", "-"), f"[red]{value}[/red]" if bad else str(value))
    table.add_section()
    table.add_row("hours with orders", str(result.hours))
    table.add_row(f"busiest hour ({result.busiest_hour})", "")
    for customer, count, amount in result.top_customers:
        table.add_row(f"{customer}: {amount:,.2f}", str(count))
    table.add_row("last prices in the ring queue", " ".join(prices))
    table.add_section()
    for name, count in revenue.items():
        table.add_row(name, str(count))
    console.print(table)
    console.print(f"Took {took_s:.0f} s. Files:")
    for name, what in (
        ("archive", "every order, Parquet by day"),
        ("report/per_hour", "orders and amount per hour, CSV"),
        ("report/per_customer", "orders and amount per customer, CSV"),
        ("report/report.json", "the figures above"),
        ("revenue/report.json", "revenue per minute and city, docs/example-revenue.md"),
        ("receipts", "what the clients saw confirmed"),
    ):
        console.print(f"  {out / name}  [dim]{what}[/dim]")
    console.print("Try next: make run INPUT=your.jsonl   |   make run KEEP=1   |   docs/tutorial.md")


def keep(broker: BrokerProcess) -> None:
    """Leaves the broker up until Ctrl-C."""
    address = broker.address
    console.print(f"The broker stays up. STOMP {address.host}:{address.stomp_port}, HTTP {address.http_url}")
    console.print(f"Login: {address.user} / {address.password}    Stop it with Ctrl-C.")
    try:
        broker.wait()
    except KeyboardInterrupt:
        console.print("Stopping.")


if __name__ == "__main__":
    sys.exit(main())
