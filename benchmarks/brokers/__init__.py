"""One small driver per broker, behind the port in `base`."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.brokers.activemq import ActiveMQ
from benchmarks.brokers.base import Driver
from benchmarks.brokers.delosmq import DelosMQ
from benchmarks.brokers.rabbitmq import RabbitMQ
from benchmarks.brokers.sink import SinkDriver

PEERS = ("rabbitmq", "activemq")
OURS = ("delosmq-compiled", "delosmq-pure")

STOMP_DRIVERS: dict[str, Callable[[], Driver]] = {
    "delosmq-compiled": lambda: DelosMQ("delosmq-compiled", environment=".venv-compiled"),
    "delosmq-pure": lambda: DelosMQ("delosmq-pure", environment=".venv"),
    "rabbitmq": RabbitMQ,
    "activemq": lambda: ActiveMQ("activemq", group_commit=False),
    # Not its default: many producers share a flush, and messages that are consumed at once are stored all the same.
    "activemq-group-commit": lambda: ActiveMQ("activemq-group-commit", group_commit=True),
    "sink": SinkDriver,
}

OPENWIRE_DRIVERS: dict[str, Callable[[], Driver]] = {
    "delosmq-compiled": lambda: DelosMQ("delosmq-compiled", environment=".venv-compiled", protocol="OPENWIRE"),
    "delosmq-pure": lambda: DelosMQ("delosmq-pure", environment=".venv", protocol="OPENWIRE"),
    "activemq": lambda: ActiveMQ("activemq", group_commit=False, scheme="tcp"),
    "activemq-group-commit": lambda: ActiveMQ("activemq-group-commit", group_commit=True, scheme="tcp"),
}
