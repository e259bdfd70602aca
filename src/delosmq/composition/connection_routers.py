"""The connection routers of a running broker: what they need of the loop, and their lines in the log."""

import asyncio
import logging
from collections.abc import Mapping
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from delosmq.engine.api import EngineEvents
from delosmq.model.declared.router import ROUTER_POLICIES
from delosmq.model.errors import ConfigurationError
from delosmq.model.ids import MonotonicNs
from delosmq.model.ports import Random
from delosmq.model.settings import BrokerSettings, ConnectionRouterSettings
from delosmq.routers.configured import make_routers
from delosmq.routers.decision import ConnectionRouter, Decision, Outcome
from delosmq.routers.logins import RoutedLogins, RouterListener
from delosmq.routers.policy import POLICIES, MakePolicy
from delosmq.server.clock import Appointment, ServerClock
from delosmq.server.discovery.discovery_group import DiscoveryGroup
from delosmq.server.peer_log import PeerLog
from delosmq.server.targets.target_monitor import LocalBroker, TargetMonitors
from delosmq.sessions.login import LoginPort, LoginRequest

_SHOWN_LETTERS: Final = 100
"""Of what a peer may have made up."""


class ConnectionRouters:
    """Makes the routers that broker.xml names, and has logins asked again when their time comes.

    Raises:
        ConfigurationError: a policy of another package can't be used.
    """

    def __init__(self, settings: BrokerSettings, clock: ServerClock, random: Random) -> None:
        self.by_name: dict[str, ConnectionRouter] = make_routers(
            settings.connection_routers,
            cluster_user=settings.cluster_user,
            random_start=lambda: int(random.fraction() * (1 << 31)),
            plugged_in=_plugged_in(settings.connection_routers),
        )
        self._clock = clock
        self._logins: RoutedLogins | None = None
        self._timer: Appointment | None = None
        self._monitors: list[TargetMonitors] = []
        self._discovered: list[tuple[str, TargetMonitors]] = []

    def begin(
        self, first: LoginPort, local: LocalBroker, node_id: str, log: logging.Logger, *, records: EngineEvents
    ) -> LoginPort:
        """Asks targets from now on, and gives the login port for all sessions. Called in the running loop.

        Args:
            first: decides before the routers do.
            local, node_id: this broker as a target, and its node id.
            records: of decisions, on `delosmq.events`.

        Raises:
            ConfigurationError: a connector can't speak TLS as it is to.
        """
        if not self.by_name:
            return first
        for router in self.by_name.values():
            if router.pool is not None:
                router.pool.begin(node_id)
                probe = "" if router.policy is None else router.policy.probe
                monitors = TargetMonitors(router.name, router.pool, probe, local, log)
                self._monitors.append(monitors)
                if router.pool.settings.discovery_group:
                    self._discovered.append((router.pool.settings.discovery_group, monitors))
        listener = RouterLog(PeerLog(log), records)
        self._logins = RoutedLogins(first, self.by_name, self._clock, listener=listener, wake_at=self._wake_at)
        for monitors in self._monitors:
            monitors.begin()
        return self._logins

    def follow(self, groups: Mapping[str, DiscoveryGroup]) -> None:
        """Pools that name a discovery group have the brokers that it finds as targets, from now on."""
        for name, monitors in self._discovered:
            group = groups.get(name)
            if group is not None:
                group.on_change.append(partial(_find, group, monitors))
                _find(group, monitors)

    def _wake_at(self, due: MonotonicNs) -> None:
        self._cancel()
        self._timer = self._clock.call_at(asyncio.get_running_loop(), due, self._wake)

    def _wake(self) -> None:
        self._timer = None
        if self._logins is not None:
            self._logins.handle_timer(self._clock.monotonic_ns())

    async def close(self) -> None:
        """Asks targets no more."""
        self._cancel()
        for monitors in self._monitors:
            await monitors.close()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class RouterLog(RouterListener):
    """One line in the log, and one event record, for each decision."""

    def __init__(self, log: PeerLog, records: EngineEvents) -> None:
        self._log = log
        self._records = records

    def decided(self, router: ConnectionRouter, request: LoginRequest, decision: Decision) -> None:
        target = decision.target
        where = "" if target is None else f" to {target.name}"
        self._log.info(
            request.source(),
            f"DMQ5513: router '{router.name}': {decision.outcome.value}{where}, because {decision.because.value} "
            f"[{_key_of(decision)}peer {request.peer}, user '{request.login.user}', acceptor '{request.acceptor}']",
        )

        name = decision.outcome.value if target is None else target.name
        redirected = decision.outcome is Outcome.REDIRECT
        cause = f"{router.name}: {name}, because {decision.because.value}"
        self._records.connection_routed(redirected, request.login.user, request.client_id, cause)

    def looped(self, router: ConnectionRouter, request: LoginRequest, decision: Decision) -> None:
        target = decision.target
        where = "" if target is None else f" to {target.name}"
        self._log.warning(
            request.source(),
            f"DMQ5514: router '{router.name}' has redirected connections with one key and client id, or of one host, "
            f"more than five times in ten seconds, now{where}: either they are many, or that broker sends them back; "
            "it is asked whether it does "
            f"[{_key_of(decision)}peer {request.peer}, user '{request.login.user}', acceptor '{request.acceptor}']",
        )

    def circled(self, router: ConnectionRouter, request: LoginRequest, decision: Decision) -> None:
        target = decision.target
        where = "" if target is None else target.name
        self._log.warning(
            request.source(),
            f"DMQ5518: router '{router.name}' refuses a connection that would go in a circle: {where} says that it "
            "sends this key back here; give the targets acceptors without router=, or all brokers the same pool "
            "and policy with local-target-enabled "
            f"[{_key_of(decision)}peer {request.peer}, user '{request.login.user}', acceptor '{request.acceptor}']",
        )
        cause = f"{router.name}: refused, because {where} sends it back"
        self._records.connection_routed(False, request.login.user, request.client_id, cause)


def _find(group: DiscoveryGroup, monitors: TargetMonitors) -> None:
    monitors.find(group.nodes)


def _key_of(decision: Decision) -> str:
    key, transformed = decision.key[:_SHOWN_LETTERS], decision.transformed[:_SHOWN_LETTERS]
    if not key:
        return ""
    return f"key '{key}', " if key == transformed else f"key '{key}', transformed '{transformed}', "


def _plugged_in(settings: tuple[ConnectionRouterSettings, ...]) -> dict[str, MakePolicy]:
    """The policies of other packages that routers name."""
    named = {one.policy.name for one in settings if one.policy is not None} - POLICIES.keys()
    if not named:  # to look for packages takes milliseconds
        return {}
    return {one.name: _load(one) for one in entry_points(group=ROUTER_POLICIES) if one.name in named}


def _load(one: EntryPoint) -> MakePolicy:
    try:
        loaded: MakePolicy = one.load()
    except Exception as error:
        raise ConfigurationError(
            "DMQ5503",
            f"policy {one.name!r} can't be loaded from {one.value}: {type(error).__name__}: {error}; mend or remove "
            "the package that brings it",
        ) from error
    return loaded
