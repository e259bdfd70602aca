"""More addresses and queues than fit beside the messages in a journal file of the configured size: the files grow."""

import logging
from random import Random

import pytest

from delosmq.engine.lifecycle.subscriptions import SubscriptionOptions
from delosmq.engine.queues.credit import OpenCredit
from delosmq.model.errors import LimitError
from delosmq.model.ids import MonotonicNs
from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.settings import JournalSettings, QueueSettings
from delosmq.storage.journal.spares import STATE_SHARE, TIGHT_SHARE
from tests.simulation.disk import SimDisk
from tests.storage.bench import Bench
from tests.storage.on_disk import RESERVE, open_header, ready_files
from tests.storage.test_compaction import FILE_BYTES, Life, Reader

pytestmark = pytest.mark.slow

MANY = 2_000
NORMAL = 64 * 1024


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)


def roll(bench: Bench) -> None:
    """Fills the open file with what needs no reserve; the background gets its turns."""
    first = bench.open_number
    while bench.open_number == first:
        press(bench, 1)


def press(bench: Bench, notes: int) -> None:
    for _ in range(notes):
        bench.note(bytes(4_000))
        bench.store.flush()
        bench.syncer.run_all()
        bench.store.on_readable()
    assert not bench.listener.failures


def state_of(bench: Bench, size_bytes: int) -> bytes:
    bench.listener.source.now = bytes([65 + bench.position % 26]) * size_bytes
    return bench.listener.source.now


def sizes(bench: Bench) -> set[int]:
    headers = [open_header(bench.disk)[1], *ready_files(bench.syncer)]
    return {header.size_bytes for header in headers}


def open_size(bench: Bench) -> int:
    return open_header(bench.disk)[1].size_bytes


@pytest.mark.parametrize("asks", [True, False], ids=["asked", "not asked"])
@pytest.mark.parametrize("step", [900, 50_000])
def test_files_grow_with_the_state_and_the_journal_starts_again(bench: Bench, step: int, asks: bool) -> None:
    state = b""
    for size in range(step, 200_000, max(step, 20_000)):
        state = state_of(bench, size)
        if asks:
            assert bench.store.takes_state(size)
        roll(bench)
        roll(bench)
    bench.sync()
    assert open_size(bench) >= STATE_SHARE * len(state) > NORMAL
    kept = bench.put(b"kept")
    bench.sync()
    bench.disk.process_crash()
    bench.start()
    assert bench.kept.states[0][1] == state
    assert bench.store.read(kept) == b"kept"
    assert open_size(bench) >= STATE_SHARE * len(state)
    roll(bench)


def test_a_state_that_leaps_beyond_the_files_waits_for_larger_ones(bench: Bench) -> None:
    bench.sync()
    before = bench.open_number
    state_of(bench, 300_000)
    while bench.room >= RESERVE:
        bench.note(bytes(1_000))
    assert bench.open_number == before, "none that is ready holds the state"
    assert bench.listener.space == [True], "senders wait"
    for _ in range(100):
        bench.note(bytes(1_000))
    assert bench.open_segment.position < bench.position, "what was decided waits in memory"
    bench.sync()
    assert bench.listener.space[-1] is False
    assert bench.listener.full == []
    assert bench.open_number > before
    assert open_size(bench) >= STATE_SHARE * 300_000
    last = bench.position
    bench.start()
    assert (bench.position, len(bench.kept.states[0][1])) == (last, 300_000)


def test_a_crash_at_any_moment_of_growing_keeps_what_was_confirmed() -> None:
    for turns in range(0, 60, 3):
        bench = Bench(Random(turns))
        for turn in range(turns):
            state_of(bench, 2_000 * (turn + 1))
            for _ in range(5):
                bench.note(bytes(1_500))
            bench.store.flush()
            bench.syncer.step_sync()
            bench.syncer.step_order()
            bench.store.on_readable()
        confirmed = max(bench.listener.synced, default=0)
        bench.disk = bench.disk.power_cut()
        bench.start()
        assert bench.position >= confirmed
        roll(bench)


def test_a_smaller_journal_file_size_takes_what_a_larger_one_wrote() -> None:
    bench = Bench(Random(1))
    large = JournalSettings(file_size_bytes=1024 * 1024, spare_files=2)
    bench.start(settings=large)
    state = state_of(bench, 50_000)
    bench.roll()
    kept = bench.put(b"kept")
    bench.sync()
    bench.start()  # with files of 64 KiB, of which an eighth is 8 KiB: it was refused (DMQ3022)
    assert bench.kept.states[0][1] == state
    assert bench.store.read(kept) == b"kept"
    bench.listener.source.now = state
    roll(bench)
    bench.sync()
    assert open_size(bench) == 2 * 1024 * 1024
    state_of(bench, 10)
    for _ in range(4):
        roll(bench)
    assert sizes(bench) == {NORMAL}


