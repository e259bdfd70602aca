"""What selectors mean: truth tables, each operator on each type, literals, names and prefixes."""

import subprocess
import sys

import pytest

from delosmq.model.properties import PropertyValue
from delosmq.selectors.selector import KEPT, KEPT_CHARACTERS, Selector, SelectorError, parse_selector
from tests.selectors.support import Given, holds

TRUTH = {"t": True, "f": False}  # u is missing: UNKNOWN
T, F, U = True, False, None


@pytest.mark.parametrize(
    "left, right, both, either",
    [
        ("t", "t", T, T),
        ("t", "f", F, T),
        ("t", "u", U, T),
        ("f", "t", F, T),
        ("f", "f", F, F),
        ("f", "u", F, U),
        ("u", "t", U, T),
        ("u", "f", F, U),
        ("u", "u", U, U),
    ],
)
def test_and_and_or(left: str, right: str, both: bool | None, either: bool | None) -> None:
    assert holds(f"{left} AND {right}", **TRUTH) is both
    assert holds(f"{left} OR {right}", **TRUTH) is either


@pytest.mark.parametrize(
    "text, outcome", [("NOT t", F), ("NOT f", T), ("NOT u", U), ("NOT NOT t", T), ("NOT NOT u", U)]
)
def test_not(text: str, outcome: bool | None) -> None:
    assert holds(text, **TRUTH) is outcome


@pytest.mark.parametrize("text, outcome", [("TRUE", T), ("FALSE", F), ("NULL", U), ("NULL OR TRUE", T), ("n", F)])
def test_constants_and_properties_as_conditions(text: str, outcome: bool | None) -> None:
    assert holds(text, n=1) is outcome


VALUES: dict[str, PropertyValue] = {"s": "m", "b": True, "i": 5, "d": 5.0, "y": b"m"}
OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
# For each pair of types: the outcomes of OPERATORS.
SAME_VALUE = (T, F, F, T, F, T)
UNLIKE = (F, T, F, F, F, F)  # a mismatch is false; <> is the opposite of =
MATRIX = {
    (left, right): SAME_VALUE if left == right != "y" or {left, right} == {"i", "d"} else UNLIKE
    for left in VALUES
    for right in VALUES
} | {pair: (U,) * 6 for name in [*VALUES, "none"] for pair in ((name, "none"), ("none", name))}


@pytest.mark.parametrize("left, right", list(MATRIX))
def test_each_comparison_of_each_pair_of_types(left: str, right: str) -> None:
    outcomes = tuple(holds(f"{left} {operator} {right}", **VALUES) for operator in OPERATORS)
    assert outcomes == MATRIX[left, right]


@pytest.mark.parametrize("left, right", list(MATRIX))
def test_between_is_two_comparisons(left: str, right: str) -> None:
    at_least, at_most = MATRIX[left, right][5], MATRIX[left, right][3]
    less, more = MATRIX[left, right][2], MATRIX[left, right][4]
    inside = F if F in (at_least, at_most) else U if U in (at_least, at_most) else T
    outside = T if T in (less, more) else U if U in (less, more) else F
    assert holds(f"{left} BETWEEN {right} AND {right}", **VALUES) is inside
    assert holds(f"{left} NOT BETWEEN {right} AND {right}", **VALUES) is outside


@pytest.mark.parametrize(
    "text, outcome",
    [
        ("n BETWEEN 1 AND 3", T),
        ("n BETWEEN 2 AND 2", T),
        ("n BETWEEN 3 AND 1", F),
        ("n NOT BETWEEN 3 AND 4", T),
        ("n BETWEEN 1 AND 3 AND n = 2", T),
        ("n BETWEEN 0 + 1 AND 1 * 3", T),
        ("n BETWEEN u AND 1", F),  # too large, whatever u is
        ("n BETWEEN u AND 3", U),
        ("n NOT BETWEEN u AND 1", T),
        ("n NOT BETWEEN u AND 3", U),
    ],
)
def test_between(text: str, outcome: bool | None) -> None:
    assert holds(text, n=2) is outcome


@pytest.mark.parametrize("name, outcome", [("s", T), ("i", F), ("d", F), ("b", F), ("y", F), ("none", U)])
def test_like_and_in_take_text(name: str, outcome: bool | None) -> None:
    opposite = None if outcome is None else not outcome
    assert holds(f"{name} LIKE 'm'", **VALUES) is outcome
    assert holds(f"{name} NOT LIKE 'm'", **VALUES) is opposite
    assert holds(f"{name} IN ('k', 'm')", **VALUES) is outcome
    assert holds(f"{name} NOT IN ('k', 'm')", **VALUES) is opposite


