"""What the queues of an address know of it."""

from delosmq.model.declared.address import AddressSettings
from delosmq.model.message import Account


def publishes_advisories(settings: AddressSettings) -> bool:
    """Whether each message that is sent to an address is told of, in an advisory."""
    return settings.advisory_for_delivery or settings.advisory_if_no_consumers


class QueueAddress:
    """The address of a queue, as far as queues and memory limits look at it.

    Attributes:
        settings: the address-settings in force.
        publishes_advisories: what is sent to it is told (``advisory-for-delivery``, ``advisory-if-no-consumers``).
        account: what its messages count against its limits, each message once.
        routed_messages: since start.
    """

    def __init__(self, name: str, settings: AddressSettings) -> None:
        self.name = name
        self.settings = settings
        self.publishes_advisories: bool = publishes_advisories(settings)
        self.account: Account = Account()
        self.routed_messages: int = 0
