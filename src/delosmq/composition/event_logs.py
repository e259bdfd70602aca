"""Engine events that the log of a broker tells: messages dropped or held, duplicate ids forgotten early."""

import logging
from typing import Final

from delosmq.engine.api import DroppedListener, EngineEvents
from delosmq.model.phrases import counted

_MS_PER_S: Final = 1000


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


class LeaseGroupLog(EngineEvents):
    """Tells of lease groups that end because their readers do not call."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def lease_group_expiring(self, group: str, in_ms: int) -> None:
        self._logger.warning(
            f"DMQ6192: lease group '{group}' is not called by its reader and ends in {in_ms // _MS_PER_S} s: what it "
            "leased goes back, and its checkpoint can't be resumed then. Start its query, or raise lease-retention; "
            f"`delosmq lease release {group}` ends it now"
        )

    def lease_rows_lost(self, group: str, lease: int, lost: int, of: int) -> None:
        self._logger.error(
            f"DMQ6193: lease {lease} of group '{group}' has lost {lost} of {counted(of, 'message')}: the journal has "
            "them no longer. A start with --accept-loss may do that, and its reader gets what is left; if there was "
            "none, please report this"
        )

    def lease_group_expired(self, group: str) -> None:
        self._logger.warning(
            f"DMQ6007: lease group '{group}' was not heard of for as long as lease-retention says and is released; its "
            "messages are back in the queue, or gone with the subscription that was made for it"
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


def engine_logs(logger: logging.Logger) -> list[EngineEvents]:
    """Listeners that only tell in the log."""
    return [IdCacheLog(logger), LeaseGroupLog(logger)]
