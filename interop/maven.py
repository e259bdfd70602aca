"""The Java client in the versions that Maven Central has, through Maven itself."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

from interop.missing import Missing

NEWEST: Final = "newest"
DEBIAN: Final = "debian"
"""The one that comes with Debian's packages of the broker, which Maven is not asked for."""
# The highest that Maven finds in it; below 6 the packages of the broker bring one.
_RANGES: Final = {NEWEST: "[6.0.0,7)"}
_VERSION: Final = re.compile(r"\d+(\.\d+){1,3}")
_TIMEOUT_S: Final = 300.0
_POM: Final = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>interop</groupId>
  <artifactId>client</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.activemq</groupId>
      <artifactId>activemq-client</artifactId>
      <version>{version}</version>
    </dependency>
  </dependencies>
</project>
"""


def fetched(version: str, cache: Path) -> Path:
    """The folder with one version of activemq-client and what it needs; `NEWEST` is looked for each time.

    Raises:
        Missing: no Maven, or it does not get it.
    """
    if version not in _RANGES and not _VERSION.fullmatch(version):
        raise Missing(f"'{version}' is no version of the client; say {NEWEST}, or one such as 5.18.3.")
    folder = cache / f"client-{version}"
    if version not in _RANGES and any(folder.glob("activemq-client-*.jar")):
        return folder
    maven = shutil.which("mvn")
    if maven is None:
        raise Missing("The client can't be fetched: there is no mvn; install Maven, or name a folder with --jars.")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "pom.xml").write_text(_POM.format(version=_RANGES.get(version, version)))
    command = [maven, "-B", "-q", "-U", "dependency:copy-dependencies"]
    command += [f"-DoutputDirectory={folder}", "-DincludeScope=runtime"]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired as error:
        raise Missing(f"The client can't be fetched: Maven takes longer than {_TIMEOUT_S:.0f} s.") from error
    if done.returncode or not any(folder.glob("activemq-client-*.jar")):
        said = (done.stdout + done.stderr).strip()[-400:]
        raise Missing(f"activemq-client {version} can't be fetched from Maven Central; Maven said: {said or 'nothing'}")
    return folder
