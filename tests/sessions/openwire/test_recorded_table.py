"""How the real client acknowledges in each mode, and that our broker makes of it what Classic made of it.

Each row names what its recording shows: the client's acknowledgements in their order, as recorded, and what is left in
the queue or durable subscription when our broker has been told the same. `test_recorded` checks frame by frame that
each is answered as Classic answered it, and that nothing comes later. Prefetch is 4 unless the row says something else.
"""

# ACK-1, ACK-2, ACK-4, ACK-5

import pytest

from delosmq.wire.openwire.commands import UNMATCHED_ACK, BrokerInfo, ConnectionControl, MessageAck, RemoveInfo
from tests.sessions.openwire.recordings import NAMES, SEVERAL, Recording, Replay, said
from tests.sessions.openwire.support import queue, topic
from tests.sessions.openwire.test_recorded import DEAD, replayed

ONE_BY_ONE = "STANDARD 1-1, STANDARD 2-2, STANDARD 3-3, STANDARD 4-4, STANDARD 5-5, STANDARD 6-6"
CLIENT = "DELIVERED 1-2, DELIVERED 3-4, STANDARD 1-4, DELIVERED 5-6"
INDIVIDUAL = "DELIVERED 1-2, INDIVIDUAL 2, DELIVERED 3-4, INDIVIDUAL 5, DELIVERED 5-6"
SENT = "begin, commit, "
TRANSACTED = (
    "begin, DELIVERED 1-2 T, DELIVERED 3-4 T, STANDARD 1-4 T, commit, begin, DELIVERED 5-6 T, STANDARD 5-6 T, rollback"
)
INDIVIDUAL_IN_TRANSACTION = (
    "begin, INDIVIDUAL 1 T, INDIVIDUAL 2 T, INDIVIDUAL 3 T, INDIVIDUAL 4 T, commit, "
    "begin, INDIVIDUAL 5 T, INDIVIDUAL 6 T, rollback, begin, "
)

