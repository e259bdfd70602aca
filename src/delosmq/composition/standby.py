"""Standby: a broker waits until it may be active. HTTP tells its health, and nothing else of it is open."""

import asyncio
import logging
import socket
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final

from delosmq.config.tls import HTTP_TLS
from delosmq.manage.control.host import Reason
from delosmq.model.errors import InvariantError
from delosmq.model.settings import TlsSettings
from delosmq.server.server_parts import READ_BYTES
from delosmq.server.slow_readers import SlowReaders
from delosmq.server.tls import HandshakeTurns, TlsContexts, TlsLayer
from delosmq.storage.activation import ATTEMPT_EVERY_S, Activation, Attempt, PairState

if TYPE_CHECKING:
    from delosmq.manage.http.server import HttpServer

PASSIVE: Final = "DMQ6032"
_HTTP_BYTES: Final = 1024 * 1024
"""What may wait for all clients together that do not read: every answer is short."""
_STOP_HTTP_S: Final = 1.0

_WHY: Final = {
    PairState.NOT_STARTED: "no primary was active on the shared store yet; start the primary first",
    PairState.ACTIVE: "active is {holder}",
    PairState.PAUSED: "{holder} was stopped cleanly, which pauses the pair; start the primary, or set "
    "failover-on-shutdown for the next time",
    PairState.FAILING_BACK: "a primary is back, and {holder} makes way for it",
}


class Standby:
    """Attempts to become active, again and again, while HTTP answers.

    Args:
        bound: where HTTP listens, None for no HTTP. It stays open; who connects when the waiting ends waits for the
            broker.
        name: of the broker, for the log.
        tls: of HTTP; None for none.
    """

    def __init__(
        self,
        activation: Activation,
        bound: socket.socket | None,
        *,
        name: str,
        logger: logging.Logger,
        tls: TlsSettings | None = None,
    ) -> None:
        self._tls = tls
        self._activation = activation
        self._bound = bound
        self._name = name
        self._logger = logger
        self._thread = ThreadPoolExecutor(1, "delosmq-attempt")
        self._http: HttpServer | None = None
        self._reason = Reason(PASSIVE, "waits; it has not looked at the shared store yet")
        self._told = ""

    async def wait(self, stop: asyncio.Event) -> Attempt | None:
        """Returns when this broker is active, or None when ``stop`` was set before.

        Raises:
            BrokerError: it will never be.
        """
        stopping = asyncio.create_task(stop.wait())
        try:
            attempt = await self._attempt()
            if attempt is None or not attempt.active:
                await self._start_http()
            while attempt is None or not attempt.active:
                await asyncio.wait({stopping}, timeout=ATTEMPT_EVERY_S)
                if stopping.done():
                    return None
                attempt = await self._attempt()
        finally:
            stopping.cancel()
            if self._http is not None:
                await self._http.stop(_STOP_HTTP_S)
            # The process forks next: no thread may be left.
            self._thread.shutdown()
        return attempt

    async def _attempt(self) -> Attempt | None:
        loop = asyncio.get_running_loop()
        try:
            attempt = await loop.run_in_executor(self._thread, self._activation.attempt)
        except OSError as error:
            self._tell(f"the shared store can't be reached: {error}; check its disk or network", warning=True)
            return None
        if not attempt.active:
            self._tell(_WHY[attempt.state].format(holder=attempt.holder or "another broker"))
        return attempt

    def _tell(self, why: str, *, warning: bool = False) -> None:
        """Once for each new reason."""
        sentence = f"broker '{self._name}' is the {self._activation.role.value} and waits: {why}"
        self._reason = Reason(PASSIVE, sentence)
        if why != self._told:
            self._told = why
            self._logger.log(logging.WARNING if warning else logging.INFO, f"{PASSIVE}: {sentence}")

    async def _start_http(self) -> None:
        if self._bound is None:
            return
        from delosmq.manage.http.server import HttpServer
        from delosmq.manage.http.standby import StandbyApi

        api = StandbyApi(self._activation.role.value, lambda: self._reason, self._logger)
        tls = None if self._tls is None else self._make_tls(self._tls)
        self._http = HttpServer(api, self._bound.dup(), SlowReaders(_HTTP_BYTES), tls)
        await self._http.start()

    def _make_tls(self, settings: TlsSettings) -> "partial[TlsLayer]":
        contexts = TlsContexts(HTTP_TLS, settings, self._logger)
        turns = HandshakeTurns(asyncio.get_running_loop())
        return partial(TlsLayer, contexts=contexts, turns=turns, buffer=memoryview(bytearray(READ_BYTES)))


def tell_of_activation(attempt: Attempt, name: str, logger: logging.Logger) -> None:
    """Says in the log that a broker is active, and after whom."""
    if not attempt.active:
        raise InvariantError("DMQ6033", f"broker '{name}' was called active without being so")
    after = f", after {attempt.holder}" if attempt.holder else ""
    logger.info(f"DMQ6034: broker '{name}' is the active one, with epoch {attempt.epoch}{after}")
    if attempt.differences:
        logger.warning(
            f"DMQ6035: the configuration of broker '{name}' differs from that of {attempt.holder} in "
            f"{', '.join(attempt.differences)}; make the two alike, or what clients meet depends on which one is active"
        )
