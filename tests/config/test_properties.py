"""Java properties files, users and roles."""

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delosmq.config.properties import (
    Entry,
    load_certificate_users,
    load_roles,
    load_users,
    read_properties,
    write_properties,
)
from delosmq.model.errors import ConfigurationError
from delosmq.security.certificates import CertificateUsers

MASKED = "ENC(1024:00:00)"


def read(path: Path, content: str) -> list[Entry]:
    path.write_bytes(content.encode())
    entries, findings = read_properties(path)
    findings.raise_if_any()
    return entries


def test_separators_comments_and_blanks(tmp_path: Path) -> None:
    content = "# c\n! c\n\n  a = 1 \nb:2\r\nc 3\rd\ne\\ f==\\=g\n"
    assert read(tmp_path / "p", content) == [
        Entry("a", "1", 4),
        Entry("b", "2", 5),
        Entry("c", "3", 6),
        Entry("d", "", 7),
        Entry("e f", "==g", 8),
    ]


def test_escapes_and_continued_lines(tmp_path: Path) -> None:
    content = "a = \\u00e9\\t\\x\\\\\nb = 1,\\\n   2,\\\n   3\nc = 4"
    assert read(tmp_path / "p", content) == [Entry("a", "é\tx\\", 1), Entry("b", "1,2,3", 2), Entry("c", "4", 5)]


def test_a_pair_of_escapes_is_one_letter(tmp_path: Path) -> None:
    assert read(tmp_path / "p", "a = \\ud83d\\ude00")[0].value == "😀"


@pytest.mark.parametrize(
    ("content", "line", "sentence"),
    [
        ("a = 1\nb = \\u12", 2, "four hexadecimal digits"),
        ("a = \\ud83d", 1, "write both halves"),
        ("\n= 1", 2, "write name = value"),
        ("a = é", 1, "write it as \\uXXXX"),
        ("a = 1\nb = 2\na = 3", 3, "'a' is already in line 1; keep one of the two"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, content: str, line: int, sentence: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(tmp_path / "users", content)
    assert f"/users:{line}: " in caught.value.message
    assert sentence in caught.value.message


@given(
    entries=st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1), st.text(st.characters(codec="utf-8")))
)
def test_what_is_written_is_read_again(tmp_path_factory: pytest.TempPathFactory, entries: dict[str, str]) -> None:
    path = tmp_path_factory.getbasetemp() / "round-trip.properties"
    # Blanks at the end of a value are never meant, so they don't survive.
    wanted = [Entry(key, value.rstrip(" \t\f")) for key, value in entries.items()]
    write_properties(path, wanted, "comment\n\nof three lines")
    assert [Entry(key, value) for key, value, _ in read_properties(path)[0]] == wanted


def test_a_written_file_is_its_owners_alone_and_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.write_text("old = 1")
    path.chmod(0o644)
    write_properties(path, [Entry("a", "1")], "")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_that_fails_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.mkdir()
    with pytest.raises(OSError, match="users"):
        write_properties(path, [Entry("a", "1")], "")
    assert list(tmp_path.iterdir()) == [path]


def test_users_are_read(tmp_path: Path) -> None:
    (tmp_path / "users").write_text(f"alice = {MASKED}\n")
    assert load_users(tmp_path / "users") == {"alice": MASKED}


def test_a_plain_password_is_refused_without_being_shown(tmp_path: Path) -> None:
    (tmp_path / "users").write_text(f"alice = {MASKED}\nbob = hunter2\n")
    with pytest.raises(ConfigurationError) as caught:
        load_users(tmp_path / "users")
    assert caught.value.code == "DMQ4020"
    assert "/users:2: the password of 'bob' is plain text" in caught.value.message
    assert "`delosmq mask`" in caught.value.message
    assert "hunter2" not in str(caught.value)


def test_roles_are_turned_around(tmp_path: Path) -> None:
    (tmp_path / "roles").write_text("amq = alice, bob\nguest = bob\nempty =\n")
    assert load_roles(tmp_path / "roles") == {"alice": {"amq"}, "bob": {"amq", "guest"}}


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"DMQ4001: .*/users: can't be read: No such file.*; make it, if"):
        load_users(tmp_path / "users")


def certificates(directory: Path, users: str, roles: str = "") -> CertificateUsers | None:
    (directory / "users").write_text(users)
    (directory / "roles").write_text(roles)
    return load_certificate_users(directory / "users", directory / "roles")


def test_certificates_name_no_users_without_a_file(tmp_path: Path) -> None:
    assert load_certificate_users(tmp_path / "users", tmp_path / "roles") is None


def test_users_of_certificates_are_read_as_artemis_writes_them(tmp_path: Path) -> None:
    found = certificates(tmp_path, "alice = CN=a\\, b, O=x\nsensors = /CN=s\\\\d+, O=x/\n", "amq = alice, sensors\n")
    assert found is not None
    assert (found.user_of("CN=a, b, O=x"), found.user_of("CN=s12, O=x"), found.user_of("CN=s, O=x")) == (
        "alice",
        "sensors",
        "",
    )
    assert found.roles == {"alice": {"amq"}, "sensors": {"amq"}}


@pytest.mark.parametrize(
    ("users", "said"),
    [
        ("a = CN=x\nb = CN=x\n", "/users:2: 'CN=x' is already that of 'a'; keep one"),
        ("a = CN=x\nb = /(/\n", "/users:2: '/(/' of 'b' must be a regular expression of Java: a ( that is not closed"),
        ("b = /(a++)/\n", "/users:1: '/(a++)/' of 'b' must be a regular expression without a possessive quantifier"),
    ],
)
def test_a_mistake_in_the_users_of_certificates_is_named_with_its_line(tmp_path: Path, users: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        certificates(tmp_path, users)
    assert said in caught.value.message
