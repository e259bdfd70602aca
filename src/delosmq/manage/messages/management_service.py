"""Carries out management messages: reads what they ask, asks the resource, and writes the answer.

Source: ManagementServiceImpl.handleMessage of Artemis. What is wrong with a message is said in its answer.
"""

import logging
from collections.abc import Callable
from types import GeneratorType
from typing import Any, Final

from delosmq.engine.api import EngineBroker
from delosmq.manage.control.host import Host
from delosmq.manage.messages import errors
from delosmq.manage.messages.declarations import ResourceKind
from delosmq.manage.messages.json_body import check_size, read_arguments, write_result
from delosmq.manage.messages.reply_to import ReplyTo, read_reply_to
from delosmq.manage.messages.slices import run_in_slices
from delosmq.model.conversion import Conversions
from delosmq.model.declared.java_regex import JavaRegex
from delosmq.model.errors import BrokerError, InvariantError
from delosmq.model.message import TEXT_BODY, HubMessage, Message
from delosmq.model.phrases import one_line
from delosmq.security.access import EDIT, VIEW, AccessControl, Login
from delosmq.sessions.management import ManagementCall, ManagementPort
from delosmq.sessions.outbox import Gate, GateWaiter

RESOURCE: Final = "_AMQ_ResourceName"
OPERATION: Final = "_AMQ_OperationName"
ATTRIBUTE: Final = "_AMQ_Attribute"
SUCCEEDED: Final = "_AMQ_OperationSucceeded"

_LONGEST_NAME: Final = 2_048
"""Of a resource: an address and a queue fit in."""
_AUDITED_CHARACTERS: Final = 500


