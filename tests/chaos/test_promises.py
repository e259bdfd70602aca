"""A broker that loses, doubles, splits, hurries or brings back is found out from what its clients saw."""

from collections.abc import Callable

import pytest

from tests.chaos import promises
from tests.chaos.events_seen import (
    ABANDONED,
    CONFIRMED,
    DELIVERED,
    FOUND,
    LOOKED,
    REFUSAL_CONFIRMED,
    REFUSED,
    SENT,
    SETTLED,
    TAKEN,
    Happening,
)
from tests.chaos.promises import BATCH

Check = Callable[[list[Happening]], list[str]]
SIZE = 3


def sent(number: int, at_ms: int = 0) -> list[Happening]:
    return [Happening(SENT, "q", number, at_ms=at_ms), Happening(CONFIRMED, "q", number)]


def came(number: int, message_id: str = "", life: int = 0, **more: object) -> Happening:
    return Happening(DELIVERED, "q", number, life, message_id=message_id or f"m{number}", **more)  # type: ignore[arg-type]


def settled(number: int) -> Happening:
    return Happening(SETTLED, "q", number)


def found(queue: str, *numbers: int, life: int = 1) -> list[Happening]:
    return [Happening(FOUND, queue, number, life, message_id=f"{queue}{number}") for number in numbers]


def batch(number: int, upto: int = SIZE, life: int = 0, start: int = 0) -> list[Happening]:
    return [came(number * BATCH + k, life=life, size=SIZE) for k in range(start, upto)]


def looked(*numbers: int) -> list[Happening]:
    return [*found("q", *numbers), Happening(LOOKED, "q", 0)]


def refused(times: int, life: int = 0) -> list[Happening]:
    return [came(4, life=life), Happening(REFUSED, "q", 4, life)] * times


def groups(*seen: tuple[int, str, int]) -> list[Happening]:
    return [came(number, client=client, life=life, group="g") for number, client, life in seen]


def lost(happened: list[Happening]) -> list[str]:
    return promises.nothing_lost(happened, "q", "q")


def invented(happened: list[Happening]) -> list[str]:
    return promises.nothing_invented(happened, "q", "q")


def back(happened: list[Happening]) -> list[str]:
    return promises.nothing_back(happened, "q")


def doubled(happened: list[Happening]) -> list[str]:
    return promises.one_copy(happened, "q")


def early(happened: list[Happening]) -> list[str]:
    return promises.never_early(happened, "q", "q")


def grouped(happened: list[Happening]) -> list[str]:
    return promises.groups_hold(happened, "q")


def whole(happened: list[Happening]) -> list[str]:
    return promises.batches_whole(happened, "q", "q")


def outcomes(happened: list[Happening]) -> list[str]:
    return promises.same_outcomes(happened, "out", "copy")


def arrivals(happened: list[Happening]) -> list[str]:
    return promises.same_arrivals(happened, "out", "copy")


def ring(happened: list[Happening]) -> list[str]:
    return promises.ring_kept(happened, "q", SIZE)


def dead(happened: list[Happening]) -> list[str]:
    return promises.dead_letters(happened, "q", "dead", attempts=3)


KEPT: list[tuple[Check, list[Happening]]] = [
    (lost, [*sent(1), Happening(SENT, "q", 2), came(1)]),
    (invented, [*sent(1), came(1)]),
    (back, [came(1), came(1), settled(1)]),
    (doubled, [came(1), came(1, life=1)]),
    (early, [*sent(1, at_ms=50), came(1, at_ms=50)]),
    (grouped, groups((1, "a", 0), (2, "a", 0), (1, "b", 1), (2, "b", 1), (4, "b", 1))),
    (whole, [*batch(1, upto=2), *batch(1, life=1), *batch(2, life=1)]),
    (whole, [*batch(1), *batch(2, upto=1), *batch(2, life=1)]),
    (outcomes, [*found("out", 1, 2), *found("copy", 2, 1), *found("out", 3, life=2), *found("copy", 3, life=2)]),
    (arrivals, [*found("out", 1), *found("copy", 1)]),
    (ring, [*sent(1), *sent(2), *looked(1, 2), *sent(3), *sent(4), *looked(2, 3, 4)]),
    (ring, [*sent(1), Happening(SENT, "q", 2), *looked(1), *sent(3), *looked(1, 3)]),
    (ring, [*sent(1), Happening(SENT, "q", 2), *looked(1, 2), *sent(3), *looked(1, 2, 3)]),
    (ring, [*sent(1), *looked(1), Happening(TAKEN, "q", 0), *looked(), *sent(2), *looked(2)]),
    (dead, [*refused(3), *found("dead", 4)]),
    (dead, [*refused(3), *refused(1, life=1), *found("dead", 4)]),
]
BROKEN: list[tuple[Check, list[Happening]]] = [
    (lost, [*sent(1), *sent(2), came(1)]),
    (invented, [*sent(1), came(2)]),
    (back, [came(1), settled(1), came(1, life=1)]),
    (back, [came(1), settled(1), *found("q", 1)]),
    (doubled, [came(1), came(1, "another")]),
    (early, [*sent(1, at_ms=50), came(1, at_ms=49)]),
    (grouped, groups((1, "a", 0), (3, "a", 0), (2, "a", 1))),
    (grouped, groups((1, "a", 0), (2, "a", 0), (1, "a", 0))),
    (grouped, groups((1, "a", 0), (2, "b", 0))),
    (whole, [*batch(1, upto=2), *batch(2)]),
    (whole, [*batch(1), *batch(2, start=1)]),
    (whole, [*batch(1, upto=2), *batch(1, life=1, start=1)]),
    (whole, [Happening(ABANDONED, "q", 1), *batch(1)]),
    (outcomes, [*found("out", 1, 2), *found("copy", 1)]),
    (outcomes, [*found("out", 1), *found("copy", 1), *found("out", 1, life=2), *found("copy", 1, life=2)]),
    (arrivals, [*found("out", 1), *found("copy", 2)]),
    (ring, [*sent(1), *sent(2), *looked(2)]),
    (ring, [*sent(1), *sent(2), *looked(1)]),
    (ring, [*sent(1), *sent(2), *sent(3), *sent(4), *looked(1, 2, 3, 4)]),
    (ring, [*sent(1), *sent(2), *sent(3), *sent(4), *looked(1, 3, 4)]),
    (ring, [*sent(1), *sent(2), *looked(2, 1)]),
    (ring, [*sent(1), *looked(1), Happening(TAKEN, "q", 0), *sent(2), *looked(1, 2)]),
    (ring, [*sent(1), *looked()]),
    (dead, [*refused(3), *found("dead", 4), came(4)]),
    (dead, [*refused(4), *found("dead", 4)]),
    (dead, [*refused(3), *[Happening(REFUSAL_CONFIRMED, "q", 4)] * 3, *refused(1, life=1)]),
    (dead, [*refused(3), *refused(2, life=1), *found("dead", 4)]),
    (dead, [*refused(2), *found("dead", 4)]),
]


def named(case: tuple[Check, list[Happening]]) -> str:
    return case[0].__name__


@pytest.mark.parametrize("case", KEPT, ids=named)
def test_a_kept_promise_is_not_complained_about(case: tuple[Check, list[Happening]]) -> None:
    check, happened = case
    assert check(happened) == []


@pytest.mark.parametrize("case", BROKEN, ids=named)
def test_a_broken_promise_is_found(case: tuple[Check, list[Happening]]) -> None:
    check, happened = case
    assert check(happened)
