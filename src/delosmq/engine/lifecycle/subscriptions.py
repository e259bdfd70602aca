"""Subscriptions: which queue a consumer reads, and the queues that are made for it.

Source: JMS 2.0, 8.3 (durable, shared); Artemis ActiveMQServerImpl and its JMS client, which map them to queues.
"""

from typing import Final

from delosmq.engine.addresses.address import Address
from delosmq.engine.lifecycle.deletion import Deletion
from delosmq.engine.queues.pending_limit import PendingLimit
from delosmq.engine.queues.queue import Queue
from delosmq.engine.routing.parts import EngineParts
from delosmq.model.errors import MisuseError, NotFoundError
from delosmq.model.message import ANY_ROUTING, MULTICAST
from delosmq.model.names import QUEUE_MARK
from delosmq.model.settings import AddressSettings, QueueSettings


class SubscriptionOptions:
    """What a subscriber asks of its queue on a multicast address; of an anycast queue only ``connection_id`` and
    ``user`` count.

    Attributes:
        name: the queue; "" makes one that goes with its only consumer.
        durable: the queue and what it holds stay without a consumer, over restarts too. Needs a name.
        shared: several consumers divide the messages among them. Needs a name; without ``durable`` the queue goes with
            the last of them.
        filter: a selector; what it does not match never enters the queue. "" lets all in.
        retroactive: it starts with what the address keeps for those that ask (``subscription-recovery-*``), or for
            all but not for all subscribers (``always-retroactive`` false).
        pending_limit: how many messages wait at most in a queue that goes with its only consumer; None for any number.
        user: of the client; what is made for the subscription counts to that user.
        connection_id: of the subscriber; only the owner of a temporary destination may consume from it.
    """

    def __init__(
        self,
        *,
        name: str = "",
        durable: bool = False,
        shared: bool = False,
        filter: str = "",
        connection_id: str = "",
        retroactive: bool = False,
        pending_limit: PendingLimit | None = None,
        user: str = "",
    ) -> None:
        self.name = name
        self.durable = durable
        self.shared = shared
        self.filter = filter
        self.connection_id = connection_id
        self.retroactive = retroactive
        self.pending_limit = pending_limit
        self.user = user


NO_OPTIONS: Final = SubscriptionOptions()


