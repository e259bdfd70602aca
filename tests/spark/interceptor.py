"""A proxy between Spark and a broker that calls a hook before a request goes on and before its answer goes back.

Works for any broker, so that a kill can be placed between two calls exactly.
"""

import http.client
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

Hook = Callable[[str, str, bytes], None]
"""Gets "before" or "after", the path, and the body of the request or of the answer."""


class Interceptor:
    """Forwards to `servers`; set `hook` to see every call. `stop` ends it."""

    def __init__(self, servers: str) -> None:
        parts = urlsplit(servers if "://" in servers else f"http://{servers}")
        self.upstream = (parts.hostname or "", parts.port or 0)
        self.hook: Hook = lambda when, path, body: None
        interceptor = self

        class Handler(_Handler):
            owner = interceptor

        self._server = _Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def servers(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The clients are killed; that is the point."""


class _Handler(BaseHTTPRequestHandler):
    owner: Interceptor

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        self._forward()

    def do_POST(self) -> None:
        self._forward()

    def do_DELETE(self) -> None:
        self._forward()

    def _forward(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.owner.hook("before", self.path, body)
        upstream = http.client.HTTPConnection(*self.owner.upstream, timeout=60)
        try:
            headers = {name: self.headers[name] for name in ("Authorization", "Content-Type") if name in self.headers}
            upstream.request(self.command, self.path, body or None, headers)
            with upstream.getresponse() as response:
                answer = response.read()
                self.owner.hook("after", self.path, answer)
                self.send_response(response.status)
                self.send_header("Content-Type", response.headers.get("Content-Type", "application/json"))
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)
        finally:
            upstream.close()
