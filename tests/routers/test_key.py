"""Keys: what each type takes from a connection, and what a filter makes of it."""

# ROUTE-1, ROUTE-2

import pytest

from delosmq.model.declared.java_regex import JavaRegex
from delosmq.model.declared.router import KeyType
from delosmq.routers.key import KeyResolver, RouteRequest

WHOLE = RouteRequest("order-1", "alice", frozenset({"users", "amq"}), "127.0.0.1", "eu.example.com")


def key(key_type: KeyType, request: RouteRequest = WHOLE, key_filter: str = "") -> str:
    return KeyResolver(key_type, JavaRegex(key_filter) if key_filter else None).resolve(request)


@pytest.mark.parametrize(
    ("key_type", "expected"),
    [
        (KeyType.CLIENT_ID, "order-1"),
        (KeyType.SNI_HOST, "eu.example.com"),
        (KeyType.SOURCE_IP, "127.0.0.1"),
        (KeyType.USER_NAME, "alice"),
        (KeyType.ROLE_NAME, "amq"),
    ],
)
def test_each_type_takes_its_own(key_type: KeyType, expected: str) -> None:
    assert key(key_type) == expected


@pytest.mark.parametrize("key_type", list(KeyType))
def test_what_is_not_there_is_null(key_type: KeyType) -> None:
    assert key(key_type, RouteRequest()) == "NULL"


def test_a_filter_is_searched_and_the_key_is_all_that_it_found() -> None:
    assert key(KeyType.SNI_HOST, key_filter="[a-z]+[.]example") == "eu.example"
    assert key(KeyType.CLIENT_ID, key_filter="(ord)er") == "order"
    assert key(KeyType.CLIENT_ID, key_filter="^.{3}") == "ord"


def test_what_a_filter_does_not_find_is_null() -> None:
    assert key(KeyType.CLIENT_ID, key_filter="^x") == "NULL"


def test_of_the_roles_the_first_that_the_filter_finds_counts() -> None:
    many = RouteRequest(roles=frozenset({"beta-2", "alpha", "beta-1"}))
    assert key(KeyType.ROLE_NAME, many) == "alpha"
    assert key(KeyType.ROLE_NAME, many, "^beta.*") == "beta-1"
    assert key(KeyType.ROLE_NAME, many, "gamma") == "NULL"


@pytest.mark.parametrize(("letters", "is_key"), [(1_024, True), (1_025, False), (10_000_000, False)])
def test_values_that_are_too_long_are_null(letters: int, is_key: bool) -> None:
    value = "a" * letters
    assert key(KeyType.CLIENT_ID, RouteRequest(value)) == (value if is_key else "NULL")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("[::1]", "::1"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("FE80::1%eth0", "fe80::1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("10.0.0.1", "10.0.0.1"),
        ("in-process", "in-process"),
    ],
)
def test_an_address_has_one_form(written: str, expected: str) -> None:
    assert key(KeyType.SOURCE_IP, RouteRequest(source=written)) == expected
