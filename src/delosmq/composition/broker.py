"""One broker, with its store, listeners and HTTP interface."""

import asyncio
import logging
import secrets
import socket
import uuid
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from delosmq.composition.activation_watch import ActivationWatch
from delosmq.composition.connection_routers import ConnectionRouters
from delosmq.composition.discovery_groups import DiscoveryGroups
from delosmq.composition.event_logs import DroppedLog, engine_logs
from delosmq.composition.garbage_collection import not_collecting
from delosmq.composition.protocols import PROTOCOLS, with_addresses_of
from delosmq.composition.router_caches import restore_caches
from delosmq.config.reload import ReloadPlan, plan_reload
from delosmq.config.tls import HTTP_TLS
from delosmq.engine.api import EngineBroker, EngineEvents, events_for
from delosmq.manage.control.broker import BrokerControl
from delosmq.manage.control.host import Host, Reason
from delosmq.manage.control.queue_info import notices_about
from delosmq.manage.control.routers import RouterControl
from delosmq.manage.messages.management_service import ManagementService
from delosmq.manage.messages.resources import controls_of, resource_kinds
from delosmq.manage.messages.router_resource import router_kind
from delosmq.model.conversion import Conversions
from delosmq.model.errors import BrokerError, InvariantError, PeerError, StorageError
from delosmq.model.ids import MonotonicNs
from delosmq.model.phrases import counted, in_groups
from delosmq.model.ports import Random
from delosmq.model.protocol_names import SERVED_PROTOCOLS
from delosmq.model.settings import BrokerSettings, WebBind
from delosmq.security.access import AccessControl
from delosmq.security.certificates import CertificateUsers
from delosmq.server.client_audit import ClientAudit
from delosmq.server.clock import Appointment
from delosmq.server.connection import Connection
from delosmq.server.dead_letter_log import DeadLetterLog
from delosmq.server.listener import Listener, Server, bind, local_acceptor
from delosmq.server.passwords import PasswordChecks
from delosmq.server.peer_log import PeerLog
from delosmq.server.server_parts import Instruments, ServerParts
from delosmq.server.slow_readers import SlowReaders
from delosmq.server.targets.target_monitor import LocalBroker
from delosmq.server.ticker import GateEvents, Ticker
from delosmq.server.tls import TlsContexts, TlsLayer
from delosmq.sessions.host import SessionServices
from delosmq.sessions.login import ADMIT_ALL, LoginPort
from delosmq.sessions.outbox import Gate
from delosmq.storage.activation import Activation, LeaseClock, Role
from delosmq.storage.port import ServedStore
from delosmq.version import __version__

if TYPE_CHECKING:
    from delosmq.manage.http.server import HttpServer

START_SYNC_TIMEOUT_S: Final = 60.0
LEASE_CHECK_EVERY_NS: Final = 60_000_000_000
_NODE_ID_BYTES: Final = 16
_NAMES_PER_LINE: Final = 20
"""Of the log, for names that an operator wrote."""


class SystemRandom(Random):
    """Randomness of the operating system."""

    def token(self, size_bytes: int) -> str:
        return secrets.token_urlsafe(size_bytes)

    def fraction(self) -> float:
        return secrets.randbits(53) / (1 << 53)


@dataclass(frozen=True)
class Accounts:
    """Who may log in: user -> stored password, user -> roles.

    Attributes:
        vouched: user -> password in plain text that counts as verified, as this process made it.
        certificates: users that certificates of TLS clients name; None when they name none.
    """

    users: dict[str, str]
    roles: dict[str, frozenset[str]]
    vouched: dict[str, str] = field(default_factory=dict)
    certificates: CertificateUsers | None = None


def _access_of(accounts: Accounts, settings: BrokerSettings) -> AccessControl:
    access = AccessControl(
        accounts.users,
        accounts.roles,
        settings.security_settings,
        cache_key=secrets.token_bytes(32),
        wildcards=settings.wildcards,
        certificates=accounts.certificates,
    )
    for user, password in accounts.vouched.items():
        access.trust(user, password)
    return access


