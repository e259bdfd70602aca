"""The syntax of Java's regular expressions, read into a tree.

What can't be matched in a time that grows with the value alone is refused, and what would mean something else than in
Java. Source: java.util.regex.Pattern.
"""

import re
from typing import Final

MOST_REPEATS: Final = 1_000
_DEEPEST: Final = 50
"""Groups within groups."""
_HEX: Final = frozenset("0123456789abcdefABCDEF")
_SETS: Final = {"d": "0-9", "w": "a-zA-Z0-9_", "s": " \\t\\n\\x0b\\f\\r", "h": " \\xa0\\t"}
"""In ASCII, as Java has them, written as Python has it within brackets."""
_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\x07", "e": "\x1b"}
_LINE_ENDS: Final = "\\n\\r\\x85\\u2028\\u2029"
_COUNTS: Final = re.compile(r"\{(\d{1,10})(,(\d{0,10}))?\}", re.ASCII)
_NAME: Final = re.compile(r"\(\?<[a-zA-Z][a-zA-Z0-9]*>", re.ASCII)
_FLAGS: Final = re.compile(r"\(\?([a-zA-Z]*)(-[a-zA-Z]*)?([:)])")
POSITIONS: Final = frozenset("^$bBAzZ")
"""What `Position.kind` is: the letter that writes it."""


class RegexNode:
    """A piece of an expression."""


class OneOf(RegexNode):
    """One letter.

    Attributes:
        letters: takes a text of one letter, or does not.
    """

    def __init__(self, letters: re.Pattern[str]) -> None:
        self.letters = letters


class Position(RegexNode):
    """A place between letters."""

    def __init__(self, kind: str) -> None:
        self.kind = kind


class Sequence(RegexNode):
    """One after the other."""

    def __init__(self, nodes: list[RegexNode]) -> None:
        self.nodes = nodes


class Choice(RegexNode):
    """The first that fits."""

    def __init__(self, nodes: list[RegexNode]) -> None:
        self.nodes = nodes


class Repeat(RegexNode):
    """As often as there is, or as seldom.

    Attributes:
        most: -1 for any number.
    """

    def __init__(self, node: RegexNode, least: int, most: int, *, greedy: bool) -> None:
        self.node = node
        self.least = least
        self.most = most
        self.greedy = greedy


class Ahead(RegexNode):
    """What follows, without being taken.

    Attributes:
        wanted: whether it has to follow, or must not.
    """

    def __init__(self, node: RegexNode, *, wanted: bool) -> None:
        self.node = node
        self.wanted = wanted


