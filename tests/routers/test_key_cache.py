"""The cache: sticky, bounded, over after its time."""

# ROUTE-5

from delosmq.routers.decision import Decision
from delosmq.routers.key import RouteRequest
from delosmq.routers.key_cache import KeyCache, KeyCacheStore, NoStore
from tests.routers.support import at, policy, pool, router


class Journal(KeyCacheStore):
    """Keeps what a broker would."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    def stored(self, key: str, node_id: str) -> None:
        self.kept[key] = node_id

    def removed(self, key: str) -> None:
        del self.kept[key]


def test_a_key_stays_with_its_target_though_the_policy_goes_round() -> None:
    one = router(policy=policy("ROUND_ROBIN"), pool=pool(3), cache_timeout_ms=0)
    found = [one.route(RouteRequest("a"), at(ms), at(ms)) for ms in range(5)]
    other = one.route(RouteRequest("b"), at(9), at(9))
    nodes = {getattr(decision.target, "node_id", None) for decision in found if isinstance(decision, Decision)}
    assert len(nodes) == 1
    assert isinstance(other, Decision)
    assert getattr(other.target, "node_id", None) not in nodes


def test_no_key_is_sticky_too() -> None:
    one = router(policy=policy("ROUND_ROBIN"), pool=pool(3), cache_timeout_ms=0)
    found = [one.route(RouteRequest(), at(0), at(0)) for _ in range(3)]
    assert len({getattr(one.target, "node_id", "") for one in found if isinstance(one, Decision)}) == 1


def test_a_key_whose_target_is_gone_gets_another_one_and_stays_there() -> None:
    targets = pool(2)
    one = router(policy=policy("FIRST_ELEMENT"), pool=targets, cache_timeout_ms=0)
    one.route(RouteRequest("a"), at(0), at(0))
    targets.failed(targets.targets[0], "gone")
    one.route(RouteRequest("a"), at(1), at(1))
    targets.checked(targets.targets[0], "node-0", True)
    decided = one.route(RouteRequest("a"), at(2), at(2))
    assert isinstance(decided, Decision)
    assert decided.target is targets.targets[1]


def test_an_entry_goes_so_long_after_it_was_asked_for_last() -> None:
    journal = Journal()
    cache = KeyCache(100, journal)
    cache.put("a", "n", at(0))
    assert cache.get("a", at(99)) == "n"
    assert cache.peek("a", at(198)) == "n"
    assert cache.get("a", at(199)) is None
    assert (len(cache), journal.kept) == (0, {})


def test_without_a_timeout_it_stays() -> None:
    cache = KeyCache(0, NoStore())
    cache.put("a", "n", at(0))
    assert cache.get("a", at(10**12)) == "n"


def test_of_too_many_the_one_not_asked_for_longest_goes() -> None:
    journal = Journal()
    cache = KeyCache(0, journal, most=2)
    for ms, key in enumerate("aba"):
        cache.put(key, "n", at(ms))
    cache.get("b", at(9))
    cache.put("c", "n", at(10))
    assert set(journal.kept) == {"b", "c"}


def test_a_hundred_thousand_are_kept_at_most() -> None:
    cache = KeyCache(0, NoStore())
    for number in range(100_001):
        cache.put(str(number), "n", at(0))
    assert (len(cache), cache.get("0", at(0)), cache.get("1", at(0))) == (100_000, None, "n")


def test_after_a_restart_each_time_begins_again() -> None:
    journal = Journal()
    KeyCache(100, journal).put("a", "n", at(0))
    cache = KeyCache(100, NoStore())
    cache.restore(journal, journal.kept.items(), at(5_000))
    assert cache.get("a", at(5_099)) == "n"


def test_a_change_is_stored_and_nothing_else() -> None:
    writes: list[tuple[str, str]] = []

    class Written(Journal):
        def stored(self, key: str, node_id: str) -> None:
            writes.append((key, node_id))

    cache = KeyCache(0, Written())
    for node in ("n", "n", "m"):
        cache.put("a", node, at(0))
    assert writes == [("a", "n"), ("a", "m")]
