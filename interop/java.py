"""The Java side: libraries of the real client, and our programs compiled against them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.brokers.base import BrokerUnavailable
from benchmarks.java import client_libraries, compiled, tool

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
    try:
        if jars is None:
            libraries, version = client_libraries()
        else:
            libraries = sorted(jars.glob("*.jar"))
            version = next((jar.stem.rpartition("-")[2] for jar in libraries if "activemq-client" in jar.name), "")
            if not version:
                raise Missing(f"There is no activemq-client-*.jar in {jars}; name a folder that holds the client.")
        classes = compiled(SOURCES, libraries, CACHE / "classes")
        java = tool("java")
    except BrokerUnavailable as error:
        raise Missing(f"The Java client can't be had: {error}") from error
    return Client(java, ":".join(str(path) for path in (classes, *libraries)), version, options)
