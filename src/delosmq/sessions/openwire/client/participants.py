"""What takes part in transactions, and the branches of distributed ones that were ended and have no outcome yet."""

from abc import ABC, abstractmethod

from mypy_extensions import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class Participant(ABC):
    """What takes part in a transaction, and hears how it ends."""

    @abstractmethod
    def before_end(self) -> None:
        """It is about to end; what belongs to it can still be sent."""

    @abstractmethod
    def committed(self) -> None:
        """It has happened."""

    @abstractmethod
    def rolled_back(self) -> None:
        """It has not."""

    @abstractmethod
    def detach(self) -> "EndedPart":
        """Its part in a branch that was ended, apart from what it does in the next one."""


@mypyc_attr(allow_interpreted_subclasses=True)
class EndedPart(ABC):
    """What a participant has done in a branch that was ended."""

    @abstractmethod
    def committed(self) -> None:
        """The branch has happened."""

    @abstractmethod
    def rolled_back(self) -> None:
        """It has not."""

    @abstractmethod
    def interrupt(self) -> None:
        """The connection broke: what was received comes again, unless the branch is prepared and committed then."""


class EndedBranch:
    """A branch in which sessions of this connection have worked.

    Attributes:
        prepared: it outlives the connection.
        rollback_only: it can't be prepared or committed: a session has failed in it, or the connection broke.
    """

    def __init__(self) -> None:
        self.prepared: bool = False
        self.rollback_only: bool = False
        self._parts: list[EndedPart] = []

    def add(self, participants: list[Participant]) -> None:
        """A session is through with it."""
        self._parts += [participant.detach() for participant in participants]

    def interrupt(self) -> None:
        """The connection broke: the broker rolls back what is not prepared."""
        self.rollback_only = self.rollback_only or not self.prepared
        for part in self._parts:
            part.interrupt()

    def end(self, *, committed: bool) -> None:
        """Tells all."""
        parts = self._parts
        self._parts = []
        for part in parts:
            if committed:
                part.committed()
            else:
                part.rolled_back()


class EndedBranches:
    """Those of one connection, by the keys of their ids, until their outcome is known."""

    def __init__(self) -> None:
        self._branches: dict[str, EndedBranch] = {}

    def prepared(self) -> list[str]:
        """The keys of those that are."""
        return [key for key, branch in self._branches.items() if branch.prepared]

    def find(self, key: str) -> EndedBranch | None:
        return self._branches.get(key)

    def leave(self, key: str, participants: list[Participant], *, failed: bool) -> None:
        """A session's part of a branch is done."""
        branch = self._branches.setdefault(key, EndedBranch())
        branch.rollback_only = branch.rollback_only or failed
        branch.add(participants)

    def interrupt(self) -> None:
        """The connection broke."""
        for branch in self._branches.values():
            branch.interrupt()

    def end(self, key: str, *, committed: bool) -> None:
        """A branch has its outcome, if it is known here at all.

        Args:
            committed: also when it has ended elsewhere and it is not known how: what was received may be done, and does
                not come again.
        """
        branch = self._branches.pop(key, None)
        if branch is not None:
            branch.end(committed=committed)
