"""Keeps the classes that Java loads for Spark in one file, from which a Java starts Spark in less than half the time.

    python -m tools.spark_classes     makes build/spark-classes-VERSION-view.jsa, unless it is there

They are those of the jars as `delosmq.spark.machine.home` shows them, because Java goes by the path. Java itself looks
whether the file fits it and Spark's jars, and does without it if not. Source: "Class Data Sharing" in the manual of
`java`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from delosmq.spark.errors import JavaMissingError
from delosmq.spark.machine.java import ensure_java

ROOT = Path(__file__).resolve().parent.parent
try:
    SPARK = version("pyspark")
except PackageNotFoundError:
    SPARK = "none"
CLASSES = ROOT / "build" / f"spark-classes-{SPARK}-view.jsa"
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Compile quickly: a Spark of a test lives too short for what Java's second compiler would make of its code."""
QUIET = "-Xlog:disable"
"""Or Java prints a line for each class that can't be kept."""
MAKING_LIMIT_S = 300
"""Beside a compiler on a slow machine; without the file each Spark of the tests starts 5 s later."""

JOB = """
import sys
from delosmq.spark.session import start_session
spark = start_session("classes", master="local[1]")
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
written = rows.selectExpr("value", "cast(timestamp as string) as at").writeStream.format("parquet")
written = written.option("path", sys.argv[1] + "/out").option("checkpointLocation", sys.argv[1] + "/state")
query = written.trigger(processingTime="0 seconds").start()
while query.lastProgress is None:
    query.awaitTermination(1)
query.stop()
spark.read.parquet(sys.argv[1] + "/out").groupBy("at").count().toPandas()
spark.stop()
"""


def options() -> str:
    """What a Java for Spark is started with in tests: for the variable SPARK_SUBMIT_OPTS."""
    return f"{QUICK} {QUIET} -XX:SharedArchiveFile={CLASSES}" if CLASSES.exists() else QUICK


def make() -> str:
    """Runs a short job on Spark and has its Java write what it has loaded. What became of it, as a sentence."""
    if CLASSES.exists():
        return "Spark's classes are kept already"
    CLASSES.parent.mkdir(exist_ok=True)
    try:
        return _keep()
    except (JavaMissingError, OSError, subprocess.TimeoutExpired) as error:
        return f"Spark starts without its classes kept: {error}"


def _keep() -> str:
    environment = dict(os.environ)
    java = ensure_java(environment)
    base = CLASSES.with_name("java-classes.jsa")
    with tempfile.TemporaryDirectory(dir=CLASSES.parent) as folder:
        kept = Path(folder, CLASSES.name)
        # Beside that of Java's own classes, which a Java made by jlink does not bring.
        dump = [str(java.home / "bin" / "java"), "-Xshare:dump", "-XX:+UseSerialGC", f"-XX:SharedArchiveFile={base}"]
        subprocess.run(dump, capture_output=True, timeout=MAKING_LIMIT_S, check=False)
        environment["SPARK_SUBMIT_OPTS"] = (
            f"{QUICK} {QUIET} -XX:SharedArchiveFile={base} -XX:ArchiveClassesAtExit={kept}"
        )
        job = [sys.executable, "-c", JOB, folder]
        subprocess.run(job, env=environment, capture_output=True, timeout=MAKING_LIMIT_S, check=False)
        if not kept.exists():
            return "Spark starts without its classes kept: its Java wrote none"
        kept.rename(CLASSES)
    return "Spark's classes are kept"


if __name__ == "__main__":
    print(make())
