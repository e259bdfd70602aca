"""Acceptors: the sockets we listen on, the name that clients of this process know, and the connections that came in."""

import asyncio
import errno
import itertools
import socket
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Final

from delosmq import in_process
from delosmq.config.tls import TlsNames
from delosmq.model.errors import BrokerError, LimitError
from delosmq.model.protocol_names import OPENWIRE
from delosmq.model.settings import AcceptorSettings
from delosmq.server.connection import Connection
from delosmq.server.server_parts import ServerParts
from delosmq.server.tls import TlsContexts, TlsLayer
from delosmq.sessions.spare_connections import SpareConnections

_BACKLOG: Final = 512


def bind(host: str, port: int, what: str) -> socket.socket:
    """A listening socket.

    Args:
        what: names the setting in the error, such as ``acceptor 'stomp'``.

    Raises:
        LimitError: the address can't be used; the message says why and what to do.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise LimitError(
            "DMQ6710", f"{what}: host '{host}' is unknown ({error.strerror}); write an address of this machine"
        ) from error
    # A name such as localhost may mean both; clients that know one form only know IPv4.
    family, kind, protocol, _, address = min(found, key=lambda info: info[0] != socket.AF_INET)
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind(address)
        bound.listen(_BACKLOG)
        bound.setblocking(False)
    except OSError as error:
        bound.close()
        raise LimitError("DMQ6711", f"{what} can't listen on {host}:{port}: {_remedy(error)}") from error
    return bound


async def close_listening(server: asyncio.Server) -> None:
    """Closes the sockets on which `server` listens; its connections go on.

    What it accepted in this turn of the loop becomes a connection first: asyncio forgets one that comes to a closed
    server without closing it, and its peer waits until the garbage is collected.
    """
    loop = asyncio.get_running_loop()
    for listening in server.sockets:
        loop.remove_reader(listening.fileno())
    await asyncio.sleep(0)
    server.close()


def _remedy(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "the port is in use; stop the process that has it, or choose another port"
    if error.errno == errno.EADDRNOTAVAIL:
        return "this machine does not have that address; use one of its own, or 0.0.0.0"
    if error.errno in (errno.EACCES, errno.EPERM):
        return "it is not allowed to this user; choose a port from 1024 on"
    return f"{error.strerror}; choose another address or port"


class Listener(ABC):
    """One acceptor while it runs.

    Attributes:
        port: 0 when it is no socket.
    """

    def __init__(self, acceptor: AcceptorSettings, parts: ServerParts, port: int) -> None:
        self.acceptor = acceptor
        self.port = port
        self.connections: dict[Connection, None] = {}
        self._parts = parts
        self._spares = SpareConnections(acceptor)
        self._numbers = itertools.count(1)
        self._empty = asyncio.Event()
        self._empty.set()

    @abstractmethod
    async def start(self) -> None:
        """Begins to accept."""

    @abstractmethod
    async def refuse_new(self) -> None:
        """Stops accepting; connections go on. May be repeated."""

    @abstractmethod
    async def accept_again(self) -> None:
        """Takes back `refuse_new`, where it was.

        Raises:
            LimitError: something else is there now.
        """

    def _make_connection(self) -> Connection:
        return Connection(
            self.acceptor,
            self._parts,
            next(self._numbers),
            opened=self._opened,
            closed=self._closed,
            spares=self._spares,
        )

    def _opened(self, connection: Connection) -> bool:
        if 0 <= self.acceptor.connections_allowed <= len(self.connections):
            return False
        self.connections[connection] = None
        self._empty.clear()
        return True

    def _closed(self, connection: Connection) -> None:
        self.connections.pop(connection, None)
        self._spares.remove(connection)
        if not self.connections:
            self._empty.set()

    def rights_changed(self) -> None:
        """Tells all connections that permissions were reloaded."""
        for connection in list(self.connections):
            connection.rights_changed()

    async def drain(self, reason: BrokerError, timeout_s: float) -> None:
        """Ends all connections: each peer is told, and gets what was promised, for at most ``timeout_s``."""
        await self.refuse_new()
        for connection in list(self.connections):
            connection.stop(reason)
        try:
            await asyncio.wait_for(self._empty.wait(), timeout_s)
        except TimeoutError:
            for connection in list(self.connections):
                connection.abort()
            await self._empty.wait()


class SocketListener(Listener):
    """One with a port."""

    def __init__(self, acceptor: AcceptorSettings, parts: ServerParts, bound: socket.socket) -> None:
        super().__init__(acceptor, parts, bound.getsockname()[1])
        self._socket = bound
        self._server: asyncio.Server | None = None
        names = TlsNames(f"acceptor '{acceptor.name}'")
        self._tls = None if acceptor.tls is None else TlsContexts(names, acceptor.tls, parts.log)

    async def start(self) -> None:
        self._server = await self._parts.loop.create_server(self._new_protocol, sock=self._socket, backlog=_BACKLOG)

    def _new_protocol(self) -> asyncio.BufferedProtocol:
        parts = self._parts
        connection = self._make_connection()
        if self._tls is None:
            return connection
        return TlsLayer(connection, self._tls, parts.handshakes, parts.buffer)

    async def refuse_new(self) -> None:
        if self._server is not None:
            await close_listening(self._server)
        else:
            self._socket.close()

    async def accept_again(self) -> None:
        self._socket = bind(self.acceptor.host, self.port, f"acceptor '{self.acceptor.name}'")
        await self.start()


class LocalListener(Listener):
    """The one for clients of this process: ``vm://NAME``."""

    def __init__(self, acceptor: AcceptorSettings, parts: ServerParts, name: str) -> None:
        super().__init__(acceptor, parts, 0)
        self._name = name
        self._port = in_process.LocalPort(parts.loop, self._accept)
        self._accepting = False

    async def start(self) -> None:
        if not in_process.enter(self._name, self._port):
            raise LimitError(
                "DMQ6715",
                f"a broker named '{self._name}' runs in this process already; stop it, or give this one another name=",
            )
        self._accepting = True

    def _accept(self, transport: in_process.MemoryTransport) -> None:
        if not self._accepting:
            transport.abort()
            return
        connection = self._make_connection()
        transport.attach(connection, connection.receive)
        connection.connection_made(transport)

    async def refuse_new(self) -> None:
        self._accepting = False
        in_process.leave(self._name, self._port)

    async def accept_again(self) -> None:
        await self.start()


