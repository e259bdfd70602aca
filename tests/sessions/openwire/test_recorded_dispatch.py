"""Who gets what: recorded from the real client and the real Classic, and from us when we are told the same.

The bodies each consumer got are spelled out, "r1" behind one that was delivered before, so that a recording shows the
rule it is named for; that ours are the same frames is what `test_recorded` and the last test here check.
"""

# EXCL-1, EXCL-2, EXCL-3, EXCL-4

import pytest

from delosmq.wire.openwire.commands import MessageDispatch
from delosmq.wire.openwire.structures import Structure
from tests.sessions.openwire.recordings import SEVERAL, Recording, Replay, answered, dispatched, messages_to, told
from tests.sessions.openwire.support import text_of
from tests.sessions.openwire.test_recorded import as_meant, bench, replayed

FIVE = "m1 m2 m3 m4 m5"
# recording: what each consumer gets, in the order in which they were made
RULES = {
    # EXCL-1: one exclusive consumer gets everything; the next one inherits, what was seen comes first and marked; a
    # shared one, which was there first, gets what is sent when no exclusive one is left.
    "exclusive": ["m6 m7", FIVE, "m1r1 m2r1 m3 m4 m5"],
    # EXCL-1: what the owner's selector leaves waits for the owner's end.
    "exclusive-selector": ["m0 m2", "m1 m3"],
    # EXCL-2: a lower and an equal priority wait, a higher one takes over.
    "exclusive-takeover": ["m1 m2 m3 m4", "", "", "m5 m6"],
    # EXCL-2: 127 takes over from 127.
    "exclusive-127": ["m1 m2", "m3 m4"],
    # EXCL-2: a takeover leaves with the old owner what is in delivery to it, until it closes.
    "exclusive-in-delivery": [FIVE, "m6 m7 m8 m1r1 m2r1 m3r1 m4r1 m5r1"],
    # EXCL-4: allConsumersExclusiveByDefault.
    "all-exclusive": ["m1 m2 m3", "m4 m5"],
    # EXCL-4: groups a and b, each with one owner.
    "groups": ["a 0 a 0 a -1", "b 0 b 0 b 0"],
    # EXCL-4: consumersBeforeDispatchStarts 2, with a prefetch of 2: nothing for the first one alone.
    "two-consumers-first": ["m1 m3", "m2 m4"],
    # EXCL-4: strictOrderDispatch.
    "strict-order": ["m1 m2 m3r1", "m3 m4", "m1r1 m2 m3r1 m4"],
    # EXCL-4: useConsumerPriority off.
    "priorities-off": ["m1 m3", "m2 m4"],
    # EXCL-3: the higher priority fills its prefetch of 3, the rest spills.
    "priorities": ["m4 m5 m6", "m1 m2 m3"],
    # EXCL-3: equal ones take turns.
    "turns": ["m1 m4", "m2 m5", "m3 m6"],
}


def bodies(frames: list[Structure]) -> list[str]:
    """What each consumer that got something got, sorted by consumer."""
    consumers = {
        (one.consumer_id.session_id, one.consumer_id.value): one.consumer_id.key()
        for one in frames
        if isinstance(one, MessageDispatch) and one.consumer_id is not None and one.consumer_id.session_id > 0
    }
    return [
        " ".join(
            text_of(one) + (f"r{one.redelivery_counter}" if one.redelivery_counter else "")
            for one in messages_to(consumers[key], frames)
        )
        for key in sorted(consumers)
    ]


@pytest.mark.parametrize("name", RULES)
def test_who_gets_what(name: str) -> None:
    recording, replay = replayed(name)
    expected = [one for one in RULES[name] if one]
    assert bodies(recording.answers()) == expected
    assert bodies([frame for _, frame in replay.received]) == expected


def played(name: str) -> tuple[list[Recording], list[Replay]]:
    """Two connections, their commands in the order in which both gave them."""
    recordings = [Recording(f"several/{name}", connection) for connection in (1, 2)]
    place = bench()
    replays = [Replay(recording, place) for recording in recordings]
    moves = [(step.line, replay, step) for replay in replays for step in replay.recording.steps]
    lost = {replay.recording.gone_at: replay for replay in replays}
    for line, replay, step in sorted(moves, key=lambda move: move[0]):
        for gone_at in [at for at in lost if 0 < at < line]:
            gone = lost.pop(gone_at)
            if not gone.client.host.finished:
                gone.client.drop()
        replay.take_step(step)
    return recordings, replays


@pytest.mark.parametrize("name", SEVERAL)
def test_the_owner_s_connection_ends(name: str) -> None:  # EXCL-1
    """Two of five were seen. Closed in order, these two count as delivered; lost, all that were in delivery do."""
    recordings, replays = played(name)
    mark = "r1" if name == "exclusive-lost" else ""
    inherited = f"m1r1 m2r1 m3{mark} m4{mark} m5{mark} m6"
    for recording, replay, expected in zip(recordings, replays, (FIVE, inherited), strict=True):
        ours, theirs = [frame for _, frame in replay.received], as_meant(recording.answers())
        assert bodies(theirs) == [expected]
        assert bodies(ours) == [expected]
        assert dispatched(ours) == dispatched(theirs)
        assert answered(ours) == answered(theirs)
        assert told(ours) == told(theirs)
