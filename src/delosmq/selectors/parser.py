"""From the words of a selector to its tree, by the grammar of `grammar`, which says what is wrong where this fails.

Written out by hand as selectors come from peers, up to 8,192 characters long, and are read in the loop.
"""

from typing import Final

from delosmq.selectors.lexer import NAME, NUMBER, QUOTED_NAME, STRING, Word

_VALUES: Final = frozenset((NAME, QUOTED_NAME, STRING, NUMBER, "TRUE", "FALSE", "NULL"))
_EQUAL: Final = ("EQUAL", "NOT_EQUAL")
_ORDER: Final = ("LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")
_SUM: Final = ("PLUS", "MINUS")
_PRODUCT: Final = ("TIMES", "DIVIDED", "MODULO")
_END: Final = Word("", "", 0)


class Branch:
    """What a rule of the grammar made of ``children``; ``kind`` is the name of the rule."""

    def __init__(self, kind: str, children: list["Part"]) -> None:
        self.kind = kind
        self.children = children


Part = Branch | Word


class _Unexpected(Exception):
    """A word stands where none of its kind may."""


def tree_of(text: str, words: list[Word]) -> Part:
    """The tree of ``words``, which stand in ``text``. A single value is a word.

    Raises:
        SelectorError: they are not in the order that the grammar asks for.
    """
    reader = _Parser(words)
    try:
        tree = reader.either()
        if reader.kind == "":
            return tree
    except _Unexpected:
        pass
    # Not before it is needed: lark takes 50 ms to load, and megabytes.
    from delosmq.selectors.grammar import unexpected

    raise unexpected(text, words, reader.at)


class _Parser:
    """Reads words from first to last. A pair of parentheses takes five calls: a hundred of them, one in the other, end
    before Python's stack.

    Attributes:
        at: the next word.
        kind: of that word, "" at the end.
    """

    def __init__(self, words: list[Word]) -> None:
        self._words = words
        self._word: Word = words[0] if words else _END
        self.at: int = 0
        self.kind: str = self._word.kind

    def _next(self) -> Word:
        word = self._word
        self.at += 1
        self._word = self._words[self.at] if self.at < len(self._words) else _END
        self.kind = self._word.kind
        return word

    def _take(self, kind: str) -> Word:
        if self.kind != kind:
            raise _Unexpected
        return self._next()

    def either(self) -> Part:
        """Conditions joined by OR and, binding more, AND; each may have NOT before it."""
        alternatives: list[Part] = []
        together: list[Part] = []
        while True:
            denials = 0
            while self.kind == "NOT":
                self._next()
                denials += 1
            part = self._equality()
            for _ in range(denials):
                part = Branch("negation", [part])
            together.append(part)
            if self.kind != "AND":
                alternatives.append(together[0] if len(together) == 1 else Branch("both", together))
                if self.kind != "OR":
                    return alternatives[0] if len(alternatives) == 1 else Branch("either", alternatives)
                together = []
            self._next()

    def _equality(self) -> Part:
        part = self._relation(self._sum())
        while True:
            if self.kind in _EQUAL:
                operator = self._next()
                part = Branch("comparison", [part, operator, self._relation(self._sum())])
            elif self.kind == "IS":
                self._next()
                kind = "missing"
                if self.kind == "NOT":
                    self._next()
                    kind = "not_missing"
                part = Branch(kind, [part, self._take("NULL")])
            else:
                return part

    def _relation(self, part: Part) -> Part:
        """What follows a sum, and binds more than ``=``."""
        while True:
            if self.kind in _ORDER:
                operator = self._next()
                part = Branch("comparison", [part, operator, self._sum()])
                continue
            prefix = ""
            if self.kind == "NOT":
                self._next()
                if self.kind not in ("LIKE", "BETWEEN", "IN"):
                    raise _Unexpected
                prefix = "not_"
            if self.kind == "LIKE":
                part = Branch(f"{prefix}like", self._pattern(part))
            elif self.kind == "BETWEEN":
                self._next()
                low = self._sum()
                self._take("AND")
                part = Branch(f"{prefix}between", [part, low, self._sum()])
            elif self.kind == "IN":
                part = Branch(f"{prefix}among", self._texts(part))
            else:
                return part

    def _pattern(self, part: Part) -> list[Part]:
        self._next()
        children: list[Part] = [part, self._take(STRING)]
        if self.kind == "ESCAPE":
            self._next()
            children.append(self._take(STRING))
        return children

    def _texts(self, part: Part) -> list[Part]:
        self._next()
        self._take("OPEN")
        children: list[Part] = [part, self._take(STRING)]
        while self.kind == "COMMA":
            self._next()
            children.append(self._take(STRING))
        self._take("CLOSE")
        return children

    def _sum(self) -> Part:
        """Products joined by + and -: what stands before the product that is being read waits."""
        before: Part | None = None
        sign = _END
        part = self._signed()
        while True:
            if self.kind in _PRODUCT:
                operator = self._next()
                part = Branch("calculation", [part, operator, self._signed()])
                continue
            if before is not None:
                part = Branch("calculation", [before, sign, part])
            if self.kind not in _SUM:
                return part
            before, sign = part, self._next()
            part = self._signed()

    def _signed(self) -> Part:
        signs: list[Word] = []
        while self.kind in _SUM:
            signs.append(self._next())
        if self.kind in _VALUES:
            part: Part = self._next()
        else:
            self._take("OPEN")
            part = Branch("group", [self.either()])
            self._take("CLOSE")
        while signs:
            sign = signs.pop()
            part = Branch("negative" if sign.kind == "MINUS" else "positive", [sign, part])
        return part
