"""Event records: what becomes of messages, published on the address ``delosmq.events``.

A record is a line of JSON. Lines collect and leave as one message, once there are 500 of them or a second is over.
They are bounded in memory and in a second; what does not fit is counted, and a record of its own tells how much that
was. The messages are durable, so that a durable queue keeps them over a restart; without one nothing is stored. What is
about such messages, copies of them included, is not recorded: it would never end.

Source: docs/events.md, docs/decisions/0069-event-records.md.
"""

import json
from typing import Final

from delosmq.engine.addresses.address import Address
from delosmq.engine.base.events import EngineEvents
from delosmq.engine.base.slots import Slot
from delosmq.engine.base.timers import Timer
from delosmq.engine.routing.parts import EngineParts
from delosmq.engine.routing.send import EngineProducers
from delosmq.engine.routing.send_result import BLOCKED, DROPPED
from delosmq.model.errors import BrokerError, InvariantError, StorageError
from delosmq.model.ids import MonotonicNs, WallMs
from delosmq.model.message import MULTICAST, TEXT_BODY, HubMessage, Message
from delosmq.model.names import INTERNAL_PREFIX
from delosmq.model.protocol_names import STOMP
from delosmq.model.reserved_names import EVENTS_ADDRESS, RECORDS_MARK, is_the_brokers

CONTENT_TYPE: Final = "application/x-ndjson"
RECORDS_PER_MESSAGE: Final = 500
FLUSH_AFTER_NS: Final = 1_000_000_000
WAITING_AT_MOST: Final = 20_000
"""Records of about 300 bytes each. More than one tick dispatches; what waits leaves with the next."""
TIMES_KEPT: Final = 50_000
"""When messages were accepted whose own time is their sender's."""
_NAMES_KEPT: Final = 10_000
_FAMILY: Final = STOMP.lower()
_MS_PER_S: Final = 1_000


