"""Replies of a session to its peer, and what of the journal must be synced before each.

An answer waits for what its peer may conclude from it, should the power fail right after:

- That a message is stored or acknowledged, or a transaction ended: such an answer waits for everything recorded till
  then (`Replies.answer`), and so do refusals.
- That a consumer, session or connection is gone, and so that all is stored that it sent without wanting answers: this
  waits for what the connection sent (`Replies.part`). Not for acknowledgements that wanted no answer: JMS allows that
  their messages come again, and a connection for each message would pay a sync for it.
- That it has a session, producer, consumer or transaction, or that a destination or subscription is there or gone. The
  former end with the connection, and so with the power. Addresses and queues may stay: such an answer waits for all
  that was recorded about those, by any connection (`Replies.grant`). It says nothing about messages, and does not
  wait for them: a consumer comes without the sync of the acknowledgement that its predecessor did not wait for either.
- Nothing: who the broker is, that it is there (`Replies.tell`).

The two latter may leave before answers that wait, and before refusals of commands that wanted no answer. Clients find
answers by the command's number, and a client that waits for a message to be stored asks for an answer to that one.
Source: ResponseCorrelator of ActiveMQ Classic's client; KahaDBStore: only messages and
acknowledgements that want an answer wait for its syncs.
"""

from typing import Final

from delosmq.engine.api import Log
from delosmq.model.errors import BrokerError
from delosmq.model.ids import NOTHING_DURABLE, Position
from delosmq.sessions.login import RedirectError, TurnedAwayError
from delosmq.sessions.openwire.server.ids import following
from delosmq.sessions.openwire.server.java_exceptions import throwable_of
from delosmq.sessions.outbox import Outbox
from delosmq.wire.openwire.codec import encode_command, encode_response
from delosmq.wire.openwire.commands import (
    ConnectionControl,
    ConnectionError,
    ExceptionResponse,
    KeepAliveInfo,
    MessageCommand,
    ProducerAck,
)
from delosmq.wire.openwire.structures import Command, ConnectionId
from delosmq.wire.openwire.wire_format import NEWEST_VERSION, WireFormat

_FIRST_WITH_BROKERS: Final = 6
"""The version of OpenWire whose ConnectionControl names brokers."""


class Replies:
    """Answers and refusals to one peer.

    Attributes:
        outbox: where they go.
        form: how they are written; what both sides agreed on.
        connection_id: the peer's, once it has said.
    """

    def __init__(self, outbox: Outbox, log: Log) -> None:
        self.outbox: Outbox = outbox
        self.form: WireFormat = WireFormat(NEWEST_VERSION)
        self.connection_id: ConnectionId | None = None
        self._log = log
        self._last_id: int = 0

    def _take_id(self) -> int:
        self._last_id = following(self._last_id)
        return self._last_id

    def write(self, command: Command) -> None:
        """Sends a command that depends on all that was recorded till now."""
        command.command_id = self._take_id()
        self.outbox.reply(self._log.position, encode_command(command, self.form))

    def answer(self, command: Command) -> None:
        """Says that a command was carried out, if its sender wants to know."""
        if command.response_required:
            self.confirm(command, self._log.position)

    def grant(self, command: Command) -> None:
        """Says that a command was carried out which is not about messages, if its sender wants to know."""
        if command.response_required:
            frame = encode_response(command.command_id, self.form, self._take_id())
            self.outbox.reply_early(self._log.bindings_position, frame)

    def part(self, command: Command, sent: Position) -> None:
        """Confirms the end of something, once all that its connection has ``sent`` is synced."""
        if command.response_required:
            self.confirm(command, max(sent, self._log.bindings_position))

    def tell(self, command: Command) -> None:
        """Sends a command that says nothing about what is recorded."""
        command.command_id = self._take_id()
        self.outbox.reply_early(NOTHING_DURABLE, encode_command(command, self.form))

    def confirm(self, command: Command, position: Position) -> None:
        """Says that a command was carried out, as far as ``position``."""
        self.outbox.reply(position, encode_response(command.command_id, self.form, self._take_id()))

    def acknowledge(self, command: MessageCommand, position: Position) -> None:
        """Gives a producer its window back: its message is where it belongs, as far as ``position``."""
        acknowledgement = ProducerAck(command.producer_id, command.size_bytes())
        acknowledgement.command_id = self._take_id()
        self.outbox.reply(position, encode_command(acknowledgement, self.form))

    def refuse(self, command: Command, error: BrokerError) -> None:
        """Says why a command was not carried out, to one who waits for that."""
        self.write(ExceptionResponse(command.command_id, throwable_of(error)))

    def fail(self, error: BrokerError) -> None:
        """Says what is wrong with the connection."""
        self.write(ConnectionError(throwable_of(error), self.connection_id))

    def turn_away(self, error: TurnedAwayError) -> None:
        """Says why the connection gets no session here, and where to, to a client that tells that by itself: one with
        `failover:`. Versions before 6 can't name another broker."""
        if not isinstance(error, RedirectError) or self.form.version < _FIRST_WITH_BROKERS:
            self.fail(error)
            return
        control = ConnectionControl()
        control.connected_brokers = f"{'ssl' if error.tls else 'tcp'}://{error.place}"
        control.rebalance_connection = True
        self.tell(control)

    def beat(self) -> None:
        """Says that the broker is there."""
        self.outbox.beat(encode_command(KeepAliveInfo(), self.form))
