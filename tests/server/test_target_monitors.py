"""Monitors of targets in a running loop: what is announced or answered costs and breaks little."""

# ROUTE-3

import asyncio
import logging
import ssl
from collections.abc import Callable

import pytest

from delosmq.cluster.discovery import DiscoveredNode
from delosmq.model.declared.router import ConnectorSettings, TargetPoolSettings
from delosmq.routers.pool import TargetPool
from delosmq.server.targets.target_monitor import MOST_DISCOVERED, LocalBroker, TargetMonitors
from tests.server.test_discovery_groups import until

LOOPBACK = "127.0.0.1"
LOGGER = logging.getLogger("delosmq.tests.targets")


class Here(LocalBroker):
    def is_active(self) -> bool:
        return True

    def connection_count(self) -> int:
        return 0


def monitors(pool: TargetPool) -> TargetMonitors:
    return TargetMonitors("r", pool, "", Here(), LOGGER)


def test_a_flood_of_announcements_that_move_makes_one_tls_context(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[ssl.SSLContext] = []
    create: Callable[..., ssl.SSLContext] = ssl.create_default_context

    def counted(**settings: str | None) -> ssl.SSLContext:
        made.append(create(**settings))
        return made[-1]

    monkeypatch.setattr(ssl, "create_default_context", counted)

    async def test() -> None:
        pool = TargetPool(TargetPoolSettings(discovery_group="dg"))
        watches = monitors(pool)
        for port in (1, 2, 3):
            watches.find([DiscoveredNode(f"n{number}", "c", LOOPBACK, port, True) for number in range(1_024)])
            watches.find([DiscoveredNode(f"n{number}", "c", f"127.0.1.{number}", port, True) for number in range(200)])
            assert len(pool.targets) == MOST_DISCOVERED
            await asyncio.sleep(0)  # each begins to be asked
        await watches.close()

    asyncio.run(test())
    assert len(made) == 1


def test_two_targets_with_one_node_id_are_pointed_out(caplog: pytest.LogCaptureFixture) -> None:
    class Stomp(asyncio.Protocol):
        """Answers as a broker does."""

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            assert isinstance(transport, asyncio.Transport)
            self.transport = transport

        def data_received(self, data: bytes) -> None:
            head = b"subscription:0\nmessage-id:1\ndestination:d\n_AMQ_OperationSucceeded:true"
            for frame in data.split(b"\0"):
                match frame.strip()[:4]:
                    case b"CONN":
                        self.transport.write(b"CONNECTED\nversion:1.2\n\n\0")
                    case b"SUBS":
                        self.transport.write(b"RECEIPT\nreceipt-id:0\n\n\0")
                    case b"SEND":
                        answer = b'["one"]' if b"NodeID" in frame else b"[true]"
                        self.transport.write(b"MESSAGE\n" + head + b"\n\n" + answer + b"\0")

    async def test() -> None:
        loop = asyncio.get_running_loop()
        servers = [await loop.create_server(Stomp, LOOPBACK, 0) for _ in range(2)]
        connectors = [
            ConnectorSettings(f"c{number}", LOOPBACK, server.sockets[0].getsockname()[1])
            for number, server in enumerate(servers)
        ]
        pool = TargetPool(TargetPoolSettings(tuple(connectors)))
        watches = monitors(pool)
        watches.begin()
        await until(lambda: "DMQ5519" in caplog.text)
        await until(lambda: all(one.ready for one in pool.targets))
        assert len(pool.ready_targets()) == 1
        await watches.close()
        for server in servers:
            server.close()

    with caplog.at_level(logging.INFO, LOGGER.name):
        asyncio.run(test())
    assert [record.getMessage()[:8] for record in caplog.records] == ["DMQ5515:", "DMQ5515:", "DMQ5519:"]


CONNECTED = b"CONNECTED\nversion:1.2\n\n\0"
READY = (
    CONNECTED
    + b"RECEIPT\nreceipt-id:0\n\n\0"
    + b"".join(
        b"MESSAGE\nsubscription:0\nmessage-id:1\ndestination:d\n_AMQ_OperationSucceeded:true\n\n" + answer + b"\0"
        for answer in (b'["one"]', b"[true]")
    )
)


@pytest.mark.parametrize("before", [CONNECTED, READY], ids=["at once", "once it is ready"])
def test_a_target_that_sends_frames_without_end_is_read_no_further(before: bytes) -> None:
    class Babbling(asyncio.Protocol):
        """Sends small frames as long as they are taken."""

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            assert isinstance(transport, asyncio.Transport)
            transport.write(before)
            transport.write(b"A\n\n\0" * 100_000)

    async def test() -> None:
        server = await asyncio.get_running_loop().create_server(Babbling, LOOPBACK, 0)
        port = server.sockets[0].getsockname()[1]
        pool = TargetPool(TargetPoolSettings((ConnectorSettings("c", LOOPBACK, port),)))
        watches = monitors(pool)
        watches.begin()
        (target,) = pool.targets
        await until(lambda: target.trouble not in ("not asked yet", ""))
        assert (target.ready, target.trouble) == (False, "it sends what it was not asked for: A")
        await watches.close()
        server.close()

    asyncio.run(test())


@pytest.mark.parametrize("host", ["a..b", "a" * 300])
def test_a_host_that_can_be_none_is_no_target_that_is_ready_and_is_asked_again(
    host: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        pool = TargetPool(TargetPoolSettings((ConnectorSettings("bad", host, 1),), check_period_ms=1))
        watches = monitors(pool)
        watches.begin()
        (target,) = pool.targets
        await until(lambda: target.trouble != "not asked yet")
        target.trouble = "waits for the next check"
        await until(lambda: target.trouble != "waits for the next check")
        assert not target.ready
        await watches.close()

    with caplog.at_level(logging.INFO, LOGGER.name):
        asyncio.run(test())
    assert [record.getMessage()[:8] for record in caplog.records][:1] == ["DMQ5516:"]
