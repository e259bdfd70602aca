"""What the tests of the STOMP codec share: one way to decode a stream, in any split."""

from delosmq.model.errors import PeerError
from delosmq.wire.stomp.decoder import StompDecoder, StompFrame
from delosmq.wire.stomp.heads import StompLimits
from delosmq.wire.stomp.versions import V12

Row = tuple[str, tuple[tuple[str, str], ...], bytes, bytes]


class Decoded:
    """What became of a stream: frames as comparable rows, the code of the refusal, and the decoder."""

    def __init__(self, decoder: StompDecoder) -> None:
        self.decoder = decoder
        self.frames: list[StompFrame] = []
        self.refusal: PeerError | None = None

    def rows(self) -> list[Row]:
        return [(f.command, tuple(f.headers.items()), f.head, f.body) for f in self.frames]

    def code(self) -> str | None:
        return None if self.refusal is None else self.refusal.code

    def outcome(self) -> tuple[list[Row], str | None, int]:
        return self.rows(), self.code(), self.decoder.heartbeats


def decode(chunks: list[bytes], version: int = V12, limits: StompLimits | None = None) -> Decoded:
    decoder = StompDecoder(limits or StompLimits())
    decoder.version = version
    decoded = Decoded(decoder)
    for chunk in chunks:
        try:
            frame = decoder.next_frame(chunk)
            while frame is not None:
                decoded.frames.append(frame)
                frame = decoder.next_frame()
        except PeerError as refusal:
            assert decoded.refusal is None
            decoded.refusal = refusal
    return decoded
