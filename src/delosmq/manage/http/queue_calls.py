"""The calls on queues, addresses and the broker."""

import asyncio
import logging
from typing import Final

from starlette.responses import Response

from delosmq.engine.broker import Broker
from delosmq.manage.control.addresses import AddressControl, AddressInfo
from delosmq.manage.control.broker import BrokerControl
from delosmq.manage.control.host import Host
from delosmq.manage.control.queues import ROUTING_TYPES, QueueChange, QueueControl, QueueInfo
from delosmq.manage.http.answers import AddressList, QueueList
from delosmq.manage.http.arrow import RowStream, choose_columns
from delosmq.manage.http.gating import wait_synced
from delosmq.manage.http.operations import Answer, Call
from delosmq.manage.http.requests import BrowseRows, CreateQueue, UpdateQueue
from delosmq.model.conversion import Conversions
from delosmq.model.settings import QueueSettings
from delosmq.sessions.outbox import Gate

ITEMS_PER_TURN: Final = 100
"""Entries of a listing before the loop serves others."""


class QueueCalls:
    """Handlers of ``/api/v1/queues``."""

    def __init__(
        self,
        broker: Broker,
        control: QueueControl,
        host: Host,
        *,
        gate: Gate,
        conversions: Conversions,
        logger: logging.Logger,
    ) -> None:
        self._broker = broker
        self._control = control
        self._host = host
        self._gate = gate
        self._conversions = conversions
        self._logger = logger

    async def list(self, call: Call) -> Answer:
        """GET /queues."""
        found: list[QueueInfo] = []
        for i, name in enumerate(self._control.names(call.login)):
            if i % ITEMS_PER_TURN == ITEMS_PER_TURN - 1:
                await asyncio.sleep(0)
            info = self._control.peek(call.login, name)
            if info is not None:
                found.append(info)
        return self._answer(QueueList(found), entries=len(found))

    async def get(self, call: Call) -> Answer:
        """GET /queues/{name}."""
        return self._answer(self._control.get(call.login, call.path["name"]))

    async def create(self, call: Call) -> Answer:
        """POST /queues."""
        wanted: CreateQueue = call.body
        settings = QueueSettings(
            wanted.name,
            wanted.address if wanted.address is not None else wanted.name,
            ROUTING_TYPES[wanted.routing_type],
            wanted.durable,
            wanted.ring_size,
            max_consumers=wanted.max_consumers,
        )
        return self._answer(self._control.create(call.login, settings), status=201)

    async def update(self, call: Call) -> Answer:
        """PATCH /queues/{name}."""
        wanted: UpdateQueue = call.body
        change = QueueChange(frozenset(wanted.model_fields_set), wanted.ring_size, wanted.max_consumers)
        return self._answer(self._control.update(call.login, call.path["name"], change))

    async def rows(self, call: Call) -> Response:
        """GET /queues/{name}/rows."""
        wanted: BrowseRows = call.query
        names = choose_columns(wanted.columns, wanted.headers)
        queue = call.path["name"]
        browse = self._control.browse(
            call.login, queue, after=wanted.after, until=wanted.until, max_rows=wanted.max_rows
        )
        for _ in browse:
            await asyncio.sleep(0)
        slots = browse.found
        position = self._broker.log.position
        self._host.changed()
        response = await RowStream(slots, names, queue, conversions=self._conversions, logger=self._logger).response()
        await wait_synced(self._gate, position)
        return response

    def _answer(self, content: object, *, status: int = 200, entries: int = 1) -> Answer:
        self._host.changed()
        return Answer(content, self._broker.log.position, status, entries)


class BrokerCalls:
    """Handlers of ``/api/v1/broker`` and ``/api/v1/addresses``."""

    def __init__(self, broker: Broker, control: BrokerControl, addresses: AddressControl, host: Host) -> None:
        self._broker = broker
        self._control = control
        self._addresses = addresses
        self._host = host

    async def get(self, call: Call) -> Answer:
        """GET /broker."""
        return self._answer(self._control.get())

    async def list_addresses(self, call: Call) -> Answer:
        """GET /addresses."""
        found: list[AddressInfo] = []
        for i, name in enumerate(self._addresses.names(call.login)):
            if i % ITEMS_PER_TURN == ITEMS_PER_TURN - 1:
                await asyncio.sleep(0)
            info = self._addresses.peek(call.login, name)
            if info is not None:
                found.append(info)
        return self._answer(AddressList(found), entries=len(found))

    async def get_address(self, call: Call) -> Answer:
        """GET /addresses/{name}."""
        return self._answer(self._addresses.get(call.login, call.path["name"]))

    def _answer(self, content: object, *, entries: int = 1) -> Answer:
        self._host.changed()
        return Answer(content, self._broker.log.position, entries=entries)
