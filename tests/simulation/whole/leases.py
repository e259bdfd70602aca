"""Readers of lease groups: they store leases, acknowledge, come again under a new epoch, and some are zombies.

A reader outlives the broker and knows what it was told. What it has stored for sure, no consumer may get any more.
"""

from random import Random
from typing import Final

from delosmq.engine.leases.lease import FENCED, LEASE_LOST, Lease, LeaseError, LeaseGroup
from delosmq.engine.queues.queue import Queue
from delosmq.model.errors import LimitError
from tests.simulation.broker_world import GROUP, Reference, number_of
from tests.simulation.whole.acts import NO_PLACE, excuse_all
from tests.simulation.whole.catalogue import LEASE_RETENTION_MS, PLACES, Catalogue
from tests.simulation.whole.life import Life
from tests.simulation.whole.oracle import original

RED: Final = "color = 'red'"
USER: Final = "rea"
TOPIC_GROUP: Final = "sub-leases"
LEASED: Final = ("jobs", "late", "prices", "teams", "solo", "orders.work", "ranks", "board")
Row = tuple[int, int]
"""Sequence and number of a message."""


class GroupReader:
    """A lease group and the reader that has it.

    Attributes:
        leases: what the reader was told, by number; places: the messages in them.
        stored: its newest lease; ack_asked, ack_told: up to which it has acknowledged, perhaps and for sure.
        epoch: 0 before it has one; zombies: epochs of readers that it replaced.
        unsure: it asked to open and was not told; busy: it waits for an answer.
        ends: how often the group may have ended; known_ends: how many of these before it was opened last.
    """

    def __init__(self, name: str, *, queue: str = "", topic: str = "", selector: str = "") -> None:
        self.name = name
        self.queue = queue
        self.topic = topic
        self.selector = selector
        self.zombies: list[int] = []
        self.ends = 0
        self.contact_ms = 0
        self.forget()

    def forget(self) -> None:
        """A new life of the group."""
        self.incarnation: str | None = None
        self.epoch = 0
        self.leases: dict[int, list[Row]] = {}
        self.places: dict[int, set[Reference]] = {}
        self.stored = self.ack_asked = self.ack_told = 0
        self.unsure = self.busy = False
        self.known_ends = self.ends

    @property
    def may_be_gone(self) -> bool:
        return self.ends > self.known_ends

    @property
    def reads(self) -> str:
        """The queue that it reads."""
        return self.queue or self.name


class GroupReaders:
    """All of them; they go on when the broker dies."""

    def __init__(self, queues: list[str], topics: list[str]) -> None:
        self.all = [GroupReader(f"reds of {name}", queue=name, selector=RED) for name in queues[:2]]
        self.all += [GroupReader(f"all of {name}", queue=name) for name in queues[:1]]
        self.all += [GroupReader(TOPIC_GROUP, topic=name) for name in topics[:1]]
        self.acknowledged: set[Reference] = set()
        self.began_ms = 0
        self.leased = 0
        self.fenced = 0

    def broker_died(self) -> None:
        """What nobody was told is not waited for."""
        for reader in self.all:
            reader.busy = False

    def queue_deleted(self, queue: str) -> None:
        """Its groups end."""
        for reader in self.all:
            if reader.reads == queue:
                reader.ends += 1

    def check_recovered(self, groups: dict[str, LeaseGroup], now_ms: int) -> None:
        """Groups are as their readers were told."""
        self.began_ms = now_ms
        for reader in self.all:
            if reader.incarnation is None or reader.may_be_gone:
                continue
            group = groups.get(reader.name)
            assert group is not None, f"group '{reader.name}' is gone"
            assert group.incarnation == reader.incarnation, f"group '{reader.name}' has another life"
            assert group.epoch >= reader.epoch, f"group '{reader.name}' has gone back to epoch {group.epoch}"
            known = (reader.ack_told, group.acked, reader.ack_asked)
            assert known == tuple(sorted(known)), f"group '{reader.name}' has acknowledged {known}"
            for number, rows in reader.leases.items():
                lease = group.leases.get(number)
                assert number <= group.acked or (lease is not None and _rows(lease) == rows), f"lease {number} changed"


def _readers(life: Life) -> GroupReaders:
    readers: GroupReaders = life.knowledge.readers
    return readers


def readers_for(catalogue: Catalogue) -> GroupReaders:
    """Readers of its favourite queues that leases can be made of, and of a topic if there is one."""
    able = [queue.name for place in catalogue.places for queue in place.queues if queue.name in LEASED]
    able.sort(key=lambda name: name != catalogue.favourite)
    return GroupReaders(able, [name for name in catalogue.addresses if not PLACES[name].queues])


def _rows(lease: Lease) -> list[Row]:
    return [(int(slot.sequence), number_of(slot.message.body)) for slot in lease.slots]


