"""Discovery over real sockets: multicast on loopback. On a machine without it these tests are skipped, by that name."""

import asyncio
import contextlib
import logging
import socket
import uuid
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from delosmq.cluster.datagram import FACTORY, AnnouncedConnector, Announcement, encode_announcement
from delosmq.cluster.discovery import MOST_NODES, DiscoveredNode
from delosmq.model.declared.discovery import BroadcastGroupSettings, DiscoveryGroupSettings
from delosmq.model.declared.router import ConnectorSettings
from delosmq.model.errors import LimitError
from delosmq.model.ids import MonotonicNs, WallMs
from delosmq.server.clock import Appointment, ServerClock, SystemClock
from delosmq.server.discovery.broadcast_group import BroadcastGroup
from delosmq.server.discovery.discovery_group import BYTES_PER_TURN, DATAGRAMS_PER_TURN, DiscoveryGroup
from delosmq.server.discovery.multicast import open_receiver, open_sender
from tests.patience import PATIENCE_S

LOOPBACK = "127.0.0.1"
GROUP = "231.7.7.7"
CONNECTORS = (ConnectorSettings("first", LOOPBACK, 1), ConnectorSettings("last", LOOPBACK, 61616, tls=True))
LOGGER = logging.getLogger("delosmq.tests.discovery")


@pytest.fixture
def port() -> int:
    """A port at which a group can be heard on loopback; free for UDP."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind((LOOPBACK, 0))
        found = int(probe.getsockname()[1])
    try:
        with open_receiver(GROUP, found, LOOPBACK) as receiver, open_sender(LOOPBACK, -1) as sender:
            sender.sendto(b"heard", (GROUP, found))
            receiver.settimeout(PATIENCE_S)
            receiver.recv(10)
    except (LimitError, OSError):
        pytest.skip("no multicast on loopback")
    return found


def discovery(port: int, **settings: Any) -> DiscoveryGroup:
    wanted = DiscoveryGroupSettings("dg", GROUP, port, LOOPBACK, **settings)
    return DiscoveryGroup(wanted, "me", clock=SystemClock(), logger=LOGGER)


def broadcast(port: int, node_id: str = "other", *, period_ms: int = 20) -> BroadcastGroup:
    wanted = BroadcastGroupSettings("bg", GROUP, port, CONNECTORS, LOOPBACK, broadcast_period_ms=period_ms)
    return BroadcastGroup(wanted, node_id, str(uuid.uuid4()), clock=SystemClock(), logger=LOGGER)


async def until(condition: Callable[[], bool]) -> None:
    """Waits until something is so."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if condition():
                return
            await asyncio.sleep(0)


def run(test: Callable[[asyncio.AbstractEventLoop], Awaitable[None]]) -> None:
    async def running() -> None:
        await test(asyncio.get_running_loop())

    asyncio.run(running())


@contextlib.contextmanager
def started(loop: asyncio.AbstractEventLoop, *groups: DiscoveryGroup | BroadcastGroup) -> Iterator[None]:
    for group in groups:
        group.start(loop)
    try:
        yield
    finally:
        for group in groups:
            group.stop()


def test_one_broker_finds_another_and_misses_it(port: int) -> None:  # CLUS-1
    async def test(loop: asyncio.AbstractEventLoop) -> None:
        finds, other, own = discovery(port, refresh_timeout_ms=300), broadcast(port), broadcast(port, "me")
        changes: list[int] = []
        finds.on_change.append(lambda: changes.append(len(finds.nodes)))
        with started(loop, finds, own):
            with started(loop, other):
                await until(lambda: changes == [1])
                assert finds.nodes == [DiscoveredNode("other", "last", LOOPBACK, 61616, True)]
            await until(lambda: changes == [1, 0])
            assert finds.nodes == []

    run(test)


def test_two_groups_of_one_machine_hear_the_same(port: int) -> None:
    async def test(loop: asyncio.AbstractEventLoop) -> None:
        groups = [discovery(port), discovery(port)]
        with started(loop, *groups, broadcast(port)):
            await until(lambda: all(group.nodes for group in groups))

    run(test)


def test_hostile_datagrams_are_told_within_bounds_and_do_no_harm(port: int, caplog: pytest.LogCaptureFixture) -> None:
    async def test(loop: asyncio.AbstractEventLoop) -> None:
        finds = discovery(port)
        with started(loop, finds), open_sender(LOOPBACK, -1) as sender:
            for datagram in (b"", b"\0", b"\xff" * 1_400, b"\x7f\xff\xff\xff" * 100, bytes(60_000)) * 20:
                sender.sendto(datagram, (GROUP, port))
                await asyncio.sleep(0)
            with started(loop, broadcast(port)):
                await until(lambda: len(finds.nodes) == 1)

    with caplog.at_level(logging.INFO, LOGGER.name):
        run(test)
    lines = [record.getMessage() for record in caplog.records]
    assert any(line.startswith("DMQ6601: ") and "discovery-group 'dg'" in line for line in lines)
    assert len(lines) < 30


