"""Why a sink can't stage or publish what it asks for."""

from typing import Final

from delosmq.model.errors import BrokerError

PART_LOST: Final = "PART_LOST"
PART_BUSY: Final = "PART_BUSY"
NOT_YOURS: Final = "NOT_YOURS"
NO_ROOM_NOW: Final = "NO_ROOM_NOW"
FENCED: Final = "FENCED"


class StagingError(BrokerError):
    """A sink can't stage or publish what it asks for.

    Attributes:
        condition: PART_LOST, PART_BUSY, NOT_YOURS; FENCED: another attempt, or run of a task, goes on instead; or
            NO_ROOM_NOW: nothing was staged or published, the same call may be repeated.
    """

    def __init__(self, code: str, condition: str, message: str) -> None:
        super().__init__(code, message)
        self.condition = condition
