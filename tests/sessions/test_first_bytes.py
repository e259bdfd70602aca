"""Protocol detection by the first bytes."""

# BROKER-2

import pytest

from delosmq.sessions.stomp.server.protocol import StompProtocol
from delosmq.wire.first_bytes import FOREIGN, MINE, UNDECIDED, describe


@pytest.mark.parametrize(
    "start, verdict",
    [
        (b"C", UNDECIDED),
        (b"CONNECT", UNDECIDED),
        (b"CONNECT\n", MINE),
        (b"CONNECT\r\nx", MINE),
        (b"STOMP\n", MINE),
        (b"\n\nSTOMP\n", MINE),
        (b"\n", UNDECIDED),
        (b"S", UNDECIDED),
        (b"SEND\ndestination:a\n\n\0", MINE),
        (b"CONNECTED\n", FOREIGN),
        (b"GET / HTTP/1.1\r\n", FOREIGN),
        (b"AMQP\x00\x01\x00\x00", FOREIGN),
        (b"A", UNDECIDED),
        (b"\x16\x03\x01", FOREIGN),
        (b"\x00\x00\x01\x01\x01ActiveMQ", FOREIGN),
        (b"connect\n", FOREIGN),
        (b"\n" * 100 + b"CONNECT", UNDECIDED),
        (b"CONNECT" * 100, FOREIGN),
    ],
)
def test_stomp_is_known_by_its_first_line(start: bytes, verdict: int) -> None:
    assert StompProtocol().detect(start) == verdict


@pytest.mark.parametrize(
    "start, name",
    [(b"\x16\x03\x01\x02", "TLS"), (b"GET / HTTP/1.1", "HTTP"), (b"AMQP\x03", "AMQP"), (b"\x10\x20", "MQTT")],
)
def test_foreign_bytes_are_named(start: bytes, name: str) -> None:
    assert describe(start).startswith(name)


def test_bytes_that_nobody_knows_are_shown_in_part() -> None:
    assert describe(b"\x01\x02" * 100) == repr(b"\x01\x02" * 8)
