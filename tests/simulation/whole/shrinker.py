"""Makes a failing history short: leaves out what it does not need to fail."""

import re

from tests.simulation.whole.history import HONEST, Broken, Canary, run_history

ATTEMPTS = 600


def failure_of(seed: int, canary: Canary = HONEST, kept: list[int] | None = None) -> Broken | None:
    """How a seed fails; None when it doesn't."""
    try:
        run_history(seed, canary, kept)
    except Broken as failure:
        return failure
    return None


def shrink(seed: int, canary: Canary = HONEST) -> tuple[list[int], Broken] | None:
    """The steps, by index, of a short history that fails as the whole one does, and its failure; None: it doesn't."""
    failure = failure_of(seed, canary)
    if failure is None:
        return None
    kept = failure.indexes
    shorter = failure_of(seed, canary, kept)
    if shorter is None:
        return failure.indexes, failure
    failure = shorter
    attempts = 0
    size = max(1, len(kept) // 2)
    while True:
        at = 0
        removed = False
        while at < len(kept) and attempts < ATTEMPTS:
            attempts += 1
            fewer = kept[:at] + kept[at + size :]
            shorter = failure_of(seed, canary, fewer)
            if shorter is not None and _kind(shorter) == _kind(failure):
                kept, failure, removed = fewer, shorter, True
            else:
                at += size
        if attempts >= ATTEMPTS or (size == 1 and not removed):
            return kept, failure
        size = max(1, size // 2)


def _kind(failure: Broken) -> str:
    """What went wrong, whatever the numbers: a shorter history has others."""
    return re.sub(r"\d+", "", str(failure))[:60]


def ranges(kept: list[int]) -> str:
    """``1,4-6`` for 1, 4, 5, 6."""
    parts: list[list[int]] = []
    for index in kept:
        if parts and parts[-1][1] == index - 1:
            parts[-1][1] = index
        else:
            parts.append([index, index])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


def indexes(text: str) -> list[int]:
    """The other way round."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found
