"""For each row of the table of acknowledgements our client says what the Java client says, to the byte.

The recordings are those of `tests/wire/openwire/golden`: the broker's side is played to our machine, the application
does what the recorder's program does (interop/openwire/java/Recording.java and AcknowledgementRecordings.java), and
each frame of ours is compared with the Java client's.
"""

# ACK-1, ACK-2, ACK-4, ACK-5

from dataclasses import replace
from functools import partial

import pytest

from delosmq.client.messages import MapMessage, TextMessage, command_of
from delosmq.model.errors import TMSUCCESS
from delosmq.sessions.openwire.client.options import AckMode, PrefetchPolicy, RedeliveryPolicy
from delosmq.sessions.openwire.client.session import OpenWireClientSession
from delosmq.sessions.openwire.client.transactions.xa import XaBranches, xids_of
from delosmq.wire.openwire.commands import BEGIN, TransactionInfo
from delosmq.wire.openwire.structures import Destination, XATransactionId
from tests.sessions.openwire.recordings import NAMES
from tests.sessions.openwire_client.dispatch_scripts import DISPATCH
from tests.sessions.openwire_client.scripts import FOUR, NAMED, Scripts, address
from tests.sessions.openwire_client.support import AT_ONCE, AT_ONCE_AND_AGAIN, Player

ACKNOWLEDGEMENTS = Scripts()
script = ACKNOWLEDGEMENTS.script
TEN = replace(NAMED, prefetch_policy=PrefetchPolicy(10, 10, 10, 10, 10))
PULL = replace(NAMED, prefetch_policy=PrefetchPolicy(0, 0, 0, 0, 0))
OPTIMISED = replace(FOUR, optimize_acknowledge=True, optimize_acknowledge_time_out_ms=600_000)
MODES = {
    "auto": AckMode.AUTO,
    "client": AckMode.CLIENT,
    "dups-ok": AckMode.DUPS_OK,
    "individual": AckMode.INDIVIDUAL,
    "transacted": AckMode.TRANSACTED,
}


def take_six(player: Player, session: OpenWireClientSession, consumer: object) -> None:
    """As the mode has it, after the second, the fourth and the fifth."""
    (one,) = session.consumers.values()
    assert one is consumer
    for index in range(1, 7):
        delivery = player.receive(one)
        if session.mode == AckMode.CLIENT and index == 4:
            session.acknowledge()
        elif session.mode == AckMode.INDIVIDUAL and index in (2, 5):
            one.acknowledge_one(delivery)
        elif session.mode == AckMode.TRANSACTED and index == 4:
            player.answered(session.commit())


def acknowledged(player: Player, queue: Destination, mode: AckMode) -> None:
    session = player.session(mode)
    player.send(session, queue, 1, 6)
    if mode == AckMode.TRANSACTED:
        player.answered(session.commit())
    consumer = player.consumer(session, queue)
    take_six(player, session, consumer)
    session.close_consumer(consumer)
    player.close()


def published(player: Player, topic: Destination, mode: AckMode, *, durable: bool) -> None:
    sending = player.session()
    session = player.session(mode)
    consumer = player.consumer(session, topic, durable="s" if durable else "")
    player.send(sending, topic, 1, 7)
    take_six(player, session, consumer)
    session.close_consumer(consumer)
    player.close()


for kind, each_mode in MODES.items():
    script(kind, FOUR)(partial(acknowledged, mode=each_mode))
    script(f"topic-{kind}", FOUR)(partial(published, mode=each_mode, durable=False))
    script(f"durable-{kind}", FOUR)(partial(published, mode=each_mode, durable=True))
script("optimised", OPTIMISED)(partial(acknowledged, mode=AckMode.AUTO))


@script("connect", NAMED)
def connect(player: Player, _: Destination) -> None:
    player.close()


@script("rollback", replace(NAMED, redelivery_policy=AT_ONCE))
def rollback(player: Player, queue: Destination) -> None:
    session = player.session(AckMode.TRANSACTED)
    player.send(session, queue, 1, 1)
    player.answered(session.commit())
    consumer = player.consumer(session, queue)
    player.receive(consumer)
    player.answered(session.rollback())
    player.receive(consumer)
    player.answered(session.commit())
    player.close()


@script("poison", replace(NAMED, redelivery_policy=RedeliveryPolicy(maximum_redeliveries=0)))
def poison(player: Player, queue: Destination) -> None:
    session = player.session(AckMode.TRANSACTED)
    player.send(session, queue, 1, 1)
    player.answered(session.commit())
    player.receive(player.consumer(session, queue))
    player.answered(session.rollback())
    player.close()


