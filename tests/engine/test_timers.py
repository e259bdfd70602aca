"""Appointments come in their order, once, and not when they were cancelled."""

from hypothesis import given
from hypothesis import strategies as st

from delosmq.engine.base.timers import Timer, Timers
from delosmq.model.ids import MonotonicNs


class Noting(Timer):
    def __init__(self, name: int, came: list[int]) -> None:
        self.name = name
        self.came = came

    def on_timer(self, now: MonotonicNs) -> None:
        self.came.append(self.name)


@given(st.lists(st.tuples(st.integers(1, 50), st.booleans()), max_size=120), st.integers(0, 60))
def test_what_was_not_cancelled_comes_in_its_order(wanted: list[tuple[int, bool]], now: int) -> None:
    timers, came = Timers(), list[int]()
    numbers = [timers.at(due, Noting(name, came)) for name, (due, _) in enumerate(wanted)]
    for number, (_, cancelled) in zip(numbers, wanted, strict=True):
        if cancelled:
            timers.cancel(number)
    timers.run(MonotonicNs(now))
    timers.run(MonotonicNs(60))
    kept = [(due, name) for name, (due, cancelled) in enumerate(wanted) if not cancelled]
    assert came == [name for _, name in sorted(kept)]
    assert timers.next_at == 0


def test_an_appointment_may_be_cancelled_by_another() -> None:
    timers, came = Timers(), list[int]()

    class Cancelling(Timer):
        def on_timer(self, now: MonotonicNs) -> None:
            for number in numbers[:99]:
                timers.cancel(number)

    timers.at(1, Cancelling())
    numbers = [timers.at(2, Noting(name, came)) for name in range(100)]
    timers.run(MonotonicNs(2))
    assert came == [99]
