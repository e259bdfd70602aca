"""Logins, their cache, and permissions by the most specific match."""

# BROKER-4

import pytest

from delosmq.model.errors import PermissionDeniedError
from delosmq.model.settings import SecurityMatch, WildcardSyntax
from delosmq.security.access import CONSUME, SEND, AccessControl, Login

AMQ = frozenset({"amq"})
GUEST = frozenset({"guest"})

# An actual hash is not needed: what is stored is only compared with itself here.
USERS = {"alice": "stored-1", "bob": "stored-2"}
ROLES = {"alice": AMQ}
SETTINGS = (
    SecurityMatch("#", {SEND: AMQ, CONSUME: AMQ}),
    SecurityMatch("news.#", {SEND: AMQ, CONSUME: AMQ | GUEST}),
    SecurityMatch("news.*.secret", {SEND: AMQ}),
)


def make_access(key: bytes = b"k" * 32) -> AccessControl:
    return AccessControl(dict(USERS), dict(ROLES), SETTINGS, cache_key=key)


def log_in(access: AccessControl, user: str, password: str) -> Login:
    login = access.finish(access.attempt(user, password), True)
    assert login is not None
    return login


@pytest.mark.parametrize(
    ("address", "allowed"),
    [("news", True), ("news.eu.sport", True), ("orders", False), ("news.eu.secret", False), ("newsletter", False)],
)
def test_the_most_specific_match_decides_alone(address: str, allowed: bool) -> None:
    assert make_access().check(GUEST, address, CONSUME) is allowed


def test_a_permission_that_the_match_leaves_out_is_held_by_nobody() -> None:
    assert not make_access().check(AMQ, "news.eu.secret", CONSUME)


def test_without_security_settings_nobody_may_do_anything() -> None:
    assert not AccessControl(USERS, ROLES, (), cache_key=b"k").check(AMQ, "orders", SEND)


def test_a_refusal_names_user_permission_and_address() -> None:
    access = make_access()
    login = log_in(access, "bob", "secret")
    with pytest.raises(PermissionDeniedError, match=r"DMQ1001: user 'bob' lacks the permission 'send' on 'orders'"):
        access.require(login, "orders", SEND)


def test_a_holder_is_let_through() -> None:
    access = make_access()
    access.require(log_in(access, "alice", "secret"), "orders", SEND)


def test_a_verified_login_is_remembered_with_its_password_only() -> None:
    access = make_access()
    login = log_in(access, "alice", "secret")
    assert login == Login("alice", AMQ)
    assert access.attempt("alice", "secret").login is login
    assert access.attempt("alice", "Secret").login is None
    assert access.attempt("bob", "secret").login is None


def test_where_the_user_ends_and_the_password_begins_matters() -> None:
    access = AccessControl({"a": "s", "ab": "s"}, {}, (), cache_key=b"k")
    log_in(access, "a", "bc")
    assert access.attempt("ab", "c").login is None


def test_a_failed_login_is_none_and_not_remembered() -> None:
    access = make_access()
    assert access.finish(access.attempt("alice", "wrong"), False) is None
    assert access.attempt("alice", "wrong").login is None


def test_an_unknown_user_never_gets_in() -> None:
    access = make_access()
    attempt = access.attempt("mallory", "secret")
    assert attempt.stored == ""
    assert access.finish(attempt, True) is None


def test_a_reload_forgets_logins_and_permissions() -> None:
    access = make_access()
    log_in(access, "alice", "secret")
    assert access.check(AMQ, "orders", SEND)
    access.reload(USERS, ROLES, ())
    assert access.attempt("alice", "secret").login is None
    assert not access.check(AMQ, "orders", SEND)


def test_what_is_vouched_for_is_verified_with_its_password_only_and_until_a_reload() -> None:
    access = AccessControl({"a": "s"}, {"a": frozenset({"r"})}, (), cache_key=b"k")
    access.trust("a", "tea")
    assert access.attempt("a", "tea").login == Login("a", frozenset({"r"}))
    assert access.attempt("a", "coffee").login is None
    assert access.attempt("b", "tea").login is None
    access.reload({"a": "s"}, {"a": frozenset({"r"})}, ())
    assert access.attempt("a", "tea").login is None


def test_a_password_changed_while_the_old_one_is_verified_refuses_the_old_one() -> None:
    access = make_access()
    attempt = access.attempt("alice", "old")
    access.reload({"alice": "stored-new"}, ROLES, SETTINGS)
    assert access.finish(attempt, True) is None


def test_the_cache_key_hides_what_is_remembered() -> None:
    one, other = make_access(b"1" * 32), make_access(b"2" * 32)
    assert one.attempt("alice", "secret").cache_key != other.attempt("alice", "secret").cache_key


def test_the_caches_are_bounded_and_stay_right() -> None:
    access = make_access()
    for number in range(2_500):
        log_in(access, "alice", f"password-{number}")
        assert access.check(GUEST, f"news.{number}", CONSUME)
    assert access.attempt("alice", "password-2499").login is not None
    assert access.attempt("alice", "password-0").login is None


def test_permissions_obey_the_letters_of_the_configuration() -> None:
    syntax = WildcardSyntax(delimiter="/", any_words="@", single_word="+")
    settings = (SecurityMatch("news/@", {SEND: AMQ}),)
    access = AccessControl({}, {}, settings, cache_key=b"k", wildcards=syntax)
    assert access.check(AMQ, "news/uk/sport", SEND)
    assert not access.check(AMQ, "news.uk.sport", SEND)
