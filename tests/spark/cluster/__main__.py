"""`python -m tests.spark.cluster`, or `make cluster`: pipelines of Spark on a real cluster lose and double nothing.

Meanwhile a worker, an executor, the driver and the broker are killed.

Starts a master, two workers and a broker as processes of their own; ends with a table and with 0 only if each message
is in each place once.
"""

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from math import inf
from pathlib import Path

from rich.console import Console
from rich.table import Table

from delosmq.model.errors import BrokerError
from tests.spark.both_scene import Tally
from tests.spark.cluster.legs import SHORT_FORM, Stage, archive_leg, both_leg, drawn_kinds, redrive_leg

SEED = 20261124


def main(given: Sequence[str] | None = None) -> int:
    """Runs all; gives the exit code."""
    wanted = _arguments(given)
    console = Console(highlight=False, soft_wrap=True)
    chance = random.Random(wanted.seed)
    kinds = drawn_kinds(wanted.kills, chance) if wanted.kills else SHORT_FORM
    directory = Path(tempfile.mkdtemp(prefix="delosmq-cluster-"))
    began = time.monotonic()

    def say(line: str) -> None:
        console.print(f"{time.monotonic() - began:6.1f} s  {line}")

    stage: Stage | None = None
    try:
        stage = Stage(directory, say)
        stage.cluster.start()
        say(f"a cluster of two workers is at {stage.cluster.url}, a broker at {stage.broker.servers}")
        tallies = archive_leg(stage)
        say("the archive lost a worker and is done")
        tallies += redrive_leg(stage)
        say("dead letters were sent back by a command that was killed, from a broker that was killed")
        tallies += both_leg(stage, kinds, chance, began + 60 * wanted.minutes)
    except (AssertionError, BrokerError, OSError, RuntimeError) as failure:
        console.print(f"[red]failed:[/red] {failure}\nwhat was written stays in {directory}")
        return 1
    finally:
        if stage is not None:
            stage.stop()
    console.print(_table(tallies))
    right = all(one.is_right for one in tallies)
    if right:
        shutil.rmtree(directory)
    say("each message is in each place once" if right else f"not as it should be; see {directory}")
    return 0 if right else 1


def _table(tallies: Sequence[Tally]) -> Table:
    table = Table()
    table.add_column("place")
    for name in ("sent", "arrived", "lost", "doubled", "never sent"):
        table.add_column(name, justify="right", min_width=len(name), no_wrap=True)
    for one in tallies:
        counts = (one.sent, one.arrived, one.lost, one.doubled, one.strange)
        table.add_row(one.place, *(f"{count:,}" for count in counts))
    return table


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.spark.cluster", description=__doc__)
    parser.add_argument("--kills", type=int, default=0, help="of the query, at random; without it each kind once")
    parser.add_argument("--minutes", type=float, default=inf, help="no kill after so long")
    parser.add_argument("--seed", type=int, default=SEED, help="of what is killed and when")
    return parser.parse_args(given)


if __name__ == "__main__":
    sys.exit(main())
