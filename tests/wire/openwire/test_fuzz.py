"""Whatever comes, a decoder raises PeerError or gives commands, and holds no more than its limits allow."""

import random

import pytest

from delosmq.model.conversion import Conversions
from delosmq.model.errors import PeerError
from delosmq.model.ids import WallMs
from delosmq.model.message import Message
from delosmq.wire.openwire.codec import encode_command
from delosmq.wire.openwire.commands import MessageCommand
from delosmq.wire.openwire.conversion import OpenWireConversion
from delosmq.wire.openwire.decoder import OpenWireDecoder, OpenWireLimits
from delosmq.wire.openwire.dispatch import DispatchEncoder, Route
from delosmq.wire.openwire.heads import BODY_KINDS, encode_head, stored_body
from delosmq.wire.openwire.negotiation import WireFormatInfo
from delosmq.wire.openwire.primitives import encode_map
from delosmq.wire.openwire.structures import ConsumerId, Destination, MessageId, ProducerId
from delosmq.wire.openwire.wire_format import LAYOUTS, TABLE, WireFormat, new_structure
from tests.wire.openwire.support import FRAMES, HELLO
from tests.wire.openwire.test_conversion import PROPERTIES

MUTATIONS = 2_000
"""Of each kind in the suite."""
CONVERSIONS = Conversions({"openwire": OpenWireConversion(100_000)})
ROUTE = Route(Destination("q"))


def seeds(form: WireFormat) -> list[bytes]:
    """A frame of each type with as much in it as is easy to make."""
    frames = []
    for code in [code for code in FRAMES if code in LAYOUTS[form.version]]:
        command = new_structure(code)
        for field in TABLE[code]:
            if field.of and field.name != "message" and field.name not in ("broker_path", "cluster", "values"):
                inner = sorted(field.of)[0]
                if inner in LAYOUTS[form.version] and inner >= 100:
                    made: object = new_structure(inner)
                    setattr(command, field.name, [made] if "path" in field.name or "infos" in field.name else made)
        if isinstance(command, MessageCommand):
            command.message_id = MessageId(ProducerId("ID:a", 1, 2), 3)
            command.correlation_id = "c"
            command.content = b"\0\0\0\3abc" if code == 28 else encode_map(PROPERTIES)
            command.marshalled_properties = encode_map(PROPERTIES)
        frames.append(encode_command(command, form))
    return frames


def mutated(rng: random.Random, frame: bytes) -> bytes:
    """Some bytes changed, taken out or put in; the size is mostly that of the frame again."""
    changed = bytearray(frame[4:])
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(changed))
        choice = rng.random()
        if choice < 0.6:
            changed[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        elif choice < 0.8 and len(changed) > 2:
            del changed[at : at + rng.randint(1, 4)]
        else:
            changed[at:at] = rng.randbytes(rng.randint(1, 4))
        if not changed:
            changed = bytearray(1)
    size = len(changed) if rng.random() < 0.95 else rng.getrandbits(32)
    return size.to_bytes(4) + bytes(changed)


def use(command: MessageCommand, form: WireFormat, encoder: DispatchEncoder) -> None:
    """What a broker does with a message that was decoded."""
    message = Message(
        "q",
        f"openwire/{form.version}",
        encode_head(command, form.version, 1),
        stored_body(command),
        body_kind=BODY_KINDS[command.code],
        timestamp_ms=WallMs(1),
    )
    CONVERSIONS.to_hub(message)
    assert b"".join(encoder.encode(message, ROUTE, 0, 1))


def run(form: WireFormat, rng: random.Random, count: int) -> int:
    """How many of the mutated frames were refused."""
    frames = seeds(form)
    encoder = DispatchEncoder(form, ConsumerId("c", 1, 1), CONVERSIONS, "n")
    refused = 0
    decoder = OpenWireDecoder(OpenWireLimits())
    decoder.closed = True
    for _ in range(count):
        if decoder.closed or decoder.buffered_bytes:
            decoder = OpenWireDecoder(OpenWireLimits())
            decoder.next_frame(HELLO)
            decoder.agreed(form)
        try:
            command = decoder.next_frame(mutated(rng, rng.choice(frames)))
            while command is not None:
                if isinstance(command, MessageCommand):
                    use(command, form, encoder)
                command = decoder.next_frame()
        except PeerError:
            refused += 1
    return refused


@pytest.mark.parametrize("options", [{}, {"tight": True}, {"tight": True, "caching": True}, {"caching": True}])
@pytest.mark.parametrize("version", [1, 9, 12])
def test_mutated_frames(version: int, options: dict[str, bool]) -> None:
    refused = run(WireFormat(version, **options), random.Random(version), MUTATIONS // 4)
    assert refused > 0


def test_mutated_greetings() -> None:
    rng = random.Random(1)
    for _ in range(MUTATIONS):
        decoder = OpenWireDecoder(OpenWireLimits())
        try:
            command = decoder.next_frame(mutated(rng, HELLO))
            assert command is None or isinstance(command, WireFormatInfo)
        except PeerError:
            assert decoder.closed


def test_noise() -> None:
    rng = random.Random(2)
    form = WireFormat(12, tight=True)
    for _ in range(MUTATIONS):
        body = bytes((rng.choice(FRAMES),)) + rng.randbytes(rng.randint(0, 60))
        decoder = OpenWireDecoder(OpenWireLimits())
        decoder.next_frame(HELLO)
        decoder.agreed(form)
        try:
            decoder.next_frame(len(body).to_bytes(4) + body)
        except PeerError:
            assert decoder.closed
