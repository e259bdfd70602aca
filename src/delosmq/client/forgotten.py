"""Connections and sessions that were not closed: when no program can use them any more they are closed, and a warning
says where they were made."""

import logging
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Final
from weakref import finalize

_LOG: Final = logging.getLogger("delosmq.client")
_HERE: Final = str(Path(__file__).parent)


def watch(thing: object, what: str, is_open: Callable[[], bool], close: Callable[[], None]) -> None:
    """Has ``close`` called once ``thing`` is forgotten and still open. Neither function holds ``thing``; ``close`` has
    the work done elsewhere, as it is called wherever the collector happens to run."""
    finalize(thing, _forgotten, what, _made_at(), is_open, close).atexit = False


def _made_at() -> str:
    """File and line of the program that calls into this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _forgotten(what: str, where: str, is_open: Callable[[], bool], close: Callable[[], None]) -> None:
    if not is_open():
        return
    _LOG.warning(
        "DMQ9067 the %s made at %s was not closed, and is now: close it, or make it in a with block.", what, where
    )
    try:
        close()
    finally:
        warnings.warn(f"the {what} made at {where} was not closed", ResourceWarning, stacklevel=2)
