"""The resources ``queue.<name>``. Source: QueueControl of Artemis."""

import json
from base64 import b64decode
from collections.abc import Generator
from typing import Final

from delosmq.engine.api import NS_PER_MS, EngineBroker, Purge
from delosmq.manage.control.messages import MessageControl, MessagePage, ShownMessage
from delosmq.manage.control.queue_info import QueueInfo
from delosmq.manage.control.queues import QueueControl
from delosmq.manage.messages import errors
from delosmq.manage.messages.declarations import Int, Long, StringMap, operation
from delosmq.model.message import BYTES_BODY, DEFAULT_PRIORITY, TEXT_BODY, HubMessage
from delosmq.security.access import BROWSE, CONSUME, Login

QUEUE_FIELDS: Final = {
    "AcknowledgeAttempts": "acknowledge_attempts",
    "Address": "address",
    "AutoDelete": "auto_delete",
    "ConsumerCount": "consumer_count",
    "ConsumersBeforeDispatch": "consumers_before_dispatch",
    "DeadLetterAddress": "dead_letter_address",
    "DelayBeforeDispatch": "delay_before_dispatch",
    "DeliveringCount": "delivering_count",
    "DeliveringSize": "delivering_size",
    "Durable": "durable",
    "DurableDeliveringCount": "durable_delivering_count",
    "DurableDeliveringSize": "durable_delivering_size",
    "DurableMessageCount": "durable_message_count",
    "DurablePersistentSize": "durable_persistent_size",
    "DurableScheduledCount": "durable_scheduled_count",
    "DurableScheduledSize": "durable_scheduled_size",
    "Enabled": "enabled",
    "Exclusive": "exclusive",
    "ExpiryAddress": "expiry_address",
    "Filter": "filter",
    "GroupBuckets": "group_buckets",
    "GroupCount": "group_count",
    "GroupFirstKey": "group_first_key",
    "GroupRebalance": "group_rebalance",
    "GroupRebalancePauseDispatch": "group_rebalance_pause_dispatch",
    "ID": "id",
    "LastValue": "last_value",
    "LastValueKey": "last_value_key",
    "MaxConsumers": "max_consumers",
    "MessageCount": "message_count",
    "MessagesAcknowledged": "messages_acknowledged",
    "MessagesAdded": "messages_added",
    "MessagesExpired": "messages_expired",
    "MessagesKilled": "messages_killed",
    "Name": "name",
    "Paused": "paused",
    "PersistedPause": "paused",
    "PersistentSize": "persistent_size",
    "PurgeOnNoConsumers": "purge_on_no_consumers",
    "RingSize": "ring_size",
    "RoutingType": "routing_type",
    "ScheduledCount": "scheduled_count",
    "ScheduledSize": "scheduled_size",
    "Temporary": "temporary",
    "User": "user",
}
"""Attribute -> field of `QueueInfo`."""

MESSAGE_TYPES: Final = {"empty": 0, "object": 2, "text": 3, "bytes": 4, "map": 5, "stream": 6}
"""By kind of body. Source: constants of Artemis's Message."""
TEXT_TYPE: Final = MESSAGE_TYPES["text"]
MOST_SHOWN: Final = 200
"""Messages in one answer. Source: management-browse-page-size of Artemis."""
MOST_LOOKED_AT: Final = 10_000
"""Up to the end of a page: what is before it is looked at as well."""
LETTERS: Final = 256
"""Of each body, at most. Source: management-message-attribute-size-limit of Artemis."""

PURGE_WAIT_NS: Final = 5_000 * NS_PER_MS
"""A purge that takes longer goes on without its caller, as over HTTP."""


def finish_purge(broker: EngineBroker, work: Purge) -> Generator[int, None, int]:
    """Waits for the end of a purge; gives how many messages it has removed."""
    until = broker.clock.monotonic_ns() + PURGE_WAIT_NS
    before = -1
    while not work.done and broker.clock.monotonic_ns() < until:
        # Without progress it waits for what consumers give back.
        stands = work.removed == before
        before = work.removed
        yield NS_PER_MS if stands else 0
    return work.removed


def message_map(message: ShownMessage, address: str) -> dict[str, object]:
    """A message as lists show it: its properties, and what Artemis's Message.toMap adds."""
    found: dict[str, object] = dict(message.properties)
    if message.jms_message_id:
        found["userID"] = message.jms_message_id
    found.update(
        messageID=int(message.message_id.removeprefix("ID:")),
        address=address,
        durable=message.durable,
        expiration=message.expires_at_ms,
        timestamp=message.timestamp_ms,
        priority=message.priority,
    )
    return found


