"""Credits of producers: a client asks for room at an address before it sends there, and waits while there is none.

Source: ServerSessionImpl.requestProducerCredits and PagingStoreImpl.checkMemory of Artemis, ClientProducerCreditsImpl
of its client. Here the broker also remembers what it granted: a message for which its sender has asked is let in though
the address has become full meanwhile, or its sender would wait for an answer instead of for room.
"""

from typing import Final

from delosmq.engine.api import EngineBroker, SpaceWaiter
from delosmq.model.settings import AddressFullPolicy
from delosmq.sessions.core.server import errors
from delosmq.sessions.core.server.replies import SessionReplies
from delosmq.wire.core.packet import MOST_INT
from delosmq.wire.core.session_packets import ProducerCredits, ProducerFailCredits

MOST_GRANTED_BYTES: Final = 4 * 1024 * 1024
"""What one session may send under one name of a full address, whatever it asked for: more than any client asks for by
itself."""
MOST_OF_SESSION_BYTES: Final = 4 * MOST_GRANTED_BYTES
"""Under all names together. With more, the credits that it asked for first count no more: its messages wait."""
_ADDRESSES: Final = 1_000
"""Addresses for which a session may have credits, and as many for which it may wait."""


class CreditRequest(SpaceWaiter):
    """One that waits for room."""

    def __init__(self, credits: "SessionCredits", name: str, address: str, count: int) -> None:
        self.credits: SessionCredits | None = credits
        self.name = name
        self.address = address
        self.count = count

    def on_space(self) -> None:
        if self.credits is not None:
            self.credits.look_again(self)


class SessionCredits:
    """The credits of one session, by the name of the address as its client writes it."""

    def __init__(self, broker: EngineBroker, replies: SessionReplies) -> None:
        self._broker = broker
        self._replies = replies
        self._granted: dict[str, int] = {}
        self._granted_bytes: int = 0
        self._waiting: dict[str, CreditRequest] = {}

    def request(self, name: str, address: str, count: int) -> None:
        """A client asks for ``count`` bytes; an answer follows, now or once there is room.

        Raises:
            CoreError: it waits for room at too many addresses.
        """
        count = max(count, 0)
        waiting = self._waiting.get(name)
        if waiting is not None:
            waiting.count = min(waiting.count + count, MOST_INT)
        elif len(self._waiting) < _ADDRESSES:
            self.look_again(CreditRequest(self, name, address, count))
        else:
            raise errors.too_many("addresses at which the session waits for room", _ADDRESSES)

    def look_again(self, request: CreditRequest) -> None:
        """Grants what is asked for, refuses it, or has it wait."""
        self._waiting.pop(request.name, None)
        policy = self._full_policy(request.address)
        if policy is None:
            self._grant(request.name, request.count)
        elif policy is AddressFullPolicy.FAIL:
            self._replies.tell(ProducerFailCredits(request.count, request.name))
        else:
            self._waiting[request.name] = request
            self._broker.blocked_producers.wait(request.address, request)

    def _full_policy(self, name: str) -> AddressFullPolicy | None:
        """What becomes of messages to a full address; None while it takes them."""
        broker = self._broker
        address = broker.addresses.get(name)
        if address is None or not (broker.storage_low or broker.blocked_producers.is_full(name)):
            return None
        policy = address.settings.address_full_policy
        if policy is AddressFullPolicy.DROP:
            return None if not broker.storage_low else AddressFullPolicy.BLOCK
        if policy is AddressFullPolicy.FAIL and not broker.blocked_producers.is_full(name) and not broker.storage_full:
            return AddressFullPolicy.BLOCK  # till the next file is ready
        return policy

    def _grant(self, name: str, count: int) -> None:
        granted = min(self._take(name) + count, MOST_GRANTED_BYTES)
        while self._granted and (
            len(self._granted) >= _ADDRESSES or self._granted_bytes + granted > MOST_OF_SESSION_BYTES
        ):
            self._take(next(iter(self._granted)))
        self._granted[name] = granted
        self._granted_bytes += max(granted, 0)
        self._replies.tell(ProducerCredits(count, name))

    def _take(self, name: str) -> int:
        granted = self._granted.pop(name, 0)
        self._granted_bytes -= max(granted, 0)
        return granted

    def spend(self, name: str, size_bytes: int) -> bool:
        """A message to that address came. Whether its sender had credit for it."""
        left = self._granted.get(name, 0)
        if left <= 0:
            return False
        self._granted[name] = left - size_bytes  # below zero, the next credits pay for it
        self._granted_bytes -= min(size_bytes, left)
        return True

    def close(self) -> None:
        """No answer is wanted any more."""
        for request in self._waiting.values():
            request.credits = None
            self._broker.blocked_producers.cancel(request.address, request)
        self._waiting.clear()
