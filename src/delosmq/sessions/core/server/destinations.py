"""The names of addresses and queues as CORE clients write them: with prefixes of the acceptor, or as `address::queue`.

Source: ServerSessionImpl.removePrefix and CompositeAddress of Artemis.
"""

from typing import Final

from delosmq.model.message import ANY_ROUTING
from delosmq.model.names import QUEUE_MARK
from delosmq.model.settings import AcceptorSettings
from delosmq.sessions.core.server import errors
from delosmq.sessions.names import Prefixes
from delosmq.wire.core.error_codes import CoreErrorCode

_LONGEST_CHARACTERS: Final = 1_024


@errors.core_error("DMQ5632", CoreErrorCode.ILLEGAL_STATE)
def name_wrong(name: str) -> str:
    return (
        f"'{errors.shown(name)}' can't be used: write an address, or address::queue, at most {_LONGEST_CHARACTERS}"
        " characters long."
    )


class CoreTarget:
    """Where a message goes, with what was found out about the user's rights to it.

    Attributes:
        queue_name: "" unless ``address::queue`` was given.
        routing: that a prefix stands for; `ANY_ROUTING` for none.
        management: what is sent there the broker carries out itself.
        send_checked: the permission to send was granted.
        create_checked: every permission that a send could need to create something was granted.
    """

    def __init__(self, address: str, queue_name: str, routing: int) -> None:
        self.address = address
        self.queue_name = queue_name
        self.routing = routing
        self.management: bool = False
        self.send_checked: bool = False
        self.create_checked: bool = False


class CoreDestinations:
    """The names that one connection may use."""

    def __init__(self, acceptor: AcceptorSettings) -> None:
        self._prefixes: Prefixes = Prefixes(acceptor)

    def decode(self, name: str) -> CoreTarget:
        """What a name means.

        Raises:
            CoreError: it is empty, or too long.
        """
        plain, routing = self._prefixes.strip(name, ANY_ROUTING)
        address, mark, queue_name = plain.partition(QUEUE_MARK)
        if not address or (mark and not queue_name) or len(plain) > _LONGEST_CHARACTERS:
            raise name_wrong(name)
        return CoreTarget(address, queue_name, routing)

    def queue_name(self, name: str) -> str:
        """The queue that is meant by a name, which stands alone or behind its address.

        Raises:
            CoreError: as `decode`.
        """
        target = self.decode(name)
        return target.queue_name or target.address
