"""Policies: which of the ready targets a key gets.

Source: Artemis, package org.apache.activemq.artemis.core.server.routing.policies.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from delosmq.model.declared.router import CONNECTION_COUNT_THRESHOLD, MODULO, RouterPolicySettings, policy_fault
from delosmq.model.errors import ConfigurationError
from delosmq.routers.consistent_hash import floor_target, modulo_of
from delosmq.routers.target import RouterTarget


class RouterPolicy(ABC):
    """Chooses targets for one router. It is asked on the broker's loop and may not block.

    Attributes:
        probe: the attribute of the resource ``broker`` that each check of a target asks for beside ``Active``; "" for
            none. `RouterTarget.connection_count` is what it found.
    """

    probe: str = ""

    def transform(self, key: str) -> str:
        """What stands for ``key`` from here on: in the local filter, in the cache, in `select`. Never asked of the
        key ``NULL``."""
        return key

    @abstractmethod
    def select(self, targets: Sequence[RouterTarget], key: str) -> RouterTarget | None:
        """One of ``targets``, which are ready, at least one, in the order of the pool; None for none. Changes nothing:
        `chosen` follows when a connection is sent there, and does not when somebody only asks."""

    def chosen(self, target: RouterTarget) -> None:  # noqa: B027 - most policies keep nothing
        """A connection goes to ``target``, which `select` gave."""


MakePolicy = Callable[[Mapping[str, str], int], RouterPolicy]
"""Makes a policy of its properties and a random whole number of at least 0."""


class FirstElement(RouterPolicy):
    def __init__(self, properties: Mapping[str, str], start: int) -> None:
        pass

    def select(self, targets: Sequence[RouterTarget], key: str) -> RouterTarget | None:
        return targets[0] if targets else None


class RoundRobin(RouterPolicy):
    """In turn, one turn for all keys.

    Args:
        start: a random number, so that routers that start together do not choose alike.
    """

    def __init__(self, properties: Mapping[str, str], start: int) -> None:
        self._turn = start

    def select(self, targets: Sequence[RouterTarget], key: str) -> RouterTarget | None:
        return targets[self._turn % len(targets)] if targets else None

    def chosen(self, target: RouterTarget) -> None:
        self._turn += 1


class ConsistentHash(RouterPolicy):
    """The same target for a key as long as that one is ready."""

    def __init__(self, properties: Mapping[str, str], start: int) -> None:
        pass

    def select(self, targets: Sequence[RouterTarget], key: str) -> RouterTarget | None:
        return floor_target(targets, key)


class LeastConnections(RoundRobin):
    """The target with the fewest connections, in turn where several have as few."""

    probe = "ConnectionCount"

    def __init__(self, properties: Mapping[str, str], start: int) -> None:
        super().__init__(properties, start)
        self._threshold = int(properties.get(CONNECTION_COUNT_THRESHOLD, "0"))

    def select(self, targets: Sequence[RouterTarget], key: str) -> RouterTarget | None:
        counts = [self._count(target) for target in targets]
        fewest = min(counts, default=0.0)
        return super().select([one for one, count in zip(targets, counts, strict=True) if count == fewest], key)

    def _count(self, target: RouterTarget) -> float:
        if target.connection_count is None:
            return float("inf")
        # Without those sent there since the check, all clients of a whole period would go to one broker.
        count = target.connection_count + target.sent
        return 0.0 if count < self._threshold else float(count)


class ConsistentHashModulo(RouterPolicy):
    """Makes a number below MODULO of each key, for the local filter to choose by. It chooses no target."""

    def __init__(self, properties: Mapping[str, str], start: int) -> None:
        self._modulo = int(properties[MODULO])

    def transform(self, key: str) -> str:
        return modulo_of(key, self._modulo)

    def select(self, targets: Sequence[RouterTarget], key: str) -> RouterTarget | None:
        return None


POLICIES: Final[dict[str, MakePolicy]] = {
    "FIRST_ELEMENT": FirstElement,
    "ROUND_ROBIN": RoundRobin,
    "CONSISTENT_HASH": ConsistentHash,
    "LEAST_CONNECTIONS": LeastConnections,
    "CONSISTENT_HASH_MODULO": ConsistentHashModulo,
}
"""Those that come with the broker, by their names in broker.xml."""


def make_policy(settings: RouterPolicySettings, start: int, plugged_in: Mapping[str, MakePolicy]) -> RouterPolicy:
    """The policy that a router names.

    Args:
        plugged_in: those of other packages, by their names.

    Raises:
        ConfigurationError: there is none of that name, or it refuses its properties.
    """
    make = POLICIES.get(settings.name) or plugged_in.get(settings.name)
    if make is None:
        raise ConfigurationError(
            "DMQ5501", f"there is no policy {settings.name!r}; install the package that brings it, or name another one"
        )
    properties = dict(settings.properties)
    fault = policy_fault(settings.name, properties)
    if fault:
        raise ConfigurationError("DMQ5502", f"policy {settings.name!r} {fault}")
    try:
        return make(properties, start)
    except Exception as error:
        raise ConfigurationError(
            "DMQ5502",
            f"policy {settings.name!r} can't be used: {type(error).__name__}: {error}; correct its properties",
        ) from error
