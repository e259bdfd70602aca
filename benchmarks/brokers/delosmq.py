"""DelosMQ, from one of the two environments that the Makefile makes."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from benchmarks.brokers.base import CHECKOUT, BrokerUnavailable, Driver, prefetch_headers
from benchmarks.machine import free_port

_ACCEPTOR = re.compile(r"tcp://[^:<]+:\d+")
_ANY_ACCEPTOR = re.compile(r"\s*<acceptor\b.*?</acceptor>", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_PROTOCOLS = re.compile(r"protocols=\w+")
_WEB_BIND = re.compile(r"http://[^:\"<]+:\d+")


class DelosMQ(Driver):
    """`environment` is a virtual environment below the checkout; DELOSMQ_PYTHON_<NAME> names another interpreter."""

    def __init__(self, name: str, *, environment: str, protocol: str = "STOMP") -> None:
        self.name = name
        self._protocol = protocol
        variable = "DELOSMQ_PYTHON_" + name.rpartition("-")[2].upper()
        self.python = Path(os.environ.get(variable, CHECKOUT / environment / "bin" / "python"))

    def version(self) -> str:
        if not self.python.exists():
            raise BrokerUnavailable(
                f"{self.name}: there is no {self.python}; `make compiled` and `make test` make both."
            )
        script = "import delosmq, delosmq.engine.broker as b; print(delosmq.__version__, b.__file__.endswith('.so'))"
        done = subprocess.run([self.python, "-c", script], capture_output=True, text=True, cwd="/", check=False)
        if done.returncode:
            raise BrokerUnavailable(f"{self.name}: {self.python} can't import it: {done.stderr.strip()[-200:]}")
        version, compiled = done.stdout.split()
        if (compiled == "True") != self.name.endswith("compiled"):
            raise BrokerUnavailable(f"{self.name}: {self.python} has the other form installed.")
        return version

    def prepare(self, directory: Path, port: int) -> None:
        instance = directory / "instance"
        subprocess.run(
            [*self._cli(), "create", str(instance), "--user", self.login, "--password-stdin"],
            input=self.passcode + "\n",
            text=True,
            check=True,
            capture_output=True,
        )
        broker_xml = instance / "etc" / "broker.xml"
        broker_xml.write_text(_only_acceptor(broker_xml.read_text(), port, self._protocol))
        bootstrap_xml = instance / "etc" / "bootstrap.xml"
        bootstrap_xml.write_text(_WEB_BIND.sub(f"http://127.0.0.1:{free_port()}", bootstrap_xml.read_text(), count=1))

    def command(self, directory: Path) -> list[str]:
        return [*self._cli(), "run", str(directory / "instance")]

    def _cli(self) -> list[str]:
        return [str(self.python), "-m", "delosmq.cli.main"]

    def subscribe_headers(self) -> dict[str, str]:
        return prefetch_headers("activemq.prefetchSize")

    def settings(self) -> str:
        return "as `delosmq create` makes it, one acceptor"


def _only_acceptor(broker_xml: str, port: int, protocol: str) -> str:
    """The first acceptor on the loopback port, for this protocol alone, without the others."""
    broker_xml = _COMMENT.sub("", broker_xml)
    first, *others = _ANY_ACCEPTOR.findall(broker_xml)
    for other in others:
        broker_xml = broker_xml.replace(other, "", 1)
    ours = _PROTOCOLS.sub(f"protocols={protocol}", _ACCEPTOR.sub(f"tcp://127.0.0.1:{port}", first, count=1))
    return broker_xml.replace(first, ours, 1)
