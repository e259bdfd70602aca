"""CONNECT and CONNECTED: version, login, heart-beats, and how large frames may be before and after."""

from typing import Final

from delosmq.model.ids import MonotonicNs
from delosmq.model.settings import AcceptorSettings
from delosmq.security.access import AccessControl, Login, LoginAttempt
from delosmq.sessions.stomp.server import errors
from delosmq.sessions.stomp.server.heartbeat import HeartBeatTimer
from delosmq.wire.stomp.decoder import StompLimits
from delosmq.wire.stomp.encoder import encode_frame
from delosmq.wire.stomp.frames import V10, V11, V12

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
    """The decoder's limits for those who are not: CONNECT has no body, and anybody may open connections."""
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


class StompHandshake:
    """The login of one connection.

    Attributes:
        client_id: whose durable subscriptions it may have; "" for nobody's.
        user: as the peer calls itself, whether there is such a user or not.
    """

    def __init__(self, access: AccessControl, heart_beat: HeartBeatTimer) -> None:
        self.client_id: str = ""
        self.user: str = ""
        self._access = access
        self._heart_beat = heart_beat
        self._attempt: LoginAttempt | None = None

    def begin(self, headers: dict[str, str], version: int) -> LoginAttempt:
        """Reads a CONNECT. An attempt that has no login yet needs its password verified, then `finish`.

        Raises:
            PeerError: a header is wrong or missing.
        """
        self.client_id = headers.get("client-id", "")
        if version != V10:
            self._heart_beat.agree(headers.get("heart-beat", "0,0"))
        for name in ("login", "passcode"):
            if name not in headers:
                raise errors.login_required(name)
        self.user = headers["login"]
        attempt = self._access.attempt(headers["login"], headers["passcode"])
        if attempt.login is None:
            self._attempt = attempt
        return attempt

    def finish(self, verified: bool) -> Login | None:
        """The login of the attempt, now that its password was checked; None when it is refused."""
        attempt = self._attempt
        assert attempt is not None  # begun, or nothing would have been checked
        self._attempt = None
        return self._access.finish(attempt, verified)

    def connected(self, version: int, connection_id: str, server_name: str, now: MonotonicNs) -> bytes:
        """The answer to a CONNECT that was let in; from now on the peer is held to its heart-beats."""
        pairs = [("version", _NAMES[version]), ("session", connection_id), ("server", server_name)]
        beats = self._heart_beat.start(now)
        if beats:
            pairs.append(("heart-beat", beats))
        return encode_frame("CONNECTED", pairs, b"", version, content_length=False)
