"""A broker inside any Python process: ``with delosmq.Broker() as broker:``."""

from delosmq.embedded.arguments import default_settings
from delosmq.embedded.broker import Broker

__all__ = ["Broker", "default_settings"]
