"""A syncer whose work happens when the simulation says so."""

import contextlib
from collections.abc import Sequence

from delosmq.storage.journal.files import Order
from delosmq.storage.journal.manifest import Edit, ManifestWriter, NewManifest
from delosmq.storage.journal.sync.syncer import Prepared, Report, Synced, Syncer, run_order, run_replacement, run_sync
from tests.simulation.disk import Killed, SimDisk, SimFile


class StepSyncer(Syncer):
    """Keeps requests until `step_sync` and `step_order`; answers wait for `collect`."""

    def __init__(self, disk: SimDisk) -> None:
        self.disk = disk
        self.manifest = ManifestWriter(disk)
        self.syncs: list[tuple[int, list[SimFile], int, int, Edit | NewManifest | None]] = []
        self.orders: list[Order | str] = []
        self.reports: list[Report] = []
        self.closed = False

    def fileno(self) -> int:
        return -1

    def sync(self, ticket: int, handles: Sequence[int], position: int = 0, edit: Edit | None = None) -> None:
        assert not self.syncs, "at most one sync is outstanding"
        files = [self.disk.handles[handle] for handle in handles]
        self.syncs.append((ticket, files, self.disk.clock, position, edit))

    def replace_manifest(self, ticket: int, replacement: NewManifest) -> None:
        assert not self.syncs, "at most one sync is outstanding"
        self.syncs.append((ticket, [], self.disk.clock, 0, replacement))

    def prepare(self, order: Order) -> None:
        self.orders.append(order)

    def remove(self, name: str) -> None:
        self.orders.append(name)

    def collect(self) -> list[Report]:
        reports, self.reports = self.reports, []
        return reports

    def wait(self, timeout_s: float) -> list[Report]:
        self.step_sync()
        self.step_order()
        return self.collect()

    def close(self) -> None:
        self.closed = True
        self.manifest.close()

    def step_sync(self) -> None:
        """Runs the outstanding sync."""
        if not self.syncs:
            return
        ticket, files, upto, position, change = self.syncs.pop()
        error: OSError | None = None
        for file in files:
            try:
                self.disk.sync_file(file, upto)
            except OSError as failure:
                error = failure
                break
        if isinstance(change, NewManifest):
            self.reports.append(run_replacement(self.disk, self.manifest, ticket, change))
            return
        if error is None:
            error = run_sync(self.disk, (), self.manifest, position, change)
        self.reports.append(Synced(ticket, error))

    def step_order(self) -> None:
        """Runs the oldest order."""
        if not self.orders:
            return
        order = self.orders.pop(0)
        if isinstance(order, str):
            with contextlib.suppress(OSError):
                self.disk.remove(order)
        else:
            self.reports.append(Prepared(order.name, run_order(self.disk, order)))

    def killed_after(self, steps: int) -> None:
        """The process ends, at the latest when the disk has done so many steps of what is outstanding."""
        # No kill tears a write of less than a page.
        self.disk.short_writes = False
        self.disk.steps_left = steps
        with contextlib.suppress(Killed):
            self.step_sync()
            self.step_order()
        self.disk.steps_left = None
        self.disk.process_crash()

    def run_all(self) -> None:
        while self.syncs or self.orders:
            self.step_sync()
            self.step_order()
