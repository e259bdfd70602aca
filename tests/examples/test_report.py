"""The audit of the main job: each kind of fault is counted, and any of them fails the job."""

import pytest

from examples.orders.report import Audit

GOOD = Audit(published=3, acknowledged=2, redelivered=0, dead_lettered=1, archived=3, lost=0, doubled=0, strange=0)


@pytest.mark.parametrize(("fault", "passed"), [("", True), ("lost", False), ("doubled", False), ("strange", False)])
def test_any_fault_fails_the_job(fault: str, passed: bool) -> None:
    figures = {**vars(GOOD), fault: 1} if fault else vars(GOOD)
    assert Audit(**figures).passed is passed
