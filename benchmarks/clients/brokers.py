"""The brokers that all clients talk to, in memory, and what is needed to run each client."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.brokers.base import CHECKOUT, BrokerUnavailable
from benchmarks.java import compiled, tool
from benchmarks.machine import free_port, pinned

CACHE: Final = CHECKOUT / "benchmarks" / ".cache" / "clients"
VERSION: Final = "6.1.8"
"""Of ActiveMQ Classic, broker and Java client."""
PROTON: Final = "python-qpid-proton==0.40.0"
USER: Final = "bench"
PASSWORD: Final = "bench-passcode"
_TIMEOUT_S: Final = 300.0
_JVM: Final = ("-Xmx1g", "-XX:+UseSerialGC")
_MODULES: Final = ("activemq-broker", "activemq-client", "activemq-stomp", "activemq-amqp")
_POM: Final = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>benchmarks</groupId>
  <artifactId>clients</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>{dependencies}</dependencies>
</project>
"""
_DEPENDENCY: Final = (
    "<dependency><groupId>org.apache.activemq</groupId><artifactId>{module}</artifactId>"
    f"<version>{VERSION}</version></dependency>"
)
_DELOSMQ: Final = """\
import sys, threading
import delosmq
ports = dict(openwire_port=int(sys.argv[1]), stomp_port=int(sys.argv[2]))
with delosmq.Broker(user=sys.argv[4], password=sys.argv[5], http=False, **ports):
    print("started", flush=True)
    threading.Event().wait()
"""


def python_of(form: str) -> Path:
    """The interpreter with DelosMQ, pure or compiled."""
    return CHECKOUT / (".venv" if form == "pure" else ".venv-compiled") / "bin" / "python"


def classic_jars() -> list[Path]:
    """ActiveMQ Classic and the Java client from Maven Central.

    Raises:
        BrokerUnavailable: no Maven, or it gets nothing.
    """
    folder = CACHE / f"classic-{VERSION}"
    if not any(folder.glob("activemq-amqp-*.jar")):
        maven = shutil.which("mvn")
        if maven is None:
            raise BrokerUnavailable("ActiveMQ Classic can't be fetched: there is no mvn.")
        folder.mkdir(parents=True, exist_ok=True)
        dependencies = "".join(_DEPENDENCY.format(module=module) for module in _MODULES)
        (folder / "pom.xml").write_text(_POM.format(dependencies=dependencies))
        _fetch([maven, "-B", "-q", "dependency:copy-dependencies", f"-DoutputDirectory={folder}"], folder)
    return sorted(folder.glob("*.jar"))


def proton_python() -> Path:
    """An interpreter with python-qpid-proton.

    Raises:
        BrokerUnavailable: it can't be installed here.
    """
    folder = CACHE / "proton"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        _fetch([sys.executable, "-m", "venv", str(folder)], CACHE)
        _fetch([str(python), "-m", "pip", "install", "-q", PROTON], CACHE)
        (folder / "complete").touch()
    return python


def _fetch(command: list[str], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S, stdin=subprocess.DEVNULL
    )
    if done.returncode:
        raise BrokerUnavailable(f"`{' '.join(command[:6])}` fails: {(done.stdout + done.stderr).strip()[-300:]}")


def java(main: str, *words: str) -> list[str]:
    """The command that runs a program of `java`. Raises BrokerUnavailable."""
    jars = classic_jars()
    classes = compiled(Path(__file__).parent / "java", jars, CACHE / "classes")
    return [tool("java"), *_JVM, "-cp", ":".join(str(path) for path in (classes, *jars)), main, *words]


@dataclass(frozen=True)
class BenchBroker:
    """
    Attributes:
        urls: by protocol.
    """

    name: str
    urls: dict[str, str]


PROTOCOLS: Final = {"classic": ("openwire", "stomp", "amqp"), "delosmq": ("openwire", "stomp")}


@contextmanager
def running(name: str, core: int | None) -> Iterator[BenchBroker]:
    """`classic`, or `delosmq` in its compiled form. Raises BrokerUnavailable."""
    ports = [str(free_port()) for _ in range(3)]
    command = (
        java("PlainBroker", *ports)
        if name == "classic"
        else [str(python_of("compiled")), "-c", _DELOSMQ, *ports, USER, PASSWORD]
    )
    with pinned(core):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        if process.stdout.readline().strip() != "started":
            raise BrokerUnavailable(f"{name} does not start")
        protocols = PROTOCOLS[name]
        yield BenchBroker(name, {one: f"tcp://127.0.0.1:{port}" for one, port in zip(protocols, ports, strict=False)})
    finally:
        process.kill()
        process.communicate()
