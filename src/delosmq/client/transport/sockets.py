"""Sockets to brokers, and what stands for one within the process."""

import asyncio
import socket
import ssl
from abc import ABC, abstractmethod
from typing import Final

from delosmq import in_process
from delosmq.client.errors import no_local_broker
from delosmq.client.options.urls import LOCAL, BrokerAddress
from delosmq.client.transport.links import Place
from delosmq.client.transport.tls import tls_of

_MS_PER_S: Final = 1_000


class SocketOwner(ABC):
    """What a socket belongs to."""

    @abstractmethod
    def receive(self, source: "BrokerSocket", chunk: bytes) -> None:
        """Bytes came."""

    @abstractmethod
    def on_lost(self, source: "BrokerSocket", cause: Exception | None) -> None:
        """It is gone."""

    @abstractmethod
    def has_room(self, *, room: bool) -> None:
        """Whether it takes more."""


class BrokerSocket(asyncio.Protocol):
    """
    Attributes:
        owner: may be another one later.
    """

    def __init__(self, owner: SocketOwner) -> None:
        self.owner = owner

    def data_received(self, data: bytes) -> None:
        self.owner.receive(self, data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.owner.on_lost(self, exc)

    def pause_writing(self) -> None:
        self.owner.has_room(room=False)

    def resume_writing(self) -> None:
        self.owner.has_room(room=True)


async def connect(
    address: BrokerAddress, opened: asyncio.Protocol, given: ssl.SSLContext | None = None
) -> asyncio.Transport:
    """
    Args:
        given: goes before what the address says of TLS.

    Raises:
        OSError, UnicodeError: it is not there; no resolver takes a..b.
        ConnectionLostError: DMQ9063, DMQ9072.
    """
    if address.scheme == LOCAL:
        broker = in_process.find(address.host)
        if broker is None:
            raise no_local_broker(address.host, in_process.names())
        return broker.connect(opened)
    context = tls_of(address) if given is None else given
    transport, _ = await asyncio.get_running_loop().create_connection(
        lambda: opened,
        address.host,
        address.port,
        ssl=context,
        server_hostname=address.host if context is not None else None,
    )
    connected = transport.get_extra_info("socket")
    if connected is not None:
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, address.transport.tcp_no_delay)
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, address.transport.keep_alive)
    return transport


def place_of(address: BrokerAddress, transport: asyncio.Transport) -> Place:
    """Where the broker is that we are connected to, whatever name was written."""
    peer = None if address.scheme == LOCAL else transport.get_extra_info("peername")
    return (address.host if peer is None else peer[0], address.port)


def timeout_s(address: BrokerAddress) -> float | None:
    """Within which the broker has let us in; None for no limit."""
    return address.transport.connection_timeout_ms / _MS_PER_S or None
