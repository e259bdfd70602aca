"""The steps of docs/coming-from-activemq.md, carried out as they stand there, in another place and on another port."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Final

from benchmarks.java import compiled, tool
from benchmarks.machine import free_port
from interop.brokers import Broker, BrokerFailed
from interop.java import JVM_OPTIONS, Client, sources

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "coming-from-activemq.md"
PROGRAM: Final = "Orders"
EXPECTED: Final = "one pot\n"
_BLOCK: Final = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_TIMEOUT_S: Final = 60.0
# What stands on the page, and can't be used by everybody at the same time.
_PORT: Final = ":61616"
_STOMP_PORT: Final = ":61613"
_PLACE: Final = "/srv/broker"


def block(language: str, start: str = "") -> str:
    """The page's first block in a language that begins so. Raises ValueError when there is none."""
    for found in _BLOCK.finditer(PAGE.read_text("utf-8")):
        if found[1] == language and found[2].startswith(start):
            return found[2]
    raise ValueError(f"{PAGE}: no block of {language} that begins with '{start}'")


class Converted(Broker):
    """The broker that the page's commands make of the page's configuration."""

    name = "converted"
    said = ""
    """What `delosmq convert` could not convert."""

    def prepare(self) -> None:
        self.stomp_port = free_port()
        conf = self.directory / "conf"
        conf.mkdir()
        (conf / "activemq.xml").write_text(self._here(block("xml", "<broker")))
        (conf / "credentials.properties").write_text(block("properties"))
        done = subprocess.run(
            # The port for HTTP would be a fixed one too.
            [*self._command("convert"), "--http-port", "0"],
            cwd=self.directory,
            text=True,
            check=False,
            capture_output=True,
        )
        self.said = done.stderr
        if done.returncode:
            raise BrokerFailed(f"`delosmq convert` ends with {done.returncode}; it said:\n{done.stderr.strip()}")

    def command(self) -> list[str]:
        return self._command("run")

    def _command(self, verb: str) -> list[str]:
        """The page's line that does it."""
        line = next(line for line in block("sh").splitlines() if line.startswith(f"delosmq {verb} "))
        return [sys.executable, "-m", "delosmq.cli.main", *shlex.split(self._here(line))[1:]]

    def _here(self, text: str) -> str:
        return (
            text.replace(_PLACE, str(self.directory / "broker"))
            .replace(_PORT, f":{self.port}")
            .replace(_STOMP_PORT, f":{self.stomp_port}")
        )


def run_program(used: Client, port: int, directory: Path) -> str:
    """What the page's Java program prints, compiled against a client and connected to a port."""
    source = directory / "java"
    source.mkdir(parents=True, exist_ok=True)
    (source / f"{PROGRAM}.java").write_text(block("java").replace(_PORT, f":{port}"))
    source = sources(used.libraries, directory / "jakarta", source)
    classes = compiled(source, used.libraries, directory / "classes")
    path = ":".join(str(one) for one in (classes, *used.libraries))
    done = subprocess.run(
        [tool("java"), *JVM_OPTIONS, *used.options, "-cp", path, PROGRAM],
        text=True,
        check=False,
        capture_output=True,
        timeout=_TIMEOUT_S,
    )
    return done.stdout + ("" if done.returncode == 0 else done.stderr)
