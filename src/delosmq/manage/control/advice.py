"""What to do about a message, or a queue, that stands where it stands: one sentence each."""

from typing import Final

from delosmq.engine.dispatch import waiting_reason as standing
from delosmq.engine.inspect import DELIVERING, HELD, LEASE_READER, LEASED, PROMISED, SCHEDULED

EMPTY: Final = "empty"
DISABLED: Final = "disabled"
KEEPS_NOTHING: Final = "keeps nothing"

_SENTENCES: Final[dict[str, str]] = {
    standing.READY: "queue '{queue}' hands it out with the next turn; nothing is to be done",
    standing.PAUSED: "queue '{queue}' is paused; resume it with `delosmq queue resume {queue}`",
    standing.RETURNING: "a purge, a released lease group or a schedule is at work in queue '{queue}' and keeps the"
    " order; wait until that is done",
    standing.COMMITTING: "a large transaction before it is still being linked into queue '{queue}'; wait until that is"
    " done",
    standing.NO_CONSUMER: "queue '{queue}' has no consumer; start one, or look for why it is gone",
    standing.NOT_STARTED: "queue '{queue}' waits for more consumers (consumers-before-dispatch,"
    " delay-before-dispatch, or a rebalance of groups that waits for acknowledgements); start them, or lower the"
    " setting",
    standing.EXCLUSIVE_OWNER: "consumer {consumer} owns queue '{queue}' exclusively and is full; let it acknowledge, or"
    " close it so that another takes over",
    standing.OWNER_SELECTOR: "consumer {consumer} owns queue '{queue}' exclusively and its selector does not match;"
    " change the selector, or consume without exclusive",
    standing.SELECTOR: "no consumer of queue '{queue}' has a selector that matches it; start one that takes it",
    standing.FULL: "every consumer of queue '{queue}' that takes it holds as much as it may; let them acknowledge, give"
    " them more credit, or start another",
    standing.GROUP_OWNER: "consumer {consumer} owns its message group in queue '{queue}' and is full; let it"
    " acknowledge, or close it so that the group moves (what is behind it waits too: with dispatch-profile artemis the"
    " whole queue, with classic this owner's groups)",
    standing.GROUP_SELECTOR: "consumer {consumer} owns its message group in queue '{queue}' and its selector does not"
    " match; change the selector, or close the consumer so that the group moves",
    standing.BEHIND: "others are before it in queue '{queue}'; it follows when they are handed out, and `delosmq"
    " explain queue {queue}` says what the first of them waits for",
    LEASE_READER: "only lease groups take from queue '{queue}', and their readers have not asked for more; look at the"
    " readers",
    DELIVERING: "consumer {consumer} of queue '{queue}' has it and has not answered; if that takes too long, look at"
    " that client, or close its connection",
    LEASED: "lease group '{group}' holds it until its reader acknowledges; if the reader is gone for good, release the"
    " group",
    PROMISED: "transaction {transaction} acknowledges it when it is committed; commit it or roll it back, a prepared"
    " one with `delosmq transaction commit` or `rollback` if its coordinator is lost",
    HELD: "its attempts are used up or it has expired, and no queue takes what queue '{queue}' gives up; it is"
    " held until there is one; make a queue on the dead-letter-address or expiry-address of queue '{queue}', or set"
    " another address there",
    SCHEDULED: "it is not due yet in queue '{queue}'; it is handed out once its time has come",
    EMPTY: "queue '{queue}' is empty; nothing is to be done",
    KEEPS_NOTHING: "queue '{queue}' is empty, as its ring-size of 0 pushes out each message that comes; raise it with"
    " `delosmq queue update {queue} --set ring-size=...`",
    DISABLED: "queue '{queue}' is empty and disabled, so nothing enters it; enable it with `delosmq queue enable"
    " {queue}`",
}


def advice(rule: str, queue: str, *, consumer: int = 0, group: str = "", transaction: int = 0) -> str:
    """The sentence for a rule or standing."""
    who = str(consumer) if consumer else "that has left"
    return _SENTENCES[rule].format(queue=queue, consumer=who, group=group, transaction=transaction)
