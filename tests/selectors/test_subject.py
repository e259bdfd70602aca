"""A message as selectors see it: fields of the broker, headers, properties; decoded at most once."""

import pytest

from delosmq.model.conversion import Conversion, Conversions, Encoded
from delosmq.model.ids import MessageId, WallMs
from delosmq.model.message import HubMessage, Message
from delosmq.model.properties import PropertyValue
from delosmq.selectors.selector import parse_selector
from delosmq.selectors.subject import FIELDS, Subject
from delosmq.wire.stomp.conversion import StompConversion

HEAD = b"destination:/queue/tea\ncorrelation-id:c1\ntype:order\nreply-to:/queue/back\nkind:green\nm-x:1\ncount:7\n"


class CountingConversion(Conversion):
    """Counts how often a message is decoded."""

    def __init__(self) -> None:
        self.decoded = 0
        self._stomp = StompConversion()

    def to_hub(self, message: Message) -> HubMessage:
        self.decoded += 1
        return self._stomp.to_hub(message)

    def from_hub(self, hub: HubMessage, address: str) -> Encoded:
        return self._stomp.from_hub(hub, address)

    def rewritten_head(
        self, message: Message, drop: tuple[str, ...], rename: dict[str, str], replaced: tuple[str, ...]
    ) -> bytes:
        return self._stomp.rewritten_head(message, drop, rename, replaced)


def message(head: bytes = HEAD, *, durable: bool = True, user: str = "ann") -> Message:
    made = Message(
        "tea",
        "stomp/12",
        head,
        b"body",
        priority=7,
        durable=durable,
        timestamp_ms=WallMs(1_700_000_000_000),
        expires_at_ms=1_700_000_060_000,
        user=user,
    )
    made.message_id = MessageId(42)
    made.group_id = "g"
    made.group_sequence = 3
    return made


def looking_at(made: Message, conversion: Conversion | None = None) -> Subject:
    subject = Subject(Conversions({"stomp": conversion or StompConversion()}))
    subject.look_at(made)
    return subject


FROM_FIELDS: dict[str, PropertyValue] = {
    "AMQUserID": "ID:42",
    "AMQAddress": "tea",
    "AMQGroupID": "g",
    "AMQPriority": 7,
    "AMQExpiration": 1_700_000_060_000,
    "AMQDurable": "DURABLE",
    "AMQTimestamp": 1_700_000_000_000,
    "AMQSize": len(HEAD) + len(b"body"),
    "JMSPriority": 7,
    "JMSTimestamp": 1_700_000_000_000,
    "JMSExpiration": 1_700_000_060_000,
    "JMSDeliveryMode": "PERSISTENT",
    "JMSDestination": "tea",
    "JMSMessageID": "ID:42",
    "JMSXGroupID": "g",
    "JMSXGroupSeq": 3,
    "JMSXUserID": "ann",
}
FROM_HEAD: dict[str, PropertyValue] = {
    "JMSCorrelationID": "c1",
    "JMSType": "order",
    "JMSReplyTo": "queue://back",
}


@pytest.mark.parametrize("name", FIELDS)
def test_each_name(name: str) -> None:
    conversion = CountingConversion()
    assert looking_at(message(), conversion).value(name) == (FROM_FIELDS | FROM_HEAD)[name]
    assert conversion.decoded == (name in FROM_HEAD)


def test_a_message_that_is_not_durable() -> None:
    subject = looking_at(message(durable=False))
    assert subject.value("AMQDurable") == "NON_DURABLE"
    assert subject.value("JMSDeliveryMode") == "NON_PERSISTENT"


@pytest.mark.parametrize("name", [*FROM_HEAD, "AMQGroupID", "JMSXGroupSeq", "JMSXUserID", "JMSMessageID", "kind"])
def test_what_a_message_does_not_have_is_missing(name: str) -> None:
    bare = message(b"destination:/queue/tea\n", user="")
    bare.message_id, bare.group_id, bare.group_sequence = MessageId(0), "", 0
    assert looking_at(bare).value(name) is None


def test_no_message_has_no_properties() -> None:
    assert Subject(Conversions({})).value("AMQPriority") is None


def test_properties_and_annotations() -> None:
    made = message()
    made.annotations = {"_AMQ_ORIG_ADDRESS": "pots"}
    subject = looking_at(made)
    assert parse_selector("kind = 'green' AND _AMQ_ORIG_ADDRESS = 'pots' AND \"m-x\" = '1'").matches(subject)
    assert parse_selector("convert_string_expressions:count > 6").matches(subject)
    assert not parse_selector("count > 6").matches(subject)
    assert parse_selector("Kind IS NULL").matches(subject)


def test_a_message_is_decoded_once_and_only_when_asked() -> None:
    conversion = CountingConversion()
    subject = looking_at(first := message(), conversion)
    assert parse_selector("AMQPriority > 6 AND AMQDurable = 'DURABLE'").matches(subject)
    assert conversion.decoded == 0
    for _ in range(3):
        subject.look_at(first)
        assert parse_selector("kind = 'green' AND JMSType = 'order'").matches(subject)
    assert conversion.decoded == 1
    subject.look_at(message(b"kind:black\n"))
    assert parse_selector("kind = 'black' AND JMSType IS NULL").matches(subject)
    assert conversion.decoded == 2
