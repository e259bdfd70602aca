"""How many addresses a match may have (``max-addresses``), and how many addresses and queues clients may make.

Each match with a bound counts all addresses it stands for; the most specific match that says something about the number
decides whether one more is made. What a connection or the broker makes for itself, wildcards and what the journal or
the configuration names are always made. Source: AbstractRegion.validateMaxDestinations of ActiveMQ Classic.
"""

from typing import Final

from delosmq.model.errors import LimitError
from delosmq.model.settings import UNLIMITED, AddressMatch, WildcardSyntax
from delosmq.model.wildcard import WildcardPattern, specificity

_FIELD: Final = "max_addresses"
_ADVISORIES: Final = "ActiveMQ.Advisory."
"""Topics of which Classic's clients listen to some whether they are asked to or not; it does not count them either."""


class AddressLimitError(LimitError):
    """There are as many addresses as ``max-addresses`` allows."""


class _Bound:
    """One match that says how many: its addresses are counted where there is a limit."""

    def __init__(self, match: str, syntax: WildcardSyntax, limit: int) -> None:
        self.pattern: WildcardPattern = WildcardPattern(match, syntax, is_setting=True)
        self.limit = limit
        self.count: int = 0


class AddressLimits:
    """The bounds of one broker.

    Attributes:
        in_force: False until the broker has started.
    """

    def __init__(self, entries: tuple[AddressMatch, ...], syntax: WildcardSyntax) -> None:
        self.in_force: bool = False
        self._bounds: list[_Bound] = []
        named = [entry for entry in entries if _FIELD in entry.fields]
        # The most specific first.
        for entry in sorted(named, key=lambda entry: specificity(entry.match, syntax), reverse=True):
            limit = entry.fields[_FIELD]
            assert isinstance(limit, int)
            self._bounds.append(_Bound(entry.match, syntax, limit))

    def check(self, name: str) -> None:
        """Whether one more address, of this name, may be made.

        Raises:
            AddressLimitError: it may not.
        """
        if not self.in_force or name.startswith(_ADVISORIES):
            return
        for bound in self._bounds:
            if bound.pattern.matches(name):
                if bound.limit != UNLIMITED and bound.count >= bound.limit:
                    raise AddressLimitError(
                        "DMQ2651",
                        f"address '{name}' is not made: there are {bound.count} of match '{bound.pattern.text}', and"
                        f" its max-addresses is {bound.limit}; delete some, or allow more",
                    )
                return

    def count(self, name: str, difference: int) -> None:
        """An address was made, or is gone."""
        if not self._bounds or name.startswith(_ADVISORIES):
            return
        for bound in self._bounds:
            if bound.pattern.matches(name):
                bound.count += difference


class ClientLimits:
    """``max-destinations`` and ``max-destinations-per-user``: how many addresses and queues there may be when a client
    makes another one, and how many the clients of one user may have made. What operators and broker.xml make is counted
    and never refused.

    Attributes:
        count: addresses and queues, but those that the broker made for itself.
    """

    def __init__(self, of_all: int, of_user: int) -> None:
        self.count: int = 0
        self._of_all = of_all
        self._of_user = of_user
        self._by_user: dict[str, int] = {}

    def check(self, user: str, what: str) -> None:
        """Whether one more may be made.

        Args:
            user: whose client makes it; "" for nobody's.

        Raises:
            LimitError: it may not.
        """
        if not user:
            return
        made = self._by_user.get(user, 0)
        if self._of_user != UNLIMITED and made >= self._of_user:
            raise LimitError(
                "DMQ2654",
                f"{what} is not made: clients of user '{user}' have made {made} addresses and queues, and"
                f" max-destinations-per-user is {self._of_user}; delete some, let unused ones go (auto-delete-queues,"
                " auto-delete-addresses), or allow more",
            )
        if self._of_all != UNLIMITED and self.count >= self._of_all:
            raise LimitError(
                "DMQ2655",
                f"{what} is not made: there are {self.count} addresses and queues, and max-destinations is"
                f" {self._of_all}; delete some, let unused ones go (auto-delete-queues, auto-delete-addresses), or"
                " allow more",
            )

    def made_by(self, user: str) -> int:
        """Addresses and queues that are there and were made by clients of a user since the start."""
        return self._by_user.get(user, 0)

    def add(self, user: str) -> None:
        """One that is there was made by a client of ``user``."""
        if user:
            self._by_user[user] = self._by_user.get(user, 0) + 1

    def gone(self, user: str) -> None:
        """One is gone."""
        self.count -= 1
        if user:
            left = self._by_user[user] - 1
            if left:
                self._by_user[user] = left
            else:
                del self._by_user[user]
