"""Which requests are answered, and how a refusal is told.

Source: ServerSessionPacketHandler of Artemis.
"""

from typing import Final

from delosmq.wire.core.packet import (
    DELETE_QUEUE,
    SESS_BINDINGQUERY,
    SESS_COMMIT,
    SESS_CONSUMER_CLOSE,
    SESS_PRODUCER_REQUEST_CREDITS,
    SESS_QUEUEQUERY,
    SESS_ROLLBACK,
    SESS_STOP,
    SESS_UNIQUE_ADD_METADATA,
    SESS_XA_COMMIT,
    SESS_XA_END,
    SESS_XA_FORGET,
    SESS_XA_GET_TIMEOUT,
    SESS_XA_INDOUBT_XIDS,
    SESS_XA_JOIN,
    SESS_XA_PREPARE,
    SESS_XA_RESUME,
    SESS_XA_ROLLBACK,
    SESS_XA_SET_TIMEOUT,
    SESS_XA_START,
    SESS_XA_SUSPEND,
    Packet,
)

BRANCHES: Final = frozenset(
    (
        SESS_XA_START,
        SESS_XA_END,
        SESS_XA_COMMIT,
        SESS_XA_PREPARE,
        SESS_XA_ROLLBACK,
        SESS_XA_JOIN,
        SESS_XA_SUSPEND,
        SESS_XA_RESUME,
        SESS_XA_FORGET,
    )
)
"""Types that are answered by an XaResponse."""
ANSWERED: Final = BRANCHES | {
    SESS_COMMIT,
    SESS_ROLLBACK,
    SESS_QUEUEQUERY,
    SESS_BINDINGQUERY,
    SESS_XA_INDOUBT_XIDS,
    SESS_XA_SET_TIMEOUT,
    SESS_XA_GET_TIMEOUT,
    SESS_STOP,
    SESS_CONSUMER_CLOSE,
    DELETE_QUEUE,
    SESS_UNIQUE_ADD_METADATA,
    SESS_PRODUCER_REQUEST_CREDITS,
}
"""Types that are answered always."""


def wants_answer(packet: Packet) -> bool:
    """Whether the sender of a packet waits for its answer."""
    return packet.requires_response or packet.code in ANSWERED
