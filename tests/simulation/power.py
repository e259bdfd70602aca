"""Runs a journal on the simulated disk, cuts power at a random moment, restarts, and again."""

import json
from copy import deepcopy
from dataclasses import replace
from random import Random

from delosmq.engine.log.batch_limits import FITS, largest_batch_bytes, ordinary_batch_bytes
from delosmq.model.errors import StorageError
from delosmq.model.ids import MonotonicNs
from delosmq.model.message import Home
from delosmq.model.settings import JournalSettings
from delosmq.storage.journal.manifest import Edit, load
from delosmq.storage.journal.records import DATA_START
from delosmq.storage.journal.spares import file_name
from delosmq.storage.journal.store import JournalStore
from tests.simulation.broker_model import ModelBroker, ModelReplay, resume
from tests.simulation.disk import SimDisk
from tests.simulation.process_kills import MOST_STEPS, STEPS_OF_A_START, found_after, killed_start
from tests.simulation.syncer import StepSyncer
from tests.storage.on_disk import open_header

NODE = bytes(range(16))
SETTINGS = JournalSettings(file_size_bytes=64 * 1024, spare_files=2, compact_min_files=3, compact_percentage=70)
MOVED_PER_BATCH = 4
ORDINARY = ordinary_batch_bytes(SETTINGS.file_size_bytes)
LARGEST = largest_batch_bytes(SETTINGS.file_size_bytes)
RECORD_ROOM = 200
OTHER_SIZES = (64 * 1024, 64 * 1024, 256 * 1024)
"""What somebody may set before the next start."""
SETTINGS_AT_ONCE = 40
TRIES_FOR_AN_EDIT = 60


def open_store(
    disk: SimDisk, kind: type[JournalStore] = JournalStore, settings: JournalSettings = SETTINGS
) -> tuple[JournalStore, StepSyncer]:
    syncer = StepSyncer(disk)
    return kind(disk, settings, node_id=NODE, syncer=syncer, entropy=disk.random.randbytes), syncer


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
        highest = max(highest, open_header(disk)[1].number)
        if random.random() < 0.5:
            syncer.killed_after(random.randrange(MOST_STEPS))
        disk = found_after(random, disk, SETTINGS, kind)
        if random.random() < 0.5:
            lose_newest_file(disk, kind)
    store, _ = open_store(disk, kind)
    resume(model, store)
    return highest


def growing_states(seed: int, kind: type[JournalStore] = JournalStore, *, cuts: int = 4, steps: int = 60) -> int:
    """As `power_cuts`, with a state that outgrows the files, and goes back. Returns the largest file of all."""
    random = Random(seed)
    disk = SimDisk(random, 4096)
    model = ModelBroker(random)
    largest = 0
    for _ in range(cuts):
        settings = replace(SETTINGS, file_size_bytes=random.choice(OTHER_SIZES))
        store, syncer = open_store(disk, kind, settings)
        model, _ = resume(model, store)
        if random.random() < 0.3:
            disk.free_bytes = random.choice([0, 1, 3, 20]) * SETTINGS.file_size_bytes
        asks = random.random() < 0.7
        grows = random.choice([0.2, 0.8])
        for _ in range(random.randrange(steps)):
            change_state(random, model, store, grows=random.random() < grows, asks=asks or disk.free_bytes is not None)
            _live(random, disk, model, store, syncer, random.randrange(4))
        disk.free_bytes = None
        largest = max(largest, open_header(disk)[1].size_bytes)
        if random.random() < 0.2:
            settle(model, store, syncer)
        if random.random() < 0.5:
            syncer.killed_after(random.randrange(MOST_STEPS))
        disk = found_after(random, disk, settings, kind)
        if random.random() < 0.5:
            lose_newest_file(disk, kind)
    store, syncer = open_store(disk, kind)
    model, _ = resume(model, store)
    settle(model, store, syncer)
    return largest


def killed_starts(seed: int, kind: type[JournalStore] = JournalStore, *, lives: int = 4, steps: int = 60) -> int:
    """As `power_cuts`, and each life ends with a kill while the manifest is changed. On what that leaves a start is
    killed at each of its steps, each time on a disk of its own, and then power goes. Returns how many lives ended so.
    """
    random = Random(seed)
    disk = SimDisk(random, random.choice([512, 4096]))
    model = ModelBroker(random)
    changing = 0
    for _ in range(lives):
        store, syncer = open_store(disk, kind)
        model, _ = resume(model, store)
        _live(random, disk, model, store, syncer, random.randrange(steps))
        changing += _live_until_an_edit(random, model, store, syncer)
        syncer.killed_after(random.randrange(1, MOST_STEPS))
        for step in range(STEPS_OF_A_START):
            found = deepcopy(disk)
            found.random = random
            killed_start(found, SETTINGS, step, kind)
            store, _ = open_store(found.power_cut(), kind)
            resume(model, store)
        disk = disk.power_cut()
    return changing


