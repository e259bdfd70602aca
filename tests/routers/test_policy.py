"""Policies: Artemis's hashes, evenness, what moves when a target goes."""

# ROUTE-4

from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delosmq.model.declared.router import POLICY_PROPERTIES, RouterPolicySettings
from delosmq.model.errors import ConfigurationError
from delosmq.routers.consistent_hash import modulo_of, signed_hash
from delosmq.routers.policy import POLICIES, RouterPolicy, make_policy
from delosmq.routers.target import RouterTarget
from tests.routers.support import policy, ready

NODES = tuple(
    f"{number:08x}-1111-11ee-8000-00155d000001" for number in (0x1A2B3C4D, 0x5E6F7081, 0x92A3B4C5, 0xD6E7F809)
)
KEYS = [f"client-{number}" for number in range(10_000)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", -2128831035),
        ("a", -468965076),
        ("AAA", -1233065086),
        ("BBB", -1653294843),
        ("FOO", -322071049),
        ("BAR", -1150407558),
        ("admin", 885536276),
    ],
)
def test_hashes_are_artemis_s(text: str, expected: int) -> None:
    assert signed_hash(text) == expected


@pytest.mark.parametrize(("text", "expected"), [("AAA", "0"), ("BBB", "1"), ("FOO", "1"), ("BAR", "0")])
def test_moduli_are_artemis_s(text: str, expected: str) -> None:
    assert modulo_of(text, 2) == expected
    assert policy("CONSISTENT_HASH_MODULO", {"MODULO": "2"}).transform(text) == expected


@given(st.text())
def test_letters_beyond_the_basic_plane_are_two_units(text: str) -> None:
    assert -(2**31) <= signed_hash(text) < 2**31
    assert 0 <= int(modulo_of(text, 7)) < 7
    assert signed_hash("\N{GRINNING FACE}") == signed_hash("\ud83d\ude00")


def test_the_first_element_is_the_first() -> None:
    targets = ready("b", "a")
    assert policy("FIRST_ELEMENT").select(targets, "any") is targets[0]


def send(of: RouterPolicy, targets: Sequence[RouterTarget], keys: list[str]) -> list[str]:
    """The node ids that ``keys`` are sent to, one after the other."""
    found: list[str] = []
    for key in keys:
        target = of.select(targets, of.transform(key))
        assert target is not None
        of.chosen(target)
        target.sent += 1
        found.append(target.node_id)
    return found


def test_round_robin_has_one_turn_for_all_keys_and_begins_anywhere() -> None:
    targets = ready("a", "b", "c")
    assert send(policy("ROUND_ROBIN", start=4), targets, ["x", "x", "y", "z"]) == ["b", "c", "a", "b"]


def test_asking_takes_no_turn() -> None:
    targets, one = ready("a", "b"), policy("ROUND_ROBIN")
    assert {getattr(one.select(targets, "x"), "node_id", None) for _ in range(5)} == {"a"}


def test_least_connections_go_first_and_what_was_sent_since_counts() -> None:
    targets = ready("a", "b", "c")
    for target, count in zip(targets, (3, 1, None), strict=True):
        target.connection_count = count
    assert send(policy("LEAST_CONNECTIONS"), targets, ["x"] * 2) == ["b", "b"]
    # a and b have three each now, and c is asked last, as nothing is known of it.
    assert Counter(send(policy("LEAST_CONNECTIONS"), targets, ["x"] * 4)) == {"a": 2, "b": 2}


def test_below_the_threshold_all_counts_are_alike() -> None:
    targets = ready("a", "b")
    targets[0].connection_count, targets[1].connection_count = 9, 0
    limited = policy("LEAST_CONNECTIONS", {"CONNECTION_COUNT_THRESHOLD": "10"})
    assert send(limited, targets, ["x"] * 2) == ["a", "b"]


def test_when_no_count_is_known_they_are_taken_in_turn() -> None:
    assert send(policy("LEAST_CONNECTIONS"), ready("a", "b"), ["x"] * 4) == ["a", "b", "a", "b"]


