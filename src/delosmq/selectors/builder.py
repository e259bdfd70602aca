"""From the tree of a selector to nodes, with the checks that a grammar can't make."""

import math
import struct
from typing import Final

from delosmq.selectors.arithmetic import DIVIDED, MINUS, MODULO, PLUS, TIMES
from delosmq.selectors.comparison import AFTER, BEFORE, LONG_MAX, SAME, UNLIKE
from delosmq.selectors.errors import DEEPEST, SelectorError, too_deep
from delosmq.selectors.lexer import NAME, NUMBER, QUOTED_NAME, STRING, Word
from delosmq.selectors.like import like_pattern
from delosmq.selectors.nodes import (
    And,
    Between,
    Calculation,
    Comparison,
    Condition,
    Constant,
    Flag,
    In,
    IsNull,
    Like,
    Negation,
    Negative,
    Node,
    NotBetween,
    Or,
    Property,
    Truth,
)
from delosmq.selectors.parser import Branch, Part

NOT_SELECTABLE: Final = frozenset(("JMSRedelivered", "JMSXDeliveryCount"))

COMPARISONS: Final = {
    "EQUAL": SAME,
    "NOT_EQUAL": BEFORE | AFTER | UNLIKE,
    "LESS": BEFORE,
    "LESS_EQUAL": BEFORE | SAME,
    "GREATER": AFTER,
    "GREATER_EQUAL": SAME | AFTER,
}
OPERATORS: Final = {"PLUS": PLUS, "MINUS": MINUS, "TIMES": TIMES, "DIVIDED": DIVIDED, "MODULO": MODULO}