@pytest.mark.parametrize("name", VALUES)
def test_null_is_what_is_missing(name: str) -> None:
    assert holds(f"{name} IS NULL", **VALUES) is False
    assert holds(f"{name} IS NOT NULL", **VALUES) is True
    assert holds("none IS NULL") is True
    assert holds("none IS NOT NULL") is False
    assert holds("none + 1 IS NULL") is True


@pytest.mark.parametrize(
    "pattern, escape, value, outcome",
    [
        ("12%3", "", "123", T),
        ("12%3", "", "12993", T),
        ("12%3", "", "1234", F),
        ("l_se", "", "lose", T),
        ("l_se", "", "loose", F),
        ("%", "", "", T),
        ("", "", "", T),
        ("", "", "a", F),
        ("_", "", "\n", T),
        ("a%", "", "a\nb\n", T),
        ("a", "", "a\n", F),
        ("%ab%ab", "", "ab", F),
        ("%ab%ab", "", "abab", T),
        ("a%a", "", "a", F),
        ("%a%b%c%", "", "xaxbxcx", T),
        ("%a%b%c%", "", "xaxcxbx", F),
        ("%a_b%b", "", "aabbb", T),
        (r"\_%", "\\", "_foo", T),
        (r"\_%", "\\", "bar", F),
        (r"a\%", "\\", "a%", T),
        (r"a\%", "\\", "ab", F),
        (r"a\\b", "\\", "a\\b", T),
        (r"a\b", "\\", "a\\b", T),  # an escape before anything else stands for itself
        ("a\\", "\\", "a\\", T),
        (r"a\_", "", "a\\x", T),  # without ESCAPE nothing escapes
        ("100%%", "%", "100%", T),
        ("__a", "_", "_a", T),
        ("a.b", "", "axb", F),
        ("[a](b)*+?^$|{1}", "", "[a](b)*+?^$|{1}", T),
        ("\U0001f600_", "", "\U0001f600\U0001f600", T),
        ("it''s", "", "it's", T),
    ],
)
def test_like(pattern: str, escape: str, value: str, outcome: bool) -> None:
    ending = f" ESCAPE '{escape}'" if escape else ""
    assert holds(f"s LIKE '{pattern}'{ending}", s=value) is outcome
    assert holds(f"s NOT LIKE '{pattern}'{ending}", s=value) is not outcome


def test_no_pattern_takes_long() -> None:
    many = "%a" * 1_000 + "%b"
    assert holds(f"s LIKE '{many}'", s="a" * 20_000) is False
    assert holds("s LIKE '" + "%_a" * 500 + "'", s="a" * 1_000) is True


@pytest.mark.parametrize(
    "written, value",
    [
        ("0", 0),
        ("42", 42),
        ("42L", 42),
        ("42l", 42),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("- 0x8000000000000000", -(2**63)),
        ("0x1f", 31),
        ("0X1FL", 31),
        ("017", 15),
        ("017L", 15),
        ("00", 0),
        ("5.", 5.0),
        (".5", 0.5),
        ("09.5", 9.5),
        ("5.5", 5.5),
        ("5e2", 500.0),
        ("5E+2", 500.0),
        (".5e-1", 0.05),
        ("5d", 5.0),
        ("5.5D", 5.5),
        ("1.1f", 1.10000002384185791015625),  # rounded as Java's float is
        ("+7", 7),
        ("- -7", 7),
    ],
)
def test_numbers(written: str, value: PropertyValue) -> None:
    assert holds(f"n = {written}", n=value) is True
    assert holds(f"n <> {written}", n=value) is False


@pytest.mark.parametrize(
    "written, value", [("''", ""), ("'it''s'", "it's"), ("''''", "'"), ("'a\nb'", "a\nb"), ("'é'", "é")]
)
def test_texts(written: str, value: str) -> None:
    assert holds(f"s = {written}", s=value) is True


