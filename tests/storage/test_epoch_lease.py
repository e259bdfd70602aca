"""The epoch lease with seeded clocks: holders that stall, lose answers and come back, on one row."""

from random import Random

import pytest

from delosmq.model.errors import InvariantError
from delosmq.storage.postgres.epoch_lease import AGAIN, DONE, FENCED, HOLDING, IN_DOUBT, EpochLease
from tests.chance import tries

EXPIRATION_NS = 1_000_000
STALL_NS = 3 * EXPIRATION_NS


class Row:
    """The database: its clock, the row, and what is written."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.epoch = 0
        self.last_batch = 0
        self.lease_until_ns = -1
        self.written: list[tuple[int, int]] = []
        """Epoch and batch."""

    def take_over(self, asked_ns: int) -> EpochLease | None:
        if self.lease_until_ns >= self.now_ns:
            return None
        self.epoch += 1
        self.lease_until_ns = self.now_ns + EXPIRATION_NS
        return EpochLease(self.epoch, self.last_batch, expiration_ns=EXPIRATION_NS, asked_ns=asked_ns)

    def fits(self, epoch: int, before: int) -> bool:
        return self.epoch == epoch and self.last_batch == before

    def commit(self, epoch: int, before: int, batch: int) -> bool:
        if not self.fits(epoch, before):
            return False
        self.last_batch = batch
        self.lease_until_ns = self.now_ns + EXPIRATION_NS
        self.written.append((epoch, batch))
        return True


class UncheckedEpoch(Row):
    """A canary: what must be noticed."""

    def fits(self, epoch: int, before: int) -> bool:
        return True


class Broker:
    """One that tries to hold the row; its clock is the database's, plus an offset, and runs up to 5 % off."""

    def __init__(self, row: Row, random: Random) -> None:
        self.row = row
        self.random = random
        self.offset_ns = random.randrange(10 * EXPIRATION_NS)
        self.rate = random.uniform(0.95, 1.05)
        self.lease: EpochLease | None = None
        self.confirmed: list[tuple[int, int]] = []
        self.in_flight: tuple[int, int, int] | None = None
        """Epoch, batch before, batch: sent, and perhaps not there yet."""

    @property
    def now_ns(self) -> int:
        return self.offset_ns + int(self.row.now_ns * self.rate)

    def pass_time(self, most_ns: int) -> None:
        self.row.now_ns += self.random.randrange(most_ns)

    def turn(self) -> None:
        lease = self.lease
        if lease is None or lease.state == FENCED:
            asked = self.now_ns
            self.pass_time(1000)
            self.lease = self.row.take_over(asked)
        elif lease.state == IN_DOUBT:
            self._look(lease)
        else:
            self._commit(lease)

    def _commit(self, lease: EpochLease) -> None:
        asked = self.now_ns
        before = lease.last_batch
        batch = before + self.random.randint(1, 3)
        lease.send(batch)
        self.pass_time(self.random.choice([1000, STALL_NS]))
        fate = self.random.random()
        if fate < 0.2:  # never got there
            lease.lose()
            return
        if fate < 0.3:  # will get there later
            self.in_flight = (lease.epoch, before, batch)
            lease.lose()
            return
        taken = self.row.commit(lease.epoch, before, batch)
        self.pass_time(1000)
        if fate < 0.5 or not taken:  # the answer is lost, or is no
            lease.lose()
            return
        lease.committed(asked)
        self.confirmed.append((lease.epoch, batch))

    def _look(self, lease: EpochLease) -> None:
        if self.in_flight is not None and self.random.random() < 0.5:
            self.row.commit(*self.in_flight)
            self.in_flight = None
        found = lease.find(self.row.epoch, self.row.last_batch)
        if found == DONE:
            self.confirmed.append((lease.epoch, self.row.last_batch))
        elif found == AGAIN and self.in_flight is None and self.random.random() < 0.2:
            # Another session of the same broker, whose commit waited for the row, comes late.
            self.in_flight = (lease.epoch, lease.last_batch, lease.last_batch + 1)


def play(seed: int, row: Row, turns: int = 200) -> None:
    random = Random(seed)
    brokers = [Broker(row, random) for _ in range(3)]
    for _ in range(turns):
        broker = random.choice(brokers)
        broker.turn()
        broker.pass_time(random.choice([1000, EXPIRATION_NS // 3, STALL_NS]))
        leaving = [one for one in brokers if one.lease is not None and one.lease.may_leave(one.now_ns)]
        assert len(leaving) <= 1, "two let answers leave at once"
    epochs = [epoch for epoch, _ in row.written]
    assert epochs == sorted(epochs), "an old holder wrote after a new one"
    batches = [batch for _, batch in row.written]
    assert batches == sorted(set(batches)), "batches of two holders are mixed"
    for broker in brokers:
        assert set(broker.confirmed) <= set(row.written), "confirmed and not written"


@pytest.mark.parametrize("first", range(0, tries(1_000), 100))
def test_two_holders_never_both_confirm_or_let_answers_leave(first: int) -> None:  # HA-2
    for seed in range(first, first + 100):
        play(seed, Row())


def test_a_row_without_its_epoch_checked_is_noticed() -> None:
    def play_some() -> None:
        for seed in range(20):
            play(seed, UncheckedEpoch())

    with pytest.raises(AssertionError, match=r"leave at once|wrote after|are mixed|not written"):
        play_some()


def test_in_doubt_the_row_decides() -> None:  # HA-2
    def doubtful() -> EpochLease:
        lease = EpochLease(7, 10, expiration_ns=EXPIRATION_NS, asked_ns=0)
        lease.send(12)
        lease.lose()
        assert lease.state == IN_DOUBT
        return lease

    done = doubtful()
    assert (done.find(7, 12), done.state, done.last_batch) == (DONE, HOLDING, 12)
    again = doubtful()
    assert (again.find(7, 10), again.state, again.last_batch) == (AGAIN, HOLDING, 10)
    taken = doubtful()
    assert (taken.find(8, 10), taken.state) == (FENCED, FENCED)
    strange = doubtful()
    assert (strange.find(7, 11), strange.state) == (FENCED, FENCED)
    assert strange.find(7, 12) == FENCED, "for good"


def test_the_lease_ends_here_before_it_ends_there() -> None:  # HA-2
    lease = EpochLease(1, 0, expiration_ns=1000, asked_ns=50)
    assert lease.may_leave(949)
    assert not lease.may_leave(950)
    lease.renewed(100)
    assert lease.may_leave(999)
    lease.renewed(60)
    assert lease.may_leave(999), "an answer that came late takes nothing back"
    lease.end()
    assert not lease.may_leave(100)


def test_nothing_is_sent_while_in_doubt() -> None:
    lease = EpochLease(1, 0, expiration_ns=1000, asked_ns=0)
    lease.send(1)
    lease.lose()
    with pytest.raises(InvariantError, match="DMQ3060"):
        lease.send(2)
