"""The host of management: the running broker around the engine."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from delosmq.model.errors import InvariantError


@dataclass(frozen=True)
class Reason:
    """Why a broker does not serve as it should."""

    code: str
    detail: str


class Host(ABC):
    """The running broker."""

    @abstractmethod
    def changed(self) -> None:
        """The engine was used: run its tick and flush its store soon. Cheap, may be called at every use."""

    @abstractmethod
    def troubles(self) -> list[Reason]:
        """Why the broker is not ready, as far as the engine can't know: starting, draining, store failing."""

    def node_id(self) -> str:
        """Tells this broker from all others, over restarts too; "" where nobody asks."""
        return ""

    def connection_count(self) -> int:
        """Clients that are connected, logged in or not."""
        return 0

    def role(self) -> str:
        """primary, backup or primary-only, as its ha-policy says."""
        return "primary-only"

    def broken(self, error: InvariantError) -> None:
        """DelosMQ broke a promise to itself: stop rather than guess. Raises ``error`` unless overridden."""
        raise error
