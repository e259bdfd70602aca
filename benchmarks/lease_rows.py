"""What a row of a lease costs the broker, pure and compiled: `python -m benchmarks.lease_rows`.

In one process, without sockets: the Arrow stream that an answer is made of, for leases of 1 KB messages. Beside it, in
the same rounds, the plain way of `benchmarks.naive_rows`, and as the ceiling Arrow alone: lists of ready values
become the same stream.
The least CPU time of all rounds counts, in us for a row; ratios are within a round's form and case.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

import pyarrow

from benchmarks import naive_rows
from benchmarks.engine import FORMS, ROOT
from benchmarks.naive_rows import CONVERSIONS
from delosmq.engine.api import Slot
from delosmq.manage.http.arrow import RowStream, choose_columns
from delosmq.model import conversion
from delosmq.model.ids import MessageId, Sequence, WallMs
from delosmq.model.message import BYTES_BODY, Message
from delosmq.wire.openwire.commands import BYTES_MESSAGE, MessageCommand
from delosmq.wire.openwire.heads import encode_head
from delosmq.wire.openwire.structures import Destination, ProducerId
from delosmq.wire.openwire.structures import MessageId as OpenWireId

BODY_BYTES = 1_024
AIM_US = 2.0
START_MS = 1_760_000_000_000
COLUMNS = {"body": "body", "all but properties": "", "all": ""}
CASES = ("stomp, headers alike", "stomp, headers differ", "openwire")


def head(case: str, i: int) -> bytes:
    """The head of a message as it is kept."""
    if case == "openwire":
        command = MessageCommand(BYTES_MESSAGE)
        command.destination = Destination("orders")
        command.message_id = OpenWireId(ProducerId("ID:bench-1", 1, 1), i)
        command.content = b"x"
        return encode_head(command, 12, START_MS)
    differs = f"correlation-id:c{i}\nnumber:{i}\n" if case == "stomp, headers differ" else ""
    return f"destination:orders\ncontent-type:text/plain\ncolour:blue\n{differs}".encode()


def lease(case: str, rows: int) -> list[Slot]:
    """The slots of a lease."""
    slots = []
    protocol = "openwire/12" if case == "openwire" else "stomp/12"
    for i in range(rows):
        body = b"%08d" % i + b"x" * (BODY_BYTES - 8)
        message = Message(
            "orders",
            protocol,
            head(case, i),
            body,
            body_kind=BYTES_BODY,
            durable=True,
            timestamp_ms=WallMs(START_MS + i),
        )
        message.user = "producer"
        message.message_id = MessageId(i + 1)
        message.sequence = Sequence(i + 1)
        slot = Slot(message, True)
        slot.delivery_count = 1
        slots.append(slot)
    return slots


def cpu_us(work: Callable[[], object], rows: int) -> float:
    """CPU time of one call for a row."""
    start = time.process_time()
    work()
    return (time.process_time() - start) * 1e6 / rows


def measure(rows: int, rounds: int) -> dict[str, dict[str, float]]:
    """The least of all rounds, by case and columns."""
    found: dict[str, dict[str, float]] = {}
    for case in CASES:
        slots = lease(case, rows)
        for label, wanted in COLUMNS.items():
            names = choose_columns(wanted, headers=label == "all")
            ready = naive_rows.values(slots, names, "orders", CONVERSIONS)
            ways: dict[str, Callable[[], object]] = {
                "served": partial(_served, slots, names),
                "plain": partial(_plain, slots, names),
                "Arrow alone": partial(naive_rows.encoded, ready, names),
            }
            figures = {way: min(cpu_us(work, rows) for _ in range(rounds)) for way, work in ways.items()}
            found[f"{case}: {label}"] = figures
    return found


def _plain(slots: list[Slot], names: tuple[str, ...]) -> bytes:
    return naive_rows.encoded(naive_rows.values(slots, names, "orders", CONVERSIONS), names)


def _served(slots: list[Slot], names: tuple[str, ...]) -> int:
    return asyncio.run(_serve(slots, names))


async def _serve(slots: list[Slot], names: tuple[str, ...]) -> int:
    stream = RowStream(slots, names, "orders", conversions=CONVERSIONS, logger=logging.getLogger("bench"))
    size = 0
    async for chunk in (await stream.response()).body_iterator:
        size += len(chunk)
    return size


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lease_rows", description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--worker", action="store_true", help="measure in this process and print JSON")
    arguments = parser.parse_args(argv)
    if arguments.worker:
        compiled = not str(conversion.__file__).endswith(".py")
        json.dump({"compiled": compiled, "us": measure(arguments.rows, arguments.rounds)}, sys.stdout)
        return 0
    print(f"pyarrow {pyarrow.__version__}, {arguments.rows} rows of {BODY_BYTES} bytes, least of {arguments.rounds}\n")
    print("| us of CPU a row | form | served | plain way | Arrow alone | plain / served | served / Arrow alone |")
    print("|---|---|---|---|---|---|---|")
    for form, python in FORMS.items():
        if not python.exists():
            continue
        command = [str(python), "-m", "benchmarks.lease_rows", "--worker"]
        command += ["--rows", str(arguments.rows), "--rounds", str(arguments.rounds)]
        answer = json.loads(subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout)
        if answer["compiled"] != (form == "compiled"):
            print(f"{python} does not run the {form} form; make it with tools/bootstrap.py", file=sys.stderr)
            return 1
        for case, us in answer["us"].items():
            served, plain, alone = us["served"], us["plain"], us["Arrow alone"]
            print(
                f"| {case} | {form} | {served:.2f} | {plain:.2f} | {alone:.2f} | {plain / served:.1f} |"
                f" {served / alone:.1f} |"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
