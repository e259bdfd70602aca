"""A broker that was paused, lost its lock meanwhile and wakes: it confirms nothing, and ends."""

# HA-1

import sys
from pathlib import Path

import pytest

from delosmq.client import ClientError, connect
from delosmq.testing import BrokerPair
from tests.ha.network_lock import take_lock_away

COMMAND = (sys.executable, "-m", "tests.ha.network_lock")


def test_a_broker_that_wakes_after_its_successor_began_confirms_nothing(tmp_path: Path) -> None:
    with BrokerPair(tmp_path, backup="<allow-failback>false</allow-failback>", command=COMMAND) as pair:
        pair.start()
        url = f"tcp://127.0.0.1:{pair.primary.openwire_port}?jms.sendTimeout=30000"
        with connect(url, user="admin", password="admin") as stale:
            stale.send("orders", "before the pause")
            pair.primary.pause()
            take_lock_away(pair.shared)
            pair.backup.await_ready()
            pair.primary.resume()
            with pytest.raises(ClientError):
                stale.send("orders", "to the broker that woke")
        assert pair.primary.await_end() == 1
        assert "another broker" in pair.primary.log
        new = f"tcp://127.0.0.1:{pair.backup.openwire_port}"
        with connect(new, user="admin", password="admin") as connection:
            connection.send("orders", "to the successor")
            found = [message.text for message in connection.messages("orders", timeout_s=1)]
        assert found == ["before the pause", "to the successor"]
        pair.primary.launch()
        pair.primary.await_waiting()
