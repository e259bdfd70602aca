"""Which settings a queue obeys, and where each comes from: the queue, an address-setting, or the default."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from delosmq.engine.api import Queue
from delosmq.model.declared.address import SETTINGS
from delosmq.model.declared.queue import QUEUE_SETTINGS
from delosmq.model.settings import BrokerSettings
from delosmq.model.wildcard import WildcardPattern, specificity

OF_QUEUE: Final = "queue"
OF_ADDRESS_SETTING: Final = "address-setting"
DEFAULT: Final = "default"

_OWN: Final[dict[str, "Value"]] = {"filter": "", "enabled": True, "paused": False}

Value = str | int | float | bool


@dataclass(frozen=True)
class SettingInForce:
    """One setting.

    Attributes:
        name: as in broker.xml.
        source: ``queue``, ``address-setting`` or ``default``; match: which address-setting, else "".
    """

    name: str
    value: Value
    source: str
    match: str


def settings_in_force(queue: Queue, broker: BrokerSettings) -> list[SettingInForce]:
    """Every setting that decides what becomes of the messages of a queue."""
    matches = _matches(queue.address.name, broker)
    found: list[SettingInForce] = []
    for name, setting in QUEUE_SETTINGS.items():
        value: Value = getattr(queue.in_force, name)
        if getattr(queue.settings, name) is not None:
            found.append(SettingInForce(_written(name), value, OF_QUEUE, ""))
            continue
        by_hand = name == "auto_delete" and not queue.settings.auto_created
        inherited = ("auto_delete_created_queues",) if by_hand else setting.defaults
        found.append(_inherited(name, value, inherited, matches))
    for name, default in _OWN.items():
        value = getattr(queue.settings, name)
        found.append(SettingInForce(_written(name), value, OF_QUEUE if value != default else DEFAULT, ""))
    for name, setting in SETTINGS.items():
        if setting.explained:
            shown = getattr(queue.address.settings, name)
            found.append(_inherited(name, shown.value if isinstance(shown, Enum) else shown, (name,), matches))
    return found


def _matches(address: str, broker: BrokerSettings) -> list[tuple[str, dict[str, object]]]:
    """The address-settings that match, the most specific first."""
    syntax = broker.wildcards
    fitting = [
        entry
        for entry in broker.address_settings
        if WildcardPattern(entry.match, syntax, is_setting=True).matches(address)
    ]
    fitting.sort(key=lambda entry: specificity(entry.match, syntax), reverse=True)
    return [(entry.match, entry.fields) for entry in fitting]


def _inherited(
    name: str, value: Value, inherited: tuple[str, ...], matches: list[tuple[str, dict[str, object]]]
) -> SettingInForce:
    for match, named in matches:
        if any(field in named for field in inherited):
            return SettingInForce(_written(name), value, OF_ADDRESS_SETTING, match)
    return SettingInForce(_written(name), value, DEFAULT, "")


def _written(name: str) -> str:
    return name.replace("_", "-")
