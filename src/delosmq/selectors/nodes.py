"""A parsed selector: nodes that evaluate themselves against the properties of a message.

A value that a message does not have is None, and so is a condition that is neither true nor false: the third
truth value, UNKNOWN.
"""

import re
from abc import ABC, abstractmethod

from delosmq.model.properties import Properties, PropertyValue
from delosmq.selectors.arithmetic import calculated, negated
from delosmq.selectors.comparison import AFTER, BEFORE, SAME, verdict


class Node(ABC):
    """Has a value for each message."""

    @abstractmethod
    def evaluate(self, properties: Properties) -> PropertyValue | None:
        """Its value for one message; None when there is none."""


class Condition(Node):
    """A node with the value true, false or unknown (None)."""

    @abstractmethod
    def evaluate(self, properties: Properties) -> bool | None:
        """Whether it holds for one message."""


class Property(Node):
    """What a message carries under a name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def evaluate(self, properties: Properties) -> PropertyValue | None:
        return properties.value(self.name)


class Constant(Node):
    """A number or text that the selector itself states."""

    def __init__(self, value: PropertyValue) -> None:
        self.value = value

    def evaluate(self, properties: Properties) -> PropertyValue | None:
        return self.value


class Truth(Condition):
    """TRUE, FALSE or NULL."""

    def __init__(self, value: bool | None) -> None:
        self.value = value

    def evaluate(self, properties: Properties) -> bool | None:
        return self.value


class Flag(Condition):
    """A property where a condition is wanted: true only when it is the truth value true."""

    def __init__(self, name: str) -> None:
        self.name = name

    def evaluate(self, properties: Properties) -> bool | None:
        value = properties.value(self.name)
        if value is None:
            return None
        return value if isinstance(value, bool) else False


class And(Condition):
    """Conditions joined by AND."""

    def __init__(self, parts: list[Condition]) -> None:
        self.parts = parts

    def evaluate(self, properties: Properties) -> bool | None:
        answer: bool | None = True
        for part in self.parts:
            held = part.evaluate(properties)
            if held is None:
                answer = None
            elif not held:
                return False
        return answer


class Or(Condition):
    """Conditions joined by OR."""

    def __init__(self, parts: list[Condition]) -> None:
        self.parts = parts

    def evaluate(self, properties: Properties) -> bool | None:
        answer: bool | None = False
        for part in self.parts:
            held = part.evaluate(properties)
            if held is None:
                answer = None
            elif held:
                return True
        return answer


class Negation(Condition):
    def __init__(self, part: Condition) -> None:
        self.part = part

    def evaluate(self, properties: Properties) -> bool | None:
        held = self.part.evaluate(properties)
        return None if held is None else not held


class Comparison(Condition):
    """``=``, ``<>``, ``<``, ``<=``, ``>`` or ``>=``; ``true_when`` is the set of outcomes for which it holds."""

    def __init__(self, left: Node, right: Node, true_when: int, convert: bool) -> None:
        self.left = left
        self.right = right
        self.true_when = true_when
        self.convert = convert

    def evaluate(self, properties: Properties) -> bool | None:
        left = self.left.evaluate(properties)
        if left is None:
            return None
        return verdict(left, self.right.evaluate(properties), self.true_when, self.convert)


class Between(Condition):
    """BETWEEN: ``value >= low AND value <= high``."""

    def __init__(self, value: Node, low: Node, high: Node, convert: bool) -> None:
        self.value = value
        self.low = low
        self.high = high
        self.convert = convert

    def evaluate(self, properties: Properties) -> bool | None:
        value = self.value.evaluate(properties)
        above = verdict(value, self.low.evaluate(properties), SAME | AFTER, self.convert)
        if above is not None and not above:
            return False
        below = verdict(value, self.high.evaluate(properties), BEFORE | SAME, self.convert)
        if below is not None and not below:
            return False
        return None if above is None or below is None else True


class NotBetween(Between):
    """NOT BETWEEN: ``value < low OR value > high``, hence false when the types don't compare."""

    def evaluate(self, properties: Properties) -> bool | None:
        value = self.value.evaluate(properties)
        below = verdict(value, self.low.evaluate(properties), BEFORE, self.convert)
        if below is not None and below:
            return True
        above = verdict(value, self.high.evaluate(properties), AFTER, self.convert)
        if above is not None and above:
            return True
        return None if above is None or below is None else False


class Like(Condition):
    """LIKE; false for what is no text."""

    def __init__(self, value: Node, pattern: re.Pattern[str]) -> None:
        self.value = value
        self.pattern = pattern

    def evaluate(self, properties: Properties) -> bool | None:
        value = self.value.evaluate(properties)
        if value is None:
            return None
        return isinstance(value, str) and self.pattern.fullmatch(value) is not None


class In(Condition):
    """IN; false for what is no text."""

    def __init__(self, name: str, texts: frozenset[str]) -> None:
        self.name = name
        self.texts = texts

    def evaluate(self, properties: Properties) -> bool | None:
        value = properties.value(self.name)
        if value is None:
            return None
        return isinstance(value, str) and value in self.texts


class IsNull(Condition):
    """IS NULL: the only condition that says something of a value that isn't there."""

    def __init__(self, value: Node) -> None:
        self.value = value

    def evaluate(self, properties: Properties) -> bool | None:
        return self.value.evaluate(properties) is None


class Calculation(Node):
    def __init__(self, left: Node, operator: int, right: Node, convert: bool) -> None:
        self.left = left
        self.operator = operator
        self.right = right
        self.convert = convert

    def evaluate(self, properties: Properties) -> PropertyValue | None:
        left = self.left.evaluate(properties)
        right = self.right.evaluate(properties)
        if left is None or right is None:
            return None
        return calculated(left, self.operator, right, self.convert)


class Negative(Node):
    """A minus sign before a value."""

    def __init__(self, value: Node, convert: bool) -> None:
        self.value = value
        self.convert = convert

    def evaluate(self, properties: Properties) -> PropertyValue | None:
        value = self.value.evaluate(properties)
        return None if value is None else negated(value, self.convert)
