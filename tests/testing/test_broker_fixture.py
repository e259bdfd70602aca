"""A broker under test that crashes, loses its connections and begins anew."""

from pathlib import Path

import pytest

import delosmq
from delosmq.model.errors import MisuseError
from delosmq.testing import BrokerFixture
from delosmq.testing.synced_files import SyncedFiles
from tests.testing.support import StompPeer

# BROKER-6


def test_what_was_confirmed_survives_a_crash_and_the_rest_does_not(tmp_path: Path) -> None:
    with BrokerFixture(tmp_path) as broker:
        url = broker.stomp_url
        with StompPeer(broker) as peer:
            peer.put("tea", "taken", "persistent:true")
            peer.put("tea", "kept", "persistent:true")
            peer.put("tea", "lost", "persistent:false")
            peer.subscribe("tea", "client-individual")
            peer.answer("ACK", peer.frame())
            broker.crash()
            assert peer.is_closed()
        broker.start()
        assert broker.stomp_url == url
        assert broker.queue("tea").texts == ["kept"]


def test_what_was_never_synced_is_lost_in_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with BrokerFixture(tmp_path) as broker:
        with StompPeer(broker) as peer:
            peer.put("tea", "kept", "persistent:true")
            with monkeypatch.context() as patch:
                # From here on the disk takes what is written, and syncs nothing.
                patch.setattr(SyncedFiles, "fdatasync", lambda files, handle: None)
                patch.setattr(SyncedFiles, "sync_all", lambda files, names: None)
                peer.put("tea", "lost", "persistent:true")
                broker.crash()
        broker.start()
        assert broker.queue("tea").texts == ["kept"]


def test_a_broker_crashes_again_and_again(tmp_path: Path) -> None:
    with BrokerFixture(tmp_path) as broker:
        for number in range(5):
            with StompPeer(broker) as peer:
                peer.put("tea", f"{number}", "persistent:true")
            broker.crash()
            broker.start()
        assert broker.queue("tea").texts == ["0", "1", "2", "3", "4"]


def test_a_broker_in_memory_forgets_everything_in_a_crash() -> None:
    with BrokerFixture() as broker:
        url = broker.openwire_url
        with StompPeer(broker) as peer:
            peer.put("tea", "lost", "persistent:true")
        broker.crash()
        with pytest.raises(MisuseError, match="not running"):
            broker.crash()
        broker.start()
        assert broker.openwire_url == url
        assert not broker.queue("tea").exists


def test_a_crash_leaves_the_directory_to_other_brokers(tmp_path: Path) -> None:
    with BrokerFixture(tmp_path) as broker:
        with StompPeer(broker) as peer:
            peer.put("tea", "kept", "persistent:true")
        broker.crash()
        with delosmq.Broker(tmp_path, http=False) as other, StompPeer(other) as peer:
            peer.subscribe("tea")
            assert peer.text() == "kept"


def test_a_crash_ends_the_http_interface_too() -> None:
    with BrokerFixture(http=True) as broker:
        url = broker.http_url
        broker.crash()
        broker.start()
        assert broker.http_url == url


def test_connections_that_are_cut_give_back_what_they_held() -> None:
    with BrokerFixture() as broker, StompPeer(broker) as peer:
        peer.put("tea", "one pot")
        peer.subscribe("tea", "client-individual")
        peer.frame()
        assert (broker.connection_count, broker.cut_connections()) == (1, 1)
        assert peer.is_closed()
        broker.queue("tea").wait_for(messages=1, delivering=0, consumers=0)
        with StompPeer(broker) as again:
            again.subscribe("tea")
            assert again.text() == "one pot"


def test_a_reset_leaves_nothing_but_the_ports() -> None:
    with BrokerFixture() as broker:
        url = broker.stomp_url
        broker.clock.advance(days=1)
        with StompPeer(broker) as peer:
            peer.put("tea", "one pot")
            broker.reset()
            assert peer.is_closed()
        assert (broker.stomp_url, broker.queue_names) == (url, ["DLQ"])
        assert broker.clock.wall_ms() < delosmq.testing.TurnableClock(broker).wall_ms() + 60_000


def test_arguments_are_those_of_an_embedded_broker() -> None:
    with BrokerFixture(user="app", password="tea") as broker:
        assert (broker.user, broker.password) == ("app", "tea")
    with pytest.raises(delosmq.BrokerError, match="DMQ6025: Broker has no argument 'pasword'; did you mean 'password'"):
        BrokerFixture(pasword="tea")  # type: ignore[call-arg]
