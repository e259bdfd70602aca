"""The resources ``address.<name>``. Source: AddressControl of Artemis."""

import json
from collections.abc import Generator
from enum import Enum
from typing import Final

from delosmq.engine.api import EngineBroker
from delosmq.manage.control.addresses import AddressControl, AddressInfo
from delosmq.manage.control.queues import QueueControl
from delosmq.manage.messages.declarations import attribute, operation
from delosmq.manage.messages.queue_resource import finish_purge
from delosmq.model.declared.address import SETTINGS
from delosmq.model.message import ROUTING_NAMES
from delosmq.model.settings import AddressSettings
from delosmq.security.access import VIEW, Login

ADDRESS_FIELDS: Final = {
    "Address": "name",
    "AddressLimitPercent": "address_limit_percent",
    "AddressSize": "used_bytes",
    "AutoCreated": "auto_created",
    "CurrentDuplicateIdCacheSize": "duplicate_ids",
    "QueueNames": "queues",
    "RoutedMessageCount": "routed_messages",
    "RoutingTypes": "routing_types",
    "Temporary": "temporary",
    "UnRoutedMessageCount": "unrouted_messages",
}
"""Attribute -> field of `AddressInfo`."""

_ROUTING_SETTINGS: Final = ("default_address_routing_type", "default_queue_routing_type")
_JSON_NAMES: Final = {
    "addressFullPolicy": "addressFullMessagePolicy",
    "redeliveryDelayMultiplier": "redeliveryMultiplier",
    "sendToDlaOnNoRoute": "sendToDLAOnNoRoute",
}
"""Settings that Artemis's AddressSettings calls otherwise than broker.xml does."""


def address_settings_json(settings: AddressSettings) -> str:
    """All that an address obeys, by names of Artemis's AddressSettings, or else as in broker.xml."""
    found: dict[str, object] = {}
    for name in SETTINGS:
        first, *words = name.split("_")
        written = first + "".join(word.title() for word in words)
        value = getattr(settings, name)
        if name in _ROUTING_SETTINGS:
            value = ROUTING_NAMES[value]
        found[_JSON_NAMES.get(written, written)] = value.value if isinstance(value, Enum) else value
    return json.dumps(found, separators=(",", ":"))


class AddressResource:
    def __init__(self, broker: EngineBroker, control: AddressControl, queues: QueueControl, name: str) -> None:
        self._broker = broker
        self._control = control
        self._queues = queues
        self._name = name

    def info(self, login: Login) -> AddressInfo:
        return self._control.get(login, self._name)

    @attribute("RoutingTypesAsJSON")
    def routing_types_json(self, login: Login) -> str:
        return json.dumps(self.info(login).routing_types, separators=(",", ":"))

    @attribute("QueueCount")
    def queue_count(self, login: Login) -> int:
        return len(self.info(login).queues)

    @attribute("BindingNames")
    def binding_names(self, login: Login) -> list[str]:
        info = self.info(login)
        return info.queues + info.diverts

    @attribute("MessageCount")
    def message_count(self, login: Login) -> int:
        return sum(queue.message_count for queue in self._control.find(login, self._name, VIEW).queues())

    @attribute("Paging")
    def is_paging(self, login: Login) -> bool:
        self.info(login)
        return False

    @operation("clearDuplicateIdCache")
    def clear_duplicate_ids(self, login: Login) -> bool:
        self._control.clear_duplicate_ids(login, self._name)
        return True

    @operation("purge")
    def purge(self, login: Login) -> Generator[int, None, int]:
        return self._purge_all(login, self.info(login).queues)

    def _purge_all(self, login: Login, names: list[str]) -> Generator[int, None, int]:
        removed = 0
        for name in names:
            if self._queues.peek(login, name) is not None:
                removed += yield from finish_purge(self._broker, self._queues.purge(login, name))
        return removed