def test_files_get_smaller_once_the_state_fits_with_ease(bench: Bench) -> None:
    state_of(bench, 100_000)
    for _ in range(4):
        roll(bench)
    (grown,) = sizes(bench)
    state_of(bench, 60_000)
    for _ in range(4):
        roll(bench)
    assert sizes(bench) == {grown}, "a state that comes and goes does not change them to and fro"
    state_of(bench, 1_000)
    for _ in range(6):
        roll(bench)
    assert sizes(bench) == {NORMAL}
    bench.sync()
    assert all(len(file.seen) <= grown for file in bench.disk.files.values())


# -- a disk that is full -----------------------------------------------------------------------------------------


def test_on_a_full_disk_the_state_stays_within_what_the_files_hold(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    bench.sync()
    bench.disk.free_bytes = 0
    size = 0
    while bench.store.takes_state(size + 200):
        size += 200
        state_of(bench, size)
        bench.sync()
    assert NORMAL // TIGHT_SHARE - 200 <= size <= NORMAL // TIGHT_SHARE
    assert bench.store.takes_state(size * 3 // 4, size // 4)
    assert not bench.store.takes_state(size * 3 // 4 + 200, size // 4)
    assert sum("DMQ3035" in record.message for record in caplog.records) == 1
    # The journal itself goes on as before: files of the usual size are used again.
    assert bench.listener.space == []
    for _ in range(20):
        before = bench.open_number
        roll(bench)
        bench.store.tick(MonotonicNs(0))
        bench.sync()
        assert bench.open_number > before
        assert sizes(bench) == {NORMAL}
    assert not bench.store.takes_state(size + 200)
    bench.disk.free_bytes = 40 * NORMAL
    bench.store.tick(MonotonicNs(0))
    bench.sync()
    assert bench.store.takes_state(size + 200)
    state_of(bench, 100_000)
    roll(bench)
    assert open_size(bench) >= STATE_SHARE * 100_000


def test_a_leap_on_a_full_disk_ends_when_there_is_space(bench: Bench) -> None:
    bench.sync()
    bench.disk.free_bytes = 0
    state_of(bench, 30_000)
    before = bench.open_number
    press(bench, 20)
    assert bench.open_number == before
    assert bench.listener.full == [True]
    assert not bench.store.takes_state(40_000)
    bench.disk.free_bytes = 40 * NORMAL
    bench.store.tick(MonotonicNs(0))
    bench.sync()
    assert bench.listener.full[-1] is False
    assert bench.open_number > before


def test_a_leap_on_a_full_disk_ends_when_queues_are_deleted(bench: Bench) -> None:
    bench.sync()
    bench.disk.free_bytes = 0
    state_of(bench, 30_000)
    before = bench.open_number
    press(bench, 8)
    state_of(bench, 100)
    bench.store.tick(MonotonicNs(0))
    bench.sync()
    assert bench.open_number > before
    for _ in range(3):
        press(bench, 1)
        bench.store.tick(MonotonicNs(0))
        bench.sync()
    assert bench.listener.full[-1] is False
    assert sizes(bench) == {NORMAL}


def test_a_start_on_a_full_disk_makes_a_large_file_of_small_ones() -> None:
    bench = Bench(Random(1))
    bench.start(settings=JournalSettings(file_size_bytes=1024 * 1024))
    state = state_of(bench, 5_000)
    bench.roll()
    bench.sync()
    bench.start()
    bench.sync()
    bench.disk.free_bytes = 0
    for name in list(bench.disk.files):
        if bench.disk.files[name].seen and name.startswith("journal-") and name not in _needed(bench):
            bench.replace(name, bytes(NORMAL))
    bench.start()
    assert bench.kept.states[0][1] in (state, b"state")


def _needed(bench: Bench) -> set[str]:
    return {bench.name_of(number) for number in bench.segments}


# -- with the engine ---------------------------------------------------------------------------------------------


def test_thousands_of_durable_queues_in_files_of_64_kib() -> None:
    disk = SimDisk(Random(1))
    life = Life(disk, max_destinations=2 * MANY)
    assert FILE_BYTES == NORMAL
    there = life.broker.addresses.keys() | life.broker.queues.keys()
    made = 0
    refusal = ""
    while not refusal:
        name = f"jobs.{made}"
        try:
            life.broker.resources.create_queue(QueueSettings(name, name, ANYCAST), "mia")
        except LimitError as error:
            refusal = str(error)
            break
        made += 1
        if made % 7 == 0:
            life.turn()
    assert refusal.startswith("DMQ2655")
    assert made >= MANY - len(there)
    life.send("jobs.1", b"kept")
    life.turn()
    disk.process_crash()
    again = Life(disk)
    assert {f"jobs.{number}" for number in range(made)} <= again.broker.queues.keys()
    assert again.broker.queues["jobs.1"].message_count == 1
    again.flow(5)


def test_a_message_for_thousands_of_durable_subscriptions_is_as_large_as_ever() -> None:
    life = Life(SimDisk(Random(1)))
    for number in range(MANY):
        life.broker.resources.create_queue(QueueSettings(f"reader.{number}", "news", MULTICAST))
    life.turn()
    life.turn()
    life.send("news", bytes(24_000))
    for _ in range(4):
        life.turn()
        life.send("news", bytes(20_000))
    life.turn()
    assert life.broker.queues["reader.7"].message_count == 5
    disk = life.disk
    disk.process_crash()
    again = Life(disk)
    assert again.broker.queues["reader.1999"].message_count == 5


def _subscribe(life: Life, user: str, name: str, filter_size: int = 8_000) -> None:
    filter = f"color = '{'x' * filter_size}'"
    options = SubscriptionOptions(name=name, durable=True, filter=filter, user=user)
    life.broker.consumers.close(
        life.broker.consumers.subscribe("news", Reader(), OpenCredit(), routing=MULTICAST, subscription=options)
    )


def _fill(life: Life, user: str, filter_size: int = 8_000) -> tuple[int, str]:
    """Makes durable subscriptions with long filters until that is refused; gives how many, and the code."""
    made = 0
    refusal = ""
    while not refusal:
        try:
            _subscribe(life, user, f"{user}.{made}", filter_size)
        except LimitError as error:
            refusal = str(error)
        else:
            made += 1
            life.turn()
    return made, refusal.partition(":")[0]


def test_a_user_at_its_share_is_there_after_a_restart_too() -> None:
    disk = SimDisk(Random(1))
    life = Life(disk, max_destinations_size_per_user=1_600_000)
    made, code = _fill(life, "eve")
    _subscribe(life, "bob", "bob.0")
    life.flow(2)  # a state block has them, and records what comes later
    life.broker.resources.delete_queue("eve.0")
    _subscribe(life, "eve", "eve.0")
    limits = life.broker.client_limits
    before = [(limits.made_by(user), limits.state_bytes_of(user)) for user in ("eve", "bob")]
    life.turn()
    disk.process_crash()
    again = Life(disk, max_destinations_size_per_user=1_600_000)
    limits = again.broker.client_limits
    assert [(limits.made_by(user), limits.state_bytes_of(user)) for user in ("eve", "bob")] == before
    assert (made, code) == (24, "DMQ2688")
    with pytest.raises(LimitError, match="DMQ2688"):
        _subscribe(again, "eve", "eve.more")
    _subscribe(again, "bob", "bob.1")
    again.broker.resources.create_queue(QueueSettings("operators", "operators", ANYCAST))
    for number in range(made):
        again.broker.resources.delete_queue(f"eve.{number}")
    # The address is hers still, as others read it; it is not recorded.
    assert (limits.made_by("eve"), limits.state_bytes_of("eve")) == (1, 0)
    again.flow(2)


def test_on_a_full_disk_an_operator_makes_queues_after_clients_were_refused() -> None:
    disk = SimDisk(Random(1))
    life = Life(disk)
    life.turn()
    disk.free_bytes = 0
    made, code = _fill(life, "eve", filter_size=100)
    assert (code, made > 1) == ("DMQ2204", True)
    for number in range(3):
        life.broker.resources.create_queue(QueueSettings(f"operators{number}", "operators", ANYCAST))
        life.turn()
    with pytest.raises(LimitError, match="DMQ2204"):
        life.broker.resources.create_queue(QueueSettings("bobs", "bobs", ANYCAST), "bob")
    disk.process_crash()
    again = Life(disk)
    again.broker.resources.create_queue(QueueSettings("operators3", "operators", ANYCAST))
    assert f"eve.{made - 1}" in again.broker.queues
