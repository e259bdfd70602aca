"""The protocols that a broker speaks, each with its class."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from delosmq.model.protocol_names import OPENWIRE, STOMP
from delosmq.model.settings import AcceptorSettings, BrokerSettings
from delosmq.sessions.openwire.server.protocol import OpenWireProtocol
from delosmq.sessions.protocol import Protocol
from delosmq.sessions.stomp.server.protocol import StompProtocol

PROTOCOLS: Final[dict[str, Callable[[tuple[AcceptorSettings, ...]], Protocol]]] = {
    STOMP: StompProtocol,
    OPENWIRE: OpenWireProtocol,
}
"""The class of each protocol of `SERVED_PROTOCOLS`. These two registers are all that a new protocol is added to."""


def with_addresses_of(spoken: tuple[Protocol, ...], settings: BrokerSettings) -> BrokerSettings:
    own = [match for protocol in spoken for match in protocol.address_settings]
    return replace(settings, address_settings=(*own, *settings.address_settings))
