"""Wildcard matches of address-settings, security-settings and addresses that stand for others.

A name is words between delimiters (``.``); in a match one word may be the single word (``*``), which stands for exactly
one word, or any words (``#``), which stands for any number of them, none included. `WildcardSyntax` changes the three
letters.

Matches of settings take two forms more, which are plain letters in addresses: ``a#`` is ``a.#``, and ``*`` within a
word stands for at least one letter of it.

Source: Artemis manual, "Understanding the Wildcard Syntax" and "Address Settings"; its classes Match and
HierarchicalObjectRepository.
"""

from typing import Final

from delosmq.model.declared.address import AddressSettings
from delosmq.model.names import QUEUE_MARK
from delosmq.model.settings import AddressMatch, SecurityMatch, WildcardSyntax

DEFAULT_SYNTAX: Final = WildcardSyntax()

CACHE_LIMIT: Final = 10_000


class WildcardPattern:
    """One match, made ready for many names.

    A name is matched in one pass over its words, whatever the wildcards: bit k of `reached` says that the words so far
    can be what the first k words of the pattern (any-words not counted) stand for. A hostile name costs no more than
    its length.

    Args:
        is_setting: the match is that of a setting, and may have wildcards within words.

    Attributes:
        text: the match as it was written.
        is_literal: it has no wildcards and stands for itself only.
    """

    def __init__(self, text: str, syntax: WildcardSyntax = DEFAULT_SYNTAX, *, is_setting: bool = False) -> None:
        self.text = text
        self.is_literal = not (_has_wildcard(text, syntax) if is_setting else is_wildcard(text, syntax))
        self._delimiter = syntax.delimiter
        self._any_words: int = 0
        self._single_words: int = 0
        self._literal_words: dict[str, int] = {}
        self._partial_words: list[tuple[list[str], int]] = []
        place = 1
        for word in (with_any_words_apart(text, syntax) if is_setting else text).split(syntax.delimiter):
            if word == syntax.any_words:
                self._any_words |= place
                continue
            if word == syntax.single_word:
                self._single_words |= place
            elif is_setting and syntax.single_word in word:
                self._partial_words.append((word.split(syntax.single_word), place))
            else:
                self._literal_words[word] = self._literal_words.get(word, 0) | place
            place <<= 1
        self._end: int = place

    def matches(self, name: str) -> bool:
        """Whether the address ``name`` is one of those that the pattern stands for."""
        if self.is_literal:
            return name == self.text
        if self._end == 1:
            return True
        reached = 1
        for word in name.split(self._delimiter):
            fits = self._single_words | self._literal_words.get(word, 0)
            for parts, place in self._partial_words:
                if _fits(parts, word):
                    fits |= place
            reached = ((reached & fits) << 1) | (reached & self._any_words)
            if reached == 0:
                return False
        return (reached & self._end) != 0


def matches(pattern: str, name: str, syntax: WildcardSyntax = DEFAULT_SYNTAX) -> bool:
    """Whether the address ``name`` is one of those that ``pattern`` stands for."""
    return WildcardPattern(pattern, syntax).matches(name)


def is_wildcard(name: str, syntax: WildcardSyntax = DEFAULT_SYNTAX) -> bool:
    """Whether a word of ``name`` is a wildcard; whether such names route is `WildcardSyntax.enabled`."""
    if syntax.any_words not in name and syntax.single_word not in name:
        return False
    words = name.split(syntax.delimiter)
    return syntax.any_words in words or syntax.single_word in words


def with_any_words_apart(match: str, syntax: WildcardSyntax = DEFAULT_SYNTAX) -> str:
    """A match of settings with its any words as a word of its own: ``a.#`` for ``a#``."""
    before = match[: -len(syntax.any_words)]
    if not match.endswith(syntax.any_words) or not before or before.endswith(syntax.delimiter):
        return match
    return before + syntax.delimiter + syntax.any_words


def _has_wildcard(match: str, syntax: WildcardSyntax) -> bool:
    return syntax.any_words in match or syntax.single_word in match


def _fits(parts: list[str], word: str) -> bool:
    """Whether ``word`` is ``parts`` with at least one letter between each two. The first place of each is enough."""
    if not word.startswith(parts[0]):
        return False
    end = len(parts[0])
    for part in parts[1:-1]:
        place = word.find(part, end + 1)
        if place < 0:
            return False
        end = place + len(part)
    return end < len(word) - len(parts[-1]) and word.endswith(parts[-1])


def specificity(pattern: str, syntax: WildcardSyntax = DEFAULT_SYNTAX) -> tuple[int, int, list[int], int, str]:
    """A sort key: of two matches of settings that match the same name, the more specific one has the larger key.

    A name without wildcards beats single words, which beat any words. Of two patterns with any words the longer one
    wins, of two with single words only the one with the first plain word where the other has a wildcard, then the
    shorter one.

    Source: Artemis, HierarchicalObjectRepository. What it leaves to chance (equal length) is decided word by word.
    """
    words = pattern.split(syntax.delimiter)
    plainness = [0 if word == syntax.any_words else 1 if word == syntax.single_word else 2 for word in words]
    if syntax.any_words in pattern:
        return (0, len(pattern), plainness, 0, pattern)
    if syntax.single_word in pattern:
        return (1, 0, plainness, -len(pattern), pattern)
    return (2, 0, plainness, 0, pattern)


