"""Requests cut and spoilt anywhere, by peers without a login: each ends, and the log grows by few lines."""

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from delosmq.manage.http.server import HttpServer
from delosmq.server.listener import bind
from delosmq.server.peer_log import LINES_PER_PEER
from delosmq.server.slow_readers import SlowReaders
from tests.manage.support import Api, eventually

CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n3;x=y\r\nabc\r\n0\r\n\r\n"
SIZED = b"Content-Length: 12\r\n\r\n" + b'{"name":"a"}'
PATHS = ("/health/live", "/api/v1/queues", "/api/v1/queues/q/purge", "/metrics", "/no/such")
REQUESTS = [
    f"{method} {path} HTTP/1.1\r\nHost: x\r\n{more}".encode() + body
    for method in ("POST", "GET", "PUT")
    for path in PATHS
    for more in ("", "Expect: 100-continue\r\n", "Connection: upgrade\r\nUpgrade: websocket\r\n")
    for body in (CHUNKED, SIZED)
]
SPOILT_HEADS = [b"POST /health/live HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n\xff\r\n"]
LOG_BYTES_OF_A_KIND = LINES_PER_PEER * 400
"""Of one code and one peer, in one minute."""


@pytest_asyncio.fixture
async def served() -> AsyncIterator[tuple[Api, HttpServer]]:
    api = Api()
    server = HttpServer(api.app, bind("127.0.0.1", 0, "the HTTP interface"), SlowReaders(-1))
    await server.start()
    yield api, server
    await server.stop()
    await api.close()


async def attacked(port: int, parts: list[bytes], *, answered: bool) -> bytes:
    """Sends the parts, each in a packet of its own, and hangs up; ``answered``: only when the server has hung up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    got = b""
    with contextlib.suppress(ConnectionError):
        for part in parts:
            writer.write(part)
            await writer.drain()
            for _ in range(20):
                await asyncio.sleep(0)
        if answered:
            async with asyncio.timeout(30):
                got = await reader.read()
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()
    return got


def spoilt(request: bytes, chance: random.Random) -> list[bytes]:
    """One request, cut or with some bytes changed, in one to three packets; a second request may follow."""
    wanted = bytearray(request)
    if chance.random() < 0.8:
        head = request.index(b"\r\n\r\n") + 4
        for _ in range(chance.randint(1, 3)):
            # Bodies are as likely as heads.
            at = chance.randrange(head, len(wanted)) if chance.random() < 0.6 else chance.randrange(head)
            wanted[at] = chance.choice(b"\xff\x00\r\n :;Zz9")
    if chance.random() < 0.3:
        wanted += chance.choice(REQUESTS)
    if chance.random() < 0.3:
        del wanted[chance.randrange(1, len(wanted)) :]
    first, second = sorted(chance.randrange(len(wanted) + 1) for _ in range(2))
    return [bytes(part) for part in (wanted[:first], wanted[first:second], wanted[second:]) if part]


async def test_a_chunk_that_is_none_is_refused_while_its_request_runs(
    served: tuple[Api, HttpServer], caplog: pytest.LogCaptureFixture
):
    _, server = served
    for request in SPOILT_HEADS:
        answer = await attacked(server.port, [request], answered=True)
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert answer.count(b"HTTP/1.1") == 1
    assert "Traceback" not in caplog.text
    assert caplog.text.count("DMQ6164") == 1


async def test_a_chunk_that_is_none_after_the_answer_ends_the_connection(
    served: tuple[Api, HttpServer], caplog: pytest.LogCaptureFixture
):
    _, server = served
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"POST /health/live HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 405 ")
    writer.write(b"\xff\r\n")
    assert b"HTTP/1.1" not in await reader.read()
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()
    assert "Traceback" not in caplog.text
    assert caplog.text.count("DMQ6164") == 1


async def test_what_peers_without_a_login_send_makes_few_lines(
    served: tuple[Api, HttpServer], caplog: pytest.LogCaptureFixture
):
    api, server = served
    chance = random.Random(20_261_122)
    sent_bytes = 0
    with caplog.at_level(logging.INFO):
        for _ in range(600):
            parts = spoilt(chance.choice(REQUESTS), chance)
            sent_bytes += sum(len(part) for part in parts)
            await attacked(server.port, parts, answered=False)
        await eventually(lambda: not server.connection_count)
    told = [record for record in caplog.records if record.name != "asyncio" or record.levelno > logging.DEBUG]
    assert [record.getMessage() for record in told if record.exc_info] == []
    codes = {record.getMessage().partition(":")[0] for record in told}
    assert codes <= {"DMQ6164", "DMQ6174"}
    assert len(told) <= len(codes) * LINES_PER_PEER
    assert sum(len(record.getMessage()) for record in told) <= min(len(codes) * LOG_BYTES_OF_A_KIND, sent_bytes // 4)
    assert "q" in api.broker.queues
