"""``delosmq run`` as a process that can be killed, and a look at its journal files."""

import os
import signal
import struct
import subprocess
import sys
import threading
from pathlib import Path

from benchmarks.machine import free_port

PATIENCE_S = 60.0
USER = "admin"
PASSWORD = "chaos"
# Where a journal file says which segment it holds. Source: docs/storage-format.md, file header.
SEGMENT_NUMBER = struct.Struct("<16xQ")
ADDRESSES = """
         <address name="orders">
            <multicast>
               <queue name="orders.work"/>
               <queue name="orders.archive"/>
            </multicast>
         </address>"""


class BrokerProcess:
    """One instance directory and, while it runs, its process.

    Args:
        file_size: ``journal-file-size``.
        addresses: what follows ``<addresses>`` in broker.xml.
        settings: the same of ``<address-settings>``.
    """

    def __init__(self, directory: Path, file_size: str, addresses: str = ADDRESSES, settings: str = "") -> None:
        self.directory = directory
        self.stomp_port = free_port()
        self.http_port = free_port()
        self.openwire_port = free_port()
        self._process: subprocess.Popen[str] | None = None
        self._lines: list[str] = []
        self._changed = threading.Condition()
        self._reader: threading.Thread | None = None
        ports = ["--stomp-port", str(self.stomp_port), "--http-port", str(self.http_port)]
        ports += ["--openwire-port", str(self.openwire_port)]
        command = [sys.executable, "-m", "delosmq.cli.main", "create", str(directory), "--password-stdin", *ports]
        subprocess.run(command, input=f"{PASSWORD}\n", text=True, check=True, timeout=PATIENCE_S, capture_output=True)
        configuration = directory / "etc" / "broker.xml"
        text = configuration.read_text("utf-8")
        changed = text.replace("<journal-file-size>64M<", f"<journal-file-size>{file_size}<")
        changed = changed.replace("<addresses>", f"<addresses>{addresses}", 1)
        changed = changed.replace("<address-settings>", f"<address-settings>{settings}", 1)
        assert addresses in changed
        assert settings in changed
        assert file_size in changed
        configuration.write_text(changed, "utf-8")

    def start(self) -> None:
        """Returns when the broker says that it is up."""
        self._lines = []
        command = [sys.executable, "-m", "delosmq.cli.main", "run", str(self.directory)]
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read, name="broker-log", daemon=True)
        self._reader.start()
        with self._changed:
            up = self._changed.wait_for(
                lambda: any("DMQ7010" in line or line == "" for line in self._lines), PATIENCE_S
            )
        assert up, f"the broker does not come up: {self.log}"
        assert "" not in self._lines, f"the broker ended: {self.log}"

    def _read(self) -> None:
        assert self._process is not None
        assert self._process.stderr is not None
        for line in self._process.stderr:
            with self._changed:
                self._lines.append(line)
                self._changed.notify_all()
        with self._changed:
            self._lines.append("")
            self._changed.notify_all()

    @property
    def log(self) -> str:
        return "".join(self._lines)

    def kill(self) -> None:
        """kill -9."""
        assert self._process is not None
        assert self._process.poll() is None, f"the broker ended by itself: {self.log}"
        os.kill(self._process.pid, signal.SIGKILL)
        self._reap()

    def stop(self) -> int:
        """SIGTERM; gives the exit code."""
        assert self._process is not None
        self._process.terminate()
        return self._reap()

    def end(self) -> None:
        """Whatever state it is in: afterwards there is no process."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
        if self._process is not None:
            self._reap()

    def _reap(self) -> int:
        assert self._process is not None
        code = self._process.wait(PATIENCE_S)
        assert self._reader is not None
        self._reader.join(PATIENCE_S)
        assert self._process.stderr is not None
        self._process.stderr.close()
        return code

    def segments(self) -> dict[str, int]:
        """File -> number of the segment it holds or is prepared for."""
        found = {}
        for path in sorted((self.directory / "data" / "journal").glob("*.dmq")):
            try:
                with path.open("rb") as file:
                    header = file.read(SEGMENT_NUMBER.size)
            except FileNotFoundError:
                continue  # removed since it was listed
            if len(header) == SEGMENT_NUMBER.size:
                found[path.name] = int(SEGMENT_NUMBER.unpack(header)[0])
        return found
