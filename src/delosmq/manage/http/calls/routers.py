"""The calls on connection routers."""

from typing import Final

from delosmq.manage.control.routers import RouteExplanation, RouterControl, RouterStatus, RouteStatus
from delosmq.manage.http.answers import RouterList
from delosmq.manage.http.calls.handlers import Handlers
from delosmq.manage.http.operations import BASE, Answer, Call, operation
from delosmq.manage.http.requests.resources import ChangeRouter, RouterKey, RouterValue

_ROUTERS: Final = f"{BASE}/routers"
_ROUTER: Final = f"{_ROUTERS}/{{name}}"
_MANAGE: Final = "manage on the address activemq.management"


class RouterCalls(Handlers[RouterControl]):
    """Handlers of ``/api/v1/routers``."""

    @operation("GET", _ROUTERS, "listRouters", _MANAGE)
    async def list(self, call: Call) -> Answer[RouterList]:
        """All connection routers with their targets."""
        found = self._control.all(call.login)
        return self._answer(RouterList(found), entries=len(found))

    @operation("PATCH", _ROUTER, "changeRouter", _MANAGE)
    async def change(self, call: Call, wanted: ChangeRouter) -> Answer[RouterStatus]:
        """Change filters of a router until a restart."""
        return self._answer(
            self._control.change(
                call.login,
                call.path["name"],
                key_filter=wanted.key_filter,
                local_target_filter=wanted.local_target_filter,
            )
        )

    @operation("POST", f"{_ROUTER}/target", "decideTarget", _MANAGE)
    async def target(self, call: Call, wanted: RouterKey) -> Answer[RouteStatus]:
        """Decide on a key as on a connection with it."""
        return self._answer(self._control.target(call.login, call.path["name"], wanted.key))

    @operation("POST", f"{_ROUTER}/test", "testKey", _MANAGE)
    async def test(self, call: Call, wanted: RouterValue) -> Answer[RouteExplanation]:
        """What would be decided on a connection, step by step."""
        return self._answer(self._control.explain(call.login, call.path["name"], wanted.value))
