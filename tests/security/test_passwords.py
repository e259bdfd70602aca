"""Stored passwords: what DelosMQ writes, what it reads from Artemis, what it refuses."""

# BROKER-4

import hmac

import pytest

from delosmq.security.passwords import flaw_of_stored, hash_password, unmatched_form, verify_login, verify_password

SALT = b"0123456789abcdef"

# RFC 6070, PBKDF2 HMAC-SHA1 test vector: "password", "salt", 4096 iterations, 20 bytes.
RFC_6070 = "ENC(4096:73616c74:4b007901b765489abead49d926f721d065a429c1)"


def pbkdf2_sha1(password: bytes, salt: bytes, iterations: int, size: int) -> bytes:
    """RFC 2898, 5.2, written out: independent of the function under test."""
    out = b""
    block = 1
    while len(out) < size:
        round_value = hmac.digest(password, salt + block.to_bytes(4, "big"), "sha1")
        total = int.from_bytes(round_value, "big")
        for _ in range(iterations - 1):
            round_value = hmac.digest(password, round_value, "sha1")
            total ^= int.from_bytes(round_value, "big")
        out += total.to_bytes(20, "big")
        block += 1
    return out[:size]


def artemis_masked(password: str) -> str:
    """As `artemis mask --hash` writes it: 1024 iterations, 32 bytes of salt, 64 of hash, capital hexadecimal digits."""
    salt = bytes(range(32))
    return f"ENC(1024:{salt.hex().upper()}:{pbkdf2_sha1(password.encode(), salt, 1024, 64).hex().upper()})"


def test_a_hash_is_argon2id_with_19_mib_and_two_passes() -> None:
    assert hash_password("secret", SALT).startswith("$argon2id$v=19$m=19456,t=2,p=1$")


def test_the_right_password_verifies_and_no_other() -> None:
    stored = hash_password("sécret", SALT)
    assert verify_password(stored, "sécret")
    assert not verify_password(stored, "secret")
    assert not verify_password(stored, "")


def test_a_hash_of_artemis_verifies() -> None:
    assert verify_password(RFC_6070, "password")
    assert not verify_password(RFC_6070, "Password")
    assert verify_password(artemis_masked("grüße"), "grüße")
    assert not verify_password(artemis_masked("grüße"), "gruesse")


def test_half_a_surrogate_pair_never_raises() -> None:
    assert not verify_login(RFC_6070, "\ud800")


@pytest.mark.parametrize("stored", ["$argon2id$", RFC_6070, artemis_masked("other"), ""])
def test_a_login_with_a_wrong_password_fails_whatever_is_stored(stored: str) -> None:
    assert not verify_login(stored, "wrong")


def test_a_login_with_the_right_password_succeeds_in_both_forms() -> None:
    assert verify_login(RFC_6070, "password")
    assert verify_login(hash_password("password", SALT), "password")


def test_nobody_logs_in_as_the_unknown_user() -> None:
    # "nobody" is what the hash stands for that unknown users are compared with.
    assert not verify_login("", "nobody")


@pytest.mark.parametrize(
    ("stored", "flaw"),
    [
        ("secret", "plain text"),
        ("", "plain text"),
        ("ENC(-2f9a0c)", "two-way"),
        ("ENC(0:00:00)", "iterations"),
        ("ENC(99999999999999:00:00)", "iterations"),
        ("ENC(x:00:00)", "ENC(iterations:salt:hash)"),
        ("ENC(1024:zz:00)", "hexadecimal"),
        ("ENC(1024:00:)", "hexadecimal"),
        ("ENC(1024:0:00)", "hexadecimal"),
        ("$argon2id$v=19$m=19456", "complete"),
        ("$argon2id$v=19$m=99999999,t=2,p=1$MDEyMzQ1Njc4OWFiY2RlZg$AAAAAAAAAAAAAAAAAAAAAA", "MiB"),
    ],
)
def test_what_cannot_be_verified_says_why(stored: str, flaw: str) -> None:
    assert flaw in flaw_of_stored(stored)
    assert not verify_password(stored, "secret")


@pytest.mark.parametrize("stored", [RFC_6070, artemis_masked("a"), hash_password("a", SALT)])
def test_what_can_be_verified_has_no_flaw(stored: str) -> None:
    assert flaw_of_stored(stored) == ""


@pytest.mark.parametrize("password", ["", "tea", "x" * 32, "\0" * 32])
def test_a_form_that_no_password_matches_is_a_whole_hash_and_matches_none(password: str) -> None:
    stored = unmatched_form(b"s" * 16, b"x" * 32)
    assert flaw_of_stored(stored) == ""
    assert not verify_login(stored, password)
