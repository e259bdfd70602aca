"""Properties in the test's hand."""

from delosmq.model.properties import Properties, PropertyValue
from delosmq.selectors.selector import parse_selector


class Given(Properties):
    def __init__(self, values: dict[str, PropertyValue]) -> None:
        self.values = values

    def value(self, name: str) -> PropertyValue | None:
        return self.values.get(name)


def holds(text: str, **values: PropertyValue) -> bool | None:
    """True, False, or None for unknown: a selector and its opposite tell which."""
    if parse_selector(text).matches(Given(values)):
        return True
    prefix, separator, rest = text.rpartition("_expressions:")
    opposite = f"{prefix}{separator}NOT ({rest})"
    return False if parse_selector(opposite).matches(Given(values)) else None
