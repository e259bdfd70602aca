"""Resources: addresses and queues that configuration and management make, change and delete. Each call is one
decision."""

from dataclasses import replace
from typing import Final

from delosmq.engine.addresses.address import Address, address_of
from delosmq.engine.addresses.divert import Divert
from delosmq.engine.addresses.filter import check_filter
from delosmq.engine.addresses.settings_checks import check_together
from delosmq.engine.consumers import EngineConsumers
from delosmq.engine.delivery.acknowledgements import NONE_UNSEEN
from delosmq.engine.leases.lease import DELETED
from delosmq.engine.leases.leases import Leases
from delosmq.engine.lifecycle.auto_delete import AutoDelete
from delosmq.engine.lifecycle.deletion import Deletion
from delosmq.engine.lifecycle.purge import Purge
from delosmq.engine.lifecycle.retroactive import Retroactive
from delosmq.engine.queues.consumer import consumers_of
from delosmq.engine.queues.queue import Queue
from delosmq.engine.routing.parts import EngineParts
from delosmq.model.declared.queue import CONTRADICTORY, QUEUE_SETTINGS
from delosmq.model.errors import BrokerError, MisuseError, NotFoundError
from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.phrases import counted
from delosmq.model.settings import AddressDefinition, BrokerSettings, DivertSettings, QueueSettings
from delosmq.model.wildcard import AddressSettingsTable

RENAMED_SUFFIX: Final = ".aside"
"""Behind the name of a stored queue when a declared one has its name."""