class Builder:
    """Builds the nodes of one selector. ``convert``: text is read as a number or truth value where one is wanted."""

    def __init__(self, text: str, convert: bool) -> None:
        self._text = text
        self._convert = convert
        # One node for each name, however often it stands there: a long selector takes a third less memory.
        self._properties: dict[str, Property] = {}

    def condition(self, part: Part, depth: int) -> Condition:
        """The node of ``part``, which has to say yes or no.

        Raises:
            SelectorError: it does not, or something in it makes no sense.
        """
        node = self.node(part, depth)
        if isinstance(node, Condition):
            return node
        if isinstance(node, Property):
            return Flag(node.name)
        what = "text" if isinstance(node, Constant) and isinstance(node.value, str) else "a number"
        raise self._wrong("DMQ2509", f"a condition is expected here, not {what}: compare it with something", part)

    def node(self, part: Part, depth: int) -> Node:
        """The node of ``part``.

        Raises:
            SelectorError: something in it makes no sense.
        """
        if isinstance(part, Word):
            return self._leaf(part)
        if depth > DEEPEST:
            raise too_deep(self._text, start_of(part))
        kind = part.kind
        inner = depth + 1
        if kind in ("group", "positive"):
            return self.node(part.children[-1], inner)
        if kind == "either":
            return Or([self.condition(child, inner) for child in part.children])
        if kind == "both":
            return And([self.condition(child, inner) for child in part.children])
        if kind == "negation":
            return Negation(self.condition(part.children[0], inner))
        if kind == "comparison":
            return self._comparison(part.children, inner)
        if kind == "calculation":
            return self._calculation(part.children, inner)
        if kind == "negative":
            return self._negative(part.children[1], inner)
        return self._predicate(kind, part.children, inner)

    def _predicate(self, kind: str, parts: list[Part], depth: int) -> Condition:
        if kind == "between":
            value, low, high = [self._ordered(part, depth) for part in parts]
            return Between(value, low, high, self._convert)
        if kind == "not_between":
            value, low, high = [self._ordered(part, depth) for part in parts]
            return NotBetween(value, low, high, self._convert)
        if kind.endswith("like"):
            condition: Condition = self._like(parts, depth)
        elif kind.endswith("among"):
            condition = self._among(parts, depth)
        else:
            condition = IsNull(self.node(parts[0], depth))
        return Negation(condition) if kind.startswith("not_") else condition

    def _comparison(self, parts: list[Part], depth: int) -> Condition:
        left, operator, right = parts
        kind = operator.kind
        if kind in ("EQUAL", "NOT_EQUAL"):
            first, second = self.node(left, depth), self.node(right, depth)
        else:
            first, second = self._ordered(left, depth), self._ordered(right, depth)
        return Comparison(first, second, COMPARISONS[kind], self._convert)

    def _ordered(self, part: Part, depth: int) -> Node:
        """An operand of a comparison that asks for an order: text and truth values have none."""
        node = self.node(part, depth)
        if isinstance(node, Truth) and node.value is None:
            return node
        if isinstance(node, Condition):
            raise self._wrong("DMQ2510", "a condition is neither less nor more than something: use = or <>", part)
        if isinstance(node, Constant) and isinstance(node.value, str):
            raise self._wrong("DMQ2510", "text is neither less nor more than something: use =, <>, LIKE or IN", part)
        return node

    def _calculation(self, parts: list[Part], depth: int) -> Node:
        left, operator, right = parts
        kind = OPERATORS[operator.kind]
        first = self._operand(left, depth, joins=kind == PLUS)
        second = self._operand(right, depth, joins=kind == PLUS)
        return Calculation(first, kind, second, self._convert)

    def _operand(self, part: Part, depth: int, joins: bool) -> Node:
        node = self.node(part, depth)
        if isinstance(node, Truth) and node.value is None:
            return node
        if isinstance(node, Condition):
            raise self._wrong("DMQ2512", "a number is expected here, not a condition", part)
        if isinstance(node, Constant) and isinstance(node.value, str) and not joins and not self._convert:
            raise self._wrong("DMQ2512", "a number is expected here, not text", part)
        return node

    def _negative(self, part: Part, depth: int) -> Node:
        if isinstance(part, Word) and part.kind == NUMBER:
            # -9223372036854775808 is a long, though what stands after the minus is none.
            return Constant(self._number(part, negative=True))
        return Negative(self._operand(part, depth, joins=False), self._convert)

    def _like(self, parts: list[Part], depth: int) -> Condition:
        value = self.node(parts[0], depth)
        escape = ""
        if len(parts) == 3:
            escape = _text_of(parts[2])
            if len(escape) != 1:
                raise self._wrong("DMQ2511", "ESCAPE takes one character in single quotes, such as '\\'", parts[2])
        return Like(value, like_pattern(_text_of(parts[1]), escape))

    def _among(self, parts: list[Part], depth: int) -> Condition:
        value = self.node(parts[0], depth)
        if not isinstance(value, Property):
            raise self._wrong("DMQ2513", "before IN stands the name of a property, nothing else", parts[0])
        return In(value.name, frozenset([_text_of(text) for text in parts[1:]]))

    def _leaf(self, word: Word) -> Node:
        kind, text = word.kind, word.text
        if kind in (NAME, QUOTED_NAME):
            if text in NOT_SELECTABLE:
                sentence = f"{text} differs from delivery to delivery, so nothing can be selected by it"
                raise self._wrong("DMQ2514", sentence, word)
            known = self._properties.get(text)
            if known is None:
                known = Property(text)
                self._properties[text] = known
            return known
        if kind == STRING:
            return Constant(text)
        if kind == NUMBER:
            return Constant(self._number(word, negative=False))
        if kind == "NULL":
            return Truth(None)
        return Truth(kind == "TRUE")

    def _number(self, word: Word, negative: bool) -> int | float:
        written = word.text.lower()
        sign = -1 if negative else 1
        if written.startswith("0x"):
            return self._long(word, sign * int(written.removesuffix("l"), 16))
        digits = written.removesuffix("l")
        if digits.isdigit():
            octal = len(digits) > 1 and digits.startswith("0")
            if octal and ("8" in digits or "9" in digits):
                sentence = f"{written} begins with 0 and so is octal, where 8 and 9 don't exist: leave out the 0"
                raise self._wrong("DMQ2508", sentence, word)
            if len(digits) > 30 and len(digits.lstrip("0")) > 30:
                return self._long(word, sign * (LONG_MAX + 2))
            return self._long(word, sign * int(digits, 8 if octal else 10))
        if digits != written:
            raise self._wrong("DMQ2508", "a number that ends in L has neither point nor exponent", word)
        return sign * self._double(word, written)

    def _long(self, word: Word, number: int) -> int:
        if not -LONG_MAX - 1 <= number <= LONG_MAX:
            sentence = f"{_short(word)} does not fit in 64 bits; as a floating point number it ends in D or .0"
            raise self._wrong("DMQ2508", sentence, word)
        return number

    def _double(self, word: Word, written: str) -> float:
        number = float(written.rstrip("df"))
        if written.endswith("f") and not math.isinf(number):
            try:
                number = float(struct.unpack("<f", struct.pack("<f", number))[0])
            except OverflowError:
                number = math.inf
        if math.isinf(number):
            raise self._wrong("DMQ2508", f"{_short(word)} is larger than floating point numbers get", word)
        return number

    def _wrong(self, code: str, sentence: str, part: Part) -> SelectorError:
        return SelectorError(code, sentence, self._text, start_of(part))


def start_of(part: Part) -> int:
    """Where the first word of ``part`` stands."""
    while isinstance(part, Branch):
        part = part.children[0]
    return part.position


def _text_of(part: Part) -> str:
    return part.text if isinstance(part, Word) else ""


def _short(word: Word) -> str:
    text = word.text
    return text if len(text) <= 40 else f"{text[:37]}..."