class ManagementService(ManagementPort):
    """Carries out the management messages of one broker.

    Attributes:
        kinds: the resources; `ResourceKind`s may be added until the broker starts.
    """

    def __init__(
        self,
        broker: EngineBroker,
        host: Host,
        gate: Gate,
        *,
        access: AccessControl,
        conversions: Conversions,
        logger: logging.Logger,
    ) -> None:
        self.address = broker.settings.management_address
        self.kinds: list[ResourceKind] = []
        self._broker = broker
        self._host = host
        self._gate = gate
        self._access = access
        self._conversions = conversions
        self._logger = logger
        self._audit_log = logger.getChild("audit")
        settings = broker.settings
        self._looks = JavaRegex(settings.view_permission_method_match_pattern)
        self._permission_prefix = f"{settings.management_rbac_prefix}." if settings.management_message_rbac else ""

    def begin(self, request: Message, login: Login) -> ManagementCall:
        headers = self._conversions.headers_to_hub(request)
        reply_to = read_reply_to(headers.reply_to, self._broker)
        if reply_to is not None:
            reply_to.require(self._broker, self._access, login)
        correlation_id = headers.correlation_id or self._conversions.message_id(request)
        answer = _Answer(request, headers, reply_to, correlation_id=correlation_id or None, end=self._end)
        try:
            result = self._carry_out(request, headers, login)
            if isinstance(result, GeneratorType):
                run_in_slices(
                    self._broker,
                    result,
                    ended=lambda found: self._succeed(answer, found),
                    failed=lambda error: self._fail(answer, error),
                )
            elif result is _NOTHING_ASKED:
                self._answer(answer, None, b"")
            else:
                self._succeed(answer, result)
        except InvariantError:
            raise
        except Exception as error:
            self._fail(answer, error)
        self._host.changed()
        return answer.call

    def _carry_out(self, request: Message, headers: HubMessage, login: Login) -> Any:
        """The result, or a generator that gives it."""
        properties = headers.properties
        operation = properties.get(OPERATION)
        attribute = properties.get(ATTRIBUTE)
        if operation is None and attribute is None:
            return _NOTHING_ASKED
        name = properties.get(RESOURCE)
        if name is None:
            raise errors.no_resource()
        resource_name = str(name)
        kind = self._kind_of(resource_name)
        if operation is None:
            wanted = kind.attribute(resource_name, str(attribute))
            self._require(login, resource_name, wanted.getter)
            return wanted.read(kind.find(login, resource_name[len(kind.prefix) :]), login)
        check_size(len(request.body))
        arguments = read_arguments(self._conversions.to_hub(request))
        method = kind.method(resource_name, str(operation), arguments)
        self._require(login, resource_name, str(operation))
        resource = kind.find(login, resource_name[len(kind.prefix) :])
        self._audit(login, resource_name, str(operation))
        return method(resource, login, *arguments)

    def _kind_of(self, name: str) -> ResourceKind:
        for kind in self.kinds if len(name) <= _LONGEST_NAME else ():
            if kind.takes(name):
                return kind
        known = [f"'{kind.prefix}<name>'" if kind.prefix.endswith(".") else f"'{kind.prefix}'" for kind in self.kinds]
        raise errors.unknown_resource(name, known)

    # -- answers ---------------------------------------------------------------------------------------------------

    def _succeed(self, answer: "_Answer", result: object) -> None:
        try:
            body = write_result(result)
        except Exception as error:
            self._fail(answer, error)
        else:
            self._answer(answer, True, body)

    def _fail(self, answer: "_Answer", error: Exception) -> None:
        if isinstance(error, InvariantError):
            self._host.broken(error)
        if not isinstance(error, BrokerError):
            self._logger.error("DMQ6329: a management message failed; please report this", exc_info=error)
            error = errors.broken(type(error).__name__)
        self._answer(answer, False, write_result(str(error)))

    def _answer(self, answer: "_Answer", succeeded: bool | None, body: bytes) -> None:
        """Ends a call with its answer once all is synced that was recorded so far."""
        answer.succeeded = succeeded
        answer.body = body
        self._host.changed()
        if self._gate.wait(self._broker.log.position, answer):
            self._end(answer)

    def _end(self, answer: "_Answer") -> None:
        reply_to = answer.reply_to
        reply: Message | None = None
        if reply_to is not None and reply_to.is_there(self._broker):
            answer.call.queue_name = reply_to.queue_name
            answer.call.routing = reply_to.routing
            reply = self._reply(answer, reply_to)
        answer.call.end(reply)

    def _reply(self, answer: "_Answer", reply_to: ReplyTo) -> Message:
        hub = HubMessage(answer.body, TEXT_BODY)
        hub.correlation_id = answer.correlation_id
        hub.reply_to = answer.reply_to_text
        if answer.succeeded is not None:
            hub.properties[SUCCEEDED] = answer.succeeded
        encoded = self._conversions.from_hub(answer.family, hub, reply_to.address)
        return Message(
            reply_to.address,
            encoded.protocol,
            encoded.head,
            encoded.body,
            body_kind=encoded.body_kind,
            timestamp_ms=self._broker.clock.wall_ms(),
        )

    def _require(self, login: Login, resource: str, method: str) -> None:
        """Raises PermissionDeniedError unless a user may call this method, where each is asked for (RBAC)."""
        if self._permission_prefix:
            permission = VIEW if self._looks.fullmatch(method) else EDIT
            self._access.require(login, f"{self._permission_prefix}{resource}.{method}", permission)

    def _audit(self, login: Login, resource: str, operation: str) -> None:
        if not self._looks.fullmatch(operation):
            user, named, called = (one_line(text, _AUDITED_CHARACTERS) for text in (login.user, resource, operation))
            self._audit_log.info(f"DMQ6186: user '{user}' by a management message: {called} '{named}'")


_NOTHING_ASKED: Final = object()
"""The result of a message that names neither operation nor attribute. Artemis answers it without a result, too."""


class _Answer(GateWaiter):
    """The answer to one message, and what it takes of that, which may be large."""

    def __init__(
        self,
        request: Message,
        headers: HubMessage,
        reply_to: ReplyTo | None,
        *,
        correlation_id: str | None,
        end: Callable[["_Answer"], None],
    ) -> None:
        self.call = ManagementCall()
        self.family = request.protocol.partition("/")[0]
        self.reply_to = reply_to
        self.reply_to_text = headers.reply_to
        self.correlation_id = correlation_id
        self.succeeded: bool | None = None
        self.body = b""
        self._end = end

    def on_open(self) -> None:
        self._end(self)
