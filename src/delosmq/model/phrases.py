"""Words for sentences that people read."""


def counted(count: int, singular: str, plural: str = "") -> str:
    """A number and what it counts: ``1 queue``, ``2 queues``.

    Args:
        plural: where it is not the singular with an s.
    """
    return f"{count} {singular}" if count == 1 else f"{count} {plural or singular + 's'}"


def in_groups(names: list[str], most: int) -> list[list[str]]:
    """The names in their order, at most ``most`` in a group; [] for none."""
    return [names[start : start + most] for start in range(0, len(names), most)]


def one_line(text: str, most: int) -> str:
    """A text of a peer as a line of the log may hold it: at most ``most`` characters, and none that begins a line or
    steers a terminal."""
    rest = len(text) - most
    if rest > 0:
        text = f"{text[:most]}... ({rest} more characters)"
    if text.isprintable():
        return text
    return "".join([each if each.isprintable() else ascii(each)[1:-1] for each in text])
