"""Regular expressions of filters: what Java's find, in a bounded number of steps whatever value a peer chooses."""

# ROUTE-2

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delosmq.model.declared.java_regex import MOST_STEPS, JavaRegex
from delosmq.model.settings import BrokerSettings


@pytest.mark.parametrize(
    ("java", "text", "found"),
    [
        ("^.{3}", "order-1", "ord"),
        ("^FOO.*", "FOO_EU", "FOO_EU"),
        ("NULL|0", "10", "0"),
        ("^[^.]+", "eu.example.com", "eu"),
        (r"(?<first>a)b", "xaby", "ab"),
        (r"\w+", "été", "t"),
        (r"\D+\d{2,}?", "a1b234", "b23"),
        (r"[\w.-]+@[^@]*", "to: a-b.c@d e", "a-b.c@d e"),
        (r"\(?<x", "(<x", "(<x"),
        (r"(?i)foo", "FOO", "FOO"),
        (r"a(?i:b)c", "aBc", "aBc"),
        (r"a((?i)b)c", "ABC", None),
        (r"[(?<]+", "(<", "(<"),
        (r"[]a-]+", "x]-a", "]-a"),
        (r"([0-9]+\.){3}", "10.0.0.1", "10.0.0."),
        (r"\Qa.b+\E+", "a.b++ axb", "a.b++"),
        (r"\bis\b", "this is", "is"),
        (r"\x41\u0042\t", "AB\t", "AB\t"),
        (r"(?!FOO).*", "FOO", "OO"),
        (r"^(?!FOO).*", "FOO", None),
        (r"\d+(?=px)", "12em 34px", "34"),
        ("a|ab", "ab", "a"),
        ("a??b", "aab", "ab"),
        ("x*", "aaa", ""),
        (r"\S+$", "a b\n", "b"),
        ("(?s)a.b", "a\nb", "a\nb"),
        ("a.b", "a\nb", None),
        (r"[\S]+", "é€ x", "é€"),
    ],
)
def test_an_expression_finds_what_javas_does(java: str, text: str, found: str | None) -> None:
    assert JavaRegex(java).search(text) == found


@pytest.mark.parametrize(
    ("java", "whole", "not_whole"), [("a|ab", "ab", "abc"), ("(a+)+", "aaa", "aab"), ("", "", "a")]
)
def test_an_expression_takes_a_value_whole(java: str, whole: str, not_whole: str) -> None:
    assert JavaRegex(java).fullmatch(whole)
    assert not JavaRegex(java).fullmatch(not_whole)


LETTERS = ["a", "b", ".", "[ab]", "[^a]", r"\w", r"\W"]
REPEATED = st.sampled_from(["*", "+", "?", "*?", "+?", "??", "{1,3}", "{2}", "{0,2}?", "{1,}"])


def _pieces(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    # What is repeated begins with a letter: an empty turn ends a repetition in Java, Python and here in three ways.
    return st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"({two[0]}|{two[1]})"),
        st.tuples(st.sampled_from(LETTERS), inner, REPEATED).map(lambda one: f"(?:{one[0]}{one[1]}){one[2]}"),
        st.tuples(st.sampled_from(LETTERS), REPEATED).map("".join),
        inner.map(lambda one: f"(?={one})"),
        inner.map(lambda one: f"(?!{one})"),
    )


EXPRESSIONS = st.recursive(st.sampled_from([*LETTERS, "^", "$", r"\b"]), _pieces, max_leaves=8)


@given(EXPRESSIONS, st.text("abc ", max_size=8))
def test_what_python_can_do_as_well_it_does_alike(written: str, text: str) -> None:
    ours, pythons = JavaRegex(written), re.compile(written, re.ASCII)
    found = pythons.search(text)
    assert ours.search(text) == (None if found is None else found.group())
    assert ours.fullmatch(text) == (pythons.fullmatch(text) is not None)


@pytest.mark.parametrize(
    "explosive",
    [
        "(a+)+b",
        "(a|a)*b",
        "(a{1,30}){1,30}b",
        "(a?){30}b",
        "(.*,){11}P",
        ".*.*.*=",
        "a*a*a*a*b",
        "^(a|aa){2,60}$",
        "(x+x+){1,9}y",
        "(a+b?){1,40}$",
        "(?:(?=.*x).)*y",
        "(?:(?=(?:(?=.*x).)*y).)*z",
    ],
)
@pytest.mark.parametrize("letter", "a,x")
def test_no_value_takes_more_than_a_bounded_number_of_steps(explosive: str, letter: str) -> None:
    regex = JavaRegex(explosive)
    for text in (letter * 1_024, letter * 1_023 + "!"):
        regex.search(text)
        assert 0 < regex.steps <= MOST_STEPS
        regex.fullmatch(text)
        assert 0 < regex.steps <= MOST_STEPS


def test_ordinary_filters_find_their_keys_in_the_longest_values() -> None:
    for written in (r"[^@]+@([a-z0-9-]+\.)+[a-z]{2,8}$", r".*\.example\..*", "^(FOO|BAR|BAZ)_.*$"):
        for text in ("FOO_" + "x" * 980 + "@eu.example.com",):
            assert JavaRegex(written).search(text) is not None, written


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("(", r"of Java: a \( that is not closed stands at letter 1"),
        ("ab)", r"a \) that closes nothing stands at letter 3"),
        ("[a", r"a \[ that is not closed"),
        ("a{2,1}", "n above m"),
        ("a{x", "a { without"),
        ("*", "nothing before it"),
        ("a**", "a quantifier behind another"),
        ("[z-a]", "a range that is none"),
        (r"[\d-z]", "a range without two letters"),
        ("\\", "nothing behind it"),
        (r"\y", "means nothing"),
        ("(?'x')", "does not know"),
        (r"(a)\1", "without a reference to a group"),
        (r"(?<n>a)\k<n>", "without a reference to a group"),
        ("(?<=a)b", "without looking back"),
        ("(?>a)", "without an independent group"),
        ("a*+", "without a possessive quantifier"),
        (r"\p{Alpha}", r"without \\p"),
        ("(?m)^a", "without flags other than"),
        ("[a-z&&[^b]]", r"without && within \[ \], which is an intersection in Java"),
        ("[a[bc]]", r"without a \[ within \[ \], which is a union in Java"),
        ("a" * 1_001, "at most 1000 letters"),
        ("(a{100}){100}", "at most 2000 places"),
        ("((((){999}){999}){999}){999}", "at most 2000 places"),
        ("a{1001}", "without more than 1000 repetitions"),
        ("(" * 400 + ")" * 400, "without groups in more than 50 groups"),
    ],
)
def test_what_would_not_be_as_in_java_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=f"^a regular expression .*{said}"):
        JavaRegex(text)


def test_the_expression_of_management_that_comes_with_the_broker_can_be_read() -> None:
    looks = JavaRegex(BrokerSettings().view_permission_method_match_pattern)
    assert [looks.fullmatch(one) for one in ("getName", "listQueues", "purge")] == [True, True, False]
