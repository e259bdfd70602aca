"""What a broker promises, looked for in what its clients saw. Each check gives sentences about what is broken."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from tests.chaos.events_seen import (
    ABANDONED,
    CONFIRMED,
    DELIVERED,
    FOUND,
    LOOKED,
    REFUSAL_CONFIRMED,
    REFUSED,
    SENT,
    SETTLED,
    TAKEN,
    Happening,
)

BATCH = 10_000
"""Message k of batch n has the number n * BATCH + k."""
SHOWN = 5
ARRIVALS = (DELIVERED, FOUND)


def numbers(happened: Iterable[Happening], queue: str, *whats: str) -> list[int]:
    return [each.number for each in happened if each.queue == queue and each.what in whats]


def nothing_lost(happened: list[Happening], load: str, queue: str) -> list[str]:
    """What was confirmed came, once all has come that will."""
    lost = set(numbers(happened, load, CONFIRMED)) - set(numbers(happened, queue, *ARRIVALS))
    return [f"{queue}: {len(lost)} confirmed messages are lost: {sorted(lost)[:SHOWN]}"] if lost else []


def nothing_invented(happened: list[Happening], load: str, queue: str) -> list[str]:
    sent: set[int] = set()
    wrong = []
    for each in happened:
        if each.what == SENT and each.queue == load:
            sent.add(each.number)
        elif each.what in ARRIVALS and each.queue == queue and each.number not in sent:
            wrong.append(f"{queue}: {each} was never sent")
    return wrong[:SHOWN]


def nothing_back(happened: list[Happening], queue: str) -> list[str]:
    """What was acknowledged with a receipt never comes again."""
    settled: set[int] = set()
    wrong = []
    for each in happened:
        if each.queue != queue:
            continue
        if each.what == SETTLED:
            settled.add(each.number)
        elif each.what in ARRIVALS and each.number in settled:
            wrong.append(f"{queue}: {each} came back after its acknowledgement")
    return wrong[:SHOWN]


def one_copy(happened: list[Happening], queue: str) -> list[str]:
    """However often a message comes, it is always the same one."""
    ids: dict[int, str] = {}
    wrong = []
    for each in happened:
        if each.queue == queue and each.what in ARRIVALS:
            first = ids.setdefault(each.number, each.message_id)
            if first != each.message_id:
                wrong.append(f"{queue}: number {each.number} is there twice, as {first} and as {each.message_id}")
    return wrong[:SHOWN]


def never_early(happened: list[Happening], load: str, queue: str) -> list[str]:
    due = {each.number: each.at_ms for each in happened if each.what == SENT and each.queue == load}
    return [
        f"{queue}: {each} came {due[each.number] - each.at_ms} ms early"
        for each in happened
        if each.what == DELIVERED and each.queue == queue and each.at_ms < due.get(each.number, 0)
    ][:SHOWN]


def groups_hold(happened: list[Happening], queue: str) -> list[str]:
    """Within a group messages are first seen in order; within a life they have one consumer and come in order."""
    newest: dict[str, int] = defaultdict(int)
    seen: set[int] = set()
    now: dict[tuple[int, str], Happening] = {}
    wrong = []
    for each in happened:
        if each.queue != queue or each.what != DELIVERED:
            continue
        before = now.get((each.life, each.group))
        now[each.life, each.group] = each
        if before is not None and before.client != each.client:
            wrong.append(f"{queue}: {each} after {before}: the group has two consumers")
        if before is not None and before.number >= each.number:
            wrong.append(f"{queue}: {each} after {before}: out of order")
        if each.number not in seen and each.number < newest[each.group]:
            wrong.append(f"{queue}: {each} is first seen after {newest[each.group]} of its group")
        seen.add(each.number)
        newest[each.group] = max(newest[each.group], each.number)
    return wrong[:SHOWN]


def batches_whole(happened: list[Happening], load: str, queue: str) -> list[str]:
    """A batch comes as a whole and in order, unless the broker dies meanwhile; an abandoned one never."""
    abandoned = set(numbers(happened, load, ABANDONED))
    before: Happening | None = None
    wrong = []
    for each in happened:
        if each.queue != queue or each.what != DELIVERED:
            continue
        if before is None or before.life != each.life or before.number % BATCH == before.size - 1:
            if each.number % BATCH != 0:
                wrong.append(f"{queue}: {each}: the beginning of its batch is missing")
        elif each.number != before.number + 1:
            wrong.append(f"{queue}: {each} after {before}: the rest of that batch is missing")
        if each.number // BATCH in abandoned:
            wrong.append(f"{queue}: {each} was sent in a transaction that was aborted")
        before = each
    return wrong[:SHOWN]


def same_outcomes(happened: list[Happening], one: str, other: str) -> list[str]:
    """Every look finds the same in both queues, and nothing twice."""
    found: dict[tuple[int, str], list[int]] = defaultdict(list)
    for each in happened:
        if each.what == FOUND and each.queue in (one, other):
            found[each.life, each.queue].append(each.number)
    wrong = []
    for life in sorted({life for life, _ in found}):
        odd = set(found[life, one]) ^ set(found[life, other])
        if odd:
            wrong.append(f"life {life}: only in one of {one} and {other}: {sorted(odd)[:SHOWN]}")
    return wrong[:SHOWN] + once(happened, one) + once(happened, other)


def same_arrivals(happened: list[Happening], one: str, other: str) -> list[str]:
    """Two queues of an address got the same, once all has come that will."""
    odd = set(numbers(happened, one, *ARRIVALS)) ^ set(numbers(happened, other, *ARRIVALS))
    return [f"only in one of {one} and {other}: {sorted(odd)[:SHOWN]}"] if odd else []


def once(happened: list[Happening], queue: str) -> list[str]:
    """No number is found a second time in a queue that each look empties."""
    twice = [number for number, count in Counter(numbers(happened, queue, FOUND)).items() if count > 1]
    return [f"{queue}: two outcomes of {sorted(twice)[:SHOWN]}"] if twice else []


def ring_kept(happened: list[Happening], queue: str, size: int) -> list[str]:
    """Each look finds the newest ``size`` of what was accepted since all was taken.

    What was sent without a receipt may have been accepted, but only together with all before it.
    """
    accepted: list[int] = []
    unsure: list[int] = []
    confirmed: set[int] = set()
    found: list[int] = []
    wrong = []
    for each in happened:
        if each.queue != queue:
            continue
        if each.what == SENT:
            unsure.append(each.number)
        elif each.what == CONFIRMED:
            confirmed.add(each.number)
        elif each.what == FOUND:
            found.append(each.number)
        elif each.what == LOOKED:
            if found and found[-1] in unsure:
                end = unsure.index(found[-1]) + 1
                accepted, unsure = accepted + unsure[:end], unsure[end:]
            lost = confirmed.intersection(unsure)
            if lost:
                wrong.append(f"life {each.life}, {queue}: confirmed, newer than all that is there: {sorted(lost)}")
            if found != accepted[-size:]:
                wrong.append(f"life {each.life}, {queue}: holds {found}, not {accepted[-size:]}")
            found, unsure = [], []
        elif each.what == TAKEN:
            accepted, unsure = [], []
    return wrong[:SHOWN]


def dead_letters(happened: list[Happening], load: str, dead: str, *, attempts: int) -> list[str]:
    """Nobody is a dead letter before ``attempts`` refusals or after more, and who is one comes no more.

    A refusal that a kill overtook may not have arrived: the last of a life, when nothing shows that it did.
    """
    refusals: Counter[int] = Counter()
    # By number: the life in which it was refused last; how many of that life's refusals have no receipt; how many of
    # former lives may be lost.
    refused_in: dict[int, int] = {}
    unsure: Counter[int] = Counter()
    lost: Counter[int] = Counter()
    buried: set[int] = set()
    wrong = []
    for each in happened:
        if each.queue == load and each.what == REFUSED:
            refusals[each.number] += 1
            refused_in[each.number] = each.life
            unsure[each.number] += 1
        elif each.queue == load and each.what == REFUSAL_CONFIRMED:
            unsure[each.number] -= 1
        elif each.queue == load and each.what == DELIVERED and each.number in buried:
            wrong.append(f"{load}: {each} came back though it is a dead letter")
        elif each.queue == load and each.what == DELIVERED:
            if refused_in.get(each.number) != each.life:
                lost[each.number] += unsure.pop(each.number, 0) > 0
            if refusals[each.number] - lost[each.number] >= attempts:
                wrong.append(f"{load}: {each} came though it had been refused {attempts} times")
        elif each.queue == dead and each.what in ARRIVALS:
            buried.add(each.number)
            if refusals[each.number] < attempts:
                wrong.append(f"{dead}: {each} was refused {refusals[each.number]} times only")
    return wrong[:SHOWN]
