"""Connections of OpenWire that have agreed and are not logged in: clients keep such for when theirs break."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from delosmq.server.connection import Connection
from delosmq.sessions.openwire.client.encoder import CommandEncoder
from delosmq.sessions.openwire.client.options import WireFormatOptions
from delosmq.sessions.openwire.client.spare import OpenWireSpare
from delosmq.sessions.openwire.server.protocol import OpenWireProtocol
from delosmq.wire.openwire.commands import ConnectionInfo, KeepAliveInfo
from delosmq.wire.openwire.negotiation import agree
from delosmq.wire.openwire.structures import Command, ConnectionId
from tests.server.support import TCP, RunningServer, running
from tests.server.test_connection import NeverKnows
from tests.sessions.support import PASSWORD, USER

FEW = replace(TCP, protocols=("STOMP", "OPENWIRE"), connections_allowed=20)
KEPT = 2
"""A tenth of them."""


@pytest.fixture
async def server() -> AsyncIterator[RunningServer]:
    async with running(FEW) as made:
        made.parts.protocols = (*made.parts.protocols, OpenWireProtocol())
        yield made


class Spare:
    """A client's connection; its socket, and what both sides have said."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, machine: OpenWireSpare) -> None:
        self._reader = reader
        self._writer = writer
        self._machine = machine

    @classmethod
    async def open(cls, server: RunningServer, *, inactivity_ms: int = 30_000) -> "Spare":
        """One that has agreed."""
        wanted = WireFormatOptions(max_inactivity_duration_ms=inactivity_ms)
        machine = OpenWireSpare(wanted, "the broker", server.clock)
        spare = cls(*await asyncio.open_connection("127.0.0.1", server.listener.port), machine)
        spare._writer.write(machine.take_output())
        async with asyncio.timeout(10):
            while machine.broker_info is None:
                machine.receive(await spare._reader.read(65536))
        return spare

    def begin_to_log_in(self) -> None:
        info = ConnectionInfo()
        info.connection_id, info.user_name, info.password = ConnectionId("ID:spare"), USER, PASSWORD
        info.client_id = "spare"
        self._ask(info)

    async def log_in(self) -> None:
        self.begin_to_log_in()
        await self._answer()

    async def beat(self) -> None:
        """The broker answers."""
        self._ask(KeepAliveInfo())
        await self._answer()

    def _ask(self, command: Command) -> None:
        command.response_required = True
        theirs = self._machine.theirs
        assert theirs is not None
        self._writer.write(CommandEncoder(agree(theirs, theirs).form).encode(command))

    async def _answer(self) -> None:
        async with asyncio.timeout(10):
            assert await self._reader.read(65536)

    async def closed(self) -> None:
        """By the broker."""
        async with asyncio.timeout(10):
            await self._reader.read(-1)
        await self.close()

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()


def hasten(server: RunningServer) -> None:
    """The handshake-timeout of all is over."""
    server.timers.hasten(Connection, FEW.handshake_timeout_s)


async def test_a_spare_connection_may_stay_and_log_in_later(server: RunningServer) -> None:
    spare = await Spare.open(server)
    for _ in range(3):
        hasten(server)
        await spare.beat()
    await spare.log_in()
    assert server.timers.waiting(Connection, FEW.handshake_timeout_s) == 0
    assert server.logged.lines == []
    await spare.close()


async def test_few_of_them_stay(server: RunningServer) -> None:
    spares = [await Spare.open(server) for _ in range(KEPT)]
    hasten(server)
    more = await Spare.open(server)
    hasten(server)
    await more.closed()
    (line,) = server.logged.lines
    assert "DMQ6703" in line
    assert (
        "within 10 s: as many spare connections as the acceptor keeps (2, by its connectionsAllowed) are there" in line
    )
    for spare in spares:
        await spare.beat()
        await spare.close()


@pytest.mark.parametrize("allowed", [1, 9])
async def test_of_fewer_than_ten_connections_none_is_kept_for_who_does_not_log_in(allowed: int) -> None:
    async with running(replace(FEW, connections_allowed=allowed)) as server:
        server.parts.protocols = (*server.parts.protocols, OpenWireProtocol())
        spare = await Spare.open(server)
        hasten(server)
        await spare.closed()
        (line,) = server.logged.lines
        assert "as many spare connections as the acceptor keeps (0, by its connectionsAllowed)" in line


@pytest.mark.parametrize("logs_in", [True, False])
async def test_one_that_logs_in_or_leaves_makes_room_for_another(server: RunningServer, logs_in: bool) -> None:
    spares = [await Spare.open(server) for _ in range(KEPT)]
    hasten(server)
    if logs_in:
        await spares[0].log_in()
    else:
        await spares[0].close()
        await server.until(lambda: len(server.listener.connections) == 1)
    another = await Spare.open(server)
    hasten(server)
    await another.beat()
    assert server.logged.lines == []
    for spare in (another, *spares):
        await spare.close()


async def test_one_whose_silence_would_not_be_noticed_is_closed(server: RunningServer) -> None:
    spare = await Spare.open(server, inactivity_ms=0)
    hasten(server)
    await spare.closed()
    (line,) = server.logged.lines
    assert "DMQ6703" in line
    assert "send ConnectionInfo right after connecting" in line


async def test_one_whose_login_is_not_decided_has_the_time_of_others_for_it(server: RunningServer) -> None:
    spare = await Spare.open(server)
    hasten(server)
    waiting = server.parts.services.logins = NeverKnows()
    spare.begin_to_log_in()
    await server.until(lambda: bool(waiting.asked))
    hasten(server)
    assert server.logged.lines == []
    hasten(server)
    await spare.closed()
    (line,) = server.logged.lines
    assert "its login is not decided yet" in line