class EngineResources:
    """Creates, changes and deletes addresses and queues, for operators and configuration."""

    def __init__(self, parts: EngineParts, consumers: EngineConsumers, deletion: Deletion, leases: Leases) -> None:
        self._parts = parts
        self._settings = parts.settings
        self._log = parts.log
        self._bindings = parts.bindings
        self._evictions = parts.evictions
        self._consumers = consumers
        self._deletion = deletion
        self._leases = leases
        self._auto_delete = AutoDelete(parts, deletion)

    def configure(self) -> None:
        """Makes what the configuration names, and cuts queues down to their rings. Called once, at start."""
        self._auto_delete.drop_replayed()
        for divert in self._settings.diverts:
            self._add_divert(divert)
        for address in self._settings.addresses:
            self._configure_address(address)
        for settings in self._settings.queues:
            self._configure_queue(settings)
        for known in list(self._bindings.addresses.values()):
            self._bindings.keep_history(known, known.made_by)
            self._deletion.drop_unwanted_history(known)
        self._log.close()
        for queue in self._bindings.queues.values():
            if queue.last_values is not None:
                self._parts.last_value_rule.reload(queue)
                self._log.close()
            # While reloading a queue is cut down to its ring (ring-queues: after a restart).
            while not self._evictions.take_out(queue, queue.ring.pushed_out):
                pass
        listener = Retroactive(self._parts)
        self._bindings.listener = listener
        for known in self._bindings.addresses.values():
            if known.history is not None:
                listener.history_added(known.history)
        for queue_id, (first, through, copied) in list(self._bindings.history_fills.progress.items()):
            listener.fill_again(self._bindings.by_id[queue_id], first, through, copied)
        self._auto_delete.begin()

    def _add_divert(self, settings: DivertSettings) -> None:
        check_filter(f"divert '{settings.name}'", settings.filter)
        if settings.address in settings.forwarding_addresses:
            raise MisuseError(
                "DMQ2639",
                f"divert '{settings.name}' forwards '{settings.address}' to itself; name another forwarding-address",
            )
        self._bindings.add_divert(Divert(settings, self._parts.conversions))

    def _configure_address(self, wanted: AddressDefinition) -> None:
        address = self._bindings.create_address(wanted.name, set(wanted.routing_types))
        self._bindings.take_over_address(address)

    def _configure_queue(self, settings: QueueSettings) -> None:
        known = self._bindings.queues.get(settings.name)
        if known is not None and not _is_same(known.settings, settings):
            self._move_aside(known, settings)
            known = None
        if known is None:
            known = self._bindings.create_queue(settings)
        else:
            merged = _merged(known.settings, settings)
            if merged != known.settings:
                self._bindings.update_queue(known, merged)
            self._bindings.take_over_queue(known)
            address = address_of(known)
            if address.auto_created:
                self._bindings.take_over_address(address)
        known.declared = True

    def _move_aside(self, stored: Queue, declared: QueueSettings) -> None:
        """Gives a stored queue another name, as a declared one has its own. It keeps what it holds and takes nothing
        more.

        Raises:
            MisuseError: an operator made it, or it has consumers.
        """
        if stored.operators or stored.holders:
            made = f"where user '{stored.settings.user}' created it" if stored.operators else "where it has consumers"
            raise MisuseError(
                "DMQ2106",
                f"broker.xml puts queue '{declared.name}' on address '{declared.address}', the journal holds it on"
                f" '{stored.settings.address}', {made}; start without it in"
                " broker.xml and delete the stored queue, or give the new one another name",
            )
        name = f"{stored.name}{RENAMED_SUFFIX}"
        count = 1
        while name in self._bindings.queues:
            count += 1
            name = f"{stored.name}{RENAMED_SUFFIX}-{count}"
        self._parts.dropped.tell_moved_aside(stored, name, declared.address)
        self._bindings.update_queue(stored, replace(stored.settings, name=name, enabled=False))

    def reload(self, settings: BrokerSettings) -> list[str]:
        """Puts other address-settings, a bound of memory and new addresses and queues into force while the broker runs.

        A queue is changed only where its own settings differ from those of the last load: what an operator changed
        meanwhile stays. Nothing is deleted.

        Returns:
            Why addresses and queues are not as ``settings`` want them, a sentence each.
        """
        before = {queue.name: queue for queue in self._settings.queues}
        self._parts.memory.set_limit(settings.global_max_size_bytes)
        self._parts.duplicates.bound(settings.global_max_size_bytes)
        for queue in self._bindings.replace_settings(
            AddressSettingsTable(settings.address_settings, settings.wildcards)
        ):
            queue.ask_dispatch()
        self._parts.memory.released = True  # producers that wait for room ask again
        refused: list[str] = []
        for address in settings.addresses:
            try:
                self._configure_address(address)
            except BrokerError as error:
                refused.append(f"address '{address.name}' is not made: {error}")
            self._log.close()
        named = {queue.name for queue in settings.queues}
        obeyed = {name: queue for name, queue in before.items() if name in named}
        for wanted in settings.queues:
            if before.get(wanted.name) == wanted:
                continue
            try:
                self._configure_queue(wanted)
                obeyed[wanted.name] = wanted
            except BrokerError as error:
                refused.append(f"queue '{wanted.name}' stays as it is: {error}")
            self._log.close()
            known = self._bindings.queues.get(wanted.name)
            if known is not None:
                known.ask_dispatch()
        # What was refused is not in force: the next reload tries it again.
        self._settings = replace(settings, queues=tuple(obeyed.values()))
        return refused

    def create_address(
        self, name: str, routing_types: set[int], user: str = "", *, auto_created: bool = False
    ) -> Address:
        """Creates an address, or adds routing types to an existing one.

        Args:
            user: of the client that asks for it, "" for an operator.
            auto_created: it goes when it is not used, if its address-settings say so.
        """
        address = self._bindings.create_address(name, routing_types, auto_created=auto_created, user=user)
        if not user:
            self._bindings.take_over_address(address)
        self._log.close()
        return address

    def create_queue(
        self, settings: QueueSettings, user: str = "", *, of_client: bool = False, temporary: bool = False
    ) -> Queue:
        """Creates a queue and, if need be, its address.

        Args:
            user: of the client that asks for it, "" for an operator.
            of_client, temporary: as in `Bindings.create_queue` and `Queue`.

        Raises:
            MisuseError: the name is taken or a setting makes no sense.
        """
        if any(getattr(settings, name) is not None for name in CONTRADICTORY):
            check_together(settings, self._bindings.settings_of(settings.address))
        queue = self._bindings.create_queue(settings, user=user, of_client=of_client, temporary=temporary)
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
        wanted: QueueSettings = replace(queue.settings, **changes)  # type: ignore[arg-type]
        # Only what is changed now: a queue of an older release can be paused and resumed whatever it says.
        if any(name in CONTRADICTORY for name in changes):
            check_together(wanted, queue.address.settings)
        self._bindings.update_queue(queue, wanted)
        if wanted.enabled:
            self._parts.dropped.enabled(name)
        self._log.close()
        queue.ask_dispatch()
        return queue

    def delete_queue(self, name: str, user: str = "") -> None:
        """Deletes a queue with everything in it; its consumers are closed, its lease groups lost.

        Args:
            user: of the client that asks for it, "" for an operator.
        """
        queue = self._bindings.queue_named(name)
        messages = queue.message_count
        self._delete(queue)
        if user:
            self._parts.events.deleted_by_client(name, queue.address.name, user, messages)

    def _delete(self, queue: Queue) -> None:
        name = queue.name
        for group in [g for g in self._leases.groups.values() if g.queue is queue]:
            self._leases.release(group.name, DELETED)
        for consumer in consumers_of(queue):
            self._consumers.leave(queue, consumer, NONE_UNSEEN)
            consumer.port.closed_by_broker(
                NotFoundError("DMQ2109", f"queue '{name}' was deleted; subscribe to another queue or create it again")
            )
        self._deletion.drop(queue)

    def delete_address(self, name: str, *, force: bool = False, user: str = "") -> None:
        """Deletes an address; with ``force`` its queues and all they hold as well.

        Args:
            user: of the client that asks for it, "" for an operator.

        Raises:
            NotFoundError: there is no such address.
            MisuseError: it has queues, and they were not to be deleted; nothing has changed.
        """
        address = self._bindings.address_named(name)
        queues = address.queues()
        if queues and not force:
            raise MisuseError(
                "DMQ2636",
                f"address '{name}' has {counted(len(queues), 'queue')}; delete them first, or force it to go with them",
            )
        for queue in queues:
            self._delete(queue)
        # An auto-created one went with its last queue.
        if self._bindings.addresses.get(name) is address:
            self._deletion.drop_address(address)
        if user:
            self._parts.events.deleted_by_client("", name, user, 0)

    def purge_queue(self, name: str) -> Purge:
        """Empties a queue of what is not in delivery; what comes meanwhile stays.

        Returns:
            The work, of which the first slice is done: how much is gone, and whether that is all.

        Raises:
            NotFoundError: there is no such queue.
        """
        return self._deletion.purge(self._bindings.queue_named(name))

    # -- what belongs to one connection --------------------------------------------------------------------------

    def create_temporary(self, name: str, routing: int, owner: str, user: str = "") -> Address:
        """Creates an address, for anycast with its queue, that ends with its connection and from which no other
        consumes. Nothing of it is recorded.

        Raises:
            MisuseError: the name is taken.
        """
        if name in self._bindings.addresses or name in self._bindings.queues:
            raise MisuseError("DMQ2640", f"'{name}' exists already; a temporary destination needs a name of its own")
        address = self._bindings.create_address(name, {routing}, auto_created=True, owner=owner, user=user)
        if routing == ANYCAST:
            self._bindings.create_queue(
                QueueSettings(name, name, ANYCAST, durable=False, auto_created=True, auto_delete=False), user=user
            )
        self._bindings.temporary.setdefault(owner, []).append(address)
        self._log.close()
        return address

    def delete_temporary(self, owner: str, name: str = "") -> int:
        """Deletes the temporary destinations of a connection, or the one named; gives how many."""
        owned = self._bindings.temporary.pop(owner, [])
        kept = [address for address in owned if name and address.name != name]
        if kept:
            self._bindings.temporary[owner] = kept
        ended = [address for address in owned if not name or address.name == name]
        for address in ended:
            for queue in address.queues():
                self._delete(queue)
            if self._bindings.addresses.get(address.name) is address:
                self._deletion.drop_address(address)
        return len(ended)

    def move_temporary(self, owner: str, new_owner: str) -> None:
        """The temporary destinations of a connection are another one's from now on: its client has come back by it."""
        moved = self._bindings.temporary.pop(owner, [])
        for address in moved:
            address.owner = new_owner
            for queue in address.queues():
                queue.owner = new_owner
        if moved:
            self._bindings.temporary.setdefault(new_owner, []).extend(moved)

    def unsubscribe(self, name: str, user: str = "") -> None:
        """Ends a subscription and what it holds.

        Args:
            user: of the client that asks for it, "" for none.

        Raises:
            NotFoundError: there is none of that name.
            MisuseError: it is in use, or no subscription.
        """
        queue = self._bindings.queue_named(name)
        if queue.settings.routing_type != MULTICAST or queue.operators:
            raise MisuseError("DMQ2641", f"'{name}' is a queue and no subscription; delete it instead")
        if queue.holders or self._leases.on_queue(queue):
            raise MisuseError("DMQ2642", f"subscription '{name}' is in use; close its consumers first")
        messages = queue.message_count
        self._deletion.drop(queue)
        if user:
            self._parts.events.deleted_by_client(name, queue.address.name, user, messages)


def _is_same(stored: QueueSettings, declared: QueueSettings) -> bool:
    return (stored.address, stored.routing_type) == (declared.address, declared.routing_type)


def _merged(stored: QueueSettings, configured: QueueSettings) -> QueueSettings:
    """What broker.xml says, its filter always; what it leaves open stays as it was set at run time."""
    changeable = [name for name, setting in QUEUE_SETTINGS.items() if not setting.fixed]
    said = {name: getattr(configured, name) for name in changeable if getattr(configured, name) is not None}
    if not configured.enabled:
        said["enabled"] = False
    return replace(stored, filter=configured.filter, **said)
