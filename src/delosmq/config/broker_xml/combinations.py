"""Settings of a queue that make no sense together, on the queue or as defaults of its address."""

from delosmq.config.broker_xml.reader import Reader
from delosmq.config.findings import CONTRADICTION, WITHOUT_EFFECT_HERE
from delosmq.model.declared.queue import ResolvedSettings, contradiction


def check_combinations(reader: Reader, line: int, where: str, settings: ResolvedSettings) -> None:
    """Notes contradictions as mistakes, and what has no effect as a notice.

    Args:
        where: starts the sentence, such as "queue 'q'".
    """
    found = contradiction(settings)
    if found:
        reader.findings.add(CONTRADICTION, line, f"{where} {found}")
    if settings.exclusive and settings.group_rebalance:
        sentence = (
            f"{where} is exclusive, so one consumer has all groups and group-rebalance has no effect; remove one of "
            "the two"
        )
        reader.findings.notice(WITHOUT_EFFECT_HERE, line, sentence)
