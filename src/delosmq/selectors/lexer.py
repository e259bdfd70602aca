"""From the text of a selector to its words: names, literals, operators.

Source: Jakarta Messaging 3.1, section 3.8.1 "Message selectors"; hyphens in names, quoted names and comments as in
Artemis's selector parser.
"""

import re
from typing import Final

from delosmq.selectors.errors import DEEPEST, SelectorError, too_deep

KEYWORDS: Final = frozenset(("NOT", "AND", "OR", "BETWEEN", "LIKE", "ESCAPE", "IN", "IS", "TRUE", "FALSE", "NULL"))
BODY_QUERIES: Final = frozenset(("XPATH", "XQUERY"))

NAME: Final = "NAME"
QUOTED_NAME: Final = "QUOTED_NAME"
STRING: Final = "STRING"
NUMBER: Final = "NUMBER"

SYMBOLS: Final = {
    "=": "EQUAL",
    "<>": "NOT_EQUAL",
    "<": "LESS",
    "<=": "LESS_EQUAL",
    ">": "GREATER",
    ">=": "GREATER_EQUAL",
    "+": "PLUS",
    "-": "MINUS",
    "*": "TIMES",
    "/": "DIVIDED",
    "%": "MODULO",
    "(": "OPEN",
    ")": "CLOSE",
    ",": "COMMA",
}

FOREIGN: Final = {
    "!=": "'!=' is no operator of selectors: write <>",
    "==": "'==' is no operator of selectors: write =",
    "=<": "'=<' is no operator of selectors: write <=",
    "=>": "'=>' is no operator of selectors: write >=",
    "&&": "'&&' is no operator of selectors: write AND",
    "||": "'||' is no operator of selectors: write OR",
    "!": "'!' is no operator of selectors: write NOT",
    "'": "this text has no end: close it with ', and write '' for a quote within",
    '"': 'this name has no end: close it with ", and write "" for a quote within',
    "/*": "this comment has no end: close it with */",
    ".": 'a name with a dot stands in double quotes: "a.b"',
    "\u2018": "text stands between straight quotes: 'a'",
    "\u2019": "text stands between straight quotes: 'a'",
    "\u201c": "names stand between straight quotes: \"a\"; text between single ones: 'a'",
    "\u201d": "names stand between straight quotes: \"a\"; text between single ones: 'a'",
}
"""Operators of other languages, and what they mean here."""

# Possessive, so that a missing quote or a long run of quotes is refused at once.
_PATTERN: Final = r"""
    (?P<skipped> [ \t\r\n\f]+ | --[^\r\n]* | /\*[\s\S]*?\*/ )
  | (?P<foreign> != | == | =< | => | && | \|\| | /\* )
  | (?P<string> '(?:[^']|'')*+' )
  | (?P<quoted> "(?:[^"]|"")*+" )
  | (?P<number> 0[xX][0-9a-fA-F]+[lL]? | (?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[lLfFdD]? )
  | (?P<name> (?:[^\W\d]|\$)[\w$%s]* )
  | (?P<symbol> <> | <= | >= | [=<>+\-*/%%(),] )
"""
_PLAIN: Final = re.compile(_PATTERN % "", re.VERBOSE)
_HYPHENATED: Final = re.compile(_PATTERN % r"\-", re.VERBOSE)


class Word:
    """One word. ``kind`` is a keyword, a value of SYMBOLS, NAME, QUOTED_NAME, STRING or NUMBER.

    ``text`` is as written, without the quotes of names and texts; ``position`` counts characters from 0.
    """

    def __init__(self, kind: str, text: str, position: int) -> None:
        self.kind = kind
        self.text = text
        self.position = position


def words_of(text: str, start: int, hyphenated: bool) -> list[Word]:
    """The words of ``text`` from ``start`` on. With ``hyphenated``, names may hold hyphens.

    Raises:
        SelectorError: something in it is no word.
    """
    pattern = _HYPHENATED if hyphenated else _PLAIN
    words: list[Word] = []
    position, depth = start, 0
    while position < len(text):
        found = pattern.match(text, position)
        if found is None:
            raise _foreign(text, position)
        kind = found.lastgroup
        if kind == "foreign":
            raise _foreign(text, position)
        if kind != "skipped":
            word = _word(text, found[0], kind or "", position)
            depth += (word.kind == "OPEN") - (word.kind == "CLOSE")
            if depth > DEEPEST:
                raise too_deep(text, position)
            words.append(word)
        position = found.end()
    return words


def _word(text: str, written: str, kind: str, position: int) -> Word:
    if kind == "name":
        keyword = written.upper() if written.isascii() else ""
        if keyword in BODY_QUERIES:
            sentence = (
                f"{keyword} looks into XML bodies, which DelosMQ does not: copy what you select by into a property"
            )
            raise SelectorError("DMQ2504", sentence, text, position)
        return Word(keyword if keyword in KEYWORDS else NAME, written, position)
    if kind == "symbol":
        return Word(SYMBOLS[written], written, position)
    if kind == "string":
        return Word(STRING, written[1:-1].replace("''", "'"), position)
    if kind == "quoted":
        if written == '""':
            raise SelectorError("DMQ2503", "a name has at least one character", text, position)
        return Word(QUOTED_NAME, written[1:-1].replace('""', '"'), position)
    end = position + len(written)
    if end < len(text) and (text[end].isalnum() or text[end] in "_$"):
        sentence = f"'{written}{text[end]}' is neither a number nor a name: names begin with a letter, _ or $"
        raise SelectorError("DMQ2505", sentence, text, position)
    return Word(NUMBER, written, position)


def _foreign(text: str, position: int) -> SelectorError:
    for length in (2, 1):
        hint = FOREIGN.get(text[position : position + length])
        if hint is not None:
            return SelectorError("DMQ2502", hint, text, position)
    sentence = (
        f"{text[position]!r} means nothing in a selector: names consist of letters, digits, _ and $, "
        f"all others stand in double quotes"
    )
    return SelectorError("DMQ2502", sentence, text, position)
