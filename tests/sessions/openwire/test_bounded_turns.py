"""What one command may take before others have their turn, counted; the rest goes on by itself."""

from dataclasses import replace

from delosmq.engine.broker import EngineBroker
from delosmq.model.message import ANYCAST
from delosmq.model.settings import AddressFullPolicy, QueueSettings, SecurityMatch
from delosmq.sessions.machine import BRIEF_AT_ONCE
from delosmq.sessions.openwire.server.advisories.pending_advisories import TOLD_IN_LINE
from delosmq.sessions.openwire.server.consumers.acknowledgements import NAMES_READ
from delosmq.sessions.openwire.server.consumers.subscriber import WILD_PLACES
from delosmq.sessions.openwire.server.consumers.wildcards import NAMES_COMPARED, READ_AT_ONCE
from delosmq.wire.openwire.codec import encode_command
from delosmq.wire.openwire.commands import INDIVIDUAL_ACK, STANDARD_ACK, MessageAck, MessagePull
from delosmq.wire.openwire.properties import decode_properties
from delosmq.wire.openwire.structures import MessageId, Structure
from tests.sessions.openwire.support import ACCEPTOR, Client, OpenWireBench, Reader, code_of, queue, throwable, topic
from tests.sessions.support import EVERYTHING

MANY = 3 * READ_AT_ONCE


def make(broker: EngineBroker, *names: str) -> None:
    for name in names:
        broker.resources.create_queue(QueueSettings(name, name, ANYCAST))


def numbered(stem: str, count: int) -> list[str]:
    return [f"{stem}.{number}" for number in range(count)]


def readers_of(bench: OpenWireBench, stem: str) -> int:
    """How many consumers queues of such names have."""
    return sum(len(one.holders) for name, one in bench.broker.queues.items() if name.startswith(stem))


# -- advisories --------------------------------------------------------------------------------------------------------


def told(bench: OpenWireBench) -> int:
    return sum(
        one.message_count for one in bench.broker.queues.values() if one.address.name.startswith("ActiveMQ.Advisory.")
    )


def test_all_parts_of_a_listener_share_what_is_told_before_its_answer() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    for _ in range(TOLD_IN_LINE):
        client.feed(client.consumer_info(queue("q")))
    bench.tick()
    wildcards = ("Consumer.>", "Consumer.*.>", "Consumer.Queue.>", "Consumer.*.q")
    info = client.consumer_info(topic(",".join(f"ActiveMQ.Advisory.{one}" for one in wildcards)))
    client.reads = False
    client.feed(info)
    assert 0 < told(bench) <= TOLD_IN_LINE
    client.reads = True
    bench.tick()
    assert len(Reader(client, info).take()) == TOLD_IN_LINE * len(wildcards)


def test_listeners_of_one_turn_share_it_too() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    for _ in range(TOLD_IN_LINE):
        client.feed(client.consumer_info(queue("q")))
    bench.tick()
    client.reads = False
    infos = [client.consumer_info(topic("ActiveMQ.Advisory.Consumer.>"), session=-1) for _ in range(3)]
    for info in infos:
        client.feed(info)
    assert 0 < told(bench) <= TOLD_IN_LINE
    assert client.host.wakes <= 2
    client.reads = True
    bench.tick()
    assert [len(Reader(client, info).take()) for info in infos] == [TOLD_IN_LINE] * 3


def test_a_listener_that_left_is_told_nothing_more_and_others_are() -> None:
    bench = OpenWireBench()
    client, other = bench.connect(), bench.connect()
    for _ in range(TOLD_IN_LINE):
        client.feed(client.consumer_info(queue("q")))
    bench.tick()
    gone = client.consumer_info(topic("ActiveMQ.Advisory.Consumer.>"), session=-1)
    stays = other.consumer_info(topic("ActiveMQ.Advisory.Consumer.>"), session=-1)
    client.feed(gone)
    other.feed(stays)
    client.feed(client.remove_info(gone.consumer_id))
    bench.tick()
    assert len(Reader(other, stays).take()) == TOLD_IN_LINE


