"""Wildcard matches of address-settings and security-settings.

``.`` separates words, ``*`` stands for exactly one word, ``#`` for any number of words (none included).

Source: Artemis manual, "Understanding the Wildcard Syntax" and "Address Settings".
"""

from typing import Final

from delosmq.model.settings import AddressMatch, AddressSettings, SecurityMatch

SEPARATOR: Final = "."
ONE_WORD: Final = "*"
ANY_WORDS: Final = "#"


def matches(pattern: str, name: str) -> bool:
    """Whether the address ``name`` is one of those that ``pattern`` stands for."""
    return _match_words(pattern.split(SEPARATOR), name.split(SEPARATOR))


def _match_words(pattern: list[str], words: list[str]) -> bool:
    # reachable[i]: the pattern read so far can stand for the first i words. Linear in pattern x words, never
    # exponential: a hostile name can't make it run long.
    reachable = [True] + [False] * len(words)
    for part in pattern:
        following = [False] * (len(words) + 1)
        if part == ANY_WORDS:
            seen = False
            for i in range(len(words) + 1):
                seen = seen or reachable[i]
                following[i] = seen
        else:
            for i, word in enumerate(words):
                if reachable[i] and part in (ONE_WORD, word):
                    following[i + 1] = True
        reachable = following
    return reachable[len(words)]


def specificity(pattern: str) -> list[int]:
    """A sort key: of two patterns that match the same name, the more specific one has the larger key."""
    # Word by word: a plain word beats "*", which beats "#"; a longer pattern beats its own prefix.
    return [0 if part == ANY_WORDS else 1 if part == ONE_WORD else 2 for part in pattern.split(SEPARATOR)]


class AddressSettingsTable:
    """Resolves the settings of an address: less specific matches fill what more specific ones leave unset."""

    def __init__(self, entries: tuple[AddressMatch, ...]) -> None:
        self._entries = sorted(entries, key=lambda entry: specificity(entry.match))
        self._resolved: dict[str, AddressSettings] = {}

    def resolve(self, address: str) -> AddressSettings:
        """The settings in force for ``address``; cached, and the cache is bounded."""
        found = self._resolved.get(address)
        if found is None:
            fields: dict[str, object] = {}
            for entry in self._entries:
                if matches(entry.match, address):
                    fields.update(entry.fields)
            found = AddressSettings(**fields)  # type: ignore[arg-type]
            if len(self._resolved) >= CACHE_LIMIT:
                self._resolved.clear()
            self._resolved[address] = found
        return found


class SecurityTable:
    """Finds the roles a permission needs: the most specific match decides alone, nothing is inherited."""

    def __init__(self, entries: tuple[SecurityMatch, ...]) -> None:
        self._entries = sorted(entries, key=lambda entry: specificity(entry.match), reverse=True)

    def roles(self, address: str, permission: str) -> frozenset[str]:
        """Roles that hold ``permission`` (as named in broker.xml) on ``address``; empty means nobody."""
        for entry in self._entries:
            if matches(entry.match, address):
                return entry.permissions.get(permission, frozenset())
        return frozenset()


CACHE_LIMIT: Final = 10_000