@script("pull", PULL)
def pull(player: Player, queue: Destination) -> None:
    session = player.session()
    player.send(session, queue, 1, 1)
    consumer = player.consumer(session, queue)
    assert player.pull(consumer, 0) is not None
    assert player.pull(consumer, -1) is None
    assert player.pull(consumer, 50) is None
    player.close()


@script("browse", NAMED)
def browse(player: Player, queue: Destination) -> None:
    session = player.session()
    player.send(session, queue, 1, 1)
    look(player, session, queue)
    player.close()


def look(player: Player, session: OpenWireClientSession, queue: Destination) -> None:
    browser = player.consumer(session, queue, browser=True)
    while True:
        player.until(lambda: browser.waiting_count > 0 or browser.ends > 0)
        if not browser.waiting_count:
            break
        player.receive(browser)
    session.close_consumer(browser)


@script("durable", NAMED)
def durable(player: Player, topic: Destination) -> None:
    session = player.session()
    session.close_consumer(player.consumer(session, topic, durable="s"))
    player.send(session, topic, 1, 1)
    session.close_consumer(player.consumer(session, topic, durable="s", selector="a IS NULL", no_local=True))
    player.answered(player.machine.unsubscribe("s"))
    player.close()


@script("auto-listener", FOUR)
def listener(player: Player, queue: Destination) -> None:
    session = player.session()
    player.send(session, queue, 1, 6)
    consumer = player.consumer(session, queue)
    consumer.listens = True
    for _ in range(6):
        player.listen(consumer)
    player.close()


@script("optimised-range", replace(TEN, optimize_acknowledge=True, optimize_acknowledge_time_out_ms=600_000))
def optimised_range(player: Player, queue: Destination) -> None:
    session = player.session()
    player.send(session, queue, 1, 20)
    consumer = player.consumer(session, queue)
    player.receive(consumer, 16)
    session.close_consumer(consumer)
    player.close()


@script("optimised-time-out", replace(TEN, optimize_acknowledge=True))
def optimised_time_out(player: Player, queue: Destination) -> None:
    session = player.session()
    player.send(session, queue, 1, 4)
    consumer = player.consumer(session, queue)
    player.receive(consumer)
    player.clock.advance(500)
    player.receive(consumer, 2)
    session.close_consumer(consumer)
    player.close()


@script(
    "optimised-timer",
    replace(
        TEN,
        optimize_acknowledge=True,
        optimize_acknowledge_time_out_ms=600_000,
        optimized_ack_scheduled_ack_interval_ms=400,
    ),
)
def optimised_timer(player: Player, queue: Destination) -> None:
    session = player.session()
    player.send(session, queue, 1, 4)
    consumer = player.consumer(session, queue)
    player.receive(consumer, 3)
    for _ in range(2):
        player.clock.advance(400)
        player.machine.handle_timer()
    session.close_consumer(consumer)
    player.close()


@script("client-forms", NAMED)
def forms(player: Player, _: Destination) -> None:
    session = player.session(AckMode.CLIENT)
    first, second = address("client-forms", ".a"), address("client-forms", ".b")
    producers = session.producers
    assert producers == {}
    player.send(session, first, 1, 4)
    player.send(session, second, 1, 4)
    one = player.consumer(session, first)
    two = player.consumer(session, second)
    player.receive(one, 2)
    player.receive(two)
    session.acknowledge()
    player.receive(one)
    player.receive(two)
    one.acknowledge()
    player.receive(one)
    session.acknowledge()
    player.receive(two)
    player.close()


@script("client-prefetch-1", replace(NAMED, prefetch_policy=PrefetchPolicy(1, 1, 1, 1, 1)))
def client_prefetch_1(player: Player, queue: Destination) -> None:
    session = player.session(AckMode.CLIENT)
    player.send(session, queue, 1, 3)
    consumer = player.consumer(session, queue)
    player.receive(consumer, 3)
    session.acknowledge()
    session.close_consumer(consumer)
    player.close()


@script("client-pull", PULL)
def client_pull(player: Player, queue: Destination) -> None:
    session = player.session(AckMode.CLIENT)
    player.send(session, queue, 1, 3)
    consumer = player.consumer(session, queue)
    for _ in range(3):
        assert player.pull(consumer, 15_000) is not None
    session.acknowledge()
    session.close_consumer(consumer)
    player.close()


INDIVIDUALLY = replace(FOUR, redelivery_policy=AT_ONCE_AND_AGAIN)


@script("non-blocking-redelivery", replace(INDIVIDUALLY, non_blocking_redelivery=True))
@script("transacted-individual", replace(INDIVIDUALLY, transacted_individual_ack=True))
def individually(player: Player, queue: Destination) -> None:
    session = player.session(AckMode.TRANSACTED)
    player.send(session, queue, 1, 7)
    player.answered(session.commit())
    consumer = player.consumer(session, queue)
    player.receive(consumer, 4)
    player.answered(session.commit())
    player.receive(consumer, 2)
    player.ready(consumer, 1)
    player.answered(session.rollback())
    player.machine.handle_timer()
    player.receive(consumer, 2)
    player.answered(session.commit())
    session.close_consumer(consumer)
    player.close()


