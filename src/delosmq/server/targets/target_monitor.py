"""Monitors of targets: each asks one broker how it is, at once and then every check-period.

Source: Artemis, TargetMonitor.
"""

import asyncio
import logging
import ssl
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final

from delosmq.cluster.discovery import DiscoveredNode
from delosmq.model.declared.router import ConnectorSettings
from delosmq.model.errors import BrokerError
from delosmq.model.ids import MonotonicNs
from delosmq.model.phrases import one_line
from delosmq.routers.pool import TargetPool
from delosmq.routers.target import RouterTarget
from delosmq.routers.target_watch import Action, Ask, AskRoute, Open, TargetWatch
from delosmq.server.targets.stomp_probe import FAILURES, StompProbe, tls_context

MOST_DISCOVERED: Final = 100
"""Targets of a pool that takes them from discovery: each is a connection, and who is announced is not authenticated."""
_MOST_LETTERS: Final = 300
_NS_PER_S: Final = 1_000_000_000


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
        self._contexts: dict[tuple[bool, str, bool], ssl.SSLContext | None] = {}
        for target in pool.targets:
            self._context(target)
        self._told: dict[RouterTarget, str] = {}
        self._tasks: dict[RouterTarget, asyncio.Task[None]] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._too_many = False

    def begin(self) -> None:
        """Asks all targets from now on. Called in the running loop."""
        for target in self._pool.targets:
            self._begin(target)

    def find(self, nodes: Sequence[DiscoveredNode]) -> None:
        """The targets are these brokers now; called in the running loop."""
        found = [ConnectorSettings(one.connector, one.host, one.port, tls=one.tls) for one in nodes]
        connectors = list(dict.fromkeys(found))
        known = {one.connector for one in self._pool.targets}
        # Those that are asked already stay, so that a flood of announcements takes none of them away.
        keep = set(sorted(connectors, key=lambda one: one not in known)[:MOST_DISCOVERED])
        if len(keep) < len(connectors) and not self._too_many:
            self._log.warning(
                f"DMQ5517: router '{self._router}': {len(connectors)} brokers are announced, of which "
                f"{MOST_DISCOVERED} are targets; keep others than brokers from sending to its discovery group"
            )
        self._too_many = len(keep) < len(connectors)
        added, removed = self._pool.replace([one for one in connectors if one in keep])
        for target in removed:
            self._told.pop(target, None)
            task = self._tasks.pop(target)
            task.cancel()
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
        for target in added:
            self._begin(target)

    def _context(self, target: RouterTarget) -> ssl.SSLContext | None:
        """Shared by all alike: to make one takes 10 ms, and a flood of announcements would ask for many."""
        one = target.connector
        if one is None:
            return None
        wanted = (one.tls, one.trust_store_path, one.verify_host)
        if wanted not in self._contexts:
            self._contexts[wanted] = tls_context(one)
        return self._contexts[wanted]

    async def close(self) -> None:
        tasks = [*self._tasks.values(), *self._ending]
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, target: RouterTarget) -> None:
        watch = self._watch_local(target) if target.connector is None else self._watch(target)
        self._tasks[target] = asyncio.get_running_loop().create_task(watch)

    async def _watch_local(self, target: RouterTarget) -> None:
        while True:
            self._pool.checked(target, self._pool.node_id, self._local.is_active(), self._local.connection_count())
            self._tell(target)
            await asyncio.sleep(self._period_s)

    async def _watch(self, target: RouterTarget) -> None:
        assert target.connector is not None  # else it is this broker
        watch = TargetWatch(self._pool, target, self._probe, _now())
        probe = StompProbe(target.connector, self._pool.settings, self._context(target))
        try:
            while True:
                await _until(watch.next_timer(), probe, watch)
                action = watch.handle_timer(_now())
                while action is not None:
                    action = await _do(action, probe, watch, self._router)
                self._tell(target)
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
            self._tell_of_twins(target)
        else:
            self._log.warning(
                f"DMQ5516: router '{self._router}': target {target.name} is not ready: "
                f"{one_line(target.trouble, _MOST_LETTERS)}; it is asked again every {self._period_s:g} s"
            )

    def _tell_of_twins(self, target: RouterTarget) -> None:
        """Of two connectors to one broker the first counts; two brokers with one node id look the same from here."""
        twins = [one for one in self._pool.targets if one.ready and one.node_id == target.node_id and one is not target]
        if twins:
            self._log.warning(
                f"DMQ5519: router '{self._router}': targets {twins[0].name} and {target.name} have one node id, "
                f"{target.node_id[:36]}, and count as one: if they are two brokers, one was copied from the other; "
                "let it make a journal of its own"
            )


async def _do(action: Action, probe: StompProbe, watch: TargetWatch, router: str) -> Action:
    """Does one thing that the watch asks for. Returns the next one."""
    try:
        async with asyncio.timeout_at(watch.next_timer() / _NS_PER_S):
            match action:
                case Open():
                    await probe.open()
                    return watch.handle_opened(_now())
                case Ask(attribute):
                    return watch.handle_answer(await probe.ask(attribute), _now())
                case AskRoute(key):
                    return watch.handle_answer(await probe.route(router, key), _now())
                case _:
                    probe.close()
                    return None
    except TimeoutError:
        return watch.handle_timer(max(_now(), watch.next_timer()))
    except Exception as error:  # a host such as a..b is a UnicodeError, and nothing may end the watch
        return watch.handle_failure(_sentence(error), _now())


async def _until(due: MonotonicNs, probe: StompProbe, watch: TargetWatch) -> None:
    """Waits while the connection stays, if there is one."""
    seconds = max(0.0, (due - _now()) / _NS_PER_S)
    if not probe.is_open:
        await asyncio.sleep(seconds)
        return
    try:
        await probe.idle(seconds)
    except Exception as error:
        if watch.handle_failure(_sentence(error), _now()):
            probe.close()


def _now() -> MonotonicNs:
    return MonotonicNs(int(asyncio.get_running_loop().time() * _NS_PER_S))


def _sentence(error: Exception) -> str:
    if isinstance(error, BrokerError):
        return error.message
    return str(error) if isinstance(error, FAILURES) and str(error) else f"{type(error).__name__}: {error}"
