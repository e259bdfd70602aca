"""What only the broker says, no sender says: the names of `delosmq.model.reserved_names`, from every protocol to every
reader."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delosmq.engine.base.slots import Slot
from delosmq.model.properties import STRING_KIND, TypedValue
from delosmq.model.reserved_names import RESERVED
from delosmq.selectors.selector import parse_selector
from delosmq.selectors.subject import Subject
from delosmq.sessions.lease.columns import Columns
from delosmq.wire.openwire.commands import ConsumerInfo
from delosmq.wire.openwire.negotiation import WireFormatInfo
from delosmq.wire.openwire.primitives import encode_map
from delosmq.wire.openwire.properties import SIGNS, decode_properties
from delosmq.wire.stomp.conversion import NOT_RELAYED, OF_FRAMES, encode_lines
from delosmq.wire.stomp.versions import V10, V11, V12
from tests.sessions.openwire.stomp_peer import StompPeer
from tests.sessions.openwire.support import OpenWireBench, code_of, queue, topic

A = queue("a")
FORGED = "forged"
VERSIONS = (V10, V11, V12)
# What a reader would believe of these is written out, so that a name that goes missing from the tables is noticed here.
OF_MESSAGES = sorted(
    RESERVED
    | {
        *("JMSXUserID", "_AMQ_VALIDATED_USER", "JMSXDeliveryCount", "JMSXGroupFirstForConsumer", "__AMQ_CID"),
        *("JMSDestination", "JMSExpiration", "JMSMessageID", "JMSRedelivered", "JMSTimestamp"),
        *("_AMQ_ORIG_ADDRESS", "_AMQ_ORIG_QUEUE", "dlqDeliveryFailureCause", "ActiveMQ.Retained"),
    }
)
OF_STOMP = sorted(
    (OF_FRAMES | {"ack", "browser", "message-id", "receipt-id", "redelivered", "subscription", "timestamp"})
    - {"destination", "amq-msg-type", "destination-type"}
)
"""Headers of a MESSAGE or of another frame to a client, which JMS clients may use as they like."""
ASKS_THE_BROKER = {"destination-type", "receipt", "transaction", "content-length", "persistent", "priority", "expires"}
"""What means something in a SEND itself."""

Send = Callable[[OpenWireBench, str], None]


def stomp_sender(version: int) -> Send:
    def send(bench: OpenWireBench, name: str) -> None:
        line = encode_lines([(name, FORGED)], version).decode().removesuffix("\n")
        StompPeer(bench, version=version).frame("SEND", "destination:/queue/a", line, "kept:yes", body=b"x")

    return send


def openwire_sender(version: int, *, tight: bool = False) -> Send:
    def send(bench: OpenWireBench, name: str) -> None:
        info = WireFormatInfo(version)
        info.tight_encoding_enabled = tight
        client = bench.negotiate(info)
        client.log_in(f"ID:client-{len(bench.clients)}")
        message = client.text(A, "x")
        properties = {name: TypedValue(STRING_KIND, FORGED), "kept": TypedValue(STRING_KIND, "yes")}
        message.marshalled_properties = encode_map(properties)
        client.ok(message)

    return send


SENDERS = {f"stomp {version}": stomp_sender(version) for version in VERSIONS}
SENDERS |= {f"openwire {version}": openwire_sender(version) for version in (1, 9, 12)}
SENDERS["openwire tight"] = openwire_sender(12, tight=True)


def sent(sender: str, name: str) -> OpenWireBench:
    bench = OpenWireBench()
    SENDERS[sender](bench, name)
    assert bench.queue("a").pending.count == 1, name
    return bench


def slot_of(bench: OpenWireBench) -> Slot:
    (level,) = (level for level in bench.queue("a").pending.levels() if level.head is not None)
    assert level.head is not None
    return level.head


def as_a_lenient_client_reads(raw: bytes) -> dict[str, str]:
    """The headers of a MESSAGE for a client that trims, and believes the first of repeated ones."""
    head = raw.lstrip(b"\n").partition(b"\n\n")[0].decode()
    headers: dict[str, str] = {}
    for line in head.split("\n")[1:]:
        name, _, value = line.partition(":")
        headers.setdefault(name.strip(), value.strip())
    return headers


def browsed_by_stomp(bench: OpenWireBench, version: int) -> bytes:
    reader = StompPeer(bench, version=version)
    reader.frame("SUBSCRIBE", "id:s", "destination:/queue/a", "browser:true")
    return reader.take_raw()


def seen_by_stomp(bench: OpenWireBench, version: int) -> dict[str, str]:
    return as_a_lenient_client_reads(browsed_by_stomp(bench, version))


def seen_by_openwire(bench: OpenWireBench, version: int) -> dict[str, str]:
    client = bench.negotiate(WireFormatInfo(version))
    client.log_in("ID:reader")
    info: ConsumerInfo = client.consumer_info(A)
    info.browser = True
    reader = client.subscribe(info)
    (dispatch,) = reader.take()
    message = dispatch.message
    assert message is not None
    properties = decode_properties(message.marshalled_properties)
    return {name: str(typed.value) for name, typed in properties.items()}


def seen_by_people(bench: OpenWireBench) -> dict[str, str]:
    return bench.services.conversions.to_hub(slot_of(bench).message).property_texts()


def seen_in_rows(bench: OpenWireBench) -> dict[str, str]:
    columns = Columns(("properties",), "a", bench.services.conversions)
    columns.add([slot_of(bench)], 0, 1, 1_000)
    return dict(zip(columns.properties.names, columns.properties.texts, strict=True))


READERS: dict[str, Callable[[OpenWireBench], dict[str, str]]] = {
    "stomp 1.0": lambda bench: seen_by_stomp(bench, V10),
    "stomp 1.1": lambda bench: seen_by_stomp(bench, V11),
    "stomp 1.2": lambda bench: seen_by_stomp(bench, V12),
    "openwire 1": lambda bench: seen_by_openwire(bench, 1),
    "openwire 9": lambda bench: seen_by_openwire(bench, 9),
    "openwire 12": lambda bench: seen_by_openwire(bench, 12),
    "http": seen_by_people,
    "rows": seen_in_rows,
}


@pytest.mark.parametrize("sender", SENDERS)
@pytest.mark.parametrize("name", OF_MESSAGES)
def test_what_the_broker_vouches_for_no_sender_sets(name: str, sender: str) -> None:
    bench = sent(sender, name)
    for reader, read in READERS.items():
        seen = read(bench)
        assert FORGED not in seen.values(), reader
        assert seen["kept"] == "yes", reader
    subject = Subject(bench.services.conversions)
    subject.look_at(slot_of(bench).message)
    if name not in ("JMSXDeliveryCount", "JMSRedelivered"):  # no selector may name these
        assert not parse_selector(f"\"{name}\" = '{FORGED}'").matches(subject)


@pytest.mark.parametrize("sender", SENDERS)
@pytest.mark.parametrize("name", OF_STOMP)
def test_what_frames_of_stomp_say_no_sender_says(name: str, sender: str) -> None:
    if sender.startswith("stomp") and name in ASKS_THE_BROKER:
        return
    bench = sent(sender, name)
    for version in VERSIONS:
        raw = browsed_by_stomp(bench, version)
        # Nor behind the broker's own: some clients believe the last of repeated headers.
        assert FORGED.encode() not in raw, version
        assert as_a_lenient_client_reads(raw)["kept"] == "yes"


@pytest.mark.parametrize("sender", [sender for sender in SENDERS if sender.startswith("openwire")])
def test_jms_clients_may_use_the_names_of_stomp(sender: str) -> None:
    for name in OF_STOMP:
        assert seen_by_openwire(sent(sender, name), 12)[name] == FORGED


_DISGUISES = st.text("\0\n\r \t\x0b\x1f\xa0", max_size=2)


@given(
    name=st.sampled_from(sorted(NOT_RELAYED - ASKS_THE_BROKER)),
    before=_DISGUISES,
    after=_DISGUISES,
    colons=st.booleans(),
    sender=st.sampled_from(["stomp 11", "stomp 12", "openwire 12"]),
)
def test_disguised_names_are_not_read_as_the_brokers(
    name: str, before: str, after: str, colons: bool, sender: str
) -> None:
    disguised = f"{before}{name.replace('_', ':') if colons else name}{after}"
    bench = sent(sender, disguised)
    for version in VERSIONS:
        assert seen_by_stomp(bench, version).get(name) != FORGED


def encoded(name: bytes) -> bytes:
    """Properties with one text, whose name is written as given."""
    return b"\0\0\0\1" + len(name).to_bytes(2, "big") + name + b"\x09\0\6forged"


@pytest.mark.parametrize(
    ("properties", "code"),
    [
        (encoded(b"JMSXUserI\xc1\x84"), "DMQ5205"),
        (encoded(b"\xe0\x81\x8aMSXUserID"), "DMQ5205"),
        (encoded(b"JMSXUserID") + b"\0", "DMQ5220"),
    ],
)
def test_names_that_java_alone_reads_are_refused(properties: bytes, code: str) -> None:
    bench = OpenWireBench()
    bench.connect().publish(A, "fine")
    client = bench.connect()
    message = client.text(A, "x")
    message.marshalled_properties = properties
    client.tell(message)
    assert code_of(client.error()) == f"IOException {code}"
    assert bench.queue("a").message_count == 1


def test_every_reserved_name_has_a_sign() -> None:
    for name in RESERVED:
        assert any(sign in name.encode() for sign in SIGNS), name


def test_the_user_of_a_message_is_who_logged_in() -> None:
    for sender in SENDERS:
        message = slot_of(sent(sender, "JMSXUserID")).message
        assert message.user == "anna"
        subject = Subject(OpenWireBench().services.conversions)
        subject.look_at(message)
        assert parse_selector("JMSXUserID = 'anna'").matches(subject)


def test_nobody_makes_advisories_but_the_broker() -> None:
    bench = OpenWireBench()
    listener, liar, stomp = bench.connect(), bench.connect(), StompPeer(bench)
    reader = listener.consume(topic("ActiveMQ.Advisory.Connection"))
    reader.take()
    assert code_of(liar.refused(liar.text(topic("ActiveMQ.Advisory.Connection"), "lie"))) == "SecurityException DMQ1002"
    assert code_of(liar.refused(liar.text(queue("ActiveMQ.Advisory.Connection"), "lie"))) == "SecurityException DMQ1002"
    for prefix in ("", "/topic/", "/queue/"):
        stomp = StompPeer(bench)
        stomp.frame("SEND", f"destination:{prefix}ActiveMQ.Advisory.Connection", body=b"lie")
        (error,) = stomp.take()
        assert error.headers["message"].startswith("DMQ1002")
    assert reader.take() == []
