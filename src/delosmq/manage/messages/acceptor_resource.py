"""The resources ``acceptor.<name>``. Source: AcceptorControl of Artemis."""

from typing import Final

from delosmq.manage.messages import errors
from delosmq.manage.messages.declarations import attribute
from delosmq.model.settings import AcceptorSettings
from delosmq.security.access import Login

FACTORY: Final = "org.apache.activemq.artemis.core.remoting.impl.netty.NettyAcceptorFactory"
"""What clients of Artemis know: a socket."""


class AcceptorResource:
    """One place where the broker listens; whoever may send a management message may look."""

    def __init__(self, acceptor: AcceptorSettings) -> None:
        self._acceptor = acceptor

    @attribute("Name")
    def name(self, login: Login) -> str:
        return self._acceptor.name

    @attribute("FactoryClassName")
    def factory_class_name(self, login: Login) -> str:
        return FACTORY

    @attribute("Parameters")
    def parameters(self, login: Login) -> dict[str, object]:
        acceptor = self._acceptor
        return {
            "host": acceptor.host,
            "port": acceptor.port,
            "protocols": ",".join(acceptor.protocols),
            "sslEnabled": acceptor.tls is not None,
        }

    @attribute("Started")
    def started(self, login: Login) -> bool:
        return True


def find_acceptor(acceptors: tuple[AcceptorSettings, ...], name: str) -> AcceptorResource:
    """Raises NotFoundError when there is none of this name."""
    for acceptor in acceptors:
        if acceptor.name == name:
            return AcceptorResource(acceptor)
    raise errors.unknown_acceptor(name, [acceptor.name for acceptor in acceptors])
