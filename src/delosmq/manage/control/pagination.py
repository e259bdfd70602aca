"""Lists in pages: by name, each page from where the last one ended."""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Final

from delosmq.model.wildcard import EVERYWHERE, SOMEWHERE
from delosmq.security.access import EDIT, VIEW, AccessControl, Login

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


def listed(names: Iterable[str], page: Page | None, may_view: Callable[[str], bool]) -> list[str]:
    """Those that a login may view, in order: all, or one more than a page holds if there are more."""
    ordered = sorted(names)
    if page is None:
        return [name for name in ordered if may_view(name)]
    return list(islice((name for name in page.candidates(ordered) if may_view(name)), page.limit + 1))


def listing_notice(access: AccessControl, login: Login) -> str:
    """What a list of queues or addresses can't show a user; "" when it shows all there are. It depends on the
    permissions alone, so that it tells nothing of what there is."""
    extent = access.extent(login, VIEW)
    if extent == EVERYWHERE:
        return ""
    if extent == SOMEWHERE:
        return (
            f"DMQ6176: user {login.user!r} has the permission {VIEW!r} on some addresses only, and no others are listed"
        )
    return (
        f"DMQ6176: user {login.user!r} has the permission {VIEW!r} on no address, so that nothing is listed; grant"
        f" {VIEW!r}, and {EDIT!r} to change things, to one of the user's roles in security-settings of broker.xml and"
        " reload it with SIGHUP ('manage', which Artemis asks for, is not enough)"
    )
