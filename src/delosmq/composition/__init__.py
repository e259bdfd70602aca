"""Wires all parts of a broker together; the only room that knows them all."""

from delosmq.composition.broker import Accounts, ComposedBroker, failure_sentence
from delosmq.composition.garbage_collection import not_collecting
from delosmq.composition.protocols import PROTOCOLS
from delosmq.composition.standby import Standby, tell_of_activation
from delosmq.composition.stores import open_activation, open_store

__all__ = [
    "PROTOCOLS",
    "Accounts",
    "ComposedBroker",
    "Standby",
    "failure_sentence",
    "not_collecting",
    "open_activation",
    "open_store",
    "tell_of_activation",
]
