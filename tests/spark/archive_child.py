"""An archive run in a process of its own, to be killed. Argument: JSON with its settings."""

import json
import os
import signal
import sys

from delosmq.spark.archive import ArchiveRun, archive
from delosmq.spark.session import start_session

settings = json.loads(sys.argv[1])


def on_batch(number: int) -> None:
    """Rows are in place, the batch is not committed."""
    if number == settings["die_at_batch"]:
        os.kill(os.getpid(), signal.SIGKILL)


spark = start_session(
    "kills",
    master=settings["master"],
    settings={
        "spark.executor.memory": "512m",
        "spark.driver.memory": "512m",
        "spark.local.dir": settings["scratch"],
        "spark.worker.cleanup.enabled": "false",
    },
)
run = ArchiveRun("q", settings["to"], settings["connection"], max_rows=settings["max_rows"])
print("archived", archive(spark, run, on_batch=on_batch).rows)
spark.stop()