def test_the_queues_of_a_wildcard_are_counted_in_slices_and_each_once() -> None:
    bench = OpenWireBench()
    client, other = bench.connect(), bench.connect()
    make(bench.broker, *numbered("n", 12 * TOLD_IN_LINE), "a.x")
    bench.tick()
    for name in ("n.7", "a.x", "a.x"):
        other.consume(queue(name))
    reader = client.consume(topic("ActiveMQ.Advisory.Consumer.Queue.a.>"))
    before = len(reader.take())
    client.reads = False
    other.feed(other.consumer_info(queue("a.>,*.x,a.x,none")))
    assert told(bench) == before
    client.reads = True
    bench.tick()
    (message,) = [one.message for one in reader.take() if one.message is not None]
    assert decode_properties(message.marshalled_properties)["consumerCount"].value == 4  # three on a.x, and on none


def test_a_late_listener_is_told_of_a_producer_of_many_parts_once_for_each() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    names = numbered("p", 90)
    for _ in range(3):
        client.feed(client.producer_info(queue(",".join(names))))
    bench.tick()
    client.reads = False
    info = client.consumer_info(topic("ActiveMQ.Advisory.Producer.>"), session=-1)
    client.feed(info)
    assert 0 < told(bench) <= TOLD_IN_LINE
    client.reads = True
    bench.tick()
    assert len(Reader(client, info).take()) == 270


# -- wildcards ---------------------------------------------------------------------------------------------------------


def test_the_queues_that_are_there_are_taken_up_in_slices() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    make(bench.broker, *numbered("n", MANY))
    bench.tick()
    info = client.consumer_info(queue("n.>,n.*,*.*"))
    client.feed(info)
    client.feed(client.consumer_info(queue("n.>")))
    assert readers_of(bench, "n.") == READ_AT_ONCE
    assert client.host.wakes == 1
    bench.tick()
    assert readers_of(bench, "n.") == 2 * MANY


