"""What Spark's start costs with and without its archive of Python code: `python -m benchmarks.spark_start`.

CPU seconds of what one of Spark's Python processes imports, from ``SPARK_HOME/python/lib/pyspark.zip`` and from the
installed package, in turn. With ``--sessions 3`` also whole sessions in processes of their own, in turn: seconds until
the session is there, of its first query and of its second, each through a Python data source; medians.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path

import pyspark

SPARK = Path(pyspark.__file__).parent
IMPORTS = "import pyspark.worker, pyspark.sql.worker.plan_data_source_read"
SESSION = """
import json, sys, time
started = time.monotonic()
from delosmq.spark.session import start_session
spark = start_session("start")
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
class Reader(DataSourceReader):
    def partitions(self):
        return [InputPartition(0), InputPartition(1)]
    def read(self, partition):
        yield (1,)
class Source(DataSource):
    @classmethod
    def name(cls):
        return "two_rows"
    def schema(self):
        return "number long"
    def reader(self, schema):
        return Reader()
spark.dataSource.register(Source)
times = [time.monotonic()]
for _ in range(2):
    assert len(spark.read.format("two_rows").load().collect()) == 2
    times.append(time.monotonic())
spark.stop()
print(json.dumps([times[0] - started, times[1] - times[0], times[2] - times[1]]))
"""


def import_cpu_s(path: str) -> float:
    """CPU time of a process that imports what Spark's processes do."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", IMPORTS], env={**os.environ, "PYTHONPATH": path}, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def session_s(home: str | None) -> list[float]:
    """Seconds of a session: start, first query, second query."""
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
    if home is not None:
        environment["SPARK_HOME"] = home
    command = [sys.executable, "-c", SESSION]
    answer = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True
    )
    found: list[float] = json.loads(answer.stdout.splitlines()[-1])
    return found


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark_start", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sessions", type=int, default=0)
    arguments = parser.parse_args(argv)
    library = SPARK / "python" / "lib"
    archives = os.pathsep.join(str(path) for path in (library / "pyspark.zip", *library.glob("py4j-*-src.zip")))
    import_cpu_s("")  # writes the bytecode that a first import leaves behind
    pairs = [(import_cpu_s(archives), import_cpu_s("")) for _ in range(arguments.rounds)]
    with_archive, without = (statistics.median(each) for each in zip(*pairs, strict=True))
    print(f"imports of a process, CPU s: archive {with_archive:.2f}, installed {without:.2f}")
    if arguments.sessions:
        sessions = [(session_s(str(SPARK)), session_s(None)) for _ in range(arguments.sessions)]
        for at, label in enumerate(("session", "first query", "second query")):
            old, new = (statistics.median(each[at] for each in way) for way in zip(*sessions, strict=True))
            print(f"{label}, s: archive {old:.1f}, installed {new:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