# name of the recording: (what the client says, what is left in the queue)
QUEUES = {
    # AUTO, optimizeAcknowledge off: receive() before it returns, a listener after onMessage.
    "auto": (ONE_BY_ONE, ""),
    "auto-listener": (ONE_BY_ONE, ""),
    # AUTO, optimizeAcknowledge on: at 0.65 x prefetch, and the rest at the close.
    "optimised": ("STANDARD 1-3, STANDARD 4-6", ""),
    # Prefetch 10: at 7 and 14, and the rest at the close.
    "optimised-range": ("STANDARD 1-7, STANDARD 8-14, STANDARD 15-16", "m17 m18 m19 m20"),
    # 300 ms (optimizeAcknowledgeTimeOut) had passed when the second was consumed.
    "optimised-time-out": ("STANDARD 1-2, STANDARD 3-3", "m4"),
    # A timer (optimizedAckScheduledAckInterval), after the third.
    "optimised-timer": ("STANDARD 1-3", "m4"),
    # DUPS_OK on a queue is as AUTO.
    "dups-ok": (ONE_BY_ONE, ""),
    # CLIENT: DELIVERED every 0.5 x prefetch, then one STANDARD range.
    "client": (CLIENT, "m5r1 m6r1"),
    # With a prefetch of 1, and of 0, DELIVERED for each message.
    "client-prefetch-1": ("DELIVERED 1-1, DELIVERED 2-2, DELIVERED 3-3, STANDARD 1-3", ""),
    "client-pull": (
        "pull 15000, DELIVERED 1-1, pull 15000, DELIVERED 2-2, pull 15000, DELIVERED 3-3, STANDARD 1-3",
        "",
    ),
    # INDIVIDUAL: the same DELIVERED; only the last message is named.
    "individual": (INDIVIDUAL, "m1r1 m3r1 m4r1 m6r1"),
    # SESSION_TRANSACTED: begun at the first consume, DELIVERED in the transaction, STANDARD before its end.
    "transacted": (SENT + TRANSACTED, "m5r1 m6r1"),
    # After a rollback the client delivers again by itself, and says so only if it isn't the first time.
    "rollback": (SENT + "begin, STANDARD 1-1 T, rollback, begin, STANDARD 1-1 T, commit", ""),
    "redelivered": (
        SENT + "begin, DELIVERED 1-2 T, STANDARD 1-2 T, rollback, begin, STANDARD 1-2 T, rollback, REDELIVERED 1-2, "
        "begin, STANDARD 1-2 T, rollback, REDELIVERED 1-2, begin, STANDARD 1-2 T, commit",
        "",
    ),
    # A rollback takes back the room that DELIVERED made, and none of the messages leaves: of twelve, six are sent.
    "rollback-room": (
        SENT + "begin, DELIVERED 1-2 T, STANDARD 1-2 T, rollback, begin, STANDARD 1-2 T, commit",
        "m3 m4 m5 m6 m7 m8 m9 m10 m11 m12",
    ),
    "recovered": ("DELIVERED 1-2, REDELIVERED 1-2, STANDARD 1-2", ""),
    # Too often: POISON for all of them, outside the transaction.
    "poison": (SENT + "begin, STANDARD 1-1 T, rollback, POISON 1-1", ""),
    "poison-range": (
        SENT + "begin, DELIVERED 1-2 T, STANDARD 1-2 T, rollback, POISON 1-2, begin, STANDARD 3-3 T, commit",
        "",
    ),
    "poison-listener": ("REDELIVERED 1-1, POISON 1-1, STANDARD 2-2", ""),
    "poison-on-arrival": ("b:POISON 1-1, begin, b:STANDARD 2-2 T, commit", ""),
    # transactedIndividualAck and nonBlockingRedelivery: INDIVIDUAL in the transaction for each message instead.
    "transacted-individual": (
        SENT + INDIVIDUAL_IN_TRANSACTION + "INDIVIDUAL 5 T, INDIVIDUAL 6 T, commit",
        "m7",
    ),
    "non-blocking-redelivery": (
        SENT + INDIVIDUAL_IN_TRANSACTION + "INDIVIDUAL 7 T, INDIVIDUAL 5 T, commit",
        # When it closes, the message seen last is acknowledged, so that none before it counts as delivered.
        "m6",
    ),
    # Expired at the client: EXPIRED for one, never in the transaction.
    "expired": ("EXPIRED 1-1, STANDARD 2-2", ""),
    "expired-transacted": ("begin, EXPIRED 1-1, DELIVERED 1-2 T, STANDARD 2-2 T, commit", ""),
    # XA: committed in one phase and in two, rolled back unprepared and prepared, and committed after that.
    "xa-acknowledged": (
        "begin, commit, begin, DELIVERED 1-2 T, STANDARD 1-2 T, commit, "
        "begin, DELIVERED 3-4 T, STANDARD 3-4 T, prepare, commit, begin, DELIVERED 5-6 T, STANDARD 5-6 T, rollback, "
        "begin, STANDARD 5-6 T, prepare, rollback, REDELIVERED 5-6, begin, STANDARD 5-6 T, commit",
        "m7",
    ),
    # Pulls: without end, and with nothing there when it comes; without wait; for 50 ms.
    "pull": ("pull 0, STANDARD 1-1, pull -1, pull 50", ""),
    "pull-wait": ("pull 0, STANDARD 1-1, pull -1, STANDARD 2-2", ""),
}
TOPICS = {
    "auto": (ONE_BY_ONE, "m7"),
    # DUPS_OK on a topic: a range every 0.5 x prefetch, never DELIVERED.
    "dups-ok": ("STANDARD 1-2, STANDARD 3-4, STANDARD 5-6", "m7"),
    "client": (CLIENT, "m5r1 m6r1 m7"),
    "individual": (INDIVIDUAL, "m1r1 m3r1 m4r1 m6r1 m7"),
    "transacted": (TRANSACTED, "m5r1 m6r1 m7"),
}


def address(name: str) -> str:
    return f"interop.{name.replace('-', '_')}_"


def queue_left(replay: Replay, name: str) -> str:
    return replay.bench.connect().consume(queue(name)).bodies()


@pytest.mark.parametrize("name", QUEUES)
def test_how_a_queue_s_messages_are_acknowledged(name: str) -> None:
    _, replay = replayed(name)
    says, left = QUEUES[name]
    assert ", ".join(said(Recording(name))) == says
    assert queue_left(replay, address(name)) == left


