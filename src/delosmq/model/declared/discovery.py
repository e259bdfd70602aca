"""The settings of broadcast and discovery groups: how brokers find each other by UDP.

Source: Artemis, BroadcastGroupConfiguration and DiscoveryGroupConfiguration.
"""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Network, ip_network
from typing import Final

from delosmq.model.declared.router import ConnectorSettings
from delosmq.model.values import UNLIMITED, Setting, at_least, at_restart, declared, unlimited_or_at_least

_LARGEST_PORT: Final = 65_535


def parse_group_address(text: str) -> str:
    """A group of IPv4."""
    rule = "a multicast address of IPv4, 224.0.0.0 to 239.255.255.255"
    try:
        address = IPv4Address(text)
    except ValueError:
        raise ValueError(rule) from None
    if not address.is_multicast:
        raise ValueError(rule)
    return str(address)


def parse_local_address(text: str) -> str:
    """An address of this machine; "" for the system's choice."""
    try:
        return str(IPv4Address(text)) if text else ""
    except ValueError:
        raise ValueError("an IPv4 address of this machine") from None


def parse_networks(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    """Networks with commas between them."""
    try:
        return tuple(ip_network(part.strip()) for part in text.split(",") if part.strip())
    except ValueError:
        raise ValueError("networks such as 10.1.0.0/16, with commas, each beginning where its mask says") from None


parse_port: Final = at_least(1, most=_LARGEST_PORT)


@dataclass(frozen=True)
class BroadcastGroupSettings:
    """One ``<broadcast-group>``. Beside what each setting declares:

    Attributes:
        connectors: what it announces, in their order.
    """

    name: str
    group_address: str = at_restart("", "the multicast address, of IPv4, to which it announces", parse_group_address)
    group_port: int = at_restart(0, "its port", parse_port, shown="none")
    connectors: tuple[ConnectorSettings, ...] = ()
    local_bind_address: str = at_restart("", "the address of the interface to send by", parse_local_address)
    local_bind_port: int = at_restart(
        UNLIMITED, "the port to send from; -1 for any", unlimited_or_at_least(0, "any port", most=_LARGEST_PORT)
    )
    broadcast_period_ms: int = at_restart(2_000, "how often it announces", at_least(1))


@dataclass(frozen=True)
class DiscoveryGroupSettings:
    """One ``<discovery-group>``."""

    name: str
    group_address: str = at_restart("", "the multicast address, of IPv4, to which others announce", parse_group_address)
    group_port: int = at_restart(0, "its port", parse_port, shown="none")
    local_bind_address: str = at_restart("", "the address of the interface to listen at", parse_local_address)
    refresh_timeout_ms: int = at_restart(10_000, "a broker not heard for so long is gone", at_least(1))
    discovery_allowed: tuple[IPv4Network | IPv6Network, ...] = at_restart(
        (),
        "DelosMQ only: networks in which brokers are believed, beside this machine; with commas",
        parse_networks,
        shown="this machine alone",
    )


BROADCAST_SETTINGS: Final[dict[str, Setting]] = declared(BroadcastGroupSettings)
DISCOVERY_SETTINGS: Final[dict[str, Setting]] = declared(DiscoveryGroupSettings)
"""What is declared, by the name of the field."""
