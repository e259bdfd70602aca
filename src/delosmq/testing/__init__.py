"""A broker for tests: ``with delosmq.testing.BrokerFixture() as broker:``, and the fixtures of the pytest plugin.

Importing this package loads no broker code: the plugin lies in it, and pytest loads that in every run.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from delosmq.testing.broker_fixture import BrokerFixture, BrokerOptions
    from delosmq.testing.frame_faults import FrameFault
    from delosmq.testing.processes.broker_pair import BrokerPair
    from delosmq.testing.processes.broker_process import BrokerHealth, BrokerProcess
    from delosmq.testing.processes.tcp_proxy import ProxiedPiece, TcpProxy
    from delosmq.testing.queue_view import QueueCounts, QueueView
    from delosmq.testing.trace import Trace
    from delosmq.testing.turnable_clock import TurnableClock

__all__ = [
    "BrokerFixture",
    "BrokerHealth",
    "BrokerOptions",
    "BrokerPair",
    "BrokerProcess",
    "FrameFault",
    "ProxiedPiece",
    "QueueCounts",
    "QueueView",
    "TcpProxy",
    "Trace",
    "TurnableClock",
]

_ELSEWHERE = {
    "BrokerFixture": "broker_fixture",
    "BrokerHealth": "processes.broker_process",
    "BrokerOptions": "broker_fixture",
    "BrokerPair": "processes.broker_pair",
    "BrokerProcess": "processes.broker_process",
    "FrameFault": "frame_faults",
    "ProxiedPiece": "processes.tcp_proxy",
    "QueueCounts": "queue_view",
    "QueueView": "queue_view",
    "TcpProxy": "processes.tcp_proxy",
    "Trace": "trace",
    "TurnableClock": "turnable_clock",
}


def __getattr__(name: str) -> object:
    if name in _ELSEWHERE:
        found = globals()[name] = getattr(import_module(f"{__name__}.{_ELSEWHERE[name]}"), name)
        return found
    raise AttributeError(f"module '{__name__}' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
