"""A client of DelosMQ and of ActiveMQ brokers, with the semantics of JMS.

    with delosmq.client.connect("tcp://localhost:61616", user="app", password=secret) as connection:
        connection.send("orders", "one pot of tea")

`connect` and all classes here are the blocking client; `delosmq.client.aio` has the same for asyncio. Importing this
package loads nothing else, and using it loads nothing of the broker.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from delosmq.client.aio_xa import XaFlag, Xid
    from delosmq.client.connection import ClientConnection, ConnectionFactory, connect
    from delosmq.client.destinations import JmsDestination
    from delosmq.client.messages import (
        BytesMessage,
        JmsMessage,
        MapMessage,
        ObjectMessage,
        StreamMessage,
        TextMessage,
    )
    from delosmq.client.session import ClientSession, MessageConsumer, MessageProducer, QueueBrowser
    from delosmq.client.values import Byte, Char, Float, Int, Long, Short
    from delosmq.client.xa import XaResource, XaSession
    from delosmq.sessions.client_errors import (
        ClientError,
        ClientOptionError,
        ClientSecurityError,
        ConnectionLostError,
        IllegalStateError,
        InvalidClientIdError,
        InvalidDestinationError,
        InvalidSelectorError,
        MessageFormatError,
        RefusedError,
        ResourceAllocationError,
        TimedOutError,
        TransactionInDoubtError,
        TransactionRolledBackError,
        UnsupportedOperationError,
        XaTransactionError,
    )
    from delosmq.sessions.openwire.client.options import AckMode, RedeliveryPolicy

__all__ = [
    "AckMode",
    "Byte",
    "BytesMessage",
    "Char",
    "ClientConnection",
    "ClientError",
    "ClientOptionError",
    "ClientSecurityError",
    "ClientSession",
    "ConnectionFactory",
    "ConnectionLostError",
    "Float",
    "IllegalStateError",
    "Int",
    "InvalidClientIdError",
    "InvalidDestinationError",
    "InvalidSelectorError",
    "JmsDestination",
    "JmsMessage",
    "Long",
    "MapMessage",
    "MessageConsumer",
    "MessageFormatError",
    "MessageProducer",
    "ObjectMessage",
    "QueueBrowser",
    "RedeliveryPolicy",
    "RefusedError",
    "ResourceAllocationError",
    "Short",
    "StreamMessage",
    "TextMessage",
    "TimedOutError",
    "TransactionInDoubtError",
    "TransactionRolledBackError",
    "UnsupportedOperationError",
    "XaFlag",
    "XaResource",
    "XaSession",
    "XaTransactionError",
    "Xid",
    "connect",
]

_ELSEWHERE: Final = {
    **dict.fromkeys(("ClientConnection", "ConnectionFactory", "connect"), "delosmq.client.connection"),
    **dict.fromkeys(("ClientSession", "MessageConsumer", "MessageProducer", "QueueBrowser"), "delosmq.client.session"),
    "JmsDestination": "delosmq.client.destinations",
    **dict.fromkeys(("AckMode", "RedeliveryPolicy"), "delosmq.sessions.openwire.client.options"),
    **dict.fromkeys(("XaFlag", "Xid"), "delosmq.client.aio_xa"),
    **dict.fromkeys(("XaResource", "XaSession"), "delosmq.client.xa"),
    **dict.fromkeys(("Byte", "Char", "Float", "Int", "Long", "Short"), "delosmq.client.values"),
}


def __getattr__(name: str) -> object:
    if name in __all__:
        if name.endswith("Message"):
            module = "delosmq.client.messages"
        else:
            module = _ELSEWHERE.get(name, "delosmq.sessions.client_errors")
        found: object = getattr(import_module(module), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module 'delosmq.client' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