def test_new_queues_are_compared_with_many_wildcards_in_slices() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    client.consume(queue(",".join([*(f"w{number}.>" for number in range(49)), "last.>"])))
    make(bench.broker, *numbered("n", 3 * NAMES_COMPARED // 50 - 1), "last.x")
    client.host.wakes = 0
    turns = 0
    while not readers_of(bench, "last."):
        client.session.handle_timer(bench.now)
        turns += 1
    assert turns == 3


def test_a_consumer_that_ends_meanwhile_gets_no_more() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    make(bench.broker, *numbered("n", MANY))
    client.consume(queue("other.>"))
    info = client.consumer_info(queue("n.>"))
    client.feed(info)
    client.feed(client.remove_info(info.consumer_id))
    bench.tick()
    assert readers_of(bench, "n.") == 0


def test_a_browser_of_many_queues_ends_once_and_has_seen_all() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    names = numbered("n", MANY)
    for name in names:
        client.publish(queue(name), "x")
    info = client.consumer_info(queue("n.>"))
    info.browser = True
    reader = client.subscribe(info)
    assert len(reader.take()) == MANY
    assert reader.ended == 1


def test_a_pull_is_not_answered_before_all_queues_were_asked() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    make(bench.broker, *numbered("n", MANY))
    client.publish(queue(f"n.{MANY - 1}"), "m1")
    info = client.consumer_info(queue("n.>"), 0)
    client.feed(info)
    pull = MessagePull()
    pull.consumer_id = info.consumer_id
    pull.destination = info.destination
    pull.timeout = -1
    client.feed(pull)
    bench.tick()
    reader = Reader(client, info)
    assert reader.bodies() == "m1"
    assert reader.ended == 0
    client.tell(pull)
    reader.take()
    assert reader.ended == 1


def test_what_a_user_may_not_read_among_very_many_is_reported_once() -> None:
    rights = dict(EVERYTHING.permissions)
    del rights["consume"]
    bench = OpenWireBench(security=(EVERYTHING, SecurityMatch("n.secret.#", rights)))
    client = bench.connect()
    make(bench.broker, *numbered("n.secret", MANY), "n.open")
    reader = client.consume(queue("n.>"))
    client.publish(queue("n.open"), "m1")
    assert reader.bodies() == "m1"
    (report,) = client.host.reports
    assert report.code == "DMQ5282"
    assert f" {MANY} queues" in report.message


# -- limits ------------------------------------------------------------------------------------------------------------


def test_each_destination_of_a_consumer_counts() -> None:
    bench = OpenWireBench(acceptor=replace(ACCEPTOR, max_subscriptions=5))
    client = bench.connect()
    reader = client.consume(topic("a,b,c"))
    more = client.consumer_info(topic("d,e,f"))
    assert code_of(client.refused(more)) == "ResourceAllocationException DMQ5291"
    client.consume(topic("d,e"))
    reader.close()
    client.consume(topic("d,e,f"))


def test_what_was_refused_does_not_count() -> None:
    rights = dict(EVERYTHING.permissions)
    del rights["consume"]
    bench = OpenWireBench(
        acceptor=replace(ACCEPTOR, max_subscriptions=2), security=(EVERYTHING, SecurityMatch("secret", rights))
    )
    client = bench.connect()
    for _ in range(2):
        assert code_of(client.refused(client.consumer_info(queue("a,secret")))).startswith("SecurityException")
    client.consume(queue("a,b"))


def test_a_destination_that_is_named_twice_is_one() -> None:
    bench = OpenWireBench(acceptor=replace(ACCEPTOR, max_subscriptions=1))
    client = bench.connect()
    reader = client.consume(topic("t, t,topic://t"))
    client.publish(topic("t,t"), "m1")
    assert reader.bodies() == "m1"


def test_queues_by_wildcards_are_bounded_too() -> None:
    bench = OpenWireBench(acceptor=replace(ACCEPTOR, max_subscriptions=1))
    client = bench.connect()
    make(bench.broker, *numbered("n", WILD_PLACES + 5))
    client.consume(queue("n.>"))
    assert readers_of(bench, "n.") == WILD_PLACES
    (report,) = client.host.reports
    assert report.code == "DMQ5292"
    # Of queues that are gone others have the place.
    for name, one in list(bench.broker.queues.items()):
        if one.holders:
            bench.broker.resources.delete_queue(name)
    bench.tick()
    make(bench.broker, "n.new")
    bench.tick()
    assert readers_of(bench, "n.new") == 1


# -- acknowledgements that name no sequence ----------------------------------------------------------------------------


def nameless(reader: Reader, kind: int, index: int, *, count: int = 1) -> MessageAck:
    """An acknowledgement without the broker's sequence."""
    known = reader.message_id(index)
    return reader.ack(kind, MessageId(known.producer_id, known.producer_sequence_id), count=count)


def filled(bench: OpenWireBench, count: int) -> Reader:
    client, producer = bench.connect(), bench.connect()
    reader = client.consume(queue("q"), 32_767)
    for _ in range(count):
        producer.feed(producer.text(queue("q"), "x", persistent=False))
    bench.tick()
    reader.take()
    return reader


def test_messages_are_found_by_their_ids_alone() -> None:
    bench = OpenWireBench()
    reader = filled(bench, 4)
    client = reader.client
    client.ok(nameless(reader, STANDARD_ACK, 1, count=2))
    client.ok(nameless(reader, INDIVIDUAL_ACK, 3))
    client.ok(nameless(reader, STANDARD_ACK, 2))
    bench.connect().publish(queue("q"), "more")
    reader.take()
    client.ok(nameless(reader, STANDARD_ACK, 4))
    assert bench.queue("q").message_count == 0
    # Answered, so it is there no more.
    assert code_of(client.refused(nameless(reader, STANDARD_ACK, 4))) == "JMSException DMQ5260"


def test_copies_with_one_id_are_found_one_by_one() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    reader = client.consume(queue("q.a,q.b"))
    client.publish(queue("q.a,q.b"), "x")
    reader.take()
    unknown = reader.ack(INDIVIDUAL_ACK, MessageId(reader.message_id(0).producer_id, 4_711))
    client.ok(unknown)  # it is passed over, but all ids are known now
    for index in (0, 1):
        client.ok(nameless(reader, INDIVIDUAL_ACK, index))
    assert [bench.queue(name).message_count for name in ("q.a", "q.b")] == [0, 0]


def test_no_more_messages_are_read_for_ids_than_a_turn_has_room_for() -> None:
    bench = OpenWireBench()
    reader = filled(bench, 2 * NAMES_READ)
    client = reader.client
    far = nameless(reader, INDIVIDUAL_ACK, NAMES_READ + 10)
    asked = [client.feed(far, answer=True) for _ in range(3)]
    bench.tick()
    for command_id in asked:
        (answer,) = client.answers(command_id)
        assert code_of(throwable(answer)) == "JMSException DMQ5294"
    assert bench.queue("q").message_count == 2 * NAMES_READ
    # The next turn reads on where that one ended.
    client.ok(far)
    assert bench.queue("q").message_count == 2 * NAMES_READ - 1


def test_each_message_is_read_once() -> None:
    bench = OpenWireBench()
    reader = filled(bench, NAMES_READ - 10)
    client = reader.client
    unknown = reader.ack(STANDARD_ACK, MessageId(reader.message_id(0).producer_id, 4_711))
    asked = [client.feed(unknown, answer=True) for _ in range(3)]
    bench.tick()
    for command_id in asked:
        (answer,) = client.answers(command_id)
        # To read them again there would be no room.
        assert code_of(throwable(answer)) == "JMSException DMQ5260"


def test_large_messages_take_more_room() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    reader = client.consume(queue("q"))
    for _ in range(2):
        client.ok(client.text(queue("q"), "x" * 16_384 * NAMES_READ))
    reader.take()
    unknown = reader.ack(STANDARD_ACK, MessageId(reader.message_id(0).producer_id, 4_711))
    assert code_of(client.refused(unknown)) == "JMSException DMQ5294"
    assert code_of(client.refused(unknown)) == "JMSException DMQ5294"
    assert code_of(client.refused(unknown)) == "JMSException DMQ5260"


# -- frames ------------------------------------------------------------------------------------------------------------


def in_a_slow_turn(client: Client, *commands: Structure) -> None:
    """All in one read, while time flies."""
    clock = client.bench.clock
    clock.each_look_ms = 6
    client.session.receive(b"".join(encode_command(command, client.form) for command in commands), client.bench.now)
    clock.each_look_ms = 0


def test_frames_that_take_long_leave_others_their_turn() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    commands = [client.consumer_info(queue("q")) for _ in range(4)]
    in_a_slow_turn(client, *commands)
    assert readers_of(bench, "q") == 1
    assert not client.is_read()
    client.session.handle_timer(bench.now)
    assert readers_of(bench, "q") == len(commands), "what came with it goes on by itself"
    assert client.is_read()


def test_answers_that_were_written_do_not_begin_the_next_turn() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    commands = [client.consumer_info(queue("q")) for _ in range(4)]
    in_a_slow_turn(client, *commands)
    client.session.handle_written(bench.now)
    assert readers_of(bench, "q") == 1
    assert not client.is_read()


def test_brief_frames_are_looked_at_now_and_then() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    client.publish(queue("q"), "first")
    sent = [client.text(queue("q"), f"m{number}") for number in range(BRIEF_AT_ONCE + 3)]
    in_a_slow_turn(client, *sent)
    assert bench.queue("q").message_count == 1 + BRIEF_AT_ONCE
    client.session.handle_timer(bench.now)
    assert bench.queue("q").message_count == 1 + len(sent)


def test_what_a_peer_sent_before_it_left_counts() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    infos = [client.consumer_info(queue("other")) for _ in range(3)]
    client.publish(queue("q"), "first")
    in_a_slow_turn(client, *infos, client.text(queue("q"), "last"))
    assert bench.queue("q").message_count == 1
    client.session.handle_eof()
    assert bench.queue("q").message_count == 2


def test_the_end_of_a_turn_is_no_back_pressure() -> None:
    full = {"max_size_messages": 1, "address_full_policy": AddressFullPolicy.BLOCK}
    bench = OpenWireBench(acceptor=replace(ACCEPTOR, parked_limit_bytes=2_000), address_settings={"full": full})
    client = bench.connect()
    reader = client.consume(queue("full"))
    client.publish(queue("full"), "first")
    reader.take()
    client.tell(client.text(queue("full"), "x" * 500))
    assert client.is_read()
    other = bench.connect()
    for _ in range(2):
        other.tell(other.text(queue("full"), "x" * 500))
    assert not other.is_read(), "one is so much that back-pressure would not end"
    in_a_slow_turn(client, client.consumer_info(queue("q")), reader.ack(STANDARD_ACK, 0, count=1))
    client.session.handle_timer(bench.now)
    bench.tick()
    assert client.is_read()
    client.tell(client.text(queue("q"), "not parked"))
    assert bench.queue("q").message_count == 1
