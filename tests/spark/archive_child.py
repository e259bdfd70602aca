"""An archive run in a process of its own, to be killed. Argument: JSON with its settings."""

import json
import os
import signal
import sys

from delosmq.spark.archive import ArchiveRun, archive
from tests.spark.processes import start_child_session

settings = json.loads(sys.argv[1])


def on_batch(number: int) -> None:
    """Rows are in place, the batch is not committed."""
    if number == settings["die_at_batch"]:
        os.kill(os.getpid(), signal.SIGKILL)


spark = start_child_session("kills", settings)
run = ArchiveRun("q", settings["to"], settings["connection"], max_rows=settings["max_rows"], kind=settings["kind"])
print("archived", archive(spark, run, on_batch=on_batch).rows)
spark.stop()
