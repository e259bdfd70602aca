"""Settings of a queue that make no sense together, on the queue or as defaults of its address."""

from typing import NamedTuple

from delosmq.config.broker_xml.reader import Reader
from delosmq.config.findings import CONTRADICTION, WITHOUT_EFFECT_HERE
from delosmq.model.settings import contradiction


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
    found = contradiction(
        traits.max_consumers,
        traits.consumers_before_dispatch,
        traits.delay_before_dispatch,
        non_destructive=traits.non_destructive,
        purge_on_no_consumers=traits.purge_on_no_consumers,
    )
    if found:
        reader.findings.add(CONTRADICTION, line, f"{where} {found}")
    if traits.exclusive and traits.group_rebalance:
        sentence = (
            f"{where} is exclusive, so one consumer has all groups and group-rebalance has no effect; remove one of "
            "the two"
        )
        reader.findings.notice(WITHOUT_EFFECT_HERE, line, sentence)
