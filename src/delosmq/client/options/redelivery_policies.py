"""The redelivery policy of a connection, and those of single destinations: by name, or by a name with wildcards.

Source: RedeliveryPolicyMap and DestinationMap.chooseValue of the Java client.
"""

from collections.abc import Callable, Mapping
from typing import Final

from delosmq.client.errors import wrong_argument, wrong_destination
from delosmq.client.options.arguments import demand_entries, demand_flag, demand_number, demand_text
from delosmq.client.options.option_texts import bounds_of, kinds_of
from delosmq.sessions.openwire.client.options import RedeliveryPolicy
from delosmq.wire.openwire.structures import Destination, destination_of

_ANY_WORDS: Final = ">"
_SINGLE_WORD: Final = "*"


class RedeliveryPolicies:
    """
    Args:
        by_destination: ``orders``, ``topic://prices``, ``orders.>`` (and all below), ``orders.*.urgent`` (any word); a
            name without wildcards goes before those with, the more exact of these before others.
        otherwise: for all other destinations.

    Raises:
        ClientOptionError: DMQ9055, DMQ9056.
    """

    def __init__(self, by_destination: Mapping[str, RedeliveryPolicy], otherwise: RedeliveryPolicy) -> None:
        self._otherwise = otherwise
        self._literal: dict[str, RedeliveryPolicy] = {}
        with_wildcards: list[tuple[Destination, RedeliveryPolicy]] = []
        demand_entries("redelivery_policies", by_destination)
        for name, policy in by_destination.items():
            demand_text("destination", name)
            _check(f"redelivery_policies['{name}']", policy)
            destination = destination_of(name.strip())
            if not destination.name:
                raise wrong_destination(name, "it has no name; write a name, such as 'orders' or 'orders.>'.")
            if set(destination.name.split(".")) & {_ANY_WORDS, _SINGLE_WORD}:
                with_wildcards.append((destination, policy))
            else:
                self._literal[destination.qualified_name()] = policy
        self._patterns = _patterns(with_wildcards) if with_wildcards else []

    def policy_of(self, destination: Destination) -> RedeliveryPolicy:
        """Of a list of destinations the first that has one of its own decides."""
        if self._literal or self._patterns:
            for name in destination.name.split(","):
                found = self._find(Destination(name.strip(), destination.code))
                if found is not None:
                    return found
        return self._otherwise

    def _find(self, destination: Destination) -> RedeliveryPolicy | None:
        own = self._literal.get(destination.qualified_name())
        if own is not None:
            return own
        name, wanted = destination.name, destination.code
        return next((policy for code, matches, policy in self._patterns if code == wanted and matches(name)), None)


def _check(name: str, policy: object) -> None:
    if not isinstance(policy, RedeliveryPolicy):
        raise wrong_argument(name, policy, "a RedeliveryPolicy")
    for field, kind in kinds_of(RedeliveryPolicy()).items():
        if kind is bool:
            demand_flag(f"{name}.{field}", getattr(policy, field))
        else:
            least, most = bounds_of(field)
            demand_number(f"{name}.{field}", getattr(policy, field), most, least, kind)


def _patterns(
    named: list[tuple[Destination, RedeliveryPolicy]],
) -> list[tuple[int, Callable[[str], bool], RedeliveryPolicy]]:
    """The most exact ones first."""
    from delosmq.model.settings import WildcardSyntax  # takes time, which few need
    from delosmq.model.wildcard import WildcardPattern, specificity

    syntax = WildcardSyntax(any_words=_ANY_WORDS, single_word=_SINGLE_WORD)
    in_order = sorted(named, key=lambda one: specificity(one[0].name, syntax), reverse=True)
    return [(one.code, WildcardPattern(one.name, syntax).matches, policy) for one, policy in in_order]
