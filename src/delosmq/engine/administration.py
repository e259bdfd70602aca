"""Addresses and queues by the will of configuration and management. Each call is one decision."""

from dataclasses import replace
from typing import Final

from delosmq.engine.acks import NONE_UNSEEN
from delosmq.engine.address import Address
from delosmq.engine.consuming import Consuming
from delosmq.engine.core import Core
from delosmq.engine.dropping import Dropping
from delosmq.engine.leases import Leases
from delosmq.engine.queue import Queue
from delosmq.model.errors import MisuseError, NotFoundError
from delosmq.model.settings import QueueSettings

CHANGEABLE: Final = ("ring_size", "max_consumers")
"""Fields of a queue that broker.xml changes in a stored one."""


class Administration:
    """What operators do."""

    def __init__(self, core: Core, consuming: Consuming, dropping: Dropping, leases: Leases) -> None:
        self._settings = core.settings
        self._log = core.log
        self._bindings = core.bindings
        self._router = core.router
        self._consuming = consuming
        self._dropping = dropping
        self._leases = leases

    def configure(self) -> None:
        """Makes what the configuration names, and cuts queues down to their rings. Called once, at start."""
        for address in self._settings.addresses:
            self._bindings.create_address(address.name, set(address.routing_types))
        for settings in self._settings.queues:
            self._configure_queue(settings)
        self._log.close()
        for queue in self._bindings.queues.values():
            self._trim(queue)

    def _configure_queue(self, settings: QueueSettings) -> None:
        known = self._bindings.queues.get(settings.name)
        if known is None:
            self._bindings.create_queue(settings)
        elif (known.settings.address, known.settings.routing_type) != (settings.address, settings.routing_type):
            raise MisuseError(
                "DMQ2106",
                f"broker.xml puts queue '{settings.name}' on address '{settings.address}', the journal holds it on"
                f" '{known.settings.address}'; delete the stored queue first or give the new one another name",
            )
        else:
            merged = _merged(known.settings, settings)
            if merged != known.settings:
                self._bindings.update_queue(known, merged)

    def _trim(self, queue: Queue) -> None:
        # While reloading a queue is cut down to its ring (ring-queues: after a restart).
        while True:
            slot = queue.ring.pushed_out(queue.pending)
            if slot is None:
                break
            self._router.replace(queue, slot)
            self._log.close()

    def create_address(self, name: str, routing_types: set[int]) -> Address:
        """Creates an address, or adds routing types to an existing one."""
        address = self._bindings.create_address(name, routing_types)
        self._log.close()
        return address

    def create_queue(self, settings: QueueSettings) -> Queue:
        """Creates a queue and, if need be, its address.

        Raises:
            MisuseError: the name is taken or a setting makes no sense.
        """
        queue = self._bindings.create_queue(settings)
        self._log.close()
        return queue

    def update_queue(self, name: str, **changes: object) -> Queue:
        """Changes a queue while it runs. Shrinking a ring removes nothing.

        Args:
            changes: fields of `QueueSettings` with their new values; None goes back to the default of the address.

        Raises:
            NotFoundError: there is no such queue.
            MisuseError: a setting makes no sense, or can't be changed.
        """
        queue = self._bindings.queue_named(name)
        self._bindings.update_queue(queue, replace(queue.settings, **changes))  # type: ignore[arg-type]
        self._log.close()
        return queue

    def delete_queue(self, name: str) -> None:
        """Deletes a queue with everything in it; its consumers are closed, its lease groups lost."""
        queue = self._bindings.queue_named(name)
        for group in [g for g in self._leases.groups.values() if g.queue is queue]:
            self._leases.release(group.name)
        for consumer in list(queue.consumers):
            self._consuming.leave(queue, consumer, NONE_UNSEEN)
            consumer.port.closed_by_broker(
                NotFoundError("DMQ2109", f"queue '{name}' was deleted; subscribe to another queue or create it again")
            )
        self._dropping.drop(queue)


def _merged(stored: QueueSettings, configured: QueueSettings) -> QueueSettings:
    """What broker.xml says; what it leaves open stays as it was set at run time."""
    said = {name: getattr(configured, name) for name in CHANGEABLE if getattr(configured, name) is not None}
    return replace(stored, **said)
