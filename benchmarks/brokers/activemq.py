"""ActiveMQ Classic with KahaDB."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.brokers.base import BrokerUnavailable, Driver, prefetch_headers
from benchmarks.brokers.debian import DebianFiles

_CONFIGURATION = """\
<beans xmlns="http://www.springframework.org/schema/beans"
       xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
       xsi:schemaLocation="http://www.springframework.org/schema/beans
                           http://www.springframework.org/schema/beans/spring-beans-2.0.xsd
                           http://activemq.apache.org/schema/core
                           http://activemq.apache.org/schema/core/activemq-core.xsd">
  <broker xmlns="http://activemq.apache.org/schema/core" useJmx="false" brokerName="bench" dataDirectory="{directory}">
    <persistenceAdapter>
      <kahaDB directory="{directory}/kahadb" concurrentStoreAndDispatchQueues="{concurrent}"/>
    </persistenceAdapter>
    <transportConnectors>
      <transportConnector name="bench" uri="{scheme}://127.0.0.1:{port}?transport.tcpNoDelay=true"/>
    </transportConnectors>
  </broker>
</beans>
"""

# As Debian's own options file.
_JVM_OPTIONS = ("-Xms512M", "-Xmx512M", "-Dorg.apache.activemq.UseDedicatedTaskRunner=true")
_OPENED = ("java.base/java.lang=ALL-UNNAMED", "java.base/java.util=ALL-UNNAMED")


CONSOLE: Final = ("org.apache.activemq.console.Main", "start")


def activemq_command(
    java: str, home: Path, directory: Path, classpath: str, options: Sequence[str], program: Sequence[str] = CONSOLE
) -> list[str]:
    """Runs a broker of any version in the foreground, with the activemq.xml in ``directory``."""
    return [
        java,
        *options,
        *(option for package in _OPENED for option in ("--add-opens", package)),
        "-Djava.awt.headless=true",
        f"-Djava.io.tmpdir={directory / 'tmp'}",
        f"-Dactivemq.home={home}",
        f"-Dactivemq.base={directory}",
        f"-Dactivemq.conf={directory}",
        f"-Dactivemq.data={directory}",
        "-cp",
        classpath,
        *program,
        f"xbean:file:{directory}/activemq.xml",
    ]


class ActiveMQ(Driver):
    """`group_commit` turns off the concurrent store, after which producers share a flush; OpenWire's scheme is tcp."""

    needs_warm_up = True
    jvm_options: tuple[str, ...] = _JVM_OPTIONS

    def __init__(self, name: str, *, group_commit: bool, scheme: str = "stomp") -> None:
        self.name = name
        self._scheme = scheme
        self._group_commit = group_commit

    def version(self) -> str:
        self._files = DebianFiles("activemq")
        self._java = self._find_java()
        return self._files.version()

    def prepare(self, directory: Path, port: int) -> None:
        concurrent = "false" if self._group_commit else "true"
        settings = _CONFIGURATION.format(directory=directory, scheme=self._scheme, port=port, concurrent=concurrent)
        (directory / "activemq.xml").write_text(settings)
        (directory / "tmp").mkdir()

    def command(self, directory: Path) -> list[str]:
        home = self._files.find("usr/share/activemq")
        return activemq_command(self._java, home, directory, ":".join(self._jars(home)), self.jvm_options)

    def _jars(self, home: Path) -> list[str]:
        """The libraries of its folder, links resolved by name, because some lie outside of what was unpacked."""
        names = [link.name for folder in ("lib", "lib/optional") for link in sorted((home / folder).glob("*.jar"))]
        found = (self._files.find_all(f"usr/share/java/{name}") for name in (*names, "activemq-run.jar"))
        return [str(matches[0]) for matches in found if matches]

    def _find_java(self) -> str:
        home = os.environ.get("JAVA_HOME")
        named = [f"{home}/bin/java"] if home else []
        unpacked = [str(path) for path in self._files.find_all("usr/lib/jvm/*/bin/java")]
        for candidate in (*named, shutil.which("java") or "", *unpacked):
            if candidate and Path(candidate).exists():
                return candidate
        raise BrokerUnavailable("activemq: there is no java; install a Java runtime (17 or newer) or set JAVA_HOME.")

    def subscribe_headers(self) -> dict[str, str]:
        return prefetch_headers("activemq.prefetchSize")

    def settings(self) -> str:
        store = "concurrentStoreAndDispatchQueues=false" if self._group_commit else "KahaDB as it comes"
        return f"{store}, nodelay, Debian's options for the JVM (512 MB heap)"
