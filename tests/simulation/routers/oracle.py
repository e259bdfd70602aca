"""What a router must decide, written a second time and simply, and what must hold whatever happens.

Source: the order of docs/several-brokers.md, "The decision".
"""

import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from delosmq.model.declared.router import TargetPoolSettings
from delosmq.routers.consistent_hash import signed_hash
from delosmq.routers.target import RouterTarget
from tests.simulation.routers.network import MS, SimBroker

CHECK_MS = 3_000
ROUND_TRIPS_MS = 1_000
LEAST_WAIT_MS = 250


class Broken(AssertionError):
    """A promise of the page is not kept."""


def require(holds: bool, what: str) -> None:
    if not holds:
        raise Broken(what)


@dataclass
class Sheet:
    """The settings of a router."""

    key_filter: str
    local_filter: str
    policy: str
    modulo: int
    cache_timeout_ms: int | None
    cache_most: int


class Oracle:
    """Decides as the page says.

    Attributes:
        here: the node id of this broker.
    """

    def __init__(self, sheet: Sheet, pool: TargetPoolSettings | None, here: str) -> None:
        self.sheet = sheet
        self.pool = pool
        self.here = here
        self.cached: OrderedDict[str, tuple[str, int]] = OrderedDict()
        self.last_turn: RouterTarget | None = None
        self.turn_of: tuple[str, ...] = ()

    def key_of(self, client_id: str) -> str:
        """The key, and what the policy makes of it."""
        key = client_id or "NULL"
        if client_id and self.sheet.key_filter:
            found = re.search(self.sheet.key_filter, client_id)
            key = "NULL" if found is None else found[0]
        if self.sheet.policy == "CONSISTENT_HASH_MODULO" and key != "NULL":
            return str((signed_hash(key) & 0x7FFFFFFF) % self.sheet.modulo)
        return key

    def decide(self, client_id: str, ready: Sequence[RouterTarget], now: int) -> str:
        """What must come of it: local, refused, unavailable, cached NODE, or policy."""
        key = self.key_of(client_id)
        if self.sheet.local_filter and re.fullmatch(self.sheet.local_filter, key):
            return "local"
        if self.pool is None or not self.sheet.policy:
            return "use-another"
        cached = self.look_up(key, now)
        if cached in [one.node_id for one in ready]:
            return f"cached {cached}"
        if len(ready) < self.pool.quorum_size or self.sheet.policy == "CONSISTENT_HASH_MODULO":
            return "unavailable"
        return "policy"

    def may_wait(self, expected: str, ready: Sequence[RouterTarget], waited: int) -> bool:
        """Whether a connection that waited so long may wait on."""
        if self.pool is None or expected != "unavailable":
            return False
        if waited < LEAST_WAIT_MS * MS:
            return True
        return len(ready) < self.pool.quorum_size and waited < self.pool.quorum_timeout_ms * MS

    # -- the cache

    def look_up(self, key: str, now: int) -> str:
        """ "" for none; the time of one begins again."""
        timeout = self.sheet.cache_timeout_ms
        if timeout is None or key not in self.cached:
            return ""
        node_id, asked = self.cached[key]
        if timeout and now >= asked + timeout * MS:
            del self.cached[key]
            return ""
        self.cached[key] = (node_id, now)
        self.cached.move_to_end(key)
        return node_id

    def remember(self, client_id: str, node_id: str, now: int) -> None:
        if self.sheet.cache_timeout_ms is None:
            return
        key = self.key_of(client_id)
        self.cached[key] = (node_id, now)
        self.cached.move_to_end(key)
        self.forget_old(now)
        while len(self.cached) > self.sheet.cache_most:
            self.cached.popitem(last=False)

    def forget_old(self, now: int) -> None:
        timeout = self.sheet.cache_timeout_ms
        if timeout:
            over = [key for key, (_, asked) in self.cached.items() if now >= asked + timeout * MS]
            for key in over:
                del self.cached[key]

    # -- policies

    def check_choice(self, client_id: str, ready: Sequence[RouterTarget], chosen: RouterTarget) -> None:
        """Whether the policy may have chosen this one; ``chosen.sent`` counts it already."""
        match self.sheet.policy:
            case "FIRST_ELEMENT":
                require(chosen is ready[0], "FIRST_ELEMENT chose another one than the first")
            case "CONSISTENT_HASH":
                require(chosen is by_hash(ready, self.key_of(client_id)), "CONSISTENT_HASH chose another one")
            case "ROUND_ROBIN":
                nodes = tuple(one.node_id for one in ready)
                if self.last_turn is not None and nodes == self.turn_of:
                    after = ready[(nodes.index(self.last_turn.node_id) + 1) % len(ready)]
                    require(chosen is after, "ROUND_ROBIN left the turn")
                self.last_turn, self.turn_of = chosen, nodes
            case "LEAST_CONNECTIONS":
                fewest = min(load(one) - (one is chosen) for one in ready)
                require(load(chosen) - 1 <= fewest, "LEAST_CONNECTIONS chose one with more than the fewest")


def load(target: RouterTarget) -> float:
    return float("inf") if target.connection_count is None else target.connection_count + target.sent


def by_hash(ready: Sequence[RouterTarget], key: str) -> RouterTarget:
    """The one with the greatest hash not above that of the key, else with the lowest."""
    below = [one for one in ready if signed_hash(one.node_id) <= signed_hash(key)]
    return max(below, key=_hash_of) if below else min(ready, key=_hash_of)


def _hash_of(target: RouterTarget) -> int:
    return signed_hash(target.node_id)


def check_readiness(broker: SimBroker, targets: Sequence[RouterTarget], period_ms: int, since: int, now: int) -> None:
    """A broker that does not answer is not ready after two checks; one that answers is, after one.

    Args:
        since: from when on it has been a target.
    """
    for target in targets:
        if broker.bad_since is not None:
            limit = (CHECK_MS + period_ms + CHECK_MS) * MS
            late = now - broker.bad_since > limit
            require(not (late and target.ready), f"{target.name} is ready, and has not answered for long")
        elif broker.good_since is not None:
            limit = (CHECK_MS + period_ms + ROUND_TRIPS_MS) * MS
            long = now - max(broker.good_since, since) > limit
            require(not (long and not target.ready), f"{target.name} answers, and is not ready: {target.trouble}")
            # It was another broker before it was restarted, and that is known with the first answer.
            named = target.node_id == broker.node_id
            require(not (long and not named), f"{target.name} is not known by the name that it has")
