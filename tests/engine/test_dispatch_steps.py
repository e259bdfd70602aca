"""What dispatch promises of its cost: steps for a message grow neither with the backlog nor with the consumers."""

import sys
from pathlib import Path
from types import FrameType

import pytest

from delosmq.engine import broker
from tests.engine.dispatch_support import CLASSIC, Field

pytestmark = pytest.mark.slow

ENGINE = str(Path(broker.__file__).parent)
COMPILED = not broker.__file__.endswith(".py")
"""Then no lines are seen; the checks on the .py files speak for both."""
MESSAGES = 60
RED = "JMSXUserID = 'red'"


class Steps:
    """Counts the lines of the engine that are run."""

    def __init__(self) -> None:
        self.count = 0

    def _line(self, frame: FrameType, event: str, _: object) -> object:
        if event == "line":
            self.count += 1
        return self._line

    def _call(self, frame: FrameType, event: str, _: object) -> object:
        return self._line if frame.f_code.co_filename.startswith(ENGINE) else None

    def __enter__(self) -> "Steps":
        self._before = sys.gettrace()
        sys.settrace(self._call)  # type: ignore[arg-type]
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)


def steps(
    backlog: int, consumers: int, *, selector: str = "", groups: int = 0, exclusive: bool = False, classic: bool = False
) -> float:
    """Of one acknowledgement and the dispatch that follows it, on average."""
    profile: dict[str, object] = {"dispatch_profile": CLASSIC} if classic else {}
    field = Field(**profile)
    for k in range(groups or 1):
        bodies = " ".join(["x"] * (backlog // (groups or 1)))
        group = f"g{k}" if groups else ""
        field.put(bodies, durable=False, run=False, user="red", group=group)
    peers = [field.peer(1, selector=selector, exclusive=exclusive) for _ in range(consumers)]
    field.run()
    busy = [peer for peer in peers if peer.port.slots]
    done = 0
    with Steps() as counted:
        while done < MESSAGES:
            peer = busy[done % len(busy)]
            field.broker.consumers.acknowledge(peer.consumer, peer.port.slots.pop().sequence)
            field.broker.tick()
            done += 1
    return counted.count / MESSAGES


# EXCL-3
def test_a_plain_queue():
    few = steps(1_000, 1)
    assert few > 50 or COMPILED
    assert steps(20_000, 1) == few
    assert steps(20_000, 1_000) == few


# EXCL-3
def test_equal_selectors():
    few = steps(1_000, 1, selector=RED)
    assert few > 50 or COMPILED
    assert steps(20_000, 1, selector=RED) == few
    assert steps(20_000, 1_000, selector=RED) == few


# EXCL-1
def test_an_exclusive_owner():
    # Of few consumers, what is left behind by those that were full is swept now and then.
    few = steps(1_000, 1, exclusive=True)
    assert abs(steps(20_000, 1_000, exclusive=True) - few) < 2


# EXCL-4
def test_groups():
    few = steps(1_000, 1, groups=1)
    assert steps(20_000, 1, groups=200) == few


# EXCL-4
def test_classic_groups_whose_owners_are_full():
    # Each of the others is passed over once and served once from where it waits.
    few = steps(2_000, 2, groups=4, classic=True)
    many = steps(20_000, 2, groups=4, classic=True)
    assert abs(many - few) < 5
