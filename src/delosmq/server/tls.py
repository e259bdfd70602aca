"""TLS between a socket and its connection.

    waiting for bytes -> handshaking (a step in each turn of the loop) -> open -> (eof from either side) -> closed

OpenSSL works in memory: it gets what was read and gives what to write. So what is written and what is not stays known
exactly, half-closed connections go on, and handshakes take turns (docs/decisions/0036).
"""

import asyncio
import logging
import ssl
from collections import deque
from contextlib import suppress
from typing import Final, cast

from delosmq.config.tls import TlsMistake, TlsNames, files_of, load_tls
from delosmq.model.errors import LimitError, PeerError
from delosmq.model.settings import TlsSettings
from delosmq.security.certificates import Subject, distinguished_name
from delosmq.server.layers import AWAITED, CERTIFICATE, SNI_HOST, Layer, Upper
from delosmq.wire.first_bytes import describe, is_http

# Source: RFC 8446, 5.1: every handshake begins with a record of this type.
_HANDSHAKE_RECORD: Final = 0x16
# A chain of client certificates fits; OpenSSL itself stops at 100 KiB.
_HANDSHAKE_READ_BYTES: Final = 16 * 1024
# Encrypted and handed on at once: a few records, so that a slow socket holds no second copy of a large message.
_WRITE_BYTES: Final = 64 * 1024
_READ_BYTES: Final = 256 * 1024
# What TLS itself may owe a peer that reads nothing: answers to key updates, tickets.
_OWED_LIMIT_BYTES: Final = 64 * 1024

_WAITING: Final = 0
_HANDSHAKING: Final = 1
_OPEN: Final = 2
_ENDED: Final = 3


class NamedTls(ssl.SSLObject):
    """The TLS of one connection.

    Attributes:
        sni_host: the server name that the client asked for; "" for none.
    """

    sni_host = ""


def keep_sni_host(context: ssl.SSLContext) -> ssl.SSLContext:
    """Has each connection of ``context`` know which server name its client asked for."""
    context.sslobject_class = NamedTls
    context.sni_callback = _note_sni_host
    return context


