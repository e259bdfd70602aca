"""The broker of the main job: an instance directory of its own and a `delosmq run` on it."""

import json
import secrets
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import Any

USER = "demo"
START_TIMEOUT_S = 20.0
STOP_TIMEOUT_S = 20.0
POLL_S = 0.05


class BrokerFailed(Exception):
    """The broker does not run; the text says what it said last."""


@dataclass(frozen=True)
class Address:
    """Where the broker listens and how to log in."""

    host: str
    stomp_port: int
    http_port: int
    user: str
    password: str

    @property
    def http_url(self) -> str:
        """Base of the HTTP API."""
        return f"http://{self.host}:{self.http_port}"

    def get(self, path: str) -> Any:
        """GET of a JSON resource."""
        request = urllib.request.Request(f"{self.http_url}{path}")
        token = b64encode(f"{self.user}:{self.password}".encode()).decode()
        request.add_header("Authorization", f"Basic {token}")
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def queue(self, name: str) -> dict[str, Any]:
        """The counters of one queue."""
        found: dict[str, Any] = self.get(f"/api/v1/queues/{urllib.parse.quote(name, safe='')}")
        return found


class BrokerProcess:
    """`delosmq create` and `delosmq run`, as a user would call them."""

    def __init__(self, directory: Path, config: Path, *, stomp_port: int, http_port: int) -> None:
        self.directory = directory
        self.address = Address("127.0.0.1", stomp_port, http_port, USER, secrets.token_hex(12))
        self.log = directory.parent / "broker.log"
        self._config = config
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Creates the instance and waits until it is ready.

        Raises:
            BrokerFailed: the broker's own sentence.
        """
        command = [sys.executable, "-m", "delosmq.cli.main"]
        create = [*command, "create", str(self.directory), "--user", USER, "--password-stdin"]
        create += ["--stomp-port", str(self.address.stomp_port), "--http-port", str(self.address.http_port)]
        made = subprocess.run(create, input=self.address.password.encode(), capture_output=True, check=False)
        if made.returncode != 0:
            raise BrokerFailed((made.stderr or made.stdout).decode(errors="replace").strip())
        shutil.copyfile(self._config, self.directory / "etc" / "broker.xml")
        run = [*command, "run", str(self.directory), "--define", f"DELOSMQ_STOMP_PORT={self.address.stomp_port}"]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(run, stdout=log, stderr=subprocess.STDOUT)
        self._await_ready(self._process)

    def _await_ready(self, process: "subprocess.Popen[bytes]") -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise BrokerFailed(self.last_words())
            try:
                with urllib.request.urlopen(f"{self.address.http_url}/health/ready", timeout=2):
                    return
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                time.sleep(POLL_S)
        self.stop()
        raise BrokerFailed(f"the broker was not ready after {START_TIMEOUT_S:.0f} s; see {self.log}")

    def last_words(self) -> str:
        """The last line the broker logged."""
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "the broker ended without a word"

    def wait(self) -> None:
        """Until somebody stops the broker."""
        if self._process is not None:
            self._process.wait()

    def stop(self) -> None:
        """SIGTERM, and the broker drains."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
