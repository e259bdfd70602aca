"""The server's side of a STOMP session: frames to engine commands, replies to the outbox.

The table at the end of this file is the protocol: which command is allowed in which state, and who handles it. What a
session does whatever its protocol is in `delosmq.sessions.machine`.
"""

from collections.abc import Callable
from typing import Final

from delosmq.model.errors import BrokerError, PeerError
from delosmq.model.ids import MonotonicNs
from delosmq.security.access import Login
from delosmq.sessions.machine import CONNECTED, NEW, SessionMachine
from delosmq.sessions.parked_sends import ParkedSends
from delosmq.sessions.permissions import Permissions
from delosmq.sessions.protocol_session import ProtocolSession
from delosmq.sessions.stomp.server import errors, heartbeat
from delosmq.sessions.stomp.server.destinations import StompDestinations
from delosmq.sessions.stomp.server.handshake import (
    check_login,
    choose_version,
    connected,
    limits_before_login,
    limits_of,
)
from delosmq.sessions.stomp.server.headers import required
from delosmq.sessions.stomp.server.heartbeat import HeartBeatTimer
from delosmq.sessions.stomp.server.producers import Producer
from delosmq.sessions.stomp.server.subscriber import StompSubscriber
from delosmq.sessions.stomp.server.temporary_destinations import StompTemporaryDestinations
from delosmq.sessions.stomp.server.transactions import TRANSACTION, StompTransaction, StompTransactions
from delosmq.wire.stomp.decoder import StompDecoder, StompFrame
from delosmq.wire.stomp.versions import V10

_BRIEF: Final = frozenset(("SEND", "ACK", "NACK"))
"""Commands that take no time worth a look at the clock, as a rule."""


