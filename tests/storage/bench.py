"""One simulated disk and the journals that are opened on it one after the other."""

from random import Random

from delosmq.model.ids import Position
from delosmq.model.message import Home
from delosmq.model.settings import JournalSettings
from delosmq.storage.journal.store import JournalStore
from tests.simulation.disk import SimDisk
from tests.simulation.syncer import StepSyncer
from tests.storage.support import NODE, SMALL, Kept, Listener, note, release, store_message


class Bench:
    """Opens, fills and damages journals."""

    def __init__(self, random: Random) -> None:
        self.disk = SimDisk(random)
        self.kept = Kept()
        self.position = 0
        self.start()

    def start(self, node_id: bytes = NODE, *, accept_loss: bool = False, settings: JournalSettings = SMALL) -> None:
        self.listener = Listener()
        self.syncer = StepSyncer(self.disk)
        self.kept = Kept()
        self.store = JournalStore(
            self.disk,
            settings,
            node_id=node_id,
            syncer=self.syncer,
            entropy=self.disk.random.randbytes,
            accept_loss=accept_loss,
        )
        self.store.attach(self.listener, self.listener.source)
        self.position = self.store.recover(self.kept)

    def next(self) -> int:
        self.position += 1
        return self.position

    def note(self, meta: bytes = b"note") -> None:
        self.store.append(note(self.next(), meta))

    def put(self, body: bytes) -> Home:
        batch, home = store_message(self.next(), body)
        self.store.append(batch)
        return home

    def move(self, home: Home, body: bytes) -> Home:
        """Stores a message again, as compaction does."""
        batch, new = store_message(self.next(), body)
        batch.targets = [home]
        batch.released = [home]
        self.store.append(batch)
        self.sync()
        return new

    def release(self, *homes: Home) -> None:
        self.store.append(release(self.next(), *homes))

    def sync(self) -> None:
        """Everything in the background comes to rest."""
        self.store.flush()
        while self.syncer.syncs or self.syncer.orders or self.syncer.reports:
            self.syncer.run_all()
            self.store.on_readable()
            self.store.flush()
        assert self.store._synced == self.position or self.listener.failures

    def fill_segment(self) -> list[Home]:
        """Appends messages until the journal has rolled once; returns what went into the old segment."""
        first = self.store._open.number
        homes = []
        while self.store._open.number == first:
            homes.append(self.put(bytes(3000)))
            self.sync()
        return homes

    def roll(self) -> None:
        """Goes on to the next segment, whatever room the open one has."""
        self.note()
        self.store._roll()
        self.sync()

    def name_of(self, segment: int) -> str:
        found = self.store._ledger.find(segment)
        assert found is not None
        return found.name

    def content(self, name: str) -> bytes:
        return bytes(self.disk.files[name].seen)

    def replace(self, name: str, content: bytes) -> None:
        """What an operator, or a broken disk, makes of a file."""
        file = self.disk.files[name]
        file.seen, file.kept, file.versions, file.lengths = bytearray(content), bytearray(content), {}, []

    def delete(self, name: str) -> None:
        del self.disk.files[name]
        self.disk.kept_names.pop(name, None)

    def damage(self, name: str, offset: int, size: int = 1) -> None:
        file = self.disk.files[name]
        for content in (file.seen, file.kept):
            for at in range(offset, offset + size):
                content[at] ^= 0xFF

    def wait(self) -> None:
        self.store.wait_synced(Position(self.position), 5)
