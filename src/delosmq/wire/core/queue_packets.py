"""Packets that create addresses and queues, delete and ask about them."""

from collections.abc import Callable
from typing import Final

from delosmq.wire.core.packet import (
    ALL_ATTRIBUTES,
    ATTRIBUTES_SINCE_2_7,
    CREATE_ADDRESS,
    CREATE_QUEUE,
    CREATE_QUEUE_V2,
    CREATE_SHARED_QUEUE,
    CREATE_SHARED_QUEUE_V2,
    DEFAULTS_SINCE_2_7,
    DELETE_QUEUE,
    EMPTY,
    EXCLUSIVE_AND_LAST_VALUE,
    SESS_BINDINGQUERY,
    SESS_BINDINGQUERY_RESP,
    SESS_BINDINGQUERY_RESP_V2,
    SESS_BINDINGQUERY_RESP_V3,
    SESS_BINDINGQUERY_RESP_V4,
    SESS_BINDINGQUERY_RESP_V5,
    SESS_QUEUEQUERY,
    SESS_QUEUEQUERY_RESP,
    SESS_QUEUEQUERY_RESP_V2,
    SESS_QUEUEQUERY_RESP_V3,
    Packet,
    PacketFields,
    QueueAttributes,
)


class CreateAddressPacket(Packet):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        self.code = CREATE_ADDRESS
        self.address = fields.simple_string("address")
        self.routing_types = fields.routings("routing_types")
        self.requires_response = fields.flag("requires_response")
        self.auto_created = fields.flag("auto_created")


class CreateQueuePacket(Packet):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        self.code = CREATE_QUEUE
        self.address = fields.simple_string("address")
        self.queue_name = fields.simple_string("queue_name")
        self.filter_string = fields.simple_string_or_null("filter_string")
        self.durable = fields.flag("durable")
        self.temporary = fields.flag("temporary")
        self.requires_response = fields.flag("requires_response")


class CreateQueueV2(CreateQueuePacket):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        super().__init__(fields)
        self.code = CREATE_QUEUE_V2
        self.auto_created = fields.flag("auto_created")
        self.routing_type = fields.routing("routing_type")
        self.max_consumers = fields.int32("max_consumers", -1)
        self.purge_on_no_consumers = fields.flag("purge_on_no_consumers")
        fields.end_for_older()
        self.attributes = fields.attributes("attributes", QueueAttributes(), ALL_ATTRIBUTES)


class CreateSharedQueue(Packet):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        self.code = CREATE_SHARED_QUEUE
        self.address = fields.simple_string("address")
        self.queue_name = fields.simple_string("queue_name")
        self.filter_string = fields.simple_string_or_null("filter_string")
        self.durable = fields.flag("durable")
        self._after_durable(fields)
        self.requires_response = fields.flag("requires_response")

    def _after_durable(self, fields: PacketFields) -> None:
        """Where the later form has a field more."""


class CreateSharedQueueV2(CreateSharedQueue):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        self.routing_type = EMPTY.routing("routing_type")
        super().__init__(fields)
        self.code = CREATE_SHARED_QUEUE_V2
        fields.end_for_older()
        self.max_consumers = fields.int32_or_null("max_consumers")
        self.purge_on_no_consumers = fields.flag_or_null("purge_on_no_consumers")
        self.attributes = fields.attributes("attributes", QueueAttributes(), ALL_ATTRIBUTES)

    def _after_durable(self, fields: PacketFields) -> None:
        fields.routing("routing_type")


class DeleteQueue(Packet):
    def __init__(self, queue_name: str = "", fields: PacketFields = EMPTY) -> None:
        self.code = DELETE_QUEUE
        fields.simple_string("queue_name")
        self.queue_name = queue_name


class QueueQuery(Packet):
    def __init__(self, queue_name: str = "", fields: PacketFields = EMPTY) -> None:
        self.code = SESS_QUEUEQUERY
        fields.simple_string("queue_name")
        self.queue_name = queue_name


