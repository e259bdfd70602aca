"""The settings of connection routers, each declared once: its name in broker.xml, its parser, its default, and what the
manual says of it.

Source: Artemis, FileConfigurationParser.parseConnectionRouters.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from delosmq.model.values import Setting, at_least, at_restart, declared


class KeyType(Enum):
    """What of a connection its key is taken from."""

    CLIENT_ID = "CLIENT_ID"
    SNI_HOST = "SNI_HOST"
    SOURCE_IP = "SOURCE_IP"
    USER_NAME = "USER_NAME"
    ROLE_NAME = "ROLE_NAME"


ROUTER_POLICIES: Final = "delosmq.router_policies"
"""The group of entry points by which packages bring policies of their own."""
NULL_KEY: Final = "NULL"
"""The key of a connection that has none."""
MODULO: Final = "MODULO"
CONNECTION_COUNT_THRESHOLD: Final = "CONNECTION_COUNT_THRESHOLD"

POLICY_PROPERTIES: Final[dict[str, dict[str, Callable[[str], int]]]] = {
    "FIRST_ELEMENT": {},
    "ROUND_ROBIN": {},
    "CONSISTENT_HASH": {},
    "LEAST_CONNECTIONS": {CONNECTION_COUNT_THRESHOLD: at_least(0)},
    "CONSISTENT_HASH_MODULO": {MODULO: at_least(1)},
}
"""The policies that come with the broker, and what parses each of their properties."""


def policy_fault(policy: str, properties: Mapping[str, str]) -> str:
    """What is wrong with the properties of a policy that comes with the broker, after "policy 'NAME'"; "" for nothing,
    and for policies of other packages."""
    known = POLICY_PROPERTIES.get(policy)
    if known is None:
        return ""
    for name, text in properties.items():
        parse = known.get(name)
        if parse is None:
            return f"has no property {name!r}; remove it"
        try:
            parse(text)
        except ValueError as rule:
            return f"has the property {name} {text[:100]!r}, which must be {rule}"
    if policy == "CONSISTENT_HASH_MODULO" and MODULO not in properties:
        return f"lacks the property {MODULO}; give it, a whole number of at least 1"
    return ""


@dataclass(frozen=True)
class ConnectorSettings:
    """One ``<connector>``: where another broker is.

    Attributes:
        tls: whether it speaks TLS only.
        trust_store_path: PEM file with the authorities that vouch for it; "" for those of the system.
        verify_host: whether its certificate has to name the host.
    """

    name: str
    host: str
    port: int
    tls: bool = False
    trust_store_path: str = ""
    verify_host: bool = True


@dataclass(frozen=True)
class RouterCacheSettings:
    """``<cache>`` of a router: which target a key had."""

    persisted: bool = at_restart(False, "true: it survives a restart")
    timeout_ms: int = at_restart(0, "an entry not asked for so long goes; 0 for never", at_least(0))


@dataclass(frozen=True)
class RouterPolicySettings:
    """``<policy>`` of a router."""

    name: str
    properties: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class TargetPoolSettings:
    """``<pool>`` of a router. Beside what each setting declares:

    Attributes:
        connectors: where the targets are, in their order.
        discovery_group: the name of the one that finds them instead; "" for none.
    """

    connectors: tuple[ConnectorSettings, ...] = ()
    discovery_group: str = ""
    username: str = at_restart("", "the user with whom targets are asked how they are", str, shown="cluster-user")
    password: str = at_restart("", "of that user", str, shown="cluster-password", repr=False)
    check_period_ms: int = at_restart(5_000, "how often each target is asked", at_least(1))
    quorum_size: int = at_restart(1, "with fewer targets ready none is chosen", at_least(1))
    quorum_timeout_ms: int = at_restart(3_000, "how long a connection waits for so many; 0 for not at all", at_least(0))
    local_target_enabled: bool = at_restart(False, "true: this broker is one of the targets, the first")


@dataclass(frozen=True)
class ConnectionRouterSettings:
    """One ``<connection-router>``. Beside what each setting declares:

    Attributes:
        key_filter, local_target_filter: regular expressions as `JavaRegex` reads them; "" for none.
        cache, policy, pool: None without.
    """

    name: str
    key_type: KeyType = at_restart(KeyType.SOURCE_IP, "what the key of a connection is taken from")
    key_filter: str = ""
    local_target_filter: str = ""
    cache: RouterCacheSettings | None = None
    policy: RouterPolicySettings | None = None
    pool: TargetPoolSettings | None = None


ROUTER_SETTINGS: Final[dict[str, Setting]] = declared(ConnectionRouterSettings)
CACHE_SETTINGS: Final[dict[str, Setting]] = declared(RouterCacheSettings)
POOL_SETTINGS: Final[dict[str, Setting]] = declared(TargetPoolSettings)
"""What is declared, by the name of the field."""
