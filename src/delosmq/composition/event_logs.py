"""Engine events that the log of a broker tells: messages dropped or held, duplicate ids forgotten early."""

import logging

from delosmq.engine.api import DroppedListener, EngineEvents
from delosmq.model.phrases import counted


class DroppedLog(DroppedListener):
    """Tells of messages that could not go where they should."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def messages_held(self, queue: str, setting: str, address: str) -> None:
        self._logger.warning(
            f"DMQ6145: messages of queue '{queue}' are held in it: its {setting} is '{address}', which has no queue "
            f"that takes them, and its settings make none; create one with `delosmq queue create {address}`, and "
            "they go there, or correct the address-setting. This is said once of each queue"
        )

    def messages_refused(self, queue: str) -> None:
        self._logger.warning(
            f"DMQ2657: what is sent to queue '{queue}' is gone, as it is disabled and no other queue takes it, and "
            f"its senders are told that it was sent; enable it with `delosmq queue enable {queue}`, pause it instead "
            "to keep what comes, or set send-to-dla-on-no-route. This is said once until it is enabled"
        )

    def queue_moved_aside(self, queue: str, address: str, declared_on: str, renamed: str, *, messages: int) -> None:
        self._logger.warning(
            f"DMQ2659: broker.xml puts queue '{queue}' on address '{declared_on}', and the journal held one of that "
            f"name on address '{address}', which no configuration names: that one is called '{renamed}' now, keeps "
            f"its {counted(messages, 'message')} and takes no more; read them there, then delete it with `delosmq "
            f"queue delete {renamed}`"
        )


class IdCacheLog(EngineEvents):
    """Tells that duplicate ids are forgotten early."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def duplicate_ids_full(self, most_bytes: int) -> None:
        self._logger.warning(
            f"DMQ6185: the duplicate ids of all addresses take {most_bytes} bytes, as much as they may (an eighth of "
            "global-max-size); for each new one an old one of the largest cache is forgotten from now on, and a "
            "message sent again with one of those is taken once more: lower id-cache-size, use shorter ids, or "
            "raise global-max-size. `delosmq address stat` counts them. This is said once"
        )
