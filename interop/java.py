"""The Java side: libraries of the real client, and our programs compiled against them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.brokers.base import BrokerUnavailable
from benchmarks.java import client_libraries, compiled, tool
from interop.missing import Missing

__all__ = ["CACHE", "Client", "Missing", "client"]

HERE = Path(__file__).resolve().parent
CACHE = HERE / ".cache"
SOURCES = HERE / "openwire" / "java"
SHARED: Final = HERE / "java"
"""What programs of all clients have in common; none of it names JMS."""

# From 6.0 on the client implements Jakarta Messaging: the same interfaces under another name.
_JAVAX: Final = re.compile(r"\bjavax\.jms\b")
_VERSION: Final = re.compile(r"activemq-client-(\d[\w.-]*)\.jar")

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


@dataclass(frozen=True, slots=True)
class Client:
    """The compiled programs with the client they use."""

    java: str
    classpath: str
    version: str
    libraries: tuple[Path, ...] = ()
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


def sources(libraries: Sequence[Path], translated: Path = CACHE / "jakarta", written: Path = SOURCES) -> Path:
    """The folder of the programs: `written`, or `translated` if the client implements `jakarta.jms`."""
    if not any(jar.name.startswith("jakarta.jms-api") for jar in libraries):
        return written
    shutil.rmtree(translated, ignore_errors=True)
    translated.mkdir(parents=True)
    for source in written.glob("*.java"):
        (translated / source.name).write_text(_JAVAX.sub("jakarta.jms", source.read_text("utf-8")), "utf-8")
    return translated


def version_in(jars: Path) -> str:
    """Of the client in a folder. Raises Missing when there is none."""
    version = next((found[1] for jar in sorted(jars.glob("*.jar")) if (found := _VERSION.fullmatch(jar.name))), "")
    if not version:
        raise Missing(f"There is no activemq-client-*.jar in {jars}; name a folder that holds the client.")
    return version


def client(jars: Path | None = None, *, options: tuple[str, ...] = ()) -> Client:
    """Compile the programs, unless that was done before.

    Args:
        jars: a folder with another version of the client and of what it needs; None takes Debian's.
        options: more of them for the virtual machine.

    Raises:
        Missing: no Java development kit, or no libraries.
    """
    try:
        if jars is None:
            libraries, version = client_libraries()
        else:
            libraries, version = sorted(jars.glob("*.jar")), version_in(jars)
        classes = compiled(sources(libraries), libraries, CACHE / "classes", SHARED)
        java = tool("java")
    except BrokerUnavailable as error:
        raise Missing(f"The Java client can't be had: {error}") from error
    classpath = ":".join(str(path) for path in (classes, *libraries))
    return Client(java, classpath, version, tuple(libraries), options)