@pytest.mark.parametrize("mode", TOPICS)
def test_how_a_topic_s_messages_are_acknowledged(mode: str) -> None:
    _, replay = replayed(f"topic-{mode}")
    assert ", ".join(said(Recording(f"topic-{mode}"))) == TOPICS[mode][0]
    assert not [name for name in replay.bench.broker.queues if name != DEAD]


@pytest.mark.parametrize("mode", TOPICS)
def test_how_a_durable_subscription_s_messages_are_acknowledged(mode: str) -> None:
    _, replay = replayed(f"durable-{mode}")
    says, left = TOPICS[mode]
    assert ", ".join(said(Recording(f"durable-{mode}"))) == says
    again = replay.bench.connect(client_id="recorder")
    assert again.durable("s", topic(address(f"durable-{mode}"))).bodies() == left


def test_what_a_client_acknowledges_for_each_consumer_of_its_session() -> None:
    """The message's form: one range for each consumer; the consumer's: its own alone; the session's: all again."""
    _, replay = replayed("client-forms")
    assert said(Recording("client-forms")) == [
        *("a:STANDARD 1-2", "b:STANDARD 1-1"),
        "a:STANDARD 3-3",
        *("a:STANDARD 4-4", "b:STANDARD 2-2"),
    ]
    assert queue_left(replay, "interop.client_forms_.a") == ""
    assert queue_left(replay, "interop.client_forms_.b") == "m3r1 m4"


@pytest.mark.parametrize("name", ["poison", "poison-listener", "poison-on-arrival", "expired", "expired-transacted"])
def test_poison_and_what_expired_is_moved_once(name: str) -> None:  # ACK-4
    _, replay = replayed(name)
    assert queue_left(replay, DEAD) == "m1"


@pytest.mark.parametrize("name", ["expired", "expired-transacted"])
def test_what_expired_at_the_client_counts_as_expired(name: str) -> None:
    _, replay = replayed(name)
    assert replay.bench.queue(address(name)).counters.expired == 1


def test_a_poisoned_range_is_moved_whole() -> None:  # ACK-4
    _, replay = replayed("poison-range")
    assert queue_left(replay, DEAD) == "m1 m2"


@pytest.mark.parametrize("name", ["closed-consumer", "closed-session"])
def test_what_the_application_saw_before_it_closed_is_redelivered(name: str) -> None:  # ACK-4
    recording, _ = replayed(name)
    # What the second consumer is sent, two with a count of 1, is compared with Classic's in test_recorded.
    assert said(Recording(name)) == ["a:DELIVERED 1-2", *(f"b:STANDARD {place}-{place}" for place in (1, 2, 3, 4))]
    seen = [one.last_delivered_sequence_id for one in recording.commands() if isinstance(one, RemoveInfo)]
    assert seen[0] > 0


def test_a_browser_of_more_than_its_prefetch() -> None:  # ACK-2, EXCL-3
    """It acknowledges what it sees, which makes room for it and takes nothing."""
    _, replay = replayed("browse-pages")
    assert said(Recording("browse-pages")) == [
        "a:DELIVERED 1-1",
        *(f"b:STANDARD {place}-{place}" for place in range(1, 8)),
    ]
    assert queue_left(replay, address("browse-pages")) == "m1r1 m2 m3 m4 m5 m6 m7"


def test_optimised_acknowledgements_are_not_switched_off() -> None:  # ACK-2
    """A client does so when the broker says it is fault tolerant, by either command."""
    _, replay = replayed("optimised")
    told = [frame for _, frame in replay.received if isinstance(frame, BrokerInfo | ConnectionControl)]
    assert len(told) == 2
    assert not any(
        one.fault_tolerant_configuration if isinstance(one, BrokerInfo) else one.fault_tolerant for one in told
    )


def test_no_client_says_unmatched() -> None:
    """Classic's broker says so to itself; what it does to us stands in `test_acknowledgement`."""
    recordings = [Recording(name) for name in NAMES]
    acks = [one for recording in recordings for one in recording.commands() if isinstance(one, MessageAck)]
    assert {ack.ack_type for ack in acks} == set(range(7)) - {UNMATCHED_ACK}
    assert SEVERAL == ["exclusive-closed", "exclusive-lost"]
