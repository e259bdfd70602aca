"""A query from a queue to a queue in a process of its own, to be killed. Argument: JSON with its settings."""

import json
import sys
from pathlib import Path

from delosmq.spark.checkpoint import heal_checkpoint
from tests.spark.processes import start_child_session

settings = json.loads(sys.argv[1])
checkpoint = Path(settings["checkpoint"])
heal_checkpoint(checkpoint)
spark = start_child_session("sink kills", settings)
frame = (
    spark.readStream.format("delosmq")
    .options(**settings["connection"], subscribe="in", columns="body", minPartitions="2")
    .options(**{"group.id": "g", "maxOffsetsPerTrigger": str(settings["max_rows"])})
    .load()
)
query = (
    frame.writeStream.format("delosmq")
    .options(**settings["connection"], queue="out", checkpointLocation=str(checkpoint))
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
spark.stop()
