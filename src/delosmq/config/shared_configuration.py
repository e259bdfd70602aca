"""What two brokers that share a store should have in common: digests, by which each tells where they differ."""

import hashlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Final

from delosmq.model.settings import CORE_SETTINGS, BrokerSettings

_OF_EACH_BROKER: Final = frozenset({"name", "journal", "acceptors", "ha_policy", "left_out", "global_max_size_bytes"})
"""Fields that differ rightly: names, ports, roles, and the memory of a machine."""
_DIGEST_BYTES: Final = 8
"""Enough to notice a difference; nobody gains from hiding one."""


def configuration_digests(settings: BrokerSettings) -> dict[str, str]:
    """Each part of the configuration that two such brokers share, as broker.xml names it, with a digest."""
    digests: dict[str, str] = {}
    for field in fields(BrokerSettings):
        if field.name not in _OF_EACH_BROKER:
            declared = CORE_SETTINGS.get(field.name)
            written = field.name.replace("_", "-") if declared is None else declared.written
            said = repr(_plain(getattr(settings, field.name))).encode()
            digests[written] = hashlib.blake2b(said, digest_size=_DIGEST_BYTES).hexdigest()
    return digests


def _plain(value: object) -> object:
    """The same in every process: sets have no order of their own."""
    if isinstance(value, Enum):
        return value.name
    if is_dataclass(value):
        return [_plain(getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, Mapping):
        return sorted((repr(_plain(key)), _plain(inner)) for key, inner in value.items())
    if isinstance(value, (set, frozenset)):
        return sorted(repr(_plain(inner)) for inner in value)
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return value
