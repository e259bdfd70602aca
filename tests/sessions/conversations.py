"""Whole conversations, byte by byte: what a client of each version sends, and what the broker answers to it.

Times are those of the test's clock, ids those of a broker that has just been made.
"""

from typing import NamedTuple


class Turn(NamedTuple):
    """Bytes sent, and bytes that come back until the broker rests."""

    sent: bytes
    expected: bytes


_LOGIN = b"login:anna\npasscode:correct horse\n"
_STAMP = b"timestamp:1700000000000\n"

CONVERSATIONS: dict[str, tuple[Turn, ...]] = {
    # STOMP 1.0: no escapes, spaces around names and values, ACK by message-id alone.
    "1.0": (
        Turn(
            b"CONNECT\nlogin: anna\npasscode: correct horse\n\n\0",
            b"CONNECTED\nversion:1.0\nsession:c1\nserver:DelosMQ/test\n\n\0",
        ),
        Turn(b"SUBSCRIBE\ndestination: /queue/a\nack: client\nreceipt: s\n\n\0", b"RECEIPT\nreceipt-id:s\n\n\0"),
        Turn(
            b"SEND\ndestination: /queue/a\nnote: a\\cb\nreceipt: 1\n\nhello\0\n",
            b"RECEIPT\nreceipt-id:1\n\n\0"
            b"MESSAGE\nmessage-id:1-2\nredelivered:false\ndestination:/queue/a\nnote:a\\cb\n"
            b"persistent:false\npriority:4\n" + _STAMP + b"\nhello\0",
        ),
        Turn(b"ACK\nmessage-id: 1-2\nreceipt: 2\n\n\0", b"RECEIPT\nreceipt-id:2\n\n\0"),
        Turn(b"UNSUBSCRIBE\ndestination: /queue/a\nreceipt: 3\n\n\0", b"RECEIPT\nreceipt-id:3\n\n\0"),
        Turn(b"DISCONNECT\nreceipt: 4\n\n\0", b"RECEIPT\nreceipt-id:4\n\n\0"),
    ),
    # STOMP 1.1: escapes, heart-beats, NACK, ACK by message-id and subscription.
    "1.1": (
        Turn(
            b"CONNECT\naccept-version:1.0,1.1\nhost:h\nheart-beat:0,0\n" + _LOGIN + b"\n\0",
            b"CONNECTED\nversion:1.1\nsession:c1\nserver:DelosMQ/test\nheart-beat:0,30000\n\n\0",
        ),
        Turn(
            b"SUBSCRIBE\nid:s:1\ndestination:/queue/a\nack:client-individual\nreceipt:s\n\n\0",
            b"RECEIPT\nreceipt-id:s\n\n\0",
        ),
        Turn(
            b"SEND\ndestination:/queue/a\nnote:a\\cb\ncontent-length:3\npersistent:true\n\n\0\1\2\0",
            b"MESSAGE\nsubscription:s\\c1\nmessage-id:2\nredelivered:false\ndestination:/queue/a\nnote:a\\cb\n"
            b"persistent:true\npriority:4\n" + _STAMP + b"content-length:3\n\n\0\1\2\0",
        ),
        Turn(
            b"NACK\nmessage-id:2\nsubscription:s\\c1\n\n\0",
            b"MESSAGE\nsubscription:s\\c1\nmessage-id:2\nredelivered:true\ndestination:/queue/a\nnote:a\\cb\n"
            b"persistent:true\npriority:4\n" + _STAMP + b"content-length:3\n\n\0\1\2\0",
        ),
        Turn(b"ACK\nmessage-id:2\nsubscription:s\\c1\nreceipt:2\n\n\0", b"RECEIPT\nreceipt-id:2\n\n\0"),
        Turn(b"DISCONNECT\nreceipt:4\n\n\0", b"RECEIPT\nreceipt-id:4\n\n\0"),
    ),
    # STOMP 1.2: CR LF line ends, the ack header, repeated headers.
    "1.2": (
        Turn(
            b"STOMP\r\naccept-version:1.2\r\nhost:h\r\nlogin:anna\r\npasscode:correct horse\r\n\r\n\0\r\n",
            b"CONNECTED\nversion:1.2\nsession:c1\nserver:DelosMQ/test\nheart-beat:0,30000\n\n\0",
        ),
        Turn(
            b"SUBSCRIBE\r\nid:0\r\ndestination:/queue/a\r\nack:client\r\nreceipt:s\\r\r\n\r\n\0",
            b"RECEIPT\nreceipt-id:s\\r\n\n\0",
        ),
        Turn(
            b"SEND\ndestination:/queue/a\nx:1\nx:2\npriority:9\n\none\0\n\nSEND\ndestination:/queue/a\n\ntwo\0",
            b"MESSAGE\nsubscription:0\nmessage-id:2\nack:1-2\nredelivered:false\ndestination:/queue/a\nx:1\n"
            b"persistent:false\npriority:9\n" + _STAMP + b"\none\0"
            b"MESSAGE\nsubscription:0\nmessage-id:3\nack:1-3\nredelivered:false\ndestination:/queue/a\n"
            b"persistent:false\npriority:4\n" + _STAMP + b"\ntwo\0",
        ),
        Turn(b"\nACK\nid:1-3\nreceipt:both\n\n\0", b"RECEIPT\nreceipt-id:both\n\n\0"),
        Turn(b"UNSUBSCRIBE\nid:0\nreceipt:3\n\n\0", b"RECEIPT\nreceipt-id:3\n\n\0"),
        Turn(
            b"SEND\ndestination:/queue/a\nselector:no\nAMQ_SCHEDULED_CRON:1\nreceipt:4\n\nx\0",
            b"ERROR\nreceipt-id:4\n"
            b"message:DMQ5109\\c the header AMQ_SCHEDULED_CRON of SEND asks for repeated delivery, which this broker"
            b" does not do\n"
            b"content-type:text/plain\ncontent-length:191\n\n"
            b"DMQ5109: the header AMQ_SCHEDULED_CRON of SEND asks for repeated delivery, which this broker does not do:"
            b" send once with AMQ_SCHEDULED_DELAY or AMQ_SCHEDULED_TIME, and again when it is time.\n\0",
        ),
    ),
}
