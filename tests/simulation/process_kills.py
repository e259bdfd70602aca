"""Processes that are killed at any step of what they do with the disk, and power that goes then or a little later."""

import contextlib
from random import Random
from typing import Final

from delosmq.model.settings import JournalSettings
from delosmq.storage.journal.store import JournalStore
from tests.simulation.disk import Killed, SimDisk
from tests.simulation.syncer import StepSyncer
from tests.storage.support import NODE, Kept, Listener

MOST_STEPS: Final = 8
"""Of one sync with an edit, of putting another manifest in place, or of making a file ready."""
STEPS_OF_A_START: Final = 20


def killed_start(disk: SimDisk, settings: JournalSettings, steps: int, kind: type[JournalStore] = JournalStore) -> bool:
    """A start on this disk ends after so many steps, and at the latest when the journal stands; whether that was
    before."""
    store = kind(disk, settings, node_id=NODE, syncer=StepSyncer(disk), entropy=disk.random.randbytes)
    listener = Listener()
    store.attach(listener, listener.source)
    disk.short_writes = False
    disk.steps_left = steps
    killed = True
    with contextlib.suppress(Killed):
        store.recover(Kept())
        killed = False
    disk.steps_left = None
    disk.process_crash()
    return killed


def found_after(
    random: Random, disk: SimDisk, settings: JournalSettings, kind: type[JournalStore] = JournalStore
) -> SimDisk:
    """The disk as the next start finds it, after a kill or a power cut, and perhaps starts that were killed, too."""
    disk.process_crash()
    while True:
        if random.random() < 0.7:
            disk = disk.power_cut()
        if random.random() < 0.7:
            return disk
        killed_start(disk, settings, random.randrange(STEPS_OF_A_START), kind)
