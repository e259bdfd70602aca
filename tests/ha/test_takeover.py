"""Takeover under load, in short; `python -m tests.ha.takeovers` is the long form."""

# HA-1

from pathlib import Path
from random import Random

import pytest

from tests.ha.takeovers import KILL, run_takeovers


@pytest.mark.timeout(300)
def test_nothing_confirmed_is_lost_and_nothing_acknowledged_comes_back_when_a_backup_takes_over(
    tmp_path: Path,
) -> None:
    run_takeovers(tmp_path, [KILL] * 2, Random(1))
