"""The command line, and brokers that it runs, in processes of their own."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

COMMAND = [sys.executable, "-m", "delosmq.cli.main"]
PASSWORD = "a password with spaces"


def call(*arguments: str, text: str = "", **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*COMMAND, *arguments],
        input=text,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **environment},
    )


class Running:
    """A `delosmq run` whose log is read as it comes."""

    def __init__(self, directory: Path, *options: str) -> None:
        self.process = subprocess.Popen([*COMMAND, "run", str(directory), *options], stderr=subprocess.PIPE, text=True)
        self.lines: list[str] = []
        self._said = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._said:
                self.lines.append(line)
                self._said.notify_all()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stderr is not None
        self.process.stderr.close()

    def await_line(self, pattern: str) -> str:
        def found() -> str | None:
            return next((match[1] for line in self.lines if (match := re.search(pattern, line))), None)

        with self._said:
            assert self._said.wait_for(lambda: found() is not None, 60), self.lines
            return found() or ""


@contextmanager
def started(instance: Path, *options: str) -> Iterator[Running]:
    broker = Running(instance, *options)
    try:
        broker.await_line(r"DMQ7010: (broker)")
        yield broker
    finally:
        broker.end()