def _gone(reader: GroupReader, error: LeaseError, life: Life) -> str:
    """A call was refused."""
    if error.condition == LEASE_LOST:
        assert reader.may_be_gone, f"group '{reader.name}' is lost without a reason: {error}"
        reader.forget()
        return f"the reader of '{reader.name}' learns that its group is gone"
    assert error.condition == FENCED, error
    assert reader.unsure, f"the reader of '{reader.name}' is fenced, and no other was ever there"
    reader.zombies.append(reader.epoch)
    reader.epoch = 0
    return f"the reader of '{reader.name}' is fenced"


def _expects(error: LeaseError, condition: str, *, may_be: bool = True) -> None:
    if error.condition != condition or not may_be:
        raise AssertionError(f"refused without a reason: {error}")


def open_group(life: Life, rng: Random) -> str:
    """A reader opens its group, or another one does that goes on from its checkpoint."""
    reader = rng.choice(_readers(life).all)
    if reader.busy or (reader.epoch and rng.random() < 0.7) or reader.reads not in [*life.broker.queues, TOPIC_GROUP]:
        return ""
    known = life.real.leases.groups.get(reader.name)
    ends = reader.ends
    try:
        group = life.broker.lease_groups.open(
            reader.name,
            queue=reader.queue,
            topic=reader.topic,
            run="run",
            incarnation=reader.incarnation,
            user=USER,
            selector=reader.selector,
        )
    except LeaseError as error:
        return _gone(reader, error, life)
    epoch, incarnation = group.epoch, group.incarnation
    assert group is known or group.newest == 0
    assert epoch > max([reader.epoch, *reader.zombies]), f"epoch {epoch} of '{reader.name}' was there before"
    reader.unsure = reader.busy = True
    reader.contact_ms = life.clock.now_ms

    def learn() -> None:
        if reader.epoch:
            reader.zombies.append(reader.epoch)
        reader.unsure = reader.busy = False
        reader.epoch, reader.incarnation = epoch, incarnation
        reader.known_ends = ends

    life.confirm(learn)
    return f"'{reader.name}' is opened under epoch {epoch}"


def ask(life: Life, rng: Random) -> str:
    """A reader acknowledges what it has stored and asks for the next lease."""
    reader = rng.choice(_readers(life).all)
    if reader.busy or not reader.epoch:
        return ""
    after = reader.stored
    queue = life.real.queues.get(reader.reads)
    newest = 0 if queue is None else life.real.transactions.newest_sequence(queue)
    until = rng.choice([None, None, newest, max(0, newest - 3)])
    _acknowledges(life, reader, after)
    try:
        lease = life.broker.leases.request(
            reader.name,
            after=after,
            max_rows=rng.choice([1, 3, 10]),
            max_bytes=rng.choice([2_000, 10**9]),
            epoch=reader.epoch,
            until=until,
        )
    except LeaseError as error:
        return _gone(reader, error, life)
    except LimitError as error:
        if error.code != NO_PLACE:
            raise
        return f"a lease of '{reader.name}' is refused for want of disk"
    reader.contact_ms = life.clock.now_ms
    number, rows, places = after, list[Row](), set[Reference]()
    if lease is not None:
        number, rows = lease.number, _rows(lease)
        places = {original(reader.reads, slot) for slot in lease.slots}
        _check_lease(life, reader, lease, until)
    elif until is not None and queue is not None:
        _check_nothing_left(life, reader, queue, until)
    reader.busy = True

    def learn() -> None:
        reader.busy = False
        _told(life, reader, after)
        if rows:
            reader.leases[number], reader.places[number] = rows, places
            reader.stored = number
            _readers(life).leased += len(rows)

    life.confirm(learn)
    return f"'{reader.name}' asks after lease {after}: {rows}"


def _check_lease(life: Life, reader: GroupReader, lease: Lease, until: int | None) -> None:
    rows = _rows(lease)
    assert lease.number == reader.stored + 1, f"lease {lease.number} follows {reader.stored} of '{reader.name}'"
    assert reader.leases.get(lease.number, rows) == rows, f"lease {lease.number} of '{reader.name}' has changed"
    before = [places for number, places in reader.places.items() if number < lease.number]
    again = {original(reader.reads, slot) for slot in lease.slots} & _readers(life).acknowledged.union(*before)
    assert not again, f"lease {lease.number} of '{reader.name}' has messages of leases before it: {sorted(again)[:5]}"
    for slot in lease.slots:
        assert not reader.selector or b"color:red" in slot.message.head, f"{slot.sequence} does not match"


def _check_nothing_left(life: Life, reader: GroupReader, queue: Queue, until: int) -> None:
    """With ``until`` a reader ends when it is told that there is nothing."""
    group = life.real.leases.groups[reader.name]
    if group.collecting or queue.suspended or queue.consumer_count:
        return
    left = [
        slot.sequence
        for slot in queue.pending.in_order()
        if slot.sequence <= until and (not reader.selector or b"color:red" in slot.message.head)
    ]
    assert not left, f"'{reader.name}' is told that there is nothing up to {until}, with {left[:5]} there"


