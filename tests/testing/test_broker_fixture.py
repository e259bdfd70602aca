"""A broker under test that crashes, loses its connections and begins anew."""

from pathlib import Path

import pytest

import delosmq
from delosmq.model.errors import MisuseError, StorageError
from delosmq.testing import BrokerFixture
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


def test_a_traceback_shows_which_broker_it_is() -> None:
    with BrokerFixture(name="tea") as broker:
        assert repr(broker) == "<BrokerFixture 'tea', running>"
    assert repr(broker) == "<BrokerFixture 'tea', stopped>"


def test_arguments_are_those_of_an_embedded_broker() -> None:
    with BrokerFixture(user="app", password="tea") as broker:
        assert (broker.user, broker.password) == ("app", "tea")
    with pytest.raises(delosmq.BrokerError, match="DMQ6025: Broker has no argument 'pasword'; did you mean 'password'"):
        BrokerFixture(pasword="tea")  # type: ignore[call-arg]


def test_while_it_refuses_connections_those_that_are_there_go_on() -> None:
    with BrokerFixture() as broker, StompPeer(broker) as peer:
        with broker.refusing_connections():
            with pytest.raises(ConnectionRefusedError):
                StompPeer(broker)
            peer.put("tea", "one pot")
        with StompPeer(broker) as other:
            other.put("tea", "two pots")
        assert broker.queue("tea").texts == ["one pot", "two pots"]


def test_a_broker_that_is_stopped_meanwhile_is_neither_slow_nor_refusing_afterwards() -> None:
    with BrokerFixture() as broker:
        with broker.refusing_connections(), broker.slow(turn_s=0.01):
            broker.crash()
        broker.start()
        with broker.refusing_connections(), broker.slow(turn_s=0.01):
            broker.restart()
            with StompPeer(broker) as peer:
                peer.put("tea", "one pot")
        assert broker.watchers == []


def test_a_silent_broker_answers_nothing_until_it_goes_on() -> None:
    with BrokerFixture() as broker, StompPeer(broker) as peer:
        with broker.silent():
            peer.send("SEND", "destination:/queue/tea", "receipt:late", body="one pot")
            with pytest.raises(TimeoutError):
                peer.frame(timeout_s=0.05)
            with pytest.raises(MisuseError, match="DMQ7206"):
                broker.queue("tea").assert_has(messages=0)
        assert peer.frame().command == "RECEIPT"
        broker.queue("tea").assert_has(messages=1)


def test_a_slow_broker_serves_all_the_same() -> None:
    with BrokerFixture() as broker, StompPeer(broker) as peer:
        with broker.slow(turn_s=0.01):
            peer.put("tea", "one pot")
        assert broker.queue("tea").texts == ["one pot"]
        assert broker.watchers == []


def test_a_disk_that_stalls_lets_nothing_durable_be_confirmed(tmp_path: Path) -> None:
    with BrokerFixture(tmp_path) as broker, StompPeer(broker) as peer, StompPeer(broker) as other:
        with broker.disk.stalled():
            peer.send("SEND", "destination:/queue/tea", "receipt:late", "persistent:true", body="one pot")
            broker.queue("tea").wait_for(messages=1)
            other.put("tea", "not durable")
            with pytest.raises(BlockingIOError):
                peer.frame(timeout_s=0)
            assert broker.disk.unsynced_bytes > 0
        assert peer.frame().command == "RECEIPT"


def test_what_a_stalled_disk_did_not_sync_is_lost_in_a_crash(tmp_path: Path) -> None:
    with BrokerFixture(tmp_path) as broker, StompPeer(broker) as peer:
        peer.put("tea", "kept", "persistent:true")
        with broker.disk.stalled():
            peer.send("SEND", "destination:/queue/tea", "persistent:true", body="lost")
            broker.queue("tea").wait_for(messages=2)
            broker.crash()
        broker.start()
        assert broker.queue("tea").texts == ["kept"]


def test_a_disk_that_fails_stops_the_broker_which_starts_again(tmp_path: Path) -> None:
    with BrokerFixture(tmp_path) as broker:
        with StompPeer(broker) as peer:
            peer.put("tea", "kept", "persistent:true")
            broker.disk.fail()
            peer.send("SEND", "destination:/queue/tea", "receipt:never", "persistent:true", body="lost")
            assert peer.is_closed()
        with pytest.raises(StorageError, match="a test made this disk fail"):
            broker.stop()
        broker.start()
        assert "kept" in broker.queue("tea").texts


def test_a_slow_disk_lets_durable_messages_wait(tmp_path: Path) -> None:
    with BrokerFixture(tmp_path) as broker, StompPeer(broker) as peer, StompPeer(broker) as other:
        with broker.disk.slow(sync_s=60):
            peer.send("SEND", "destination:/queue/tea", "receipt:late", "persistent:true", body="one pot")
            broker.queue("tea").wait_for(messages=1)
            other.put("tea", "not durable")
            with pytest.raises(BlockingIOError):
                peer.frame(timeout_s=0)
        assert peer.frame().command == "RECEIPT"
        with broker.disk.slow(sync_s=0.01):
            peer.put("tea", "two pots", "persistent:true")


def test_a_full_disk_takes_nothing_durable_until_it_has_room(tmp_path: Path) -> None:
    with BrokerFixture(tmp_path) as broker, StompPeer(broker) as peer, StompPeer(broker) as other:
        peer.put("tea", "one pot", "persistent:true")
        with broker.full_disk():
            peer.send("SEND", "destination:/queue/tea", "receipt:late", "persistent:true", body="three pots")
            other.put("tea", "two pots", "persistent:false")
            with pytest.raises(TimeoutError):
                peer.frame(timeout_s=0.05)
        assert peer.frame().command == "RECEIPT"
        assert broker.queue("tea").texts == ["one pot", "two pots", "three pots"]


def test_a_broker_in_memory_has_no_disk() -> None:
    with BrokerFixture() as broker:
        with pytest.raises(MisuseError, match="DMQ7205: this broker has no journal"):
            _ = broker.disk
        with pytest.raises(MisuseError, match="DMQ7205"), broker.full_disk():
            pass
