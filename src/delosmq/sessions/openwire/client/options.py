"""What a client may be told to do differently. The defaults are those of the Java client, and so are the names: a field
is called in Python as in a URL, but for capitals and for its unit.

Source: ActiveMQConnectionFactory, ActiveMQPrefetchPolicy, RedeliveryPolicy, ConsumerInfo and OpenWireFormatFactory of
the Java client.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from delosmq.model.ports import Random
from delosmq.wire.openwire.negotiation import (
    DEFAULT_INACTIVITY_MS,
    DEFAULT_INITIAL_DELAY_MS,
    DEFAULT_MAX_FRAME_BYTES,
)

UNLIMITED: Final = -1


class AckMode(Enum):
    """How the messages of a session are acknowledged; the numbers are those of JMS and of ActiveMQ."""

    TRANSACTED = 0
    AUTO = 1
    CLIENT = 2
    DUPS_OK = 3
    INDIVIDUAL = 4


@dataclass(frozen=True)
class PrefetchPolicy:
    """How many messages a consumer is sent before it has acknowledged any. With 0 it asks for each.

    Attributes:
        optimize_durable_topic_prefetch: of durable subscribers in AUTO sessions.
        maximum_pending_message_limit: of topics: the broker drops what is more; 0 for the broker's own limit.
    """

    queue_prefetch: int = 1000
    queue_browser_prefetch: int = 500
    topic_prefetch: int = 32767
    durable_topic_prefetch: int = 100
    optimize_durable_topic_prefetch: int = 1000
    maximum_pending_message_limit: int = 0


@dataclass(frozen=True)
class RedeliveryPolicy:
    """What happens to messages that the application gives back.

    Attributes:
        maximum_redeliveries: one more, and the broker moves the message to its dead letters; -1 for no end.
        initial_redelivery_delay_ms: before the second delivery.
        redelivery_delay_ms: before each later one.
        use_exponential_back_off: each delay is the one before, multiplied.
        maximum_redelivery_delay_ms: limits that; -1 for no limit.
        use_collision_avoidance: delays from the second on vary by ``collision_avoidance_percent`` either way.
        pre_dispatch_check: of transacted sessions: what arrives with too many deliveries goes to the dead letters.
    """

    maximum_redeliveries: int = 6
    initial_redelivery_delay_ms: int = 1000
    redelivery_delay_ms: int = 1000
    use_exponential_back_off: bool = False
    back_off_multiplier: float = 5.0
    maximum_redelivery_delay_ms: int = UNLIMITED
    use_collision_avoidance: bool = False
    collision_avoidance_percent: int = 15
    pre_dispatch_check: bool = True

    def allows(self, redeliveries: int) -> bool:
        """Whether a message may be delivered once more that was delivered so often before."""
        return self.maximum_redeliveries == UNLIMITED or redeliveries <= self.maximum_redeliveries

    def delay_ms(self, redeliveries: int, chance: Random) -> int:
        """How long a message waits that is delivered again for the time ``redeliveries``, counted from 1."""
        delay = self.initial_redelivery_delay_ms
        for _ in range(redeliveries - 1):
            following = self._next_ms(delay, chance)
            if following == delay and not self.use_collision_avoidance:
                break
            delay = following
        return delay

    def _next_ms(self, before_ms: int, chance: Random) -> int:
        delay = self.redelivery_delay_ms
        if before_ms > 0 and self.use_exponential_back_off and self.back_off_multiplier > 1:
            delay = int(before_ms * self.back_off_multiplier)
            limit = self.maximum_redelivery_delay_ms
            if limit != UNLIMITED and delay > limit:
                delay = max(limit, self.redelivery_delay_ms)
        if self.use_collision_avoidance:
            factor = self.collision_avoidance_percent / 100
            delay += int(delay * factor * (2 * chance.fraction() - 1))
        return delay


@dataclass(frozen=True)
class WireFormatOptions:
    """What is offered to the broker; both sides keep to the smaller and plainer of their wishes."""

    version: int = 12
    max_frame_size_bytes: int = DEFAULT_MAX_FRAME_BYTES
    max_inactivity_duration_ms: int = DEFAULT_INACTIVITY_MS
    max_inactivity_duration_inital_delay_ms: int = DEFAULT_INITIAL_DELAY_MS
    tight_encoding_enabled: bool = False
    cache_enabled: bool = False
    stack_trace_enabled: bool = False
    tcp_no_delay_enabled: bool = True


@dataclass(frozen=True)
class ClientOptions:
    """What a connection does, and what its sessions, producers and consumers do unless they are told otherwise.

    Attributes:
        optimize_acknowledge: AUTO sessions acknowledge ranges, at 0.65 of the prefetch.
        optimize_acknowledge_time_out_ms: or when so much time has passed at the next message.
        optimized_ack_scheduled_ack_interval_ms: or by a timer; 0 for none.
        use_async_send: persistent messages are not confirmed to their producer, as others are not.
        always_sync_send: all messages are.
        send_timeout_ms: an answer to a message must come within this; 0 for no limit.
        send_acks_async: False waits for the broker's answer to acknowledgements outside transactions, too.
        close_timeout_ms: so long `close` waits for the broker's answer.
        non_blocking_redelivery: other messages are delivered while one waits to be delivered again.
        transacted_individual_ack: messages of a transaction are acknowledged one by one.
        watch_topic_advisories: False does without news of temporary destinations.
        producer_window_size_bytes: of what was sent without an answer; 0 for no limit.
        check_for_duplicates: of connections that reconnect: a message that came already is not delivered again.
    """

    client_id: str = ""
    optimize_acknowledge: bool = False
    optimize_acknowledge_time_out_ms: int = 300
    optimized_ack_scheduled_ack_interval_ms: int = 0
    use_async_send: bool = False
    always_sync_send: bool = False
    send_timeout_ms: int = 0
    send_acks_async: bool = True
    dispatch_async: bool = True
    close_timeout_ms: int = 15_000
    connect_response_timeout_ms: int = 0
    non_blocking_redelivery: bool = False
    transacted_individual_ack: bool = False
    consumer_expiry_check_enabled: bool = True
    watch_topic_advisories: bool = True
    exclusive_consumer: bool = False
    use_retroactive_consumer: bool = False
    optimized_message_dispatch: bool = True
    disable_time_stamps_by_default: bool = False
    producer_window_size_bytes: int = 0
    use_compression: bool = False
    check_for_duplicates: bool = True
    audit_depth: int = 2048
    audit_maximum_producer_number: int = 64
    prefetch_policy: PrefetchPolicy = field(default_factory=PrefetchPolicy)
    redelivery_policy: RedeliveryPolicy = field(default_factory=RedeliveryPolicy)
    wire_format: WireFormatOptions = field(default_factory=WireFormatOptions)


@dataclass(frozen=True)
class DestinationOptions:
    """What ``?consumer.NAME=`` behind a destination says; None leaves it to the connection."""

    prefetch_size: int | None = None
    maximum_pending_message_limit: int | None = None
    dispatch_async: bool | None = None
    exclusive: bool | None = None
    priority: int | None = None
    retroactive: bool | None = None
    selector: str | None = None
    no_local: bool | None = None
    no_range_acks: bool | None = None


@dataclass(frozen=True)
class ProducerOptions:
    """What ``?producer.NAME=`` behind a destination says, likewise."""

    window_size_bytes: int | None = None
    dispatch_async: bool | None = None


NO_PRODUCER_OPTIONS: Final = ProducerOptions()

DESTINATION_KINDS: Final[dict[str, type]] = {
    "prefetch_size": int,
    "maximum_pending_message_limit": int,
    "dispatch_async": bool,
    "exclusive": bool,
    "priority": int,
    "retroactive": bool,
    "selector": str,
    "no_local": bool,
    "no_range_acks": bool,
}
PRODUCER_KINDS: Final[dict[str, type]] = {"window_size_bytes": int, "dispatch_async": bool}
"""What each of these is, when it is anything."""