@pytest.mark.parametrize(
    "text, outcome",
    [
        ("i + 1 = 8", T),
        ("i - 10 = -3", T),
        ("i * 2 = 14", T),
        ("i / 2 = 3.5", T),  # as Artemis divides
        ("i % 4 = 3", T),
        ("-i % 4 = -3", T),
        ("i % -4 = 3", T),
        ("-i = -7", T),
        ("1 + i * 2 = 15", T),
        ("(1 + i) * 2 = 16", T),
        ("10 - 3 - 2 = 5", T),
        ("i + 0.5 = 7.5", T),
        ("d % 2 = 1.5", T),
        ("9223372036854775807 + 1 = -9223372036854775808", T),
        ("-9223372036854775808 - 1 = 9223372036854775807", T),
        ("4611686018427387904 * 2 = -9223372036854775808", T),
        ("9223372036854775807 * 9223372036854775807 = 1", T),
        ("-i / 0 < 0", T),
        ("i / 0 > 9223372036854775807", T),
        ("i / -0.0 < 0", T),
        ("0 / 0 = 0", U),
        ("0 / 0 <> 0", U),
        ("i % 0 = 0", U),
        ("1 / 0 % 2 = 0", U),
        ("1 / 0 - 1 / 0 = 0", U),
        ("s + 'b' = 'ab'", T),
        ("s + 1 = 'a1'", U),
        ("1 + s = 2", U),
        ("s * 2 = 2", U),
        ("-s = 1", U),
        ("b + 1 = 2", U),
        ("y + 1 = 2", U),
        ("none + 1 = 2", U),
        ("NULL + 1 = 2", U),
        ("x / 4 = 2.5", T),
        ("x * 2 = 20", T),
    ],
)
def test_arithmetic(text: str, outcome: bool | None) -> None:
    assert holds(text, i=7, d=3.5, s="a", b=True, y=b"a", x=10.0) is outcome


@pytest.mark.parametrize(
    "text, outcome",
    [
        ("n = 9007199254740993", T),
        ("n = 9007199254740992.0", F),  # a double can't hold n: they differ
        ("n > 9007199254740992.0", T),
        ("9007199254740992.0 < n", T),
        ("n = NULL", U),
        ("n < NULL", U),
        ("nan = nan", U),
        ("nan > 1", U),
        ("nan IS NULL", F),
    ],
)
def test_numbers_compare_exactly(text: str, outcome: bool | None) -> None:
    assert holds(text, n=9007199254740993, nan=float("nan")) is outcome


@pytest.mark.parametrize(
    "text, outcome",
    [
        ("a OR b AND c", T),
        ("(a OR b) AND c", F),
        ("NOT c AND a", T),
        ("NOT n = 2", T),  # NOT (n = 2)
        ("NOT n IS NULL", T),
        ("n = 1 = TRUE", T),
        ("a = (n > 0)", T),
        ("n=1 aNd NoT c oR FALSE", T),
        ("n--a comment\n=1", T),
        ("n = 1 -- the end", T),
        ("n /* a * b / ** */ = 1", T),
        ("n\t=\r\n\f1", T),
        ("n=-1 OR n>-1", T),
    ],
)
def test_precedence_case_and_blanks(text: str, outcome: bool | None) -> None:
    assert holds(f"\n {text}\n", a=True, b=True, c=False, n=1) is outcome


@pytest.mark.parametrize(
    "text",
    [
        "$a_1 = 1",
        "_ = 1",
        "é = 1",
        '"m.x-opt" = 1',
        '"say ""hi""" = 1',
        '"in" = 1',
        "N <> 1 OR n = 1",
        "ınsıde = 1",
        "ıs = 1",
    ],
)
def test_names(text: str) -> None:
    names = ("$a_1", "_", "é", "m.x-opt", 'say "hi"', "in", "n", "ınsıde", "ıs")
    assert holds(text, **dict.fromkeys(names, 1)) is True


def test_names_are_case_sensitive() -> None:
    assert holds("A = 1", a=1) is None


@pytest.mark.parametrize(
    "text, outcome",
    [
        ("a-b = 2", T),
        ("hyphenated_props:a-b = 9", T),
        ("hyphenated_props:a - b = 2", T),
        ("hyphenated_props:not-x = 4", T),
        ("hyphenated_props:n-1 = 8", T),
        ("hyphenated_props:no_hyphenated_props:a-b = 2", T),
        ("hyphenated_props:n --1\n = 1", T),
        ('"a-b" = 9', T),
    ],
)
def test_hyphens(text: str, outcome: bool | None) -> None:
    values: dict[str, PropertyValue] = {"a": 5, "b": 3, "a-b": 9, "not-x": 4, "n-1": 8, "n": 1}
    assert parse_selector(text).matches(Given(values)) is outcome


