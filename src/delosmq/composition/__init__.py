"""Wires all parts of a broker together; the only room that knows them all."""

from delosmq.composition.broker import Accounts, ComposedBroker, failure_sentence
from delosmq.composition.garbage_collection import not_collecting
from delosmq.composition.protocols import PROTOCOLS
from delosmq.composition.stores import open_store

__all__ = ["PROTOCOLS", "Accounts", "ComposedBroker", "failure_sentence", "not_collecting", "open_store"]
