"""A message as selectors see it."""

from typing import Final

from delosmq.model.conversion import Conversions
from delosmq.model.message import HubMessage, Message
from delosmq.model.properties import Properties, PropertyValue

# What a name stands for. Source: Artemis's FilterConstants and SelectorTranslator for both columns of names.
_PRIORITY: Final = 1
_TIMESTAMP: Final = 2
_EXPIRATION: Final = 3
_DURABLE: Final = 4
_DELIVERY_MODE: Final = 5
_SIZE: Final = 6
_ADDRESS: Final = 7
_GROUP_ID: Final = 8
_GROUP_SEQUENCE: Final = 9
_MESSAGE_ID: Final = 10
_USER: Final = 11
# From here on the head of the message has to be decoded.
_CORRELATION_ID: Final = 12
_TYPE: Final = 13
_REPLY_TO: Final = 14

FIELDS: Final = {
    "AMQPriority": _PRIORITY,
    "AMQTimestamp": _TIMESTAMP,
    "AMQExpiration": _EXPIRATION,
    "AMQDurable": _DURABLE,
    "AMQSize": _SIZE,
    "AMQAddress": _ADDRESS,
    "AMQGroupID": _GROUP_ID,
    "AMQUserID": _MESSAGE_ID,
    "JMSPriority": _PRIORITY,
    "JMSTimestamp": _TIMESTAMP,
    "JMSExpiration": _EXPIRATION,
    "JMSDeliveryMode": _DELIVERY_MODE,
    "JMSDestination": _ADDRESS,
    "JMSMessageID": _MESSAGE_ID,
    "JMSCorrelationID": _CORRELATION_ID,
    "JMSType": _TYPE,
    "JMSReplyTo": _REPLY_TO,
    "JMSXGroupID": _GROUP_ID,
    "JMSXGroupSeq": _GROUP_SEQUENCE,
    "JMSXUserID": _USER,
}


class Subject(Properties):
    """Looks at one message after the other. Holds on to the last one and to what it decoded of it."""

    def __init__(self, conversions: Conversions) -> None:
        self._conversions = conversions
        self._message: Message | None = None
        self._hub: HubMessage | None = None

    def look_at(self, message: Message) -> None:
        """Asks about ``message`` from now on. Decodes nothing."""
        if message is not self._message:
            self._message = message
            self._hub = None

    def value(self, name: str) -> PropertyValue | None:
        message = self._message
        if message is None:
            return None
        field = FIELDS.get(name, 0)
        if field == 0:
            return self._decoded(message).properties.get(name)
        if field == _MESSAGE_ID:
            # The engine gives an id when it has decided where the message goes.
            return self._conversions.message_id(message) or None
        if field >= _CORRELATION_ID:
            return self._decoded_field(message, field)
        return _field(message, field)

    def _decoded(self, message: Message) -> HubMessage:
        hub = self._hub
        if hub is None:
            hub = self._conversions.headers_to_hub(message)
            self._hub = hub
        return hub

    def _decoded_field(self, message: Message, field: int) -> PropertyValue | None:
        hub = self._decoded(message)
        if field == _CORRELATION_ID:
            return hub.correlation_id
        return hub.type if field == _TYPE else hub.reply_to


def _field(message: Message, field: int) -> PropertyValue | None:
    """What the broker knows of ``message`` without decoding it."""
    if field == _PRIORITY:
        return message.priority
    if field == _TIMESTAMP:
        return message.timestamp_ms
    if field == _EXPIRATION:
        return message.expires_at_ms
    if field == _DURABLE:
        return "DURABLE" if message.durable else "NON_DURABLE"
    if field == _DELIVERY_MODE:
        return "PERSISTENT" if message.durable else "NON_PERSISTENT"
    if field == _SIZE:
        return message.encoded_size_bytes
    if field == _ADDRESS:
        return message.address
    if field == _GROUP_ID:
        return message.group_id or None
    if field == _GROUP_SEQUENCE:
        return message.group_sequence or None
    return message.user or None
