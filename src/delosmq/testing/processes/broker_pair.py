"""Two brokers that share a store: a primary and its backup, as processes."""

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from delosmq.testing.processes.broker_process import PASSWORD, BrokerProcess

_JOURNAL = "<journal-directory>data/journal</journal-directory>"


class BrokerPair:
    """A primary and a backup with one journal directory, not started yet.

    Args:
        directory: the instances and the shared directory are made in it.
        changes: see `BrokerProcess`, for both.
        primary, backup: what stands in ``<primary>`` and ``<backup>`` of their ha-policy.
        command: see `BrokerProcess`.
    """

    def __init__(
        self,
        directory: Path,
        changes: Sequence[tuple[str, str]] = (),
        *,
        primary: str = "",
        backup: str = "",
        password: str = PASSWORD,
        command: Sequence[str] | None = None,
    ) -> None:
        self.shared = directory / "shared"
        made = []
        for role, inner in (("primary", primary), ("backup", backup)):
            policy = f"<ha-policy><shared-store><{role}>{inner}</{role}></shared-store></ha-policy>"
            shared = f"<journal-directory>{self.shared}</journal-directory>\n      {policy}"
            every = [(_JOURNAL, shared), *changes]
            place = directory / role
            if command is None:
                made.append(BrokerProcess(place, every, password=password))
            else:
                made.append(BrokerProcess(place, every, password=password, command=command))
        self.primary, self.backup = made

    def start(self) -> None:
        """Returns when the primary is active and the backup waits. Raises as `BrokerProcess.wait_for` does."""
        self.primary.launch()
        self.backup.launch()
        self.primary.await_ready()
        self.backup.await_log("active is primary")

    @property
    def openwire_url(self) -> str:
        """For clients that go to whichever is active: ``failover:(...)``."""
        brokers = (self.primary, self.backup)
        return f"failover:({','.join(f'tcp://127.0.0.1:{broker.openwire_port}' for broker in brokers)})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """Afterwards there is no process of either. May be repeated."""
        self.primary.end()
        self.backup.end()
