"""What an HTTP client is told that came to the port of another protocol."""

from http import HTTPStatus


def elsewhere(http_port: int) -> str:
    """Where the HTTP interface is, as a sentence after others; "" where there is none (port 0)."""
    return f" The HTTP interface of this broker is at port {http_port}." if http_port else ""


def not_http(acceptor: str, protocols: tuple[str, ...], http_port: int) -> bytes:
    """The whole answer to a request."""
    body = f"this is acceptor '{acceptor}', which speaks {', '.join(protocols)} and no HTTP.{elsewhere(http_port)}\n"
    status = HTTPStatus.MISDIRECTED_REQUEST
    head = [
        f"HTTP/1.1 {status.value} {status.phrase}",
        "Connection: close",
        "Content-Type: text/plain; charset=utf-8",
        f"Content-Length: {len(body.encode())}",
    ]
    return "\r\n".join([*head, "", body]).encode()