@script("redelivered", INDIVIDUALLY)
def redelivered(player: Player, queue: Destination) -> None:
    session = player.session(AckMode.TRANSACTED)
    player.send(session, queue, 1, 2)
    player.answered(session.commit())
    consumer = player.consumer(session, queue)
    for _ in range(3):
        player.receive(consumer, 2)
        player.answered(session.rollback())
    player.receive(consumer, 2)
    player.answered(session.commit())
    player.close()


@script("rollback-room", INDIVIDUALLY)
def room(player: Player, queue: Destination) -> None:
    session = player.session(AckMode.TRANSACTED)
    player.send(session, queue, 1, 12)
    player.answered(session.commit())
    consumer = player.consumer(session, queue)
    player.receive(consumer, 2)
    player.ready(consumer, 4)
    player.answered(session.rollback())
    player.receive(consumer, 2)
    player.answered(session.commit())
    other = player.session()
    producer, request = other.add_producer(None)
    player.answered(request)
    other.close_producer(producer)
    player.answered(other.add_producer(None)[1])
    player.answered(player.machine.close_session(other))
    player.ready(consumer, 4)
    session.close_consumer(consumer)
    player.close()


@script("recovered", INDIVIDUALLY)
def recovered(player: Player, queue: Destination) -> None:
    session = player.session(AckMode.CLIENT)
    player.send(session, queue, 1, 2)
    consumer = player.consumer(session, queue)
    for _ in range(2):
        player.receive(consumer, 2)
        session.recover()
    player.receive(consumer, 2)
    session.acknowledge()
    player.close()


@script("poison-range", replace(FOUR, redelivery_policy=RedeliveryPolicy(maximum_redeliveries=0)))
def poison_range(player: Player, queue: Destination) -> None:
    session = player.session(AckMode.TRANSACTED)
    player.send(session, queue, 1, 3)
    player.answered(session.commit())
    consumer = player.consumer(session, queue)
    player.receive(consumer, 2)
    player.answered(session.rollback())
    player.receive(consumer)
    player.answered(session.commit())
    player.close()


@script("poison-listener", replace(FOUR, redelivery_policy=replace(AT_ONCE_AND_AGAIN, maximum_redeliveries=2)))
def poison_listener(player: Player, queue: Destination) -> None:
    session = player.session()
    player.send(session, queue, 1, 2)
    consumer = player.consumer(session, queue)
    consumer.listens = True
    for _ in range(3):
        player.listen(consumer, fails=True)
    player.listen(consumer)
    player.close()


@script("poison-on-arrival", replace(NAMED, redelivery_policy=RedeliveryPolicy(maximum_redeliveries=0)))
def poison_on_arrival(player: Player, queue: Destination) -> None:
    first = player.session(AckMode.CLIENT)
    player.send(first, queue, 1, 2)
    player.receive(player.consumer(first, queue))
    player.answered(player.machine.close_session(first))
    session = player.session(AckMode.TRANSACTED)
    player.receive(player.consumer(session, queue))
    player.answered(session.commit())
    player.close()


def expired(player: Player, queue: Destination, mode: AckMode) -> None:
    sending = player.session()
    session = player.session(mode)
    consumer = player.consumer(session, queue)
    player.send(sending, queue, 1, 1, life=150)
    player.send(sending, queue, 2, 2)
    player.ready(consumer, 2)
    player.clock.advance(151)
    player.receive(consumer)
    if mode == AckMode.TRANSACTED:
        player.answered(session.commit())
    session.close_consumer(consumer)
    player.close()


script("expired", FOUR)(partial(expired, mode=AckMode.AUTO))
script("expired-transacted", FOUR)(partial(expired, mode=AckMode.TRANSACTED))


def closed(player: Player, queue: Destination, *, whole_session: bool) -> None:
    first = player.session(AckMode.CLIENT)
    player.send(first, queue, 1, 4)
    consumer = player.consumer(first, queue)
    player.receive(consumer, 2)
    if whole_session:
        player.answered(player.machine.close_session(first))
    else:
        first.close_consumer(consumer)
    second = player.session()
    player.receive(player.consumer(second, queue), 4)
    player.close()


script("closed-consumer", FOUR)(partial(closed, whole_session=False))
script("closed-session", FOUR)(partial(closed, whole_session=True))


