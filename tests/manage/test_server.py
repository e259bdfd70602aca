"""The HTTP server on a real socket."""

import asyncio
import base64
import contextlib
import json
import signal
import socket

import httpx
import pytest

from delosmq.composition.garbage_collection import not_collecting
from delosmq.manage.http import server as http_server
from delosmq.manage.http.server import HttpServer
from delosmq.server.listener import bind
from delosmq.server.slow_readers import SlowReaders
from tests.manage.support import PASSWORD, Api, eventually, problem, succeeded


async def started(api: Api) -> tuple[HttpServer, str]:
    server = HttpServer(api.app, bind("127.0.0.1", 0, "the HTTP interface"), SlowReaders(-1))
    await server.start()
    return server, f"http://127.0.0.1:{server.port}"


async def test_it_serves_and_stops(api: Api):
    server, url = await started(api)
    async with httpx.AsyncClient(auth=("admin", PASSWORD)) as client:
        assert succeeded(await client.get(f"{url}/api/v1/queues/q"))["name"] == "q"
        assert "server" not in (await client.get(f"{url}/health/live")).headers
        await server.stop()
        with pytest.raises(httpx.TransportError):
            await client.get(f"{url}/health/live")
    await server.stop()


@pytest.mark.parametrize("turns", range(12))
async def test_a_client_that_comes_while_it_stops_is_answered_or_hung_up_on(api: Api, turns: int):
    # As where a broker becomes the active one: the socket goes on to listen for it, and nothing is collected meanwhile.
    listening = bind("127.0.0.1", 0, "the HTTP interface")
    server = HttpServer(api.app, listening.dup(), SlowReaders(-1))
    await server.start()
    loop = asyncio.get_running_loop()
    with not_collecting(), contextlib.closing(socket.socket()) as client:
        stopping = asyncio.create_task(server.stop())
        for _ in range(turns):
            await asyncio.sleep(0)
        client.connect(("127.0.0.1", server.port))
        client.setblocking(False)
        client.sendall(b"GET /health/live HTTP/1.1\r\nHost: h\r\n\r\n")
        await stopping
        listening.close()  # whom nobody has accepted until here hears of it
        with contextlib.suppress(ConnectionResetError):
            async with asyncio.timeout(5):
                await loop.sock_recv(client, 1)


async def test_an_encoded_slash_stays_within_its_name(api: Api):
    server, url = await started(api)
    async with httpx.AsyncClient(auth=("admin", PASSWORD)) as client:
        response = await client.get(f"{url}/api/v1/queues/no%2Fsuch?x=1")
    assert problem(response)[:2] == (404, "DMQ6201")
    assert "'no/such'" in response.json()["detail"]
    await server.stop()


async def test_it_leaves_signals_alone(api: Api):
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    server, _ = await started(api)
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
    await server.stop()


async def test_stopping_ends_a_long_poll_with_an_answer(api: Api):
    server, url = await started(api)
    await api.open("g")
    async with httpx.AsyncClient(auth=("admin", PASSWORD), timeout=60) as client:
        wanted = {"after": 0, "max_rows": 1, "max_bytes": 1, "wait_ms": 30_000, "epoch": 1}
        asked = asyncio.create_task(client.post(f"{url}/api/v1/leases/g/lease", json=wanted))
        await eventually(lambda: len(api.broker.leases.find("g").waiters) == 1)
        await server.stop()
        assert succeeded(await asked)["lease"] == 0


async def test_a_client_that_hangs_up_is_not_waited_for(api: Api):
    server, url = await started(api)
    await api.open("g")
    group = api.broker.leases.find("g")
    async with httpx.AsyncClient(auth=("admin", PASSWORD), timeout=60) as client:
        wanted = {"after": 0, "max_rows": 1, "max_bytes": 1, "wait_ms": 30_000, "epoch": 1}
        asked = asyncio.create_task(client.post(f"{url}/api/v1/leases/g/lease", json=wanted))
        await eventually(lambda: len(group.waiters) == 1)
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
    await eventually(lambda: group.waiters == [])
    await server.stop()


