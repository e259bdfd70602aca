"""Wildcards: what a match stands for, which one counts more, and what that means for settings and permissions."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delosmq.engine.addresses.address_limits import AddressLimitError, AddressLimits
from delosmq.model.settings import AddressMatch, AddressSettings, SecurityMatch, WildcardSyntax
from delosmq.model.wildcard import (
    AddressSettingsTable,
    SecurityTable,
    WildcardPattern,
    is_wildcard,
    matches,
    specificity,
)

SLASHES = WildcardSyntax(delimiter="/", any_words=">", single_word="+")

# Few words, so that patterns and names meet; the empty one for a delimiter at an end or beside another.
WORDS = st.sampled_from(["a", "b", "ab", "", "$", "(", "\\"])
NAMES = st.lists(WORDS, min_size=1, max_size=8)
PATTERNS = st.lists(st.one_of(WORDS, st.sampled_from(["*", "#"])), min_size=1, max_size=8)
SYNTAXES = st.sampled_from([WildcardSyntax(), SLASHES])


def written(words: list[str], syntax: WildcardSyntax) -> str:
    letters = {"*": syntax.single_word, "#": syntax.any_words}
    return syntax.delimiter.join(letters.get(word, word) for word in words)


def as_regex(words: list[str]) -> str:
    # Each word of the name is followed by a comma there.
    parts = {"*": "[^,]*,", "#": "(?:[^,]*,)*"}
    return "".join(parts.get(word, re.escape(word) + ",") for word in words)


@given(PATTERNS, NAMES, SYNTAXES)
def test_a_pattern_stands_for_what_the_same_regular_expression_takes(
    pattern: list[str], name: list[str], syntax: WildcardSyntax
) -> None:
    expected = re.fullmatch(as_regex(pattern), "".join(f"{word}," for word in name)) is not None
    assert matches(written(pattern, syntax), written(name, syntax), syntax) is expected


@given(NAMES, SYNTAXES)
def test_a_name_without_wildcards_stands_for_itself(name: list[str], syntax: WildcardSyntax) -> None:
    text = written(name, syntax)
    assert not is_wildcard(text, syntax)
    assert WildcardPattern(text, syntax).is_literal
    assert matches(text, text, syntax)
    assert not matches(text, text + syntax.delimiter, syntax)


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("news.#", "news", True),
        ("news.#", "news.uk.sport", True),
        ("news.#", "newsy", False),
        ("news.*", "news", False),
        ("news.*", "news.uk", True),
        ("news.*", "news.uk.sport", False),
        ("news.*.sport", "news.uk.sport", True),
        ("#.sport", "news.uk.sport", True),
        ("#.uk.#.sport", "news.uk.uk.sport.sport", True),
        ("*.#.*", "a", False),
        ("*.#.*", "a.b", True),
        ("#", "", True),
        ("#.#", "a", True),
    ],
)
def test_examples(pattern: str, name: str, expected: bool) -> None:
    assert matches(pattern, name) is expected


def test_the_default_letters_are_plain_in_another_syntax() -> None:
    assert not is_wildcard("a.*.#", SLASHES)
    assert matches("a/+", "a/x.y", SLASHES)
    assert not matches("a.*", "a.b", SLASHES)


@pytest.mark.parametrize("word", ["a*", "*a", "a#", "**", "##", "*#"])
def test_wildcards_are_whole_words(word: str) -> None:
    assert not is_wildcard(f"x.{word}")
    assert not matches(word, "a")


# Words of a match as Artemis takes them: wildcards may be within, and any words stand at the end only.
PARTIAL_WORDS = st.text("ab*", min_size=1, max_size=5)
FULL_WORDS = st.text("ab", min_size=1, max_size=5)


def as_artemis_reads_it(match: str) -> str:
    if match == "#":
        return ".*"
    return re.escape(match.replace(".#", "#")).replace(r"\*", "[^.]+").replace(r"\#", r"(\..+)*")


@given(st.lists(PARTIAL_WORDS, max_size=4), st.sampled_from(["", "#", ".#"]), st.lists(FULL_WORDS, min_size=1))
def test_a_match_of_settings_stands_for_what_artemis_takes(words: list[str], end: str, name: list[str]) -> None:
    match = (".".join(words) + end).removeprefix("." * (not words)) or "#"
    expected = re.fullmatch(as_artemis_reads_it(match), ".".join(name)) is not None
    table = SecurityTable((SecurityMatch(match, {"send": frozenset({"a"})}),))
    assert bool(table.roles(".".join(name), "send")) is expected


def test_any_words_may_follow_without_a_delimiter_in_matches_of_settings() -> None:
    # Every broker.xml that `artemis create` wrote until 2.42 has this match.
    entries = (AddressMatch("#", {"expiry_delay": 1}), AddressMatch("activemq.management#", {"expiry_delay": 2}))
    table = AddressSettingsTable(entries)
    names = ["activemq.management", "activemq.management.x.y", "activemq.managements", "activemq"]
    assert [table.resolve(name).expiry_delay for name in names] == [2, 2, 1, 1]
    limits = AddressLimits((AddressMatch("a#", {"max_addresses": 1}),), WildcardSyntax())
    limits.in_force = True
    limits.count("a.b", 1)
    limits.check("ab")
    with pytest.raises(AddressLimitError):
        limits.check("a.c")


def test_the_order_of_matches_with_wildcards_within_words() -> None:
    # Source: Artemis, HierarchicalObjectRepository.MatchComparator; the shorter of two with single words comes first.
    ordered = ["ab.c", "a*.c", "ab*.c", "a*.*", "*.*", "abc.#", "ab.#", "ab#", "a*#", "#"]
    assert sorted(set(ordered), key=specificity, reverse=True) == ordered


def test_a_hostile_name_of_one_word_is_read_once() -> None:
    entries = (SecurityMatch("a*" * 200 + "b", {"send": frozenset({"a"})}),)
    table = SecurityTable(entries)
    assert not table.roles("a" * 100_000, "send")
    assert table.roles("a" * 100_000 + "b", "send")


def test_a_hostile_name_is_read_once() -> None:
    # Trying every way to split it would take longer than anybody waits; so would a table of words by words.
    pattern = WildcardPattern(".".join(["#", "a", "*"] * 200) + ".b")
    name = ".".join(["a"] * 100_000)
    assert not pattern.matches(name)
    assert pattern.matches(name + ".b")


def test_the_order_of_specificity() -> None:
    # Source: Artemis, HierarchicalObjectRepository; equal lengths word by word.
    ordered = [
        "a.b.c",
        "a.b.*",
        "a.*.c",
        "a.*.*",
        "*.b.c",
        "*.b.*",
        "*.*.*",
        "a.b.c.#",
        "a.b.#",
        "#.b.c",
        "a.#",
        "*.#",
        "#",
    ]
    assert sorted(set(ordered), key=specificity, reverse=True) == ordered


@given(st.lists(PATTERNS, max_size=6), NAMES, SYNTAXES)
def test_fields_merge_one_by_one_in_the_order_of_specificity(
    patterns: list[list[str]], name: list[str], syntax: WildcardSyntax
) -> None:
    texts = list(dict.fromkeys(written(pattern, syntax) for pattern in patterns))
    # Every entry sets one field of its own and one that all set.
    own = ["max_delivery_attempts", "redelivery_delay", "default_ring_size", "expiry_delay", "id_cache_size"]
    entries = tuple(
        AddressMatch(text, {own[i % 5]: 100 + i, "default_group_buckets": i}) for i, text in enumerate(texts)
    )
    expected: dict[str, object] = {}
    for text in sorted(texts, key=lambda text: specificity(text, syntax)):
        if matches(text, written(name, syntax), syntax):
            expected.update(entries[texts.index(text)].fields)
    table = AddressSettingsTable(entries, syntax)
    for _ in range(2):
        assert table.resolve(written(name, syntax)) == AddressSettings(**expected)  # type: ignore[arg-type]


def test_a_more_specific_match_can_take_back_what_a_less_specific_one_sets() -> None:
    entries = (
        AddressMatch("#", {"dead_letter_address": "DLQ", "auto_create_queues": False}),
        AddressMatch("a.*", {"dead_letter_address": ""}),
        AddressMatch("a.b", {"auto_create_queues": True}),
    )
    found = AddressSettingsTable(entries).resolve("a.b")
    assert (found.dead_letter_address, found.auto_create_queues) == ("", True)
    assert AddressSettingsTable(entries).resolve("a.c").auto_create_queues is False


def test_addresses_of_the_same_matches_share_their_settings() -> None:
    entries = (AddressMatch("a.#", {"expiry_delay": 7}), AddressMatch("a.own", {"auto_create_queues": False}))
    table = AddressSettingsTable(entries)
    assert table.resolve("a.b") is table.resolve("a.c")
    assert table.resolve("b") is not table.resolve("a.b")
    assert not table.resolve("a.own").auto_create_queues
    assert table.resolve("a.d").auto_create_queues


def test_the_most_specific_permission_decides_alone() -> None:
    entries = (
        SecurityMatch("#", {"send": frozenset({"all"}), "consume": frozenset({"all"})}),
        SecurityMatch("a.#", {"send": frozenset({"a"})}),
        SecurityMatch("a.b", {"send": frozenset({"b"})}),
    )
    table = SecurityTable(entries)
    assert [table.roles(name, "send") for name in ("x", "a", "a.c", "a.b")] == [{"all"}, {"a"}, {"a"}, {"b"}]
    assert table.roles("a.b", "consume") == table.roles("a.c", "consume") == frozenset()


def test_permissions_follow_the_syntax() -> None:
    entries = (SecurityMatch(">", {"send": frozenset({"all"})}), SecurityMatch("a/+", {"send": frozenset({"a"})}))
    table = SecurityTable(entries, SLASHES)
    assert table.roles("a/b", "send") == {"a"}
    assert table.roles("a.b", "send") == {"all"}
    assert SecurityTable(entries).roles("a/b", "send") == frozenset()