def _note_sni_host(tls: ssl.SSLSocket | ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
    if isinstance(tls, NamedTls):
        tls.sni_host = name or ""


class HandshakeTurns:
    """Lets handshakes compute one after the other, one step in each turn of the loop.

    A step costs up to some milliseconds of cryptography. A handshake that waits for its peer's bytes has no turn, so
    silent peers keep no other out.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[TlsLayer] = deque()
        self._scheduled = False

    def ask(self, layer: "TlsLayer") -> None:
        """Calls ``layer.handshake()`` when its turn has come."""
        self._waiting.append(layer)
        self._schedule()

    def _schedule(self) -> None:
        if self._waiting and not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._run)

    def _run(self) -> None:
        self._scheduled = False
        layer = self._waiting.popleft()
        self._schedule()
        layer.handshake()


class TlsContexts:
    """The context that new connections of an acceptor, or of the HTTP interface, get.

    Raises:
        LimitError: the files or settings can't be used.
    """

    def __init__(self, names: TlsNames, settings: TlsSettings, log: logging.Logger) -> None:
        self.names = names
        self._settings = settings
        self._log = log
        self._stamp = self._read_stamp()
        try:
            self._context = keep_sni_host(load_tls(settings, names).context)
        except TlsMistake as mistake:
            raise LimitError("DMQ6110", f"{names.owner} can't speak TLS: {mistake}") from None

    def current(self) -> ssl.SSLContext:
        """Read again first when the files have changed and ``sslAutoReload`` is set."""
        if self._settings.auto_reload:
            stamp = self._read_stamp()
            if stamp != self._stamp:
                self._stamp = stamp
                self._reload()
        return self._context

    def _reload(self) -> None:
        owner = self.names.owner
        try:
            self._context = keep_sni_host(load_tls(self._settings, self.names).context)
        except TlsMistake as mistake:
            self._log.warning(
                f"DMQ6111: {owner} goes on with the certificate it has, as the new one can't be used: {mistake}"
            )
            return
        self._log.info(f"DMQ6112: {owner} has read its certificate again; new connections get it")

    def _read_stamp(self) -> list[tuple[int, int, int]]:
        stamps: list[tuple[int, int, int]] = []
        for path in files_of(self._settings):
            try:
                status = path.stat()
            except OSError:
                stamps.append((0, 0, 0))
            else:
                stamps.append((status.st_mtime_ns, status.st_size, status.st_ino))
        return stamps


class TlsLayer(Layer):
    """One connection's TLS.

    Args:
        plain_answer: what a client of HTTP without TLS is told, before the connection is closed.
    """

    def __init__(
        self,
        upper: Upper,
        contexts: TlsContexts,
        turns: HandshakeTurns,
        buffer: memoryview,
        *,
        plain_answer: bytes = b"",
    ) -> None:
        super().__init__(upper, buffer)
        self._plain_answer = plain_answer
        self._contexts = contexts
        self._turns = turns
        self._state = _WAITING
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls: ssl.SSLObject | None = None
        self._unsent: memoryview | None = None
        self._owed_bytes = 0
        self._peer_finished = False

    # -- called from below -----------------------------------------------------------------------------------------

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer if self._state == _OPEN else self._buffer[:_HANDSHAKE_READ_BYTES]

    def receive(self, chunk: bytes) -> None:
        if self._state == _ENDED:
            return
        if self._state == _WAITING:
            if chunk[0] != _HANDSHAKE_RECORD:
                self._refuse_plain(chunk)
                return
            self._state = _HANDSHAKING
        self._incoming.write(chunk)
        if self._state == _HANDSHAKING:
            # Nothing more is read before this was looked at.
            if self._lower is not None:
                self._lower.pause_reading()
            self._turns.ask(self)
        else:
            self._read_on()

    def handshake(self) -> None:
        """One step, on what has come so far. Called by `HandshakeTurns`."""
        lower = self._lower
        if self._state != _HANDSHAKING or lower is None or lower.is_closing():
            return
        try:
            if self._tls is None:
                self._tls = self._contexts.current().wrap_bio(self._incoming, self._outgoing, server_side=True)
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush_owed()
            lower.resume_reading()
            return
        except ssl.SSLError as wrong:
            self._flush_owed()
            self._end("DMQ6113", f"no TLS with {self._peer()}: {_sentence(wrong, self._contexts.names)}", resume=True)
            return
        self._state = _OPEN
        self._flush_owed()
        if self._reading:
            lower.resume_reading()
            self._read_on()

    def eof_received(self) -> bool | None:
        if self._state in (_WAITING, _HANDSHAKING):
            # Probes of load balancers do that all day.
            return False
        if self._peer_finished:
            return not self._closing
        self._on_goodbye()
        # What is not encrypted yet still goes out; then `close` closes what is below, too.
        return True

    def resume_writing(self) -> None:
        self._writable = True
        self._owed_bytes = 0
        self._send_on()
        if self._writable and self._unsent is None:
            self._upper.resume_writing()

    # -- called from above -----------------------------------------------------------------------------------------

    def get_extra_info(self, name: str, default: object = None) -> object:
        if name == AWAITED and self._state in (_WAITING, _HANDSHAKING):
            names = self._contexts.names
            return f"begin with TLS right after connecting; {names.owner} {names.switched_on}"
        if name == "sslcontext":  # asyncio's name, by which HTTP servers tell https
            return self._contexts
        if name == SNI_HOST and isinstance(self._tls, NamedTls):
            return self._tls.sni_host
        if name == CERTIFICATE and self._state == _OPEN and self._tls is not None:
            # Nothing without a certificate, or with one that was not verified.
            return distinguished_name(cast("Subject", (self._tls.getpeercert() or {}).get("subject", ())))
        return super().get_extra_info(name, default)

    def write(self, chunk: bytes | bytearray | memoryview) -> None:
        if self._state != _OPEN or self.is_closing():
            return
        self._unsent = memoryview(chunk) if self._unsent is None else memoryview(bytes(self._unsent) + bytes(chunk))
        if self._writable:
            self._send_on()
            if self._unsent is not None:
                self._upper.pause_writing()

    def resume_reading(self) -> None:
        self._reading = True
        if self._lower is None or self._state == _HANDSHAKING:
            return
        self._lower.resume_reading()
        if self._state == _OPEN:
            # What was read before the pause and not passed on yet.
            asyncio.get_running_loop().call_soon(self._read_on)

    def write_eof(self) -> None:
        self._send_close()
        self._state = _ENDED
        if self._lower is not None:
            self._lower.write_eof()

    def get_write_buffer_size(self) -> int:
        below = 0 if self._lower is None else self._lower.get_write_buffer_size()
        return below + (0 if self._unsent is None else len(self._unsent))

    def close(self) -> None:
        """What was written goes out first, as with every transport."""
        self._closing = True
        if self._state == _OPEN and self._unsent is not None and self._lower is not None:
            self._lower.pause_reading()
            return
        self._send_close()
        self._state = _ENDED
        if self._lower is not None:
            self._lower.close()

    # -- inside ----------------------------------------------------------------------------------------------------

    def _read_on(self) -> None:
        tls = self._tls
        while tls is not None and self._state == _OPEN and self._reading and self._lower is not None:
            parts: list[bytes] = []
            size = 0
            finished = False
            try:
                while size < _READ_BYTES:
                    part = tls.read(_READ_BYTES - size)
                    if not part:
                        finished = True
                        break
                    parts.append(part)
                    size += len(part)
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLZeroReturnError:
                finished = True
            except ssl.SSLError as wrong:
                self._flush_owed()
                self._end("DMQ6103", f"TLS with {self._peer()} broke: {_sentence(wrong, self._contexts.names)}")
                return
            self._flush_owed()
            if parts:
                self._upper.receive(b"".join(parts))
            if finished:
                self._on_goodbye()
            if size < _READ_BYTES:
                return

    def _on_goodbye(self) -> None:
        if not self._peer_finished:
            self._peer_finished = True
            if not self._upper.eof_received():
                self.close()

    def _send_on(self) -> None:
        """Encrypts and writes until all is in the socket or the socket is full."""
        tls, lower = self._tls, self._lower
        while self._unsent is not None and self._writable and tls is not None and lower is not None:
            try:
                sent = tls.write(self._unsent[:_WRITE_BYTES])
            except ssl.SSLError as wrong:
                self._end("DMQ6104", f"TLS with {self._peer()} can't write: {_sentence(wrong, self._contexts.names)}")
                if self._closing:
                    self.abort()
                return
            self._unsent = self._unsent[sent:] if sent < len(self._unsent) else None
            lower.write(self._outgoing.read())
        if self._closing and self._unsent is None:
            self.close()

    def pause_writing(self) -> None:
        self._writable = False
        # While a message is under way `write` says so itself, once.
        if self._unsent is None:
            self._upper.pause_writing()

    def _flush_owed(self) -> None:
        """Writes what TLS has to say for itself."""
        owed = self._outgoing.read()
        lower = self._lower
        if not owed or lower is None or lower.is_closing():
            return
        lower.write(owed)
        if not self._writable:
            self._owed_bytes += len(owed)
            if self._owed_bytes > _OWED_LIMIT_BYTES:
                self._end("DMQ6105", f"{self._peer()} keeps TLS busy and reads nothing")
                self.abort()

    def _send_close(self) -> None:
        tls = self._tls
        if tls is None or self._state != _OPEN or self._unsent is not None:
            return
        # The error says that the peer's goodbye is missing, which is not waited for; ours is written.
        with suppress(ssl.SSLError):
            tls.unwrap()
        self._flush_owed()

    def _refuse_plain(self, chunk: bytes) -> None:
        if self._plain_answer and self._lower is not None and is_http(chunk):
            self._lower.write(self._plain_answer)
        names = self._contexts.names
        self._end(
            "DMQ6114",
            f"{self._peer()} speaks without TLS, and {names.owner} {names.switched_on}: its first bytes look like "
            f"{describe(chunk)}; closed. Switch TLS on in the client",
        )

    def _end(self, code: str, sentence: str, *, resume: bool = False) -> None:
        self._state = _ENDED
        self._unsent = None
        if resume and self._lower is not None:
            self._lower.resume_reading()
        self._upper.break_off(PeerError(code, sentence))

    def _peer(self) -> str:
        peer = self.get_extra_info("peername")
        return f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) and len(peer) >= 2 else "a peer"


def _sentence(wrong: ssl.SSLError, names: TlsNames) -> str:
    """What OpenSSL found, with the remedy for what people meet."""
    if isinstance(wrong, ssl.SSLCertVerificationError):
        return (
            f"its certificate is not accepted ({wrong.verify_message}); give it one that an authority in "
            "trustStorePath has signed"
        )
    reason = (wrong.reason or "unknown").lower().replace("_", " ")
    remedy = _REMEDIES.get(wrong.reason or "", "check the TLS settings of the client")
    return f"{reason}; {remedy.format(names=names)}"


_REMEDIES: Final = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "{names.need_client_auth}=true asks for a certificate: give the client one",
    "UNSUPPORTED_PROTOCOL": "{names.owner} speaks TLSv1.2 and TLSv1.3: update the client",
    "NO_SHARED_CIPHER": "client and {names.enabled_cipher_suites} have no suite in common",
    "TLSV1_ALERT_UNKNOWN_CA": "the client does not trust the certificate: give it the authority's",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the client does not trust the certificate: give it the authority's",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the client does not accept the certificate",
    "HTTP_REQUEST": "it speaks HTTP without TLS",
}
