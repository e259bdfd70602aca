"""One life of a simulated broker with clients at the engine's interface and checks at each delivery and each turn."""

from collections.abc import Callable
from random import Random
from typing import Any

from delosmq.engine.addresses.address import SpaceWaiter
from delosmq.engine.base.jobs import JobWaiter
from delosmq.engine.base.slots import Slot
from delosmq.engine.broker import EngineBroker
from delosmq.engine.lifecycle.subscriptions import SubscriptionOptions
from delosmq.engine.queues.consumer import PLAIN, Consumer, ConsumerOptions, consumers_of
from delosmq.engine.queues.credit import ByteCredit, Credit, MessageCredit
from delosmq.engine.routing.send_result import BLOCKED, DUPLICATE, NO_ROUTE, ROUTED
from delosmq.engine.transactions.transaction import ACTIVE, COMMITTING, Transaction
from delosmq.model.errors import BrokerError, LimitError
from delosmq.model.message import Message
from delosmq.sessions.openwire.server.protocol import OpenWireProtocol
from delosmq.storage.journal.store import JournalStore
from tests.simulation.broker_world import GROUP, Client, Reader, World, body_of, number_of
from tests.simulation.disk import SimDisk
from tests.simulation.whole.catalogue import CROWD, TOLD, Catalogue
from tests.simulation.whole.openwire import OpenWirePeer
from tests.simulation.whole.oracle import Knowledge, Outcome, original
from tests.simulation.whole.owners import Owners
from tests.simulation.whole.recount import check_counters, check_places, check_same, durable_state
from tests.simulation.whole.stomp import StompPeer, services_for
from tests.simulation.whole.times import SetClock, Times

HOPELESS = frozenset({"DMQ2650", "DMQ2664"})
"""A transaction would wait for others that wait for it, or for itself."""

Front = Callable[[EngineBroker], Any]
Credits = Callable[[int], Credit]


class Listener(Reader):
    """A consumer that checks who gets what and when.

    Attributes:
        browses: looks only; borrows: does so, or reads a queue that keeps what it hands out.
        rejected: what its client returned or rolled back, by sequence, till it gets that again.
        gone: it left, or its queue was deleted.
    """

    def __init__(self, life: "Life", client: Client, queue: str, limit: int) -> None:
        super().__init__(client, queue)
        self.life = life
        self.limit = limit
        self.gone = False
        self.browses = False
        self.by_bytes = False
        self.borrows = False
        self.rejected: set[int] = set()

    @property
    def subscribed(self) -> Consumer:
        """Its consumer."""
        assert self.consumer is not None
        return self.consumer

    def deliver(self, slot: Slot) -> None:
        life = self.life
        assert not self.gone, f"a consumer of {self.queue} gets a message after it left"
        if not self.borrows:
            life.check_turn(self.queue, slot)
            life.check_owner(self, self.queue, slot)
            life.knowledge.owners.check(self.queue, self.subscribed, slot)
        if not self.browses:
            life.check_fresh(self.queue, slot)
        self.rejected.discard(slot.sequence)
        life.knowledge.gives(self.queue, slot, life.broker.log.position)
        position = slot.message.position if slot.recorded else 0
        self.client.tell(position, lambda: self._sees(slot, position), self.stream, slot.sequence)

    def closed_by_broker(self, reason: BrokerError) -> None:
        self.life.forget(self)

    def through(self, sequence: int) -> list[Slot]:
        """What its client answers for with a cumulative acknowledgement; not again for what it returned, though it may
        not be back yet."""
        if self.borrows:
            return []
        return [slot for slot in self.subscribed.held_through(sequence) if slot.sequence not in self.rejected]

    def _sees(self, slot: Slot, position: int) -> None:
        life = self.life
        life.told(position)  # not what another delivery of this message has had to wait for since
        life.knowledge.sees(self.queue, slot.message, slot.delivery_count > 1)
        if not self.browses:  # who browses sees what is in delivery to others
            life.knowledge.sees_once(original(self.queue, slot))
        self.seen.append(slot)


class Done(JobWaiter):
    """A commit that goes on in slices."""

    def __init__(self, life: "Life", ended: Callable[[bool], None]) -> None:
        self.life = life
        self.ended = ended

    def on_ended(self, error: BrokerError | None) -> None:
        life = self.life
        life.opaque -= 1
        life.ended.append((self.ended, error is None))


