"""Start and end of a broker inside this process, whatever comes between."""

# BROKER-6

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import delosmq
from delosmq.composition import ComposedBroker
from delosmq.embedded import broker_thread
from delosmq.engine.base.events import EngineEvents
from delosmq.model.errors import MisuseError, StorageError
from delosmq.storage.lock import DirectoryLock


class Before:
    """The threads that were there before a test: brokers of other tests may live on beside it."""

    def __init__(self) -> None:
        self._known = set(threading.enumerate())

    def new(self) -> list[str]:
        found = set(threading.enumerate()) - self._known
        return [thread.name for thread in found if thread.name.startswith("delosmq")]


@pytest.fixture(autouse=True)
def before(tmp_path: Path) -> Iterator[Before]:
    threads = Before()
    yield threads
    assert threads.new() == []
    DirectoryLock(tmp_path).release()  # raises while anything holds it


class Gate:
    """Holds a starting broker until the test lets it go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached = threading.Event()
        self.released = threading.Event()
        recover = ComposedBroker.recover

        def held(composed: ComposedBroker) -> None:
            self.reached.set()
            assert self.released.wait(30)
            recover(composed)

        monkeypatch.setattr(ComposedBroker, "recover", held)


async def test_a_start_that_is_cancelled_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    entered = False

    async def use() -> None:
        nonlocal entered
        async with delosmq.Broker(tmp_path, http=False):
            entered = True

    using = asyncio.create_task(use())
    assert await asyncio.to_thread(gate.reached.wait, 30)
    using.cancel()
    gate.released.set()
    with pytest.raises(asyncio.CancelledError):
        await using
    assert not entered


async def test_a_second_cancellation_does_not_leave_it_alone_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch)
    using = asyncio.create_task(delosmq.Broker(tmp_path, http=False).__aenter__())
    assert await asyncio.to_thread(gate.reached.wait, 30)
    using.cancel()
    await asyncio.sleep(0)
    using.cancel()
    await asyncio.sleep(0)
    assert not using.done()
    gate.released.set()
    with pytest.raises(asyncio.CancelledError):
        await using


async def test_a_block_that_is_cancelled_stops_its_broker(tmp_path: Path) -> None:
    up = asyncio.Event()

    async def use() -> None:
        async with delosmq.Broker(tmp_path, http=False):
            up.set()
            await asyncio.Event().wait()

    using = asyncio.create_task(use())
    await up.wait()
    using.cancel()
    with pytest.raises(asyncio.CancelledError):
        await using


async def test_a_timeout_of_the_start_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    asyncio.get_running_loop().call_later(0.05, gate.released.set)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01), delosmq.Broker(tmp_path, http=False):
            pytest.fail("it can't be up")


@pytest.mark.parametrize("step", ["__init__", "recover", "start", "start_http"])
def test_a_start_that_fails_at_any_step_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: Before, step: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise StorageError("DMQ3999", "the disk is gone")

    monkeypatch.setattr(ComposedBroker, step, fail)
    broker = delosmq.Broker(tmp_path)
    for _ in range(2):
        with pytest.raises(StorageError, match="the disk is gone"):
            broker.start()
        assert before.new() == []
    broker.stop()
    monkeypatch.undo()
    with broker:
        assert broker.stomp_port


def test_ctrl_c_while_it_starts_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(broker_thread.OneTimeEvent, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        delosmq.Broker(tmp_path, http=False).start()


def test_a_second_start_is_refused_and_a_second_stop_does_nothing(tmp_path: Path) -> None:
    broker = delosmq.Broker(tmp_path, http=False)
    broker.stop()
    broker.start()
    with pytest.raises(MisuseError, match="DMQ6024: the broker runs already; stop it first"):
        broker.start()
    assert broker.stomp_port  # the first one is as it was
    broker.stop()
    broker.stop()


def test_starts_by_several_threads_at_once_make_one_broker(tmp_path: Path) -> None:
    broker = delosmq.Broker(tmp_path, http=False)
    barrier = threading.Barrier(4)
    refused: list[MisuseError] = []

    def start() -> None:
        barrier.wait()
        try:
            broker.start()
        except MisuseError as error:
            refused.append(error)

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 3
    broker.stop()


def test_brokers_live_in_blocks_of_other_threads() -> None:
    ports: list[int] = []
    both_up = threading.Barrier(2)

    def use() -> None:
        with delosmq.Broker(http=False) as broker:
            ports.append(broker.stomp_port)
            both_up.wait(30)

    threads = [threading.Thread(target=use) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(ports)) == 2


def test_its_own_thread_is_told_that_it_cannot_stop_it() -> None:
    class Stopping(EngineEvents):
        def __init__(self) -> None:
            self.broker: delosmq.Broker | None = None
            self.told: MisuseError | None = None

        def queue_created(self, queue: str, address: str) -> None:
            if self.broker is None:
                return  # while it starts
            try:
                self.broker.stop()
            except MisuseError as error:
                self.told = error

    events = Stopping()
    with delosmq.Broker(http=False, events=events) as broker:
        events.broker = broker

        async def create() -> None:
            from delosmq.model.settings import QueueSettings

            broker.composed.broker.resources.create_queue(QueueSettings("q", "q"))

        broker.call(create())
    assert events.told is not None
    assert events.told.code == "DMQ6026"


def test_what_is_started_again_has_its_ports_again(tmp_path: Path) -> None:
    broker = delosmq.Broker(tmp_path)
    with broker:
        before = (broker.stomp_port, broker.openwire_port, broker.http_port)
        broker.restart()
        assert (broker.stomp_port, broker.openwire_port, broker.http_port) == before
    with broker:
        assert (broker.stomp_port, broker.openwire_port, broker.http_port) == before


def test_a_reloaded_memory_limit_bounds_what_connections_hold_too() -> None:
    with delosmq.Broker(http=False) as broker:
        composed = broker.composed
        accounts = broker._accounts()

        async def reload() -> list[int]:
            settings = replace(composed.settings, global_max_size_bytes=12_345_678)
            composed.reload(settings, accounts.users, accounts.roles)
            assert composed._server is not None
            parts = composed._server._parts
            return [
                composed.broker.settings.global_max_size_bytes,
                parts.incomplete_frames.most_bytes,
                parts.slow_readers.most_bytes,
            ]

        assert broker.call(reload()) == [12_345_678] * 3