@pytest.mark.parametrize("start", [b"", b"GET /health/live HTTP/1.1\r\nHost: x\r\n"])
async def test_a_connection_that_never_says_what_it_wants_is_closed(
    api: Api, monkeypatch: pytest.MonkeyPatch, start: bytes
):
    monkeypatch.setattr(http_server, "HEAD_TIMEOUT_S", 0.01)
    server, _ = await started(api)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(start)
    assert await reader.read() == b""
    writer.close()
    await writer.wait_closed()
    await server.stop()


async def test_a_head_beyond_the_limit_is_refused(api: Api):
    server, _ = await started(api)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"x" * (http_server.HEAD_LIMIT_BYTES + 1024))
    assert (await reader.readline()).startswith(b"HTTP/1.1 4")
    writer.close()
    await asyncio.gather(writer.wait_closed(), return_exceptions=True)
    await server.stop()


async def test_a_refused_login_keeps_no_connection(api: Api):
    server, _ = await started(api)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"GET /api/v1/queues HTTP/1.1\r\nHost: x\r\n\r\n")
    async with asyncio.timeout(10):
        answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 401")
    assert b"connection: close" in answer.lower()
    writer.close()
    await writer.wait_closed()
    await server.stop()


@pytest.mark.parametrize(
    ("sent", "says"),
    [(b"\x16\x03\x01\x02\x00\x01", "there is no TLS here, write http://"), (b"SEND\n\n\0\n\n", "look at what is sent")],
)
async def test_what_is_no_http_is_told_with_its_peer_and_answered(
    api: Api, caplog: pytest.LogCaptureFixture, sent: bytes, says: str
):
    server, _ = await started(api)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(sent + b"\r\n\r\n")
    answer = await reader.read()
    port = writer.get_extra_info("sockname")[1]
    writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"application/problem+json" in head
    assert says in json.loads(body)["detail"]
    (told,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert told.startswith(f"DMQ6164: what came from 127.0.0.1:{port} is no HTTP request; {says}")
    await server.stop()


HEALTH = b"GET /health/live HTTP/1.1\r\nHost: x\r\n"
POST = b"POST /api/v1/queues/q/pause HTTP/1.1\r\nHost: x\r\n"


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        (POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "are both there"),
        (POST + b"Transfer-Encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n", "are both there"),
        (POST + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", "is there twice"),
        (POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", ""),
        (POST + b"Content-Length: 2, 3\r\n\r\n{}", ""),
        (POST + b"Content-Length: +2\r\n\r\n{}", ""),
        (POST + b"Content-Length : 2\r\n\r\n{}", ""),
        (POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", ""),
        (POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", ""),
        (POST.replace(b"1.1", b"1.0") + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "HTTP/1.0"),
        (HEALTH + b"X: a\r\n b\r\n\r\n", "a second line"),
        (HEALTH + b"X: a\r\n\tContent-Length: 5\r\n\r\n", "a second line"),
        (HEALTH + b"X: a\n\r\n", "CR LF"),
        (HEALTH.replace(b"\r\n", b"\n") + b"\n", "CR LF"),
        (HEALTH + b"X: a\rContent-Length: 5\r\n\r\n", ""),
        (HEALTH + b"Host: y\r\n\r\n", ""),
    ],
)
async def test_a_request_whose_end_may_be_seen_elsewhere_is_refused_and_the_connection_closed(
    api: Api, sent: bytes, says: str
):
    server, _ = await started(api)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(sent + HEALTH + b"\r\n")
    async with asyncio.timeout(10):
        answer = await reader.read()
    writer.close()
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1") == 1
    assert says in json.loads(answer.partition(b"\r\n\r\n")[2])["detail"]
    assert not api.broker.queues["q"].paused
    await server.stop()


async def test_what_follows_a_request_is_judged_like_the_first(api: Api):
    server, _ = await started(api)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(HEALTH + b"\r\n" + POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
    async with asyncio.timeout(10):
        answer = await reader.read()
    writer.close()
    assert (answer.count(b"HTTP/1.1 200"), answer.count(b"HTTP/1.1 400")) == (1, 1)
    await server.stop()


async def test_a_body_whose_chunks_are_mostly_extensions_has_a_bound(api: Api):
    server, _ = await started(api)
    login = b"Authorization: Basic " + base64.b64encode(f"admin:{PASSWORD}".encode()) + b"\r\n"
    _, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(POST + login + b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
    chunk = b"1;" + b"x" * 32_768 + b"\r\n \r\n"
    sent = 0
    async with asyncio.timeout(20):
        with contextlib.suppress(OSError):
            while sent < 10 * http_server.REQUEST_LIMIT_BYTES:
                writer.write(chunk)
                await writer.drain()
                sent += len(chunk)
    assert sent < 5 * http_server.REQUEST_LIMIT_BYTES
    writer.close()
    await asyncio.gather(writer.wait_closed(), return_exceptions=True)
    await server.stop()


@pytest.mark.parametrize("half", [b"", b"GET /health/live HTTP/1.1\r\nHost: x\r\n", HEALTH + b"\r\nGET /"])
async def test_half_requests_do_not_keep_others_from_health(api: Api, monkeypatch: pytest.MonkeyPatch, half: bytes):
    monkeypatch.setattr(http_server, "CONNECTION_LIMIT", 8)
    server, url = await started(api)
    halves = []
    for _ in range(40):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(half)
        halves.append((reader, writer))
    for _ in range(3):
        async with httpx.AsyncClient() as client:
            assert (await client.get(f"{url}/health/live")).status_code == 200
    for _, writer in halves:
        writer.close()
    await server.stop()


async def test_health_answers_while_all_places_serve_and_others_are_told_to_wait(
    api: Api, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(http_server, "CONNECTION_LIMIT", 2)
    server, url = await started(api)
    for group in "abc":
        await api.open(group)
    wanted = {"after": 0, "max_rows": 1, "max_bytes": 1, "wait_ms": 30_000, "epoch": 1}
    async with httpx.AsyncClient(auth=("admin", PASSWORD), timeout=60) as client:
        asked = [asyncio.create_task(client.post(f"{url}/api/v1/leases/{group}/lease", json=wanted)) for group in "ab"]
        await eventually(lambda: all(len(api.broker.leases.find(group).waiters) == 1 for group in "ab"))
        async with httpx.AsyncClient(auth=("admin", PASSWORD)) as other:
            assert (await other.get(f"{url}/health/live")).status_code == 200
            assert problem(await other.get(f"{url}/api/v1/queues"))[:2] == (503, "DMQ6173")
        await server.stop()
        assert [succeeded(await one)["lease"] for one in asked] == [0, 0]


async def test_a_second_request_must_come_as_fast_as_the_first(api: Api, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(http_server, "HEAD_TIMEOUT_S", 0.05)
    server, _ = await started(api)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(HEALTH + b"\r\n")
    assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    writer.write(HEALTH)
    async with asyncio.timeout(10):
        with contextlib.suppress(ConnectionError):
            await reader.read()
    writer.close()
    await asyncio.gather(writer.wait_closed(), return_exceptions=True)
    await server.stop()


async def test_a_client_that_does_not_read_is_cut_off(
    api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(http_server, "READ_WITHIN_MS", 50)
    slow_readers = SlowReaders(-1)
    server = HttpServer(api.app, bind("127.0.0.1", 0, "the HTTP interface"), slow_readers)
    await server.start()
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
    client.setblocking(False)
    await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", server.port))
    _, writer = await asyncio.open_connection(sock=client, limit=1_024)
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    request = (
        b"GET /openapi.json HTTP/1.1\r\nHost: h\r\n"
        b"Authorization: Basic " + base64.b64encode(f"admin:{PASSWORD}".encode()) + b"\r\n\r\n"
    )
    writer.write(request * 500)
    await eventually(lambda: slow_readers.used_bytes > 0)
    await eventually(lambda: "DMQ6714" in caplog.text)
    assert "127.0.0.1:" in caplog.text
    assert "/openapi.json" in caplog.text
    await eventually(lambda: slow_readers.used_bytes == 0)
    writer.transport.abort()
    await server.stop()
