"""Temporary destinations: those of this connection, and which of all connections are alive.

The broker tells of them by advisories, to a consumer of its own. Source: AdvisoryConsumer and ActiveMQConnection of the
Java client.
"""

from typing import Final

from delosmq.sessions.openwire.client.acknowledgement import NOT_COUNTED
from delosmq.sessions.openwire.client.ports import CommandSender, PendingRequest
from delosmq.wire.openwire.commands import (
    ADD_DESTINATION,
    REMOVE_DESTINATION,
    STANDARD_ACK,
    ConsumerInfo,
    DestinationInfo,
    MessageAck,
    MessageDispatch,
    RemoveInfo,
    SessionInfo,
)
from delosmq.wire.openwire.structures import (
    TEMP_QUEUE,
    TEMP_TOPIC,
    TOPIC,
    Command,
    ConsumerId,
    Destination,
    SessionId,
)

_ADVISORY_SESSION: Final = -1
_ADVISORIES: Final = Destination("ActiveMQ.Advisory.TempQueue,ActiveMQ.Advisory.TempTopic", TOPIC)
_PREFETCH: Final = 1000
_ACKNOWLEDGED_SHARE: Final = 0.75


class TemporaryNames:
    def __init__(self, sender: CommandSender) -> None:
        self._sender = sender
        self._alive: set[str] = set()
        self._ours: dict[str, DestinationInfo] = {}
        self._consumer: ConsumerInfo | None = None
        self._made: int = 0
        self._watches: bool = False
        self._dispatched: int = 0
        self._consumer_id: ConsumerId = ConsumerId(sender.connection_id.value, _ADVISORY_SESSION, 1)

    # --- news

    def watch(self) -> ConsumerInfo:
        """The consumer of advisories, to be announced."""
        self._watches = True
        info = ConsumerInfo()
        info.consumer_id = self._consumer_id
        info.destination = _ADVISORIES
        info.prefetch_size = _PREFETCH
        info.no_local = True
        info.dispatch_async = True
        self._consumer = info
        return info

    def to_repeat(self) -> list[Command]:
        """What a broker has to be told when the connection is made again. It tells anew what is alive."""
        said: list[Command] = [*self._ours.values()]
        self._dispatched = 0
        self._alive = set(self._ours)
        if self._watches and self._consumer is not None:
            session = SessionInfo()
            session.session_id = SessionId(self._sender.connection_id.value, _ADVISORY_SESSION)
            said += [session, self._consumer]
        return said

    def handles(self, consumer_id: ConsumerId) -> bool:
        return consumer_id.session_id == _ADVISORY_SESSION

    def handle(self, dispatch: MessageDispatch) -> None:
        self._dispatched += 1
        message = dispatch.message
        if self._dispatched > _ACKNOWLEDGED_SHARE * _PREFETCH and message is not None:
            ack = MessageAck()
            ack.destination = dispatch.destination
            ack.consumer_id = self._consumer_id
            ack.ack_type = STANDARD_ACK
            ack.last_message_id = message.message_id
            ack.message_count = self._dispatched
            self._dispatched = 0
            self._sender.send(ack)
        news = None if message is None else message.data_structure
        if isinstance(news, DestinationInfo) and news.destination is not None and news.destination.is_temporary:
            name = news.destination.qualified_name()
            if news.operation_type == ADD_DESTINATION:
                self._alive.add(name)
            else:
                self._alive.discard(name)

    def end_watch(self) -> None:
        if self._watches:
            self._watches = False
            remove = RemoveInfo()
            remove.object_id = self._consumer_id
            remove.last_delivered_sequence_id = NOT_COUNTED
            self._sender.send(remove)

    def is_gone(self, destination: Destination) -> bool:
        """Whether a temporary destination is known to be no more; not known without advisories."""
        return destination.is_temporary and self._watches and destination.qualified_name() not in self._alive

    # --- of this connection

    def is_ours(self, destination: Destination) -> bool:
        return self._sender.connection_id.value in destination.name

    def create(self, *, topic: bool) -> tuple[Destination, PendingRequest]:
        self._made += 1
        name = f"{self._sender.connection_id.value}:{self._made}"
        destination = Destination(name, TEMP_TOPIC if topic else TEMP_QUEUE)
        self._alive.add(destination.qualified_name())
        return destination, self._change(destination, ADD_DESTINATION, "a temporary destination")

    def delete(self, destination: Destination) -> PendingRequest:
        self._alive.discard(destination.qualified_name())
        return self._change(destination, REMOVE_DESTINATION, f"the end of {destination.qualified_name()}")

    def _change(self, destination: Destination, operation: int, what: str) -> PendingRequest:
        info = DestinationInfo()
        info.connection_id = self._sender.connection_id
        info.destination = destination
        info.operation_type = operation
        if operation == ADD_DESTINATION:
            self._ours[destination.qualified_name()] = info
        else:
            self._ours.pop(destination.qualified_name(), None)
        return self._sender.request(info, what)
