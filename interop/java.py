"""The Java side: libraries of the real client, and our programs compiled against them."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from benchmarks.brokers.base import BrokerUnavailable
from benchmarks.brokers.debian import DebianFiles

HERE = Path(__file__).resolve().parent
CACHE = HERE / ".cache"
SOURCES = HERE / "openwire" / "java"

# Few and small threads: the programs are short, so that start-up counts more than speed.
JVM_OPTIONS = (
    "-Xmx640m",
    "-Xss512k",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    "-Xshare:auto",
    # Lines are UTF-8 wherever they are written; the name depends on the version.
    "-Dfile.encoding=UTF-8",
    "-Dsun.stdout.encoding=UTF-8",
    "-Dstdout.encoding=UTF-8",
)
# What the client needs at run time; the names are those of Debian's packages.
LIBRARIES = (
    "activemq-client",
    "geronimo-jms_1.1_spec",
    "geronimo-jta-1.2-spec",
    "geronimo-j2ee-management-1.1-spec",
    "hawtbuf",
    "slf4j-api",
)


class Missing(Exception):
    """Something the programs need can't be had here; the message is one sentence that says what and what to do."""


@dataclass(frozen=True, slots=True)
class Client:
    """The compiled programs with the client they use."""

    java: str
    classpath: str
    version: str
    options: tuple[str, ...] = ()

    def command(self, url: str, program: str, only: str = "") -> list[str]:
        """What runs one program, or its cases whose names start with `only`."""
        return [
            self.java,
            *JVM_OPTIONS,
            *self.options,
            "-cp",
            self.classpath,
            "interop.Main",
            url,
            program,
            *([only] if only else []),
        ]


def client(jars: Path | None = None, *, options: tuple[str, ...] = ()) -> Client:
    """Compile the programs, unless that was done before.

    Args:
        jars: a folder with another version of the client and of what it needs; None takes Debian's.
        options: more of them for the virtual machine.

    Raises:
        Missing: no Java development kit, or no libraries.
    """
    javac = _tool("javac")
    if jars is None:
        libraries, version = _debian_libraries()
    else:
        libraries = sorted(jars.glob("*.jar"))
        version = next((jar.stem.rpartition("-")[2] for jar in libraries if "activemq-client" in jar.name), "")
        if not version:
            raise Missing(f"There is no activemq-client-*.jar in {jars}; name a folder that holds the client.")
    classes = _compiled(javac, libraries)
    return Client(_tool("java"), ":".join(str(path) for path in (classes, *libraries)), version, options)


def _tool(name: str) -> str:
    home = os.environ.get("JAVA_HOME")
    found = (home and shutil.which(name, path=f"{home}/bin")) or shutil.which(name)
    if not found:
        raise Missing(f"There is no {name}; install a Java development kit (17 or newer) or set JAVA_HOME.")
    return found


def _debian_libraries() -> tuple[list[Path], str]:
    try:
        files = DebianFiles("activemq")
        found = [files.find(f"usr/share/java/{name}.jar") for name in LIBRARIES]
        return found, files.version()
    except BrokerUnavailable as error:
        raise Missing(f"The libraries of the ActiveMQ client can't be had: {error}") from error


def _compiled(javac: str, libraries: list[Path]) -> Path:
    """The folder of the compiled programs, named by what they were compiled from."""
    sources = sorted(SOURCES.glob("*.java"))
    digest = hashlib.sha256("".join(str(path.resolve()) for path in libraries).encode())
    for source in sources:
        digest.update(source.read_bytes())
    classes = CACHE / "classes" / digest.hexdigest()[:16]
    if (classes / "complete").exists():
        return classes
    classes.mkdir(parents=True, exist_ok=True)
    command = [javac, "-nowarn", "-Xlint:-options", "--release", "17", "-encoding", "UTF-8", "-d", str(classes)]
    command += ["-cp", ":".join(str(path) for path in libraries), *(str(source) for source in sources)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"The programs don't compile:\n{done.stderr}")
    (classes / "complete").touch()
    return classes
