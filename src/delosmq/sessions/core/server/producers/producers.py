"""The sending half of a session: messages to the engine, and the answers to their senders.

Source: ServerSessionImpl.send and checkAutoCreate of Artemis. A message that names no routing type creates nothing: it
goes to the queues that are there, if any.
"""

from typing import Final

from delosmq.model.errors import BrokerError
from delosmq.model.ids import WallMs
from delosmq.model.message import ANY_ROUTING, Message
from delosmq.security.access import MANAGE, SEND
from delosmq.sessions.core.server import errors
from delosmq.sessions.core.server.destinations import CoreDestinations, CoreTarget
from delosmq.sessions.core.server.producers.producer_credits import SessionCredits
from delosmq.sessions.core.server.session_port import SessionPort
from delosmq.sessions.core.server.transactions.local_transactions import CoreTransaction
from delosmq.sessions.machine import SessionMachine
from delosmq.sessions.parked_sends import Parked, ParkedSends
from delosmq.sessions.permissions import Permissions
from delosmq.wire.core.conversion import stored_message
from delosmq.wire.core.message import CoreMessage
from delosmq.wire.core.message_packets import SessionSend
from delosmq.wire.core.packet import Packet
from delosmq.wire.core.properties import BrokerPropertyReader
from delosmq.wire.core.session_packets import RequestProducerCredits

_TARGETS: Final = 1_000
"""Destinations with checked rights, so that these are not looked up for each message. Then all are dropped."""


class ParkedCoreSend(Parked):
    """A message that waits for space, or one that the broker carries out itself."""

    def __init__(
        self,
        session: SessionPort,
        request: Packet,
        message: Message | None,
        work: CoreTransaction | None,
        *,
        target: CoreTarget,
        routing: int,
    ) -> None:
        super().__init__(message, work, queue_name=target.queue_name, routing=routing)
        self._session = session
        self._request = request
        if isinstance(request, SessionSend):
            # Its message is the broker's now: what waits is counted once.
            request.message = CoreMessage()

    def answer(self) -> None:
        self._session.message_sent(self._request)

    def refuse(self, error: BrokerError) -> None:
        if self.work is not None:
            self.work.transaction.set_rollback_only(error)
        self._session.refuse(self._request, error)


class CoreProducers:
    """All producers of one session."""

    def __init__(
        self,
        machine: SessionMachine,
        session: SessionPort,
        parked_sends: ParkedSends,
        *,
        permissions: Permissions,
        destinations: CoreDestinations,
        default_address: str,
    ) -> None:
        """
        Args:
            default_address: of messages that name none; "" for the first that is named.
        """
        self._machine = machine
        self._session = session
        self._broker = machine.services.broker
        self._management = machine.services.management
        self._parked_sends = parked_sends
        self._permissions = permissions
        self._destinations = destinations
        self._default_address = default_address
        self._connection_id = machine.peer.connection_id
        self._properties: BrokerPropertyReader = BrokerPropertyReader()
        self._targets: dict[str, CoreTarget] = {}
        self.credits: SessionCredits = SessionCredits(self._broker, session.replies)

    def request_credits(self, packet: RequestProducerCredits) -> None:
        """Handles a request for credits; the answer may come later.

        Raises:
            CoreError: the address can't be used, or the session waits for room at too many.
        """
        self.credits.request(packet.address, self._destinations.decode(packet.address).address, packet.credits)

    def send(
        self,
        sent: CoreMessage,
        request: Packet,
        work: CoreTransaction | None,
        *,
        large: bool = False,
        large_body_size: int = -1,
    ) -> None:
        """Handles a message; its sender is answered once it is where it belongs.

        Raises:
            BrokerError: it can't be sent.
        """
        name = sent.address or self._default_address
        if not name:
            raise errors.no_address()
        if not self._default_address:
            self._default_address = name
        asked = self._properties.read(sent.properties)
        target = self._target(name)
        routing = asked.routing or target.routing
        if not target.create_checked:
            self._check(target, routing)
        granted = self.credits.spend(name, sent.encoded_size)
        wall: WallMs = self._machine.wall
        message = stored_message(
            sent,
            target.address,
            asked,
            wall,
            user=self._permissions.user,
            connection_id=self._connection_id,
            large=large,
            large_body_size=large_body_size,
        )
        parked_sends = self._parked_sends
        if target.management:
            entry = ParkedCoreSend(self._session, request, None, work, target=target, routing=routing)
            parked_sends.answer_call(entry, self._management.begin(message, self._permissions.login()), work)
        elif routing == ANY_ROUTING and not target.queue_name and target.address not in self._broker.addresses:
            self._session.message_sent(request)  # nothing is made, so it has no route
        elif parked_sends.parked_bytes or not parked_sends.try_send(
            message, work, target.queue_name, routing, granted=granted
        ):
            parked_sends.park(ParkedCoreSend(self._session, request, message, work, target=target, routing=routing))
        else:
            self._session.message_sent(request)

    def move(self, machine: SessionMachine) -> None:
        """The session has another connection, and may have missed that rights have changed."""
        self._machine = machine
        self.rights_changed()

    def rights_changed(self) -> None:
        """Whether the user may send is asked again."""
        self._targets.clear()

    def _target(self, name: str) -> CoreTarget:
        target = self._targets.get(name)
        if target is None:
            target = self._destinations.decode(name)
            target.management = target.address == self._management.address and not target.queue_name
            if len(self._targets) >= _TARGETS:
                self._targets.clear()
            self._targets[name] = target
        return target

    def _check(self, target: CoreTarget, routing: int) -> None:
        permissions = self._permissions
        address = target.address
        if target.management:
            permissions.require(address, MANAGE)
            target.create_checked = True
            return
        if not target.send_checked:
            known = self._broker.addresses.get(address)
            temporary = known is not None and known.owner != ""  # which was made to be answered
            if not temporary:
                permissions.require_use(address, target.queue_name, SEND)
            target.send_checked = True
            target.create_checked = temporary or permissions.may_create(address)
        if not target.create_checked and routing != ANY_ROUTING and not target.queue_name:
            permissions.require_creation(address, "", routing, for_subscription=False)

    def close(self) -> None:
        """The session has ended."""
        self.credits.close()
        self._targets.clear()
