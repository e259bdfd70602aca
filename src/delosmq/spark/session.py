"""A Spark session for the pipelines, on this machine unless told otherwise."""

import os
import sys
from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING

from delosmq.spark.machine.home import use_quick_home
from delosmq.spark.machine.java import ensure_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = "local[2,4]"
"""Two tasks at a time, each tried up to four times, as a cluster would."""

SETTINGS: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    # Day partitions are written by many batches; a replayed batch must replace only its own.
    "spark.sql.sources.partitionOverwriteMode": "dynamic",
    # Timestamps in Parquet as other readers expect them.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}


def choose_python(environment: MutableMapping[str, str], master: str) -> None:
    """Say in `environment` which interpreter Spark's Python processes run: this one, unless a cluster has its own.

    Spark runs data sources with the driver's, also on executors (``PythonUtils.defaultPythonExec`` of Spark 4.3): both
    are the same, unless both are set.
    """
    if master.startswith("local"):
        environment["PYSPARK_PYTHON"] = environment["PYSPARK_DRIVER_PYTHON"] = sys.executable
    else:
        python = environment.setdefault("PYSPARK_PYTHON", sys.executable)
        environment.setdefault("PYSPARK_DRIVER_PYTHON", python)


def start_session(
    name: str, *, master: str = LOCAL, settings: Mapping[str, str] | None = None, log_level: str = "ERROR"
) -> "SparkSession":
    """A session named `name` on `master`, with `settings` on top of ours.

    Finds Java first, and makes Spark's Python processes run the interpreter of this one (queries hang without), or on a
    cluster the one that PYSPARK_PYTHON names. A local master gets a SPARK_HOME from which these processes start sooner,
    unless one is set; see `machine.home`.

    Raises:
        JavaMissingError: there is no Java that Spark can run on.
    """
    ensure_java()
    choose_python(os.environ, master)
    if master.startswith("local"):
        # Otherwise Spark looks up the host's name, which on many machines leads to an address that is not reachable.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        # Only here: the processes of a cluster have a home of their own.
        use_quick_home(os.environ)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name).master(master)
    for key, value in {**SETTINGS, **(settings or {})}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel(log_level)
    return session
