"""A session, as its parts and the registry of sessions see it."""

from abc import abstractmethod

from mypy_extensions import mypyc_attr

from delosmq.model.errors import BrokerError
from delosmq.sessions.core.server.replies import SessionReplies
from delosmq.sessions.host import Peer
from delosmq.sessions.parked_sends import ParkedSendsOwner
from delosmq.wire.core.packet import Packet


@mypyc_attr(allow_interpreted_subclasses=True)
class SessionPort(ParkedSendsOwner):
    """One session.

    Attributes:
        name: that its client chose. Never logged: who knows it may take the session over.
        user: that is logged in.
        certificate: that its client showed, "" for none.
        metadata: what its client says of it.
        started: its consumers get messages.
    """

    def __init__(self, name: str, user: str, peer: Peer, replies: SessionReplies) -> None:
        self.name = name
        self.user = user
        self.certificate = peer.certificate
        self.peer = peer
        self.replies = replies
        self.metadata: dict[str, str] = {}
        self.started: bool = False

    @abstractmethod
    def message_sent(self, request: Packet) -> None:
        """A message is where it belongs: answers, if an answer is asked for. Must not call the engine."""

    @abstractmethod
    def refuse(self, request: Packet, error: BrokerError) -> None:
        """A request can't be carried out: tells its client, or the log when no answer is waited for. Must not call the
        engine."""

    @abstractmethod
    def fail(self, reason: BrokerError) -> None:
        """Its client has opened another one in its place: ends it, as if its connection were gone."""
