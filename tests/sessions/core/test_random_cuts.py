"""Connections that break anywhere, in frames of either direction, while a client works: nothing is lost, and nothing
happens twice."""

import random
from collections import deque

import pytest

from delosmq.model.message import ANYCAST
from delosmq.model.settings import QueueSettings
from delosmq.wire.core.codec import encode_packet
from delosmq.wire.core.connection_packets import (
    ExceptionPacket,
    NullResponse,
    PacketsConfirmed,
    ReattachSession,
    ReattachSessionResponse,
)
from delosmq.wire.core.message_packets import SessionReceiveMessage
from delosmq.wire.core.packet import NEWEST_VERSION, Packet
from delosmq.wire.core.session_packets import (
    Acknowledge,
    ConsumerFlowCredit,
    CreateConsumer,
    SessionCommit,
    SessionRollback,
    SessionStart,
)
from tests.sessions.core.support import CoreBench, Session, text_of

ORDERS = (QueueSettings("orders", "orders", ANYCAST),)
WINDOW = 1_000


class Survivor:
    """A client as Artemis's: it keeps what it sent until that is confirmed, and sends the rest again.

    Attributes:
        got: the messages that came, in order.
        answers: how many requests were answered.
        cuts: how often its connection broke.
    """

    def __init__(self, bench: CoreBench, chance: random.Random, **wishes: object) -> None:
        self.bench = bench
        self.chance = chance
        self.session: Session = bench.session(window_size=WINDOW, **wishes)
        self.client = self.session.client
        self.got: list[SessionReceiveMessage] = []
        self.answers = 0
        self.cuts = 0
        self.kept: deque[bytes] = deque()
        self.first = 0
        self.last = -1
        self.unconfirmed = 0

    def send(self, packet: Packet) -> None:
        """A packet that counts. The connection may break in the midst of it, or before its answer has come."""
        packet.channel = self.session.channel
        frame = encode_packet(packet, NEWEST_VERSION)
        self.kept.append(frame)
        self.write([frame])

    def write(self, frames: list[bytes]) -> None:
        for frame in frames:
            breaks = self.chance.random() < 0.2
            self.client.feed_raw(frame[: self.chance.randrange(len(frame) + 1)] if breaks else frame)
            if self.chance.random() < 0.7:
                self.bench.tick()
            if breaks:
                self.cuts += 1
                self.hear(self.client.cut(self.chance.random()))
                self.come_back()
                return
        self.bench.tick()
        self.hear(self.client.take())

    def hear(self, packets: list[Packet]) -> None:
        for packet in packets:
            if packet.channel != self.session.channel:
                continue
            if isinstance(packet, PacketsConfirmed):
                self.confirmed(packet.command_id)
                continue
            assert not isinstance(packet, ExceptionPacket), packet.text
            self.last += 1
            self.unconfirmed += packet.size_bytes
            if isinstance(packet, SessionReceiveMessage):
                self.got.append(packet)
            else:
                assert isinstance(packet, NullResponse)
                self.answers += 1

    def confirmed(self, number: int) -> None:
        while self.first <= number:
            self.kept.popleft()
            self.first += 1

    def confirm(self) -> None:
        """What a window's worth of packets brings about."""
        if self.unconfirmed >= WINDOW:
            self.unconfirmed = 0
            packet = PacketsConfirmed(self.last)
            packet.channel = self.session.channel
            self.write([encode_packet(packet, NEWEST_VERSION)])

    def come_back(self) -> None:
        self.client = self.bench.connect()
        packet = ReattachSession()
        packet.name = self.session.request.name
        packet.last_confirmed_command_id = self.last
        self.client.tell(packet, 1)
        received = self.client.take()
        (answer,) = [one for one in received if isinstance(one, ReattachSessionResponse)]
        assert answer.reattached
        self.confirmed(answer.last_confirmed_command_id)
        self.hear(received)
        self.write(list(self.kept))

    def consume(self) -> None:
        """A consumer of the queue that may have any number of messages."""
        packet = CreateConsumer()
        packet.queue_name = "orders"
        self.send(packet)
        self.send(ConsumerFlowCredit(0, 1 << 20))
        self.send(SessionStart())

    def bodies(self) -> list[str]:
        return [text_of(one) for one in self.got]


@pytest.mark.parametrize("seed", range(25))
def test_each_message_is_sent_and_consumed_once(seed: int) -> None:
    bench = CoreBench(queues=ORDERS)
    client = Survivor(bench, random.Random(seed))
    client.consume()
    acknowledged = 0
    for number in range(40):
        client.send(client.session.send_packet("orders", f"m{number}"))
        client.confirm()
        while acknowledged < len(client.got):
            client.send(Acknowledge(0, client.got[acknowledged].message.message_id, True))
            acknowledged += 1
    assert client.cuts > 3
    client.write([])
    assert client.bodies() == [f"m{number}" for number in range(40)]
    assert all(one.delivery_count == 1 for one in client.got)
    assert client.answers == 80
    assert bench.queue("orders").message_count == 0


@pytest.mark.parametrize("seed", range(25))
def test_each_transaction_happens_once(seed: int) -> None:
    bench = CoreBench(queues=ORDERS)
    chance = random.Random(seed)
    client = Survivor(bench, chance, auto_commit_sends=False, auto_commit_acks=False)
    client.consume()
    expected: list[str] = []
    acknowledged = 0
    for number in range(20):
        for part in "ab":
            client.send(client.session.send_packet("orders", f"m{number}{part}", answer=False))
        if acknowledged < len(client.got):
            acknowledged = len(client.got)
            client.send(Acknowledge(0, client.got[-1].message.message_id, False))
        if chance.random() < 0.7 or acknowledged:
            client.send(SessionCommit())
            expected += [f"m{number}a", f"m{number}b"]
        else:
            client.send(SessionRollback())
        client.confirm()
    assert client.cuts > 3
    client.write([])
    assert client.bodies() == expected
    assert client.answers == 20
    assert bench.queue("orders").message_count == len(expected) - acknowledged
    assert len(bench.broker.transactions.open) == 0
