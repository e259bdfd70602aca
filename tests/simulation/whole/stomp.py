"""Clients that speak STOMP frames to real sessions, without sockets."""

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from delosmq.model.conversion import Conversions
from delosmq.model.settings import AcceptorSettings
from delosmq.security.access import AccessControl
from delosmq.sessions.host import Peer, SessionServices
from delosmq.sessions.stomp.server.protocol import StompProtocol
from delosmq.wire.openwire.conversion import OpenWireConversion
from delosmq.wire.stomp.conversion import StompConversion
from delosmq.wire.stomp.decoder import StompDecoder, StompFrame
from delosmq.wire.stomp.heads import StompLimits
from delosmq.wire.stomp.versions import V12
from tests.sessions.support import EVERYTHING, Host
from tests.simulation.broker_world import Reference, body_of
from tests.simulation.whole.catalogue import DIVERTS
from tests.simulation.whole.oracle import Outcome

if TYPE_CHECKING:
    from tests.simulation.whole.life import Life

USER, PASSWORD = "anna", "correct horse"
ACCEPTOR = AcceptorSettings("stomp", "localhost", 0, ("STOMP",), stomp_consumer_window_bytes=2_000)
ADDRESSES = ("jobs", "orders", "prices", "solo", "late", "ranks", "teams")
MOST_SENDS = 4
"""In a transaction, so that its commit is one batch."""
QUEUES = ("jobs", "orders.work", "prices", "solo", "late", "DLQ", "teams")
INDIVIDUAL, CUMULATIVE, AUTO = "client-individual", "client", "auto"


def services_for(life: "Life") -> SessionServices:
    """What the sessions of a life share."""
    access = AccessControl({USER: "stored"}, {USER: frozenset({"all"})}, (EVERYTHING,), cache_key=b"k" * 32)
    # Verified once, so that later logins need no hash.
    access.finish(access.attempt(USER, PASSWORD), True)
    return SessionServices(
        life.real,
        life.gate,
        clock=life.clock,
        access=access,
        conversions=Conversions({"stomp": StompConversion(), "openwire": OpenWireConversion()}),
        server_name="DelosMQ/simulated",
    )


class Seen:
    """A MESSAGE that was not answered."""

    def __init__(self, ack: str, number: int, place: Reference) -> None:
        self.ack = ack
        self.number = number
        self.place = place


class Subscription:
    """Of one peer.

    Attributes:
        mode: of its acknowledgement. With `AUTO` that a message is received acknowledges it.
    """

    def __init__(self, queue: str, mode: str) -> None:
        self.queue = queue
        self.mode = mode
        self.seen: list[Seen] = []
        self.bytes_out = 0


class StompWork:
    """What a client has done in its open transaction."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.sends: list[tuple[int, list[str]]] = []
        self.acks: set[Reference] = set()


class StompPeer:
    """One connection and what its client knows."""

    def __init__(self, life: "Life", name: str) -> None:
        self.life = life
        self.name = name
        self.gone = False
        self.host = Host()
        now = life.clock.monotonic_ns()
        self.session = StompProtocol().open(self.host, Peer(name, name), ACCEPTOR, life.services, now)
        self.decoder = StompDecoder(StompLimits())
        self.decoder.version = V12
        self.raw = b""
        self.subscriptions: dict[str, Subscription] = {}
        self.receipts: dict[str, tuple[int, Callable[[], None]]] = {}
        self.made = 0
        # What was acknowledged by being received, and is not known to be stored.
        self.taken: set[Reference] = set()
        self.work: StompWork | None = None
        self.feed("CONNECT", "accept-version:1.2", "host:h", f"login:{USER}", f"passcode:{PASSWORD}")

    # -- bytes ---------------------------------------------------------------------------------------------------

    def feed(self, command: str, *headers: str, body: bytes = b"") -> None:
        """One frame from the client, cut in two now and then."""
        length = (f"content-length:{len(body)}",) if body else ()
        frame = "\n".join((command, *headers, *length)).encode() + b"\n\n" + body + b"\0"
        now = self.life.clock.monotonic_ns()
        cut = self.life.random.randrange(len(frame))
        self.session.receive(frame[:cut], now)
        self.session.receive(frame[cut:], now)

    def write(self) -> None:
        """What the server does at the end of a turn."""
        outbox = self.session.outbox
        while chunk := outbox.take():
            self.confirm_written()
            self.raw += chunk
        now = self.life.clock.monotonic_ns()
        self.session.handle_written(now)
        if self.host.wakes:
            self.host.wakes = 0
            self.session.handle_timer(now)
        raw, self.raw = self.raw, b""
        frame = self.decoder.next_frame(raw)
        while frame is not None:
            self._received(frame)
            frame = self.decoder.next_frame()
        if self.taken:
            self._learn_taken()
        if self.host.finished:
            self.lose()

    def confirm_written(self) -> None:
        """What was taken from the outbox is in the client's socket."""
        self.session.outbox.confirm_written()

    def _learn_taken(self) -> None:
        taken, self.taken = self.taken, set()
        knowledge = self.life.knowledge
        if not self.life.catalogue.slice:  # else it may not have happened yet
            self.life.confirm(lambda: knowledge.ack_confirmed.update(taken))

    def lose(self) -> None:
        """The socket is gone."""
        if not self.gone:
            self.gone = True
            self.take_back()
            self.session.connection_lost()
            self.life.peers.remove(self)

    def take_back(self) -> None:
        """Its open transaction comes to nothing."""
        if self.work is not None:
            self.life.knowledge.refused.update(number for number, _ in self.work.sends)
            self.work = None

    # -- frames --------------------------------------------------------------------------------------------------

    def _received(self, frame: StompFrame) -> None:
        life = self.life
        if frame.command == "RECEIPT":
            position, learn = self.receipts.pop(frame.headers["receipt-id"])
            life.told(position)
            learn()
        elif frame.command == "MESSAGE":
            self._delivered(frame)
        elif frame.command == "ERROR":
            life.errors.append(frame.headers.get("message", ""))

    def _delivered(self, frame: StompFrame) -> None:
        subscription = self.subscriptions[frame.headers["subscription"]]
        body = frame.body
        number = int(body[: body.index(b":")])
        assert body == self.life.knowledge.bodies[number], f"message {number} arrives with another body"
        self.life.knowledge.seen(number, subscription.queue)
        origin = frame.headers.get("_AMQ_ORIG_QUEUE", subscription.queue)
        place = (number, subscription.queue if origin in DIVERTS else origin)
        knowledge = self.life.knowledge
        knowledge.sees_once(place)
        if subscription.mode == AUTO:
            knowledge.by_auto.add(place)
            knowledge.ack_issued.add(place)
            self.taken.add(place)
        else:
            subscription.seen.append(Seen(frame.headers["ack"], number, place))

    def ask(self, learn: Callable[[], None]) -> str:
        """A receipt header; ``learn`` runs when the receipt comes."""
        self.made += 1
        key = f"r{self.made}"
        # What the frame does is in the next batch at the earliest, if it records anything.
        self.receipts[key] = (0, learn)
        return f"receipt:{key}"


