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


def test_a_backup_waits_with_nothing_open_but_its_health(make_pair: MakePair) -> None:
    pair = make_pair()
    pair.start()
    assert asked(pair.backup, "/health/live") == (
        200,
        {"status": "UP", "detail": "", "reasons": [], "role": "backup"},
    )
    status, problem = asked(pair.backup, "/api/v1/queues")
    assert (status, problem["condition"], problem["code"]) == (503, "PASSIVE", "DMQ6032")
    with pytest.raises(ConnectionLostError):
        client(pair.backup)
    pair.backup.stop()
    pair.backup.launch()
    pair.backup.await_waiting()
    assert pair.backup.log.count("DMQ6032") == 1
    assert "DMQ6010" not in pair.backup.log
    assert pair.backup.stop() == 0


def test_a_backup_does_nothing_before_a_primary_was_active(make_pair: MakePair) -> None:
    pair = make_pair()
    pair.backup.launch()
    pair.backup.await_log("no primary was active on the shared store yet")
    pair.primary.start()
    pair.backup.await_log("active is primary on")


def test_a_backup_that_is_not_to_wait_again_ends_when_it_has_made_way(make_pair: MakePair) -> None:
    pair = make_pair(backup="<restart-backup>false</restart-backup>")
    pair.start()
    pair.primary.kill()
    pair.backup.await_ready()
    pair.primary.start()
    assert pair.backup.await_end() == 0


def test_without_failback_a_primary_waits_until_the_backup_ends(make_pair: MakePair) -> None:
    pair = make_pair(backup="<allow-failback>false</allow-failback>")
    pair.start()
    pair.primary.kill()
    pair.backup.await_ready()
    pair.primary.launch()
    pair.primary.await_log("is the primary and waits: active is backup on")
    send(pair.backup, "with the primary waiting")
    pair.backup.kill()
    pair.primary.await_ready()
    assert received(pair.primary) == "with the primary waiting"


def test_a_stopped_process_keeps_its_lock_on_one_host_and_its_backup_waits(make_pair: MakePair) -> None:
    pair = make_pair()
    pair.start()
    pair.primary.pause()
    pair.backup.stop()
    pair.backup.launch()
    pair.backup.await_log("active is primary on")
    pair.primary.resume()
    send(pair.primary, "after the pause")
    assert received(pair.primary) == "after the pause"


def test_a_takeover_names_what_the_other_broker_is_configured_differently_in(make_pair: MakePair) -> None:
    pair = make_pair()
    pair.backup.configure(("<address-settings>", '<address-settings><address-setting match="only.here"/>'))
    pair.start()
    pair.primary.kill()
    pair.backup.await_ready()
    assert "DMQ6035" in pair.backup.log
    assert "in address-settings; make the two alike" in pair.backup.log
