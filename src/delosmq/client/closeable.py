"""What a with block closes: connections, sessions, producers and consumers.

A connection or session that was not closed is closed when no program can use it any more, and a warning says where it
was made.
"""

import logging
import os
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from weakref import finalize

_LOG: Final = logging.getLogger("delosmq.client")
_PACKAGE: Final = f"{Path(__file__).parent.parent}{os.sep}"


class Closeable(ABC):
    """Closed at the end of its with block."""

    @abstractmethod
    def close(self) -> None:
        """Ends it. May be repeated."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncCloseable(ABC):
    """Closed at the end of its async with block."""

    @abstractmethod
    async def close(self) -> None:
        """Ends it. May be repeated."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def watch(thing: object, what: str, is_open: Callable[[], bool], close: Callable[[], None]) -> None:
    """Has ``close`` called once ``thing`` is forgotten and still open. Neither function holds ``thing``; ``close`` has
    the work done elsewhere, as it is called wherever the collector happens to run."""
    finalize(thing, _forgotten, what, _made_at(), is_open, close).atexit = False


def _made_at() -> str:
    """File and line of the program that calls into this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _forgotten(what: str, where: str, is_open: Callable[[], bool], close: Callable[[], None]) -> None:
    if not is_open():
        return
    _LOG.warning(
        f"DMQ9067: the {what} made at {where} was not closed, and is now: close it, or make it in a with block"
    )
    try:
        close()
    finally:
        warnings.warn(f"the {what} made at {where} was not closed", ResourceWarning, stacklevel=2)
