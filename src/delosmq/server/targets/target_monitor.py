"""Monitors of targets: each asks one broker how it is, at once and then every check-period.

Source: Artemis, TargetMonitor.
"""

import asyncio
import logging
import ssl
from abc import ABC, abstractmethod
from typing import Final

from delosmq.model.errors import BrokerError
from delosmq.model.phrases import one_line
from delosmq.routers.pool import TargetPool
from delosmq.routers.target import RouterTarget
from delosmq.server.targets.stomp_probe import FAILURES, ProbeError, StompProbe, tls_context

CHECK_TIMEOUT_S: Final = 3.0
"""For a connection with its login, and for each check."""
_MOST_LETTERS: Final = 300
_LONGEST_NODE_ID: Final = 200


class LocalBroker(ABC):
    """This broker as one of the targets."""

    @abstractmethod
    def is_active(self) -> bool:
        """Whether it takes connections."""

    @abstractmethod
    def connection_count(self) -> int:
        """How many it has."""


class TargetMonitors:
    """The monitors of one pool.

    Raises:
        ConfigurationError: a connector can't speak TLS as it is to.
    """

    def __init__(self, router: str, pool: TargetPool, probe: str, local: LocalBroker, log: logging.Logger) -> None:
        self._router = router
        self._pool = pool
        self._probe = probe
        self._local = local
        self._log = log
        self._period_s = pool.settings.check_period_ms / 1_000
        self._contexts = {one.connector: tls_context(one.connector) for one in pool.targets if one.connector}
        self._told: dict[RouterTarget, str] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self) -> None:
        """Asks all targets from now on. Called in the running loop."""
        for target in self._pool.targets:
            watch = self._watch_local(target) if target.connector is None else self._watch(target)
            self._tasks.append(asyncio.get_running_loop().create_task(watch))

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def _watch_local(self, target: RouterTarget) -> None:
        while True:
            self._pool.checked(target, self._pool.node_id, self._local.is_active(), self._local.connection_count())
            self._tell(target)
            await asyncio.sleep(self._period_s)

    async def _watch(self, target: RouterTarget) -> None:
        assert target.connector is not None  # else it is this broker
        context = self._contexts[target.connector]
        while True:
            try:
                await self._check_while_connected(target, context)
            except FAILURES as error:
                self._pool.failed(target, _sentence(error))
                self._tell(target)
            await asyncio.sleep(self._period_s)

    async def _check_while_connected(self, target: RouterTarget, context: ssl.SSLContext | None) -> None:
        assert target.connector is not None
        probe = StompProbe(target.connector, self._pool.settings, context)
        try:
            async with asyncio.timeout(CHECK_TIMEOUT_S):
                await probe.open()
                node_id = await probe.ask("NodeID")
            if not isinstance(node_id, str) or not 0 < len(node_id) <= _LONGEST_NODE_ID:
                raise ProbeError("its NodeID is no text")
            while True:
                async with asyncio.timeout(CHECK_TIMEOUT_S):
                    active = await probe.ask("Active")
                    count = await probe.ask(self._probe) if self._probe else None
                if not isinstance(active, bool):
                    raise ProbeError("its Active is neither true nor false")
                if count is not None and (not isinstance(count, int) or isinstance(count, bool) or count < 0):
                    raise ProbeError(f"its {self._probe} is no whole number")
                self._pool.checked(target, node_id, active, count)
                self._tell(target)
                await probe.idle(self._period_s)
        finally:
            probe.close()

    def _tell(self, target: RouterTarget) -> None:
        """A line in the log when something is new."""
        if self._told.get(target) == target.trouble:
            return
        self._told[target] = target.trouble
        if target.ready:
            self._log.info(
                f"DMQ5515: router '{self._router}': target {target.name} is ready, node id {target.node_id[:36]}"
            )
        else:
            self._log.warning(
                f"DMQ5516: router '{self._router}': target {target.name} is not ready: "
                f"{one_line(target.trouble, _MOST_LETTERS)}; it is asked again every {self._period_s:g} s"
            )


def _sentence(error: BaseException) -> str:
    if isinstance(error, TimeoutError) and not str(error):
        return f"no answer within {CHECK_TIMEOUT_S:g} s"
    return error.message if isinstance(error, BrokerError) else str(error) or type(error).__name__
