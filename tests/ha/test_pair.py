"""A primary and its backup on one directory: who is active after a kill, a stop, a return."""

# HA-1

import http.client
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from delosmq.client import ConnectionLostError
from delosmq.testing import BrokerProcess
from tests.ha.pair_contract import MakePair, PairContract, client, pairs_in, received, send


@pytest.fixture
def make_pair(tmp_path: Path) -> Iterator[MakePair]:
    with pairs_in(tmp_path) as make:
        yield make


class TestOnADirectory(PairContract):
    """HA-1."""


def asked(broker: BrokerProcess, path: str) -> tuple[int, dict[str, object]]:
    connection = http.client.HTTPConnection("127.0.0.1", broker.http_port, timeout=30)
    connection.request("GET", path)
    answer = connection.getresponse()
    said = json.loads(answer.read())
    connection.close()
    return answer.status, said


def test_a_backup_that_is_not_to_wait_again_ends_when_it_has_made_way(make_pair: MakePair) -> None:
    pair = make_pair(backup="<restart-backup>false</restart-backup>")
    pair.start()
    pair.primary.kill()
    pair.backup.await_ready()
    pair.primary.start()
    assert pair.backup.await_end() == 0


def test_a_backup_waits_for_a_primary_with_nothing_open_but_its_health(make_pair: MakePair) -> None:
    pair = make_pair()
    pair.backup.launch()
    pair.backup.await_log("no primary was active on the shared store yet")
    pair.primary.start()
    pair.backup.await_log("active is primary on")
    assert asked(pair.backup, "/health/live") == (
        200,
        {"status": "UP", "detail": "", "reasons": [], "role": "backup"},
    )
    status, problem = asked(pair.backup, "/api/v1/queues")
    assert (status, problem["condition"], problem["code"]) == (503, "PASSIVE", "DMQ6032")
    with pytest.raises(ConnectionLostError):
        client(pair.backup)
    # A stopped process keeps its lock on one host.
    pair.primary.pause()
    pair.backup.stop()
    pair.backup.launch()
    pair.backup.await_log("active is primary on")
    pair.backup.await_waiting()
    pair.primary.resume()
    send(pair.primary, "after the pause")
    assert received(pair.primary) == "after the pause"
    assert pair.backup.log.count("DMQ6032") == 1
    assert "DMQ6010" not in pair.backup.log
    assert pair.backup.stop() == 0


def test_without_failback_a_primary_waits_and_a_takeover_names_what_is_configured_differently(
    make_pair: MakePair,
) -> None:
    pair = make_pair(backup="<allow-failback>false</allow-failback>")
    pair.backup.configure(("<address-settings>", '<address-settings><address-setting match="only.here"/>'))
    pair.start()
    pair.primary.kill()
    pair.backup.await_ready()
    assert "DMQ6035" in pair.backup.log
    assert "in address-settings; make the two alike" in pair.backup.log
    pair.primary.launch()
    pair.primary.await_log("is the primary and waits: active is backup on")
    send(pair.backup, "with the primary waiting")
    pair.backup.kill()
    pair.primary.await_ready()
    assert received(pair.primary) == "with the primary waiting"
