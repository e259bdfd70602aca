"""Users that certificates name: the text of a distinguished name as Java has it, and who has it."""

# BROKER-4, ROUTE-1

import pytest

from delosmq.model.declared.java_regex import JavaRegex
from delosmq.model.settings import SecurityMatch
from delosmq.security.access import AccessControl, Login
from delosmq.security.certificates import MOST_LETTERS, CertificateUsers, Subject, distinguished_name


@pytest.mark.parametrize(
    ("subject", "text"),
    [
        ((), ""),
        (((("countryName", "DE"),), (("organizationName", "Example"),), (("commonName", "alice"),)),
         "CN=alice, O=Example, C=DE"),
        (((("domainComponent", "org"),), (("userId", "u"),), (("emailAddress", "a@b"),)),
         "EMAILADDRESS=a@b, UID=u, DC=org"),
        (((("commonName", "a"), ("organizationalUnitName", "b")),), "CN=a + OU=b"),
        (((("commonName", 'a, "b" \\c'),),), r'CN="a, \"b\" \\c"'),
        (((("commonName", " a"),),), 'CN=" a"'),
        (((("commonName", "a "),),), 'CN="a "'),
        (((("commonName", "a  b"),),), 'CN="a  b"'),
        (((("commonName", "a b"),),), "CN=a b"),
        (((("1.2.3.4", "x"),), (("stateOrProvinceName", "s"),)), "ST=s, OID.1.2.3.4=x"),
    ],
)  # fmt: skip
def test_a_distinguished_name_is_written_as_in_java(subject: Subject, text: str) -> None:
    assert distinguished_name(subject) == text


def test_values_can_not_pretend_to_be_further_attributes() -> None:
    forged = distinguished_name(((("commonName", "alice, O=Example"),),))
    assert forged != distinguished_name(((("organizationName", "Example"),), (("commonName", "alice"),)))


KNOWN = CertificateUsers(
    {"CN=alice": "alice"},
    ((JavaRegex("CN=s[0-9]+"), "sensors"), (JavaRegex("CN=.*"), "rest")),
    {"alice": frozenset({"amq"}), "sensors": frozenset({"guests"})},
)


@pytest.mark.parametrize(
    ("name", "user"),
    [
        ("CN=alice", "alice"),
        ("CN=s1", "sensors"),
        ("CN=s1x", "rest"),
        ("cn=alice", ""),
        ("", ""),
        ("CN=" + "x" * MOST_LETTERS, ""),
    ],
)
def test_names_come_before_expressions_which_take_a_name_whole(name: str, user: str) -> None:
    assert KNOWN.user_of(name) == user


def access(known: CertificateUsers | None = KNOWN) -> AccessControl:
    return AccessControl({}, {}, (SecurityMatch("#", {}),), cache_key=bytes(32), certificates=known)


def test_a_certificate_decides_where_certificates_name_users() -> None:
    attempt = access().attempt_by("CN=alice")
    assert attempt is not None
    assert attempt.login == Login("alice", frozenset({"amq"}), "CN=alice")
    unknown = access().attempt_by("O=x")
    assert unknown is not None
    assert unknown.login is None
    assert access().still_right(unknown) is None


def test_a_password_decides_elsewhere() -> None:
    assert access().attempt_by("") is None
    assert access(None).attempt_by("CN=alice") is None


def test_after_a_reload_a_login_has_the_roles_of_now_or_none() -> None:
    one = access()
    attempt = one.attempt_by("CN=alice")
    assert attempt is not None
    assert attempt.login is not None
    one.reload({}, {}, (), CertificateUsers({"CN=alice": "alice"}, (), {"alice": frozenset({"new"})}))
    assert one.renewed(attempt.login).roles == {"new"}
    assert one.still_right(attempt) == Login("alice", frozenset({"new"}), "CN=alice")
    for gone in (None, CertificateUsers({"CN=alice": "other"}, (), {"alice": frozenset({"new"})})):
        one.reload({"alice": "stored"}, {"alice": frozenset({"amq"})}, (), gone)
        assert one.renewed(attempt.login).roles == frozenset()
        assert one.still_right(attempt) is None
