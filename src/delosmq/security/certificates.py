"""Users that certificates of TLS clients name.

Source: Artemis, TextFileCertificateLoginModule, CertificateLoginModule and ReloadableProperties; the text of a
distinguished name is that of Java's X500Name (AVA.toKeywordValueString).
"""

import re
from collections.abc import Mapping
from typing import Final

from delosmq.model.declared.java_regex import JavaRegex

MOST_LETTERS: Final = 1_024
"""A distinguished name with more is that of no user: expressions are tried on it."""

_KEYWORDS: Final = {
    "commonName": "CN",
    "countryName": "C",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "title": "T",
    "domainComponent": "DC",
    "dnQualifier": "DNQ",
    "surname": "SURNAME",
    "givenName": "GIVENNAME",
    "initials": "INITIALS",
    "generationQualifier": "GENERATION",
    "emailAddress": "EMAILADDRESS",
    "userId": "UID",
    "serialNumber": "SERIALNUMBER",
}
"""Java's word for what OpenSSL calls an attribute."""
_DOTTED: Final = re.compile(r"[0-9]+(\.[0-9]+)+")
_QUOTED: Final = re.compile(r'[,+=\n<>#;\\"]|^ |[ \n]{2}| $')

Subject = tuple[tuple[tuple[str, str], ...], ...]
"""As the module ssl gives it: relative names in the order of the certificate, each of attributes with their values."""


def distinguished_name(subject: Subject) -> str:
    """The text of a subject as Java writes it, such as ``CN=alice, O=Example, C=DE``: the last relative name first."""
    return ", ".join([" + ".join([_attribute(name, value) for name, value in part]) for part in reversed(subject)])


def _attribute(name: str, value: str) -> str:
    keyword = _KEYWORDS.get(name) or (f"OID.{name}" if _DOTTED.fullmatch(name) else name)
    if _QUOTED.search(value):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'{keyword}="{escaped}"'
    return f"{keyword}={value}"


class CertificateUsers:
    """Which user a certificate names, and the roles of these users.

    Args:
        names: distinguished name -> user.
        patterns: expressions with their users, in their order; each has to take a name whole.
        roles: user -> roles.
    """

    def __init__(
        self,
        names: Mapping[str, str],
        patterns: tuple[tuple[JavaRegex, str], ...],
        roles: Mapping[str, frozenset[str]],
    ) -> None:
        self._names: dict[str, str] = dict(names)
        self._patterns: tuple[tuple[JavaRegex, str], ...] = patterns
        self.roles: dict[str, frozenset[str]] = dict(roles)

    def user_of(self, name: str) -> str:
        """The user whose certificate has this distinguished name; "" for none."""
        if len(name) > MOST_LETTERS:
            return ""
        user = self._names.get(name)
        if user is not None:
            return user
        for pattern, known in self._patterns:
            if pattern.fullmatch(name):
                return known
        return ""

    def differs_from(self, other: "CertificateUsers") -> bool:
        """Whether the files say something else by now."""
        mine = (self._names, self._patterns, self.roles)
        return mine != (other._names, other._patterns, other.roles)

    def users(self) -> frozenset[str]:
        return frozenset(self._names.values()) | frozenset([user for _, user in self._patterns])
