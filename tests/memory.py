"""For tests of what is kept: by how much memory has grown."""

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def living(kind: type[object]) -> list[object]:
    """The objects of a class that anything still refers to."""
    gc.collect()
    return [found for found in gc.get_objects() if isinstance(found, kind)]


def reached(start: object, kind: type[object]) -> list[object]:
    """The objects of a class to which another one leads, itself or by its collections."""
    found: list[object] = []
    to_look_at = gc.get_referents(start)
    while to_look_at:
        one = to_look_at.pop()
        if isinstance(one, kind):
            found.append(one)
        elif isinstance(one, (dict, list, tuple)):
            to_look_at += gc.get_referents(one)
    return found


@contextmanager
def measured() -> Iterator[Callable[[], int]]:
    """Gives a function that says by how many bytes memory has grown."""

    def traced() -> int:
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    before = traced()
    try:
        yield lambda: traced() - before
    finally:
        tracemalloc.stop()
