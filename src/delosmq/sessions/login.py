"""Login: what stands between a password that is right and a session.

A session has the password verified, then asks `LoginPort.decide`, and begins when it is admitted. A router, or a limit
that is no matter of one protocol, answers there; `AdmitAll` is what stands there otherwise.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.model.errors import BrokerError, InvariantError, PeerError, peer_error
from delosmq.model.phrases import one_line
from delosmq.security.access import Login

_SHOWN_LETTERS: Final = 300


class TurnedAwayError(PeerError):
    """Another broker may serve the peer, or this one later: protocols do not tell it as the end of a client's tries."""


class RedirectError(TurnedAwayError):
    """The peer is to connect elsewhere.

    Attributes:
        place: host and port, as a URL has them.
        tls: whether that place speaks TLS only.
    """

    def __init__(self, host: str, port: int, tls: bool) -> None:
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        super().__init__("DMQ5301", f"this broker does not serve this connection; connect to {place}")
        self.host = host
        self.port = port
        self.place = place
        self.tls = tls


@peer_error("DMQ5305")
def certificate_without_user(name: str) -> str:
    return (
        f"no user has the certificate '{one_line(name, _SHOWN_LETTERS)}'; name one with it in cert-users.properties, "
        "or log in with another certificate"
    )


class LoginRequest:
    """A login with the right password, or certificate.

    Attributes:
        client_id: what the peer calls itself; "" when it does not.
        peer: address and port.
        acceptor: the name of the acceptor that it came by.
        router: the connection router that the acceptor names; "" for none.
        sni_host: the server name that its TLS handshake asked for; "" for none.
        ask_again: has `LoginPort.decide` called once more, in a later turn of the loop.
    """

    def __init__(
        self,
        login: Login,
        client_id: str,
        peer: str,
        acceptor: str,
        *,
        ask_again: Callable[[], None],
        router: str = "",
        sni_host: str = "",
    ) -> None:
        self.login = login
        self.client_id = client_id
        self.peer = peer
        self.acceptor = acceptor
        self.ask_again = ask_again
        self.router = router
        self.sni_host = sni_host

    def source(self) -> str:
        """The peer's address without its port."""
        return self.peer.rpartition(":")[0] or self.peer


class LoginAnswer:
    """What becomes of a login.

    Attributes:
        code, text: why the peer gets no session here; None and "" when it gets one, now or later, or is redirected.
        elsewhere: whether another broker may serve it, or this one later.
        host, port, tls: where it is to connect; None, 0 and False when it isn't redirected.
    """

    def __init__(self, code: str | None = None, text: str = "", *, elsewhere: bool = False) -> None:
        self.code = code
        self.text = text
        self.elsewhere = elsewhere
        self.host: str | None = None
        self.port: int = 0
        self.tls: bool = False

    def refusal(self) -> PeerError | None:
        """Why the peer gets no session here, for one login: an answer may serve many. None when it gets one."""
        if self.host is not None:
            return RedirectError(self.host, self.port, self.tls)
        if self.code is None:
            return None
        return TurnedAwayError(self.code, self.text) if self.elsewhere else PeerError(self.code, self.text)


ADMIT: Final = LoginAnswer()
WAIT: Final = LoginAnswer()
"""The port does not know yet; it calls `LoginRequest.ask_again`. Nothing is read from the peer until then, and the
acceptor's ``handshake-timeout`` goes on."""


def refuse(code: str, text: str) -> LoginAnswer:
    """The peer is told why, and its connection closed."""
    return LoginAnswer(code, text)


def turn_away(code: str, text: str) -> LoginAnswer:
    """The peer is told why, and its connection closed, so that it tries other brokers. The port says so in the log."""
    return LoginAnswer(code, text, elsewhere=True)


def redirect(host: str, port: int, *, tls: bool = False) -> LoginAnswer:
    """The peer is told to connect elsewhere, and its connection closed. The port says so in the log."""
    answer = LoginAnswer()
    answer.host = host
    answer.port = port
    answer.tls = tls
    return answer


@mypyc_attr(allow_interpreted_subclasses=True)
class LoginPort(ABC):
    """Decides which login gets a session. Neither may block, nor call the engine but to keep entries of its own."""

    @abstractmethod
    def decide(self, request: LoginRequest) -> LoginAnswer:
        """`ADMIT`, `WAIT`, or what `refuse` or `redirect` gives. Called once for each login, and once more for each
        `LoginRequest.ask_again`.

        Raises:
            BrokerError: the login is refused with it. With an InvariantError, and with what is no BrokerError, it is
                refused as well, and the log says what the port raised.
        """

    def withdraw(self, request: LoginRequest) -> None:  # noqa: B027 - most ports never let a login wait
        """A login that waits wants no answer any more: its connection is closed, or its user was changed or removed."""


def decided(port: LoginPort, request: LoginRequest, report: Callable[[BrokerError], None]) -> LoginAnswer:
    """What a port answers. One that fails refuses the login: the broker's own state is not in doubt by it.

    Args:
        report: hears of what it raised.

    Raises:
        BrokerError: the login is refused with it.
    """
    try:
        answer: object = port.decide(request)
        if isinstance(answer, LoginAnswer):
            return answer
        report(port_failed(port, f"answered {type(answer).__name__}, which is no LoginAnswer"))
    except InvariantError as error:
        report(port_failed(port, raised(error)))
    except BrokerError:
        raise
    except Exception as failure:
        report(port_failed(port, raised(failure)))
    return UNDECIDED


def withdraw(port: LoginPort, request: LoginRequest, report: Callable[[BrokerError], None]) -> None:
    """Tells a port that a login wants no answer any more."""
    try:
        port.withdraw(request)
    except Exception as error:
        report(port_failed(port, raised(error)))


UNDECIDED: Final = refuse(
    "DMQ5304", "the broker could not decide whether this login gets a session; its log says more, under DMQ5303"
)


def port_failed(port: LoginPort, how: str) -> PeerError:
    return PeerError(
        "DMQ5303", f"{type(port).__name__}, which decides on logins, {how}; logins are refused until that is mended"
    )


def raised(error: Exception) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = "" if trace is None else f" at {trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
    return f"raised {type(error).__name__}: {error}{place}"


class AdmitAll(LoginPort):
    """Every user has a session."""

    def decide(self, request: LoginRequest) -> LoginAnswer:
        return ADMIT


ADMIT_ALL: Final = AdmitAll()
