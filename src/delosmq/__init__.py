"""DelosMQ, a durable message broker.

Importing this package loads no broker code, so that clients and Spark executors stay light; ``Broker`` is loaded when
it is first asked for.
"""

from typing import TYPE_CHECKING

from delosmq.version import __version__

if TYPE_CHECKING:
    from delosmq.embedded import Broker

__all__ = ["Broker", "__version__"]


def __getattr__(name: str) -> object:
    if name == "Broker":
        from delosmq.embedded import Broker

        globals()["Broker"] = Broker
        return Broker
    raise AttributeError(f"module 'delosmq' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
