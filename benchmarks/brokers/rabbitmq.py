"""RabbitMQ with its STOMP plugin."""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.brokers.base import Driver, prefetch_headers
from benchmarks.brokers.debian import DebianFiles
from benchmarks.machine import free_port

_CONFIGURATION = """\
listeners.tcp = none
stomp.listeners.tcp.1 = 127.0.0.1:{port}
stomp.tcp_listen_options.nodelay = true
default_user = {login}
default_pass = {passcode}
"""

# The start script looks for `erl`; an unpacked one has to be told where it lies.
_ERL = """\
#!/bin/sh
export ROOTDIR={erlang} BINDIR={binaries} EMU=beam PROGNAME=erl
exec "$BINDIR/erlexec" "$@"
"""


class RabbitMQ(Driver):
    """Durable classic queues, which is what a STOMP /queue/ destination gets."""

    name = "rabbitmq"
    needs_warm_up = True

    def version(self) -> str:
        self._files = DebianFiles("rabbitmq-server")
        return self._files.version()

    def prepare(self, directory: Path, port: int) -> None:
        binaries = self._files.find("usr/lib/erlang/erts-*/bin")
        settings = _CONFIGURATION.format(port=port, login=self.login, passcode=self.passcode)
        (directory / "rabbitmq.conf").write_text(settings)
        (directory / "enabled_plugins").write_text("[rabbitmq_stomp].\n")
        erl = directory / "bin" / "erl"
        erl.parent.mkdir()
        erl.write_text(_ERL.format(erlang=binaries.parent.parent, binaries=binaries))
        erl.chmod(0o755)
        self._epmd_port = free_port()
        self._distribution_port = free_port()

    def companions(self, directory: Path) -> list[list[str]]:
        epmd = str(self._files.find("usr/lib/erlang/erts-*/bin/epmd"))
        return [[epmd, "-port", str(self._epmd_port), "-address", "127.0.0.1"]]

    def command(self, directory: Path) -> list[str]:
        return [str(self._files.find("usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server")), "-noinput"]

    def environment(self, directory: Path) -> dict[str, str]:
        return {
            "HOME": str(directory),
            "PATH": f"{directory / 'bin'}:{os.environ['PATH']}",
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_CONFIG_FILE": str(directory / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(directory / "enabled_plugins"),
            "RABBITMQ_MNESIA_BASE": str(directory / "mnesia"),
            "RABBITMQ_LOG_BASE": str(directory / "log"),
            "RABBITMQ_PID_FILE": str(directory / "pid"),
            "RABBITMQ_NODENAME": "bench@localhost",
            "RABBITMQ_DIST_PORT": str(self._distribution_port),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            "RABBITMQ_ALLOW_INPUT": "1",  # the script then becomes the broker, without a shell in between
            **self._files.libraries(),
        }

    def subscribe_headers(self) -> dict[str, str]:
        return prefetch_headers("prefetch-count")

    def settings(self) -> str:
        return "durable classic queues, nodelay, only the STOMP plugin"
