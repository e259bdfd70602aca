"""Whatever comes, a message is refused by PeerError or kept, and what is kept can be read, converted and delivered."""

# BROKER-4

import random
import tracemalloc

import pytest

from delosmq.model.conversion import Conversions
from delosmq.model.errors import LimitError, PeerError
from delosmq.model.ids import WallMs
from delosmq.wire.core.bodies import hub_body
from delosmq.wire.core.conversion import CoreConversion, stored_message
from delosmq.wire.core.dispatch import ReceiveEncoder
from delosmq.wire.core.message import MAP_TYPE, STREAM_TYPE, TEXT_TYPE, CoreMessage, CoreMessageReader
from delosmq.wire.core.properties import read_broker_properties
from delosmq.wire.openwire.conversion import OpenWireConversion
from delosmq.wire.stomp.conversion import StompConversion
from tests.wire.core.support import GOLDEN

MUTATIONS = 1_500
CONVERSIONS = Conversions(
    {"core": CoreConversion(100_000), "openwire": OpenWireConversion(100_000), "stomp": StompConversion()}
)
SEEDS = [
    bytes.fromhex(line.split()[1])
    for line in (GOLDEN / "messages.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
]


def mutated(rng: random.Random, encoded: bytes) -> bytes:
    """Some bytes changed, taken out or put in."""
    changed = bytearray(encoded)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(changed))
        choice = rng.random()
        if choice < 0.7:
            changed[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        elif choice < 0.85 and len(changed) > 8:
            del changed[at : at + rng.randint(1, 4)]
        else:
            changed[at:at] = rng.randbytes(rng.randint(1, 4))
    return bytes(changed)


def use(sent: CoreMessage, encoder: ReceiveEncoder) -> None:
    """What a broker does with a message that was decoded."""
    asked = read_broker_properties(sent.properties)
    message = stored_message(sent, "orders", asked, WallMs(1), user="", connection_id="c")
    hub = CONVERSIONS.to_hub(message)
    for family in ("core", "openwire", "stomp"):
        CONVERSIONS.from_hub(family, hub, "orders")
    assert b"".join(encoder.encode(message, 1))
    CONVERSIONS.message_id(message)
    message.head = CONVERSIONS.rewritten_head(message, ("text",), {"a": "b"}, ())
    message.annotations = {"_AMQ_ORIG_ADDRESS": "orders", "_AMQ_ORIG_MESSAGE_ID": "1"}
    assert b"".join(encoder.encode(message, 1))


@pytest.mark.parametrize("seed", range(2))
def test_mutated_messages(seed: int) -> None:
    rng = random.Random(seed)
    encoder = ReceiveEncoder(10, 1, CONVERSIONS, bytes(16))
    kept = 0
    for _ in range(MUTATIONS):
        encoded = mutated(rng, rng.choice(SEEDS))
        try:
            use(CoreMessageReader().read(encoded, 0, len(encoded)), encoder)
            kept += 1
        except (PeerError, LimitError):
            continue
    assert MUTATIONS // 10 < kept < MUTATIONS


@pytest.mark.parametrize("core_type", range(9))
def test_bodies_of_noise(core_type: int) -> None:
    rng = random.Random(core_type)
    for _ in range(400):
        body = bytes((rng.choice((0, 1, 2, 4, 10, rng.randrange(256))),)) + rng.randbytes(rng.randrange(30))
        assert hub_body(core_type, body)


@pytest.mark.parametrize(
    "core_type, body",
    [
        (MAP_TYPE, b"\1\x7f\xff\xff\xff" + bytes(1_000)),
        (MAP_TYPE, b"\1\0\1\0\0\x7f\xff\xff\xff" + bytes(400_000)),
        (STREAM_TYPE, b"\x04\x7f\xff\xff\xff" + bytes(1_000)),
        (STREAM_TYPE, b"\x0a\1\x7f\xff\xff\xff\x7f\xff\xff\xff" + bytes(1_000)),
        (TEXT_TYPE, b"\1\x7f\xff\xff\xfe" + bytes(1_000)),
    ],
)
def test_what_is_announced_is_not_built_before_it_is_there(core_type: int, body: bytes) -> None:
    tracemalloc.start()
    try:
        hub_body(core_type, body)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()
