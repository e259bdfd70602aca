"""Counters of a queue: how many messages came, and how they left."""


class QueueCounters:
    """Messages since the start.

    Attributes:
        added: that entered the queue.
        acknowledged, replaced, killed, expired: by how they left; killed went to the dead-letter address or were
            dropped for want of one, expired ones likewise.
        rolled_back: that were acknowledged in a transaction which was rolled back.
    """

    def __init__(self) -> None:
        self.added: int = 0
        self.acknowledged: int = 0
        self.replaced: int = 0
        self.killed: int = 0
        self.expired: int = 0
        self.rolled_back: int = 0

    @property
    def acknowledge_attempts(self) -> int:
        """Messages that were to end, for whatever reason; in a transaction once that is over."""
        return self.acknowledged + self.replaced + self.killed + self.expired + self.rolled_back
