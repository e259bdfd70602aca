"""A start with many messages."""

# HA-2

from delosmq.model.settings import QueueSettings
from tests.engine.support import Bench, RecordingStore

MESSAGES = 20_000
MOST_WITHOUT_A_TURN = 5_000


class StoreWithThreads(RecordingStore):
    """Counts how often its threads could run."""

    def __init__(self) -> None:
        super().__init__()
        self.turns = 0

    def give_turn(self) -> None:
        self.turns += 1


def test_threads_of_the_store_have_their_turn_while_a_queue_is_filled() -> None:
    first = Bench(queues=(QueueSettings("q", "q"),))
    first.send("q", "x " * MESSAGES)
    store = StoreWithThreads()
    store.batches = first.store.batches
    again = Bench(queues=(QueueSettings("q", "q"),), store=store)
    assert again.broker.queues["q"].message_count == MESSAGES
    assert store.turns >= MESSAGES // MOST_WITHOUT_A_TURN
