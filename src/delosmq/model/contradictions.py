"""Settings of a queue that contradict each other, in broker.xml and at run time alike."""

from typing import Final

from delosmq.model.settings import UNLIMITED, QueueSettings
from delosmq.model.wording import counted

TRAITS: Final = (
    "non_destructive",
    "purge_on_no_consumers",
    "max_consumers",
    "consumers_before_dispatch",
    "delay_before_dispatch",
)
"""Fields of `QueueSettings` that may contradict each other."""


def contradiction(
    max_consumers: int | None,
    consumers_before_dispatch: int | None,
    delay_before_dispatch: int | None,
    *,
    non_destructive: bool | None,
    purge_on_no_consumers: bool | None,
) -> str:
    """What a queue with these settings would do against its own sense, and the remedy, without naming the queue; ""
    when nothing contradicts. None: nothing is said of it."""
    if non_destructive and purge_on_no_consumers:
        return (
            "keeps what was consumed (non-destructive) and is emptied when nobody consumes (purge-on-no-consumers); set"
            " one of the two to false"
        )
    waits_for = 0 if consumers_before_dispatch is None else consumers_before_dispatch
    most = UNLIMITED if max_consumers is None else max_consumers
    if UNLIMITED < most < waits_for and delay_before_dispatch in (None, UNLIMITED):
        return (
            f"waits for {counted(waits_for, 'consumer')} (consumers-before-dispatch) and lets in {most}"
            " (max-consumers), so nothing would ever be dispatched; lower the one, raise the other, or set"
            " delay-before-dispatch"
        )
    return ""


def names_trait(settings: QueueSettings) -> bool:
    """Whether a queue says something itself about one of the `TRAITS`."""
    return any(getattr(settings, name) is not None for name in TRAITS)
