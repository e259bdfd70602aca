"""Settings of a queue that make no sense together, on the queue or as defaults of its address."""

from typing import NamedTuple

from delosmq.config.broker_xml.reader import Reader
from delosmq.config.findings import CONTRADICTION, WITHOUT_EFFECT_HERE
from delosmq.model.settings import UNLIMITED


class Traits(NamedTuple):
    """What is set where a queue or an address-setting says something; None where nothing holds."""

    non_destructive: bool | None
    purge_on_no_consumers: bool | None
    exclusive: bool | None
    group_rebalance: bool | None
    max_consumers: int | None
    consumers_before_dispatch: int | None
    delay_before_dispatch: int | None


def check_traits(reader: Reader, line: int, where: str, traits: Traits) -> None:
    """Notes contradictions as mistakes, and what has no effect as a notice.

    Args:
        where: starts the sentence, such as "queue 'q'".
    """
    if traits.non_destructive and traits.purge_on_no_consumers:
        sentence = (
            f"{where} keeps what was consumed (non-destructive) and is emptied when nobody consumes "
            "(purge-on-no-consumers); set one of the two to false"
        )
        reader.findings.add(CONTRADICTION, line, sentence)
    waits_for = traits.consumers_before_dispatch or 0
    most = UNLIMITED if traits.max_consumers is None else traits.max_consumers
    if most != UNLIMITED and waits_for > most and traits.delay_before_dispatch in (None, UNLIMITED):
        sentence = (
            f"{where} waits for {waits_for} consumers (consumers-before-dispatch) and lets in {most} (max-consumers), "
            "so nothing would ever be dispatched; lower the one, raise the other, or set delay-before-dispatch"
        )
        reader.findings.add(CONTRADICTION, line, sentence)
    if traits.exclusive and traits.group_rebalance:
        sentence = (
            f"{where} is exclusive, so one consumer has all groups and group-rebalance has no effect; remove one of "
            "the two"
        )
        reader.notice(WITHOUT_EFFECT_HERE, line, sentence)
