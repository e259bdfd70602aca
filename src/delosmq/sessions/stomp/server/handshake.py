"""CONNECT and CONNECTED: version, login, and how large frames may be before and after."""

from typing import Final

from delosmq.model.settings import AcceptorSettings
from delosmq.sessions.stomp.server import errors
from delosmq.wire.stomp.encoder import encode_frame
from delosmq.wire.stomp.heads import StompLimits
from delosmq.wire.stomp.versions import V10, V11, V12

_VERSIONS: Final = {"1.0": V10, "1.1": V11, "1.2": V12}
_NAMES: Final = {V10: "1.0", V11: "1.1", V12: "1.2"}
_HEAD_BEFORE_LOGIN_BYTES: Final = 64 * 1024
# Enough for a short frame that came too early to be refused by its name.
_BODY_BEFORE_LOGIN_BYTES: Final = 1_024


def limits_of(acceptor: AcceptorSettings) -> StompLimits:
    """The decoder's limits for connections of ``acceptor`` that are logged in."""
    return StompLimits(
        max_head_bytes=acceptor.max_head_bytes,
        max_headers=acceptor.max_headers,
        max_body_bytes=acceptor.max_frame_bytes,
        max_header_line_bytes=acceptor.max_head_bytes,
    )


def limits_before_login(acceptor: AcceptorSettings) -> StompLimits:
    """The decoder's limits for those who are not: CONNECT has no body, and any peer may open connections."""
    head = min(acceptor.max_head_bytes, _HEAD_BEFORE_LOGIN_BYTES)
    return StompLimits(
        max_head_bytes=head,
        max_headers=acceptor.max_headers,
        max_body_bytes=min(acceptor.max_frame_bytes, _BODY_BEFORE_LOGIN_BYTES),
        max_header_line_bytes=head,
    )


def choose_version(accept_version: str | None) -> int:
    """The newest version both sides speak.

    Raises:
        PeerError: DMQ5103, there is none.
    """
    if accept_version is None:
        return V10
    common = [_VERSIONS[name.strip()] for name in accept_version.split(",") if name.strip() in _VERSIONS]
    if not common:
        raise errors.no_common_version(accept_version)
    return max(common)


def check_login(headers: dict[str, str]) -> None:
    """
    Raises:
        PeerError: a CONNECT does not say who its peer is.
    """
    for name in ("login", "passcode"):
        if name not in headers:
            raise errors.login_required(name)


def connected(version: int, connection_id: str, server_name: str, beats: str) -> bytes:
    """The answer to a CONNECT that was let in.

    Args:
        beats: its ``heart-beat``, "" for none.
    """
    pairs = [("version", _NAMES[version]), ("session", connection_id), ("server", server_name)]
    if beats:
        pairs.append(("heart-beat", beats))
    return encode_frame("CONNECTED", pairs, b"", version, content_length=False)
