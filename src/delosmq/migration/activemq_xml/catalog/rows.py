"""What one name of activemq.xml becomes: a row of the tables in `policies` and `broker`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from delosmq.config.broker_xml.catalog.table import Policy
from delosmq.config.broker_xml.catalog.table import Table as Catalogue
from delosmq.migration.activemq_xml.conversion_report import ConversionReport, RemarkKind
from delosmq.migration.activemq_xml.source import is_open, note_reference
from delosmq.model import values

Read = Callable[[str], str]
"""Value of activemq.xml -> value of broker.xml; raises ValueError with the rest of "... must be"."""


def number(text: str) -> str:
    return str(values.parse_integer(text))


def count(text: str) -> str:
    """A whole number of at least 0."""
    return str(values.at_least(0)(text))


def credit(text: str) -> str:
    return str(values.at_least(0, most=values.MOST_CREDIT)(text))


def limit(text: str) -> str:
    """A whole number; all below 0 stand for none."""
    return str(max(values.parse_integer(text), -1))


def page(text: str) -> str:
    """A whole number; all below 1 stand for no bound."""
    number_of = values.parse_integer(text)
    return str(number_of if number_of > 0 else -1)


def seconds(text: str) -> str:
    """A number of milliseconds, as one of whole seconds: at least 1."""
    return str(max(1, -(-values.parse_integer(text) // 1000)))


def boolean(text: str) -> str:
    return "true" if values.parse_boolean(text) else "false"


def factor(text: str) -> str:
    return str(values.parse_multiplier(text))


def size(text: str) -> str:
    """A size with or without a unit, all powers of 1024 in Classic too."""
    amount = values.parse_bytes(text.strip())
    for unit, letter in ((1024**3, "G"), (1024**2, "M"), (1024, "K")):
        if amount and amount % unit == 0:
            return f"{amount // unit}{letter}"
    return str(amount)


@dataclass(frozen=True)
class Row:
    """One name of activemq.xml.

    Attributes:
        about: what it does there; completes "it ...".
        to: the name of broker.xml that does it; it converts as soon as that name is in effect. "" when there is none.
        read: of its value.
        default: what broker.xml has to say where Classic's default holds.
        harmless: values, in lower case, that ask for nothing which DelosMQ does not do anyway.
        instead: what to do where it can't be converted; completes "...; it".
        needless: there is nothing to convert: why.
        topics_only, queues_only: it means something for one of the two.
    """

    name: str
    about: str = ""
    to: str = ""
    read: Read = boolean
    default: str = ""
    harmless: tuple[str, ...] = ()
    instead: str = ""
    needless: str = ""
    topics_only: bool = False
    queues_only: bool = False


queues = partial(Row, queues_only=True)
topics = partial(Row, topics_only=True)

Rows = dict[str, Row]


def rows(*groups: list[Row]) -> Rows:
    return {row.name: row for group in groups for row in group}


def needless_all(names: str, why: str) -> list[Row]:
    """One row that converts to nothing for each of the space-separated ``names``."""
    return [Row(name, needless=why) for name in names.split()]


def impossible(name: str, about: str, instead: str, *harmless: str) -> Row:
    """A row that can't be converted unless its value is one of ``harmless``."""
    return Row(name, about, instead=instead, harmless=harmless)


def impossible_all(names: str, about: str, instead: str, *harmless: str) -> list[Row]:
    """One `impossible` for each of the space-separated ``names``."""
    return [impossible(name, about, instead, *harmless) for name in names.split()]


def is_in_effect(name: str, catalogue: Catalogue) -> bool:
    """Whether DelosMQ obeys a name of broker.xml today."""
    item = catalogue.get(name)
    return item is not None and item.policy is Policy.IN_EFFECT


# Letters of a value that a sentence repeats.
_MOST_SHOWN: Final = 60


class RowReader:
    """Puts names with their values to the rows of one table.

    Args:
        catalogue: says which of the targets are in effect.
        target: how people call such a target, such as "address-setting".
    """

    def __init__(self, table: Rows, catalogue: Catalogue, target: str, remarks: ConversionReport) -> None:
        self.table = table
        self._catalogue = catalogue
        self._target = target
        self._remarks = remarks

    def read_all(self, attributes: Mapping[str, str], line: int, element: str, place: str) -> dict[str, str]:
        """What the attributes of an element become, by the names of their targets.

        Args:
            place: the element, for people.
        """
        read: dict[str, str] = {}
        for name, text in attributes.items():
            row = self.table.get(name)
            if row is None and text.startswith("#"):
                note_reference(self._remarks, line, f"{name!r} of {place}", text)
                continue
            if row is None:
                sentence = f"unknown attribute {name!r} of <{element}>; it is left out"
                self._remarks.add(RemarkKind.UNKNOWN, line, sentence)
                continue
            value = self.read(row, text, line, f"{name!r} of {place}")
            if value is not None:
                read[row.to] = value
        return read

    def read(self, row: Row, text: str, line: int, what: str) -> str | None:
        """What the target of ``row`` is to say; None when there is nothing to say or after listing why not.

        Args:
            what: the name with its place, for people.
        """
        if row.needless:
            self._remarks.add(RemarkKind.NEEDLESS, line, f"{what} is not needed: {row.needless}")
            return None
        if is_open(text):
            sentence = f"{what} has a placeholder that stands for nothing here and is left out; give its value with "
            self._remarks.add(RemarkKind.WRONG, line, f"{sentence}--define or --properties")
            return None
        if row.to and is_in_effect(row.to, self._catalogue):
            return self._value(row, text, line, what)
        if text.lower() not in row.harmless:
            self._left_out(row, text, line, what)
        return None

    def _value(self, row: Row, text: str, line: int, what: str) -> str | None:
        try:
            return row.read(text)
        except ValueError as rule:
            self._remarks.add(
                RemarkKind.WRONG, line, f"{what} is {text[:_MOST_SHOWN]!r} but must be {rule}; it is left out"
            )
            return None

    def _left_out(self, row: Row, text: str, line: int, what: str) -> None:
        # A bean is there or not; an attribute says something.
        shown = "" if what.startswith("<") else f" ({text[:_MOST_SHOWN]})"
        remedy = f"; {row.instead}" if row.instead else ""
        if row.to:
            sentence = f"{what}{shown} is left out: it {row.about}, and no {self._target} does so yet{remedy}"
            self._remarks.add(RemarkKind.NOT_YET, line, sentence)
        else:
            self._remarks.add(RemarkKind.IMPOSSIBLE, line, f"{what}{shown} is left out: it {row.about}{remedy}")
