"""Each wrong selector is refused with a sentence that points at the character."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delosmq.model.errors import MisuseError
from delosmq.selectors.lexer import FOREIGN, KEYWORDS, SYMBOLS
from delosmq.selectors.selector import LONGEST, SelectorError, parse_selector


def refused(text: str) -> SelectorError:
    with pytest.raises(SelectorError) as caught:
        parse_selector(text)
    return caught.value


def assert_selector_or_refused(text: str) -> None:
    """No other error than SelectorError, whatever the text."""
    error: SelectorError | None = None
    try:
        parse_selector(text)
    except SelectorError as refusal:
        error = refusal
    if error is not None:
        assert 0 <= error.position <= len(text)
        assert error.text == text


VALUE = "a property, a value or '('"
WRONG = [
    ("", 0, "DMQ2500", "the selector states no condition: leave it out to get all messages"),
    (" \n", 2, "DMQ2500", "states no condition"),
    ("-- nothing", 0, "DMQ2500", "states no condition"),
    ("hyphenated_props:", 17, "DMQ2500", "states no condition"),
    ("a" * (LONGEST + 1), LONGEST, "DMQ2501", "the selector has 8,193 characters, at most 8,192 are allowed"),
    ("a != 1", 2, "DMQ2502", "write <>"),
    ("a == 1", 2, "DMQ2502", "write ="),
    ("a => 1", 2, "DMQ2502", "write >="),
    ("a =< 1", 2, "DMQ2502", "write <="),
    ("a && b", 2, "DMQ2502", "write AND"),
    ("a || b", 2, "DMQ2502", "write OR"),
    ("!a", 0, "DMQ2502", "write NOT"),
    ("a = 'it''s", 4, "DMQ2502", "this text has no end"),
    ('a = 1 AND "b', 10, "DMQ2502", "this name has no end"),
    ("a = 1 /* b", 6, "DMQ2502", "this comment has no end"),
    ("a.b = 1", 1, "DMQ2502", 'a name with a dot stands in double quotes: "a.b"'),
    ("a = \u2018b\u2019", 4, "DMQ2502", "straight quotes"),
    ("a # 1", 2, "DMQ2502", "'#' means nothing in a selector"),
    ("a = \x00", 4, "DMQ2502", "'\\x00' means nothing"),
    ('"" = 1', 0, "DMQ2503", "a name has at least one character"),
    ("xpath '//a'", 0, "DMQ2504", "XPATH looks into XML bodies"),
    ("a = 1 OR XQUERY 'b'", 9, "DMQ2504", "XQUERY looks into XML bodies"),
    ("a = 5abc", 4, "DMQ2505", "'5a' is neither a number nor a name"),
    ("a = 0x", 4, "DMQ2505", "'0x' is neither a number nor a name"),
    ("a =", 3, "DMQ2506", f"the selector ends where {VALUE} is expected"),
    ("  a = = 5", 6, "DMQ2506", f"{VALUE} is expected, not '='"),
    ("a b", 2, "DMQ2506", "an operator such as = or LIKE, AND, OR or the end is expected, not the name b"),
    ("a = 1)", 5, "DMQ2506", "the end is expected, not ')'"),
    ("(a = 1", 6, "DMQ2506", "the selector ends where ')' is expected"),
    ("a = in", 4, "DMQ2506", 'not in; a property of that name stands in double quotes: "in"'),
    ("a LIKE b", 7, "DMQ2506", "text in single quotes is expected, not the name b"),
    ('a LIKE "b"', 7, "DMQ2506", "text stands in single quotes, double ones are for names"),
    ("a IN (1)", 6, "DMQ2506", "text in single quotes is expected, not the number 1; numbers are compared with"),
    ("a IN 'b'", 5, "DMQ2506", "'(' is expected, not the text 'b'"),
    ("a IN ()", 6, "DMQ2506", "text in single quotes is expected, not ')'"),
    ("a IN ('b' 'c')", 10, "DMQ2506", "',' or ')' is expected, not the text 'c'"),
    ("a IN ('b'", 9, "DMQ2506", "the selector ends where ',' or ')' is expected"),
    ("a BETWEEN 1 OR 2", 12, "DMQ2506", "an arithmetic operator or AND is expected, not OR"),
    ("a NOT 1", 6, "DMQ2506", "LIKE, BETWEEN or IN is expected, not the number 1"),
    ("a IS 1", 5, "DMQ2506", "NULL or NOT NULL is expected, not the number 1"),
    ("a IS NOT TRUE", 9, "DMQ2506", "NULL is expected, not TRUE"),
    ("a LIKE 'b' ESCAPE", 17, "DMQ2506", "the selector ends where text in single quotes is expected"),
    ("a = NOT b", 4, "DMQ2506", f"{VALUE} is expected, not NOT"),
    (f"a '{'b' * 50}'", 2, "DMQ2506", f"not the text '{'b' * 37}...'"),
    ("(" * 101 + "a" + ")" * 101, 100, "DMQ2507", "more than 100 operators or parentheses lie within each other"),
    ("NOT " * 101 + "a", 404, "DMQ2507", "make the selector flatter"),
    ("1" + " + 1" * 101 + " = 1", 0, "DMQ2507", "make the selector flatter"),
    ("a = 9223372036854775808", 4, "DMQ2508", "9223372036854775808 does not fit in 64 bits"),
    ("a = -9223372036854775809", 5, "DMQ2508", "does not fit in 64 bits"),
    ("a = 0x8000000000000000", 4, "DMQ2508", "does not fit in 64 bits"),
    ("a = " + "9" * 5_000, 4, "DMQ2508", f"{'9' * 37}... does not fit in 64 bits"),
    ("a = 019", 4, "DMQ2508", "is octal, where 8 and 9 don't exist"),
    ("a = 1.5L", 4, "DMQ2508", "a number that ends in L has neither point nor exponent"),
    ("a = 1e999", 4, "DMQ2508", "is larger than floating point numbers get"),
    ("a = 1e39f", 4, "DMQ2508", "is larger than floating point numbers get"),
    ("5", 0, "DMQ2509", "a condition is expected here, not a number: compare it with something"),
    ("a = 1 AND 'b'", 10, "DMQ2509", "a condition is expected here, not text"),
    ("NOT (a + 1)", 5, "DMQ2509", "a condition is expected here, not a number"),
    ("a < 'b'", 4, "DMQ2510", "text is neither less nor more than something"),
    ("a BETWEEN 'b' AND 'c'", 10, "DMQ2510", "text is neither less nor more than something"),
    ("a >= TRUE", 5, "DMQ2510", "a condition is neither less nor more than something"),
    ("1 < a < 3", 0, "DMQ2510", "a condition is neither less nor more than something"),
    ("a LIKE 'b' ESCAPE 'cd'", 18, "DMQ2511", "ESCAPE takes one character in single quotes"),
    ("a LIKE 'b' ESCAPE ''", 18, "DMQ2511", "ESCAPE takes one character in single quotes"),
    ("a - 'b' = 1", 4, "DMQ2512", "a number is expected here, not text"),
    ("-'b' = 1", 1, "DMQ2512", "a number is expected here, not text"),
    ("(a = 1) + 1 = 2", 1, "DMQ2512", "a number is expected here, not a condition"),
    ("1 + TRUE = 2", 4, "DMQ2512", "a number is expected here, not a condition"),
    ("'a' IN ('b')", 0, "DMQ2513", "before IN stands the name of a property"),
    ("a + 1 IN ('b')", 0, "DMQ2513", "before IN stands the name of a property"),
    ("JMSRedelivered = TRUE", 0, "DMQ2514", "JMSRedelivered differs from delivery to delivery"),
    ('a = 1 AND "JMSXDeliveryCount" > 1', 10, "DMQ2514", "JMSXDeliveryCount differs from delivery to delivery"),
]


@pytest.mark.parametrize(
    "text, position, code, sentence", WRONG, ids=[f"{code}-{text[:20]}" for text, _, code, _ in WRONG]
)
def test_each_mistake(text: str, position: int, code: str, sentence: str) -> None:
    error = refused(text)
    assert (error.position, error.code, error.text) == (position, code, text)
    assert sentence in error.sentence
    assert "\n" not in error.sentence
    assert error.message == f"{error.sentence}\n{error.picture}"


@pytest.mark.parametrize("foreign, hint", FOREIGN.items())
def test_what_other_languages_write(foreign: str, hint: str) -> None:
    assert refused(f"a {foreign} 1").sentence == hint


def test_it_is_a_mistake_of_the_caller() -> None:
    error = refused("a = ")
    assert isinstance(error, MisuseError)
    assert str(error).startswith("DMQ2506: ")


@pytest.mark.parametrize(
    "text, picture",
    [
        ("a = = 5", "  a = = 5\n      ^"),
        ("a =", "  a =\n     ^"),
        ("  a = = 5", "    a = = 5\n        ^"),
        ("a = 1\nAND = 2\nOR b", "  AND = 2\n      ^"),
        ("a\t= =", "  a = =\n      ^"),
        (f"{'a' * 100} = =", "  ..." + "a" * 68 + " = =\n     " + " " * 71 + "^"),
        (f"a = = {'b' * 100}", "  a = = " + "b" * 66 + "...\n      ^"),
        (f"{'a' * 100} = = {'b' * 100}", None),
    ],
)
def test_a_caret_stands_below_the_mistake(text: str, picture: str | None) -> None:
    error = refused(text)
    assert picture in (None, error.picture)
    line, caret = error.picture.split("\n")
    assert len(line) <= 80
    assert caret.strip() == "^"
    assert (line + " ")[len(caret) - 1] == (text + " ")[error.position]


# What a fuzzer should put together: words that mean something here, and some that don't.
WORDS = [*KEYWORDS, *SYMBOLS, *FOREIGN, "a", "b-c", '"d"', "'e'", "5", "5.5", "0x1", "1e5", "--", "*/", "\n", " "]


@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join)))
def test_any_text_is_a_selector_or_refused(text: str) -> None:
    assert_selector_or_refused(text)


@pytest.mark.parametrize(
    "piece", ["(", "NOT ", "- ", "+ ", "((", "a AND (", "a = (", "1+", "'", '"', "/*", "''", "%", "a OR "]
)
def test_hostile_nesting_is_refused_at_worst(piece: str) -> None:
    for end in ("", "a", "1 = 1"):
        text = (piece * LONGEST)[: LONGEST - len(end)] + end
        assert_selector_or_refused(text)
