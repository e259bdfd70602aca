"""What Java programs of ours need: the tools, the libraries of the real client, and a place for what was compiled."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from benchmarks.brokers.base import BrokerUnavailable
from benchmarks.brokers.debian import DebianFiles

# What the client needs at run time; the names are those of Debian's packages.
LIBRARIES = (
    "activemq-client",
    "geronimo-jms_1.1_spec",
    "geronimo-jta-1.2-spec",
    "geronimo-j2ee-management-1.1-spec",
    "hawtbuf",
    "slf4j-api",
)


def tool(name: str) -> str:
    """Where `java` or `javac` lies. Raises BrokerUnavailable."""
    home = os.environ.get("JAVA_HOME")
    found = (home and shutil.which(name, path=f"{home}/bin")) or shutil.which(name)
    if not found:
        raise BrokerUnavailable(f"There is no {name}; install a Java development kit (17 or newer) or set JAVA_HOME.")
    return found


def client_libraries() -> tuple[list[Path], str]:
    """The client that ActiveMQ Classic's packages hold, with what it needs, and its version."""
    files = DebianFiles("activemq")
    return [files.find(f"usr/share/java/{name}.jar") for name in LIBRARIES], files.version()


def compiled(sources: Path, libraries: Sequence[Path], cache: Path, *shared: Path) -> Path:
    """The folder of the compiled programs, named by what they were compiled from.

    Args:
        shared: folders of more sources.
    """
    found = [source for folder in (sources, *shared) for source in sorted(folder.glob("*.java"))]
    digest = hashlib.sha256("".join(str(path.resolve()) for path in libraries).encode())
    for source in found:
        digest.update(source.read_bytes())
    classes = cache / digest.hexdigest()[:16]
    if (classes / "complete").exists():
        return classes
    classes.mkdir(parents=True, exist_ok=True)
    command = [tool("javac"), "-nowarn", "-Xlint:-options", "--release", "17", "-encoding", "UTF-8", "-d", str(classes)]
    command += ["-cp", ":".join(str(path) for path in libraries), *(str(source) for source in found)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        # Our own mistake, not something that can't be had here.
        raise SystemExit(f"The programs in {sources} don't compile:\n{done.stderr}")
    (classes / "complete").touch()
    return classes
