"""Layers between a socket and a connection when the bytes on the wire are not those of the protocol.

    socket -> [TlsLayer] -> [WebSocketLayer] -> Connection

A layer is the protocol of the transport below it and the transport of what is above. A plain connection has none and
pays nothing for them.
"""

import asyncio
from abc import ABC, abstractmethod
from typing import cast

from delosmq.model.errors import PeerError
from delosmq.sessions.host import Peer

AWAITED = "delosmq.awaited"
"""Extra info of a transport: what its peer has to do next, for the sentence that tells it that it is late."""

SNI_HOST = "delosmq.sni_host"
"""Extra info of a transport: the server name that its peer's TLS handshake asked for; none where there is no TLS."""

CERTIFICATE = "delosmq.certificate"
"""Extra info of a transport: the distinguished name of the certificate that its peer showed, when it was verified."""


def note_tls(peer: Peer, transport: asyncio.BaseTransport | None) -> None:
    """Has ``peer`` know what its TLS, if there is any, says of it."""
    if transport is not None:
        peer.sni_host = str(transport.get_extra_info(SNI_HOST, ""))
        peer.certificate = str(transport.get_extra_info(CERTIFICATE, ""))


class Upper(ABC):
    """What is above a layer: the connection, or another layer."""

    @abstractmethod
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """``transport`` is what to write to from now on."""

    @abstractmethod
    def receive(self, chunk: bytes) -> None:
        """Bytes from the peer, without the layer's own framing."""

    @abstractmethod
    def break_off(self, reason: PeerError) -> None:
        """The layer can't go on: the log gets ``reason``, and `asyncio.WriteTransport.write_eof` ends the rest."""

    @abstractmethod
    def eof_received(self) -> bool | None:
        """The peer sends no more. True keeps the other direction open."""

    @abstractmethod
    def pause_writing(self) -> None:
        """Not everything that was written is in the socket."""

    @abstractmethod
    def resume_writing(self) -> None:
        """Now it is."""

    @abstractmethod
    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is closed."""


class Layer(asyncio.BufferedProtocol, asyncio.Transport, Upper):
    """Passes everything on; what is special is in the subclasses.

    Args:
        buffer: where the socket is read into; shared, hence copied before anything else is done.
    """

    def __init__(self, upper: Upper, buffer: memoryview) -> None:
        super().__init__()
        self._upper = upper
        self._buffer = buffer
        self._lower: asyncio.Transport | None = None
        self._reading = True
        self._writable = True
        self._closing = False

    # -- called from below -----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.attach(cast(asyncio.Transport, transport))
        self._upper.connection_made(self)

    def attach(self, transport: asyncio.Transport) -> None:
        """Takes ``transport`` as what is below."""
        # Nothing is hidden in it: see `Connection.connection_made`.
        transport.set_write_buffer_limits(high=0, low=0)
        self._lower = transport

    def insert(self, transport: asyncio.Transport) -> None:
        """Takes its place above ``transport``, which belonged to what is above now."""
        self.attach(transport)
        transport.set_protocol(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.receive(bytes(self._buffer[:nbytes]))

    def break_off(self, reason: PeerError) -> None:
        self._upper.break_off(reason)

    def eof_received(self) -> bool | None:
        return self._upper.eof_received()

    def pause_writing(self) -> None:
        self._writable = False
        self._upper.pause_writing()

    def resume_writing(self) -> None:
        self._writable = True
        self._upper.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        self._lower = None
        self._upper.connection_lost(exc)

    # -- called from above -----------------------------------------------------------------------------------------

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._upper = cast(Upper, protocol)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """They are 0 already."""

    def get_extra_info(self, name: str, default: object = None) -> object:
        return default if self._lower is None else self._lower.get_extra_info(name, default)

    def is_closing(self) -> bool:
        return self._closing or self._lower is None or self._lower.is_closing()

    def pause_reading(self) -> None:
        self._reading = False
        if self._lower is not None:
            self._lower.pause_reading()

    def resume_reading(self) -> None:
        self._reading = True
        if self._lower is not None:
            self._lower.resume_reading()

    def abort(self) -> None:
        self._closing = True
        if self._lower is not None:
            self._lower.abort()


class Tap(ABC):
    """Looks at what passes between connections and their sessions; for tests."""

    @abstractmethod
    def open(self, upper: Upper, transport: asyncio.Transport, peer: Peer, protocol: str) -> Layer:
        """A layer over the transport of a connection which, as is known by now, speaks ``protocol``. It gets the first
        bytes again."""