class Frozen(ServerClock):
    """A clock that stands still, and rings when a test has it ring."""

    def __init__(self) -> None:
        self._calls: list[Callable[[], object]] = []

    def wall_ms(self) -> WallMs:
        return WallMs(0)

    def monotonic_ns(self) -> MonotonicNs:
        return MonotonicNs(1)

    def call_at(self, loop: asyncio.AbstractEventLoop, due: MonotonicNs, callback: Callable[[], object]) -> Appointment:
        self._calls.append(callback)
        return asyncio.Handle(callback, (), loop)  # which nothing runs

    def ring(self) -> None:
        calls, self._calls = self._calls, []
        for call in calls:
            call()


def flood(port: int, sender: socket.socket, numbers: range, connector_port: int = 1) -> None:
    """A datagram of a broker for each number; what the buffer of the receiver can't hold is lost."""
    connectors = (AnnouncedConnector("c", FACTORY, (("host", LOOPBACK), ("port", connector_port))),)
    for number in numbers:
        with contextlib.suppress(BlockingIOError):
            sender.sendto(encode_announcement(Announcement(f"n{number}", "s", connectors)), (GROUP, port))


def test_of_many_datagrams_few_are_read_before_others_have_their_turn(port: int) -> None:  # CLUS-1
    async def test(loop: asyncio.AbstractEventLoop) -> None:
        finds = discovery(port)
        with started(loop, finds), open_sender(LOOPBACK, -1) as sender:
            flood(port, sender, range(10 * DATAGRAMS_PER_TURN))
            known = 0
            async with asyncio.timeout(PATIENCE_S):
                while known < 10 * DATAGRAMS_PER_TURN:
                    await asyncio.sleep(0)
                    assert len(finds.nodes) - known <= DATAGRAMS_PER_TURN
                    known = len(finds.nodes)

    run(test)


def test_large_datagrams_are_fewer_at_once(port: int) -> None:
    async def test(loop: asyncio.AbstractEventLoop) -> None:
        finds = discovery(port)
        size = BYTES_PER_TURN // 2
        with started(loop, finds), open_sender(LOOPBACK, -1) as sender:
            connectors = (AnnouncedConnector("c", FACTORY, (("host", LOOPBACK), ("port", 1))),)
            for number in range(4):
                datagram = encode_announcement(Announcement(f"n{number}", "s", connectors))
                sender.sendto(datagram.ljust(size, b"\0"), (GROUP, port))
            known = 0
            async with asyncio.timeout(PATIENCE_S):
                while known < 4:
                    await asyncio.sleep(0)
                    assert len(finds.nodes) - known <= 2
                    known = len(finds.nodes)

    run(test)


def test_a_hundred_thousand_datagrams_do_not_stop_the_loop(port: int) -> None:  # CLUS-1
    async def test(loop: asyncio.AbstractEventLoop) -> None:
        clock = Frozen()
        changes: list[int] = []
        finds = DiscoveryGroup(DiscoveryGroupSettings("dg", GROUP, port, LOOPBACK), "me", clock=clock, logger=LOGGER)
        finds.on_change.append(lambda: changes.append(len(finds.nodes)))
        with started(loop, finds), open_sender(LOOPBACK, -1) as sender:
            for start in range(0, 100_000, 1_000):
                # Each of them moves or is new, so that each changes something.
                flood(port, sender, range(start, start + 1_000), connector_port=start + 1)
                known = len(finds.nodes)
                await asyncio.sleep(0)
                # Others had their turn after few of them.
                assert len(finds.nodes) - known <= DATAGRAMS_PER_TURN
            await until(lambda: len(finds.nodes) == MOST_NODES)
            assert changes == [changes[0]]
            clock.ring()
            assert changes == [changes[0], MOST_NODES]

    run(test)


def test_a_group_that_can_not_be_heard_is_said() -> None:
    async def test(loop: asyncio.AbstractEventLoop) -> None:
        settings = DiscoveryGroupSettings("dg", GROUP, 9876, "192.0.2.1")
        group = DiscoveryGroup(settings, "me", clock=SystemClock(), logger=LOGGER)
        with pytest.raises(LimitError, match=r"DMQ6611.*local-bind-address"):
            group.start(loop)
        group.stop()
        sends = BroadcastGroupSettings("bg", GROUP, 9876, CONNECTORS, "192.0.2.1")
        broadcasts = BroadcastGroup(sends, "me", "s", clock=SystemClock(), logger=LOGGER)
        with pytest.raises(LimitError, match="DMQ6612"):
            broadcasts.start(loop)
        broadcasts.stop()

    run(test)
