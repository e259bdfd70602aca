"""Memory limits: per address and for the whole broker."""

from delosmq.engine.queues.queue_address import QueueAddress
from delosmq.model.errors import InvariantError
from delosmq.model.message import MESSAGE_OVERHEAD_BYTES, NO_LIMIT, Account, Message
from delosmq.model.values import UNLIMITED


class MemoryLimits:
    """Counts what messages cost. What is there may exceed a limit by the last message.

    Attributes:
        most_bytes: of all addresses; `NO_LIMIT` for none. used_bytes: of it.
        full: the broker is at its limit. An address takes no message while this is so or its account is full.
        released: something was given back since this was last set to False.
    """

    def __init__(self, global_max_bytes: int) -> None:
        self.used_bytes: int = 0
        self.released: bool = False
        self.most_bytes: int = NO_LIMIT
        self.full: bool = False
        self.set_limit(global_max_bytes)

    def set_limit(self, global_max_bytes: int) -> None:
        """Puts ``global-max-size`` into force; -1 is no limit."""
        self.most_bytes = NO_LIMIT if global_max_bytes == UNLIMITED else global_max_bytes
        self.full = self.used_bytes >= self.most_bytes

    def is_full(self, address: QueueAddress) -> bool:
        """Whether the address (or the broker) is at its limit."""
        return self.full or address.account.full

    def charge(self, account: Account, message: Message) -> None:
        """A message entered the queues of an address."""
        # `Message.charge_bytes`, written out here and below: every message comes this way.
        size = MESSAGE_OVERHEAD_BYTES + message.encoded_size_bytes
        message.account = account
        account.used_bytes += size
        account.used_messages += 1
        self.used_bytes += size
        if account.used_bytes >= account.most_bytes or account.used_messages >= account.most_messages:
            account.full = True
        if self.used_bytes >= self.most_bytes:
            self.full = True

    def release(self, message: Message) -> None:
        """A message left the last of them."""
        account = message.account
        if account is None:
            raise InvariantError("DMQ2003", f"message {message.message_id} is released but was never charged")
        message.account = None
        size = MESSAGE_OVERHEAD_BYTES + message.encoded_size_bytes
        account.used_bytes -= size
        account.used_messages -= 1
        self.used_bytes -= size
        self.released = True
        if account.full:
            account.full = account.reaches(account)
        if self.full:
            self.full = self.used_bytes >= self.most_bytes
