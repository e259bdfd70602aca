"""The resource ``broker``. Source: ActiveMQServerControl of Artemis."""

from collections.abc import Generator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from delosmq.engine.api import NS_PER_MS, EngineBroker
from delosmq.manage.control.addresses import AddressControl
from delosmq.manage.control.broker import BrokerControl, BrokerStatus
from delosmq.manage.control.messages import MessageControl
from delosmq.manage.control.pagination import MOST_PER_PAGE
from delosmq.manage.control.queues import ROUTING_TYPES, ExistsError, QueueControl
from delosmq.manage.control.transactions import COMMITTED, ROLLED_BACK, TransactionControl, TransactionStatus
from delosmq.manage.messages import errors
from delosmq.manage.messages.address_resource import address_settings_json
from delosmq.manage.messages.branches import CommitWaiter, branch_line, xid_as_base64
from delosmq.manage.messages.declarations import Int, attribute, operation
from delosmq.manage.messages.listings import (
    ADDRESS_COLUMNS,
    QUEUE_COLUMNS,
    chosen_names,
    few_names,
    listed_page,
    read_options,
)
from delosmq.manage.messages.queue_configuration import describe, read_queue_configuration
from delosmq.model.settings import QueueSettings
from delosmq.security.access import Login

BROKER_FIELDS: Final = {
    "Active": "active",
    "AddressCount": "addresses",
    "AddressMemoryUsage": "memory_used_bytes",
    "ConnectionCount": "connections",
    "GlobalMaxSize": "memory_limit_bytes",
    "Name": "name",
    "NodeID": "node_id",
    "QueueCount": "queues",
    "UptimeMillis": "uptime_ms",
    "Version": "version",
}
"""Attribute -> field of `BrokerStatus`."""


@dataclass(frozen=True)
class Controls:
    """What management messages ask of a broker."""

    broker: BrokerControl
    queues: QueueControl
    addresses: AddressControl
    messages: MessageControl
    transactions: TransactionControl


