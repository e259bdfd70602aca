"""Output for people: as it is written, without what rich would read into it."""

from typing import IO

from rich.console import Console


def plain_console(*, stderr: bool = False, file: IO[str] | None = None) -> Console:
    """A console that prints names as they are: no markup, no emoji for ``:tea:``, no wrapping."""
    return Console(stderr=stderr, file=file, markup=False, emoji=False, highlight=False, soft_wrap=True)
