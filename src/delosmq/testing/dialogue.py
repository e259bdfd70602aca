"""What a client and the broker say to each other, cut into frames that bear the names of their protocol."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from delosmq.model.errors import PeerError
from delosmq.model.protocol_names import CORE, OPENWIRE, STOMP
from delosmq.wire.core.decoder import CoreDecoder, CoreLimits
from delosmq.wire.decoder import FrameDecoder
from delosmq.wire.openwire.codec import encode_command
from delosmq.wire.openwire.commands import (
    ACTIVEMQ_MESSAGE,
    BLOB_MESSAGE,
    BYTES_MESSAGE,
    COMMANDS,
    DELIVERED_ACK,
    MAP_MESSAGE,
    OBJECT_MESSAGE,
    STREAM_MESSAGE,
    TEXT_MESSAGE,
    ConnectionInfo,
    MessageAck,
    MessageCommand,
    MessageDispatch,
    Response,
)
from delosmq.wire.openwire.decoder import OpenWireDecoder, OpenWireLimits
from delosmq.wire.openwire.negotiation import WireFormatInfo, agree
from delosmq.wire.openwire.structures import MessageId
from delosmq.wire.openwire.wire_format import NOT_FRAMES, WireFormat
from delosmq.wire.stomp.decoder import StompDecoder, StompFrame
from delosmq.wire.stomp.encoder import encode_frame
from delosmq.wire.stomp.heads import COMMANDS as STOMP_COMMANDS
from delosmq.wire.stomp.heads import StompLimits
from delosmq.wire.stomp.versions import V10, V11, V12

# The broker refuses what is too large; what looks on takes all.
_LARGEST: Final = (1 << 31) - 1
_STOMP_LIMITS: Final = StompLimits(
    max_head_bytes=_LARGEST, max_headers=_LARGEST, max_body_bytes=_LARGEST, max_header_line_bytes=_LARGEST
)
_STOMP_VERSIONS: Final = {"1.0": V10, "1.1": V11, "1.2": V12}
_ENDS_OF_LINES: Final = re.compile(rb"[\r\n]*+")

_MESSAGE_NAMES: Final = {
    ACTIVEMQ_MESSAGE: "ActiveMQMessage",
    BYTES_MESSAGE: "ActiveMQBytesMessage",
    MAP_MESSAGE: "ActiveMQMapMessage",
    OBJECT_MESSAGE: "ActiveMQObjectMessage",
    STREAM_MESSAGE: "ActiveMQStreamMessage",
    TEXT_MESSAGE: "ActiveMQTextMessage",
    BLOB_MESSAGE: "ActiveMQBlobMessage",
}
KEEP_ALIVE: Final = "KeepAliveInfo"
ANY_MESSAGE: Final = "Message"
"""Stands for all that OpenWire sends as a message, whatever its body is."""
DELIVERY: Final = "delivery"
"""What a consumer gets a message in, whatever its protocol calls that."""

FRAME_NAMES: Final = (
    *STOMP_COMMANDS,
    "WireFormatInfo",
    *(command.__name__ for command in COMMANDS if command().code not in NOT_FRAMES),
    "MessageAck",
    ANY_MESSAGE,
    *_MESSAGE_NAMES.values(),
)
"""As the protocols have them."""


@dataclass(frozen=True, slots=True)
class CutFrame:
    """One frame as it crossed.

    Attributes:
        kind: one of `FRAME_NAMES`; "" for what stands between frames, such as a heart-beat of STOMP.
        frame: decoded; None between frames.
    """

    raw: bytes = field(repr=False)  # it may hold a password
    kind: str = ""
    frame: object | None = field(default=None, repr=False)

    @property
    def tells(self) -> bool:
        """It is a frame, and more than a sign of life."""
        return self.kind not in {"", KEEP_ALIVE}

    def is_a(self, name: str) -> bool:
        """Whether a name means this frame: its kind, `ANY_MESSAGE` or `DELIVERY`."""
        if name == ANY_MESSAGE:
            return self.kind in _MESSAGE_NAMES.values()
        if name == DELIVERY:
            frame = self.frame
            return self.kind == "MESSAGE" or (type(frame) is MessageDispatch and frame.message is not None)
        return self.kind == name


class Direction:
    """The bytes of one side.

    Attributes:
        pending: the beginning of a frame.
        readable: False once something came that is no frame; nothing is cut any more then.
    """

    def __init__(self, decoder: FrameDecoder) -> None:
        self.decoder = decoder
        self.pending = bytearray()
        self.readable = True

    def cut(self, chunk: bytes, note: Callable[[object], str]) -> list[CutFrame]:
        """The frames that end with ``chunk``.

        Args:
            note: hears of each frame before the next one is cut, and gives its kind.
        """
        found: list[CutFrame] = []
        self.pending += chunk
        try:
            frame = self.decoder.next_frame(chunk)
            while frame is not None:
                size = len(self.pending) - self.decoder.buffered_bytes
                found.append(CutFrame(bytes(self.pending[:size]), note(frame), frame))
                del self.pending[:size]
                frame = self.decoder.next_frame()
        except PeerError:
            self.readable = False
        if not self.readable or self._is_between_frames():
            if self.pending:
                found.append(CutFrame(bytes(self.pending)))
            self.pending.clear()
        return found

    def _is_between_frames(self) -> bool:
        """Looks at the beginning alone: a large frame comes in many pieces."""
        blank = _ENDS_OF_LINES.match(self.pending)
        return blank is not None and blank.end() == len(self.pending)


class Dialogue(ABC):
    """Both sides of one connection."""

    def __init__(self, by_client: FrameDecoder, by_broker: FrameDecoder) -> None:
        self.by_client = Direction(by_client)
        self.by_broker = Direction(by_broker)

    def cut(self, chunk: bytes, *, by_client: bool) -> list[CutFrame]:
        """The frames that end with ``chunk``."""
        side = self.by_client if by_client else self.by_broker
        if not side.readable:
            return [CutFrame(chunk)]
        return side.cut(chunk, lambda frame: self._note(frame, by_client))

    @abstractmethod
    def _note(self, frame: object, by_client: bool) -> str:
        """Follows what both sides agree on, and gives the kind of a frame."""

    @abstractmethod
    def delivered(self, cut: CutFrame) -> str:
        """Which message a frame delivers, by the id that its acknowledgement names; "" for one that delivers none."""

    @abstractmethod
    def acknowledged(self, cut: CutFrame) -> str:
        """Which message a frame acknowledges or rejects, alone or as the last of several; "" for none."""

    @abstractmethod
    def without_password(self, cut: CutFrame) -> bytes:
        """The frame as it may be kept."""

    @abstractmethod
    def confirmation(self, cut: CutFrame) -> bytes:
        """What the broker would answer if it had carried out an acknowledgement; b"" if that asks for no answer."""


class StompDialogue(Dialogue):
    def __init__(self) -> None:
        self._decoders = (StompDecoder(_STOMP_LIMITS), StompDecoder(_STOMP_LIMITS))
        super().__init__(*self._decoders)

    def _note(self, frame: object, by_client: bool) -> str:
        if type(frame) is not StompFrame:
            return ""
        if frame.command == "CONNECTED":
            for decoder in self._decoders:
                decoder.version = _STOMP_VERSIONS.get(frame.headers.get("version", "1.0"), V12)
        return frame.command

    def delivered(self, cut: CutFrame) -> str:
        headers = _headers(cut, "MESSAGE")
        return headers.get("ack") or headers.get("message-id", "")

    def acknowledged(self, cut: CutFrame) -> str:
        headers = _headers(cut, "ACK", "NACK")
        return headers.get("id") or headers.get("message-id", "")

    @property
    def version(self) -> int:
        return self._decoders[0].version

    def without_password(self, cut: CutFrame) -> bytes:
        headers = _headers(cut, "CONNECT", "STOMP")
        if "passcode" not in headers:
            return cut.raw
        return encode_frame(cut.kind, (headers | {"passcode": ""}).items(), b"", self.version)

    def confirmation(self, cut: CutFrame) -> bytes:
        receipt = _headers(cut, "ACK", "NACK").get("receipt", "")
        return b"" if not receipt else encode_frame("RECEIPT", [("receipt-id", receipt)], b"", self.version)


class OpenWireDialogue(Dialogue):
    def __init__(self) -> None:
        limits = OpenWireLimits(_LARGEST, _LARGEST)
        self._decoders = (OpenWireDecoder(limits), OpenWireDecoder(limits))
        self._greetings: dict[bool, WireFormatInfo] = {}
        super().__init__(*self._decoders)

    def _note(self, frame: object, by_client: bool) -> str:
        if type(frame) is MessageCommand:
            return _MESSAGE_NAMES.get(frame.code, ANY_MESSAGE)
        if type(frame) is WireFormatInfo:
            self._greetings[by_client] = frame
            if len(self._greetings) == 2:
                for decoder in self._decoders:
                    # A form of its own: what is cached is cached for one direction.
                    decoder.agreed(self._agreed())
        return type(frame).__name__

    def delivered(self, cut: CutFrame) -> str:
        frame = cut.frame
        if type(frame) is not MessageDispatch or frame.message is None or frame.consumer_id is None:
            return ""
        return f"{frame.consumer_id.key()} {_id_of(frame.message.message_id)}"

    def acknowledged(self, cut: CutFrame) -> str:
        frame = cut.frame
        if type(frame) is not MessageAck or frame.ack_type == DELIVERED_ACK or frame.consumer_id is None:
            return ""
        return f"{frame.consumer_id.key()} {_id_of(frame.last_message_id)}"

    @property
    def form(self) -> WireFormat | None:
        """How frames are encoded; None before both sides have said how they like it."""
        return self._agreed() if len(self._greetings) == 2 else None

    def is_encoded_otherwise(self, other: "OpenWireDialogue") -> bool:
        """Whether a frame of this dialogue can't be read in the other one as it is."""
        forms = [dialogue.form for dialogue in (self, other)]
        return len({None if form is None else (form.version, form.tight, form.caching) for form in forms}) > 1

    def _agreed(self) -> WireFormat:
        return agree(self._greetings[True], self._greetings[False]).form

    def without_password(self, cut: CutFrame) -> bytes:
        frame = cut.frame
        if type(frame) is not ConnectionInfo:
            return cut.raw
        frame.password = None
        return encode_command(frame, self._agreed())

    def confirmation(self, cut: CutFrame) -> bytes:
        frame = cut.frame
        if type(frame) is not MessageAck or not frame.response_required:
            return b""
        return encode_command(Response(frame.command_id), self._agreed())


class UncutDialogue(Dialogue):
    """Of a protocol whose frames are not told apart here: its bytes pass as they come, and none are kept."""

    def __init__(self) -> None:
        super().__init__(CoreDecoder(CoreLimits()), CoreDecoder(CoreLimits()))
        self.by_client.readable = False
        self.by_broker.readable = False

    def _note(self, frame: object, by_client: bool) -> str:
        return ""

    def delivered(self, cut: CutFrame) -> str:
        return ""

    def acknowledged(self, cut: CutFrame) -> str:
        return ""

    def without_password(self, cut: CutFrame) -> bytes:
        return b""

    def confirmation(self, cut: CutFrame) -> bytes:
        return b""


def _headers(cut: CutFrame, *kinds: str) -> dict[str, str]:
    return cut.frame.headers if type(cut.frame) is StompFrame and cut.kind in kinds else {}


def _id_of(message_id: MessageId | None) -> str:
    return "" if message_id is None else message_id.key()


DIALOGUES: Final[dict[str, type[StompDialogue] | type[OpenWireDialogue] | type[UncutDialogue]]] = {
    STOMP: StompDialogue,
    OPENWIRE: OpenWireDialogue,
    CORE: UncutDialogue,
}
