"""The protocols that a broker speaks, each with its class."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from delosmq.model.protocol_names import CORE, OPENWIRE, STOMP
from delosmq.model.reserved_names import EVENTS_ADDRESS
from delosmq.model.settings import MIB, AcceptorSettings, AddressFullPolicy, AddressMatch, BrokerSettings
from delosmq.sessions.core.server.protocol import CoreProtocol
from delosmq.sessions.openwire.server.protocol import OpenWireProtocol
from delosmq.sessions.protocol import Protocol
from delosmq.sessions.stomp.server.protocol import StompProtocol

PROTOCOLS: Final[dict[str, Callable[[tuple[AcceptorSettings, ...]], Protocol]]] = {
    STOMP: StompProtocol,
    OPENWIRE: OpenWireProtocol,
    CORE: CoreProtocol,
}
"""The class of each protocol of `SERVED_PROTOCOLS`. These two registers are all that a new protocol is added to."""


EVENTS_SETTINGS: Final = AddressMatch(
    EVENTS_ADDRESS,
    {
        "default_ring_size": 1_000,
        "max_size_bytes": 64 * MIB,
        "address_full_policy": AddressFullPolicy.DROP,
        "send_to_dla_on_no_route": False,
    },
)
"""A reader of records that does not keep up misses the oldest, and no number of readers fills the memory."""


def with_addresses_of(spoken: tuple[Protocol, ...], settings: BrokerSettings) -> BrokerSettings:
    """The settings of a broker, with those for addresses that it brings itself; what broker.xml says counts more."""
    own = [match for protocol in spoken for match in protocol.address_settings]
    if settings.delosmq_events:
        own.append(EVENTS_SETTINGS)
    return replace(settings, address_settings=(*own, *settings.address_settings))
