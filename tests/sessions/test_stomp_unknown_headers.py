"""Headers of SUBSCRIBE that do nothing: the log says so once, and the client is served."""

import pytest

from delosmq.model.errors import BrokerError
from delosmq.sessions.stomp.server.unknown_headers import KNOWN, unknown_headers
from tests.sessions.support import Client, StompBench


def subscribe(client: Client, number: int, *headers: str) -> list[BrokerError]:
    client.frame("SUBSCRIBE", f"id:{number}", "destination:/queue/a", f"receipt:r{number}", *headers)
    assert [frame.command for frame in client.take()] == ["RECEIPT"]
    return client.host.reports


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("selecter", "selector"),
        ("Selector", "selector"),
        ("slector", "selector"),
        ("selectors", "selector"),
        ("esLector", "selector"),
        ("ackk", "ack"),
        ("ID", "id"),
        ("exclusive", "activemq.exclusive"),
        ("exlusive", "activemq.exclusive"),
        ("activemq.exlusive", "activemq.exclusive"),
        ("activemq.selector", "selector"),
        ("prefetch-size", "activemq.prefetchSize"),
        ("no_local", "no-local"),
        ("noLocal", "no-local"),
        ("durable-subscription-nam", "durable-subscription-name"),
        ("activemq.retroactive", ""),
        ("activemq.dispatchAsync", ""),
        ("transformation", ""),
    ],
)
def test_a_header_without_effect_is_named_and_the_likely_one_with_it(written: str, meant: str) -> None:
    assert unknown_headers({"id": "1", written: "x"}) == {written: meant}


@pytest.mark.parametrize("name", ["i", "idx", "x-priority", "persistent", "content-length", "colour", "selcetro"])
def test_headers_of_a_clients_own_are_nobody_elses_business(name: str) -> None:
    assert unknown_headers({name: "x"}) == {}


def test_what_subscribe_reads_is_not_strange() -> None:
    assert unknown_headers(dict.fromkeys(KNOWN, "x")) == {}


def test_the_log_says_it_once_for_each_connection() -> None:
    bench = StompBench()
    client = bench.connect()
    assert subscribe(client, 1, "mine:x") == []
    (notice,) = subscribe(client, 2, "selecter:a = 1", "activemq.retroactive:true")
    assert notice.code == "DMQ5133"
    assert "'selecter' (did you mean selector?), 'activemq.retroactive'." in str(notice)
    assert len(subscribe(client, 3, "selecter:a = 1")) == 1
    assert len(subscribe(bench.connect(), 1, "selecter:a = 1")) == 1


def test_no_more_are_looked_at_and_named_than_anybody_mistypes() -> None:
    bench = StompBench()
    client = bench.connect()
    (notice,) = subscribe(client, 1, *(f"activemq.{'x' * 100}{number}:1" for number in range(500)))
    assert len(str(notice)) < 1_000
    assert len(unknown_headers({f"activemq.{number}": "" for number in range(500)})) < 100
