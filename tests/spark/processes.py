"""Processes that tests of Spark start and kill: a driver with all that it starts, and a broker that comes back.

A driver is a program of tests/spark that gets its settings as JSON in its argument; see archive_child.py.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import psutil

from delosmq.testing.processes.broker_process import PASSWORD, USER, BrokerProcess
from tests.spark.brokers import StompBroker

ROOT: Final = Path(__file__).parents[2]
PATIENCE_S: Final = 600
ONE_PROCESS: Final = "local[2]"
"""The driver is executor too: for moments at which everything dies together. Starts three times as fast."""
DRIVER_PYTHON: Final = "driver-python"
KINDS: Final = {
    DRIVER_PYTHON: "",
    "driver-jvm": "org.apache.spark.deploy.SparkSubmit",
    "source": "python_streaming_source_runner",
    "executor": "CoarseGrainedExecutorBackend",
}
"""Kind of process below a driver -> what its command line has; the driver's Python is the one that was started."""


def start_child_session(name: str, settings: Mapping[str, Any]) -> Any:
    """The session of a driver that is to be killed. `settings` are those that it was started with."""
    from delosmq.spark.session import start_session

    return start_session(
        name,
        master=settings["master"],
        settings={
            "spark.executor.memory": "512m",
            "spark.driver.memory": "512m",
            "spark.local.dir": settings["scratch"],
            "spark.worker.cleanup.enabled": "false",
        },
    )


class ProcessTree:
    """A command and all processes below it. What it prints goes to the file `output` in `directory`.

    Args:
        cwd: where it runs; its environment is ours.
    """

    def __init__(self, command: Sequence[str], directory: Path, cwd: Path) -> None:
        # Absolute, because the command runs elsewhere.
        paths = [os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
        self._output = open(directory / "output", "ab")  # noqa: SIM115 - closed in finish
        self._process = subprocess.Popen(
            command,
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([*paths, str(ROOT)])},
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._output,
        )
        self._seen: set[psutil.Process] = set()

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def kill(self, kind: str) -> bool:
        """Kill one process of that kind; false when there is none (yet, or any more)."""
        self._look()
        if not KINDS[kind]:
            self._process.kill()
            return True
        return kill_one(self._seen, KINDS[kind])

    def kill_all(self) -> None:
        """As if the driver's machine lost its power."""
        self._look()
        self._process.kill()
        _kill(list(self._seen))

    def finish(self) -> int:
        """Wait for the driver, then end what it left behind; returns its exit code."""
        code = self._process.wait(timeout=PATIENCE_S)
        _kill(list(self._seen))
        deadline = time.monotonic() + 60
        while any(_runs(process) for process in self._seen):
            assert time.monotonic() < deadline, "a killed process does not end"
            time.sleep(0.02)
        self._output.close()
        return code

    def _look(self) -> None:
        try:
            self._seen.update(psutil.Process(self._process.pid).children(recursive=True))
        except psutil.NoSuchProcess:
            return


class DriverProcess(ProcessTree):
    """A run of a program of tests/spark and of all processes below it.

    Args:
        program: its file's name.
        directory: what Spark needs for itself goes to `scratch` there.
        settings: what the program gets, with `master` and `scratch` added.
    """

    def __init__(self, program: str, directory: Path, master: str, settings: Mapping[str, Any]) -> None:
        scratch = directory / "scratch"
        scratch.mkdir(exist_ok=True)
        given = {**settings, "master": master, "scratch": str(scratch)}
        command = [sys.executable, str(ROOT / "tests" / "spark" / program), json.dumps(given)]
        super().__init__(command, directory, scratch)


class KillableBroker(StompBroker):
    """A broker in a process of its own, on a journal that stays: `process` kills, pauses and starts it again."""

    def __init__(self, directory: Path) -> None:
        self.process = BrokerProcess(directory)
        self.process.start()
        super().__init__(f"http://127.0.0.1:{self.process.http_port}", self.process.stomp_port, USER, PASSWORD)

    def restart(self) -> None:
        """kill -9, and a start on the same journal."""
        self.process.kill()
        self.process.start()

    def stop(self) -> None:
        self.process.end()


def kill_one(processes: Iterable[psutil.Process], wanted: str) -> bool:
    """Kill the first with `wanted` in its command line; false when there is none."""
    for process in processes:
        try:
            if any(wanted in argument for argument in process.cmdline()):
                process.kill()
                return True
        except psutil.NoSuchProcess:
            continue
    return False


def _kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue


def _runs(process: psutil.Process) -> bool:
    """False also for the zombies of orphans, which are never collected."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
