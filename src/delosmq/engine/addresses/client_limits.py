"""The share of a user: how many addresses, queues and branches its clients make, and what they take of the journal's
state."""

from typing import Final

from delosmq.model.errors import LimitError
from delosmq.model.settings import UNLIMITED, BrokerSettings
from delosmq.selectors.selector import LONGEST

FILTERS_PART: Final = 8
"""1 / this of a user's bytes is how many characters the filters may have together: a send may ask all of them, and
parsed they take ten times that. One of the longest is always allowed."""
_LESS: Final = "delete some, let unused ones go (auto-delete-queues, auto-delete-addresses)"


class Share:
    """What clients of one user have made and what is there: how many addresses and queues, how many branches of
    distributed transactions, and what all these take in a state block."""

    def __init__(self) -> None:
        self.count: int = 0
        self.state_bytes: int = 0
        self.filter_characters: int = 0
        self.branches: int = 0


class ClientLimits:
    """``max-destinations``: how many addresses and queues there may be when a client makes another one;
    ``max-destinations-per-user`` and ``max-destinations-size-per-user``: how many the clients of one user may have
    made, and what these take in a state block; the filters of queues, recorded or not, have an eighth of the latter, in
    characters. What operators and broker.xml make is counted and never refused. ``max-branches-per-user``: how many
    branches of distributed transactions the clients of one user may have begun.

    Attributes:
        count: addresses and queues, but those that the broker made for itself.
        state_bytes: what a state block says of addresses, queues and lease groups; what is not recorded takes nothing
            there. What it says of each branch once that is prepared, or ended by an operator, counts from the start.
    """

    def __init__(self, settings: BrokerSettings) -> None:
        self.count: int = 0
        self.state_bytes: int = 0
        self._of_all: int = settings.max_destinations
        self._of_user: int = settings.max_destinations_per_user
        self._bytes_of_user: int = settings.max_destinations_size_per_user
        self._branches_of_user: int = settings.max_branches_per_user
        self._filters_of_user: int = max(self._bytes_of_user // FILTERS_PART, LONGEST)
        self._shares: dict[str, Share] = {}

    def check(self, user: str, what: str, *, count: int, size_bytes: int) -> None:
        """Whether a client may make something.

        Args:
            user: of the client that makes it; "" for none.
            count: how many addresses and queues more there would be.
            size_bytes: how much more they would take in a state block.

        Raises:
            LimitError: it may not.
        """
        if not user:
            return
        if count > 0:
            self._check_count(user, what)
        used = self.state_bytes_of(user)
        if size_bytes > 0 and self._bytes_of_user != UNLIMITED and used + size_bytes > self._bytes_of_user:
            raise LimitError(
                "DMQ2686",
                f"{what} is not made: in the journal, what clients of user '{user}' have made takes {used} bytes, this"
                f" would take {size_bytes} more, and max-destinations-size-per-user is {self._bytes_of_user};"
                " delete some, use shorter names and filters, or allow more",
            )

    def check_filter(self, user: str, what: str, characters: int) -> None:
        """Whether a client may make something with a filter.

        Args:
            user: of the client that makes it; "" for none.
            characters: how many more the filters of this user would have.

        Raises:
            LimitError: it may not.
        """
        if not user or characters <= 0 or self._bytes_of_user == UNLIMITED:
            return
        used = self.filter_characters_of(user)
        if used + characters > self._filters_of_user:
            raise LimitError(
                "DMQ2688",
                f"{what} is not made: the filters of what clients of user '{user}' have made have {used} characters,"
                f" this would be {characters} more, and {self._filters_of_user} are allowed, an eighth of"
                " max-destinations-size-per-user; delete or close some, use shorter filters, or allow more",
            )

    def check_branch(self, user: str) -> None:
        """Whether a client may begin another branch of a distributed transaction.

        Args:
            user: of the client that begins it; "" for none.

        Raises:
            LimitError: it may not.
        """
        share = self._shares.get(user)
        if user and share is not None and 0 <= self._branches_of_user <= share.branches:
            raise LimitError(
                "DMQ2673",
                f"clients of user '{user}' have {share.branches} branches of distributed transactions that are open,"
                f" prepared or ended by an operator, and max-branches-per-user is {self._branches_of_user}; end them,"
                " forget what an operator ended (`delosmq transaction forget`), or allow more",
            )

    def _check_count(self, user: str, what: str) -> None:
        made = self.made_by(user)
        if self._of_user != UNLIMITED and made >= self._of_user:
            raise LimitError(
                "DMQ2654",
                f"{what} is not made: clients of user '{user}' have made {made} addresses and queues, and"
                f" max-destinations-per-user is {self._of_user}; {_LESS}, or allow more",
            )
        if self._of_all != UNLIMITED and self.count >= self._of_all:
            raise LimitError(
                "DMQ2655",
                f"{what} is not made: there are {self.count} addresses and queues, and max-destinations is"
                f" {self._of_all}; {_LESS}, or allow more",
            )

    def made_by(self, user: str) -> int:
        """Addresses and queues that are there and were made by clients of a user."""
        share = self._shares.get(user)
        return 0 if share is None else share.count

    def state_bytes_of(self, user: str) -> int:
        """What these take in a state block, with what the broker made on account of them."""
        share = self._shares.get(user)
        return 0 if share is None else share.state_bytes

    def filter_characters_of(self, user: str) -> int:
        """How long the filters of these queues are together."""
        share = self._shares.get(user)
        return 0 if share is None else share.filter_characters

    def branches_of(self, user: str) -> int:
        """Branches that clients of a user began and that are open, prepared, or ended by an operator."""
        share = self._shares.get(user)
        return 0 if share is None else share.branches

    def change_branches(self, user: str, count: int, size_bytes: int) -> None:
        """So many more, or fewer, are there that a client of ``user`` began; "" for what no client began."""
        self.state_bytes += size_bytes
        if user:
            share = self._shares.setdefault(user, Share())
            share.branches += count
            share.state_bytes += size_bytes
            self._drop_empty(user, share)

    def change_filters(self, user: str, characters: int) -> None:
        """The filters of what clients of ``user`` made are so much longer, or shorter; "" for what no client made."""
        if user and characters:
            share = self._shares.setdefault(user, Share())
            share.filter_characters += characters
            self._drop_empty(user, share)

    def change(self, user: str, count: int, size_bytes: int) -> None:
        """So many more, or fewer, are there that a client of ``user`` made; "" for what no client made."""
        self.count += count
        self.state_bytes += size_bytes
        if not user:
            return
        share = self._shares.setdefault(user, Share())
        share.count += count
        share.state_bytes += size_bytes
        self._drop_empty(user, share)

    def _drop_empty(self, user: str, share: Share) -> None:
        if not (share.count or share.state_bytes or share.filter_characters or share.branches):
            del self._shares[user]