@script("pull-wait", PULL)
def pull_that_waits(player: Player, queue: Destination) -> None:
    session = player.session()
    sending = player.session()
    consumer = player.consumer(session, queue)
    assert consumer.pull(0)
    player.send(sending, queue, 1, 1)
    player.receive(consumer)
    player.send(sending, queue, 2, 2)
    assert player.pull(consumer, -1) is not None
    player.close()


@script("browse-pages", replace(NAMED, prefetch_policy=PrefetchPolicy(queue_prefetch=2, queue_browser_prefetch=4)))
def pages(player: Player, queue: Destination) -> None:
    session = player.session(AckMode.CLIENT)
    player.send(session, queue, 1, 7)
    player.receive(player.consumer(session, queue))
    look(player, player.session(), queue)
    player.close()


@script("errors", NAMED)
def errors(player: Player, _: Destination) -> None:
    player.session()
    request = player.machine.unsubscribe("none")
    player.until(lambda: request.done)
    assert str(request.error).startswith("DMQ9021: the broker refused the end of the durable subscription 'none': ")
    player.close()


@script("topic", NAMED)
def topic_with_properties(player: Player, topic: Destination) -> None:
    session = player.session()
    consumer = player.consumer(session, topic, selector="a = 1")
    sent = command_of(MapMessage(properties={"a": 1, "b": "ü"}), compresses=False)
    player.send_one(session, topic, sent)
    player.receive(consumer)
    player.close()


@script("temporary", NAMED)
def temporary(player: Player, queue: Destination) -> None:
    session = player.session()
    replies, request = player.machine.temporaries.create(topic=False)
    player.answered(request)
    answers = player.consumer(session, replies)
    asked = command_of(TextMessage("m1"), compresses=False)
    asked.reply_to = replies
    player.send_one(session, queue, asked)
    player.receive(player.consumer(session, queue))
    player.send_one(session, replies, command_of(TextMessage("re"), compresses=False))
    player.receive(answers)
    session.close_consumer(answers)
    player.answered(player.machine.temporaries.delete(replies))
    player.close()


def branches(player: Player) -> tuple[OpenWireClientSession, XaBranches, list[XATransactionId]]:
    """A session of distributed transactions, and the branches that the recorder began."""
    session = player.machine.create_session(AckMode.TRANSACTED, xa=True)
    begun = [one for one in player.recording.commands() if isinstance(one, TransactionInfo) and one.type == BEGIN]
    resource = session.xa
    assert resource is not None
    return session, resource, [one.transaction_id for one in begun if isinstance(one.transaction_id, XATransactionId)]


@script("xa", NAMED)
def distributed_sends(player: Player, queue: Destination) -> None:
    session, resource, (one, two) = branches(player)
    for xid in (one, two):
        resource.start(xid)
        player.send(session, queue, 1, 1)
        player.answered(resource.end(xid, TMSUCCESS))
        if xid is two:
            player.answered(resource.prepare(xid))
            found = resource.recover()
            player.answered(found)
            assert [prepared.key() for prepared in xids_of(found)] == [two.key()]
        player.answered(resource.commit(xid, one_phase=xid is one))
    player.close()


@script("xa-acknowledged", replace(FOUR, redelivery_policy=AT_ONCE_AND_AGAIN))
def distributed_receives(player: Player, queue: Destination) -> None:
    session, resource, (sent, one, two, back, prepared_back, again) = branches(player)
    resource.start(sent)
    player.send(session, queue, 1, 7)
    player.answered(resource.end(sent, TMSUCCESS))
    player.answered(resource.commit(sent, one_phase=True))
    consumer = player.consumer(session, queue)
    for xid in (one, two, back, prepared_back, again):
        resource.start(xid)
        player.receive(consumer, 2)
        player.answered(resource.end(xid, TMSUCCESS))
        if xid in (two, prepared_back):
            player.answered(resource.prepare(xid))
        if xid in (back, prepared_back):
            player.answered(resource.rollback(xid))
        else:
            player.answered(resource.commit(xid, one_phase=xid is not two))
    player.close()


SCRIPTS = ACKNOWLEDGEMENTS | DISPATCH
NOT_OURS = {
    "auto-tight": "our client never asks for tight encoding",
    "connect-tight": "likewise",
    "transacted-tight": "likewise",
}


def test_each_recording_is_played_or_is_not_ours() -> None:
    assert sorted([*SCRIPTS, *NOT_OURS]) == NAMES


@pytest.mark.parametrize("hands_over", [False, True])
@pytest.mark.parametrize("name", SCRIPTS)
def test_our_client_says_what_the_java_client_says(name: str, *, hands_over: bool) -> None:
    options, play = SCRIPTS[name]
    player = Player(name, options, hands_over=hands_over)
    play(player, address(name, topic=name.partition("-")[0] in {"topic", "durable"}))
    player.compare()
