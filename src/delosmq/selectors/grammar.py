"""The grammar of selectors, and what it expects where the words of one do not follow it.

Loads lark, which takes 50 ms, so it is imported when the first selector is refused. `parser` reads the same grammar,
ten times faster. Source: docs/decisions/0035.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from lark import Lark, Token, UnexpectedToken
from lark.common import LexerConf
from lark.lexer import Lexer
from mypy_extensions import mypyc_attr

from delosmq.selectors.errors import SelectorError
from delosmq.selectors.lexer import KEYWORDS, NAME, NUMBER, QUOTED_NAME, STRING, SYMBOLS, Word

# From what binds least to what binds most. NOT stands above comparisons, as in SQL.
GRAMMAR: Final = """
    %declare NAME QUOTED_NAME STRING NUMBER TRUE FALSE NULL
    %declare EQUAL NOT_EQUAL LESS LESS_EQUAL GREATER GREATER_EQUAL PLUS MINUS TIMES DIVIDED MODULO
    %declare _OPEN _CLOSE _COMMA _NOT _AND _OR _BETWEEN _LIKE _ESCAPE _IN _IS

    ?start: either

    ?either: both (_OR both)*
    ?both: denial (_AND denial)*
    ?denial: equality
        | _NOT denial                                            -> negation

    ?equality: relation
        | equality (EQUAL | NOT_EQUAL) relation                  -> comparison
        | equality _IS NULL                                      -> missing
        | equality _IS _NOT NULL                                 -> not_missing

    ?relation: sum
        | relation (LESS | LESS_EQUAL | GREATER | GREATER_EQUAL) sum -> comparison
        | relation _LIKE STRING (_ESCAPE STRING)?                -> like
        | relation _NOT _LIKE STRING (_ESCAPE STRING)?           -> not_like
        | relation _BETWEEN sum _AND sum                         -> between
        | relation _NOT _BETWEEN sum _AND sum                    -> not_between
        | relation _IN _OPEN STRING (_COMMA STRING)* _CLOSE      -> among
        | relation _NOT _IN _OPEN STRING (_COMMA STRING)* _CLOSE -> not_among

    ?sum: product
        | sum (PLUS | MINUS) product                             -> calculation
    ?product: signed
        | product (TIMES | DIVIDED | MODULO) signed              -> calculation
    ?signed: MINUS signed                                        -> negative
        | PLUS signed                                            -> positive
        | NAME | QUOTED_NAME | STRING | NUMBER | TRUE | FALSE | NULL
        | _OPEN either _CLOSE                                    -> group
"""

_UNNAMED: Final = frozenset(("OPEN", "CLOSE", "COMMA", "NOT", "AND", "OR", "BETWEEN", "LIKE", "ESCAPE", "IN", "IS"))
"""Words that the tree leaves out; in the grammar they begin with an underscore."""

_BY_TERMINAL: Final = {kind: symbol for symbol, kind in SYMBOLS.items()}


@mypyc_attr(native_class=False)
class _Words(Lexer):
    """Hands lark the words that are already there."""

    def __init__(self, lexer_conf: LexerConf) -> None:
        pass

    def lex(self, words: list[Word]) -> Iterator[Token]:  # type: ignore[override]  # lark's older and simpler form
        for word in words:
            kind = f"_{word.kind}" if word.kind in _UNNAMED else word.kind
            yield Token(kind, word.text, start_pos=word.position)


@lru_cache(maxsize=1)
def parser() -> Lark:
    return Lark(GRAMMAR, parser="lalr", lexer=_Words)


def unexpected(text: str, words: list[Word], at: int) -> SelectorError:
    """What is wrong with ``words``, which stand in ``text`` and are not in the order that the grammar asks for.

    Args:
        at: the word that `parser` did not expect, of ``words``; their count for the end.
    """
    expected: set[str] = set()
    position: int | None = words[at].position if at < len(words) else None
    try:
        parser().parse(words)
    except UnexpectedToken as error:
        expected = {str(name).removeprefix("_") for name in error.accepts}
        position = error.token.start_pos if error.token.type != "$END" else None
    if position is None:
        return SelectorError("DMQ2506", f"the selector ends where {_phrase(expected)} is expected", text, len(text))
    found = next(word for word in words if word.position == position)
    return SelectorError("DMQ2506", _sentence(found, expected), text, position)


def _sentence(found: Word, expected: set[str]) -> str:
    sentence = f"{_phrase(expected)} is expected, not {_written(found)}"
    if found.kind in KEYWORDS and "NAME" in expected:
        sentence += f'; a property of that name stands in double quotes: "{found.text}"'
    elif found.kind == QUOTED_NAME and expected == {STRING}:
        sentence += "; text stands in single quotes, double ones are for names"
    elif found.kind == NUMBER and expected == {STRING}:
        sentence += "; numbers are compared with =, < or BETWEEN"
    return sentence


def _written(word: Word) -> str:
    if word.kind == STRING:
        return f"the text '{_short(word.text)}'"
    if word.kind in (NAME, QUOTED_NAME):
        return f"the name {_short(word.text)}"
    if word.kind == NUMBER:
        return f"the number {_short(word.text)}"
    return word.text if word.kind in KEYWORDS else f"'{word.text}'"


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."


def _phrase(expected: set[str]) -> str:
    """What may stand at a place, in the words of people who write selectors."""
    if "NAME" in expected:
        return "a property, a value or '('"
    phrases: list[str] = []
    if STRING in expected:
        phrases.append("text in single quotes")
    if "EQUAL" in expected or "LESS" in expected:
        phrases.append("an operator such as = or LIKE")
    elif "PLUS" in expected:
        phrases.append("an arithmetic operator")
    elif "LIKE" in expected:
        phrases.append("LIKE, BETWEEN or IN")
    if "NULL" in expected:
        phrases.append("NULL or NOT NULL" if "NOT" in expected else "NULL")
    phrases += [word for word in ("ESCAPE", "AND", "OR") if word in expected]
    phrases += [f"'{_BY_TERMINAL[kind]}'" for kind in ("OPEN", "COMMA", "CLOSE") if kind in expected]
    if "$END" in expected:
        phrases.append("the end")
    if len(phrases) < 2:
        return "".join(phrases)
    return f"{', '.join(phrases[:-1])} or {phrases[-1]}"
