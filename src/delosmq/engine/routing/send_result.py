"""The result of a send."""

from typing import Final

ROUTED: Final = 1
NO_ROUTE: Final = 2
"""No queue took it; as in Artemis that is not an error."""
DROPPED: Final = 3
"""The address is full and its policy is DROP."""
BLOCKED: Final = 4
"""The address is full and its policy is BLOCK: nothing has changed, send again at `SpaceWaiter.on_space`."""
DUPLICATE: Final = 5
"""The address has seen this duplicate id: nothing has changed, the message is there already. A confirmation waits for
the log's position, as what is there may not be synced yet."""
