"""Runs a journal on the simulated disk, cuts power at a random moment, restarts, and again."""

from random import Random

from delosmq.model.errors import StorageError
from delosmq.model.ids import MonotonicNs
from delosmq.model.settings import JournalSettings
from delosmq.storage.journal.store import JournalStore
from tests.simulation.broker_model import ModelBroker, resume
from tests.simulation.disk import SimDisk
from tests.simulation.syncer import StepSyncer

NODE = bytes(range(16))
SETTINGS = JournalSettings(file_size_bytes=64 * 1024, spare_files=2)


def open_store(disk: SimDisk, kind: type[JournalStore] = JournalStore) -> tuple[JournalStore, StepSyncer]:
    syncer = StepSyncer(disk)
    return kind(disk, SETTINGS, node_id=NODE, syncer=syncer, entropy=disk.random.randbytes), syncer


def power_cuts(seed: int, kind: type[JournalStore] = JournalStore, *, cuts: int = 4, steps: int = 120) -> int:
    """One seed: several lives of one journal, each ended by a cut. Returns how many segments were begun."""
    random = Random(seed)
    disk = SimDisk(random, random.choice([512, 4096]))
    model = ModelBroker(random)
    highest = 0
    for _ in range(cuts):
        store, syncer = open_store(disk, kind)
        model, _ = resume(model, store)
        if random.random() < 0.3:
            disk.free_bytes = random.choice([0, 1, 3]) * SETTINGS.file_size_bytes
        _live(random, disk, model, store, syncer, random.randrange(steps))
        disk.free_bytes = None
        highest = max(highest, store._open.number)
        if random.random() < 0.2:
            disk.process_crash()
            continue
        if syncer.syncs and random.random() < 0.5:
            syncer.step_sync(stop_after=random.randrange(3))
        disk = disk.power_cut()
    store, _ = open_store(disk, kind)
    resume(model, store)
    return highest


def _live(
    random: Random, disk: SimDisk, model: ModelBroker, store: JournalStore, syncer: StepSyncer, steps: int
) -> None:
    disk.short_writes = random.random() < 0.3
    keep = random.choice([0.3, 0.5, 0.6])
    sync_rate = random.choice([0.1, 0.5, 0.9])
    for _ in range(steps):
        for _ in range(random.choice([1, 1, 3])):
            batch = model.random_batch(keep=keep)
            if batch.metas:
                try:
                    model.send(store, batch)
                except StorageError as error:
                    # A large batch may come before a file for it is ready.
                    if error.code not in ({"DMQ3004"} if disk.free_bytes is None else {"DMQ3004", "DMQ3023"}):
                        raise
                    return
        if random.random() < 0.8:
            store.flush()
        if random.random() < sync_rate:
            syncer.step_sync()
        if random.random() < 0.7:
            syncer.step_order()
        if random.random() < sync_rate:
            store.on_readable()
        if random.random() < 0.05:
            store.tick(MonotonicNs(0))
        assert not model.failures
