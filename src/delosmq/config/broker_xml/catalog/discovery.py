"""What stands below ``<broadcast-groups>`` and ``<discovery-groups>``."""

from typing import Final

from delosmq.config.broker_xml.catalog.table import Table, in_effect, in_effect_of, refused, refused_all, table
from delosmq.model.declared.discovery import BroadcastGroupSettings, DiscoveryGroupSettings

_JGROUPS: Final = refused_all(
    "jgroups-file jgroups-channel", "there is no JGroups; write <group-address> and <group-port> for UDP instead"
)

BROADCAST_GROUPS: Final[Table] = table([in_effect("broadcast-group", "announces this broker to others by UDP")])
BROADCAST_GROUP: Final[Table] = table(
    [in_effect("@name", "its name")],
    in_effect_of(BroadcastGroupSettings),
    [in_effect("connector-ref", "the name of a connector to announce, at most 8 of them; others take the last")],
    _JGROUPS,
)
"""Attributes and children of ``<broadcast-group>``."""

DISCOVERY_GROUPS: Final[Table] = table([in_effect("discovery-group", "finds brokers that announce themselves")])
DISCOVERY_GROUP: Final[Table] = table(
    [in_effect("@name", "its name")],
    in_effect_of(DiscoveryGroupSettings),
    [
        refused(
            "initial-wait-timeout",
            "a start waits for no announcement: connections wait for targets, as long as quorum-timeout of a pool says",
            "0",
            "10000",
        )
    ],
    _JGROUPS,
)
"""Attributes and children of ``<discovery-group>``."""
