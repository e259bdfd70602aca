"""DelosMQ routes to Artemis: a real broker of Maven Central is asked over STOMP, and clients are sent to it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.java import tool
from interop.brokers import Broker
from interop.maven import ARTEMIS_VERSION
from interop.routers.clients import HOST
from interop.routers.programs import RouterProgram, check
from interop.routers.site import ADMIN, CLUSTER, Site

RUN_ARTEMIS: Final = Path(__file__).resolve().parents[1] / "broker" / "RunArtemis.java"
ARTEMIS_TARGET: Final = "artemis-target"
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
    """

    name = f"Artemis {ARTEMIS_VERSION}"
    options: tuple[str, ...] = _OPTIONS

    def __init__(self, directory: Path, jars: Path) -> None:
        super().__init__(directory)
        self._jars = jars

    def prepare(self) -> None:
        self._java = tool("java")
        permissions = "".join(f'<permission type="{kind}" roles="amq"/>' for kind in _KINDS)
        (self.directory / "broker.xml").write_text(
            _BROKER_XML.format(
                store=self.store(), directory=self.directory, host=HOST, port=self.port, permissions=permissions
            )
        )

    def store(self) -> str:
        """The element that says where messages are kept."""
        return "<persistence-enabled>false</persistence-enabled>"

    def command(self) -> list[str]:
        path = ":".join(str(jar) for jar in sorted(self._jars.glob("*.jar")))
        users = [word for one in (ADMIN, CLUSTER) for word in (one.user, one.password)]
        return [self._java, *self.options, "-cp", path, str(RUN_ARTEMIS), str(self.directory / "broker.xml"), *users]


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


def artemis_target(jars: Path) -> RouterProgram:
    """The program, with the libraries of Artemis."""
    return RouterProgram(ARTEMIS_TARGET, ("ROUTE-1", "ROUTE-3", "ROUTE-7", "ROUTE-9"), partial(artemis_as_target, jars))
