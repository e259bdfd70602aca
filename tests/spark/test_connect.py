"""Spark Connect: a client that has no Spark of its own reads and writes queues by a server that has."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from benchmarks.machine import free_port
from tests.spark.brokers import RealBroker
from tests.spark.processes import PATIENCE_S

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]
CHILD = str(Path(__file__).with_name("connect_child.py"))


@pytest.fixture
def broker() -> Iterator[RealBroker]:
    broker = RealBroker()
    yield broker
    broker.stop()


@pytest.fixture
def errors(tmp_path: Path) -> Iterator[IO[bytes]]:
    with open(tmp_path / "errors", "wb") as errors:
        yield errors


@pytest.fixture
def port(tmp_path: Path, errors: IO[bytes]) -> Iterator[int]:
    """Of a server of Spark Connect."""
    port = free_port()
    command = [sys.executable, CHILD, "server", json.dumps({"port": port, "scratch": str(tmp_path / "scratch")})]
    server = subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
    assert server.stdin is not None
    assert server.stdout is not None
    assert server.stdout.readline() == b"up\n", (tmp_path / "errors").read_text()
    yield port
    server.communicate(timeout=PATIENCE_S)
    assert server.returncode == 0


def test_a_remote_session_reads_a_queue_and_streams_it_to_another(
    broker: RealBroker, port: int, errors: IO[bytes], tmp_path: Path
) -> None:  # PIPE-1
    broker.publish("in", [b"%d" % number for number in range(250)])
    broker.make_queue("out")
    options = {"servers": broker.servers, "user": broker.user, "password": broker.password}
    settings = {"port": port, "options": options, "checkpoint": str(tmp_path / "checkpoint")}
    command = [sys.executable, CHILD, "client", json.dumps(settings)]
    client = subprocess.run(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=errors, timeout=PATIENCE_S, check=False
    )
    assert client.returncode == 0, (tmp_path / "errors").read_text()
    found = json.loads(client.stdout)
    assert found["session"].startswith("pyspark.sql.connect")
    assert sorted(map(int, found["read"])) == list(range(250))
    assert sorted(map(int, found["written"])) == list(range(250))
