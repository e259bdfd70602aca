"""Temporary destinations of all protocols, told to the protocols that pass them on to their clients.

JMS clients refuse to send to a temporary destination that they have not heard of.
"""

from typing import Final


class TemporaryListener:
    """Is told of temporary destinations."""

    def made(self, address: str, routing: int, owner: str) -> None:
        """A temporary destination exists; ``owner`` is the id of its connection."""

    def ended(self, address: str, routing: int, owner: str) -> None:
        """It is gone."""


NO_LISTENER: Final = TemporaryListener()


class TemporaryDestinations:
    """The temporary destinations of one broker."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, str]] = {}
        self._listener: TemporaryListener = NO_LISTENER

    def listen(self, listener: TemporaryListener) -> None:
        """Tells of those that are there, and of all to come."""
        self._listener = listener
        for address, (routing, owner) in self._known.items():
            listener.made(address, routing, owner)

    def made(self, address: str, routing: int, owner: str) -> None:
        """Told by its maker, which is not within a command of the engine then."""
        self._known[address] = (routing, owner)
        self._listener.made(address, routing, owner)

    def ended(self, address: str) -> None:
        known = self._known.pop(address, None)
        if known is not None:
            self._listener.ended(address, known[0], known[1])
