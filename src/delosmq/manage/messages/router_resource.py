"""The resources ``connectionrouter.<name>``. Source: ConnectionRouterControl of Artemis."""

import json

from delosmq.manage.control.routers import RouterControl, RouteStatus
from delosmq.manage.messages.declarations import ResourceKind, attribute, operation
from delosmq.security.access import Login

FACTORY = "org.apache.activemq.artemis.core.remoting.impl.netty.NettyConnectorFactory"
"""What clients of Artemis know: a socket."""
_STAYS_OR_GOES = ("local", "redirect")


class RouterResource:
    """One connection router."""

    def __init__(self, control: RouterControl, name: str) -> None:
        self._control = control
        self._name = name

    @operation("getTarget")
    def target(self, login: Login, key: str) -> dict[str, object] | None:
        found = self._control.target(login, self._name, key)
        return _as_artemis(found) if found.outcome in _STAYS_OR_GOES else None

    @operation("getTargetAsJSON")
    def target_as_json(self, login: Login, key: str) -> str | None:
        found = self.target(login, key)
        return None if found is None else json.dumps(found)

    @attribute("LocalTargetFilter")
    def local_target_filter(self, login: Login) -> str | None:
        return self._control.get(login, self._name).local_target_filter or None

    @operation("setLocalTargetFilter")
    def set_local_target_filter(self, login: Login, regex: str | None) -> None:
        self._control.change(login, self._name, local_target_filter=regex or "")

    @attribute("TargetKeyFilter")
    def target_key_filter(self, login: Login) -> str | None:
        return self._control.get(login, self._name).key_filter or None

    @operation("setTargetKeyFilter")
    def set_target_key_filter(self, login: Login, regex: str | None) -> None:
        self._control.change(login, self._name, key_filter=regex or "")


def _as_artemis(found: RouteStatus) -> dict[str, object]:
    local = found.outcome == "local"
    connector = {
        "name": found.connector,
        "factoryClassName": FACTORY,
        "params": {"host": found.host, "port": str(found.port)},
    }
    # Artemis has no such field: brokers in a circle learn from each other how it goes on.
    onward: dict[str, object] = {"onward": found.onward} if found.onward else {}
    return {"nodeID": found.node_id or None, "local": local, "connector": None if local else connector, **onward}


def router_kind(control: RouterControl) -> ResourceKind:
    return ResourceKind("connectionrouter.", RouterResource, lambda login, name: RouterResource(control, name))
