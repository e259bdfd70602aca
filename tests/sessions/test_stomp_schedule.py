"""Headers of SEND that say when, to whom and whether: times, groups, duplicate ids; and what of them MESSAGE shows."""

import pytest

from delosmq.model.settings import DispatchProfile, QueueSettings
from tests.sessions.support import Client, StompBench


def send(client: Client, body: str, *headers: str, to: str = "/queue/a") -> None:
    client.frame("SEND", f"destination:{to}", *headers, body=body)


def subscribed(bench: StompBench, *headers: str, to: str = "/queue/a") -> Client:
    client = bench.connect()
    client.frame("SUBSCRIBE", "id:s", f"destination:{to}", *headers)
    return client


def wait(bench: StompBench, ms: int) -> None:
    bench.pass_time(ms)
    bench.tick()


# -- later -----------------------------------------------------------------------------------------------------------


def due(bench: StompBench, header: str) -> str:
    if header == "AMQ_SCHEDULED_DELAY":
        return f"{header}:500"
    return f"{header}:{bench.clock.wall_ms() + 500}"


@pytest.mark.parametrize("header", ["AMQ_SCHEDULED_DELAY", "AMQ_SCHEDULED_TIME", "_AMQ_SCHED_DELIVERY"])
def test_a_scheduled_message_comes_when_it_is_time(header: str) -> None:
    bench = StompBench()
    client = subscribed(bench)
    send(client, "later", due(bench, header))
    send(client, "now")
    assert client.take_bodies() == "now"
    wait(bench, 499)
    assert client.take_bodies() == ""
    wait(bench, 1)
    assert client.take_bodies() == "later"


def test_a_time_counts_more_than_a_delay() -> None:
    bench = StompBench()
    client = subscribed(bench)
    send(client, "x", "AMQ_SCHEDULED_DELAY:1", f"AMQ_SCHEDULED_TIME:{bench.clock.wall_ms() + 50}")
    wait(bench, 49)
    assert client.take_bodies() == ""
    wait(bench, 1)
    assert client.take_bodies() == "x"


@pytest.mark.parametrize("header", ["AMQ_SCHEDULED_DELAY", "AMQ_SCHEDULED_TIME"])
def test_zero_is_at_once(header: str) -> None:
    client = subscribed(StompBench())
    send(client, "x", f"{header}:0")
    assert client.take_bodies() == "x"


@pytest.mark.parametrize("header", ["AMQ_SCHEDULED_DELAY", "AMQ_SCHEDULED_TIME", "expires"])
def test_the_latest_time_can_be_stored(header: str) -> None:
    bench = StompBench()
    send(bench.connect(), "x", f"{header}:{2**63 - 1}", "persistent:true")
    assert bench.queue("a").message_count == 1


def test_each_of_many_sends_with_the_same_head_is_delayed_from_its_own_moment() -> None:
    bench = StompBench()
    client = subscribed(bench)
    send(client, "one", "AMQ_SCHEDULED_DELAY:100")
    wait(bench, 60)
    send(client, "two", "AMQ_SCHEDULED_DELAY:100")
    wait(bench, 60)
    assert client.take_bodies() == "one"
    wait(bench, 40)
    assert client.take_bodies() == "two"


# -- not any more ----------------------------------------------------------------------------------------------------


def test_a_message_says_when_it_expires_and_is_gone_then() -> None:
    bench = StompBench()
    client = bench.connect()
    at = bench.clock.wall_ms() + 100
    send(client, "kept", f"expires:{at}")
    send(client, "plain")
    reader = subscribed(bench, "ack:client")
    kept, plain = reader.take()
    assert kept.headers["expires"] == str(at)
    assert "expires" not in plain.headers
    reader.session.connection_lost()
    wait(bench, 101)
    assert subscribed(bench).take_bodies() == "plain"


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_every_version_is_told_when_a_message_expires(version: str) -> None:
    bench = StompBench()
    at = bench.clock.wall_ms() + 100
    send(bench.connect(), "x", f"expires:{at}", "note:a\\cb")
    client = bench.connect(version)
    client.frame("SUBSCRIBE", "id:s", "destination:/queue/a")
    (message,) = client.take()
    assert (message.headers["expires"], message.headers["note"]) == (str(at), "a:b")


