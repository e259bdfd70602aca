"""Of consumers that have left and of messages that are gone nothing stays, however many there were."""

# BROKER-4

from collections.abc import Callable

import pytest

from delosmq.engine.base.slots import Cursor, PendingObserver, Slot
from delosmq.engine.dispatch.message_groups import MessageGroup, WaitingMessage
from delosmq.engine.dispatch.rotation import SPARE
from delosmq.engine.dispatch.rules import DispatchRules
from delosmq.engine.dispatch.selector_group import SelectorGroup
from delosmq.engine.queues.consumer import Consumer, RotationEntry
from delosmq.model.message import Message
from delosmq.model.settings import DispatchProfile
from tests.engine.dispatch_support import Field
from tests.engine.test_leases import Reader
from tests.memory import living

pytestmark = pytest.mark.slow

RECEIVES = 30
KINDS = (Consumer, Slot, Message, Cursor, PendingObserver, WaitingMessage, MessageGroup, SelectorGroup, DispatchRules)


def plain(field: Field, number: int) -> None:
    field.peer().close()


def groups(field: Field, number: int) -> None:
    owner, other = field.peer(1), field.peer(selector="JMSXUserID IS NULL")
    field.put("a b c", group=f"g{number}")
    other.close()
    field.run()
    owner.close()


def selectors(field: Field, number: int) -> None:
    peers = [field.peer(1, selector=f"n = {number} OR JMSXUserID = '{user}'") for user in ("red", "blue")]
    for user in ("blue", "red", "green"):
        field.put("a b", user=user)
    for peer in peers:
        peer.close()


def browsers(field: Field, number: int) -> None:
    field.put("a b c")
    peer = field.peer(1, browser=True)
    field.run()
    peer.close()


def owners(field: Field, number: int) -> None:
    peers = [field.peer(1, exclusive=True, priority=priority) for priority in (1, 5)]
    field.put("a b", group="g")
    for peer in peers:
        peer.close()


def leases(field: Field, number: int) -> None:
    field.put("a b c", group="g")
    owner = field.peer(1)
    field.run()
    reader = Reader(field, run=f"run {number}")
    reader.take(0)
    owner.close()
    reader.take(0)
    field.broker.lease_groups.release("g")


WAYS: dict[str, Callable[[Field, int], None]] = {
    "plain": plain,
    "groups": groups,
    "selectors": selectors,
    "browsers": browsers,
    "owners": owners,
    "leases": leases,
}


def counted() -> dict[str, int]:
    return {kind.__name__: len(living(kind)) for kind in KINDS}


@pytest.mark.parametrize("profile", DispatchProfile)
@pytest.mark.parametrize("stays", ["nobody", "a consumer", "a browser"])
@pytest.mark.parametrize("way", WAYS)
def test_of_what_came_and_went_nothing_is_kept(way: str, stays: str, profile: DispatchProfile) -> None:
    field = Field(dispatch_profile=profile)
    if stays == "a consumer":
        field.peer(selector="JMSXUserID = 'nobody'")
    elif stays == "a browser":
        field.peer(browser=True)

    def come_and_go(number: int) -> None:
        WAYS[way](field, number)
        field.run()
        field.broker.resources.purge_queue("q")
        field.run()

    come_and_go(0)
    before, entries = counted(), len(living(RotationEntry))
    for number in range(1, RECEIVES):
        come_and_go(number)
    after = counted()
    before["Message"] += 1  # the one that a selector looked at last
    assert {kind: after[kind] - before[kind] for kind in after if after[kind] > before[kind]} == {}
    assert field.counts("q") == (0, 0, 0)
    assert len(living(RotationEntry)) <= entries + 2 * (SPARE + 4)
