"""A standalone cluster of Spark on this machine: a master and workers from pip's pyspark, each a process of its own.

Workers start executors as processes below them. Everything ends with the program that started it, however that ends:
master and workers have a watchdog, an executor goes when its worker does.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import psutil

from delosmq.spark.machine.home import use_quick_home
from delosmq.spark.machine.java import ensure_java
from delosmq.testing.processes import watchdog
from tests.spark.processes import KINDS, ROOT, kill_one
from tools import spark_classes

HOST: Final = "127.0.0.1"
PATIENCE_S: Final = 120.0
LOOK_EVERY_S: Final = 0.02
MASTER_AT: Final = re.compile(r"Starting Spark master at (spark://\S+)")
REGISTERED: Final = re.compile(r"Successfully registered with master (\S+)")
SETTINGS: Final[Mapping[str, str]] = {
    "spark.driver.host": HOST,
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.cores.max": "2",
    # The number of executors that may be killed is not limited, as these kills are ours.
    "spark.deploy.maxExecutorRetries": "-1",
    # Another port that is not asked for.
    "spark.master.rest.enabled": "false",
}


class Daemon:
    """A master or a worker. `started` is what it prints when it is at work."""

    def __init__(self, name: str, started: re.Pattern[str], directory: Path) -> None:
        self._name, self._started = name, started
        self._log = directory / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe = -1

    def launch(self, class_name: str, *arguments: str) -> None:
        """Start it, without waiting."""
        reading, self._pipe = os.pipe()
        guard = [sys.executable, "-S", "-E", watchdog.__file__, str(reading)]
        spark = [f"{os.environ['SPARK_HOME']}/bin/spark-class", f"org.apache.spark.deploy.{class_name}"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*guard, *spark, "--host", HOST, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[reading],
            )
        os.close(reading)

    def await_started(self) -> str:
        """What `started` found, once it is there.

        Raises:
            RuntimeError: it ended, or says nothing of the kind.
        """
        deadline = time.monotonic() + PATIENCE_S
        while (found := self._started.search(self._log.read_text(errors="replace"))) is None:
            ended = self._process is None or self._process.poll() is not None
            if ended or time.monotonic() > deadline:
                raise RuntimeError(f"{self._name} did not start: {self._log.read_text(errors='replace')[-2000:]}")
            time.sleep(LOOK_EVERY_S)
        return found[1]

    @property
    def below(self) -> list[psutil.Process]:
        """The processes that it has started."""
        try:
            return [] if self._process is None else psutil.Process(self._process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    def kill(self) -> None:
        """kill -9; its executors end by themselves when they notice. May be repeated."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE_S)
            self._process = None
            os.close(self._pipe)


class StandaloneCluster:
    """A master and workers with a core each. Sets the environment of this program, for all that it starts.

    Args:
        directory: of their logs, settings and files.

    Attributes:
        url: what a driver takes as its master, once the cluster was started.
    """

    def __init__(self, directory: Path, workers: int = 2) -> None:
        self.url = ""
        self._directory = directory
        self._master = Daemon("master", MASTER_AT, directory)
        self._workers = [Daemon(f"worker-{number}", REGISTERED, directory) for number in range(workers)]
        self._next = 0

    def start(self) -> None:
        """Returns when all workers have registered."""
        self._prepare()
        self._master.launch("master.Master", "--port", "0", "--webui-port", "0", *self._properties)
        self.url = self._master.await_started()
        for worker in self._workers:
            self._launch(worker)
        for worker in self._workers:
            worker.await_started()

    def kill_worker(self) -> None:
        """Kill the workers in turn; the same one starts again at once, and takes up work when it has registered."""
        worker = self._workers[self._next]
        self._next = (self._next + 1) % len(self._workers)
        worker.kill()
        self._launch(worker)

    def kill_executor(self) -> bool:
        """Kill the executor of one of the workers, in turn; false when there is none."""
        self._next = (self._next + 1) % len(self._workers)
        workers = self._workers[self._next :] + self._workers[: self._next]
        return any(kill_one(worker.below, KINDS["executor"]) for worker in workers)

    def stop(self) -> None:
        """Afterwards nothing of it runs."""
        executors = [process for worker in self._workers for process in worker.below]
        for daemon in (*self._workers, self._master):
            daemon.kill()
        for process in executors:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        psutil.wait_procs(executors, timeout=PATIENCE_S)

    @property
    def _properties(self) -> tuple[str, str]:
        return "--properties-file", str(self._directory / "spark-defaults.conf")

    def _launch(self, worker: Daemon) -> None:
        work = ["--cores", "1", "--memory", "600m", "--work-dir", str(self._directory / "work")]
        worker.launch("worker.Worker", "--port", "0", "--webui-port", "0", *work, *self._properties, self.url)

    def _prepare(self) -> None:
        """Settings of Spark come from SPARK_CONF_DIR, as they do on any cluster."""
        java = spark_classes.options()
        settings = {
            **SETTINGS,
            "spark.local.dir": str(self._directory / "local"),
            "spark.executor.extraJavaOptions": java,
        }
        lines = [f"{name} {value}\n" for name, value in settings.items()]
        (self._directory / "spark-defaults.conf").write_text("".join(lines), "utf-8")
        ensure_java()
        use_quick_home(os.environ)
        paths = [str(ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
        os.environ.update(
            SPARK_CONF_DIR=str(self._directory),
            SPARK_LOCAL_IP=HOST,
            SPARK_DAEMON_MEMORY="256m",
            SPARK_DAEMON_JAVA_OPTS=java,
            PYSPARK_PYTHON=sys.executable,
            PYTHONPATH=os.pathsep.join(dict.fromkeys(os.path.abspath(path) for path in paths)),
        )
        os.environ.setdefault("SPARK_SUBMIT_OPTS", java)
