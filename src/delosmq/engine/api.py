"""What other packages may use of the engine. Storage implements the ports of `engine.log` besides."""

from delosmq.engine import inspect
from delosmq.engine.addresses.address import Address, SpaceWaiter
from delosmq.engine.addresses.address_limits import AddressLimitError
from delosmq.engine.addresses.divert import Divert
from delosmq.engine.addresses.filter import Conditions
from delosmq.engine.base.events import NO_EVENTS, EngineEvents, events_for
from delosmq.engine.base.jobs import JobWaiter
from delosmq.engine.base.slots import Slot, SlotList
from delosmq.engine.base.timers import NS_PER_MS, Timer
from delosmq.engine.broker import EngineBroker
from delosmq.engine.dispatch import waiting_reason
from delosmq.engine.dispatch.rules import rules_of
from delosmq.engine.leases import lease
from delosmq.engine.leases.lease import Lease, LeaseError, LeaseGroup, LeaseWaiter
from delosmq.engine.leases.rows import LeaseParts
from delosmq.engine.lifecycle.purge import Purge
from delosmq.engine.lifecycle.subscriptions import NO_OPTIONS, SubscriptionOptions
from delosmq.engine.log.log import Log
from delosmq.engine.log.ports import StoreEvents
from delosmq.engine.queues.consumer import PLAIN, Consumer, ConsumerOptions, ConsumerPort, consumers_of
from delosmq.engine.queues.credit import ByteCredit, Credit, MessageCredit, OpenCredit, PrefetchCredit
from delosmq.engine.queues.eviction_strategy import choice_for
from delosmq.engine.queues.in_delivery import BulkAck
from delosmq.engine.queues.loans import MOST_LENT
from delosmq.engine.queues.pending_limit import PendingLimit
from delosmq.engine.queues.queue import Queue
from delosmq.engine.routing.dropped import DEAD_LETTER_ADDRESS, EXPIRY_ADDRESS, DroppedListener
from delosmq.engine.routing.held_messages import dead_count, expired_count, held_count, is_held
from delosmq.engine.routing.send_result import BLOCKED, DROPPED, DUPLICATE, ROUTED
from delosmq.engine.transactions import staging_errors, xa
from delosmq.engine.transactions.transaction import ACTIVE, PREPARED, Transaction, TransactionError

__all__ = [
    "ACTIVE",
    "BLOCKED",
    "DEAD_LETTER_ADDRESS",
    "DROPPED",
    "DUPLICATE",
    "EXPIRY_ADDRESS",
    "MOST_LENT",
    "NO_EVENTS",
    "NO_OPTIONS",
    "NS_PER_MS",
    "PLAIN",
    "PREPARED",
    "ROUTED",
    "Address",
    "AddressLimitError",
    "BulkAck",
    "ByteCredit",
    "Conditions",
    "Consumer",
    "ConsumerOptions",
    "ConsumerPort",
    "Credit",
    "Divert",
    "DroppedListener",
    "EngineBroker",
    "EngineEvents",
    "JobWaiter",
    "Lease",
    "LeaseError",
    "LeaseGroup",
    "LeaseParts",
    "LeaseWaiter",
    "Log",
    "MessageCredit",
    "OpenCredit",
    "PendingLimit",
    "PrefetchCredit",
    "Purge",
    "Queue",
    "Slot",
    "SlotList",
    "SpaceWaiter",
    "StoreEvents",
    "SubscriptionOptions",
    "Timer",
    "Transaction",
    "TransactionError",
    "choice_for",
    "consumers_of",
    "dead_count",
    "events_for",
    "expired_count",
    "held_count",
    "inspect",
    "is_held",
    "lease",
    "rules_of",
    "staging_errors",
    "waiting_reason",
    "xa",
]