class RegexParser:
    """Reads one expression. A fault is a ValueError with the rest of "must be"."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0
        self._ignores_case = False
        self._dot_takes_all = False

    def parse(self) -> RegexNode:
        node = self._choice()
        if self._at < len(self._text):
            raise self._fault("a ) that closes nothing")
        return node

    def _fault(self, what: str) -> ValueError:
        return ValueError(f"a regular expression of Java: {what} stands at letter {self._at + 1}")

    def _unsupported(self, what: str) -> ValueError:
        return ValueError(
            f"a regular expression without {what} (at letter {self._at + 1}), which this broker does not match; write "
            "it without"
        )

    def _follows(self, what: str) -> bool:
        return self._text.startswith(what, self._at)

    def _choice(self) -> RegexNode:
        flags = (self._ignores_case, self._dot_takes_all)
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._unsupported(f"groups in more than {_DEEPEST} groups")
        found = [self._sequence()]
        while self._follows("|"):
            self._at += 1
            found.append(self._sequence())
        self._depth -= 1
        # Flags count to the end of the group in which they stand.
        self._ignores_case, self._dot_takes_all = flags
        return found[0] if len(found) == 1 else Choice(found)

    def _sequence(self) -> RegexNode:
        found: list[RegexNode] = []
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            if self._follows("\\Q"):
                found.extend(self._quoted())
                continue
            atom = self._atom()
            if atom is not None:
                found.append(self._repeated(atom))
        return Sequence(found)

    def _quoted(self) -> list[RegexNode]:
        end = self._text.find("\\E", self._at)
        quoted = self._text[self._at + 2 : end if end >= 0 else None]
        nodes: list[RegexNode] = [self._letter(letter) for letter in quoted]
        self._at = end + 2 if end >= 0 else len(self._text)
        if nodes:
            nodes[-1] = self._repeated(nodes[-1])
        return nodes

    def _repeated(self, node: RegexNode) -> RegexNode:
        if self._at >= len(self._text):
            return node
        letter = self._text[self._at]
        if letter not in "*+?{":
            return node
        least, most = {"*": (0, -1), "+": (1, -1), "?": (0, 1)}.get(letter, (0, 0))
        if letter == "{":
            counts = _COUNTS.match(self._text, self._at)
            if counts is None:
                raise self._fault("a { without {n}, {n,} or {n,m}")
            least = int(counts.group(1))
            most = least if counts.group(2) is None else int(counts.group(3)) if counts.group(3) else -1
            if most != -1 and most < least:
                raise self._fault("{n,m} with n above m")
            if max(least, most) > MOST_REPEATS:
                raise self._unsupported(f"more than {MOST_REPEATS} repetitions")
            self._at = counts.end()
        else:
            self._at += 1
        greedy = not self._follows("?")
        if not greedy:
            self._at += 1
        if self._at < len(self._text) and self._text[self._at] in "*+?{":
            if self._follows("+"):
                raise self._unsupported("a possessive quantifier such as a*+")
            raise self._fault("a quantifier behind another one")
        return Repeat(node, least, most, greedy=greedy)

    def _atom(self) -> RegexNode | None:
        """None for what stands for nothing, such as flags."""
        letter = self._text[self._at]
        match letter:
            case "(":
                return self._group()
            case "[":
                return self._in_brackets()
            case "\\":
                return self._escaped()
            case "." | "^" | "$":
                self._at += 1
                if letter != ".":
                    return Position(letter)
                return self._one_of("[\\s\\S]" if self._dot_takes_all else f"[^{_LINE_ENDS}]")
            case "*" | "+" | "?" | "{":
                raise self._fault(f"a {letter} with nothing before it to repeat")
        self._at += 1
        return self._letter(letter)

    def _letter(self, letter: str) -> RegexNode:
        return self._one_of(re.escape(letter))

    def _one_of(self, pattern: str) -> RegexNode:
        try:
            return OneOf(re.compile(pattern, re.ASCII | (re.IGNORECASE if self._ignores_case else 0)))
        except re.error as error:
            raise self._fault(str(error)) from None

    def _group(self) -> RegexNode | None:
        begin = self._at
        ahead = self._follows("(?=") or self._follows("(?!")
        wanted = self._follows("(?=")
        flags = (self._ignores_case, self._dot_takes_all)
        if self._follows("(?<=") or self._follows("(?<!"):
            raise self._unsupported("looking back by (?<= or (?<!")
        if self._follows("(?>"):
            raise self._unsupported("an independent group, (?>")
        named = _NAME.match(self._text, begin)
        if ahead:
            self._at += 3
        elif named is not None:
            self._at = named.end()
        elif not self._follows("(?"):
            self._at += 1
        elif self._flags() == ")":
            return None
        inner = self._choice()
        self._ignores_case, self._dot_takes_all = flags
        if not self._follows(")"):
            self._at = begin
            raise self._fault("a ( that is not closed")
        self._at += 1
        return Ahead(inner, wanted=wanted) if ahead else inner

    def _flags(self) -> str:
        """Reads ``(?i)`` or ``(?i-s:``. Returns how it ends."""
        found = _FLAGS.match(self._text, self._at)
        if found is None:
            raise self._fault("a (? that Java does not know")
        on, off = found.group(1), (found.group(2) or "-")[1:]
        if set(on + off) - {"i", "s"}:
            raise self._unsupported("flags other than i and s")
        self._ignores_case = "i" not in off and (self._ignores_case or "i" in on)
        self._dot_takes_all = "s" not in off and (self._dot_takes_all or "s" in on)
        self._at = found.end()
        return found.group(3)

    def _escaped(self) -> RegexNode:
        """What a backslash makes, outside of brackets."""
        letter = self._text[self._at + 1 : self._at + 2]
        if letter and letter in POSITIONS:
            self._at += 2
            return Position(letter)
        if (letter.isdigit() and letter != "0") or letter == "k":
            raise self._unsupported("a reference to a group")
        return self._one_of(f"[{self._set_or_letter()}]")

    def _set_or_letter(self) -> str:
        """What a backslash makes, as Python writes it within brackets."""
        begin = self._at
        letter = self._text[begin + 1 : begin + 2]
        self._at += 2
        if letter in _SETS:
            return _SETS[letter]
        if letter and letter.lower() in _SETS:
            return _complement(letter.lower())
        if letter in _CONTROLS:
            return re.escape(_CONTROLS[letter])
        if letter in ("x", "u"):
            digits = self._text[self._at : self._at + (2 if letter == "x" else 4)]
            if len(digits) == (2 if letter == "x" else 4) and set(digits) <= _HEX:
                self._at += len(digits)
                return re.escape(chr(int(digits, 16)))
        if letter and not (letter.isascii() and letter.isalnum()):
            return re.escape(letter)
        self._at = begin
        if letter in ("p", "P"):
            raise self._unsupported("\\p and \\P")
        raise self._fault(f"\\{letter}, which means nothing" if letter else "a \\ with nothing behind it")

    def _in_brackets(self) -> RegexNode:
        begin = self._at
        self._at += 1
        pieces = ["[^" if self._follows("^") else "["]
        self._at += self._follows("^")
        first = True
        while first or not self._follows("]"):
            if self._at >= len(self._text):
                self._at = begin
                raise self._fault("a [ that is not closed")
            pieces.append(self._in_bracket())
            first = False
        self._at += 1
        return self._one_of("".join(pieces) + "]")

    def _in_bracket(self) -> str:
        """One letter, set or range within brackets."""
        if self._follows("["):
            raise self._unsupported("a [ within [ ], which is a union in Java; write \\[ for the letter")
        if self._follows("&&"):
            raise self._unsupported("&& within [ ], which is an intersection in Java; write \\&& for the letters")
        begin = self._at
        low = self._bracket_letter()
        if not self._follows("-") or self._text[self._at + 1 : self._at + 2] in ("]", ""):
            return low
        self._at += 1
        high = low if self._follows("[") else self._bracket_letter()
        if max(len(low), len(high)) > len("\\n"):  # a set such as \d
            self._at = begin
            raise self._fault("a range without two letters")
        try:
            re.compile(f"[{low}-{high}]")
        except re.error:
            self._at = begin
            raise self._fault("a range that is none") from None
        return f"{low}-{high}"

    def _bracket_letter(self) -> str:
        if self._follows("\\"):
            if self._follows("\\Q") or self._follows("\\E"):
                raise self._unsupported("\\Q and \\E within [ ]")
            return self._set_or_letter()
        letter = self._text[self._at]
        self._at += 1
        return re.escape(letter) if letter != "^" else "\\^"


def _complement(letter: str) -> str:
    """All but the set that ``letter`` names, written within brackets."""
    taken = re.compile(f"[{_SETS[letter]}]", re.ASCII)
    free = [code for code in range(256) if not taken.match(chr(code))]
    return "".join(f"\\x{code:02x}" for code in free) + "\\u0100-\\U0010ffff"
