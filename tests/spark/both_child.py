"""A query from a queue to another queue and to an archive, in a process of its own, to be killed. Argument: JSON with
its settings."""

import json
import sys
from pathlib import Path
from typing import Any

from delosmq.spark.archive.files import ArchiveFiles
from delosmq.spark.archive.marker import PARQUET, ArchiveClaim
from delosmq.spark.archive.parquet import BatchWriter
from delosmq.spark.checkpoint import heal_checkpoint
from tests.spark.processes import start_child_session

settings = json.loads(sys.argv[1])
checkpoint = Path(settings["checkpoint"])
heal_checkpoint(checkpoint)
spark = start_child_session("both", settings)
files = ArchiveFiles(spark, settings["to"])
files.claim(ArchiveClaim(PARQUET, ("queue:in",)))
files.sweep()
writer = BatchWriter(files, None)


def write(batch: Any, number: int) -> None:
    """Both writes of a batch bear being repeated: its files are replaced, and the broker knows its number."""
    writer.write(batch, number)
    rows = batch.select("body", "message_id").write.format("delosmq").mode("append")
    rows.options(**settings["connection"], queue="out", transactionalId="both", batchId=str(number)).save()


query = (
    spark.readStream.format("delosmq")
    .options(**settings["connection"], subscribe="in", minPartitions="2")
    .options(**{"group.id": "both", "maxOffsetsPerTrigger": str(settings["max_rows"])})
    .load()
    .writeStream.option("checkpointLocation", str(checkpoint))
    .foreachBatch(write)
)
if not settings["endless"]:
    query = query.trigger(availableNow=True)
running = query.start()
writer.query_id.set_result(str(running.id))
running.awaitTermination()
spark.stop()
