"""Asks another broker how it is: by management messages over STOMP, which Artemis answers as well."""

import asyncio
import json
import secrets
import ssl
from typing import Final

from delosmq.model.declared.router import ConnectorSettings, TargetPoolSettings
from delosmq.model.errors import ConfigurationError, PeerError
from delosmq.routers.decision import MONITOR_PREFIX
from delosmq.wire.stomp.decoder import StompDecoder, StompFrame
from delosmq.wire.stomp.encoder import encode_frame
from delosmq.wire.stomp.heads import StompLimits
from delosmq.wire.stomp.versions import V12

MANAGEMENT_ADDRESS: Final = "activemq.management"
REPLY_PREFIX: Final = "activemq.router.reply."
"""Of the queue for answers, which comes with its subscription and goes when it is unused: Artemis answers to queues."""
_LIMITS: Final = StompLimits(max_head_bytes=16_384, max_headers=100, max_body_bytes=65_536, max_header_line_bytes=8_192)
_READ_BYTES: Final = 65_536
_SHOWN_LETTERS: Final = 200
"""Of what another broker says."""


class ProbeError(Exception):
    """The other broker does not answer as it should; the text says how."""


def tls_context(connector: ConnectorSettings) -> ssl.SSLContext | None:
    """None for a connector without TLS.

    Raises:
        ConfigurationError: its trust store can't be read.
    """
    if not connector.tls:
        return None
    try:
        context = ssl.create_default_context(cafile=connector.trust_store_path or None)
    except OSError as error:
        raise ConfigurationError(
            "DMQ5504",
            f"connector '{connector.name}' can't speak TLS: its trustStorePath {connector.trust_store_path!r} can't be "
            f"read ({error}); name a PEM file with certificates of authorities",
        ) from None
    context.check_hostname = connector.verify_host
    return context


class StompProbe:
    """One connection to another broker at a time. Calls come one after the other; after an error `close` comes next."""

    def __init__(self, connector: ConnectorSettings, pool: TargetPoolSettings, context: ssl.SSLContext | None) -> None:
        self._connector = connector
        self._pool = pool
        self._context = context
        self._decoder = StompDecoder(_LIMITS)
        self._reply_to = ""
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    @property
    def is_open(self) -> bool:
        return self._writer is not None

    async def open(self) -> None:
        """
        Raises:
            OSError: there is no connection.
            ProbeError: it is not let in.
            PeerError: what comes is no STOMP.
        """
        one, pool = self._connector, self._pool
        self._reader, self._writer = await asyncio.open_connection(one.host, one.port, ssl=self._context)
        self._decoder = StompDecoder(_LIMITS)
        self._decoder.version = V12
        self._reply_to = f"{REPLY_PREFIX}{secrets.token_hex(16)}"
        login = [
            ("accept-version", "1.2"),
            ("host", one.host),
            ("login", pool.username),
            ("passcode", pool.password),
            # Routers let it in: it asks how the broker is.
            ("client-id", f"{MONITOR_PREFIX}{secrets.token_hex(8)}"),
            ("heart-beat", f"{pool.check_period_ms},0"),
        ]
        await self._call("CONNECT", login, "CONNECTED")
        subscription = [
            ("id", "0"),
            ("destination", self._reply_to),
            ("subscription-type", "ANYCAST"),
            ("ack", "auto"),
            ("receipt", "0"),
        ]
        await self._call("SUBSCRIBE", subscription, "RECEIPT")

    async def ask(self, attribute: str) -> object:
        """The attribute of the resource ``broker``.

        Raises:
            ProbeError: it is refused, or the answer is no JSON array of one.
        """
        question = [
            ("destination", MANAGEMENT_ADDRESS),
            ("reply-to", self._reply_to),
            ("_AMQ_ResourceName", "broker"),
            ("_AMQ_Attribute", attribute),
        ]
        succeeded, found = await self._ask(question, b"", attribute)
        if not succeeded:
            raise ProbeError(f"it does not tell {attribute}: {str(found)[:_SHOWN_LETTERS]}")
        return found

    async def route(self, router: str, key: str) -> tuple[object, ...]:
        """The node id of the broker to which its router of that name sends ``key``, and of those that follow if it
        tells them; empty when it would keep or refuse it, or does not tell.

        Raises:
            ProbeError: the answer is no JSON array of one.
        """
        question = [
            ("destination", MANAGEMENT_ADDRESS),
            ("reply-to", self._reply_to),
            ("_AMQ_ResourceName", f"connectionrouter.{router}"),
            ("_AMQ_OperationName", "getTargetAsJSON"),
        ]
        succeeded, found = await self._ask(question, json.dumps([key]).encode(), "getTargetAsJSON")
        try:
            target = json.loads(found) if succeeded and isinstance(found, str) else None
        except (ValueError, RecursionError):
            return ()
        if not isinstance(target, dict) or target.get("local") is not False:
            return ()
        onward = target.get("onward", [])
        return (target.get("nodeID"), *(onward if isinstance(onward, list) else []))

    async def _ask(self, question: list[tuple[str, str]], body: bytes, what: str) -> tuple[bool, object]:
        """Whether it succeeded, and what it answers."""
        answer = await self._call("SEND", question, "MESSAGE", body)
        try:
            found = json.loads(answer.body)
        except (ValueError, RecursionError):
            raise ProbeError(f"its answer to {what} is no JSON") from None
        if not isinstance(found, list) or len(found) != 1:
            raise ProbeError(f"its answer to {what} is no array of one")
        return answer.headers.get("_AMQ_OperationSucceeded") == "true", found[0]

    async def idle(self, seconds: float) -> None:
        """Waits so long, while the connection stays.

        Raises:
            ProbeError: it is closed, or something comes.
        """
        try:
            async with asyncio.timeout(seconds):
                frame = await self._next()
        except TimeoutError:
            return
        raise _not_asked_for(frame)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    async def _call(self, command: str, headers: list[tuple[str, str]], wanted: str, body: bytes = b"") -> StompFrame:
        if self._writer is None:
            raise ProbeError("it is not connected")
        self._writer.write(encode_frame(command, headers, body, V12))
        await self._writer.drain()
        frame = await self._next()
        if frame.command != wanted:
            # To read on would hold up the loop for as long as the other broker likes.
            raise _not_asked_for(frame)
        return frame

    async def _next(self) -> StompFrame:
        if self._reader is None:
            raise ProbeError("it is not connected")
        frame = self._decoder.next_frame()
        while frame is None:
            chunk = await self._reader.read(_READ_BYTES)
            if not chunk:
                raise ProbeError("it has closed the connection")
            frame = self._decoder.next_frame(chunk)
        if frame.command == "ERROR":
            raise ProbeError(f"it says: {frame.headers.get('message', '')[:_SHOWN_LETTERS]}")
        return frame


def _not_asked_for(frame: StompFrame) -> ProbeError:
    return ProbeError(f"it sends what it was not asked for: {frame.command[:_SHOWN_LETTERS]}")


FAILURES: Final = (OSError, ProbeError, PeerError, TimeoutError)
"""What a call of a probe may end with."""