class AddressSettingsTable:
    """Resolves the settings of an address: less specific matches fill what more specific ones leave unset."""

    def __init__(self, entries: tuple[AddressMatch, ...], syntax: WildcardSyntax = DEFAULT_SYNTAX) -> None:
        self.entries = entries
        self._literal: dict[str, dict[str, object]] = {}
        self._patterns: list[WildcardPattern] = []
        self._fields: list[dict[str, object]] = []
        for entry in sorted(entries, key=lambda entry: specificity(entry.match, syntax)):
            pattern = WildcardPattern(entry.match, syntax, is_setting=True)
            if pattern.is_literal:
                self._literal.setdefault(entry.match, {}).update(entry.fields)
            else:
                self._patterns.append(pattern)
                self._fields.append(entry.fields)
        self._resolved: dict[str, AddressSettings] = {}
        self._shared: dict[int, AddressSettings] = {}

    def resolve(self, address: str) -> AddressSettings:
        """The settings in force for ``address``; cached, and the cache is bounded.

        Addresses that the same matches apply to share one object.
        """
        found = self._resolved.get(address)
        if found is None:
            if len(self._resolved) >= CACHE_LIMIT:
                self._resolved.clear()
                self._shared.clear()
            found = self._make(address)
            self._resolved[address] = found
        return found

    def _make(self, address: str) -> AddressSettings:
        applying = 0
        fields: dict[str, object] = {}
        for i, pattern in enumerate(self._patterns):
            if pattern.matches(address):
                applying |= 1 << i
                fields.update(self._fields[i])
        own = self._literal.get(address)
        if own is not None:
            fields.update(own)
            return AddressSettings(**fields)  # type: ignore[arg-type]
        found = self._shared.get(applying)
        if found is None:
            found = self._shared[applying] = AddressSettings(**fields)  # type: ignore[arg-type]
        return found


class _QueueMatch:
    """A match ``address::queue``."""

    def __init__(self, entry: SecurityMatch, syntax: WildcardSyntax) -> None:
        address, _, queue = entry.match.partition(QUEUE_MARK)
        self.entry = entry
        self.address: WildcardPattern = WildcardPattern(address, syntax, is_setting=True)
        self.queue: WildcardPattern = WildcardPattern(queue, syntax, is_setting=True)


EVERYWHERE: Final = "everywhere"
SOMEWHERE: Final = "somewhere"
NOWHERE: Final = "nowhere"


class SecurityTable:
    """Finds the roles a permission needs: the most specific match decides alone, nothing is inherited.

    A match ``address::queue`` says who may give queues of an address such names, and nothing else; both parts may have
    wildcards. Artemis (SecurityStoreImpl.check) knows such matches without wildcards, for all permissions.
    """

    def __init__(self, entries: tuple[SecurityMatch, ...], syntax: WildcardSyntax = DEFAULT_SYNTAX) -> None:
        self._literal: dict[str, SecurityMatch] = {}
        self._patterns: list[WildcardPattern] = []
        self._wild: list[SecurityMatch] = []
        self._queues: list[_QueueMatch] = []
        self._any_words: str = syntax.any_words
        for entry in sorted(entries, key=lambda entry: specificity(entry.match, syntax), reverse=True):
            if QUEUE_MARK in entry.match:
                self._queues.append(_QueueMatch(entry, syntax))
                continue
            pattern = WildcardPattern(entry.match, syntax, is_setting=True)
            if pattern.is_literal:
                self._literal.setdefault(entry.match, entry)
            else:
                self._patterns.append(pattern)
                self._wild.append(entry)

    def roles_of_queue(self, address: str, queue: str, permission: str) -> frozenset[str] | None:
        """Roles that have ``permission`` by a match ``address::queue``; None when no such match names it."""
        for match in self._queues:
            roles = match.entry.permissions.get(permission)
            if roles is not None and match.address.matches(address) and match.queue.matches(queue):
                return roles
        return None

    def extent(self, roles: frozenset[str], permission: str) -> str:
        """Whether one of ``roles`` holds ``permission`` on addresses `EVERYWHERE`, `SOMEWHERE` or `NOWHERE`: matches
        ``address::queue`` take none away."""
        entries = [*self._literal.values(), *self._wild]
        granting = [entry for entry in entries if not entry.permissions.get(permission, frozenset()).isdisjoint(roles)]
        if not granting:
            return NOWHERE
        covers_all = any(entry.match == self._any_words for entry in granting)
        return EVERYWHERE if covers_all and len(granting) == len(entries) else SOMEWHERE

    def roles(self, address: str, permission: str) -> frozenset[str]:
        """Roles that have ``permission`` (as named in broker.xml) on ``address``."""
        entry = self._literal.get(address)
        if entry is not None:
            return entry.permissions.get(permission, frozenset())
        for i, pattern in enumerate(self._patterns):
            if pattern.matches(address):
                return self._wild[i].permissions.get(permission, frozenset())
        return frozenset()
