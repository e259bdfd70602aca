"""How many addresses a match may have (``max-addresses``).

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
