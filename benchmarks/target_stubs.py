"""Stand-ins for the targets of a connection router: ``python -m benchmarks.target_stubs COUNT`` prints their ports and
runs until its standard input ends.

They speak as much STOMP as a router's probe and the clients of the benchmark do: anybody may log in, an attribute that
is asked for is told, and who subscribes without a receipt gets a message.
"""

from __future__ import annotations

import asyncio
import json
import sys

_CONNECTED = b"CONNECTED\nversion:1.2\nheart-beat:0,0\n\n\0"
_MESSAGE = b"MESSAGE\nsubscription:0\nmessage-id:1\ndestination:q\n_AMQ_OperationSucceeded:true\n\n%b\0"


class Stub(asyncio.Protocol):
    """One connection.

    Args:
        node_id: by which the router tells targets apart.
    """

    def __init__(self, node_id: str) -> None:
        self._values = {"NodeID": node_id, "Active": True, "ConnectionCount": 0}
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        *frames, self._rest = (self._rest + data).split(b"\0")
        for frame in frames:
            self._transport.write(self._answer(frame.decode().lstrip("\n")))

    def _answer(self, frame: str) -> bytes:
        command, *lines = frame.partition("\n\n")[0].split("\n")
        headers = dict(line.split(":", 1) for line in lines)
        if command in ("CONNECT", "STOMP"):
            return _CONNECTED
        if command == "SEND":
            return _MESSAGE % json.dumps([self._values[headers["_AMQ_Attribute"]]]).encode()
        if "receipt" in headers:
            return f"RECEIPT\nreceipt-id:{headers['receipt']}\n\n\0".encode()
        return _MESSAGE % b"first"


async def serve(count: int) -> None:
    loop = asyncio.get_running_loop()
    servers = [
        await loop.create_server(lambda node_id=f"stub-{number}": Stub(node_id), "127.0.0.1", 0)  # type: ignore[misc]
        for number in range(count)
    ]
    sys.stdout.write(json.dumps([server.sockets[0].getsockname()[1] for server in servers]) + "\n")
    sys.stdout.flush()
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
