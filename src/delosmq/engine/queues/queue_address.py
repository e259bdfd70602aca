"""The address of a queue, as the queue knows it."""

from delosmq.model.message import Account
from delosmq.model.settings import AddressSettings


def publishes_advisories(settings: AddressSettings) -> bool:
    """Whether each message that is sent to an address is told of, in an advisory."""
    return settings.advisory_for_delivery or settings.advisory_if_no_consumers


class Usage:
    """How long a queue or an address has not been used.

    Attributes:
        created_at, unused_since: monotonic ns; the latter when its last consumer left, or its last queue went; 0 while
            it never had one.
        swept: the last scan found it unused.
    """

    def __init__(self) -> None:
        self.created_at: int = 0
        self.unused_since: int = 0
        self.swept: bool = False

    def since(self, *, skip_usage_check: bool) -> int:
        """Since when it has been unused: what was never used, as a send to it was rolled back or nothing but sends
        came, since it was made."""
        return (0 if skip_usage_check else self.unused_since) or self.created_at


class QueueAddress:
    """The address of a queue, as far as queues and memory limits look at it.

    Attributes:
        settings: the address-settings in force.
        is_recorded: what becomes of its messages is told, for `delosmq.events`.
        tells_routed: what is sent to it is told, as that says or its settings do (``advisory-for-delivery``,
            ``advisory-if-no-consumers``).
        account: what its messages count against its limits, each message once.
        routed_messages: since start.
    """

    def __init__(self, name: str, settings: AddressSettings, is_recorded: bool = False) -> None:
        self.name = name
        self.settings = settings
        self.is_recorded = is_recorded
        self.tells_routed: bool = is_recorded or publishes_advisories(settings)
        self.account: Account = Account()
        self.routed_messages: int = 0
        self.account.set_limits(settings.max_size_bytes, settings.max_size_messages)

    def apply_settings(self, settings: AddressSettings) -> None:
        """Puts other settings into force; `Address.refresh` and its queues follow."""
        self.settings = settings
        self.tells_routed = self.is_recorded or publishes_advisories(settings)
        self.account.set_limits(settings.max_size_bytes, settings.max_size_messages)
