"""DelosMQ, a durable message broker.

Importing this package loads no broker code, so that clients and Spark executors stay light; ``Broker``,
``BrokerError`` and ``connect`` are loaded when they are first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from delosmq.version import __version__

if TYPE_CHECKING:
    from delosmq.client import connect
    from delosmq.embedded import Broker
    from delosmq.model.errors import BrokerError

__all__ = ["Broker", "BrokerError", "__version__", "connect"]

_ELSEWHERE = {"Broker": "delosmq.embedded", "BrokerError": "delosmq.model.errors", "connect": "delosmq.client"}


def __getattr__(name: str) -> object:
    if name in _ELSEWHERE:
        found = globals()[name] = getattr(import_module(_ELSEWHERE[name]), name)
        return found
    raise AttributeError(f"module 'delosmq' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
