"""A spare connection to a broker: both sides have agreed on the wire format, and the client has not logged in.

Source: BackupTransport of the Java client.
"""

from delosmq.model.errors import PeerError
from delosmq.model.ids import MonotonicNs
from delosmq.model.ports import Clock
from delosmq.sessions.client_errors import ClientError
from delosmq.sessions.openwire.client import errors
from delosmq.sessions.openwire.client.encoder import CommandEncoder
from delosmq.sessions.openwire.client.handshake import offer
from delosmq.sessions.openwire.client.inactivity import ClientInactivity
from delosmq.sessions.openwire.client.options import WireFormatOptions
from delosmq.sessions.openwire.client.ports import Appointments
from delosmq.wire.openwire.commands import BrokerInfo, KeepAliveInfo
from delosmq.wire.openwire.decoder import OpenWireDecoder, OpenWireLimits
from delosmq.wire.openwire.negotiation import WireFormatInfo, agree, encode_wire_format_info
from delosmq.wire.openwire.structures import Structure


class OpenWireSpare:
    """
    Args:
        peer: the broker's address, for people.

    Attributes:
        theirs: what the broker offers; None while it has not said it.
        broker_info: what it calls itself, if it has said so.
        decoder: of what comes next.
        error: why it is of no use; None while it is.
    """

    def __init__(self, wanted: WireFormatOptions, peer: str, clock: Clock) -> None:
        self.theirs: WireFormatInfo | None = None
        self.broker_info: BrokerInfo | None = None
        self.decoder: OpenWireDecoder = OpenWireDecoder(OpenWireLimits(max_frame_bytes=wanted.max_frame_size_bytes))
        self.error: ClientError | None = None
        self._peer = peer
        self._clock = clock
        self._ours: WireFormatInfo = offer(wanted, "")
        self._encoder: CommandEncoder | None = None
        self._appointments: Appointments = Appointments()
        self._inactivity: ClientInactivity = ClientInactivity(clock, self._appointments, self._beat, self._silent)
        self._output: list[bytes] = [encode_wire_format_info(self._ours)]

    def receive(self, chunk: bytes) -> None:
        """Bytes of the broker."""
        self._inactivity.heard()
        try:
            frame = self.decoder.next_frame(chunk)
            while frame is not None:
                self._handle(frame)
                frame = self.decoder.next_frame()
        except PeerError as error:
            self.error = errors.no_broker(self._peer, error.message)

    def take_output(self) -> bytes:
        """What is to be sent to the broker."""
        output = b"".join(self._output)
        self._output = []
        return output

    def next_timer(self) -> MonotonicNs:
        """When to call `handle_timer`; 0 for never."""
        return self._appointments.next_at

    def handle_timer(self) -> None:
        self._appointments.run(self._clock.monotonic_ns())

    def _handle(self, frame: Structure) -> None:
        if isinstance(frame, WireFormatInfo) and self.theirs is None:
            agreement = agree(self._ours, frame)
            self.theirs = frame
            self._encoder = CommandEncoder(agreement.form)
            self.decoder.agreed(agreement.form)
            self._inactivity.begin(agreement)
        elif isinstance(frame, KeepAliveInfo) and frame.response_required:
            self._beat()
        elif isinstance(frame, BrokerInfo):
            self.broker_info = frame

    def _beat(self) -> None:
        if self._encoder is not None:
            self._output.append(self._encoder.encode(KeepAliveInfo()))

    def _silent(self, timeout_ms: int) -> None:
        self.error = errors.silent(self._peer, timeout_ms)
