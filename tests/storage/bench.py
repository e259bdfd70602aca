"""One simulated disk and the journals that are opened on it one after the other."""

from dataclasses import replace
from random import Random

from delosmq.model.ids import Position
from delosmq.model.message import Home
from delosmq.model.settings import JournalSettings
from delosmq.storage.journal.records import DATA_START, decode_file_header
from delosmq.storage.journal.recovery.scan import Scan
from delosmq.storage.journal.store import JournalParts, JournalStore
from tests.simulation.disk import SimDisk
from tests.simulation.syncer import StepSyncer
from tests.storage import on_disk
from tests.storage.support import NODE, SMALL, Kept, Listener, note, release, store_message


class Bench:
    """Opens, fills and damages journals."""

    def __init__(self, random: Random) -> None:
        self.disk = SimDisk(random)
        self.kept = Kept()
        self.position = 0
        self.start()

    def start(
        self,
        node_id: bytes = NODE,
        *,
        accept_loss: bool = False,
        settings: JournalSettings = SMALL,
        parts: JournalParts | None = None,
    ) -> None:
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
            parts=parts,
        )
        self.store.attach(self.listener, self.listener.source)
        self.position = self.begun_at = self.store.recover(self.kept)

    def restart(self, **settings: int) -> None:
        """Another life with other settings, and its files are ready."""
        self.start(settings=replace(SMALL, **settings))
        self.sync()

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
        batch.targets[:] = [home]
        batch.released[:] = [home]
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
        assert max(self.listener.synced, default=self.begun_at) == self.position or self.listener.failures

    def sync_only(self) -> None:
        """As `sync`, while no file is made ready."""
        self.store.flush()
        while self.syncer.syncs:
            self.syncer.step_sync()
            self.store.on_readable()
            self.store.flush()

    def make_ready(self, files: int) -> None:
        """The background makes that many of the files that were ordered."""
        for _ in range(files):
            self.syncer.step_order()
        self.store.on_readable()

    def fill_segment(self) -> list[Home]:
        """Appends messages until the journal has rolled once; returns what went into the old segment."""
        first = self.open_number
        homes = []
        while self.open_number == first:
            homes.append(self.put(bytes(3000)))
            self.sync()
        return homes

    def roll(self) -> None:
        """Fills the open segment, and the next one is begun."""
        self.sync()
        self.fill()
        self.sync()

    def fill(self) -> None:
        """As `roll`, and nothing of it is synced yet."""
        assert self.ready, "no file to go on in"
        first = self.open_number
        while self.open_number == first:
            # In the file it stands twice: in its block and in the footer.
            self.note(bytes(max(100, min(20_000, (self.room - on_disk.RESERVE) // 2))))

    def name_of(self, segment: int) -> str:
        for name in self.disk.names():
            header = decode_file_header(self.content(name)[:DATA_START])
            if header is not None and header.number == segment:
                return name
        raise AssertionError(f"segment {segment} is in no file")

    @property
    def open_segment(self) -> Scan:
        """As it stands in its file once everything is written."""
        self.store.flush()
        return on_disk.open_segment(self.disk)

    @property
    def open_number(self) -> int:
        return on_disk.open_header(self.disk)[1].number

    @property
    def room(self) -> int:
        """What the open segment still takes."""
        self.store.flush()
        return on_disk.room(self.disk)

    @property
    def segments(self) -> set[int]:
        """Those that count, as of the last sync."""
        return on_disk.segments(self.disk)

    @property
    def ready(self) -> int:
        """How many files are ready for the next segments."""
        return len(on_disk.ready_files(self.syncer))

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
