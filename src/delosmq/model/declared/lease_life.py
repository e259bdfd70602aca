"""How the reader of a lease group shows that it lives: what its broker, the reader and the command line agree on."""

from typing import Final

HEARTBEAT_MS: Final = 15_000
"""How often a reader that works on a batch calls its broker at the latest: a quarter of the window below, so that
three calls may fail, or come late from a busy machine."""
LIVE_WINDOW_MS: Final = 60_000
"""A reader heard of this recently counts as alive: another may not take over its group without the incarnation, and an
operator ends the group by force only. Wrongly taken over, both would read its first lease. Not longer, because a
restarted query with nothing in its checkpoint yet looks like a stranger and has to wait as long."""