class Turn(SpaceWaiter):
    """A transaction waits for room for its next message."""

    def __init__(self, life: "Life", work: "Work", number: int, message: Message, queues: list[str]) -> None:
        self.life = life
        self.work = work
        self.number = number
        self.message = message
        self.queues = queues

    def on_space(self) -> None:
        self.life.woken.append(self)


class Work:
    """What a client has done in an open transaction."""

    def __init__(self, transaction: Transaction, xid: bytes | None) -> None:
        self.transaction = transaction
        self.xid = xid
        self.sends: list[tuple[int, list[str], Message]] = []
        self.acks: list[tuple[Listener, Slot]] = []
        self.ids: list[tuple[tuple[str, bytes], int]] = []
        self.spoiled = False
        self.prepared = False
        self.waiting: Turn | None = None

    @property
    def is_free(self) -> bool:
        """Whether its client can ask for something."""
        return self.waiting is None and self.transaction.state == ACTIVE


class Life(World):
    """See `World`.

    Attributes:
        opaque: commits in slices that are under way: the durable state is then neither the old nor the new one.
        more: the last tick left work.
    """

    def __init__(
        self,
        random: Random,
        disk: SimDisk,
        knowledge: Knowledge,
        catalogue: Catalogue,
        *,
        kind: type[JournalStore],
        expected: dict[int, Any],
        early: bool = False,
        front: Front | None = None,
        credits: Credits = MessageCredit,
        peer: type[StompPeer] = StompPeer,
        clock: SetClock,
    ) -> None:
        self.knowledge = knowledge
        knowledge.owners = Owners()
        self.times = knowledge.times = Times(clock)
        self.set_clock = clock
        self.peer_kind = peer
        self.catalogue = catalogue
        self.credits = credits
        self.opaque = 0
        self.more = True
        self.listeners: list[Listener] = []
        self.work: list[Work] = []
        self.owners: dict[tuple[str, str], object] = {}
        self.bounds: dict[str, int] = {}
        self.ids: dict[tuple[str, bytes], int] = {}
        self.ended: list[tuple[Callable[[bool], None], bool]] = []
        self.woken: list[Turn] = []
        self.peers: list[StompPeer] = []
        self.openwire_peers: list[OpenWirePeer] = []
        self.openwire_protocol = OpenWireProtocol()
        self.errors: list[str] = []
        self.last_sequence = 0
        super().__init__(
            random,
            disk,
            knowledge,
            kind=kind,
            expected=expected,
            early=early,
            settings=catalogue.settings,
            clock=clock,
        )
        self.real = knowledge.owners.broker = self.broker
        knowledge.queues = self.real.queues
        self.times.note(self.real.queues)
        self.services = services_for(self)
        if catalogue.slice:
            transacting = self.real.transactions
            transacting.at_once = transacting.taken_per_slice = catalogue.slice
            transacting._commit_steps.acknowledged_per_slice = catalogue.slice
        if front is not None:
            self.broker = front(self.broker)

    # -- durable state -------------------------------------------------------------------------------------------

    @property
    def is_opaque(self) -> bool:
        """Whether what goes on in slices has been done in part."""
        return self.opaque > 0 or len(self.broker.transactions.far) > 0 or self.is_staging

    @property
    def is_staging(self) -> bool:
        """Whether parts that sinks staged are on their way into queues, or away."""
        open_ones = self.broker.transactions.open.values()
        return any(one.part is not None and (one.part.is_ending or one.state == COMMITTING) for one in open_ones)

    def snapshot(self) -> Any:
        return None if self.is_opaque else durable_state(self.broker, self.holders)

    def check_replayed(self, replayed: Any, position: int) -> None:
        assert position in self.store.expected, f"position {position} came back, which never was"
        live: Any = self.store.expected[position]
        if live is not None:
            where = f"the state replayed at {position} is not the live one"
            check_same(replayed, live, where=where, clock=self.set_clock, lagging=self.knowledge.was_full)

    def told(self, position: int) -> None:
        """A client knows now what this position says."""
        knowledge = self.knowledge
        knowledge.told_position = max(knowledge.told_position, position)

    def confirm(self, learn: Callable[[], None]) -> None:
        """Runs ``learn`` when a client is told that all so far is stored."""
        position = int(self.broker.log.position)

        def told() -> None:
            self.told(position)
            learn()

        self.producer.tell(position, told)

    # -- turns ---------------------------------------------------------------------------------------------------

    def turn(self) -> None:
        self.more = self.broker.tick()
        ended, self.ended = self.ended, []
        for tell, done in ended:
            tell(done)
        woken, self.woken = self.woken, []
        for turn in woken:
            self.try_again(turn)
        if not woken and not self.more:
            self._check_waiting()
        self.store.flush()
        if self.random.random() < 0.1:
            self.store.catch_up(self.store.put_off())  # what nobody waits for has waited long enough
        if self.early:
            self.gate.on_synced(self.broker.log.position)
        self.check()
        self.write()

    def write(self) -> None:
        super().write()
        for peer in list(self.peers):
            peer.write()
        for other in list(self.openwire_peers):
            other.write()

    def check(self) -> None:
        """What is true at the end of every turn."""
        self.holders.of(self.real)
        for name, queue in self.broker.queues.items():
            self._check_ring(name)
            if name in self.catalogue.strict:
                self._check_places(name)
            ours = {id(listener.consumer) for listener in self.listeners if listener.queue == name}
            strangers = [c.id for c in consumers_of(queue) if id(c) not in ours and not self.is_foreign(c)]
            assert not strangers, f"{name} has consumers that left: {strangers}"
        for listener in self.listeners:
            self._check_credit(listener)
        if not self.more and not self.is_opaque:
            check_counters(self.real, self.holders)
            self.times.check(self.real.queues)
            if not self.store.reserve.owed:
                check_places(self.real, self.holders, self.store.ledger)

    def is_foreign(self, consumer: Consumer) -> bool:
        """Whether it belongs to a session."""
        return not isinstance(consumer.port, Listener)

    def _check_ring(self, name: str) -> None:
        queue = self.broker.queues[name]
        size = queue.ring_size
        if size < 0:
            self.bounds.pop(name, None)
            return
        # A ring made smaller keeps what it has (RING-4), and takes no more than that.
        count = queue.pending.count
        asked = queue.settings.ring_size
        bound = max(asked if asked is not None else size, self.bounds.get(name, count))
        assert count <= bound, f"{name} has {count} pending messages, its ring takes {bound}"
        self.bounds[name] = count

    def _check_places(self, name: str) -> None:
        before: Slot | None = None
        for slot in self.broker.queues[name].pending.in_order():
            if slot.message.due_at_ms:
                continue
            if before is not None and before.message.priority == slot.message.priority:
                assert before.sequence < slot.sequence, f"{name}: {slot.sequence} stands behind {before.sequence}"
            before = slot

    def _check_credit(self, listener: Listener) -> None:
        consumer = listener.consumer
        if consumer is None or listener.browses:
            return
        held = consumer.held_newest_first()
        if consumer.loans is not None:
            return
        if listener.by_bytes:
            used = sum(slot.message.encoded_size_bytes for slot in held)
            room = used < listener.limit
        else:
            room = len(held) < listener.limit
            # What a rollback returns in slices is held again until it is back.
            bound = listener.limit if consumer.queue is None or not consumer.queue.suspensions else len(held)
            assert len(held) <= bound, f"a consumer of {listener.queue} holds {len(held)} of {listener.limit}"
        assert consumer.credit.has_room() == room, f"credit of a consumer of {listener.queue} has leaked"

    # -- checks at a delivery ------------------------------------------------------------------------------------

    def check_turn(self, name: str, slot: Slot) -> None:
        """Nobody gets a message before an earlier one, where that is the rule."""
        if name not in self.catalogue.strict:
            return
        head = self.broker.queues[name].pending.head()
        if head is None or slot.message.due_at_ms or head.message.due_at_ms:
            return
        ahead = (slot.message.priority, -slot.sequence) > (head.message.priority, -head.sequence)
        assert ahead, f"{name} hands out {slot.sequence} before {head.sequence}"

    def check_owner(self, listener: object, name: str, slot: Slot) -> None:
        """A group has one owner."""
        if not slot.message.group_id or name != "teams":
            return
        key = (name, slot.message.group_id)
        owner = self.owners.get(key)
        assert owner is None or owner is listener or getattr(owner, "gone", True), f"{key} has two owners"
        self.owners[key] = listener
        if slot.message.group_sequence == -1:
            del self.owners[key]

    def check_fresh(self, name: str, slot: Slot) -> None:
        """Nothing expired is handed out; on a full disk it may be, rather than be lost (docs/decisions/0042)."""
        expires_at_ms = slot.message.expires_at_ms
        fresh = expires_at_ms == 0 or expires_at_ms > self.set_clock.true_wall_ms()
        full = self.store.spares.short or self.real.log.storage_full
        assert fresh or full, f"{name} hands out {slot.sequence}, which has expired"

    # -- sending -------------------------------------------------------------------------------------------------

    def number(self) -> int:
        """A number for a new message."""
        number = self.knowledge.next_number
        self.knowledge.next_number += 1
        return number

    def make(self, address: str, rng: Random, **fields: Any) -> tuple[int, Message, list[str]]:
        """A message, its number, and the queues it should reach."""
        number = self.number()
        color = rng.choice(["red", "blue"])
        body = body_of(number, fields.pop("size_bytes"))
        head = f"color:{color}\nkey:{rng.choice('ab')}\n".encode()
        message = Message(address, "stomp/12", head, body, timestamp_ms=self.clock.wall_ms(), **fields)
        knowledge = self.knowledge
        knowledge.bodies[number] = body
        if message.durable:
            knowledge.durable.add(number)
        if message.duplicate_id:
            knowledge.ids[number] = (address, message.duplicate_id)
        return number, message, self.receivers(address, color)

    def names(self) -> list[str]:
        """The queues that clients know of."""
        return [name for name, queue in self.broker.queues.items() if not queue.internal and name != TOLD]

    def receivers(self, address: str, color: str) -> list[str]:
        """The queues that should get a message."""
        named = [queue.name for place in [address] for queue in self._subscriptions(place)]
        existing = [name for name in self.catalogue.receivers(address, color) if name in self.broker.queues]
        return existing + named

    def _subscriptions(self, address: str) -> list[Any]:
        known = self.broker.addresses.get(address)
        return [q for q in known.multicast if q.name.startswith("sub-")] if known is not None else []

    def put(self, number: int, message: Message, queues: list[str]) -> int:
        """Sends; what comes of it is confirmed when it is stored."""
        knowledge = self.knowledge
        key = knowledge.ids.get(number)
        outcome = self.broker.producers.send(message)
        if outcome == ROUTED or (outcome == NO_ROUTE and not queues):
            self.check_new(number, key)
            if outcome == ROUTED:
                self.check_sequence(message)
            if message.durable:
                self.confirm(lambda: self._confirmed(number, queues, key))
        else:
            assert outcome in (BLOCKED, DUPLICATE), f"the send of {number} to {message.address} gave {outcome}"
            assert outcome != DUPLICATE or key is not None
            knowledge.refused.add(number)
        return outcome

    def check_new(self, number: int, key: tuple[str, bytes] | None) -> None:
        """A send was accepted: its duplicate id must be new."""
        if key is not None:
            unit = self.knowledge.unit_of(number)
            known = self.ids.setdefault(key, unit)
            known = self.knowledge.ids_told.get(key, known)
            assert known == unit, f"{number} is accepted though {known} has its duplicate id {key}"

    def check_sequence(self, message: Message) -> None:
        """Messages keep the order in which they were sent."""
        assert not message.sequence or message.sequence > self.last_sequence, "a later message has an earlier place"
        self.last_sequence = max(self.last_sequence, message.sequence)

    def _confirmed(self, number: int, queues: list[str], key: tuple[str, bytes] | None) -> None:
        self.knowledge.confirmed.update((number, queue) for queue in queues)
        if key is not None:
            self.knowledge.ids_told.setdefault(key, self.knowledge.unit_of(number))

    # -- consuming -----------------------------------------------------------------------------------------------

    def listen(
        self,
        queue: str,
        credit: int,
        *,
        options: ConsumerOptions = PLAIN,
        subscription: SubscriptionOptions | None = None,
        by_bytes: bool = False,
    ) -> Listener:
        """Attaches a consumer."""
        listener = Listener(self, Client(self.gate), queue, credit)
        listener.browses = options.browser
        listener.by_bytes = by_bytes
        granted: Credit = ByteCredit(credit) if by_bytes else self.credits(credit)
        if subscription is not None:
            listener.consumer = self.broker.consumers.subscribe("news", listener, granted, subscription=subscription)
        else:
            known = self.broker.queues[queue]
            listener.borrows = options.browser or known.in_force.non_destructive
            listener.consumer = self.broker.consumers.subscribe(
                known.address.name, listener, granted, queue_name=queue, options=options
            )
        self.readers.append(listener)
        self.listeners.append(listener)
        return listener

    def part(self, listener: Listener) -> None:
        """A consumer goes; what it acknowledged in transactions stays promised."""
        self.broker.consumers.close(listener.subscribed, listener.client.outbox.close_stream(listener.stream))
        self.forget(listener)

    def forget(self, listener: Listener) -> None:
        """It is gone."""
        listener.gone = True
        listener.seen.clear()
        if listener in self.listeners:
            self.readers.remove(listener)
            self.listeners.remove(listener)

    def answered(self, queue: str, slots: list[Slot]) -> None:
        """Slots were acknowledged by the decision just closed."""
        knowledge = self.knowledge
        references = {original(queue, slot) for slot in slots}
        knowledge.ack_issued.update(references)
        self.confirm(lambda: knowledge.ack_confirmed.update(references))

    def lease(self, rows: int) -> None:
        """As `World.lease`; asking for the next lease acknowledges the one before."""
        knowledge = self.knowledge
        try:
            super().lease(rows)
            for slot in self._leased():
                fresh = slot.message.expires_at_ms == 0 or slot.message.expires_at_ms > slot.delivered_at_ms
                assert fresh or knowledge.was_full, f"{slot.sequence} is leased, which had expired"
        finally:
            for number, leased in knowledge.leased.items():
                if number <= max(knowledge.lease_acked, knowledge.lease_ack_issued):
                    knowledge.ack_issued.update((number_of(body), "orders.archive") for _, body, _ in leased)

    def _leased(self) -> list[Slot]:
        group = self.real.leases.groups.get(GROUP)
        return [] if group is None else [slot for lease in group.leases.values() for slot in lease.slots]

    # -- transactions --------------------------------------------------------------------------------------------

    def confirm_after(self, command: Callable[[], object], learn: Callable[[], None]) -> None:
        """Does something, and runs ``learn`` when a client is told that it is stored."""
        command()
        self.confirm(learn)

    def ending(self, work: Work) -> Outcome:
        """What a commit of this will have done."""
        knowledge = self.knowledge
        sends = [(number, queues) for number, queues, message in work.sends if message.durable]
        sent = {(number, queue) for number, queues in sends for queue in queues if queue in self.broker.queues}
        answered = {original(listener.queue, slot) for listener, slot in work.acks if slot.recorded}
        knowledge.ack_issued.update(original(listener.queue, slot) for listener, slot in work.acks)
        outcome = Outcome(sent, answered)
        knowledge.commits.append(outcome)
        return outcome

    def take_back(self, work: Work) -> None:
        """A rollback: nothing of it may ever be seen."""
        self.knowledge.refused.update(number for number, _, _ in work.sends)
        for listener, slot in work.acks:
            listener.rejected.add(slot.sequence)  # it may be on its way back for some turns
        turn = work.waiting
        if turn is not None:
            work.waiting = None
            self.knowledge.refused.add(turn.number)
            self.real.blocked_producers.cancel(turn.message.address, turn)

    def try_again(self, turn: Turn) -> None:
        """There may be room for a message now."""
        work = turn.work
        if work.waiting is turn:
            work.waiting = None
            if work.transaction.state == ACTIVE:
                self.put_in_turn(turn)
            else:
                self.knowledge.refused.add(turn.number)

    def put_in_turn(self, turn: Turn) -> str:
        """Sends a message in a transaction, and waits while there is no room for it."""
        work = turn.work
        try:
            outcome = self.broker.transactions.send(work.transaction, turn.message)
        except LimitError as error:
            if error.code not in HOPELESS:
                raise
            self.knowledge.refused.add(turn.number)
            return f", refused ({error.code})"
        if outcome == BLOCKED:
            work.waiting = turn
            self.real.blocked_producers.wait(turn.message.address, turn, size_bytes=turn.message.encoded_size_bytes)
            return ", which waits"
        assert outcome == ROUTED, outcome
        work.sends.append((turn.number, turn.queues, turn.message))
        return ""

    def _check_waiting(self) -> None:
        """No transactions wait for each other alone."""
        waiting = [work for work in self.work if work.waiting is not None and work.transaction.state == ACTIVE]
        while waiting:
            held = [message.address for work in waiting for _, _, message in work.sends]
            stuck = [w for w in waiting if w.waiting is not None and held.count(w.waiting.message.address) >= CROWD]
            assert len(stuck) < len(waiting), f"{len(stuck)} transactions wait for each other for ever"
            waiting = stuck
