"""Drivers of sinks: they stage a batch, publish it, try again when they were not told, and give up attempts.

A driver outlives the broker. Each attempt at a batch has a name and messages of its own; of all attempts at most one
may ever be seen. Now and then a task is run again, and a task of a dead attempt goes on. A duplicate id that only the
oracle knows says so: messages of different attempts share it.
"""

from contextlib import suppress
from random import Random
from typing import Final

from delosmq.engine.routing.send_result import BLOCKED, ROUTED
from delosmq.engine.transactions.staging_errors import FENCED, NO_ROOM_NOW, PART_LOST, StagingError
from delosmq.engine.transactions.transaction import Transaction
from delosmq.model.errors import BrokerError
from delosmq.model.message import ANY_ROUTING, Message
from tests.simulation.whole.catalogue import DEAD, EXPIRED
from tests.simulation.whole.life import Done, Life
from tests.simulation.whole.oracle import Outcome

USER: Final = "sam"
Sends = list[tuple[int, list[str], Message]]


class Part:
    """What one task staged. ``told``: it knows so."""

    def __init__(self, uuid: str, task: str) -> None:
        self.uuid = uuid
        self.task = task
        self.sends: Sends = []
        self.told = False


class Driver:
    """One application.

    Attributes:
        batch: that it works on.
        unit: of its attempt; parts: of that; given_up: no longer awaited, though it was asked to be published.
        asked: the broker was asked to publish the batch, in this attempt or an earlier one.
        attempt_asked: likewise, in this one.
        busy: it waits for an answer to its publishing.
        before: uuids of the last batch known to be published; before_attempt: of it.
        attempt: its name; dead: those before it at this batch.
        overtaken: a task of a dead one staged something, so that the broker may take that attempt for the newer.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.batch = 0
        self.unit = 0
        self.parts: list[Part] = []
        self.asked = False
        self.attempt_asked = False
        self.busy = False
        self.before: list[str] = []
        self.before_attempt = ""
        self.attempts = 0
        self.attempt = f"{name}-0"
        self.dead: list[str] = []
        self.overtaken = False

    def begin_attempt(self) -> None:
        self.dead.append(self.attempt)
        self.attempts += 1
        self.attempt = f"{self.name}-{self.attempts}"
        self.unit = 0
        self.parts = []
        self.attempt_asked = False

    def begin_batch(self) -> None:
        self.before = [part.uuid for part in self.parts]
        self.before_attempt = self.attempt
        self.batch += 1
        self.asked = False
        self.begin_attempt()
        self.dead = []
        self.overtaken = False

    @property
    def sends(self) -> Sends:
        return [send for part in self.parts for send in part.sends]


class Drivers:
    """All drivers; they go on when the broker dies."""

    def __init__(self) -> None:
        self.all = [Driver("query-a"), Driver("query-b")]
        self.published = 0
        self.staged = 0
        self.run_again = 0
        self.late = 0
        self.clock_set = False

    def broker_died(self, refused: set[int]) -> None:
        """What nobody was told is not waited for."""
        for driver in self.all:
            driver.busy = False
            for part in [part for part in driver.parts if not part.told]:
                driver.parts.remove(part)
                refused.update(number for number, _, _ in part.sends)


def _drivers(life: Life) -> Drivers:
    drivers: Drivers = life.knowledge.drivers
    return drivers


def stage(life: Life, rng: Random) -> str:
    """A task stages a part; when its batch may be published already this begins another attempt, as a replay does."""
    driver = rng.choice(_drivers(life).all)
    if driver.busy:
        return ""
    if driver.attempt_asked:
        driver.begin_attempt()
    staging = life.broker.staging
    number = life.number()
    part = Part(f"{driver.name}-{number}", _task(life, rng, driver, number))
    if staging.published.holds(driver.name, driver.batch):
        assert driver.asked, f"{driver.name} has published {driver.batch} without being asked"
    transaction = _begin(life, driver, part, driver.attempt)
    if transaction is None:
        assert driver.overtaken, f"{driver.name} is fenced without a reason"
        _forget_attempt(life, driver)
        return f"{driver.name} learns that a dead attempt has taken its place"
    driver.unit = driver.unit or -life.number()
    outcome = ROUTED
    for _ in range(rng.choice([1, 2, 4])):
        outcome = _add(life, rng, driver, part, transaction)
        if outcome != ROUTED:
            staging.abandon(transaction)
            life.knowledge.refused.update(number for number, _, _ in part.sends)
            return f"{driver.name} finds no room to stage {part.uuid}"
    driver.parts.append(part)

    def ended(done: bool) -> None:
        if done:
            life.confirm(lambda: _told(life, part))
            return
        life.knowledge.refused.update(number for number, _, _ in part.sends)
        if part in driver.parts:
            driver.parts.remove(part)

    life.opaque += 1
    refusal: BrokerError | None = None
    done = False
    try:
        done = staging.prepare(transaction, Done(life, ended))
    except BrokerError as error:
        refusal = error
    if refusal is not None:
        life.opaque -= 1
        known = isinstance(refusal, StagingError) and refusal.condition in (NO_ROOM_NOW, PART_LOST, FENCED)
        assert known or life.knowledge.was_full, f"a part is refused without a reason: {refusal}"
        ended(False)
        return f"{driver.name} fails to stage {part.uuid}"
    if done:
        life.opaque -= 1
        ended(True)
    return f"{driver.name} stages {part.uuid} of batch {driver.batch}: messages {[n for n, _, _ in part.sends]}"


def _begin(life: Life, driver: Driver, part: Part, attempt: str) -> Transaction | None:
    """None when another attempt goes on instead."""
    refusal: StagingError | None = None
    try:
        return life.broker.staging.begin(
            driver.name, driver.batch, part.uuid, USER, attempt=attempt, task=part.task, run=part.uuid
        )
    except StagingError as error:
        refusal = error
    assert refusal.condition == FENCED, refusal
    return None


def _task(life: Life, rng: Random, driver: Driver, number: int) -> str:
    """A task of its own, or one that is run again: what it staged before is not published."""
    told = [part for part in driver.parts if part.told]
    if not told or rng.random() > 0.2:
        return str(number)
    before = rng.choice(told)
    driver.parts.remove(before)
    life.knowledge.refused.update(number for number, _, _ in before.sends)
    _drivers(life).run_again += 1
    return before.task


def stage_late(life: Life, rng: Random) -> str:
    """A task of a dead attempt goes on: it may be refused, and what it stages is never seen."""
    driver = rng.choice(_drivers(life).all)
    if driver.busy or not driver.dead:
        return ""
    staging = life.broker.staging
    part = Part(f"{driver.name}-{life.number()}", "late")
    dead = rng.choice(driver.dead)
    try:
        transaction = _begin(life, driver, part, dead)
    except BrokerError:
        driver.overtaken = True  # though there was no room for its part
        raise
    if transaction is None:
        return f"a task of {dead} is refused"
    driver.overtaken = True
    _drivers(life).late += 1
    unit, driver.unit = driver.unit, -life.number()
    outcome = _add(life, rng, driver, part, transaction)
    driver.unit = unit
    life.knowledge.refused.update(number for number, _, _ in part.sends)
    if outcome != ROUTED:
        staging.abandon(transaction)
        return f"a task of {dead} finds no room"
    life.opaque += 1
    done = True
    with suppress(BrokerError):
        done = staging.prepare(transaction, Done(life, lambda done: None))
    if done:
        life.opaque -= 1
    return f"a task of {dead} stages {part.uuid} late"


def _add(life: Life, rng: Random, driver: Driver, part: Part, transaction: Transaction) -> int:
    addresses = [name for name in life.catalogue.addresses if name not in (DEAD, EXPIRED)]
    number, message, queues = life.make(
        rng.choice(addresses), rng, durable=rng.random() < 0.9, size_bytes=rng.choice([10, 10, 500])
    )
    message.user = USER
    part.sends.append((number, queues, message))
    life.knowledge.units[number] = driver.unit
    life.knowledge.ids[number] = (driver.name, b"%d" % driver.batch)
    try:
        return life.broker.staging.add(transaction, message, ANY_ROUTING)
    except BrokerError:
        return BLOCKED


def _told(life: Life, part: Part) -> None:
    part.told = True
    _drivers(life).staged += 1


def publish(life: Life, rng: Random) -> str:
    """A driver publishes its batch, and asks again, with the same parts, until it is told."""
    drivers = _drivers(life)
    driver = rng.choice(drivers.all)
    if driver.busy or not all(part.told for part in driver.parts):
        return ""
    knowledge = life.knowledge
    sends = driver.sends
    uuids = [part.uuid for part in driver.parts]
    asked, attempt_asked = driver.asked, driver.attempt_asked
    driver.asked = driver.attempt_asked = True
    sent = {(n, queue) for n, queues, m in sends if m.durable for queue in queues if queue in life.broker.queues}
    outcome = Outcome(sent, set())
    knowledge.commits.append(outcome)
    refusal: StagingError | None = None
    published = False
    try:
        published = life.broker.staging.publish(driver.name, driver.batch, uuids, USER, attempt=driver.attempt)
    except StagingError as error:
        refusal = error
    except BrokerError:
        knowledge.commits.remove(outcome)
        driver.asked, driver.attempt_asked = asked, attempt_asked
        raise
    if refusal is not None:
        knowledge.commits.remove(outcome)
        if refusal.condition == NO_ROOM_NOW and life.broker.storage_low:
            driver.asked, driver.attempt_asked = asked, attempt_asked
            return f"{driver.name} finds no room to publish batch {driver.batch}"
        assert refusal.condition == PART_LOST, refusal
        assert drivers.clock_set or driver.overtaken, f"a batch is refused without a reason: {refusal}"
        _forget_attempt(life, driver)
        return f"{driver.name} learns that parts of batch {driver.batch} are lost"
    batch = driver.batch
    driver.busy = True
    if published:

        def learn() -> None:
            knowledge.confirmed.update(sent)
            _on_published(drivers, driver, batch)

        life.confirm(learn)
        return f"{driver.name} publishes batch {batch}: {uuids}"
    knowledge.commits.remove(outcome)
    assert asked, f"batch {batch} of {driver.name} is said to be published, and nobody asked for that"
    if not attempt_asked:
        knowledge.refused.update(number for number, _, _ in sends)
    life.confirm(lambda: _on_published(drivers, driver, batch))
    return f"{driver.name} learns that batch {batch} is published already"


def _on_published(drivers: Drivers, driver: Driver, batch: int) -> None:
    drivers.published += 1
    driver.busy = False
    assert driver.batch == batch
    driver.begin_batch()


def _forget_attempt(life: Life, driver: Driver) -> None:
    life.knowledge.refused.update(number for number, _, _ in driver.sends)
    driver.begin_attempt()


def discard(life: Life, rng: Random) -> str:
    """A driver gives up its attempt."""
    driver = rng.choice(_drivers(life).all)
    if driver.busy or not driver.parts or not all(part.told for part in driver.parts):
        return ""
    uuids = [part.uuid for part in driver.parts]
    life.broker.staging.discard(driver.name, driver.batch, uuids, USER)
    if driver.attempt_asked:
        driver.begin_attempt()  # it may be published all the same
    else:
        _forget_attempt(life, driver)
    return f"{driver.name} discards {uuids}"


def come_late(life: Life, rng: Random) -> str:
    """A driver that was thought dead asks again for a batch that is known to be published, or gives it up."""
    driver = rng.choice(_drivers(life).all)
    batch = driver.batch - 1
    if batch < 0:
        return ""
    if rng.random() < 0.5:
        assert life.broker.staging.discard(driver.name, batch, driver.before, USER) == 0, "a published part is there"
        return f"{driver.name} gives up batch {batch}, which is published"
    again = life.broker.staging.publish(driver.name, batch, driver.before, USER, attempt=driver.before_attempt)
    assert not again, f"batch {batch} of {driver.name} is published a second time"
    return f"{driver.name} publishes batch {batch} again"
