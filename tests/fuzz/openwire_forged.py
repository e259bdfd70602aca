"""What a message may not say of itself: put into messages, and looked for in what consumers get."""

from collections.abc import Mapping

from delosmq.model.errors import PeerError
from delosmq.model.properties import STRING_KIND, TypedValue
from delosmq.model.reserved_names import RESERVED, reads_as
from delosmq.wire.openwire.commands import MessageCommand, MessageDispatch
from delosmq.wire.openwire.primitives import encode_map
from delosmq.wire.openwire.properties import SIGNS, decode_properties
from delosmq.wire.openwire.structures import BrokerId, ConnectionId, Destination, LocalTransactionId
from tests.sessions.support import USER

MARK = "forged"
FORGED = MARK * 3
"""One bit changed leaves the mark."""
_DELIVERIES = 7_777_777
_TIME_MS = 1
_LATEST_DELIVERIES = 10_000


def forge(message: MessageCommand) -> None:
    """Claims everything that only the broker says."""
    message.user_id = FORGED
    message.original_destination = Destination(FORGED)
    message.original_transaction_id = LocalTransactionId(1, ConnectionId(FORGED))
    message.broker_path = [BrokerId(FORGED)]
    message.cluster = [BrokerId(FORGED)]
    message.redelivery_counter = _DELIVERIES
    message.received_by_df_bridge = True
    message.group_first_for_consumer = True
    message.arrival = message.broker_in_time = message.broker_out_time = _TIME_MS
    message.marshalled_properties = encode_map({name: TypedValue(STRING_KIND, FORGED) for name in sorted(RESERVED)})


def check_message(dispatch: MessageDispatch) -> None:
    """What a consumer of OpenWire got."""
    message = dispatch.message
    assert message is not None
    assert message.user_id in (None, USER), message.user_id
    for field in ("original_destination", "original_transaction_id", "broker_path", "cluster"):
        assert MARK not in _text(getattr(message, field)), field
    assert max(message.redelivery_counter, dispatch.redelivery_counter) <= _LATEST_DELIVERIES
    assert not message.received_by_df_bridge
    assert _TIME_MS not in (message.broker_in_time, message.broker_out_time)
    try:
        properties = decode_properties(message.marshalled_properties)
    except PeerError:
        # Spoilt ones without a trace of a reserved name are passed on unread; no reader gets anything out of them.
        assert not any(sign in (message.marshalled_properties or b"") for sign in SIGNS)
    else:
        check_headers({name: str(typed.value) for name, typed in properties.items()})


def check_headers(headers: Mapping[str, str]) -> None:
    """Headers of STOMP, or properties."""
    for name, value in headers.items():
        assert not reads_as(name, RESERVED) or MARK not in value, f"{name} is {value}"


def _text(value: object) -> str:
    """What ids, paths and destinations say."""
    if isinstance(value, list):
        return "".join(_text(one) for one in value)
    if isinstance(value, LocalTransactionId):
        return _text(value.connection_id)
    if isinstance(value, Destination):
        return value.name
    return str(getattr(value, "value", ""))
