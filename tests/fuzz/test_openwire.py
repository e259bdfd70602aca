"""Spoilt frames in any order: the broker goes on, holds no more for it, and the other connections notice nothing.

The long form: ``DELOSMQ_FUZZ_FRAMES=10000000 DELOSMQ_FUZZ_SEED=7 python -m tests.fuzz.openwire_attack``.
"""

# BROKER-4

import os

import pytest

from tests.fuzz.openwire_attack import Attack, FrameError, Memory
from tests.fuzz.openwire_sockets import besiege
from tests.sessions.openwire.support import Client

FRAMES = 4_000
SEED = int(os.environ.get("DELOSMQ_FUZZ_SEED", "1"))


def test_spoilt_frames_hurt_nobody_else() -> None:
    attack = Attack(SEED)
    memory = Memory()
    attack.run(FRAMES)
    assert attack.looked > 0
    attack.clean()
    assert memory.check() > 0


def test_spoilt_frames_over_sockets_hurt_nobody_else() -> None:
    besiege(30, 40, SEED)


class GivesWay(Client):
    """Stands for whatever the broker might do wrong in a tick."""

    def write(self) -> bool:
        raise ZeroDivisionError


def test_an_attack_tells_where_the_broker_gave_way() -> None:
    """Of the fuzz itself: what escapes the broker is a failure that can be repeated."""
    attack = Attack(SEED)
    GivesWay(attack.bench)
    with pytest.raises(FrameError, match=rf"seed {SEED}, frame \d+, form"):
        attack.run(100)
