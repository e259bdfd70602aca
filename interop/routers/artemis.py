"""DelosMQ routes to Artemis: a real broker of Maven Central is asked over STOMP, and clients are sent to it; and both
find each other by UDP."""

from __future__ import annotations

import subprocess
import threading
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.java import tool
from delosmq.model.errors import LimitError
from delosmq.server.discovery.multicast import open_receiver, open_sender
from interop.brokers import Broker
from interop.maven import ARTEMIS_VERSION
from interop.routers.clients import HOST, PATIENCE_S, Login, NotShown
from interop.routers.programs import RouterProgram, check
from interop.routers.site import ADMIN, CLUSTER, GROUP, Site, node_id_of

RUN_ARTEMIS: Final = Path(__file__).resolve().parents[1] / "broker" / "RunArtemis.java"
_FIND_BROKERS: Final = RUN_ARTEMIS.with_name("FindBrokers.java")
ARTEMIS_TARGET: Final = "artemis-target"
ARTEMIS_DISCOVERY: Final = "artemis-discovery"
ARTEMIS_PROGRAMS: Final = (ARTEMIS_TARGET, ARTEMIS_DISCOVERY)
_HEARD_WITHIN_S: Final = 10.0
_OPTIONS: Final = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")
_KINDS: Final = (
    *("createAddress", "createDurableQueue", "createNonDurableQueue", "deleteDurableQueue", "deleteNonDurableQueue"),
    *("deleteAddress", "consume", "browse", "send", "manage"),
)
_BROKER_XML: Final = """\
<configuration xmlns="urn:activemq">
  <core xmlns="urn:activemq:core">
    {store}
    <journal-directory>{directory}/journal</journal-directory>
    <bindings-directory>{directory}/bindings</bindings-directory>
    <large-messages-directory>{directory}/large-messages</large-messages-directory>
    <paging-directory>{directory}/paging</paging-directory>
    <connectors>
      <connector name="me">tcp://{host}:{port}</connector>
    </connectors>
    {announcement}
    <acceptors>
      <acceptor name="artemis">tcp://{host}:{port}?protocols=OPENWIRE,STOMP;anycastPrefix=/queue/</acceptor>
    </acceptors>
    <security-settings>
      <security-setting match="#">{permissions}</security-setting>
    </security-settings>
  </core>
</configuration>
"""


class Artemis(Broker):
    """Artemis of Maven Central, with the users that ask and connect, who may do all.

    Args:
        jars: the folder with its libraries.
        announcement: its broadcast groups, as an element.
    """

    name = f"Artemis {ARTEMIS_VERSION}"
    options: tuple[str, ...] = _OPTIONS
    users: tuple[Login, ...] = (ADMIN, CLUSTER)

    def __init__(self, directory: Path, jars: Path, announcement: str = "") -> None:
        super().__init__(directory)
        self._jars = jars
        self._announcement = announcement

    def prepare(self) -> None:
        self._java = tool("java")
        (self.directory / "broker.xml").write_text(self.configuration())

    def configuration(self) -> str:
        """Its broker.xml."""
        return _BROKER_XML.format(
            store=self.store(),
            directory=self.directory,
            announcement=self._announcement,
            host=HOST,
            port=self.port,
            permissions="".join(f'<permission type="{kind}" roles="amq"/>' for kind in _KINDS),
        )

    def store(self) -> str:
        """The element that says where messages are kept."""
        return "<persistence-enabled>false</persistence-enabled>"

    def command(self) -> list[str]:
        users = [word for one in self.users for word in (one.user, one.password)]
        return [
            self._java,
            *self.options,
            "-cp",
            _class_path(self._jars),
            str(RUN_ARTEMIS),
            str(self.directory / "broker.xml"),
            *users,
        ]


def artemis_as_target(jars: Path, site: Site) -> None:
    """Clients go to Artemis while it is ready, else to a broker of ours, and to Artemis again when it is back."""
    router, ours = site.broker("router"), site.broker("ours")
    with Artemis(site.directory / "artemis", jars) as artemis:
        element = '<connection-router name="r"><policy name="FIRST_ELEMENT"/><pool>{targets}</pool></connection-router>'
        site.route(router, element, {"artemis": artemis.port, "ours": ours.openwire_port})
        site.start(ours, router)

        def expect(port: int, ready: int) -> None:
            site.wait_ready(router, ready)
            with site.client.connect([router.openwire_port], ADMIN, "me") as connection:
                check(connection.port == port, f"served at {connection.port}, not at {port}")
                connection.send("orders", f"to {port}")
                check(connection.receive("orders") == f"to {port}", "another message comes")

        expect(artemis.port, ready=2)
        artemis.stop()
        expect(ours.openwire_port, ready=1)
        artemis.start()
        expect(artemis.port, ready=2)
        artemis.kill()
        expect(ours.openwire_port, ready=1)


def artemis_is_found(jars: Path, site: Site) -> None:
    """A router of ours finds Artemis by its announcements, and loses it; Artemis's client finds a broker of ours."""
    await_multicast(site.group_port)
    router, ours = site.broker("router"), site.broker("ours")
    period = "<broadcast-period>100</broadcast-period><connector-ref>me</connector-ref>"
    groups = f'<broadcast-groups><broadcast-group name="bg">{site.group()}{period}</broadcast-group></broadcast-groups>'
    site.route(
        router, '<connection-router name="r"><policy name="FIRST_ELEMENT"/><pool>{found}</pool></connection-router>'
    )
    site.start(router)
    with Artemis(site.directory / "artemis", jars, groups) as artemis:
        site.wait_ready(router, 1)
        with site.client.connect([router.openwire_port], ADMIN, "me") as connection:
            check(connection.port == artemis.port, f"served at {connection.port}, not at {artemis.port}")
        artemis.kill()
        site.wait_ready(router, 0)
    site.announce(ours)
    site.start(ours)
    found = found_by_artemis(jars, site)
    wanted = f"{node_id_of(ours)} {HOST} {ours.openwire_port}"
    check(found == wanted, f"Artemis's client finds '{found}', not '{wanted}'")


def await_multicast(port: int) -> None:
    """Raises NotShown where UDP multicast can't be had on the loopback interface."""
    try:
        with open_receiver(GROUP, port, HOST) as receiver, open_sender(HOST, -1) as sender:
            sender.sendto(b"heard", (GROUP, port))
            receiver.settimeout(_HEARD_WITHIN_S)
            receiver.recv(16)
    except (LimitError, OSError) as error:
        raise NotShown(f"there is no UDP multicast on the loopback interface of this machine: {error}") from error


def found_by_artemis(jars: Path, site: Site) -> str:
    """Node id, host and port of the first broker that Artemis's discovery finds."""
    command = [tool("java"), *_OPTIONS, "-cp", _class_path(jars), str(_FIND_BROKERS), GROUP, str(site.group_port), HOST]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as java:
        guard = threading.Timer(PATIENCE_S, java.kill)
        guard.start()
        try:
            assert java.stdout is not None
            return java.stdout.readline().strip()
        finally:
            guard.cancel()
            java.kill()


def _class_path(jars: Path) -> str:
    return ":".join(str(jar) for jar in sorted(jars.glob("*.jar")))


def artemis_program(name: str, jars: Path) -> RouterProgram:
    """One of the programs with Artemis, with its libraries."""
    if name == ARTEMIS_TARGET:
        return RouterProgram(name, ("ROUTE-1", "ROUTE-3", "ROUTE-7", "ROUTE-9"), partial(artemis_as_target, jars))
    return RouterProgram(name, ("ROUTE-3", "CLUS-1"), partial(artemis_is_found, jars))