@pytest.mark.parametrize(
    "text, outcome",
    [
        ("price > 10", T),
        ("10 < price", T),
        ("price = 10.5", T),
        ("count = 7", T),
        ("count BETWEEN 5 AND 9", T),
        ("count NOT BETWEEN 5 AND 9", F),
        ("count + 1 = 8", T),
        ("1 + count = 8", T),
        ("count * price = 73.5", T),
        ("-count = -7", T),
        ("count / 2 = 3.5", T),
        ("'2' * 3 = 6", T),
        ("flag = TRUE", T),
        ("flag <> FALSE", T),
        ("flag", F),  # only comparisons and arithmetic convert
        ("word = TRUE", F),
        ("word = 7", F),
        ("word <> 7", T),
        ("word < 7", F),
        ("word + 1 = 2", U),
        ("blank = 7", F),
        ("huge = 1", F),
        ("huge > 1", F),
        ("endless > 1", F),
        ("hex = 31", F),
        ("count = '7'", T),
        ("count IN ('7')", T),
        ("count + count = '77'", T),  # two texts are joined, as in Artemis
        ("none = 1", U),
    ],
)
def test_converted_texts(text: str, outcome: bool | None) -> None:
    values: dict[str, PropertyValue] = {
        "price": "10.5",
        "count": "7",
        "flag": "True",
        "word": "seven",
        "blank": " 7",
        "huge": "9" * 30,
        "endless": "1e999",
        "hex": "0x1f",
    }
    assert holds(f"convert_string_expressions:{text}", **values) is outcome


@pytest.mark.parametrize("text", ["n = 7", "n > 6", "n * 1 = 7", "n - 0 = 7", "-n = -7", "b = TRUE", "b"])
def test_nothing_is_converted_without_the_prefix(text: str) -> None:
    assert holds(text, n="7", b="true") is not True


@pytest.mark.parametrize(
    "prefix",
    [
        "convert_string_expressions:hyphenated_props:",
        "hyphenated_props:convert_string_expressions:",
        " convert_string_expressions: hyphenated_props: ",
        "no_convert_string_expressions:hyphenated_props:convert_string_expressions:",
    ],
)
def test_prefixes_in_any_order(prefix: str) -> None:
    assert parse_selector(f"{prefix}a-b = 9").matches(Given({"a-b": "9"}))
    assert not parse_selector(f"{prefix}no_convert_string_expressions:a-b = 9").matches(Given({"a-b": "9"}))


def test_selectors_are_equal_when_only_the_blanks_around_them_differ() -> None:
    plain = parse_selector("n = 1")
    assert parse_selector("\n n = 1\t") == plain
    assert hash(parse_selector(" n = 1")) == hash(plain)
    assert parse_selector(" n = 1 ").text == "n = 1"
    assert parse_selector("n  = 1") != plain
    assert plain != "n = 1"
    assert repr(plain) == "Selector('n = 1')"


def test_the_last_thousand_are_kept() -> None:
    first = parse_selector("n = -1")
    assert parse_selector(" n = -1 ") is first
    for number in range(KEPT):
        parse_selector(f"n = {number}")
    assert parse_selector("n = -1") is not first


def test_a_long_selector_is_kept_until_others_take_its_room() -> None:
    text = " OR ".join(f"n = {number}" for number in range(700))
    assert len(text) < 8_192
    parsed = parse_selector(text)
    assert parse_selector(text) is parsed
    assert parsed.matches(Given({"n": 699}))
    assert not parsed.matches(Given({"n": 700}))
    for number in range(KEPT_CHARACTERS // len(text) + 1):
        assert parse_selector(f"{text} OR m = {number}") != parsed
    assert parse_selector(text) is not parsed
    assert parse_selector(text) == parsed


def test_deep_but_allowed() -> None:
    assert holds("NOT " * 98 + "t", t=True) is True
    assert holds("(" * 98 + "t" + ")" * 98, t=True) is True


def test_lark_is_loaded_when_the_first_selector_is_refused() -> None:
    program = """
import sys
from delosmq.selectors.selector import SelectorError, parse_selector
from delosmq.selectors.subject import Subject
assert "lark" not in sys.modules
parse_selector("a = 1")
assert "lark" not in sys.modules
try:
    parse_selector("a =")
except SelectorError:
    assert "lark" in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_what_stands_in_the_module() -> None:
    assert isinstance(parse_selector("a = 1"), Selector)
    assert issubclass(SelectorError, Exception)
