"""The reader of selectors takes what the grammar takes, and makes the same tree of it."""

from hypothesis import given, settings
from hypothesis import strategies as st
from lark import Token, Tree, UnexpectedToken

from delosmq.selectors.errors import SelectorError
from delosmq.selectors.grammar import parser
from delosmq.selectors.lexer import words_of
from delosmq.selectors.parser import Branch, Part, tree_of
from tests.chance import tries

WORDS = (  # noqa: SIM905
    "a b 'x' 1 -2 + - * / % = <> < >= ( ) , NOT AND OR BETWEEN LIKE ESCAPE IN IS TRUE NULL"
    " IS_NULL IS_NOT_NULL NOT_LIKE NOT_IN NOT_BETWEEN ('x') ('x','y')"
).split()
PIECES = [
    *(word.replace("_", " ") for word in WORDS),
    "a = 1",
    "b LIKE 'x' ESCAPE 'y'",
    "a BETWEEN 1 AND b + 2",
    "(a OR NOT b)",
    "a IN ('x', 'y')",
    "b IS NOT NULL",
    "- (a * 2)",
]


def shape(part: Part) -> object:
    if isinstance(part, Branch):
        return part.kind, [shape(child) for child in part.children]
    return part.kind, part.text


def shape_of_lark(part: Tree[Token] | Token) -> object:
    if isinstance(part, Token):
        return part.type, str(part)
    return str(part.data), [shape_of_lark(child) for child in part.children]


def compare(text: str) -> bool:
    words = words_of(text, 0, False)
    try:
        expected = shape_of_lark(parser().parse(words))
    except UnexpectedToken:
        expected = None
    try:
        found = shape(tree_of(text, words))
    except SelectorError:
        found = None
    assert found == expected, text
    return found is not None


@settings(max_examples=tries(2_000))
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=9))
def test_any_words_give_the_tree_of_the_grammar_or_are_refused_by_both(pieces: list[str]) -> None:
    compare(" ".join(pieces))


@settings(max_examples=tries(1_000))
@given(st.lists(st.sampled_from([p for p in PIECES if " " in p]), min_size=1, max_size=6), st.data())
def test_conditions_joined_by_operators_give_the_tree_of_the_grammar(parts: list[str], data: st.DataObject) -> None:
    text = parts[0]
    for part in parts[1:]:
        text += f" {data.draw(st.sampled_from(['AND', 'OR', 'AND NOT', '=', '<', '+']))} {part}"
    compare(text)


def test_what_is_common_is_taken_by_both() -> None:
    for text in (
        "a = 1 AND b = 2 OR NOT c < 3 AND d IS NULL",
        "NOT NOT a = b = c < d <> e",
        "a NOT BETWEEN 1 AND 2 + 3 AND b NOT LIKE 'x' ESCAPE 'y' OR c NOT IN ('x', 'y') = TRUE",
        "- - a * + b / 2 % 3 - 1 > (((a)))",
        "a LIKE 'x' < 5 IS NOT NULL = a IN ('x')",
    ):
        assert compare(text), text
