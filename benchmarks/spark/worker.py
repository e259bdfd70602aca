"""One session of Spark in a process of its own, and queries in it: `benchmarks.spark.compare` starts it.

Reads a job as JSON from standard input, prints figures as JSON in the last line of standard output.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import machine
from benchmarks.spark import usage
from benchmarks.spark.rows import HEADERS, SETS, body
from delosmq.spark.schema import spark_schema
from delosmq.spark.session import start_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Job = dict[str, Any]
"""
    way: delosmq, kafka, parquet or memory; what is read, or with `sink` what is written.
    sink: whether messages are written, from Parquet files.
    columns: a name of `SETS`.
    rows, batch, partitions: of each query.
    directory: for checkpoints and output, in one for each query.
    options: of the source or sink, for each query.
    jars: for Spark.
    broker_pid: 0 without a broker.
"""


def source(spark: SparkSession, job: Job, options: dict[str, str]) -> DataFrame:
    """The stream of a query."""
    reader = spark.readStream.options(**options)
    way = "parquet" if job["sink"] else job["way"]
    if way == "parquet":
        files = reader.schema(spark_schema(SETS[job["columns"]])).option("maxFilesPerTrigger", job["partitions"])
        return files.parquet(job["parquet"])
    if way == "memory":
        from benchmarks.spark.memory_source import MemorySource

        spark.dataSource.register(MemorySource)
        return reader.format(MemorySource.name()).load()
    stream = reader.option("maxOffsetsPerTrigger", job["batch"]).option("minPartitions", job["partitions"]).format(way)
    return stream.load().select("value") if way == "kafka" and job["columns"] == "body" else stream.load()


def measure(spark: SparkSession, job: Job, number: int) -> dict[str, Any]:
    """One query, from its start to its end."""
    place = Path(job["directory"]) / str(number)
    options = job["options"][number]
    stream = source(spark, job, {} if job["sink"] else options)
    if not job["sink"]:
        writer = stream.writeStream.format("parquet").option("path", str(place / "rows"))
    elif job["way"] == "kafka":
        writer = stream.selectExpr("body AS value").writeStream.format("kafka").options(**options)
    else:
        writer = stream.writeStream.format(job["way"]).options(**options)
    writer = writer.option("checkpointLocation", str(place / "checkpoint")).trigger(availableNow=True)
    before, broker_before = usage.split(usage.processes(os.getpid()), os.getpid()), broker_s(job)
    began_s, began = time.time(), time.perf_counter()
    query = writer.start()
    query.awaitTermination()
    took_s = time.perf_counter() - began
    spent = usage.split(usage.processes(os.getpid()), os.getpid()).since(before)
    found = usage.pace(query.recentProgress, began_s)
    per_million = 1e6 / job["rows"]
    return {
        "elapsed_s": took_s,
        "rows_per_s": job["rows"] / took_s,
        **asdict(found),
        "cpu_s_per_million": {
            "broker": (broker_s(job) - broker_before) * per_million,
            "python": spent.python_s * per_million,
            "jvm": spent.jvm_s * per_million,
            "driver": spent.driver_s * per_million,
        },
    }


def broker_s(job: Job) -> float:
    """Processor time of the broker so far."""
    return machine.cpu_s([job["broker_pid"]]) if job["broker_pid"] else 0.0


def fill_kafka(spark: SparkSession, job: Job) -> None:
    """Messages for all readers, in equal parts; then one reading, as what compiles while it runs begins slowly."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import BinaryType

    headers = f.array(
        *(
            f.struct(f.lit(name).alias("key"), f.lit(value).cast("binary").alias("value"))
            for name, value in HEADERS.items()
        )
    )
    filler = body(0)[8:].decode()
    numbers = spark.range(0, job["rows"], 1, job["partitions"])
    value = f.concat(f.lpad(f.col("id").cast("string"), 8, "0"), f.lit(filler)).cast(BinaryType())
    partition = (f.col("id") % job["partitions"]).cast("int")
    rows = numbers.select(value.alias("value"), headers.alias("headers"), partition.alias("partition"))
    (options,) = job["options"]
    rows.write.format("kafka").options(**options).option("includeHeaders", "true").save()
    found = count_kafka(spark, options)
    if found != job["rows"]:
        raise RuntimeError(f"{found} of {job['rows']} messages are in Kafka")


def count_kafka(spark: SparkSession, options: dict[str, str]) -> int:
    """Messages of a topic, read as a whole."""
    server = options["kafka.bootstrap.servers"]
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", server).option("subscribe", options["topic"])
    return int(reader.load().select("value").where("length(value) > 0").count())


def main() -> int:
    job: Job = json.load(sys.stdin)
    settings = {"spark.jars": ",".join(job["jars"])} if job["jars"] else {}
    began = time.perf_counter()
    spark = start_session("bench", master=f"local[{job['partitions']}]", settings=settings)
    session_s = time.perf_counter() - began
    if job["way"] == "fill kafka":
        fill_kafka(spark, job)
        queries: list[dict[str, Any]] = []
    else:
        queries = [measure(spark, job, number) for number in range(len(job["options"]))]
    found: dict[str, Any] = {"session_s": session_s, "queries": queries}
    if job["sink"] and job["way"] == "kafka":
        found["written"] = [count_kafka(spark, options) for options in job["options"]]
    spark.stop()
    print(json.dumps(found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