def _live_until_an_edit(random: Random, model: ModelBroker, store: JournalStore, syncer: StepSyncer) -> bool:
    """Goes on until a change of the manifest is under way, that frees files if possible; False when none came."""
    for _ in range(TRIES_FOR_AN_EDIT):
        if syncer.syncs and isinstance(syncer.syncs[0][4], Edit):
            return True
        batch = model.random_batch(keep=0.3)
        if batch.metas:
            model.send(store, batch)
        store.flush()
        if not (syncer.syncs and isinstance(syncer.syncs[0][4], Edit)):
            syncer.run_all()
            store.on_readable()
    return False


def change_state(random: Random, model: ModelBroker, store: JournalStore, *, grows: bool, asks: bool) -> None:
    """Some batches about settings, of which the state is made."""
    there = model.source.settings
    most = len(model.source.state()) + SETTINGS_AT_ONCE * 200
    if grows and asks and not store.takes_state(most):
        return
    for number in range(random.randrange(SETTINGS_AT_ONCE) if grows else len(there) // 2):
        batch = model.batch()
        if grows:
            model.change_setting(batch, f"{random.randrange(10**150)}{number}", 1)
        else:
            model.drop_setting(batch, next(iter(there)))
        model.send(store, batch)


def settle(model: ModelBroker, store: JournalStore, syncer: StepSyncer) -> None:
    """With room on the disk and time for the background everything decided is confirmed."""
    store.tick(MonotonicNs(0))
    store.flush()
    while syncer.syncs or syncer.orders or syncer.reports:
        syncer.run_all()
        store.on_readable()
        store.flush()
    assert model.synced == model.position
    assert not model.low
    assert not model.failures


def lose_newest_file(found: SimDisk, kind: type[JournalStore]) -> None:
    """Besides power, the newest file is lost of which something may have been confirmed: that must be noticed."""
    manifest = load(found, NODE)
    if manifest is None or manifest.opened == 0:
        return
    disk = found.copy()
    name = file_name(manifest.file)
    file = disk.files[name]
    damage = disk.random.choice(["deleted", "empty", "cut", "blank", "without header"])
    if damage == "deleted":
        del disk.files[name]
    elif damage == "without header":
        file.seen[:64] = bytes(64)
    elif damage == "blank":
        file.seen[:] = bytes(len(file.seen))
    else:
        del file.seen[0 if damage == "empty" else DATA_START :]
    store, _ = open_store(disk, kind)
    after = ModelBroker(disk.random)
    store.attach(after, after.source)
    told = ""
    try:
        store.recover(ModelReplay())
    except StorageError as error:
        told = str(error)
    assert name in told, f"{name}, the newest file, is {damage}, and the start says {told or 'nothing'}"


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
        if random.random() < 0.03:
            send_large(random, model, store)
        if random.random() < 0.2:
            compact(model, store)
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


def send_large(random: Random, model: ModelBroker, store: JournalStore) -> bool:
    """Most of a segment at once, if there is a place for it: then it may not be refused. Whether it was sent."""
    size = random.randrange(ORDINARY, LARGEST - RECORD_ROOM)
    if model.low or store.ask_large(size + RECORD_ROOM) != FITS:
        return False
    batch = model.batch()
    model.add_message(batch, random.randbytes(size), {1, 2})
    model.send(store, batch)
    return True


def compact(model: ModelBroker, store: JournalStore) -> int:
    """A slice of what the engine's compaction does. Returns how many messages were stored again."""
    segment = store.compaction_victim()
    batch = model.batch()
    moved: list[tuple[int, Home]] = []
    for number, (queues, home, body) in model.messages.items():
        if not segment or home.segment != segment or len(moved) == MOVED_PER_BATCH:
            continue
        if moved and sum(map(len, batch.bodies)) + len(body) > SETTINGS.file_size_bytes // 8:
            break
        new = Home()
        moved.append((number, new))
        batch.stored.append((len(batch.metas), new))
        batch.metas.append(json.dumps(["stored", number, sorted(queues)]).encode())
        batch.bodies.append(body)
        batch.targets.append(home)
        batch.released.append(home)
    if not moved:
        return 0
    before = {number: model.messages[number] for number, _ in moved}
    for number, new in moved:
        queues, _, body = before[number]
        model.messages[number] = (queues, new, body)
    try:
        model.send(store, batch)
    except StorageError as error:
        if error.code not in {"DMQ3004", "DMQ3023"}:
            raise
        model.messages.update(before)
        model.position -= 1
        return 0
    return len(moved)
