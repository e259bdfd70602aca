"""A broker inside this process: BROKER-6 as far as it goes today."""

# BROKER-6

import asyncio
import socket
import time
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest

import delosmq
from delosmq.embedded import default_settings
from delosmq.engine.base.events import EngineEvents
from delosmq.engine.broker import EngineBroker
from delosmq.model.errors import ConfigurationError, LimitError, MisuseError, StorageError
from delosmq.sessions.machine import SessionMachine
from delosmq.storage.journal.files import OsFiles
from delosmq.storage.journal.manifest import Manifest, load
from delosmq.storage.journal.records import decode_file_header
from delosmq.storage.journal.recovery.node_id import load_node_id
from tests.memory import living
from tests.patience import PATIENCE_S


def stomp_session(broker: delosmq.Broker, frames: str, until: bytes) -> bytes:
    """Logs in, sends frames (NUL written as ^@) and reads until ``until`` came."""
    with socket.create_connection((broker.host, broker.stomp_port), timeout=PATIENCE_S) as peer:
        login = f"CONNECT\naccept-version:1.2\nhost:x\nlogin:{broker.user}\npasscode:{broker.password}\n\n^@"
        peer.sendall((login + frames).replace("^@", "\0").encode())
        seen = b""
        while until not in seen:
            chunk = peer.recv(65536)
            assert chunk, f"closed after {seen!r}"
            seen += chunk
        return seen


SEND = "SEND\ndestination:/queue/a\npersistent:true\nreceipt:sent\n\nhello^@"
TAKE = "SUBSCRIBE\ndestination:/queue/a\nid:1\nack:auto\n\n^@"


def test_it_is_up_inside_the_block_and_gone_after_it() -> None:
    with delosmq.Broker(http=False) as broker:
        port = broker.stomp_port
        assert b"receipt-id:sent" in stomp_session(broker, SEND, b"receipt-id:sent")
        assert b"hello" in stomp_session(broker, TAKE, b"hello")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
    with pytest.raises(MisuseError, match="not running"):
        _ = broker.stomp_port


def test_of_a_broker_that_ended_nothing_stays_in_memory() -> None:
    for _ in range(3):
        with delosmq.Broker(events=EngineEvents()) as broker:
            stomp_session(broker, SEND + TAKE, b"hello")
    del broker
    assert (living(EngineBroker), living(SessionMachine)) == ([], [])


async def test_async_with_does_the_same() -> None:
    async with delosmq.Broker(http=False) as broker:
        assert broker.stomp_port > 0


def test_durable_messages_survive_in_a_directory_and_only_there(tmp_path: Path) -> None:
    with delosmq.Broker(tmp_path / "broker", http=False) as broker:
        stomp_session(broker, SEND, b"receipt-id:sent")
    with delosmq.Broker(tmp_path / "broker", http=False) as broker:
        assert b"hello" in stomp_session(broker, TAKE, b"hello")


def test_all_that_the_settings_say_of_the_journal_counts(tmp_path: Path) -> None:
    chosen = default_settings()
    journal = replace(chosen.journal, directory="elsewhere", compact_min_files=0, compact_percentage=7, spare_files=1)
    broker = delosmq.Broker(tmp_path, http=False, settings=replace(chosen, journal=journal))
    with broker:
        assert broker.composed.settings.journal == replace(journal, directory=str(tmp_path / "journal"))


def test_several_live_in_one_process_and_know_nothing_of_each_other() -> None:
    with delosmq.Broker(http=False) as one, delosmq.Broker(http=False) as other:
        assert one.stomp_port != other.stomp_port
        stomp_session(one, SEND, b"receipt-id:sent")
        empty = TAKE + "SEND\ndestination:/queue/b\nreceipt:later\n\n^@"
        assert b"hello" not in stomp_session(other, empty, b"receipt-id:later")
        assert b"hello" in stomp_session(one, TAKE, b"hello")


def test_a_directory_serves_one_broker_at_a_time(tmp_path: Path) -> None:
    with delosmq.Broker(tmp_path, http=False):
        with pytest.raises(ConfigurationError, match="in use by the broker with process id"):
            delosmq.Broker(tmp_path, http=False).start()
    with delosmq.Broker(tmp_path, http=False):
        pass


def test_a_port_in_use_is_one_sentence() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        settings = default_settings()
        settings = replace(settings, acceptors=(replace(settings.acceptors[0], port=port),))
        with pytest.raises(LimitError, match=f"acceptor 'stomp' can't listen on 127.0.0.1:{port}: the port is in use"):
            delosmq.Broker(settings=settings, http=False).start()
        with pytest.raises(delosmq.BrokerError):
            delosmq.Broker(settings=settings, http=False).start()


