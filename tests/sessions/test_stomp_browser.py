"""SUBSCRIBE with ``browser:true`` looks into a queue, takes nothing and says when it has seen all."""

import pytest

from delosmq.model.settings import SecurityMatch
from delosmq.security.access import PERMISSIONS
from tests.sessions.support import Client, StompBench


def filled(*bodies: str) -> StompBench:
    bench = StompBench()
    client = bench.connect()
    for body in bodies:
        client.frame("SEND", "destination:/queue/a", f"kind:{body[0]}", body=body)
    return bench


def browse(bench: StompBench, *headers: str, version: str = "1.2") -> Client:
    client = bench.connect(version)
    client.frame(
        "SUBSCRIBE", "id:b:1" if version == "1.0" else "id:b\\c1", "destination:/queue/a", "browser:true", *headers
    )
    return client


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_a_browser_sees_all_and_then_the_end(version: str) -> None:
    bench = filled("one", "two")
    *messages, end = browse(bench, version=version).take()
    assert [frame.body for frame in messages] == [b"one", b"two"]
    assert end.command == "MESSAGE"
    assert (end.headers["browser"], end.headers["subscription"], end.body) == ("end", "b:1", b"")
    assert end.headers["destination"] == "/queue/a"
    assert end.headers["message-id"]
    assert bench.queue("a").pending.count == 2


def test_an_empty_queue_ends_at_once() -> None:
    bench = StompBench()
    (end,) = browse(bench).take()
    assert end.headers["browser"] == "end"


def test_a_browser_may_select() -> None:
    bench = filled("one", "two", "three")
    assert browse(bench, "selector:kind = 't'").take_bodies() == "two three "


def test_what_comes_later_is_not_browsed() -> None:
    bench = filled("one")
    client = browse(bench)
    client.take()
    client.frame("SEND", "destination:/queue/a", body="late")
    client.frame("UNSUBSCRIBE", "id:b\\c1", "receipt:r")
    assert [frame.headers["receipt-id"] for frame in client.take()] == ["r"]
    assert bench.queue("a").message_count == 2


@pytest.mark.parametrize("command", ["ACK", "NACK"])
def test_an_answer_to_what_was_browsed_changes_nothing(command: str) -> None:
    bench = filled("one")
    client = browse(bench, "ack:client-individual")
    message, _end = client.take()
    client.frame(command, f"id:{message.headers['ack']}", "receipt:r")
    assert client.receipts() == ["r"]
    assert bench.queue("a").pending.count == 1


def test_browsing_needs_the_permission_to_browse_and_not_to_consume() -> None:
    def bench_without(name: str) -> StompBench:
        allowed = {permission: frozenset({"all"}) for permission in PERMISSIONS if permission != name}
        return StompBench(security=(SecurityMatch("#", allowed),))

    assert "'browse'" in browse(bench_without("browse")).error().headers["message"]
    assert browse(bench_without("consume")).take()[-1].headers["browser"] == "end"


def test_a_browser_is_no_durable_subscription() -> None:
    bench = StompBench()
    client = bench.connect(headers="client-id:me\n")
    client.frame("SUBSCRIBE", "id:1", "destination:/topic/t", "browser:true", "durable-subscription-name:n")
    message = client.error().headers["message"]
    assert "DMQ5127" in message
    assert "durable-subscription-name" in message


def test_a_queue_that_is_not_there_is_made_if_the_settings_let_it() -> None:
    bench = StompBench()
    (end,) = browse(bench).take()
    assert end.headers["browser"] == "end"
    assert bench.queue("a").settings.durable
    strict = StompBench(address_settings={"#": {"auto_create_queues": False}})
    (error,) = browse(strict).take()
    assert "there is no queue 'a'" in error.headers["message"]
