"""A small dose of `tests.client.breaks` in each acknowledgement mode: nothing confirmed is lost, and only what the mode
allows comes twice."""

# ACK-1, ACK-5

from pathlib import Path

import pytest

from delosmq.client import AckMode
from delosmq.testing import BrokerFixture
from tests.client.breaks import MODES, SURFACES, CrashedFixture, run
from tests.client.ledger import Arrival, Ledger


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("mode_name", MODES)
async def test_what_was_promised_comes_true(tmp_path: Path, mode_name: str, surface: str) -> None:
    with BrokerFixture(tmp_path) as broker:
        ledger = await run(CrashedFixture(broker), mode_name, surface, kills=1, cuts=2, seed=1, longest_s=0.01)
    assert ledger.broken_promises() == []
    assert ledger.breaks == 3


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("mode_name", MODES)
async def test_what_was_promised_to_listeners_comes_true(tmp_path: Path, mode_name: str, surface: str) -> None:
    with BrokerFixture(tmp_path) as broker:
        crashed = CrashedFixture(broker)
        ledger = await run(crashed, mode_name, surface, kills=1, cuts=2, seed=1, longest_s=0.01, listens=True)
    assert ledger.broken_promises() == []
    assert ledger.breaks == 3


@pytest.mark.parametrize("surface", SURFACES)
async def test_what_was_promised_comes_true_by_spare_connections(tmp_path: Path, surface: str) -> None:
    with BrokerFixture(tmp_path) as broker:
        crashed = CrashedFixture(broker)
        ledger = await run(crashed, "CLIENT", surface, kills=1, cuts=4, seed=1, longest_s=0.01, backup=True)
    assert ledger.broken_promises() == []
    assert (ledger.breaks, len(ledger.ways)) == (5, 2)


def sent(mode: AckMode, count: int) -> Ledger:
    ledger = Ledger(mode)
    for number in range(count):
        ledger.sends(number)
        ledger.confirmed.add(number)
    return ledger


def test_what_is_lost_is_seen() -> None:
    ledger = sent(AckMode.CLIENT, 3)
    ledger.arrived(0, Arrival(0, 0, 0))
    ledger.dead.append(1)
    assert ledger.broken_promises() == [
        "2 confirmed, and lost: [1, 2]",
        "1 among the dead letters before an application saw them: [1]",
    ]


def test_what_comes_twice_without_need_is_seen() -> None:
    ledger = sent(AckMode.CLIENT, 3)
    for number in range(3):
        ledger.arrived(number, Arrival(0, 0, 0))
    ledger.arrived(0, Arrival(1, 0, 0))
    ledger.acknowledged(1, 0)
    ledger.breaks = 1
    ledger.arrived(1, Arrival(0, 1, 1))
    ledger.arrived(2, Arrival(0, 1, 1))
    assert ledger.broken_promises() == [
        "0 came twice without a break in between",
        "1 came to a connection that had acknowledged it",
    ]


def test_what_a_transaction_does_in_part_or_twice_is_seen() -> None:
    ledger = sent(AckMode.TRANSACTED, 4)
    ledger.confirmed.clear()
    ledger.doubts([0, 1])
    ledger.takes_back([2])
    for number in (0, 2, 3):
        ledger.arrived(number, Arrival(0, 0, 0))
    ledger.copied = [0, 3, 3]
    assert ledger.broken_promises() == [
        "1 rolled back, and came: [2]",
        "1 sent on twice by transactions: [3]",
        "a transaction happened in part: [0, 1]",
    ]
