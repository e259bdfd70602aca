"""Memory limits: per address and for the whole broker."""

from delosmq.engine.queues.queue_address import QueueAddress
from delosmq.model.errors import InvariantError
from delosmq.model.message import Account, Message
from delosmq.model.settings import UNLIMITED


class MemoryLimits:
    """Counts what messages cost.

    Attributes:
        used_bytes: of all addresses.
        released: something was given back since this was last set to False.
    """

    def __init__(self, global_max_bytes: int) -> None:
        self.global_max_bytes = global_max_bytes
        self.used_bytes: int = 0
        self.released: bool = False

    def is_full(self, address: QueueAddress) -> bool:
        """Whether the address (or the broker) is at its limit; what is there may exceed it by the last message."""
        settings = address.settings
        return (
            (settings.max_size_bytes != UNLIMITED and address.account.used_bytes >= settings.max_size_bytes)
            or (settings.max_size_messages != UNLIMITED and address.account.used_messages >= settings.max_size_messages)
            or (self.global_max_bytes != UNLIMITED and self.used_bytes >= self.global_max_bytes)
        )

    def charge(self, account: Account, message: Message) -> None:
        """A message entered the queues of an address."""
        size = message.charge_bytes
        message.account = account
        account.used_bytes += size
        account.used_messages += 1
        self.used_bytes += size

    def release(self, message: Message) -> None:
        """A message left the last of them."""
        account = message.account
        if account is None:
            raise InvariantError("DMQ2003", f"message {message.message_id} is released but was never charged")
        message.account = None
        size = message.charge_bytes
        account.used_bytes -= size
        account.used_messages -= 1
        self.used_bytes -= size
        self.released = True
