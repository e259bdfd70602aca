"""What the duplicate-id caches of all addresses take together, and which of them gives way when that is too much.

It is about the largest cache of about the user with the most, so that a client which fills many caches pushes out its
own ids and not those of others.
"""

from typing import Final

WITHOUT_BOUND_BYTES: Final = 1 << 30
"""Stands for ``global-max-size`` where messages have no bound together."""
MEMORY_PART: Final = 8
"""Duplicate ids take at most 1 / this of ``global-max-size``, beside it."""
LEAST_BYTES: Final = 1 << 20
"""So much they may take in any case."""


def most_bytes_of(global_max_bytes: int) -> int:
    """What all caches may take where ``global-max-size`` is this; -1 for no bound."""
    memory = global_max_bytes if global_max_bytes > 0 else WITHOUT_BOUND_BYTES
    return max(memory // MEMORY_PART, LEAST_BYTES)


class Sized:
    """Something with a size and a place among others, see `BySize`."""

    def __init__(self) -> None:
        self.size_bytes: int = 0
        self.rank: int = 0
        self.at: int = 0


class BySize:
    """Finds one of at least half the size of the largest, as quickly among many as among few."""

    def __init__(self) -> None:
        # By the number of binary digits of their size. What has no size is in none.
        self._ranks: list[list[Sized]] = []
        self._turn: int = 0

    def change(self, one: Sized, size_bytes: int) -> None:
        """It has another size now."""
        one.size_bytes = size_bytes
        rank = size_bytes.bit_length()
        if rank == one.rank:
            return
        if one.rank:
            others = self._ranks[one.rank]
            last = others.pop()
            if last is not one:
                others[one.at] = last
                last.at = one.at
        one.rank = rank
        if rank:
            while len(self._ranks) <= rank:
                self._ranks.append([])
            one.at = len(self._ranks[rank])
            self._ranks[rank].append(one)

    def take_turn(self) -> Sized | None:
        """One of the largest, of which each has its turn before one that came later; None when nothing has a size."""
        for others in reversed(self._ranks):
            if others:
                # Never the last to come while there are others: it takes the place of the next that goes.
                turn = self._turn if self._turn < len(others) - 1 else 0
                self._turn = turn + 1
                return others[turn]
        return None


class UserCaches(Sized):
    """The caches of the addresses that clients of one user made."""

    def __init__(self) -> None:
        super().__init__()
        self.caches: BySize = BySize()


class IdCacheSizes:
    """The sizes of all caches.

    Attributes:
        size_bytes: of all together; most_bytes: what they may take.
    """

    def __init__(self, global_max_bytes: int) -> None:
        self.size_bytes: int = 0
        self.most_bytes: int = most_bytes_of(global_max_bytes)
        self._users: dict[str, UserCaches] = {}
        self._by_user: BySize = BySize()

    def user(self, name: str) -> UserCaches:
        """The caches that count to a user."""
        user = self._users.get(name)
        if user is None:
            user = self._users[name] = UserCaches()
        return user

    def change(self, cache: Sized, user: UserCaches, growth_bytes: int) -> None:
        """A cache of this user is so much larger, or smaller."""
        self.size_bytes += growth_bytes
        user.caches.change(cache, cache.size_bytes + growth_bytes)
        self._by_user.change(user, user.size_bytes + growth_bytes)

    def gives_way(self) -> Sized | None:
        """The cache that gives up its oldest id next; None when all are empty."""
        user = self._by_user.take_turn()
        if user is None:
            return None
        assert isinstance(user, UserCaches)
        return user.caches.take_turn()
