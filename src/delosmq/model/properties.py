"""The properties of a message, as whoever asks for one by name sees them."""

from abc import ABC, abstractmethod

from mypy_extensions import mypyc_attr

PropertyValue = str | bool | int | float | bytes
"""Whole numbers are within 64 bits, as Java's long."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Properties(ABC):
    """Values by name."""

    @abstractmethod
    def value(self, name: str) -> PropertyValue | None:
        """The application property or header ``name``; None when the message has none."""
