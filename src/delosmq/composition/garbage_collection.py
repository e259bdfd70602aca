"""Garbage collection while a broker starts."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def not_collecting() -> Iterator[None]:
    """Keeps the garbage collector away: a start makes millions of objects and not one cycle, and looking at them again
    and again takes longer than making them."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