def test_http_is_there_unless_it_is_left_out() -> None:
    with delosmq.Broker() as broker:
        with urllib.request.urlopen(f"{broker.http_url}/health/ready", timeout=PATIENCE_S) as answer:
            assert answer.status == 200
    with delosmq.Broker(http=False) as broker, pytest.raises(MisuseError, match="without HTTP"):
        _ = broker.http_url


def test_the_log_tells_of_dead_letters_that_nobody_takes_any_more(caplog: pytest.LogCaptureFixture) -> None:
    with delosmq.Broker() as broker:

        async def lose() -> None:
            engine = broker.composed.broker
            for _ in range(2):
                engine.dropped.tell_held("orders", "dead-letter-address", "DLQ")

        broker.call(lose())
    (told,) = [record.getMessage() for record in caplog.records if "DMQ6145" in record.getMessage()]
    assert told.startswith(
        "DMQ6145: messages of queue 'orders' are held in it: its dead-letter-address is 'DLQ', which has no"
    )
    assert "create one with `delosmq queue create DLQ`" in told


def test_the_log_tells_of_disabled_queues_that_lose_messages(caplog: pytest.LogCaptureFixture) -> None:
    with delosmq.Broker() as broker:

        async def lose() -> None:
            broker.composed.broker.dropped.tell_refused("orders")

        broker.call(lose())
    (told,) = [record.getMessage() for record in caplog.records if "DMQ2657" in record.getMessage()]
    assert told.startswith("DMQ2657: what is sent to queue 'orders' is gone, as it is disabled")
    assert "`delosmq queue enable orders`" in told


@pytest.mark.parametrize("lost", [-1, 0, 1], ids=["newest", "oldest", "another"])
def test_a_lost_journal_file_refuses_the_start_unless_loss_is_accepted(tmp_path: Path, lost: int) -> None:
    small = replace(default_settings(), journal=replace(default_settings().journal, file_size_bytes=64 * 1024))
    for queue in ("a", "b"):  # each life has a segment of its own
        with delosmq.Broker(tmp_path, http=False, settings=small) as broker:
            for _ in range(15):
                body = queue * 3000
                frame = f"SEND\ndestination:/queue/{queue}\npersistent:true\nreceipt:sent\n\n{body}^@"
                stomp_session(broker, frame, b"receipt-id:sent")
    manifest = (tmp_path / "journal" / "manifest").read_bytes()
    counted = [one.number for one in load_manifest(tmp_path / "journal").sealed.values()]
    opened = load_manifest(tmp_path / "journal").opened
    name = file_of(tmp_path / "journal", [*counted, opened][lost])
    name.unlink()
    with pytest.raises(StorageError, match=rf"DMQ3009: {name}: .*accept_loss=True"):
        delosmq.Broker(tmp_path, http=False, settings=small).start()
    assert (tmp_path / "journal" / "manifest").read_bytes() == manifest
    with delosmq.Broker(tmp_path, http=False, settings=small, accept_loss=True) as broker:
        stomp_session(broker, SEND.replace("/a", "/c"), b"receipt-id:sent")
    with delosmq.Broker(tmp_path, http=False, settings=small) as broker:
        assert b"hello" in stomp_session(broker, TAKE.replace("/a", "/c"), b"hello")
        assert b"receipt-id:sent" in stomp_session(broker, SEND, b"receipt-id:sent")
        left = "b" if lost == 0 else "a"
        assert left.encode() * 3000 in stomp_session(broker, TAKE.replace("/a", f"/{left}"), left.encode() * 3000)


def load_manifest(journal: Path) -> Manifest:
    manifest = load(OsFiles(journal), load_node_id(journal))
    assert manifest is not None
    return manifest


def file_of(journal: Path, number: int) -> Path:
    """The file that holds a segment."""
    for path in journal.glob("journal-*.dmq"):
        header = decode_file_header(path.read_bytes()[:64])
        if header is not None and header.number == number:
            return path
    raise AssertionError(f"no file holds segment {number}")


def test_a_message_expires_at_its_time_in_a_queue_that_has_no_consumer() -> None:
    with delosmq.Broker(http=False) as broker:
        send = f"SEND\ndestination:/queue/a\nexpires:{int(time.time() * 1000) + 200}\nreceipt:sent\n\nhello^@"
        stomp_session(broker, send, b"receipt-id:sent")

        async def expired() -> bool:
            queue = broker.composed.broker.queues["a"]
            while queue.message_count:  # noqa: ASYNC110 - the queue tells nobody
                await asyncio.sleep(0.01)
            return queue.counters.expired == 1

        # Without a consumer, and long before the next scan of the broker's queues.
        assert broker.call(asyncio.wait_for(expired(), PATIENCE_S))