class SubscriptionQueues:
    """Finds or makes the queue of a subscriber, within the decision under way."""

    def __init__(self, parts: EngineParts, deletion: Deletion) -> None:
        self._bindings = parts.bindings
        self._random = parts.random
        self._deletion = deletion

    def queue_for(self, address: str, queue_name: str, routing: int, options: SubscriptionOptions) -> Queue:
        """The queue that a subscription reads.

        Raises:
            NotFoundError: there is no such address or queue, and it may not be created.
            MisuseError: it belongs to another connection, or is another subscription that is in use; or the queue that
                has the address's name is on another address.
        """
        if (options.durable or options.shared) and not options.name:
            wanted = "durable" if options.durable else "shared"
            raise MisuseError(
                "DMQ2637", f"the {wanted} subscription to '{address}' has no name; give it one, or subscribe without"
            )
        known = None
        if not options.name and (queue_name or routing != MULTICAST):
            known = self._bindings.queues.get(queue_name or address)
        if known is not None and not known.internal:
            if known.address.name == address:
                _check_owner(known.name, known.owner, known.address.settings, options)
                return known
            if queue_name:
                raise NotFoundError(
                    "DMQ2110",
                    f"queue '{queue_name}' is not on address '{address}', but on another; subscribe to"
                    f" 'ADDRESS{QUEUE_MARK}{queue_name}' with that one, which `delosmq queue stat` names",
                )
            # What was named is an address, and only anycast would need a queue of its name.
            if self._bindings.resolve_routing(address, routing) != MULTICAST:
                raise MisuseError(
                    "DMQ5132",
                    f"queue '{address}' is on another address, so address '{address}' has no queue of its name;"
                    f" subscribe to 'ADDRESS{QUEUE_MARK}{address}' for that queue; `delosmq queue stat` names its"
                    " address",
                )
        target = self._bindings.addresses.get(address)
        self._check_address(address, target, MULTICAST if options.name else routing, options.user)
        if target is not None:
            _check_owner(address, target.owner, target.settings, options)
        if options.name:
            return self._subscription(address, options)
        kind = self._kind(address, queue_name, routing)
        if kind == MULTICAST and not queue_name:
            own = f"{address}.{self._random.token(12)}"
            settings = QueueSettings(
                own, address, MULTICAST, durable=False, auto_created=True, filter=options.filter, auto_delete=False
            )
            made = self._bindings.create_queue(
                settings, temporary=True, retroactive=options.retroactive, user=options.user
            )
            if options.pending_limit is not None:
                made.ring = options.pending_limit
            return made
        name = queue_name or address
        if not self._bindings.settings_of(address).auto_create_queues:
            raise NotFoundError(
                "DMQ2112",
                f"there is no queue '{name}' and its address-settings don't auto-create it; create it in broker.xml",
            )
        settings = QueueSettings(name, address, kind, durable=True, auto_created=True)
        return self._bindings.create_queue(settings, user=options.user)

    def _check_address(self, name: str, address: Address | None, routing: int, user: str) -> None:
        if address is not None:
            self._bindings.check_routing(address, routing, user)
        elif not self._bindings.settings_of(name).auto_create_addresses:
            raise NotFoundError(
                "DMQ2111",
                f"there is no address '{name}' and its address-settings don't auto-create it; create it in broker.xml",
            )

    def _kind(self, address: str, queue_name: str, routing: int) -> int:
        if routing == ANY_ROUTING and queue_name:
            known = self._bindings.addresses.get(address)
            default = self._bindings.settings_of(address).default_queue_routing_type
            if known is None or default in known.routing_types:
                return default
        return self._bindings.resolve_routing(address, routing)

    # -- subscriptions with a name -------------------------------------------------------------------------------

    def _subscription(self, address: str, options: SubscriptionOptions) -> Queue:
        queue = self._bindings.queues.get(options.name)
        if queue is not None:
            if queue.settings.routing_type != MULTICAST or queue.internal:
                raise MisuseError(
                    "DMQ2622",
                    f"'{options.name}' is a queue of address '{queue.address.name}' and no subscription; give the"
                    " subscription another name",
                )
            if self._is_same(queue, address, options):
                queue.usage.swept = False
                if not queue.holders:
                    queue.unshared = not options.shared
                return queue
        settings = QueueSettings(
            options.name,
            address,
            MULTICAST,
            durable=options.durable,
            filter=options.filter,
            auto_delete=False,
            purge_on_no_consumers=False,
        )
        if queue is not None:
            if queue.operators:
                raise MisuseError(
                    "DMQ2658",
                    f"queue '{options.name}' on address '{queue.address.name}' was made by an operator, with filter"
                    f" '{queue.settings.filter}', and no subscription replaces it; subscribe to that address with that"
                    " filter, under another name, or have the queue deleted",
                )
            # The name stands for another subscription now: as in JMS, the old one ends.
            self._bindings.checks.check_queue(settings, of_client=True, user=options.user, replaced=queue)
            self._deletion.drop(queue)
        made = self._bindings.create_queue(
            settings,
            checked=queue is not None,
            temporary=not options.durable,
            retroactive=options.retroactive,
            of_client=True,
            user=options.user,
        )
        made.unshared = not options.shared
        return made

    @staticmethod
    def _is_same(queue: Queue, address: str, options: SubscriptionOptions) -> bool:
        """Whether the queue is the subscription asked for. False: it is another one, and not in use.

        Raises:
            MisuseError: it is another one that is in use, or this one and not shared.
        """
        settings = queue.settings
        same = (
            queue.address.name == address
            and settings.filter == options.filter
            and settings.durable == options.durable
            and settings.enabled
        )
        if queue.holders or queue.delivering.count:
            if not same:
                raise MisuseError(
                    "DMQ2638",
                    f"subscription '{options.name}' is in use with address '{queue.address.name}' and filter"
                    f" '{settings.filter}'; use the same, another name, or close its consumers first",
                )
            if queue.holders and (queue.unshared or not options.shared):
                raise MisuseError(
                    "DMQ2621",
                    f"subscription '{options.name}' is in use and not shared; close its consumer first, or share it",
                )
        return same


def _check_owner(name: str, owner: str, settings: AddressSettings, options: SubscriptionOptions) -> None:
    if owner and owner != options.connection_id and not settings.allow_temp_destination_stealing:
        raise MisuseError(
            "DMQ2635",
            f"'{name}' is temporary and belongs to another connection, which alone may consume from it; make a"
            " temporary destination of your own",
        )
