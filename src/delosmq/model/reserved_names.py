"""Reserved names: properties that only the broker sets. A sender's value for one is taken off when the message arrives,
so that no consumer, selector, filter, row or listing takes it for the broker's word.

Source: Message, StompUtils and MessageUtil of Artemis; FrameTranslator, ActiveMQMessage and BrokerSupport of ActiveMQ
Classic; the names that begin with JMS are header fields of JMS, which messages have as fields of their own.
"""

from collections.abc import Iterable
from typing import Final

CONNECTION_MARK: Final = "__AMQ_CID"
"""The connection that sent the message, for no-local; named as in Artemis."""

ADVISORY_PREFIX: Final = "ActiveMQ.Advisory."
"""How the topics begin on which the broker tells of itself."""

EVENTS_ADDRESS: Final = "delosmq.events"
"""Where the broker publishes records of what becomes of messages."""

RECORDS_MARK: Final = "_DELOSMQ_RECORDS"
"""In a message of such records: how many there are. A copy of it elsewhere has the mark, too."""

RESERVED: Final = frozenset(
    (
        # The sender of a message, and which delivery this is.
        "JMSXUserID",
        "_AMQ_VALIDATED_USER",
        "JMSXDeliveryCount",
        "JMSXGroupFirstForConsumer",
        "JMSXProducerTXID",
        "JMSXConsumerTXID",
        "JMSXRcvTimestamp",
        "JMSXState",
        CONNECTION_MARK,
        RECORDS_MARK,
        # Fields of the message.
        "JMSDeliveryMode",
        "JMSDeliveryTime",
        "JMSDestination",
        "JMSExpiration",
        "JMSMessageID",
        "JMSPriority",
        "JMSRedelivered",
        "JMSTimestamp",
        "_AMQ_INGRESS_TIMESTAMP",
        # Where a dead letter, an expired message or a copy comes from, and why.
        "_AMQ_ACTUAL_EXPIRY",
        "_AMQ_ORIG_ADDRESS",
        "_AMQ_ORIG_MESSAGE_ID",
        "_AMQ_ORIG_QUEUE",
        "_AMQ_ORIG_ROUTING_TYPE",
        "dlqDeliveryFailureCause",
        "originalDeliveryMode",
        "originalExpiration",
        # A message of before the subscription.
        "ActiveMQ.Retained",
    )
)


def is_the_brokers(address: str) -> bool:
    """Whether the broker alone sends there."""
    return address == EVENTS_ADDRESS or address.startswith(ADVISORY_PREFIX)


def as_read(name: str) -> str:
    """A name as its most lenient reader has it: in STOMP 1.0 NUL, line feed and carriage return are written as spaces
    and a colon as ``_``, and many clients trim what they read."""
    return name.replace("\0", " ").replace(":", "_").strip()


def reads_as(name: str, names: frozenset[str]) -> bool:
    """Whether some reader takes a name for one of ``names``."""
    return name in names or as_read(name) in names


def may_read_otherwise(names: Iterable[str]) -> bool:
    """Whether `as_read` may change one of many names; quicker than asking for each."""
    together = "".join(names)
    return " " in together or ":" in together or not together.isprintable()
