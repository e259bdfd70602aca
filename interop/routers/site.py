"""The brokers of a program of connection routers, as processes, and a look at what they have."""

from __future__ import annotations

import base64
import contextlib
import json
import secrets
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from delosmq.config.properties import Entry, write_properties
from delosmq.security.passwords import SALT_BYTES, hash_password
from delosmq.testing import BrokerPair, BrokerProcess
from interop.routers.clients import HOST, PATIENCE_S, Login, NotShown, RoutedClient

ADMIN: Final = Login("admin", "interop-passcode")
GUEST: Final = Login("guest", "interop-guest")
OTHERS: Final = tuple(Login(f"user{number}", f"interop-{number}") for number in range(4))
CLUSTER: Final = Login("cluster", "interop-cluster")
"""Asks targets where a pool names nobody."""
USERS: Final = (ADMIN, GUEST, CLUSTER, *OTHERS)
GROUP: Final = "231.7.7.7"
_ACCEPTOR: Final = "?protocols=OPENWIRE,CORE</acceptor>"
_BOTH: Final = "?protocols=OPENWIRE,STOMP</acceptor>"
_CHECK_PERIOD: Final = "<check-period>200</check-period>"
_LOOK_EVERY_S: Final = 0.02
_NOT_FOUND: Final = 404


class Site:
    """Brokers that are made, configured and started by a program, and end with it.

    Attributes:
        client: who connects to them.
        directory: of all of them.
        group_port: by which brokers find each other, by UDP on the loopback interface.
    """

    def __init__(self, directory: Path, client: RoutedClient, group_port: int) -> None:
        self.directory = directory
        self.client = client
        self.group_port = group_port
        self._brokers: list[BrokerProcess] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for broker in self._brokers:
            broker.end()

    # -- making ----------------------------------------------------------------------------------------------------

    def broker(self, name: str) -> BrokerProcess:
        """One whose acceptor for OpenWire takes STOMP as well, with all the users; not started."""
        broker = BrokerProcess(self.directory / name, password=ADMIN.password)
        etc = broker.directory / "etc"
        stored = [Entry(one.user, hash_password(one.password, secrets.token_bytes(SALT_BYTES))) for one in USERS]
        write_properties(etc / "artemis-users.properties", stored, "")
        write_properties(etc / "artemis-roles.properties", [Entry("amq", ",".join(one.user for one in USERS))], "")
        broker.configure((_ACCEPTOR, _BOTH))
        self._brokers.append(broker)
        return broker

    def pair(self) -> BrokerPair:
        """A primary and a backup on one directory, with acceptors as `broker` has; not started."""
        pair = BrokerPair(self.directory, [(_ACCEPTOR, _BOTH)], password=ADMIN.password)
        self._brokers += [pair.primary, pair.backup]
        return pair

    def announce(self, broker: BrokerProcess) -> None:
        """Has others find it."""
        connector = f'<connector name="me">tcp://{HOST}:{broker.openwire_port}</connector>'
        group = f"{self.group()}<broadcast-period>100</broadcast-period><connector-ref>me</connector-ref>"
        broker.configure(
            ("<acceptors>", f"<connectors>{connector}</connectors><acceptors>"),
            (
                "<security-settings>",
                f'<broadcast-groups><broadcast-group name="bg">{group}</broadcast-group></broadcast-groups>'
                "<security-settings>",
            ),
        )

    def group(self) -> str:
        """Where brokers are announced and looked for, as elements of a broadcast group or a discovery group."""
        place = f"<group-address>{GROUP}</group-address><group-port>{self.group_port}</group-port>"
        return f"<local-bind-address>{HOST}</local-bind-address>{place}"

    def route(self, broker: BrokerProcess, router: str, targets: Mapping[str, int] | None = None) -> None:
        """Puts a router on the acceptor.

        Args:
            router: the element; in its pool ``{targets}`` becomes the static connectors, and ``{found}`` the discovery
                group that finds who is announced.
            targets: the ports of the pool, by name.
        """
        named = targets or {}
        connectors = "".join(f'<connector name="{one}">tcp://{HOST}:{port}</connector>' for one, port in named.items())
        refs = "".join(f"<connector-ref>{one}</connector-ref>" for one in named)
        element = router.replace("{targets}", f"{_CHECK_PERIOD}<static-connectors>{refs}</static-connectors>")
        element = element.replace("{found}", f'{_CHECK_PERIOD}<discovery-group-ref discovery-group-name="dg"/>')
        group = f'<discovery-group name="dg">{self.group()}</discovery-group>' if "{found}" in router else ""
        if connectors:
            broker.configure(("<acceptors>", f"<connectors>{connectors}</connectors><acceptors>"))
        broker.configure(
            ("?protocols=OPENWIRE,STOMP<", "?protocols=OPENWIRE,STOMP;router=r<"),
            (
                "<security-settings>",
                f"<cluster-user>{CLUSTER.user}</cluster-user><cluster-password>{CLUSTER.password}</cluster-password>"
                f"<discovery-groups>{group}</discovery-groups><connection-routers>{element}</connection-routers>"
                "<security-settings>",
            ),
        )

    def start(self, *brokers: BrokerProcess) -> None:
        """All at the same time; returns when each is ready."""
        for broker in brokers:
            broker.launch()
        for broker in brokers:
            broker.await_ready()

    # -- looking ---------------------------------------------------------------------------------------------------

    def wait_ready(self, broker: BrokerProcess, count: int) -> None:
        """Returns when so many targets of its router are ready, not more. Raises NotShown."""
        deadline = time.monotonic() + PATIENCE_S
        while (router := _ask(broker, "/api/v1/routers")["routers"][0])["ready_targets"] != count:
            if time.monotonic() > deadline:
                raise NotShown(f"{count} targets should be ready, and these are: {router['targets']}")
            time.sleep(_LOOK_EVERY_S)


def node_id_of(broker: BrokerProcess) -> str:
    """By which others know it."""
    return str(_ask(broker, "/api/v1/broker")["node_id"])


def messages_in(broker: BrokerProcess, queue: str) -> int:
    """How many the broker has; 0 when it has no such queue."""
    with contextlib.suppress(KeyError):
        return int(_ask(broker, f"/api/v1/queues/{queue}")["message_count"])
    return 0


def _ask(broker: BrokerProcess, path: str) -> Any:
    """The answer of HTTP. Raises KeyError for what is not there."""
    login = base64.b64encode(f"{ADMIN.user}:{ADMIN.password}".encode()).decode()
    wanted = urllib.request.Request(
        f"http://{HOST}:{broker.http_port}{path}", headers={"Authorization": f"Basic {login}"}
    )
    try:
        with urllib.request.urlopen(wanted, timeout=PATIENCE_S) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            if error.code == _NOT_FOUND:
                raise KeyError(path) from None
        raise


def free_group_port() -> int:
    """A port for UDP that nobody has."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