# -- steps -------------------------------------------------------------------------------------------------------


def connect(life: "Life", rng: Random) -> str:
    if len(life.peers) >= 2:
        return ""
    name = f"c{len(life.peers)}-{life.number()}"
    life.peers.append(life.peer_kind(life, name))
    return f"{name} connects by STOMP"


def lose(life: "Life", rng: Random) -> str:
    peer = _able(life, rng)
    if peer is None:
        return ""
    peer.lose()
    return f"{peer.name} loses its connection"


def _able(life: "Life", rng: Random) -> StompPeer | None:
    able = [peer for peer in life.peers if peer.session.reading and not peer.host.finished]
    return rng.choice(able) if able else None


def send(life: "Life", rng: Random) -> str:
    peer = _able(life, rng)
    addresses = [name for name in ADDRESSES if name in life.catalogue.addresses]
    if peer is None:
        return ""
    address = rng.choice(addresses)
    favourite = life.catalogue.favourite
    if favourite == "teams" and rng.random() < 0.8:
        address = favourite
    number = life.number()
    knowledge = life.knowledge
    body = body_of(number, rng.choice([10, 300, 1_500]))
    knowledge.bodies[number] = body
    headers = [f"destination:{address}", f"priority:{rng.choice([4, 4, 9])}"]
    if address == "teams":
        headers.append(f"JMSXGroupID:{rng.choice('xyz')}")
    durable = rng.random() < 0.85
    queues = life.receivers(address, "blue")
    words = f"{peer.name} sends message {number} to {address}"
    if durable:
        knowledge.durable.add(number)
        headers.append("persistent:true")
    work = peer.work
    if work is not None and len(work.sends) < MOST_SENDS and rng.random() < 0.6:
        knowledge.units[number] = -number
        work.sends.append((number, queues if durable else []))
        peer.feed("SEND", *headers, f"transaction:{work.name}", body=body)
        return f"{words} in transaction {work.name}"
    key = (address, b"id%d" % rng.randrange(6))
    known = key in life.ids or key in knowledge.ids_told
    if durable and rng.random() < 0.15 and known:
        headers.append(f"_AMQ_DUPL_ID:{key[1].decode()}")
        knowledge.refused.add(number)
        queues = []
        words += ", a duplicate"
    if rng.random() < 0.1 and address != "orders":
        headers.append(f"AMQ_SCHEDULED_DELAY:{rng.choice([300, 2_000])}")
    if queues and durable:
        headers.append(peer.ask(lambda: knowledge.confirmed.update((number, queue) for queue in queues)))
    peer.feed("SEND", *headers, body=body)
    return words