class BrokerResource:
    """The broker as a whole; whoever may send a management message may look at it."""

    def __init__(self, broker: EngineBroker, controls: Controls) -> None:
        self._broker = broker
        self._controls = controls
        self._queues = controls.queues
        self._addresses = controls.addresses
        self._transactions = controls.transactions

    def info(self, login: Login) -> BrokerStatus:
        return self._controls.broker.get()

    # -- attributes ------------------------------------------------------------------------------------------------

    @attribute("Started")
    def started(self, login: Login) -> bool:
        return True

    @attribute("Backup")
    def backup(self, login: Login) -> bool:
        return False

    @attribute("Clustered")
    def clustered(self, login: Login) -> bool:
        return False

    @attribute("SecurityEnabled")
    def security_enabled(self, login: Login) -> bool:
        return True

    @attribute("ManagementAddress")
    def management_address(self, login: Login) -> str:
        return self._broker.settings.management_address

    @attribute("AddressMemoryUsagePercentage")
    def memory_used_percent(self, login: Login) -> int:
        status = self.info(login)
        limit = status.memory_limit_bytes
        return status.memory_used_bytes * 100 // limit if limit > 0 else 0

    @attribute("ConnectionTTLOverride")
    def connection_ttl_override(self, login: Login) -> int:
        return self._broker.settings.connection_ttl_override_ms

    @attribute("TransactionTimeout")
    def transaction_timeout(self, login: Login) -> int:
        return self._broker.settings.transaction_timeout_ms

    @attribute("QueueNames")
    def queue_names(self, login: Login) -> Generator[int, None, list[str]]:
        return few_names(self._broker.queues, partial(self._queues.may_view, login))

    @attribute("AddressNames")
    def address_names(self, login: Login) -> Generator[int, None, list[str]]:
        return few_names(self._broker.addresses, partial(self._addresses.may_view, login))

    # -- lists -----------------------------------------------------------------------------------------------------

    @operation("getQueueNames")
    def queue_names_of_type(self, login: Login, routing_type: str) -> Generator[int, None, list[str]]:
        kind = _routing(routing_type)
        queues = self._broker.queues
        return few_names(
            queues,
            lambda name: self._queues.may_view(login, name) and queues[name].settings.routing_type == kind,
        )

    @operation("listQueues")
    def list_queues(self, login: Login, options: str, page: Int, page_size: Int) -> Generator[int, None, str]:
        matches = read_options(options)
        names = yield from chosen_names(
            self._broker.queues, lambda name: matches(name) and self._queues.may_view(login, name)
        )
        peek = partial(self._queues.peek, login)
        return (yield from listed_page(names, peek, QUEUE_COLUMNS, page=page, page_size=page_size))

    @operation("listAddresses")
    def list_addresses(self, login: Login, options: str, page: Int, page_size: Int) -> Generator[int, None, str]:
        matches = read_options(options)
        names = yield from chosen_names(
            self._broker.addresses, lambda name: matches(name) and self._addresses.may_view(login, name)
        )
        peek = partial(self._addresses.peek, login)
        return (yield from listed_page(names, peek, ADDRESS_COLUMNS, page=page, page_size=page_size))

    @operation("listAddresses")
    def joined_addresses(self, login: Login, separator: str) -> Generator[int, None, str]:
        names = yield from self.address_names(login)
        return separator.join(names)

    # -- addresses -------------------------------------------------------------------------------------------------

    @operation("createAddress")
    def create_address(self, login: Login, name: str, routing_types: str) -> str:
        kinds = [kind.strip() for kind in routing_types.split(",")]
        for kind in kinds:
            _routing(kind)
        if name in self._broker.addresses:
            raise errors.address_exists(name)
        made = self._addresses.create(login, name, kinds)
        return f"Address [name={made.name}, routingTypes={{{','.join(made.routing_types)}}}, autoCreated=false]"

    @operation("deleteAddress")
    def delete_address(self, login: Login, name: str) -> None:
        self._addresses.delete(login, name, force=False)

    @operation("deleteAddress")
    def delete_address_by_force(self, login: Login, name: str, force: bool) -> None:
        self._addresses.delete(login, name, force=force)

    @operation("getAddressSettingsAsJSON")
    def address_settings(self, login: Login, address_match: str) -> str:
        return address_settings_json(self._addresses.settings_of(login, address_match))

    # -- transactions ----------------------------------------------------------------------------------------------

    @operation("listPreparedTransactions")
    def prepared(self, login: Login) -> list[str]:
        return [branch_line(branch) for branch in self._prepared(login)]

    @operation("commitPreparedTransaction")
    def commit_prepared(self, login: Login, transaction_as_base64: str) -> Generator[int, None, bool]:
        branch = self._find_prepared(login, transaction_as_base64)
        if branch is None:
            return False
        waiter = CommitWaiter()
        if not self._transactions.commit(login, branch.xid, waiter):
            while not waiter.is_over:
                yield NS_PER_MS
        if waiter.error is not None:
            raise waiter.error
        return True

    @operation("rollbackPreparedTransaction")
    def roll_back_prepared(self, login: Login, transaction_as_base64: str) -> bool:
        branch = self._find_prepared(login, transaction_as_base64)
        if branch is None:
            return False
        self._transactions.roll_back(login, branch.xid)
        return True

    @operation("listHeuristicCommittedTransactions")
    def heuristically_committed(self, login: Login) -> list[str]:
        return self._ended_by_operators(login, COMMITTED)

    @operation("listHeuristicRolledBackTransactions")
    def heuristically_rolled_back(self, login: Login) -> list[str]:
        return self._ended_by_operators(login, ROLLED_BACK)

    def _prepared(self, login: Login) -> list[TransactionStatus]:
        ids = self._transactions.ids(login, after=0, limit=MOST_PER_PAGE, prepared_only=True)
        if len(ids) > MOST_PER_PAGE:
            raise errors.too_many_branches(MOST_PER_PAGE)
        found = (self._transactions.peek(one) for one in ids)
        return [one for one in found if one is not None and one.xid]

    def _find_prepared(self, login: Login, text: str) -> TransactionStatus | None:
        return next((one for one in self._prepared(login) if xid_as_base64(one.xid) == text), None)

    def _ended_by_operators(self, login: Login, outcome: str) -> list[str]:
        ended = self._transactions.heuristics(login, after="", limit=MOST_PER_PAGE)
        return [xid_as_base64(one.xid) for one in ended if one.outcome == outcome]

    # -- queues ----------------------------------------------------------------------------------------------------

    @operation("createQueue")
    def create_queue(self, login: Login, queue_configuration: str) -> str:
        return self._create(login, read_queue_configuration(queue_configuration))

    @operation("createQueue")
    def create_queue_if_missing(self, login: Login, queue_configuration: str, ignore_if_exists: bool) -> str:
        fields = read_queue_configuration(queue_configuration)
        try:
            return self._create(login, fields)
        except ExistsError:
            if not ignore_if_exists:
                raise
            self._queues.get(login, fields["name"])
            return describe(self._broker.queues[fields["name"]].settings)

    @operation("createQueue")
    def create_queue_on(self, login: Login, address: str, name: str) -> None:
        self._create(login, {"address": address, "name": name})

    @operation("createQueue")
    def create_queue_of_type(self, login: Login, address: str, name: str, routing_type: str) -> None:
        self._create(login, {"address": address, "name": name, "routing_type": _routing(routing_type)})

    @operation("createQueue")
    def create_durable_queue(self, login: Login, address: str, name: str, durable: bool) -> None:
        self._create(login, {"address": address, "name": name, "durable": durable})

    @operation("createQueue")
    def create_durable_queue_of_type(
        self, login: Login, address: str, name: str, durable: bool, routing_type: str
    ) -> None:
        kind = _routing(routing_type)
        self._create(login, {"address": address, "name": name, "durable": durable, "routing_type": kind})

    @operation("updateQueue")
    def update_queue(self, login: Login, queue_configuration: str) -> str:
        changes = read_queue_configuration(queue_configuration)
        name = changes.pop("name")
        for fixed in ("address", "durable", "last_value_key"):
            if fixed in changes:
                raise errors.queue_configuration_wrong(f"'{fixed.replace('_', '-')}' can't be changed")
        self._queues.update(login, name, changes)
        return describe(self._broker.queues[name].settings)

    @operation("destroyQueue")
    def destroy_queue(self, login: Login, name: str) -> None:
        self._queues.delete(login, name, force=False)

    @operation("destroyQueue")
    def destroy_queue_in_use(self, login: Login, name: str, remove_consumers: bool) -> None:
        self._queues.delete(login, name, force=remove_consumers)

    @operation("destroyQueue")
    def destroy_queue_and_address(
        self, login: Login, name: str, remove_consumers: bool, auto_delete_address: bool
    ) -> None:
        address = self._queues.get(login, name).address
        self._queues.delete(login, name, force=remove_consumers)
        left = self._broker.addresses.get(address)
        if auto_delete_address and left is not None and not left.queues():
            self._addresses.delete(login, address, force=False)

    def _create(self, login: Login, fields: dict[str, Any]) -> str:
        wanted = {"address": fields["name"], **fields}
        if "routing_type" not in wanted:
            wanted["routing_type"] = self._broker.bindings.settings_of(wanted["address"]).default_queue_routing_type
        self._queues.create(login, QueueSettings(**wanted))
        return describe(self._broker.queues[wanted["name"]].settings)


def _routing(name: str) -> int:
    kind = ROUTING_TYPES.get(name)
    if kind is None:
        raise errors.routing_type_wrong(name)
    return kind
