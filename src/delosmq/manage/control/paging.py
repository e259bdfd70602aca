"""Lists in pages: by name, each page from where the last one ended."""

from bisect import bisect_right
from dataclasses import dataclass
from typing import Final

MOST_PER_PAGE: Final = 10_000
USUAL_PER_PAGE: Final = 1_000


@dataclass(frozen=True)
class Page:
    """Which part of a list is wanted.

    Attributes:
        after: the name that the last page ended with, "" for the first page.
        limit: how many at most.
        containing: only names that contain this text, whatever its case.
    """

    after: str = ""
    limit: int = USUAL_PER_PAGE
    containing: str = ""

    def candidates(self, names: list[str]) -> list[str]:
        """Of sorted names those that may be on this page, in order."""
        text = self.containing.casefold()
        rest = names[bisect_right(names, self.after) :] if self.after else names
        return [name for name in rest if text in name.casefold()] if text else rest
