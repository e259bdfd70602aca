"""The brokers that programs run against, as real processes on free ports."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Final

from benchmarks.brokers.activemq import ActiveMQ, activemq_command
from benchmarks.brokers.base import BrokerUnavailable
from benchmarks.java import tool
from benchmarks.machine import free_port
from interop.java import Missing
from interop.secure import Secure

CONFIGURATIONS: Final = Path(__file__).resolve().parent / "openwire"
_RUN_BROKER: Final = Path(__file__).resolve().parent / "broker" / "RunBroker.java"
_START_TIMEOUT_S: Final = 60.0
_GREETING_TIMEOUT_S: Final = 10.0
_STOP_TIMEOUT_S: Final = 20.0
USER: Final = "interop"
PASSWORD: Final = "interop-passcode"
_CLASSIC_OPTIONS: Final = ("-Xmx1g", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")
_WEB_BIND: Final = re.compile(r"http://[^:\"<]+:\d+")


class BrokerFailed(Exception):
    """The broker does not start; the message says why, in the broker's own words."""


class Broker(ABC):
    """One broker with an empty store. As a context it starts and stops; `kill` and `start` may come between."""

    name: str

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_port()
        self.secure = Secure(free_port(), directory / "broker.p12")
        self._process: subprocess.Popen[bytes] | None = None
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)

    @property
    def url(self) -> str:
        """For the programs."""
        return f"tcp://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """For the programs as well."""
        return self.secure.environment()

    @property
    def log(self) -> Path:
        """What the broker printed."""
        return self.directory / "output.log"

    @abstractmethod
    def prepare(self) -> None:
        """Write the configuration."""

    @abstractmethod
    def command(self) -> list[str]:
        """Runs the broker in the foreground."""

    def __enter__(self) -> Broker:
        self.prepare()
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def start(self) -> None:
        """Returns when the port answers. Raises BrokerFailed."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command(), cwd=self.directory, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        end = time.monotonic() + _START_TIMEOUT_S
        while not _answers(self.port):
            if self._process.poll() is not None or time.monotonic() > end:
                self.stop()
                text = self.log.read_text(errors="replace").strip()[-1500:]
                raise BrokerFailed(f"{self.name} does not start; it said:\n{text or '(nothing)'}")
            time.sleep(0.1)
        if not _greets(self.port):
            self.stop()
            raise BrokerFailed(
                f"{self.name} accepts connections, but does not answer OpenWire's greeting; see {self.log}"
            )

    def kill(self) -> None:
        """As a power cut would, as far as a process can."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()

    def stop(self) -> None:
        """In an orderly way, if it still runs."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1.0).close()
    except OSError:
        return False
    return True


def _greets(port: int) -> bool:
    """Does what listens there answer a WireFormatInfo (version 12, no properties) with one?"""
    kind_and_magic = b"\x01ActiveMQ"
    body = kind_and_magic + struct.pack(">i?ii", 12, True, 4, 0)
    try:
        with socket.create_connection(("127.0.0.1", port), _GREETING_TIMEOUT_S) as wire:
            wire.sendall(struct.pack(">i", len(body)) + body)
            answer = wire.recv(4 + len(kind_and_magic), socket.MSG_WAITALL)
    except OSError:
        return False
    return answer[4:] == kind_and_magic


def write_configuration(broker: Broker) -> None:
    """Of ActiveMQ Classic, whatever its version."""
    broker.secure.make()
    text = broker.secure.fill((CONFIGURATIONS / "activemq.xml").read_text())
    text = text.replace("{port}", str(broker.port)).replace("{directory}", str(broker.directory))
    (broker.directory / "activemq.xml").write_text(text)
    (broker.directory / "tmp").mkdir()


class Classic(Broker):
    """ActiveMQ Classic from Debian's packages."""

    name = "Classic"

    def __init__(self, directory: Path, *, options: tuple[str, ...] = ()) -> None:
        super().__init__(directory)
        self._options = (*_CLASSIC_OPTIONS, *options)

    def prepare(self) -> None:
        try:
            self._driver = ActiveMQ("activemq", group_commit=False)
            self._driver.jvm_options = self._options
            self.version = self._driver.version()
        except BrokerUnavailable as error:
            raise Missing(f"ActiveMQ Classic can't be had: {error}") from error
        write_configuration(self)

    def command(self) -> list[str]:
        return self._driver.command(self.directory)


class NewestClassic(Broker):
    """ActiveMQ Classic of version 6, from Maven Central.

    Args:
        jars: the folder with its libraries.
    """

    name = "Classic 6"

    def __init__(self, directory: Path, jars: Path) -> None:
        super().__init__(directory)
        self._jars = jars

    @staticmethod
    def version_of(jars: Path) -> str:
        return next(jars.glob("activemq-broker-*.jar")).stem.removeprefix("activemq-broker-")

    def prepare(self) -> None:
        try:
            self._java = tool("java")
        except BrokerUnavailable as error:
            raise Missing(f"ActiveMQ Classic {self.version_of(self._jars)} can't be run: {error}") from error
        write_configuration(self)

    def command(self) -> list[str]:
        path = ":".join(str(jar) for jar in sorted(self._jars.glob("*.jar")))
        return activemq_command(self._java, self.directory, self.directory, path, _CLASSIC_OPTIONS, (str(_RUN_BROKER),))


class DelosMQ(Broker):
    """`delosmq run` on an instance directory with an OpenWire acceptor."""

    name = "DelosMQ"

    def prepare(self) -> None:
        instance = self.directory / "instance"
        done = subprocess.run(
            [*_DELOSMQ, "create", str(instance), "--user", USER, "--password-stdin"],
            input=PASSWORD + "\n",
            text=True,
            check=False,
            capture_output=True,
        )
        if done.returncode:
            raise BrokerFailed(f"`delosmq create` fails; it said:\n{done.stderr.strip()}")
        etc = instance / "etc"
        (etc / "broker.xml").write_text(self.configuration())
        bootstrap = etc / "bootstrap.xml"
        bootstrap.write_text(_WEB_BIND.sub(f"http://127.0.0.1:{free_port()}", bootstrap.read_text(), count=1))

    def configuration(self) -> str:
        """Its broker.xml. Raises Missing."""
        self.secure.make()
        text = self.secure.fill((CONFIGURATIONS / "broker.xml").read_text())
        return text.replace("{port}", str(self.port))

    def command(self) -> list[str]:
        return [*_DELOSMQ, "run", str(self.directory / "instance")]


_DELOSMQ: Final = (sys.executable, "-m", "delosmq.cli.main")
