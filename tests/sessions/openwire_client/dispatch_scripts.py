"""Consumers of one connection that compete for messages: interop/openwire/java/DispatchRecordings.java.

What they do is mostly the broker's business. The client's part are the options of consumers, groups, and closing.
"""

from dataclasses import replace

from delosmq.client.messages import TextMessage, command_of
from delosmq.sessions.openwire.client.consumer import OpenWireConsumer
from delosmq.sessions.openwire.client.options import AckMode, DestinationOptions, PrefetchPolicy
from delosmq.sessions.openwire.client.session import OpenWireClientSession
from delosmq.wire.openwire.structures import Destination
from tests.sessions.openwire_client.scripts import NAMED, Scripts, address
from tests.sessions.openwire_client.support import OPTIONS, Player

DISPATCH = Scripts()
script = DISPATCH.script
TWO = replace(NAMED, prefetch_policy=PrefetchPolicy(2, 2, 2, 2, 2))
THREE = replace(NAMED, prefetch_policy=PrefetchPolicy(3, 3, 3, 3, 3))


def alone(player: Player, queue: Destination, options: DestinationOptions = OPTIONS) -> OpenWireConsumer:
    """A consumer with a session of its own."""
    return player.consumer(player.session(), queue, options=options)


def exclusive(priority: int = 0) -> DestinationOptions:
    return DestinationOptions(exclusive=True, priority=priority)


def send(player: Player, queue: Destination, first: int, last: int) -> None:
    session = player.session()
    player.send(session, queue, first, last)
    player.answered(player.machine.close_session(session))


def close(player: Player, consumer: OpenWireConsumer) -> None:
    session_of(player, consumer).close_consumer(consumer)


def session_of(player: Player, consumer: OpenWireConsumer) -> OpenWireClientSession:
    return player.machine.sessions[consumer.consumer_id.session_id]


def receive_and_close(player: Player, consumer: OpenWireConsumer, count: int) -> None:
    player.receive(consumer, count)
    close(player, consumer)


@script("exclusive", NAMED)
def owner(player: Player, queue: Destination) -> None:
    shared = alone(player, queue)
    first = player.consumer(player.session(AckMode.CLIENT), queue, options=DestinationOptions(exclusive=True))
    second = alone(player, queue, exclusive())
    send(player, queue, 1, 5)
    receive_and_close(player, first, 2)
    receive_and_close(player, second, 5)
    send(player, queue, 6, 7)
    player.receive(shared, 2)
    player.close()


@script("exclusive-takeover", NAMED)
def takeover(player: Player, queue: Destination) -> None:
    first = alone(player, queue, exclusive(5))
    send(player, queue, 1, 2)
    player.receive(first, 2)
    alone(player, queue, exclusive(1))
    alone(player, queue, exclusive(5))
    send(player, queue, 3, 4)
    player.receive(first, 2)
    higher = alone(player, queue, exclusive(6))
    send(player, queue, 5, 6)
    player.receive(higher, 2)
    player.close()


@script("exclusive-127", NAMED)
def highest(player: Player, queue: Destination) -> None:
    for first in (1, 3):
        consumer = alone(player, queue, exclusive(127))
        send(player, queue, first, first + 1)
        player.receive(consumer, 2)
    player.close()


@script("exclusive-in-delivery", NAMED)
def in_delivery(player: Player, queue: Destination) -> None:
    low = player.consumer(player.session(AckMode.CLIENT), queue, options=exclusive(1))
    send(player, queue, 1, 5)
    player.receive(low, 2)
    player.ready(low, 3)
    high = alone(player, queue, exclusive(9))
    send(player, queue, 6, 8)
    player.receive(high, 3)
    player.receive(low, 3)
    close(player, low)
    player.receive(high, 5)
    player.close()


@script("exclusive-selector", NAMED)
def selector(player: Player, queue: Destination) -> None:
    other = alone(player, queue)
    chosen = player.consumer(player.session(), queue, selector="n = 1", options=DestinationOptions(exclusive=True))
    session = player.session()
    for number in range(4):
        message = TextMessage(f"m{number}", properties={"n": number % 2})
        player.send_one(session, queue, command_of(message, compresses=False))
    receive_and_close(player, chosen, 2)
    player.receive(other, 2)
    player.close()


@script("all-exclusive", NAMED)
def all_exclusive(player: Player, _: Destination) -> None:
    queue = address("all-exclusive", ".exclusive")
    first, second = alone(player, queue), alone(player, queue)
    send(player, queue, 1, 3)
    receive_and_close(player, first, 3)
    send(player, queue, 4, 5)
    player.receive(second, 2)
    player.close()


@script("groups", NAMED)
def groups(player: Player, queue: Destination) -> None:
    consumers = [alone(player, queue) for _ in range(2)]
    session = player.session()
    for named in ("a 0", "b 0", "a 0", "b 0", "a -1", "b 0"):
        message = TextMessage(named, group_id=named[0], group_sequence=int(named[2:]))
        player.send_one(session, queue, command_of(message, compresses=False))
    for consumer in consumers:
        player.receive(consumer, 3)
    player.close()


@script("two-consumers-first", TWO)
def two(player: Player, _: Destination) -> None:
    queue = address("two-consumers-first", ".two")
    send(player, queue, 1, 4)
    for consumer in [alone(player, queue) for _ in range(2)]:
        player.receive(consumer, 2)
    player.close()


@script("strict-order", TWO)
def strict(player: Player, _: Destination) -> None:
    queue = address("strict-order", ".strict")
    consumers = [player.consumer(player.session(AckMode.CLIENT), queue) for _ in range(2)]
    send(player, queue, 1, 4)
    for consumer in consumers:
        player.receive(consumer)
    for consumer in reversed(consumers):
        close(player, consumer)
    player.receive(alone(player, queue), 4)
    player.close()


@script("priorities-off", NAMED)
def equal(player: Player, _: Destination) -> None:
    queue = address("priorities-off", ".equal")
    consumers = [alone(player, queue, DestinationOptions(priority=priority)) for priority in (1, 7)]
    send(player, queue, 1, 4)
    for consumer in consumers:
        player.receive(consumer, 2)
    player.close()


@script("priorities", THREE)
def priorities(player: Player, queue: Destination) -> None:
    session = player.session(AckMode.CLIENT)
    consumers = [player.consumer(session, queue, options=DestinationOptions(priority=priority)) for priority in (1, 7)]
    send(player, queue, 1, 6)
    for consumer in consumers:
        player.ready(consumer, 3)
    player.close()


@script("turns", NAMED)
def turns(player: Player, queue: Destination) -> None:
    consumers = [alone(player, queue) for _ in range(3)]
    send(player, queue, 1, 6)
    for consumer in consumers:
        player.receive(consumer, 2)
    player.close()
