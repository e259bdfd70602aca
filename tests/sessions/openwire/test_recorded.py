"""What the real client said to the real Classic, said to us: we answer as Classic did.

The recordings are those of `tests/wire/openwire/golden`, made by `python -m interop.openwire.record`. All are replayed
frame by frame here; `test_recorded_table` says what each shows of the ways to acknowledge, and what is left afterwards;
`test_recorded_dispatch` does so for exclusive consumers, groups and priorities.
"""

# ACK-1

import pytest

from delosmq.model.settings import DispatchProfile, QueueSettings
from delosmq.wire.openwire.commands import MessageCommand, MessageDispatch
from delosmq.wire.openwire.structures import Structure
from tests.sessions.openwire.recordings import (
    NAMES,
    Recording,
    Replay,
    answered,
    dispatched,
    moments,
    recorded_moments,
    told,
)
from tests.sessions.openwire.support import OpenWireBench, queue

DEAD = "ActiveMQ.DLQ"


# What interop/openwire/broker.xml says, and activemq.xml said to Classic when this was recorded.
SETTINGS: dict[str, dict[str, object]] = {
    "interop.#": {
        "dispatch_profile": DispatchProfile.CLASSIC,
        "prioritized_messages": False,
        "dead_letter_address": DEAD,
        "expiry_address": DEAD,
        "max_delivery_attempts": -1,
        "auto_delete_queues": False,
    },
    "interop.*.exclusive": {"all_consumers_exclusive_by_default": True},
    "interop.*.two": {"default_consumers_before_dispatch": 2, "time_before_dispatch_starts": 60_000},
    "interop.*.strict": {"strict_order_dispatch": True},
    "interop.*.equal": {"use_consumer_priority": False},
}


def bench() -> OpenWireBench:
    return OpenWireBench(queues=(QueueSettings(DEAD, DEAD),), address_settings=SETTINGS)


def replayed(name: str) -> tuple[Recording, Replay]:
    recording = Recording(name)
    replay = Replay(recording, bench())
    replay.run()
    return recording, replay


def as_meant(frames: list[Structure]) -> list[Structure]:
    """What Classic said, without what is meant to differ.

    Classic repeats to the receiver in which transaction a message was sent; to us that is the sender's own affair. A
    receiver could see it as JMSXProducerTXID, and in nothing else. And it counts deliveries in the dispatch and in the
    message, which we relay as it came: clients take the count of the dispatch.
    """
    for one in frames:
        if isinstance(one, MessageDispatch) and isinstance(one.message, MessageCommand):
            one.message.transaction_id = None
            one.message.redelivery_counter = 0
    return frames


def left(replay: Replay, name: str) -> str:
    """What another consumer finds afterwards."""
    return replay.bench.connect().consume(queue(name)).bodies()


@pytest.mark.parametrize("name", NAMES)
def test_we_answer_as_classic_did(name: str) -> None:
    recording, replay = replayed(name)
    ours = [frame for _, frame in replay.received]
    theirs = as_meant(recording.answers())
    assert answered(ours) == answered(theirs)
    assert dispatched(ours) == dispatched(theirs)
    assert told(ours) == told(theirs)
    assert replay.client.host.reasons == [None]
    assert replay.client.host.reports == []


@pytest.mark.parametrize("name", NAMES)
def test_nothing_comes_later_than_from_classic(name: str) -> None:
    """Its threads may let a dispatch come later than what made room for it; ours comes at once."""
    recording, replay = replayed(name)
    theirs = recorded_moments(recording)
    for consumer, ours in moments(replay.received).items():
        assert all(a <= b for a, b in zip(ours, theirs[consumer], strict=True)), consumer


# Prefetch 4: after which commands of the client the fifth and the sixth message come, and what is left at the end.
ROOM = {
    # One STANDARD each, 17 to 22: each makes room for one.
    "auto": (17, 18, ""),
    "auto-tight": (17, 18, ""),
    "dups-ok": (17, 18, ""),
    # DELIVERED for two (17) makes room for two, long before STANDARD for four (19).
    "client": (17, 17, "m5r1 m6r1"),
    # DELIVERED for two (17), INDIVIDUAL for the second (18); later INDIVIDUAL for the fifth (20).
    "individual": (17, 17, "m1r1 m3r1 m4r1 m6r1"),
    # STANDARD for three (17), at 0.65 x prefetch, and for the last three (18).
    "optimised": (17, 17, ""),
    # DELIVERED in the transaction (20); the last two are acknowledged in one that is rolled back.
    "transacted": (20, 20, "m5r1 m6r1"),
    "transacted-tight": (20, 20, "m5r1 m6r1"),
}


@pytest.mark.parametrize("name", ROOM)
def test_what_makes_room_and_what_is_left(name: str) -> None:  # ACK-2, ACK-5
    _, replay = replayed(name)
    fifth, sixth, rest = ROOM[name]
    (moments_of_consumer,) = moments(replay.received).values()
    assert moments_of_consumer[4:] == [fifth, sixth]
    assert left(replay, f"interop.{name.replace('-', '_')}_") == rest


def test_a_rolled_back_message_stays_with_its_consumer_until_committed() -> None:  # ACK-5
    _, replay = replayed("rollback")
    # 8 is the ConsumerInfo; the client delivers again by itself.
    assert list(moments(replay.received).values()) == [[8]]
    assert left(replay, "interop.rollback_") == ""


def test_poison_after_a_rollback_makes_a_dead_letter() -> None:  # ACK-4
    _, replay = replayed("poison")
    assert left(replay, "interop.poison_") == ""
    assert left(replay, DEAD) == "m1"


def test_pulls_are_answered_one_by_one() -> None:  # ACK-2
    _, replay = replayed("pull")
    # The message after the pull without end, an empty dispatch after the one without wait and the one of 50 ms.
    assert list(moments(replay.received).values()) == [[7, 9, 10]]
    assert left(replay, "interop.pull_") == ""


def test_a_browser_takes_nothing() -> None:  # EXCL-3
    _, replay = replayed("browse")
    assert left(replay, "interop.browse_") == "m1"


def test_xa_messages_are_there_after_both_kinds_of_commit() -> None:  # ACK-5
    _, replay = replayed("xa")
    assert left(replay, "interop.xa_") == "m1 m1"
