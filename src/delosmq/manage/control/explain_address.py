"""Explaining an address: where what is sent to it goes, and what was sent and reached no queue."""

from dataclasses import dataclass
from typing import Final

from delosmq.engine.api import Address, Divert, EngineBroker, inspect
from delosmq.manage.control.addresses import AddressControl
from delosmq.manage.control.diagnosis import divert_note
from delosmq.model.message import ROUTING_NAMES
from delosmq.model.names import QUEUE_MARK
from delosmq.model.phrases import counted
from delosmq.security.access import VIEW, AccessControl, Login

QUEUES_AT_MOST: Final = 1_000


@dataclass(frozen=True)
class ReachedQueue:
    """A queue that messages sent to the address may enter.

    Attributes:
        address: its own, another one when that is a wildcard address which stands for the one explained.
        filter: what must match, "" for everything.
    """

    name: str
    address: str
    routing_type: str
    filter: str
    enabled: bool
    consumer_count: int
    message_count: int


@dataclass(frozen=True)
class DivertInfo:
    """A divert.

    Attributes:
        exclusive: what it takes reaches no queue of the address.
        copies: that reached a queue, since the broker started; lost_copies: that reached none.
        dead_ends: those of its forwarding addresses where copies reach no queue now.
    """

    name: str
    exclusive: bool
    filter: str
    forwarding_addresses: list[str]
    copies: int
    lost_copies: int
    dead_ends: list[str]


@dataclass(frozen=True)
class AddressExplanation:
    """Where messages sent to an address go.

    Attributes:
        advice: what to do; notes: what else decides it.
        queues: the first of ``queue_count``, those of the address first.
        routed_messages: reached a queue of the address, since the broker started; unrouted_messages: reached none of
            it and no divert.
    """

    address: str
    routing_types: list[str]
    advice: str
    notes: list[str]
    queue_count: int
    queues: list[ReachedQueue]
    diverts: list[DivertInfo]
    routed_messages: int
    unrouted_messages: int


class ExplainAddressControl:
    def __init__(self, broker: EngineBroker, addresses: AddressControl, access: AccessControl) -> None:
        self._broker = broker
        self._addresses = addresses
        self._access = access

    def address(self, login: Login, name: str) -> AddressExplanation:
        """Explains an address.

        Raises:
            NotFoundError: there is none of that name.
        """
        address = self._addresses.find(login, name, VIEW)
        links = self._broker.inspector.links(address)
        wild = [one for one in links if self._access.check(login.roles, one.name, VIEW)]
        queues = [queue for one in (address, *wild) for queue in one.queues()]
        return AddressExplanation(
            address=name,
            routing_types=[ROUTING_NAMES[kind] for kind in sorted(address.routing_types)],
            advice=self._advice(address),
            notes=_notes(address, wild) + self._ends(address),
            queue_count=len(queues),
            queues=[
                ReachedQueue(
                    name=queue.name,
                    address=queue.address.name,
                    routing_type=ROUTING_NAMES[queue.settings.routing_type],
                    filter=queue.settings.filter,
                    enabled=queue.settings.enabled,
                    consumer_count=len(queue.holders),
                    message_count=queue.message_count,
                )
                for queue in queues[:QUEUES_AT_MOST]
            ],
            diverts=[
                DivertInfo(
                    name=divert.name,
                    exclusive=divert.exclusive,
                    filter=divert.settings.filter,
                    forwarding_addresses=list(divert.targets),
                    copies=divert.copies,
                    lost_copies=divert.lost_copies,
                    dead_ends=self._dead_ends(address, divert),
                )
                for divert in address.diverts
            ],
            routed_messages=address.routed_messages,
            unrouted_messages=address.unrouted_messages,
        )

    def _advice(self, address: Address) -> str:
        ends = self._ends(address)
        if ends and not address.waiters:
            return ends[0]
        return _advice(address, reached=self._broker.inspector.reaches_a_queue(address))

    def _dead_ends(self, address: Address, divert: Divert) -> list[str]:
        return [target for target in divert.targets if self._broker.inspector.dead_end(divert, target, address)]

    def _ends(self, address: Address) -> list[str]:
        """A sentence for each dead end of its diverts."""
        return [
            _DEAD_ENDS[self._broker.inspector.dead_end(divert, target, address)].format(
                divert=divert.name, target=target, lost=_lost(divert), name=target.partition(QUEUE_MARK)[0]
            )
            for divert in address.diverts
            for target in self._dead_ends(address, divert)
        ]


_DEAD_ENDS: Final = {
    inspect.NO_QUEUE_THERE: "copies that divert '{divert}' sends to '{target}' go nowhere, as no queue takes "
    "them{lost}; create one with `delosmq queue create NAME --address {name}`, or change the divert in broker.xml",
    inspect.NO_SUCH_END: "divert '{divert}' sends to '{target}', which does not exist, so a message that it takes is "
    "refused; create it, or change the divert in broker.xml",
}


def _lost(divert: Divert) -> str:
    return f" ({counted(divert.lost_copies, 'copy', 'copies')} so far)" if divert.lost_copies else ""


def _advice(address: Address, *, reached: bool) -> str:
    name = address.name
    if address.waiters:
        waiting = counted(len(address.waiters), "sender waits", "senders wait")
        return f"address '{name}' is full, and {waiting} for space; consume what it holds, or raise max-size-bytes"
    if not reached and not address.diverts:
        return (
            f"address '{name}' has no queue, so what is sent to it is gone; subscribe to it, or create one with"
            f" `delosmq queue create NAME --address {name}`"
        )
    if address.unrouted_messages:
        unrouted = counted(address.unrouted_messages, "message")
        return (
            f"{unrouted} reached no queue of address '{name}': sent before there was one, with another routing type,"
            " or past the filters and disabled queues below; compare these with the senders"
        )
    return f"what is sent to address '{name}' reaches its queues and diverts; nothing is to be done"


def _notes(address: Address, links: list[Address]) -> list[str]:
    settings = address.settings
    found = [divert_note(divert) for divert in address.diverts]
    for wild in links:
        found.append(f"the wildcard address '{wild.name}' gets what is sent to it as well")
    if settings.send_to_dla_on_no_route and settings.dead_letter_address:
        found.append(f"what reaches no queue goes to '{settings.dead_letter_address}' (send-to-dla-on-no-route)")
    if address.history is not None:
        kept = counted(address.history.pending.count, "message")
        found.append(f"its last {kept}, at most {address.history.ring_size}, wait for queues to come")
    if address.retained is not None and address.retained.pending.count:
        found.append("a retained message waits for queues to come")
    return found
