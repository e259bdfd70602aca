"""Kafka from Maven Central: one process that is broker and controller."""

from __future__ import annotations

import socket
import subprocess
import time
from pathlib import Path
from typing import Final

from benchmarks.brokers.base import CACHE, BrokerUnavailable, Driver, RunningBroker
from benchmarks.java import tool
from benchmarks.machine import free_port
from interop.maven import KAFKA, fetched
from interop.missing import Missing

VERSION: Final = "4.3.1"
_JVM: Final = ("-Xms1g", "-Xmx1g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-Djava.awt.headless=true")
"""As its own start script has them."""
_CLUSTER: Final = "MkU3OEVBNTcwNTJENDM2Qk"
"""Any 16 bytes in base64."""
_START_TIMEOUT_S: Final = 60.0
# Beside places and ports only what one broker alone needs: copies of its own topics default to three.
_PROPERTIES: Final = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={directory}/log
num.partitions={partitions}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""


class Kafka(Driver):
    """`partitions` of each topic, which is made when it is first named."""

    name = "kafka"
    needs_warm_up = True

    def __init__(self, partitions: int = 2) -> None:
        self._partitions = partitions

    def version(self) -> str:
        try:
            self._jars = fetched(VERSION, CACHE, KAFKA)
        except Missing as error:
            raise BrokerUnavailable(f"kafka: {error}") from error
        self._java = tool("java")
        return VERSION

    def prepare(self, directory: Path, port: int) -> None:
        text = _PROPERTIES.format(port=port, controller=free_port(), directory=directory, partitions=self._partitions)
        (directory / "server.properties").write_text(text)
        done = subprocess.run(
            self._run("kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(directory / "server.properties")),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise BrokerUnavailable(f"kafka: its directory can't be made: {(done.stdout + done.stderr).strip()[-300:]}")

    def command(self, directory: Path) -> list[str]:
        return self._run("kafka.Kafka", str(directory / "server.properties"))

    def _run(self, main: str, *words: str) -> list[str]:
        return [self._java, *_JVM, "-cp", f"{self._jars}/*", main, *words]

    def subscribe_headers(self) -> dict[str, str]:
        return {}

    def settings(self) -> str:
        return f"one process, {self._partitions} partitions, options of its start script for the JVM (1 GB heap)"


def await_listening(broker: RunningBroker) -> None:
    """Raises BrokerUnavailable: it ended, or does not listen."""
    deadline = time.monotonic() + _START_TIMEOUT_S
    while time.monotonic() < deadline:
        broker.check_alive()
        try:
            socket.create_connection(("127.0.0.1", broker.port)).close()
        except ConnectionRefusedError:
            time.sleep(0.05)
        else:
            return
    raise BrokerUnavailable(f"{broker.driver.name} does not listen within {_START_TIMEOUT_S:.0f} s")
