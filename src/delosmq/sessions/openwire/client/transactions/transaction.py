"""The local transactions of a session, one after the other.

Source: TransactionContext of the Java client.
"""

from collections.abc import Callable
from typing import Final

from delosmq.sessions.client_errors import ConnectionLostError
from delosmq.sessions.openwire.client import errors
from delosmq.sessions.openwire.client.participants import Participant
from delosmq.sessions.openwire.client.ports import CommandSender, PendingRequest, finished
from delosmq.wire.openwire.commands import BEGIN, COMMIT_ONE_PHASE, END, ROLLBACK, TransactionInfo
from delosmq.wire.openwire.structures import Command, LocalTransactionId, TransactionId

_COMMIT: Final = "a commit"
_ROLLBACK: Final = "a rollback"


class LocalTransaction:
    """
    Attributes:
        transaction_id: of the one that is open; None between two.
        commands: what the broker has to be told again when the connection is made again.
        rollback_only: it can't be committed any more.
        delivers: its session may receive messages now.
        delivers_ahead: a message may be handed out now that is received later.
    """

    def __init__(self, sender: CommandSender) -> None:
        self._sender = sender
        self.transaction_id: TransactionId | None = None
        self.commands: list[Command] = []
        self.rollback_only: bool = False
        self.delivers: bool = True
        self.delivers_ahead: bool = True
        self._participants: list[Participant] = []

    def check_ends_here(self, action: str) -> None:
        """
        Raises:
            IllegalStateError: DMQ9015, it is a coordinator's.
        """

    def begin(self) -> None:
        """Begins one unless one is open."""
        if self.transaction_id is None:
            sender = self._sender
            self._participants = []
            self.transaction_id = LocalTransactionId(sender.next_transaction(), sender.connection_id)
            info = self._info(BEGIN)
            sender.send(info)
            self.rollback_only = False
            self.commands = []
            self.track(info)

    def track(self, command: Command) -> None:
        """Notes what was sent in it, if that may be needed again."""
        if self._sender.fault_tolerant:
            self.commands.append(command)

    def add(self, participant: Participant) -> None:
        self._participants.append(participant)

    def commit(self) -> PendingRequest:
        self._before_end()
        if self.transaction_id is None:
            return finished(_COMMIT)
        if self.rollback_only:
            return self._roll_back(_COMMIT, _refuse)
        info = self._info(COMMIT_ONE_PHASE)
        commands = self.commands
        participants = self._take()
        request = self._sender.request(info, _COMMIT, lambda request: _commit_answered(request, participants))
        if not self._sender.ready:
            request.before = commands
        return request

    def rollback(self, timeout_ms: int = 0) -> PendingRequest:
        self._before_end()
        if self.transaction_id is None:
            return finished(_ROLLBACK)
        return self._roll_back(_ROLLBACK, _undo, timeout_ms)

    def _roll_back(
        self, what: str, then: Callable[[PendingRequest, list[Participant]], None], timeout_ms: int = 0
    ) -> PendingRequest:
        info = self._info(ROLLBACK)
        participants = self._take()
        if self._sender.ready:
            return self._sender.request(info, what, lambda request: then(request, participants), timeout_ms)
        # The next broker will know nothing of it.
        request = finished(what)
        then(request, participants)
        return request

    def _take(self) -> list[Participant]:
        """Ends it here: what is sent from now on belongs to the next one."""
        participants = self._participants
        self._participants = []
        self.commands = []
        self.transaction_id = None
        return participants

    def _info(self, kind: int) -> TransactionInfo:
        info = TransactionInfo()
        info.connection_id = self._sender.connection_id
        info.transaction_id = self.transaction_id
        info.type = kind
        return info

    def _before_end(self) -> None:
        for participant in self._participants:
            participant.before_end()


def fails_when_interrupted(info: TransactionInfo) -> bool:
    """Whether its outcome is not known when the connection breaks before the answer. What was not committed or prepared
    is rolled back with the connection."""
    if isinstance(info.transaction_id, LocalTransactionId):
        return info.type == COMMIT_ONE_PHASE
    return info.type != END


def _commit_answered(request: PendingRequest, participants: list[Participant]) -> None:
    if request.error is None:
        for participant in participants:
            participant.committed()
        return
    if isinstance(request.error, ConnectionLostError):
        request.error = errors.in_doubt()
    _undo(request, participants)


def _undo(_: PendingRequest, participants: list[Participant]) -> None:
    for participant in participants:
        participant.rolled_back()


def _refuse(request: PendingRequest, participants: list[Participant]) -> None:
    request.error = errors.rolled_back()
    _undo(request, participants)
