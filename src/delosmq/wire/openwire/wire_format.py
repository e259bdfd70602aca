"""What two peers have agreed on, and what they remember of each other's values."""

from typing import Final

from delosmq.wire.openwire import errors
from delosmq.wire.openwire.commands import Structure
from delosmq.wire.openwire.layout import LAYOUTS, NEWEST_VERSION, OLDEST_VERSION, Field

CACHE_SIZE: Final = 1_024
"""Values remembered of one peer at most. Source: the cacheSize that the Java client asks for."""


class WireFormat:
    """How commands are encoded on one connection, in both directions.

    Attributes:
        tight: booleans are packed into bits ahead of the other fields, numbers and strings are shortened.
        caching: ids and destinations may be sent once and then by number. We only ever send them in full.
        stack_traces: exceptions travel with their stack and cause.
        max_frame_bytes: the largest frame that the peer takes, without its size.
        too_large: names a message that has not been sent for that; "" as long as all fitted.
        plain: none of the above, so that messages can be relayed as they are.
    """

    def __init__(
        self,
        version: int,
        *,
        tight: bool = False,
        caching: bool = False,
        stack_traces: bool = False,
        max_frame_bytes: int = (1 << 63) - 1,
    ) -> None:
        if version < OLDEST_VERSION:
            raise errors.no_such_version(version)
        self.version = min(version, NEWEST_VERSION)
        self.tight = tight
        self.caching = caching
        self.stack_traces = stack_traces
        self.max_frame_bytes = max_frame_bytes
        self.too_large: str = ""
        self.plain: bool = not (tight or caching or stack_traces)
        self.layout: dict[int, tuple[Field, ...]] = LAYOUTS[self.version]
        self._remembered: dict[int, Structure | None] = {}

    def remember(self, index: int, value: Structure | None) -> None:
        """Keeps what the peer sent in full under a number; a negative one is not kept."""
        if index >= CACHE_SIZE:
            raise errors.not_cached(index)
        if index >= 0:
            self._remembered[index] = value

    def recall(self, index: int) -> Structure | None:
        """What the peer sent under a number.

        Raises:
            PeerError: DMQ5213, nothing was.
        """
        if index not in self._remembered:
            raise errors.not_cached(index)
        return self._remembered[index]


PLAIN_FORMATS: Final = [WireFormat(max(OLDEST_VERSION, version)) for version in range(NEWEST_VERSION + 1)]
"""Loosely encoded, nothing cached: what real clients end up with. By version."""
