"""A query over OpenWire in a process of its own, to be killed. Argument: JSON with its settings.

It appends each batch to Parquet files, so that what comes twice is there twice.
"""

import json
import os
import signal
import sys
from typing import Any

from tests.spark.processes import start_child_session

settings = json.loads(sys.argv[1])


def keep(batch: Any, number: int) -> None:
    batch.selectExpr("cast(body as string) as body", "message_id", "redelivered").write.mode("append").parquet(
        settings["to"]
    )
    if number == settings["die_at_batch"]:
        # The rows are in place, the batch is not committed.
        os.kill(os.getpid(), signal.SIGKILL)


spark = start_child_session("stock", settings)
rows = spark.readStream.format("delosmq").options(**settings["options"]).load()
written = rows.writeStream.foreachBatch(keep).option("checkpointLocation", settings["checkpoint"])
written.trigger(availableNow=True).start().awaitTermination()
spark.stop()
