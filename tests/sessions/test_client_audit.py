"""What clients make and delete is told with the user, whatever the protocol and the command."""

from delosmq.wire.openwire.commands import ADD_DESTINATION, REMOVE_DESTINATION, RemoveSubscriptionInfo
from delosmq.wire.openwire.structures import TEMP_QUEUE, Destination
from tests.sessions.openwire.support import OpenWireBench, change, queue, topic
from tests.sessions.support import USER, StompBench


def test_what_a_stomp_client_makes_and_ends() -> None:
    bench = StompBench()
    client = bench.connect("1.2", "client-id:me\n")
    client.frame("SEND", "destination:/queue/made", body="x")
    client.frame("SEND", "destination:/queue/made", body="y")
    assert bench.audit.told == [("passing", "", "made", USER), ("created", "made", "made", USER)]
    bench.audit.told.clear()
    client.frame("SUBSCRIBE", "id:1", "destination:/topic/news", "durable-subscription-name:n", "ack:client")
    client.frame("SUBSCRIBE", "id:2", "destination:/topic/news")
    kinds = [told[0] for told in bench.audit.told if told[1]]
    assert kinds == ["created", "passing"]
    bench.audit.told.clear()
    client.frame("SEND", "destination:/topic/news", "persistent:true", body="x")
    client.frame("UNSUBSCRIBE", "id:1", "durable-subscription-name:n")
    ((deleted, _, address, user, messages),) = bench.audit.told
    assert (deleted, address, user, messages) == ("deleted", "news", USER, 1)


def test_what_an_openwire_client_makes_and_deletes() -> None:
    bench = OpenWireBench()
    client = bench.connect(client_id="me")
    client.publish(queue("made"), "x")
    client.ok(change(client, queue("made"), REMOVE_DESTINATION))
    assert [told for told in bench.audit.told if told[0] != "passing"] == [
        ("created", "made", "made", USER),
        ("deleted", "made", "made", USER, 1),
    ]
    bench.audit.told.clear()
    client.ok(change(client, topic("wished"), ADD_DESTINATION))
    client.ok(change(client, topic("wished"), REMOVE_DESTINATION))
    assert bench.audit.told == [("created", "", "wished", USER), ("deleted", "", "wished", USER, 0)]
    bench.audit.told.clear()
    temporary = Destination(f"{client.name}:1", TEMP_QUEUE)
    client.ok(change(client, temporary, ADD_DESTINATION))
    client.ok(change(client, temporary, REMOVE_DESTINATION))
    assert {told[0] for told in bench.audit.told} == {"passing"}
    bench.audit.told.clear()
    client.durable("s", topic("news")).close()
    info = RemoveSubscriptionInfo()
    info.subscription_name, info.client_id = "s", "me"
    client.ok(info)
    assert [told[0] for told in bench.audit.told if told[1]] == ["created", "deleted"]


def test_what_goes_as_it_is_unused() -> None:
    bench = StompBench()
    client = bench.connect("1.2")
    client.frame("SEND", "destination:/queue/made", body="x")
    client.frame("SUBSCRIBE", "id:1", "destination:/queue/made", "ack:auto")
    client.frame("UNSUBSCRIBE", "id:1")
    bench.audit.told.clear()
    for _ in range(2):
        bench.pass_time(30_000)
    assert bench.audit.told == [("unused", "made", "made", 0)]
