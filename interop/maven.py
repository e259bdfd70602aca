"""Java clients and brokers in the versions that Maven Central has, through Maven itself, which checks their sums."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from interop.missing import Missing

NEWEST: Final = "newest"
DEBIAN: Final = "debian"
"""The one that comes with Debian's packages of the broker, which Maven is not asked for."""
# The highest that Maven finds in it; below 6 the packages of the broker bring one.
_RANGES: Final = {NEWEST: "[6.0.0,7)"}
ARTEMIS_VERSION: Final = "2.44.0"
"""The last one that is known to be whole there under these names: parts of later ones are not found."""
_VERSION: Final = re.compile(r"\d+(\.\d+){1,3}")
_TIMEOUT_S: Final = 300.0
_POM: Final = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>interop</groupId>
  <artifactId>{name}</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""
_DEPENDENCY: Final = """\
    <dependency>
      <groupId>{group}</groupId>
      <artifactId>{artifact}</artifactId>
      <version>{version}</version>{exclusions}
    </dependency>"""
_EXCLUSION: Final = "<exclusion><groupId>{group}</groupId><artifactId>*</artifactId></exclusion>"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is fetched: parts of ActiveMQ or of another group, all of one version, and what else it needs.

    Attributes:
        marker: the file that shows that it is there.
        beside: group, artifact and range of versions of others.
        without: groups whose parts are there already where it is used.
        timeout_s: of Maven.
    """

    name: str
    artifacts: tuple[str, ...]
    beside: tuple[tuple[str, str, str], ...] = ()
    group: str = "org.apache.activemq"
    without: tuple[str, ...] = ()
    timeout_s: float = _TIMEOUT_S

    @property
    def marker(self) -> str:
        return f"{self.artifacts[0]}-*.jar"

    def pom(self, version: str) -> str:
        """For Maven."""
        parts = [(self.group, artifact, version) for artifact in self.artifacts]
        left_out = "".join(_EXCLUSION.format(group=group) for group in self.without)
        exclusions = f"<exclusions>{left_out}</exclusions>" if left_out else ""
        rows = [
            _DEPENDENCY.format(group=group, artifact=artifact, version=each, exclusions=exclusions)
            for group, artifact, each in (*parts, *self.beside)
        ]
        return _POM.format(name=self.name, dependencies="\n".join(rows))


CLIENT: Final = Wanted("client", ("activemq-client",))
BROKER: Final = Wanted(
    "broker",
    ("activemq-broker", "activemq-spring", "activemq-kahadb-store", "activemq-jaas"),
    # The broker leaves it to its users which Spring reads its configuration.
    (("org.springframework", "spring-context", "[6.2.0,6.3.0-alpha)"),),
)
ARTEMIS: Final = Wanted(
    "artemis",
    ("artemis-server", "artemis-openwire-protocol", "artemis-stomp-protocol"),
    # For its store in a database.
    (("org.postgresql", "postgresql", "[42.7.0,42.8.0-alpha)"),),
)
ARTEMIS_CLIENT: Final = Wanted("artemis-client", ("artemis-jms-client",))
KAFKA: Final = Wanted("kafka", ("kafka_2.13",), group="org.apache.kafka", timeout_s=900.0)
SPARK_KAFKA: Final = Wanted(
    "spark-kafka",
    ("spark-sql-kafka-0-10_2.13",),
    group="org.apache.spark",
    without=(
        *("org.apache.hadoop", "org.scala-lang", "org.scala-lang.modules", "org.slf4j", "at.yawk.lz4", "org.lz4"),
        *("org.xerial.snappy", "com.google.code.findbugs"),
    ),
)


def fetched(version: str, cache: Path, what: Wanted = CLIENT) -> Path:
    """The folder with one version of the client, or of what is wanted; `NEWEST` is looked for each time.

    Raises:
        Missing: no Maven, or it does not get it.
    """
    if version not in _RANGES and not _VERSION.fullmatch(version):
        raise Missing(f"'{version}' is no version of the {what.name}; say {NEWEST}, or one such as 5.18.3.")
    folder = cache / f"{what.name}-{version}"
    if version not in _RANGES and any(folder.glob(what.marker)):
        return folder
    maven = shutil.which("mvn")
    if maven is None:
        raise Missing(
            f"The {what.name} can't be fetched: there is no mvn; install Maven, or name a folder with --jars."
        )
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "pom.xml").write_text(what.pom(_RANGES.get(version, version)))
    # Without --strict-checksums it only warns of a file that is not the one published.
    command = [maven, "-B", "-q", "-U", "--strict-checksums", "dependency:copy-dependencies"]
    command += [f"-DoutputDirectory={folder}", "-DincludeScope=runtime"]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=what.timeout_s,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired as error:
        raise Missing(
            f"The {what.name} can't be fetched: Maven takes longer than {what.timeout_s:.0f} s; it goes on there when"
            " it is asked again."
        ) from error
    if done.returncode or not any(folder.glob(what.marker)):
        said = (done.stdout + done.stderr).strip()[:400]
        raise Missing(
            f"{what.artifacts[0]} {version} can't be fetched from Maven Central; Maven said: {said or 'nothing'}"
        )
    return folder
