"""The pool of a router: its targets, and which of them are ready.

Source: Artemis, AbstractPool and TargetMonitor.
"""

from collections.abc import Callable, Sequence

from delosmq.model.declared.router import ConnectorSettings, TargetPoolSettings
from delosmq.routers.target import RouterTarget


class TargetPool:
    """Targets in their order, this broker first if it is one.

    Attributes:
        node_id: of this broker, "" before `begin`: a target that turns out to have it is this broker.
        targets: all of them, ready or not.
        on_change: called when a target became ready or was lost, so that what waits for a quorum asks again.
    """

    def __init__(self, settings: TargetPoolSettings) -> None:
        self.settings = settings
        self.node_id: str = ""
        self.targets: list[RouterTarget] = [RouterTarget(connector) for connector in settings.connectors]
        if settings.local_target_enabled:
            self.targets.insert(0, RouterTarget(None))
        self.on_change: Callable[[], None] = _nothing

    def begin(self, node_id: str) -> None:
        """Names the node id of this broker; before targets are checked."""
        self.node_id = node_id
        for target in self.targets:
            if target.connector is None:
                target.node_id = node_id

    def replace(self, connectors: Sequence[ConnectorSettings]) -> tuple[list[RouterTarget], list[RouterTarget]]:
        """The targets are now where ``connectors`` lead, in their order; those that stay are as they were.

        Returns:
            those that came and those that are gone.
        """
        local = [one for one in self.targets if one.connector is None]
        known = {one.connector: one for one in self.targets if one.connector is not None}
        distinct = dict.fromkeys(connectors)
        wanted = [known.get(one) or RouterTarget(one) for one in distinct]
        added = [one for one in wanted if one.connector not in known]
        removed = [one for connector, one in known.items() if connector not in distinct]
        self.targets = [*local, *wanted]
        for one in removed:
            self.failed(one, "it is no target any more")
        return added, removed

    def is_local(self, target: RouterTarget) -> bool:
        return target.connector is None or target.node_id == self.node_id

    def ready_targets(self) -> Sequence[RouterTarget]:
        """Those that are ready, however few; of several connectors to one broker the first."""
        found: dict[str, RouterTarget] = {}
        for target in self.targets:
            if target.ready:
                found.setdefault(target.node_id, target)
        return list(found.values())

    def ready_target(self, node_id: str) -> RouterTarget | None:
        """The target of a broker, if it is ready."""
        return next((one for one in self.targets if one.ready and one.node_id == node_id), None)

    def has_quorum(self, ready: Sequence[RouterTarget]) -> bool:
        return len(ready) >= self.settings.quorum_size

    def checked(self, target: RouterTarget, node_id: str, active: bool, connection_count: int | None = None) -> None:
        """A check of ``target`` was answered.

        Args:
            node_id: what it calls itself. One that has another one than before is another broker.
            connection_count: what the policy's probe found.
        """
        target.connection_count = connection_count
        target.sent = 0
        changed = (target.ready, target.node_id) != (active, node_id)
        target.node_id = node_id
        target.ready = active
        target.trouble = "" if active else "it is not active"
        if changed:
            self.on_change()

    def failed(self, target: RouterTarget, trouble: str) -> None:
        """A check of ``target`` failed, or its connection was lost: it is not ready as of now."""
        was_ready, target.ready = target.ready, False
        target.connection_count = None
        target.sent = 0
        target.trouble = trouble
        target.onward.clear()
        if was_ready:
            self.on_change()


def _nothing() -> None:
    pass