def test_what_expired_says_when_the_broker_ended_it_and_not_what_its_sender_wrote() -> None:
    bench = StompBench(queues=(QueueSettings("EXP", "EXP"),), address_settings={"a": {"expiry_address": "EXP"}})
    lies = [f"_AMQ_{name}:lie" for name in ("ORIG_ADDRESS", "ORIG_QUEUE", "ORIG_MESSAGE_ID", "ACTUAL_EXPIRY")]
    send(bench.connect(), "old", f"expires:{bench.clock.wall_ms() + 100}", *lies)
    wait(bench, 100)
    subscribed(bench)
    (expired,) = subscribed(bench, to="/queue/EXP").take()
    assert "lie" not in expired.headers.values()
    assert expired.headers["_AMQ_ACTUAL_EXPIRY"] == str(bench.clock.wall_ms())


# -- groups ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("header", ["JMSXGroupID", "_AMQ_GROUP_ID"])
def test_a_group_stays_with_its_consumer(header: str) -> None:
    bench = StompBench()
    first, second = subscribed(bench), subscribed(bench)
    sender = bench.connect()
    for number in range(6):
        send(sender, str(number), f"{header}:g{number % 2}", f"JMSXGroupSeq:{number}")
    taken = {first.take_bodies(), second.take_bodies()}
    assert taken == {"0 2 4", "1 3 5"}


def test_group_headers_travel_on() -> None:
    bench = StompBench()
    client = subscribed(bench)
    send(client, "x", "JMSXGroupID:g", "JMSXGroupSeq:7")
    (message,) = client.take()
    assert (message.headers["JMSXGroupID"], message.headers["JMSXGroupSeq"]) == ("g", "7")
    assert "JMSXGroupFirstForConsumer" not in message.headers


def test_a_negative_sequence_closes_a_group() -> None:
    bench = StompBench(address_settings={"#": {"dispatch_profile": DispatchProfile.CLASSIC}})
    first = subscribed(bench)
    send(first, "one", "JMSXGroupID:g")
    send(first, "end", "JMSXGroupID:g", "JMSXGroupSeq:-1")
    second = subscribed(bench)
    send(first, "two", "JMSXGroupID:g")
    frames = [f for client in (first, second) for f in client.take()]
    firsts = {f.body: f.headers.get("JMSXGroupFirstForConsumer") for f in frames}
    assert firsts == {b"one": "true", b"end": None, b"two": "true"}


def test_the_first_of_a_group_is_marked_as_the_queue_says() -> None:
    bench = StompBench(queues=(QueueSettings("a", "a", group_first_key="first:key"),))
    client = subscribed(bench)
    send(client, "one", "JMSXGroupID:g")
    send(client, "two", "JMSXGroupID:g")
    assert [frame.headers.get("first:key") for frame in client.take()] == ["true", None]


# -- duplicates ------------------------------------------------------------------------------------------------------


def test_a_duplicate_is_confirmed_and_not_there_twice() -> None:
    bench = StompBench()
    client = bench.connect()
    send(client, "one", "_AMQ_DUPL_ID:d", "receipt:1")
    send(client, "one again", "_AMQ_DUPL_ID:d", "receipt:2")
    send(client, "elsewhere", "_AMQ_DUPL_ID:d", "receipt:3", to="/queue/b")
    assert client.receipts() == ["1", "2", "3"]
    assert bench.queue("a").message_count == 1
    assert bench.queue("b").message_count == 1


def test_a_duplicate_is_confirmed_only_when_the_first_is_safe() -> None:
    bench = StompBench()
    other, client = bench.connect(), bench.connect()
    bench.hold = True
    send(other, "one", "_AMQ_DUPL_ID:d", "persistent:true")
    send(client, "again", "_AMQ_DUPL_ID:d", "persistent:true", "receipt:2")
    assert client.receipts() == []
    bench.sync()
    bench.tick()
    assert client.receipts() == ["2"]