class EventRecords(EngineEvents):
    """Records events and publishes the records. Does nothing while no queue would get them.

    Args:
        most_per_second: ``delosmq-events``; 0 records nothing.

    Attributes:
        lost: records that did not fit, since the start.
    """

    def __init__(self, most_per_second: int) -> None:
        self.most_per_second = most_per_second
        self.lost: int = 0
        self._untold: int = 0
        self._waiting: list[str] = []
        self._second: int = 0
        self._in_second: int = 0
        self._accepted: dict[int, int] = {}
        self._quoted: dict[str, str] = {}
        self._due_ns: int = 0
        self._appointment: int = 0
        self._timer: _FlushTimer = _FlushTimer(self)
        self._parts: EngineParts | None = None
        self._producers: EngineProducers | None = None
        self._protocol: str = ""
        self._head: bytes = b""

    def begin(self, parts: EngineParts, producers: EngineProducers) -> None:
        """Makes the address and records from now on. Closes the log.

        Raises:
            MisuseError: messages of STOMP can't be encoded.
        """
        if not self.most_per_second:
            return
        form = HubMessage(b"", TEXT_BODY)
        form.content_type = CONTENT_TYPE
        encoded = parts.conversions.from_hub(_FAMILY, form, EVENTS_ADDRESS)
        self._protocol = encoded.protocol
        self._head = encoded.head
        parts.bindings.create_address(EVENTS_ADDRESS, {MULTICAST})
        parts.log.close()
        self._parts = parts
        self._producers = producers

    # -- what the engine tells -----------------------------------------------------------------------------------

    def message_routed(self, message: Message, queues: list[str]) -> None:
        if not self._records(message):
            return
        parts = self._parts
        assert parts is not None  # _records has asked
        now = parts.clock.wall_ms()
        if not _has_brokers_time(message):
            self._accepted[message.message_id] = now
            if len(self._accepted) > TIMES_KEPT:
                del self._accepted[next(iter(self._accepted))]
        end = self._sender_of(message, parts)
        for queue in queues:
            if not queue.startswith(INTERNAL_PREFIX):
                self._note("enqueue", message, queue, now, user=message.user, end=end)

    def message_dispatched(self, queue: str, slot: Slot, holder: str, user: str) -> None:
        self._note_slot("dispatch", queue, slot, holder=holder, user=user)

    def message_acknowledged(self, queue: str, queue_id: int, slot: Slot, holder: str, user: str) -> None:
        self._note_slot("acknowledge", queue, slot, holder=holder, user=user)
        self._forget(slot.message)

    def message_redelivered(self, queue: str, slot: Slot) -> None:
        self._note_slot("redeliver", queue, slot, user=slot.message.user)

    def message_replaced(self, queue: str, slot: Slot) -> None:
        self._note_slot("replace", queue, slot, user=slot.message.user)
        self._forget(slot.message)

    def message_expired(self, queue: str, slot: Slot, expiry_address: str) -> None:
        self._note_slot("expire", queue, slot, user=slot.message.user, cause=expiry_address)
        self._forget(slot.message)

    def message_dead_lettered(self, queue: str, slot: Slot, dead_letter_address: str) -> None:
        self._note_slot("dead-letter", queue, slot, user=slot.message.user, cause=dead_letter_address)
        self._forget(slot.message)

    def connection_routed(self, redirected: bool, user: str, client_id: str, cause: str) -> None:
        parts = self._parts
        if parts is None or not self._has_readers(parts):
            return
        now = parts.clock.wall_ms()
        if self._admit(now, parts):
            line = f'{{"time_ms":{now},"event":"{"redirect" if redirected else "route"}"'
            if user:
                line += f',"user":{self._quote(user)}'
            if client_id:
                line += f',"producer":{self._quote(client_id)}'
            self._add(f'{line},"cause":{self._quote(cause)}}}', parts)

    # -- recording -----------------------------------------------------------------------------------------------

    def _records(self, message: Message) -> bool:
        """Whether anything about a message is recorded, and a queue would get it."""
        parts = self._parts
        if parts is None or not self._has_readers(parts):
            return False
        if is_the_brokers(message.address) or message.address == parts.settings.management_address:
            return False
        annotations = message.annotations
        return annotations is None or RECORDS_MARK not in annotations

    def _has_readers(self, parts: EngineParts) -> bool:
        address: Address | None = parts.bindings.addresses.get(EVENTS_ADDRESS)
        if address is None:
            return False
        if address.receivers or address.diverts or address.history is not None or address.links:
            return True
        # Addresses with wildcards that came meanwhile are found by the next send.
        return address.linked_at != parts.bindings.wild_changes

    def _note_slot(self, event: str, queue: str, slot: Slot, *, user: str, holder: str = "", cause: str = "") -> None:
        if queue.startswith(INTERNAL_PREFIX) or not self._records(slot.message):
            return
        parts = self._parts
        assert parts is not None  # _records has asked
        end = f',"delivery_count":{slot.delivery_count}' if slot.delivery_count else ""
        if cause:
            end += f',"cause":{self._quote(cause)}'
        self._note(event, slot.message, queue, parts.clock.wall_ms(), user=user, holder=holder, end=end)

    def _note(
        self, event: str, message: Message, queue: str, now: int, *, user: str, end: str, holder: str = ""
    ) -> None:
        parts = self._parts
        if parts is None or not self._admit(now, parts):
            return
        line = (
            f'{{"time_ms":{now},"event":"{event}","address":{self._quote(message.address)},'
            f'"queue":{self._quote(queue)},"sequence":{message.sequence},"message_id":"ID:{message.message_id}"'
        )
        accepted = message.timestamp_ms if _has_brokers_time(message) else self._accepted.get(message.message_id, 0)
        if accepted:
            line += f',"accepted_ms":{accepted}'
        if holder:
            line += f',"consumer":{self._quote(holder)}'
        if user:
            line += f',"user":{self._quote(user)}'
        self._add(f"{line}{end}}}", parts)

    def _sender_of(self, message: Message, parts: EngineParts) -> str:
        """What a record says of who sent a message: its producer and the number that gave it, or its connection."""
        conversion = parts.conversions.find(message.protocol)
        given = None if conversion is None else conversion.message_id(message)
        if given is not None:
            producer, _, number = given.rpartition(":")
            if producer and number.isdecimal() and number.isascii():
                return f',"producer":{self._quote(producer)},"producer_sequence":{int(number)}'
        return f',"producer":{self._quote(message.connection_id)}' if message.connection_id else ""

    def _forget(self, message: Message) -> None:
        if message.references == 0:
            self._accepted.pop(message.message_id, 0)

    def _quote(self, text: str) -> str:
        """A text in JSON; names come again and again."""
        found = self._quoted.get(text)
        if found is None:
            if len(self._quoted) >= _NAMES_KEPT:
                self._quoted.clear()
            found = json.dumps(text, ensure_ascii=False).encode("utf-8", "replace").decode()
            self._quoted[text] = found
        return found

    # -- bounds --------------------------------------------------------------------------------------------------

    def _admit(self, now: int, parts: EngineParts) -> bool:
        """Whether there is room for a record; counts those without."""
        second = now // _MS_PER_S
        if second != self._second:
            self._second = second
            self._in_second = 0
        if self._in_second >= self.most_per_second or len(self._waiting) >= WAITING_AT_MOST:
            self._lose(1, parts)
            return False
        self._in_second += 1
        return True

    def _lose(self, count: int, parts: EngineParts) -> None:
        self.lost += count
        self._untold += count
        self._arm(parts.clock.monotonic_ns() + FLUSH_AFTER_NS, parts)

    # -- publishing ----------------------------------------------------------------------------------------------

    def _add(self, line: str, parts: EngineParts) -> None:
        self._waiting.append(line)
        waiting = len(self._waiting)
        if waiting == 1:
            self._arm(parts.clock.monotonic_ns() + FLUSH_AFTER_NS, parts)
        elif waiting == RECORDS_PER_MESSAGE:
            self._arm(parts.clock.monotonic_ns(), parts)

    def _arm(self, due_ns: int, parts: EngineParts) -> None:
        """Has what waits leave then, if not earlier."""
        if self._due_ns:
            if self._due_ns <= due_ns:
                return
            parts.timers.cancel(self._appointment)
        self._due_ns = due_ns
        self._appointment = parts.timers.at(due_ns, self._timer)

    def on_timer(self) -> None:
        """The appointment has come."""
        self._due_ns = 0
        self._publish(whole_messages=len(self._waiting) >= RECORDS_PER_MESSAGE)

    def flush(self) -> None:
        """Publishes at once what waits; called at the end of the broker's life, outside of a decision."""
        parts = self._parts
        if parts is not None and self._due_ns:
            parts.timers.cancel(self._appointment)
            self._due_ns = 0
            self._publish(whole_messages=False)

    def _publish(self, *, whole_messages: bool) -> None:
        """Sends what waits. ``whole_messages``: what would not fill one waits on."""
        parts = self._parts
        producers = self._producers
        if parts is None or producers is None:
            return
        now = parts.clock.wall_ms()
        waiting = self._waiting
        told, self._untold = self._untold, 0
        if told:
            most = (
                f"more than {self.most_per_second} a second, than {WAITING_AT_MOST} at once, or than the address takes"
            )
            waiting.insert(0, f'{{"time_ms":{now},"event":"lost","cause":"{told} records: {most}"}}')
        stop = len(waiting)
        if whole_messages:
            stop -= stop % RECORDS_PER_MESSAGE
        self._waiting = waiting[stop:]
        for start in range(0, stop, RECORDS_PER_MESSAGE):
            lines = waiting[start : min(stop, start + RECORDS_PER_MESSAGE)]
            if not self._send(lines, now, producers):
                count = len(lines)
                if told and start == 0:
                    count -= 1
                    self._untold += told  # that these were lost is told with the rest
                self.lost += count
                self._untold += count
        if self._untold or self._waiting:
            self._arm(parts.clock.monotonic_ns() + FLUSH_AFTER_NS, parts)

    def _send(self, lines: list[str], now: WallMs, producers: EngineProducers) -> bool:
        """Publishes a message of records; False when there is no room for it."""
        message = Message(
            EVENTS_ADDRESS,
            self._protocol,
            self._head,
            "\n".join(lines).encode() + b"\n",
            body_kind=TEXT_BODY,
            durable=True,
            timestamp_ms=now,
            annotations={RECORDS_MARK: str(len(lines))},
        )
        try:
            result = producers.send(message, routing=MULTICAST)
        except (InvariantError, StorageError):
            raise
        except BrokerError:
            return False
        return result not in (BLOCKED, DROPPED)


class _FlushTimer(Timer):
    def __init__(self, records: EventRecords) -> None:
        self._records = records

    def on_timer(self, now: MonotonicNs) -> None:
        self._records.on_timer()


def _has_brokers_time(message: Message) -> bool:
    """Whether the time of a message is when this broker accepted it, and not the sender's."""
    return message.protocol.startswith(_FAMILY)
