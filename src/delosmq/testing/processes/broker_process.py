"""A broker as a process, ``delosmq run``, which a test can kill, pause and start again."""

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from delosmq.config.instance import create_instance
from delosmq.model.settings import WebBind
from delosmq.testing.processes import watchdog
from delosmq.testing.processes.free_port import free_port

PATIENCE_S: Final = 60.0
"""For a broker to start, end or do what is waited for."""
USER: Final = "admin"
PASSWORD: Final = "admin"
_LOOK_EVERY_S: Final = 0.01
_HOST: Final = "127.0.0.1"
_COMMAND: Final = (sys.executable, "-m", "delosmq.cli.main")


@dataclass(frozen=True)
class BrokerHealth:
    """What a broker says at ``/health/ready``.

    Attributes:
        ready: it is active and takes work.
        role: primary, backup or primary-only, as its ha-policy says.
        detail: why it is not ready.
    """

    ready: bool
    role: str
    detail: str


class BrokerProcess:
    """An instance directory and, while it runs, its process. Processes end with the block, and with the test at the
    latest, even one that is killed.

    Args:
        directory: of the instance; made when it is missing.
        changes: pieces of broker.xml, as `delosmq create` writes it, and what to put in their place; each is there.
        password: of the user ``admin``.
        command: what is called with ``run DIRECTORY``; by default this Python's DelosMQ.

    Attributes:
        stomp_port, openwire_port, http_port: on 127.0.0.1, the same at every start.
    """

    def __init__(
        self,
        directory: Path,
        changes: Sequence[tuple[str, str]] = (),
        *,
        password: str = PASSWORD,
        command: Sequence[str] = _COMMAND,
    ) -> None:
        self.directory = directory
        self.stomp_port = free_port()
        self.http_port = free_port()
        self.openwire_port = free_port()
        self._command = list(command)
        self._process: subprocess.Popen[str] | None = None
        self._pipe = -1
        self._lines: list[str] = []
        self._changed = threading.Condition()
        self._reader: threading.Thread | None = None
        if not directory.exists():
            self._create(password)
        self.configure(*changes)

    def _create(self, password: str) -> None:
        create_instance(
            self.directory,
            user=USER,
            password=password,
            stomp_port=self.stomp_port,
            openwire_port=self.openwire_port,
            web=WebBind(port=self.http_port),
        )

    def configure(self, *changes: tuple[str, str]) -> None:
        """Changes broker.xml, for the next start.

        Raises:
            ValueError: a piece to be replaced is not in the file.
        """
        path = self.directory / "etc" / "broker.xml"
        text = path.read_text("utf-8")
        for old, new in changes:
            if old not in text:
                raise ValueError(f"{path} has no {old!r}")
            text = text.replace(old, new, 1)
        path.write_text(text, "utf-8")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    # -- life ----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Returns when the broker is ready.

        Raises:
            TimeoutError: it does not get ready.
            RuntimeError: it ended.
        """
        self.launch()
        self.await_ready()

    def launch(self) -> None:
        """Starts the process and does not wait for anything."""
        if self.is_running:
            raise RuntimeError(f"the broker of {self.directory} runs already")
        reading, self._pipe = os.pipe()
        guard = [sys.executable, "-S", "-E", watchdog.__file__, str(reading)]
        with self._changed:
            self._lines = []
        self._process = subprocess.Popen(
            [*guard, *self._command, "run", str(self.directory)],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            pass_fds=[reading],
        )
        os.close(reading)
        self._reader = threading.Thread(target=self._read, args=(self._process,), name="broker-log", daemon=True)
        self._reader.start()

    def kill(self) -> None:
        """kill -9. Raises RuntimeError: the broker ended before."""
        process = self._running()
        if process.poll() is not None:
            raise RuntimeError(f"the broker of {self.directory} ended by itself: {self.log}")
        process.kill()
        self._reap(process)

    def pause(self) -> None:
        """SIGSTOP: once this returns the process does nothing, and its connections stay."""
        pid = self._running().pid
        os.kill(pid, signal.SIGSTOP)
        os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        """SIGCONT."""
        os.kill(self._running().pid, signal.SIGCONT)

    def stop(self) -> int:
        """SIGTERM; gives the exit code."""
        process = self._running()
        process.terminate()
        return self._reap(process)

    def await_end(self) -> int:
        """Waits until the broker ends by itself; gives the exit code."""
        return self._reap(self._running())

    def end(self) -> None:
        """Whatever state it is in: afterwards there is no process. May be repeated."""
        process = self._process
        if process is not None:
            if process.poll() is None:
                process.kill()
            self._reap(process)

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Of the process that runs or ran last."""
        return self._running().pid

    def _running(self) -> "subprocess.Popen[str]":
        if self._process is None:
            raise RuntimeError(f"the broker of {self.directory} was not started")
        return self._process

    def _reap(self, process: "subprocess.Popen[str]") -> int:
        code = process.wait(PATIENCE_S)
        if self._reader is not None:
            self._reader.join(PATIENCE_S)
        if process.stderr is not None:
            process.stderr.close()
        if self._pipe != -1:
            os.close(self._pipe)
            self._pipe = -1
        return code

    # -- what it says --------------------------------------------------------------------------------------------

    def _read(self, process: "subprocess.Popen[str]") -> None:
        assert process.stderr is not None
        for line in process.stderr:
            with self._changed:
                self._lines.append(line)
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    @property
    def log(self) -> str:
        """What the process has written since it was started last."""
        with self._changed:
            return "".join(self._lines)

    def await_log(self, piece: str) -> None:
        """Waits until the log has ``piece``. Raises as `wait_for` does."""
        self.wait_for(lambda: piece in self.log, f"{piece!r} in its log")

    def health(self) -> BrokerHealth | None:
        """None when HTTP does not answer."""
        connection = http.client.HTTPConnection(_HOST, self.http_port, timeout=PATIENCE_S)
        with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
            connection.request("GET", "/health/ready")
            answer = connection.getresponse()
            said = json.loads(answer.read())
            return BrokerHealth(answer.status == 200, said["role"], said["detail"])
        return None

    def await_ready(self) -> None:
        """Waits until the broker is active and takes work. Raises as `wait_for` does."""
        self.wait_for(lambda: (health := self.health()) is not None and health.ready, "that it is ready")

    def await_waiting(self) -> None:
        """Waits until the broker says that it waits for its turn. Raises as `wait_for` does."""
        self.wait_for(lambda: (health := self.health()) is not None and "DMQ6032" in health.detail, "that it waits")

    def wait_for(self, what: Callable[[], bool], sentence: str = "what was waited for") -> None:
        """Asks again and again until ``what()`` is true.

        Raises:
            TimeoutError: it did not come about.
            RuntimeError: the broker ended.
        """
        process = self._running()
        deadline = time.monotonic() + PATIENCE_S
        while not what():
            if process.poll() is not None:
                raise RuntimeError(f"the broker of {self.directory} ended before {sentence}: {self.log}")
            if time.monotonic() > deadline:
                raise TimeoutError(f"{PATIENCE_S:g} s, and no {sentence} of the broker of {self.directory}: {self.log}")
            with self._changed:
                self._changed.wait(_LOOK_EVERY_S)