def local_acceptor(acceptors: tuple[AcceptorSettings, ...]) -> AcceptorSettings:
    """What clients of this process get: what the first acceptor for OpenWire says, but for sockets."""
    first = next((one for one in acceptors if OPENWIRE in one.protocols), None)
    if first is None:
        return AcceptorSettings("vm", "vm", 0, (OPENWIRE,))
    return replace(first, name="vm", host="vm", port=0, protocols=(OPENWIRE,), tls=None, router="")


class Server:
    """All acceptors of a broker."""

    def __init__(self, parts: ServerParts) -> None:
        self._parts = parts
        self.listeners: list[Listener] = []

    def bind(self, acceptors: tuple[AcceptorSettings, ...]) -> None:
        """Takes the ports.

        Raises:
            LimitError: one of them can't be had, or can't speak TLS; none is kept then.
        """
        taken: list[socket.socket] = []
        try:
            for acceptor in acceptors:
                taken.append(bind(acceptor.host, acceptor.port, f"acceptor '{acceptor.name}'"))
                self.listeners.append(SocketListener(acceptor, self._parts, taken[-1]))
        except LimitError:
            for bound in taken:
                bound.close()
            self.listeners = []
            raise

    def listen_in_process(self, acceptor: AcceptorSettings, name: str) -> None:
        """Lets clients of this process connect by the broker's name, once started."""
        self.listeners.append(LocalListener(acceptor, self._parts, name))

    async def start(self) -> None:
        """Begins to accept.

        Raises:
            LimitError: another broker of this process has the name.
        """
        for listener in self.listeners:
            await listener.start()

    def rights_changed(self) -> None:
        """Tells all connections that permissions were reloaded."""
        for listener in self.listeners:
            listener.rights_changed()

    def bound(self, global_max_bytes: int) -> None:
        """Takes over ``global-max-size``, which was reloaded, for what connections hold together."""
        self._parts.bound(global_max_bytes)

    async def drain(self, reason: BrokerError, timeout_s: float) -> None:
        """Stops accepting and ends all connections, all within ``timeout_s``."""
        for listener in self.listeners:
            await listener.refuse_new()
        await asyncio.gather(*(listener.drain(reason, timeout_s) for listener in self.listeners))
        self._parts.passwords.close()
