"""What stands below ``<connection-routers>``."""

from typing import Final

from delosmq.config.broker_xml.catalog.table import Table, in_effect, in_effect_of, refused, table
from delosmq.model.declared.router import ConnectionRouterSettings, RouterCacheSettings, TargetPoolSettings

CONNECTORS: Final[Table] = table([in_effect("connector", "`tcp://host:port?option=value;option=value`: a broker")])
CONNECTOR: Final[Table] = table([in_effect("@name", "its name, by which pools name it")])
CONNECTOR_OPTIONS: Final[Table] = table(
    [
        in_effect("sslEnabled", "true: it speaks TLS only", "false"),
        in_effect("trustStorePath", "PEM file with the authorities that vouch for it", "those of the system"),
        in_effect("verifyHost", "its certificate has to name its host", "true"),
    ]
)

CONNECTION_ROUTERS: Final[Table] = table([in_effect("connection-router", "decides which connections stay here")])
CONNECTION_ROUTER: Final[Table] = table(
    [in_effect("@name", "its name, by which `router=` of an acceptor's URL has it asked")],
    in_effect_of(ConnectionRouterSettings),
    [
        in_effect("key-filter", "a regular expression searched in the value; what it finds is the key"),
        in_effect("local-target-filter", "a regular expression; connections whose whole key it takes stay here"),
        in_effect("cache", "keys stay with the target they had; holds the names below, or nothing"),
        in_effect("policy", "what is made of the key, and which target gets it"),
        in_effect("pool", "the brokers among which the policy chooses"),
        refused("key-transformer", "nothing would transform keys, and Artemis reads it as little; use <policy>"),
    ],
)
"""Attributes and children of ``<connection-router>``."""

ROUTER_CACHE: Final[Table] = table(in_effect_of(RouterCacheSettings))
"""Children of ``<cache>``."""

ROUTER_POLICY: Final[Table] = table(
    [
        in_effect(
            "@name",
            "FIRST_ELEMENT, ROUND_ROBIN, CONSISTENT_HASH, LEAST_CONNECTIONS, CONSISTENT_HASH_MODULO, or "
            "one of another package",
        ),
        in_effect("property", '`<property key="MODULO" value="2"/>`'),
    ]
)
"""Attributes and children of ``<policy>``."""

ROUTER_PROPERTY: Final[Table] = table([in_effect("@key", "its name"), in_effect("@value", "its value")])

POOL: Final[Table] = table(
    in_effect_of(TargetPoolSettings),
    [
        in_effect("static-connectors", "holds `<connector-ref>`: the names of connectors, in their order"),
        refused("cluster-connection", "there are no clusters, whose brokers could be targets; use static-connectors"),
        in_effect("discovery-group-ref", "instead: the discovery group whose brokers are the targets"),
    ],
)
"""Children of ``<pool>``."""
DISCOVERY_GROUP_REF: Final[Table] = table([in_effect("@discovery-group-name", "the name of a discovery group")])
STATIC_CONNECTORS: Final[Table] = table([in_effect("connector-ref", "the name of a connector")])