def subscribe(life: "Life", rng: Random) -> str:
    peer = _able(life, rng)
    names = [name for name in QUEUES if name in life.broker.queues]
    if peer is None or len(peer.subscriptions) >= 3:
        return ""
    queue = rng.choice(names)
    if life.catalogue.favourite == "teams" and "teams" in names and rng.random() < 0.8:
        queue = "teams"
    peer.made += 1
    key = f"s{peer.made}"
    draw = rng.random()
    mode = CUMULATIVE if draw < 0.4 else INDIVIDUAL if draw < 0.7 and queue != "teams" else AUTO
    peer.subscriptions[key] = Subscription(queue, mode)
    address = life.broker.queues[queue].address.name
    destination = queue if address == queue else f"{address}::{queue}"
    headers = ["selector:color = 'red'"] if queue == "late" and rng.random() < 0.3 else []
    peer.feed("SUBSCRIBE", f"id:{key}", f"destination:{destination}", f"ack:{mode}", *headers)
    return f"{peer.name} subscribes to {queue} ({mode})"


def _answerable(life: "Life", rng: Random) -> tuple[StompPeer, Subscription, int] | None:
    peer = _able(life, rng)
    if peer is None:
        return None
    able = [subscription for subscription in peer.subscriptions.values() if subscription.seen]
    if not able:
        return None
    subscription = rng.choice(able)
    return peer, subscription, rng.randrange(len(subscription.seen))


def acknowledge(life: "Life", rng: Random) -> str:
    chosen = _answerable(life, rng)
    if chosen is None:
        return ""
    peer, subscription, index = chosen
    work = peer.work
    if work is not None and subscription.mode == INDIVIDUAL and rng.random() < 0.6:
        seen = subscription.seen.pop(index)
        work.acks.add(seen.place)
        peer.feed("ACK", f"id:{seen.ack}", f"transaction:{work.name}")
        return f"{peer.name} acknowledges {seen.number} of {subscription.queue} in transaction {work.name}"
    first = 0 if subscription.mode == CUMULATIVE else index
    answered = subscription.seen[first : index + 1]
    del subscription.seen[first : index + 1]
    places = {seen.place for seen in answered}
    knowledge = life.knowledge
    knowledge.ack_issued.update(places)
    receipt = peer.ask(lambda: knowledge.ack_confirmed.update(places))
    peer.feed("ACK", f"id:{answered[-1].ack}", receipt)
    return f"{peer.name} acknowledges {sorted(seen.number for seen in answered)} of {subscription.queue}"


def reject(life: "Life", rng: Random) -> str:
    chosen = _answerable(life, rng)
    if chosen is None:
        return ""
    peer, subscription, index = chosen
    if subscription.mode == CUMULATIVE:
        index = 0
    seen = subscription.seen.pop(index)
    peer.feed("NACK", f"id:{seen.ack}")
    return f"{peer.name} returns {seen.number} to {subscription.queue}"


def unsubscribe(life: "Life", rng: Random) -> str:
    peer = _able(life, rng)
    if peer is None or not peer.subscriptions:
        return ""
    key = rng.choice(sorted(peer.subscriptions))
    # What is under way to the client may still arrive; it answers none of it.
    subscription = peer.subscriptions[key]
    subscription.seen.clear()
    peer.feed("UNSUBSCRIBE", f"id:{key}")
    return f"{peer.name} ends its subscription to {subscription.queue}"


def begin(life: "Life", rng: Random) -> str:
    peer = _able(life, rng)
    if peer is None or peer.work is not None:
        return ""
    peer.made += 1
    peer.work = StompWork(f"t{peer.made}")
    peer.feed("BEGIN", f"transaction:{peer.work.name}")
    return f"{peer.name} begins transaction {peer.work.name}"


def _working(life: "Life", rng: Random) -> tuple[StompPeer, StompWork] | None:
    peer = _able(life, rng)
    return None if peer is None or peer.work is None else (peer, peer.work)


def commit(life: "Life", rng: Random) -> str:
    chosen = _working(life, rng)
    if chosen is None:
        return ""
    peer, work = chosen
    peer.work = None
    knowledge = life.knowledge
    sent = {(number, queue) for number, queues in work.sends for queue in queues if queue in life.broker.queues}
    knowledge.ack_issued.update(work.acks)
    knowledge.commits.append(Outcome(sent, {place for place in work.acks if place[0] in knowledge.durable}))

    def learn() -> None:
        knowledge.confirmed.update(sent)
        knowledge.ack_confirmed.update(work.acks)

    receipt = peer.ask(learn)
    peer.feed("COMMIT", f"transaction:{work.name}", receipt)
    return f"{peer.name} commits transaction {work.name}"


def abort(life: "Life", rng: Random) -> str:
    chosen = _working(life, rng)
    if chosen is None:
        return ""
    peer, work = chosen
    peer.take_back()
    peer.feed("ABORT", f"transaction:{work.name}")
    return f"{peer.name} aborts transaction {work.name}"
