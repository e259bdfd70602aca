"""A program that reads and writes by the data source, with all that Spark shows of it: plans, progress, events, log.

Argument: JSON. ``sources`` have options, some more of a stream, ``wrong`` ones of which each fails and says why, and a
checkpoint; ``sink`` is options; ``events`` and ``scratch`` are directories.
"""

import json
import sys
from typing import Any

from pyspark.errors import PySparkException

from delosmq.spark.session import start_session

settings = json.loads(sys.argv[1])
session = start_session(
    "secrets",
    master="local[1]",
    settings={
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{settings['events']}",
        "spark.eventLog.compress": "false",
        "spark.sql.debug.maxToStringFields": "1000",
        "spark.local.dir": settings["scratch"],
        "spark.sql.warehouse.dir": settings["scratch"],
    },
    log_level="INFO",
)


def reader(options: dict[str, str]) -> Any:
    return session.read.format("delosmq").options(**options).load()


for source in settings["sources"]:
    rows = reader(source["options"])
    for mode in ("extended", "codegen", "cost", "formatted"):
        rows.explain(mode=mode)
    rows.select("body").write.format("delosmq").options(**settings["sink"]).mode("append").save()
    stream = session.readStream.format("delosmq").options(**source["options"], **source["stream"]).load()
    stream.explain(True)
    written = stream.select("body").writeStream.format("delosmq").options(**settings["sink"])
    query = written.option("checkpointLocation", source["checkpoint"]).trigger(availableNow=True).start()
    query.awaitTermination()
    query.explain(True)
    print(query.lastProgress, query.status)
    for wrong in source["wrong"]:
        try:
            reader({**source["options"], **wrong}).collect()
        except PySparkException as refusal:
            print(refusal)
        else:
            raise AssertionError(wrong)
session.stop()
print("done")
