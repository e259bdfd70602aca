"""Ids and times as distinct types, so that one can't be passed for the other.

All ids are positive integers below 2**62. Wall-clock times are milliseconds since the epoch; monotonic times are
nanoseconds of the clock port.
"""

from typing import Final, NewType

MessageId = NewType("MessageId", int)
"""Names one accepted message for ever; copies (dead letters) get ids of their own."""

Sequence = NewType("Sequence", int)
"""The place of a message in its queues: given when it is routed, growing broker-wide and over restarts."""

QueueId = NewType("QueueId", int)
"""Names a queue in the store; a queue deleted and created again gets another."""

ConsumerId = NewType("ConsumerId", int)

Position = NewType("Position", int)
"""The number of a batch in the journal; 0 means "depends on nothing durable"."""

WallMs = NewType("WallMs", int)
MonotonicNs = NewType("MonotonicNs", int)

NOTHING_DURABLE: Final = Position(0)

LAST_MS: Final = 253_402_300_799_999
"""The end of the year 9999. Clients may set later times, which those who read rows do not have: Arrow's microseconds
end in the year 294247, Python's dates and Spark's texts with this one."""