def _acknowledges(life: Life, reader: GroupReader, upto: int) -> None:
    reader.ack_asked = max(reader.ack_asked, upto)
    for number, places in reader.places.items():
        if number <= upto:
            life.knowledge.ack_issued.update(places)


def _told(life: Life, reader: GroupReader, upto: int) -> None:
    reader.ack_told = max(reader.ack_told, upto)
    for number, places in reader.places.items():
        if number <= upto:
            _readers(life).acknowledged.update(places)


def acknowledge(life: Life, rng: Random) -> str:
    """A reader acknowledges, perhaps what it has acknowledged before."""
    reader = rng.choice(_readers(life).all)
    if reader.busy or not reader.epoch:
        return ""
    number = rng.randrange(reader.stored + 1)
    _acknowledges(life, reader, number)
    try:
        acked = life.broker.leases.acknowledge(reader.name, number, reader.epoch)
    except LeaseError as error:
        return _gone(reader, error, life)
    assert max(number, reader.ack_told) <= acked <= reader.ack_asked
    reader.contact_ms = life.clock.now_ms
    reader.busy = True

    def learn() -> None:
        reader.busy = False
        _told(life, reader, number)

    life.confirm(learn)
    return f"'{reader.name}' acknowledges lease {number}"


def read(life: Life, rng: Random) -> str:
    """Anybody reads a lease that was told, with the epoch of a zombie or with none: this keeps no group."""
    able = [reader for reader in _readers(life).all if reader.leases]
    if not able:
        return ""
    reader = rng.choice(able)
    number = rng.choice([*reader.leases])
    leases = life.real.leases
    group = leases.groups.get(reader.name)
    silent_ms = -1 if group is None else leases.silent_ms(group)
    start, stop = sorted(rng.choices(range(12), k=2))
    try:
        slots = life.broker.leases.rows(reader.name, number, start, stop, rng.choice([None, *reader.zombies]))
    except LeaseError as error:
        _expects(error, LEASE_LOST, may_be=reader.may_be_gone or number <= reader.ack_asked)
        return f"lease {number} of '{reader.name}' can't be read any more"
    if reader.may_be_gone:
        return ""  # of another life, perhaps
    rows = [(int(slot.sequence), number_of(slot.message.body)) for slot in slots]
    assert rows == reader.leases[number][start:stop], f"lease {number} of '{reader.name}' has changed"
    assert group is not None
    assert leases.silent_ms(group) == silent_ms, f"a stranger keeps group '{reader.name}'"
    return f"rows {start} to {stop} of lease {number} of '{reader.name}' are read"


def zombie(life: Life, rng: Random) -> str:
    """A reader that was replaced goes on."""
    able = [reader for reader in _readers(life).all if reader.zombies]
    if not able:
        return ""
    reader = rng.choice(able)
    epoch = rng.choice(reader.zombies)
    leases = life.broker.leases
    number = rng.randrange(reader.stored + 2)
    act = rng.choice(["asks", "acknowledges", "touches"])
    try:
        if act == "asks":
            leases.request(reader.name, after=number, max_rows=1, max_bytes=1, epoch=epoch, until=None)
        elif act == "acknowledges":
            leases.acknowledge(reader.name, number, epoch)
        else:
            leases.touch(reader.name, epoch)
    except LeaseError as error:
        there = reader.name in life.real.leases.groups
        _expects(error, FENCED if there else LEASE_LOST)
        _readers(life).fenced += 1
        return f"a zombie of '{reader.name}' {act} under epoch {epoch}, and is refused"
    raise AssertionError(f"a zombie of '{reader.name}' {act} under epoch {epoch}, and is heard")


def release(life: Life, rng: Random) -> str:
    """An operator ends a group."""
    reader = rng.choice(_readers(life).all)
    if reader.name not in life.real.leases.groups or rng.random() < 0.5:
        return ""
    _ends(life, reader)
    life.broker.lease_groups.release(reader.name)
    return f"'{reader.name}' is released"


def _ends(life: Life, reader: GroupReader) -> None:
    reader.ends += 1
    if reader.topic:
        excuse_all(life, reader.name)  # its queue goes


def retain(life: Life, rng: Random) -> str:
    """Time goes by, and groups whose readers were silent for long end."""
    life.clock.now_ms += rng.choice([LEASE_RETENTION_MS // 2, LEASE_RETENTION_MS // 2 + 1])
    readers = _readers(life)
    leases = life.real.leases
    if GROUP in leases.groups:
        leases.touch(GROUP, leases.groups[GROUP].epoch)  # of another part of these histories
    by_name = {reader.name: reader for reader in readers.all}
    for name in leases.overdue():
        _ends(life, by_name[name])
    ended = life.broker.lease_groups.end_overdue()
    for name in ended:
        silent_ms = life.clock.now_ms - max(by_name[name].contact_ms, readers.began_ms)
        assert silent_ms > LEASE_RETENTION_MS, f"'{name}' has ended {silent_ms} ms after a call of its reader"
    return f"the groups {ended} end after a silence" if ended else "readers are silent for a while"