class StompSession(ProtocolSession):
    """What one peer says, from CONNECT to DISCONNECT.

    Attributes:
        version: 10, 11 or 12; 10 until CONNECT.
    """

    def __init__(self, machine: SessionMachine, now: MonotonicNs) -> None:
        acceptor = machine.acceptor
        broker = machine.services.broker
        self._decoder: StompDecoder = StompDecoder(limits_before_login(acceptor))
        self._heart_beat: HeartBeatTimer = HeartBeatTimer(
            heartbeat.limits_of(acceptor, broker.settings.connection_ttl_override_ms),
            broker.settings.connection_ttl_check_interval_ms,
            now,
        )
        super().__init__(self._decoder, self._heart_beat)
        self.version: int = V10
        self._machine = machine
        self._user: str = ""
        self._client_id: str = ""
        self._temporaries: StompTemporaryDestinations = StompTemporaryDestinations(
            broker, machine.services.temporaries, machine.peer.connection_id, acceptor.max_subscriptions
        )
        self._destinations: StompDestinations = StompDestinations(acceptor, self._temporaries)
        self._transactions: StompTransactions = StompTransactions(broker, machine.peer.connection_id)
        self._parked_sends: ParkedSends = ParkedSends(broker, machine, ordered=True)
        self.parked_sends = self._parked_sends
        self._producer: Producer = Producer(
            machine, self._parked_sends, destinations=self._destinations, transactions=self._transactions
        )
        self._subscriber: StompSubscriber = StompSubscriber(
            machine, self._producer, destinations=self._destinations, transactions=self._transactions
        )

    def handle(self, frame: object, now: MonotonicNs) -> bool:
        assert isinstance(frame, StompFrame)
        command = frame.command
        handler = COMMANDS[self._machine.state].get(command)
        if handler is None:
            raise self._refuse_command(command)
        handler(self, frame, now)
        return command in _BRIEF

    def _refuse_command(self, command: str) -> PeerError:
        if command not in COMMANDS[CONNECTED] and command not in COMMANDS[NEW]:
            return errors.unknown_command(command)
        if self._machine.state == NEW:
            return errors.not_connected(command)
        return errors.connected_already(command)

    # -- connecting ------------------------------------------------------------------------------------------------

    def _connect(self, frame: StompFrame, now: MonotonicNs) -> None:
        headers = frame.headers
        self.version = choose_version(headers.get("accept-version"))
        self._decoder.version = self.version
        self._client_id = headers.get("client-id", "")
        if self.version != V10:
            self._heart_beat.agree(headers.get("heart-beat", "0,0"))
        if self._machine.needs_password():
            check_login(headers)
        self._user = headers.get("login", "")
        self._machine.log_in(self._user, headers.get("passcode", ""), self._client_id, now)

    def admit(self, login: Login, now: MonotonicNs) -> None:
        machine = self._machine
        services = machine.services
        self._decoder.set_limits(limits_of(machine.acceptor))
        permissions = Permissions(login, services.access, services.broker)
        self._producer.permit(permissions, self.version)
        self._subscriber.permit(permissions, self.version, self._client_id)
        self._temporaries.permit(permissions)
        beats = self._heart_beat.start(now)
        frame = connected(self.version, machine.peer.connection_id, services.server_name, beats)
        self._machine.outbox.reply(self._parked_sends.position, frame)

    def refuse_login(self, error: BrokerError | None) -> None:
        self._machine.fail(errors.login_refused(self._user) if error is None else error)

    # -- commands of those who are logged in -----------------------------------------------------------------------

    def _send(self, frame: StompFrame, now: MonotonicNs) -> None:
        self._producer.send(frame, self._machine.wall)

    def _subscribe(self, frame: StompFrame, now: MonotonicNs) -> None:
        self._subscriber.subscribe(frame)
        self._answer(frame.headers)

    def _unsubscribe(self, frame: StompFrame, now: MonotonicNs) -> None:
        self._subscriber.unsubscribe(frame)
        self._answer(frame.headers)

    def _settle(self, frame: StompFrame, now: MonotonicNs) -> None:
        under_way = self._subscriber.settle(frame, frame.command == "ACK")
        if under_way is None:
            self._answer(frame.headers)
        else:
            self._producer.answer_after(under_way, frame.headers.get("receipt", ""))

    def _answer(self, headers: dict[str, str]) -> None:
        """The receipt of a frame that touched what is durable."""
        self._producer.changed_state()
        receipt = headers.get("receipt")
        if receipt:
            self._producer.receipt(receipt)

    def _begin(self, frame: StompFrame, now: MonotonicNs) -> None:
        self._transactions.begin(required(frame.headers, TRANSACTION, "BEGIN"))
        self._answer(frame.headers)

    def _commit(self, frame: StompFrame, now: MonotonicNs) -> None:
        transaction = self._transactions.take(required(frame.headers, TRANSACTION, "COMMIT"), "COMMIT")
        self._producer.commit(transaction, frame.headers.get("receipt", ""))

    def _abort(self, frame: StompFrame, now: MonotonicNs) -> None:
        transaction = self._transactions.take(required(frame.headers, TRANSACTION, "ABORT"), "ABORT")
        self._producer.abort(transaction, frame.headers.get("receipt", ""))

    # -- leaving ---------------------------------------------------------------------------------------------------

    def _disconnect(self, frame: StompFrame, now: MonotonicNs) -> None:
        open_ones = self._transactions.take_all()
        self._parked_sends.drop(open_ones)
        self._subscriber.report(self._transactions.abandon(open_ones))
        self._subscriber.close_all()
        self._temporaries.close()
        self._answer(frame.headers)
        self._machine.leave()

    def refuse(self, frame: object, error: BrokerError) -> None:
        assert isinstance(frame, StompFrame)
        self._machine.fail(error, frame.headers.get("receipt", ""))

    def send_error(self, error: BrokerError, receipt: str) -> None:
        """ERROR, and nothing after it."""
        frame = errors.error_frame(error, receipt, self.version)
        self._machine.outbox.reply(self._parked_sends.position, frame)

    def give_up(self) -> None:
        left = [work for work in self._parked_sends.close() if isinstance(work, StompTransaction)]
        left += self._transactions.take_all()
        self._subscriber.report(self._transactions.abandon(left))
        self._subscriber.close_all()
        self._temporaries.close()

    def half_closed(self) -> None:
        # The client can't say any more that parked SENDs should stay, and was not told that they arrived.
        self._machine.end(None)

    def rights_changed(self) -> None:
        self._producer.rights_changed()

    # -- later -----------------------------------------------------------------------------------------------------

    def go_on(self, now: MonotonicNs) -> None:
        self._parked_sends.go_on()

    def handle_written(self) -> bool:
        return self._subscriber.handle_written()

    def beat(self) -> None:
        self._machine.outbox.beat()


Handler = Callable[[StompSession, StompFrame, MonotonicNs], None]

# (state, command) -> handler; what is missing is refused. In other states nothing is decoded.
COMMANDS: Final[dict[int, dict[str, Handler]]] = {
    NEW: {"CONNECT": StompSession._connect, "STOMP": StompSession._connect},
    CONNECTED: {
        "SEND": StompSession._send,
        "SUBSCRIBE": StompSession._subscribe,
        "UNSUBSCRIBE": StompSession._unsubscribe,
        "ACK": StompSession._settle,
        "NACK": StompSession._settle,
        "BEGIN": StompSession._begin,
        "COMMIT": StompSession._commit,
        "ABORT": StompSession._abort,
        "DISCONNECT": StompSession._disconnect,
    },
}