class QueueQueryResponse(Packet):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        self.code = SESS_QUEUEQUERY_RESP
        self.exists = fields.flag("exists")
        self.durable = fields.flag("durable")
        self.temporary = fields.flag("temporary")
        self.consumer_count = fields.int32("consumer_count")
        self.message_count = fields.int64("message_count")
        self.filter_string = fields.simple_string_or_null("filter_string")
        self.address = fields.simple_string_or_null("address")
        self.name = fields.simple_string_or_null("name")


class QueueQueryResponseV2(QueueQueryResponse):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        super().__init__(fields)
        self.code = SESS_QUEUEQUERY_RESP_V2
        self.auto_create_queues = fields.flag("auto_create_queues")


class QueueQueryResponseV3(QueueQueryResponseV2):
    """What clients of 129 and later are answered."""

    def __init__(self, fields: PacketFields = EMPTY) -> None:
        super().__init__(fields)
        attributes = QueueAttributes()
        self.code = SESS_QUEUEQUERY_RESP_V3
        self.auto_created = fields.flag("auto_created")
        self.purge_on_no_consumers = fields.flag("purge_on_no_consumers")
        self.routing_type = fields.routing("routing_type")
        self.max_consumers = fields.int32("max_consumers", -1)
        fields.end_for_older()
        self.attributes = fields.attributes("attributes", attributes, EXCLUSIVE_AND_LAST_VALUE)
        fields.end_for_older()
        self.default_consumer_window_size = fields.int32_or_null("default_consumer_window_size")
        fields.end_for_older()
        fields.attributes("attributes", attributes, ATTRIBUTES_SINCE_2_7)
        fields.end_for_older()
        self.configuration_managed = fields.flag_or_null("configuration_managed")


class BindingQuery(Packet):
    def __init__(self, address: str = "", fields: PacketFields = EMPTY) -> None:
        self.code = SESS_BINDINGQUERY
        fields.simple_string("address")
        self.address = address


class BindingQueryResponse(Packet):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        self.code = SESS_BINDINGQUERY_RESP
        self.exists = fields.flag("exists")
        self.queue_names = fields.simple_strings("queue_names")


class BindingQueryResponseV2(BindingQueryResponse):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        super().__init__(fields)
        self.code = SESS_BINDINGQUERY_RESP_V2
        self.auto_create_queues = fields.flag("auto_create_queues")


class BindingQueryResponseV3(BindingQueryResponseV2):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        super().__init__(fields)
        self.code = SESS_BINDINGQUERY_RESP_V3
        self.auto_create_addresses = fields.flag("auto_create_addresses")


class BindingQueryResponseV4(BindingQueryResponseV3):
    """What clients of 129 to 134 are answered.

    Attributes:
        default_max_consumers, default_purge_on_no_consumers, attributes: of queues that would be created there.
    """

    def __init__(self, fields: PacketFields = EMPTY) -> None:
        super().__init__(fields)
        attributes = QueueAttributes()
        self.code = SESS_BINDINGQUERY_RESP_V4
        self.default_purge_on_no_consumers = fields.flag("default_purge_on_no_consumers")
        self.default_max_consumers = fields.int32("default_max_consumers", -1)
        fields.end_for_older()
        self.attributes = fields.attributes("attributes", attributes, EXCLUSIVE_AND_LAST_VALUE)
        fields.end_for_older()
        fields.attributes("attributes", attributes, DEFAULTS_SINCE_2_7)


class BindingQueryResponseV5(BindingQueryResponseV4):
    """What clients of 135 and later are answered."""

    def __init__(self, fields: PacketFields = EMPTY) -> None:
        super().__init__(fields)
        self.code = SESS_BINDINGQUERY_RESP_V5
        fields.end_for_older()
        self.supports_multicast = fields.flag("supports_multicast")
        self.supports_anycast = fields.flag("supports_anycast")


QUEUE_PACKETS: Final[tuple[Callable[..., Packet], ...]] = (
    CreateAddressPacket,
    CreateQueuePacket,
    CreateQueueV2,
    CreateSharedQueue,
    CreateSharedQueueV2,
    DeleteQueue,
    QueueQuery,
    QueueQueryResponse,
    QueueQueryResponseV2,
    QueueQueryResponseV3,
    BindingQuery,
    BindingQueryResponse,
    BindingQueryResponseV2,
    BindingQueryResponseV3,
    BindingQueryResponseV4,
    BindingQueryResponseV5,
)