def _browsed_map(message: ShownMessage, address: str) -> dict[str, object]:
    return {
        **message_map(message, address),
        "type": MESSAGE_TYPES[message.body_kind],
        "redelivered": message.delivery_count > 1,
        "text": message.text,
    }


class QueueResource:
    def __init__(self, broker: EngineBroker, control: QueueControl, messages: MessageControl, name: str) -> None:
        self._broker = broker
        self._control = control
        self._messages = messages
        self._name = name

    def info(self, login: Login) -> QueueInfo:
        return self._control.get(login, self._name)

    @operation("pause")
    def pause(self, login: Login) -> None:
        self._control.pause(login, self._name, paused=True)

    @operation("pause")
    def pause_for_good(self, login: Login, persist: bool) -> None:
        self._control.pause(login, self._name, paused=True)

    @operation("resume")
    def resume(self, login: Login) -> None:
        self._control.pause(login, self._name, paused=False)

    @operation("enable")
    def enable(self, login: Login) -> None:
        self._control.enable(login, self._name, enabled=True)

    @operation("disable")
    def disable(self, login: Login) -> None:
        self._control.enable(login, self._name, enabled=False)

    @operation("countMessages")
    def count_messages(self, login: Login) -> Long:
        return Long(self.info(login).message_count)

    @operation("removeAllMessages")
    def remove_all_messages(self, login: Login) -> Generator[int, None, int]:
        return finish_purge(self._broker, self._control.purge(login, self._name))

    # -- messages --------------------------------------------------------------------------------------------------

    @operation("listMessagesAsJSON")
    def list_messages(self, login: Login, filter: str | None) -> Generator[int, None, str]:
        address, found = yield from self._look(login, MOST_SHOWN, selector=filter or "")
        return json.dumps([message_map(one, address) for one in found], ensure_ascii=False)

    @operation("getFirstMessageAsJSON")
    def first_message(self, login: Login) -> Generator[int, None, str]:
        address, found = yield from self._look(login, 1)
        return json.dumps([message_map(one, address) for one in found], ensure_ascii=False)

    @operation("browse")
    def browse(self, login: Login) -> Generator[int, None, list[dict[str, object]]]:
        return self._page(login, 1, MOST_SHOWN, "")

    @operation("browse")
    def browse_chosen(self, login: Login, filter: str) -> Generator[int, None, list[dict[str, object]]]:
        return self._page(login, 1, MOST_SHOWN, filter)

    @operation("browse")
    def browse_page(self, login: Login, page: Int, page_size: Int) -> Generator[int, None, list[dict[str, object]]]:
        return self._page(login, page, page_size, "")

    @operation("browse")
    def browse_chosen_page(
        self, login: Login, page: Int, page_size: Int, filter: str | None
    ) -> Generator[int, None, list[dict[str, object]]]:
        return self._page(login, page, page_size, filter or "")

    @operation("sendMessage")
    def send_message(
        self,
        login: Login,
        headers: StringMap | None,
        type: Int,
        *,
        body: str | None,
        durable: bool,
        user: str | None,
        password: str | None,
    ) -> str:
        if user and user != login.user:
            raise errors.sends_as_another(user)
        if type == TEXT_TYPE:
            hub = HubMessage((body or "").encode(), TEXT_BODY)
        else:
            try:
                hub = HubMessage(b64decode(body or "", validate=True), BYTES_BODY)
            except ValueError:
                raise errors.body_not_base64() from None
        hub.properties.update(headers or {})
        sent = self._messages.send_hub(login, self._name, hub, durable=durable, priority=DEFAULT_PRIORITY)
        return sent.message_id.removeprefix("ID:")

    def _page(
        self, login: Login, page: int, page_size: int, selector: str
    ) -> Generator[int, None, list[dict[str, object]]]:
        if page < 1 or not 1 <= page_size <= MOST_SHOWN or page * page_size > MOST_LOOKED_AT:
            raise errors.message_page_wrong(MOST_SHOWN, MOST_LOOKED_AT)
        end = page * page_size
        address, found = yield from self._look(login, end, skip=end - page_size, selector=selector)
        return [_browsed_map(one, address) for one in found]

    def _look(
        self, login: Login, limit: int, *, skip: int = 0, selector: str = ""
    ) -> Generator[int, None, tuple[str, list[ShownMessage]]]:
        """The address and the messages, those in delivery and those that are not due too."""
        address = self._control.find(login, self._name, CONSUME, BROWSE).address.name
        walk = self._messages.look(
            login, self._name, after=0, limit=limit, letters=LETTERS, skip=skip, selector=selector
        )
        while True:
            try:
                next(walk)
            except StopIteration as end:
                page: MessagePage = end.value
                return address, page.messages
            yield 0
