"""Encodes what a client sends. Messages and acknowledgements repeat what the last ones began with, which is kept."""

from delosmq.wire.openwire.acks import AckWriter
from delosmq.wire.openwire.codec import encode_command
from delosmq.wire.openwire.commands import MessageAck, MessageCommand
from delosmq.wire.openwire.messages import MessageWriter
from delosmq.wire.openwire.structures import Command
from delosmq.wire.openwire.wire_format import WireFormat


class CommandEncoder:
    """Of one socket.

    Attributes:
        form: what was agreed with the broker.
    """

    def __init__(self, form: WireFormat) -> None:
        self.form = form
        self._messages: MessageWriter = MessageWriter(form)
        self._acks: AckWriter = AckWriter(form)

    def encode(self, command: Command) -> bytes:
        """The frame."""
        if isinstance(command, MessageCommand):
            return self._messages.write(command)
        if isinstance(command, MessageAck):
            return self._acks.write(command)
        return encode_command(command, self.form)
