"""The comparison of clients: each does its job to the last message, and the tables show medians."""

import io
from collections.abc import Iterator

import pytest

from benchmarks.brokers.base import BrokerUnavailable
from benchmarks.clients.brokers import BenchBroker
from benchmarks.clients.compare import (
    CONTENDERS,
    OPERATIONS,
    SESSIONS,
    Bench,
    ClientFailed,
    Contender,
    Measured,
    main,
    measure_in_turn,
    tables,
)
from benchmarks.clients.worker import CLIENTS, run
from delosmq.testing import BrokerFixture


@pytest.fixture(scope="module")
def running() -> Iterator[BrokerFixture]:
    with BrokerFixture() as broker:
        yield broker


@pytest.mark.parametrize("sessions", [1, 2])
@pytest.mark.parametrize("kind", ["blocking", "asyncio", "stomp.py"])
def test_a_client_sends_confirms_and_receives(
    running: BrokerFixture, kind: str, sessions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(operation: str, queue: str) -> None:
        monkeypatch.setattr("sys.stdin", io.StringIO("\n"))
        fields = {
            "operation": operation,
            "urls": {"openwire": running.openwire_url, "stomp": running.stomp_url},
            "user": running.user,
            "password": running.password,
            "queue": queue,
            "sessions": sessions,
            "messages": 8,
            "warm_up": 4,
            "body_bytes": 100,
        }
        took = run(kind, fields)
        assert took["elapsed_s"] > 0

    name = f"{kind}.{sessions}"
    work("send", name)
    work("confirm", name)
    for session in range(sessions):
        running.queue(f"{name}.{session}").assert_has(messages=16 // sessions)
    work("receive", name)
    for session in range(sessions):
        running.queue(f"{name}.{session}").wait_for(messages=8 // sessions)


def test_each_contender_has_a_worker() -> None:
    assert {one.kind for one in CONTENDERS} == {*CLIENTS, "java"}


def test_the_tables_show_medians_and_what_is_missing() -> None:
    measured = [Measured("classic", "one", "send", 1, rate, cpu) for rate, cpu in ((100, 9), (3_000, 5), (200, 7.25))]
    measured.append(Measured("delosmq", "one", "receive", 16, 50, 2))
    head, _, row, _, _, _, other = tables(measured).splitlines()
    assert head == "| classic | send, 1 | send, 16 | confirm, 1 | confirm, 16 | receive, 1 | receive, 16 |"
    assert row == "| one | 200 (7.2) | - | - | - | - | - |"
    assert other == "| one | - | - | - | - | - | 50 (2.0) |"


class FailingOnce(Bench):
    """Its second contender can't be had, and the first one fails the first time it is asked to receive."""

    def __init__(self) -> None:
        super().__init__(BenchBroker("classic", {}), None, 1.0)
        self.asked: list[str] = []

    def measure(self, contender: Contender, operation: str, sessions: int) -> Measured:
        self.asked.append(contender.name)
        if contender is CONTENDERS[1]:
            raise BrokerUnavailable("no pip")
        if contender is CONTENDERS[0] and operation == "receive" and self.asked.count(contender.name) == 5:
            raise ClientFailed("nothing came")
        return Measured("classic", contender.name, operation, sessions, 100, 1)


def test_a_client_that_fails_once_is_measured_again_and_one_that_cannot_be_had_is_not() -> None:
    bench = FailingOnce()
    measured = measure_in_turn(bench, list(CONTENDERS[:3]), rounds=2)
    cells = len(OPERATIONS) * len(SESSIONS)
    assert bench.asked.count(CONTENDERS[1].name) == 1
    assert sum(one.client == CONTENDERS[0].name for one in measured) == 2 * cells - 1
    assert sum(one.client == CONTENDERS[2].name for one in measured) == 2 * cells


@pytest.mark.parametrize("named", ["delosmq asyncio", "", "stomp.py,proton"])
def test_a_client_that_is_not_known_is_refused_with_those_that_are(
    named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["--clients", named])
    assert f"there is no client {named!r}; name some of: delosmq blocking, compiled; " in capsys.readouterr().err
