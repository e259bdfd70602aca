"""What a session tells its peer. All of it but keep-alives waits until what was recorded before it is synced."""

from delosmq.engine.log import Log
from delosmq.model.errors import BrokerError
from delosmq.model.ids import Position
from delosmq.sessions.openwire.ids import following
from delosmq.sessions.openwire.refusal import throwable_of
from delosmq.sessions.outbox import Outbox
from delosmq.wire.openwire.codec import encode_command, encode_response
from delosmq.wire.openwire.commands import (
    Command,
    ConnectionError,
    ConnectionId,
    ExceptionResponse,
    KeepAliveInfo,
    MessageCommand,
    ProducerAck,
)
from delosmq.wire.openwire.form import WireForm
from delosmq.wire.openwire.layout import NEWEST_VERSION


class Replies:
    """Answers and refusals to one peer.

    Attributes:
        outbox: where they go.
        form: how they are written; what both sides agreed on.
        connection_id: the peer's, once it has said.
    """

    def __init__(self, outbox: Outbox, log: Log) -> None:
        self.outbox: Outbox = outbox
        self.form: WireForm = WireForm(NEWEST_VERSION)
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

    def beat(self) -> None:
        """Says that the broker is there."""
        self.outbox.beat(encode_command(KeepAliveInfo(), self.form))