class ComposedBroker(Host, LocalBroker):
    """A broker with its store, listeners and HTTP interface, on the running loop.

    Args:
        instruments: None for those of the machine.
        local_name: by which clients of this process find it; "" when they don't.
        ports: False opens none for the acceptors.
        activation: of a broker that shares its store: it is the active one, and looks whether it is so still.
        http_socket: bound already; None binds one.

    Raises:
        ConfigurationError: a connection router can't be made.

    Attributes:
        connection_routers: those of broker.xml, by name in `by_name`.
        logins: decides which user with a right password is served, by protocols and HTTP; to be set before the start.
        management: carries out management messages; resources are added before the start.
        failed: set when the broker can't go on (a failing store, a broken invariant); ``failure`` says why.
        failback_wanted: set when a primary waits for this backup to make way.
    """

    def __init__(
        self,
        settings: BrokerSettings,
        accounts: Accounts,
        store: ServedStore,
        *,
        http: WebBind | None,
        logger: logging.Logger,
        events: EngineEvents | None = None,
        instruments: Instruments | None = None,
        local_name: str = "",
        ports: bool = True,
        activation: Activation | None = None,
        http_socket: socket.socket | None = None,
    ) -> None:
        self.settings = settings
        self.logger = logger
        self.store = store
        self._instruments = Instruments() if instruments is None else instruments
        self.clock = self._instruments.clock
        self.random = SystemRandom()
        self._protocols = tuple(PROTOCOLS[name](settings.acceptors) for name in SERVED_PROTOCOLS)
        self.conversions = Conversions(
            {one.family: one.conversion for one in self._protocols if one.conversion is not None}
        )
        self._dead_letter_log = DeadLetterLog()
        self._client_audit = ClientAudit()
        listeners = [self._dead_letter_log, self._client_audit, *engine_logs(logger)]
        listeners += [protocol.events for protocol in self._protocols]
        self.broker = EngineBroker(
            with_addresses_of(self._protocols, settings),
            store,
            clock=self.clock,
            random=self.random,
            events=events_for(listeners if events is None else [*listeners, events]),
            conversions=self.conversions,
        )
        self.broker.dropped.listener = DroppedLog(logger)
        self.gate = Gate()
        self.access = _access_of(accounts, settings)
        self.logins: LoginPort = ADMIT_ALL
        self.management = ManagementService(
            self.broker, self, self.gate, access=self.access, conversions=self.conversions, logger=logger
        )
        self.connection_routers = ConnectionRouters(settings, self.clock, self.random)
        self.discovery = DiscoveryGroups(settings, self.clock, logger)
        self._routers: RouterControl | None = None
        self.failed = asyncio.Event()
        self.failure: BaseException | None = None
        self._passing_node_id = secrets.token_bytes(_NODE_ID_BYTES)
        self._events = GateEvents(self.broker, self.gate)
        self._local_name = local_name
        self._acceptors = settings.acceptors if ports else ()
        self._http_bind = http
        self._http_socket = http_socket
        self._http: HttpServer | None = None
        self._http_tls: partial[TlsLayer] | None = None
        self._slow_readers: SlowReaders | None = None
        self._ticker: Ticker | None = None
        self._passwords: PasswordChecks | None = None
        self._server: Server | None = None
        self._peer_log: PeerLog | None = None
        self._lease_timer: Appointment | None = None
        self._activation = activation
        self._watch: ActivationWatch | None = None
        self.failback_wanted = asyncio.Event()
        self._draining = False

    # -- start ---------------------------------------------------------------------------------------------------

    def recover(self) -> None:
        """Reads the store and makes durable what the start itself decided. Blocks.

        Raises:
            StorageError: the store is damaged, foreign or can't be written.
        """
        self.store.attach(self._events, self.broker.state)
        with not_collecting():
            position = self.broker.start()
        self.store.wait_synced(position, START_SYNC_TIMEOUT_S)
        self.gate.on_synced(position)
        queues = self.broker.queues.values()
        self.logger.info(
            f"DMQ6012: recovered {counted(sum(queue.message_count for queue in queues), 'message')} in "
            f"{counted(len(queues), 'queue')}"
        )
        for queue in queues:
            for notice in () if queue.internal else notices_about(queue):
                self.logger.warning(f"DMQ6162: {notice}")

    async def start(self) -> None:
        """Serves the protocols; the HTTP interface follows with `start_http`.

        Raises:
            LimitError: a port or the name within the process can't be had.
        """
        loop = asyncio.get_running_loop()
        self._ticker = self._instruments.make_ticker(
            loop, self.broker, self.store, clock=self.clock, on_fatal=self._on_fatal
        )
        self._events.attach(self._ticker)
        status = BrokerControl(self.broker, self, clock=self.clock, version=__version__)
        controls = controls_of(self.broker, status, self.access, self.conversions)
        self._routers = RouterControl(self.connection_routers.by_name, self.access, self.broker)
        self.management.kinds += [*resource_kinds(self.broker, controls), router_kind(self._routers)]
        routers = self.connection_routers.by_name.values()
        restore_caches(routers, self.broker, self.gate, self.logger, self.clock.monotonic_ns())
        services = SessionServices(
            self.broker,
            self.gate,
            clock=self.clock,
            access=self.access,
            conversions=self.conversions,
            server_name=f"DelosMQ/{__version__}",
            logins=self.connection_routers.begin(
                self.logins, self, self.node_id(), self.logger, records=self.broker.event_records
            ),
            management=self.management,
            node_id=self.store.node_id or self._passing_node_id,
        )
        passwords = self._passwords = PasswordChecks(loop)
        parts = ServerParts(
            loop,
            services,
            self._ticker,
            passwords=passwords,
            protocols=self._protocols,
            log=self.logger,
            tap=self._instruments.tap,
        )
        self._server = Server(parts)
        self._peer_log = parts.peer_log
        self._dead_letter_log.begin(self.logger)
        self._client_audit.begin(self.logger)
        self._slow_readers = parts.slow_readers
        self._server.bind(self._acceptors)
        if self._local_name:
            self._server.listen_in_process(local_acceptor(self.settings.acceptors), self._local_name)
        if self._http_bind is not None and self._http_bind.tls is not None:
            contexts = TlsContexts(HTTP_TLS, self._http_bind.tls, self.logger)
            self._http_tls = partial(TlsLayer, contexts=contexts, turns=parts.handshakes, buffer=parts.buffer)
        if self._http_bind is not None and self._http_socket is None:
            # Before the first client is served: a port in use must stop the start, not a running broker.
            self._http_socket = bind(self._http_bind.host, self._http_bind.port, "the HTTP interface")
        if self._http_socket is not None:
            parts.http_port = self._http_socket.getsockname()[1]
        self.discovery.listen(self.node_id())
        self.connection_routers.follow(self.discovery.by_name)
        self._watch_activation()
        self._ticker.start()
        await self._server.start()
        self.discovery.announce(self.node_id())
        self._look_at_leases_later(loop)
        self._tell_acceptors(self._server)

    def _tell_acceptors(self, server: Server) -> None:
        for listener in server.listeners:
            acceptor = listener.acceptor
            if not listener.port:
                continue
            self.logger.info(
                f"DMQ6010: acceptor '{acceptor.name}' listens on {acceptor.host}:{listener.port} for "
                f"{', '.join(acceptor.protocols)}{'' if acceptor.tls is None else ' with TLS'}"
            )

    def _watch_activation(self) -> None:
        if self._activation is None:
            return
        watch = ActivationWatch(
            self._activation,
            LeaseClock(),
            self.logger,
            on_verified=self.ticker.resume,
            on_superseded=self.ticker.fatal,
        )
        self._watch = watch
        self.failback_wanted = watch.failback_wanted
        self.store.lease = watch.lease
        watch.start()

    async def start_http(self) -> None:
        """Serves HTTP, if it is wanted. Its libraries are loaded here, so that clients are served before."""
        if self._http_socket is None or self._passwords is None or self._slow_readers is None:
            return
        await asyncio.to_thread(_load_http)
        from delosmq.manage.http.app import HttpApi
        from delosmq.manage.http.server import HttpServer

        app = HttpApi(
            self.broker,
            self,
            self.gate,
            access=self.access,
            passwords=self._passwords,
            conversions=self.conversions,
            version=__version__,
            logger=self.logger,
            logins=self.logins,
            routers=self._routers,
        )
        self._http = HttpServer(app, self._http_socket, self._slow_readers, self._http_tls)
        await self._http.start()
        self.logger.info(f"DMQ6011: the HTTP interface listens on {self.http_url}")

    @property
    def ticker(self) -> Ticker:
        """The pulse of a broker that has started."""
        if self._ticker is None:
            raise InvariantError("DMQ6013", "the broker was asked for its ticker before it started")
        return self._ticker

    @property
    def listeners(self) -> list[Listener]:
        """One for each acceptor; none before the start."""
        return [] if self._server is None else self._server.listeners

    @property
    def connections(self) -> list[Connection]:
        """All there are, of all acceptors."""
        return [connection for listener in self.listeners for connection in listener.connections]

    @property
    def ports(self) -> dict[str, int]:
        """The port of each acceptor by its name."""
        return {listener.acceptor.name: listener.port for listener in self.listeners if listener.port}

    @property
    def http_url(self) -> str:
        """Base of the HTTP interface; "" while it is not up."""
        if self._http is None or self._http_bind is None:
            return ""
        return replace(self._http_bind, port=self._http.port).url

    # -- the port of management ----------------------------------------------------------------------------------

    def changed(self) -> None:
        if self._ticker is not None:
            self._ticker.schedule()

    def node_id(self) -> str:
        """As Artemis writes it; of a broker that keeps nothing one of its own for each start."""
        return str(uuid.UUID(bytes=self.store.node_id or self._passing_node_id))

    def is_active(self) -> bool:
        return not self.troubles()

    def connection_count(self) -> int:
        return len(self.connections)

    def troubles(self) -> list[Reason]:
        if self.failure is not None:
            return [Reason("DMQ6003", f"the broker has failed and is stopping: {self.failure}")]
        if self._draining:
            return [Reason("DMQ6004", "the broker is stopping; connect to another one")]
        if self._ticker is None:
            return [Reason("DMQ6005", "the broker is starting; try again in a moment")]
        if trouble := self.store.trouble():
            return [Reason("DMQ6041", f"nothing is confirmed for now: {trouble}; it is tried again all the while")]
        return []

    def role(self) -> str:
        return (Role.ALONE if self._activation is None else self._activation.role).value

    def broken(self, error: InvariantError) -> None:
        if self._ticker is not None:
            self._ticker.fatal(error)

    def reload(
        self,
        settings: BrokerSettings,
        users: dict[str, str],
        roles: dict[str, frozenset[str]],
        certificates: CertificateUsers | None = None,
    ) -> ReloadPlan:
        """Takes over what can change while the broker runs, and says in the log what became of the rest.

        Args:
            settings, users, roles, certificates: as the files say now.
        """
        plan = plan_reload(self.settings, settings)
        self.settings = plan.settings
        self.access.reload(users, roles, plan.settings.security_settings, certificates)
        if self._server is not None:
            self._server.rights_changed()
            self._server.bound(plan.settings.global_max_size_bytes)
        refused = self.broker.reload(with_addresses_of(self._protocols, plan.settings))
        self.changed()
        for sentence in refused:
            self.logger.warning(f"DMQ6150: the configuration was reloaded, but {sentence}")
        for names in in_groups(plan.waiting, _NAMES_PER_LINE):
            self.logger.warning(
                f"DMQ6151: these changes wait for a restart, and what was in force stays: {'; '.join(names)}"
            )
        for names in in_groups(plan.removed, _NAMES_PER_LINE):
            self.logger.warning(
                f"DMQ6152: not in broker.xml any more, and still there with all they hold: {', '.join(names)}; "
                "delete them with `delosmq queue delete` and `delosmq address delete`"
            )
        return plan

    # -- end -----------------------------------------------------------------------------------------------------

    def _on_fatal(self, error: BaseException) -> None:
        self.failure = error
        self.broker.log.stop()
        self.logger.critical(f"DMQ6006: the broker can't go on and stops confirming: {error}", exc_info=error)
        self.failed.set()

    def _on_lease_timer(self) -> None:
        self.broker.lease_groups.end_overdue()
        self.changed()
        self._look_at_leases_later(asyncio.get_running_loop())

    def _look_at_leases_later(self, loop: asyncio.AbstractEventLoop) -> None:
        due = MonotonicNs(self.clock.monotonic_ns() + LEASE_CHECK_EVERY_NS)
        self._lease_timer = self.clock.call_at(loop, due, self._on_lease_timer)

    def break_off(self, reason: BrokerError) -> None:
        """Nothing is confirmed, told or written any more, as if the process were killed; `failed` is set."""
        self.failure = reason
        self.broker.log.stop()
        self.ticker.stop()
        self.failed.set()

    async def stop(self, drain_s: float) -> None:
        """Stops accepting, lets peers have what was promised for at most ``drain_s``, syncs and closes the store.

        Raises:
            StorageError: not everything could be synced.
        """
        self._draining = True
        self.discovery.close()
        await self.connection_routers.close()
        if self._lease_timer is not None:
            self._lease_timer.cancel()
        if self._http is not None:
            await self._http.stop(drain_s)
        elif self._http_socket is not None:
            self._http_socket.close()
        if self._server is not None:
            reason = PeerError("DMQ6008", "the broker is stopping; connect again later or to another broker")
            await self._server.drain(reason, drain_s)
        if self._peer_log is not None:
            self._peer_log.close()
            self._dead_letter_log.close()
            self._client_audit.close()
        if self._ticker is not None:
            self._ticker.stop()
        if self.failure is None:
            self.broker.event_records.flush()
        if self._watch is not None:
            await self._watch.stop()
        if self.failure is not None:
            # What failed can't be made good by closing it well.
            with suppress(StorageError):
                self.store.close(0.0)
            return
        self.store.close(max(drain_s, 1.0))


def _load_http() -> None:
    import delosmq.manage.http.app
    import delosmq.manage.http.server  # noqa: F401


def failure_sentence(failure: BaseException) -> str:
    """One sentence for people about what stopped a broker."""
    return str(failure) if isinstance(failure, BrokerError) else f"DMQ6009: {type(failure).__name__}: {failure}"