@pytest.mark.parametrize("name", ["ROUND_ROBIN", "LEAST_CONNECTIONS"])
def test_ten_thousand_keys_are_spread_evenly(name: str) -> None:
    targets = ready(*NODES)
    for target in targets:
        target.connection_count = 0
    assert set(Counter(send(policy(name), targets, KEYS)).values()) == {2_500}


def test_hashed_keys_are_spread_as_evenly_as_their_hashes() -> None:
    # A target has one point, so its share is the distance to the next one: Artemis promises no more.
    keys = [sha256(key.encode()).hexdigest() for key in KEYS]
    shares = Counter(send(policy("CONSISTENT_HASH"), ready(*NODES), keys))
    points = sorted((signed_hash(node), node) for node in NODES)
    ends = [point for point, _ in points[1:]] + [2**31]
    for (point, node), end in zip(points, ends, strict=True):
        below = point + 2**31 if (point, node) == points[0] else 0
        assert abs(shares[node] / 10_000 - (end - point + below) / 2**32) < 0.03


def test_moduli_of_keys_are_spread_evenly() -> None:
    counts = Counter(policy("CONSISTENT_HASH_MODULO", {"MODULO": "4"}).transform(key) for key in KEYS)
    assert set(counts) == {"0", "1", "2", "3"}
    assert min(counts.values()) > 2_000


@pytest.mark.parametrize("gone", NODES)
def test_a_target_that_goes_moves_only_its_keys(gone: str) -> None:
    of = policy("CONSISTENT_HASH")
    before = send(of, ready(*NODES), KEYS)
    after = send(of, ready(*(node for node in NODES if node != gone)), KEYS)
    assert all(was in (now, gone) for was, now in zip(before, after, strict=True))
    assert gone not in after


@given(st.lists(st.text(max_size=5), min_size=1, max_size=8, unique=True), st.text(max_size=5), st.randoms())
def test_the_order_of_the_list_decides_nothing_in_a_consistent_hash(nodes: list[str], key: str, random: object) -> None:
    chosen = {
        getattr(policy("CONSISTENT_HASH").select(ready(*order), key), "node_id", None) for order in (nodes, nodes[::-1])
    }
    assert len(chosen) == 1


def test_a_modulo_chooses_no_target() -> None:
    assert policy("CONSISTENT_HASH_MODULO", {"MODULO": "2"}).select(ready("a", "b"), "0") is None


def test_each_policy_of_the_configuration_is_there() -> None:
    assert POLICIES.keys() == POLICY_PROPERTIES.keys()


@pytest.mark.parametrize(
    ("name", "properties", "said"),
    [
        ("CONSISTENT_HASH_MODULO", {}, "MODULO"),
        ("CONSISTENT_HASH_MODULO", {"MODULO": "0"}, "at least 1"),
        ("LEAST_CONNECTIONS", {"CONNECTION_COUNT_THRESHOLD": "-1"}, "at least 0"),
        ("FIRST_ELEMENT", {"MODULO": "2"}, "has no property"),
        ("MIDDLE_ELEMENT", {}, "there is no policy"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(name: str, properties: Mapping[str, str], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        policy(name, properties)


class LastElement(RouterPolicy):
    """A policy of another package."""

    def __init__(self, properties: Mapping[str, str], start: int) -> None:
        self._prefix = properties["PREFIX"]

    def transform(self, key: str) -> str:
        return self._prefix + key

    def select(self, targets: Sequence[RouterTarget], key: str) -> RouterTarget | None:
        return targets[-1]


def test_a_policy_of_another_package_is_made_by_its_name() -> None:
    settings = RouterPolicySettings("LAST_ELEMENT", (("PREFIX", "p-"),))
    made = make_policy(settings, 0, {"LAST_ELEMENT": LastElement})
    assert made.transform("k") == "p-k"
    assert getattr(made.select(ready("a", "b"), "k"), "node_id", None) == "b"


def test_one_that_fails_when_it_is_made_is_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match=r"'LAST_ELEMENT' can't be used: KeyError: 'PREFIX'"):
        make_policy(RouterPolicySettings("LAST_ELEMENT"), 0, {"LAST_ELEMENT": LastElement})
