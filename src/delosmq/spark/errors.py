"""Errors between Spark and a broker, one class for each condition that a program may want to tell apart."""

from delosmq.model.errors import BrokerError, ConfigurationError, NotFoundError, PermissionDeniedError


class OptionError(ConfigurationError):
    """An option of the data source is unknown, missing, wrong or not supported; nothing was read."""


class BrokerUnreachableError(BrokerError):
    """No server of the list answered for as long as ``retryTimeoutMs`` allows; leases are untouched."""


class LoginRefusedError(PermissionDeniedError):
    """User or password is wrong."""


class ForbiddenError(PermissionDeniedError):
    """The login is right, but the user lacks the permission."""


class QueueMissingError(NotFoundError):
    """The queue or topic to read does not exist."""


class LeaseLostError(BrokerError):
    """The group or the lease is gone: released, ended for want of contact, acknowledged or its queue deleted."""


class ForeignIncarnationError(BrokerError):
    """The checkpoint belongs to another life of the group: deleted, copied, or a second query uses the same group."""


class GroupBusyError(BrokerError):
    """Another reader of the group was heard of a moment ago."""


class FencedError(BrokerError):
    """A newer reader of the group has taken over; this one must stop."""


class AnswerError(BrokerError):
    """The broker answered something that this version does not understand, or refused for an unnamed reason."""


class UnknownFieldError(AnswerError):
    """The broker does not know a field of a call, as it is older than this client; nothing was done."""

    def __init__(self, code: str, message: str, field: str) -> None:
        super().__init__(code, message)
        self.field = field


class VersionError(BrokerError):
    """Broker and client differ in what they know of the lease calls; nothing was read."""


class BodyTooLargeError(BrokerError):
    """A message has a longer body than ``maxBodyBytes`` allows."""


class SchemaMismatchError(AnswerError):
    """Rows arrived in other columns or types than Spark was told."""


class NoRoomError(BrokerError):
    """There is no room for rows at the broker now: nothing was staged, the same call may be repeated."""


class PartBusyError(BrokerError):
    """The part is being staged by another call."""


class PartTooLargeError(AnswerError):
    """Rows are larger than the broker takes at once; nothing of them was staged."""


class RowsDroppedError(BrokerError):
    """An address has no room for rows, and drops what is too much; nothing of their batch was sent."""


class CheckpointBehindError(BrokerError):
    """The query has published later batches than its checkpoint knows of; nothing of this one was sent."""


class PartLostError(BrokerError):
    """A part of the batch is not staged any more; nothing of the batch was published."""


class JavaMissingError(ConfigurationError):
    """There is no Java that Spark can run on."""


class SparkMissingError(ConfigurationError):
    """Spark is not installed, or no session can be started."""


class PipelineError(BrokerError):
    """A pipeline stopped; what it did stays, and the next run goes on from there."""


class ArchiveError(BrokerError):
    """The archive directory can't be used as asked; nothing in it has changed."""


class AuditError(BrokerError):
    """The audit's directory can't be used as asked, or the audit was stopped; tables of it may be written already."""
