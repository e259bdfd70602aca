"""Mistakes in the call of a command itself: they have an exit code of their own."""

from typing import Final

from delosmq.config.findings import WRONG_INSTANCE_VALUE
from delosmq.model.errors import BrokerError

FAILED: Final = 1
WRONG_CALL: Final = 2


class WrongCallError(BrokerError):
    """An option or argument that makes no sense, whatever the broker or the configuration says."""


def exit_code(error: BrokerError) -> int:
    """What a command that failed ends with."""
    return WRONG_CALL if isinstance(error, WrongCallError) or error.code == WRONG_INSTANCE_VALUE else FAILED
