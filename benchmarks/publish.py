"""How long publishing staged rows holds up other traffic: `python -m benchmarks.publish`, pure and compiled; a minute.

As the long work of `benchmarks.engine`: a batch is published, and in each tick until all of it is in its queue another
connection sends a message and has it acknowledged. In processor time of the engine alone: what another program on the
machine takes is not its doing. `call` is the publication itself, which answers; `longest` that, or a tick.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import time

from benchmarks.engine import FORMS, ROOT
from benchmarks.engine_worker import PREFETCH, Engine, Taker
from delosmq.engine.api import JobWaiter, MessageCredit
from delosmq.model.errors import BrokerError
from delosmq.model.message import ANY_ROUTING, ANYCAST
from delosmq.spark.staging_client import PART_ROWS

AIM_MS = 10.0
USER = "bench"


class Staged(JobWaiter):
    """Waits for a part."""

    def on_ended(self, error: BrokerError | None) -> None:
        assert error is None, error


def stage(engine: Engine, rows: int) -> list[str]:
    """Stages rows in parts as large as Spark's sink makes them; gives their names."""
    staging = engine.broker.staging
    parts: list[str] = []
    for first in range(0, rows, PART_ROWS):
        parts.append(f"part-{first}")
        part = staging.begin("bench", 0, parts[-1], USER)
        for _ in range(min(PART_ROWS, rows - first)):
            message = engine.message(engine.names[0], True)
            message.user = USER
            staging.add(part, message, ANY_ROUTING)
        staging.prepare(part, Staged())
        while engine.broker.tick():
            pass
    return parts


def measure(rows: int) -> dict[str, float]:
    """One batch in an engine of its own."""
    engine = Engine(queues=2)
    broker, out, other = engine.broker, engine.names[0], engine.names[1]
    parts = stage(engine, rows)
    port = broker.consumers.subscribe(other, Taker(), MessageCredit(PREFETCH), routing=ANYCAST)
    gc.collect()
    gc.freeze()  # as the server has it
    start = time.thread_time_ns()
    broker.staging.publish("bench", 0, parts, USER)
    spent = [time.thread_time_ns() - start]
    while broker.queues[out].message_count < rows or len(spent) < 10:
        before = time.thread_time_ns()
        broker.tick()
        broker.producers.send(engine.message(other, True))
        while Taker.taken:
            broker.consumers.acknowledge(port, Taker.taken.pop().sequence)
        spent.append(time.thread_time_ns() - before)
    total_ms = (time.thread_time_ns() - start) / 1e6
    call_ms = spent[0] / 1e6
    spent.sort()
    return {
        "call_ms": call_ms,
        "longest_ms": spent[-1] / 1e6,
        "median_ms": spent[len(spent) // 2] / 1e6,
        "total_ms": total_ms,
    }


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.publish", description=__doc__)
    parser.add_argument("--rows", default="1,10000,1000000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--worker", type=int, default=0, help="measure so many rows in this process and print JSON")
    arguments = parser.parse_args(argv)
    if arguments.worker:
        json.dump(measure(arguments.worker), sys.stdout)
        return 0
    print("| form | rows | call | median tick | longest | all rows in the queue after |")
    print("|---|---|---|---|---|---|")
    for form, python in FORMS.items():
        if not python.exists():
            continue
        for rows in [int(count) for count in arguments.rows.split(",")]:
            command = [str(python), "-m", "benchmarks.publish", "--worker", str(rows)]
            answers = [
                json.loads(subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout)
                for _ in range(arguments.rounds)
            ]
            least = {name: min(answer[name] for answer in answers) for name in answers[0]}
            print(
                f"| {form} | {rows:,} | {least['call_ms']:.2f} ms | {least['median_ms']:.2f} ms |"
                f" {least['longest_ms']:.2f} ms | {least['total_ms']:,.0f} ms of the processor |"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
