"""Words for sentences that people read."""


def counted(count: int, singular: str, plural: str = "") -> str:
    """A number and what it counts: ``1 queue``, ``2 queues``.

    Args:
        plural: where it is not the singular with an s.
    """
    return f"{count} {singular}" if count == 1 else f"{count} {plural or singular + 's'}"
