"""What the chaos clients send again is what the broker has promised to know."""

from random import Random

import pytest

from tests.chaos import mixed_clients as clients
from tests.chaos.events_seen import CONFIRMED, SENT, Record
from tests.chaos.mixed_clients import LOST_NOTES, Load

REMEMBERED = 50


def recorded(numbers: int, confirmed: int) -> Record:
    """As many messages were sent, and the first of them confirmed."""
    record = Record()
    for _ in range(numbers):
        record.note(SENT, "ids", record.new_number("ids"))
    for number in range(1, confirmed + 1):
        record.note(CONFIRMED, "ids", number)
    return record


def load(remembered: int) -> Load:
    return Load("ids", "/queue/ids", ("ids",), headers=clients.with_an_id, remembered=remembered)


@pytest.mark.parametrize("seed", range(20))
def test_only_ids_that_the_address_must_still_know_are_sent_again(seed: int) -> None:
    again = clients.resent(recorded(200, 190), load(REMEMBERED), Random(seed))

    assert again[:10] == list(range(191, 201))  # without a receipt
    assert again[10] == 200 - REMEMBERED + 1  # the oldest that counts
    others = again[11:]
    assert len(set(others)) == LOST_NOTES
    assert all(200 - REMEMBERED + 1 < number <= 190 for number in others)


def test_a_young_producer_sends_again_what_there_is() -> None:
    assert clients.resent(recorded(0, 0), load(REMEMBERED), Random(1)) == []
    assert clients.resent(recorded(3, 1), load(REMEMBERED), Random(1)) == [2, 3, 1]


def test_messages_without_ids_are_never_sent_again() -> None:
    assert clients.resent(recorded(3, 1), load(0), Random(1)) == []
