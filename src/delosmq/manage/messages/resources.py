"""The resources that management messages may name. One more is one entry here, and its class."""

from delosmq.engine.api import EngineBroker
from delosmq.manage.control.addresses import AddressControl, AddressInfo
from delosmq.manage.control.broker import BrokerControl, BrokerStatus
from delosmq.manage.control.messages import MessageControl
from delosmq.manage.control.queue_info import QueueInfo
from delosmq.manage.control.queues import QueueControl
from delosmq.manage.control.transactions import TransactionControl
from delosmq.manage.messages.acceptor_resource import AcceptorResource, find_acceptor
from delosmq.manage.messages.address_resource import ADDRESS_FIELDS, AddressResource
from delosmq.manage.messages.broker_resource import BROKER_FIELDS, BrokerResource, Controls
from delosmq.manage.messages.declarations import ResourceKind
from delosmq.manage.messages.queue_resource import QUEUE_FIELDS, QueueResource
from delosmq.model.conversion import Conversions
from delosmq.security.access import AccessControl


def controls_of(
    broker: EngineBroker, status: BrokerControl, access: AccessControl, conversions: Conversions
) -> Controls:
    """What management messages ask, as HTTP does."""
    queues = QueueControl(broker, access)
    return Controls(
        status,
        queues,
        AddressControl(broker, access),
        MessageControl(broker, queues, conversions),
        TransactionControl(broker, access),
    )


def resource_kinds(broker: EngineBroker, controls: Controls) -> list[ResourceKind]:
    """Those of every broker. A name of one that is not there is told by what is asked of it."""
    the_broker = BrokerResource(broker, controls)
    return [
        ResourceKind("broker", BrokerResource, lambda login, name: the_broker, info=BrokerStatus, fields=BROKER_FIELDS),
        ResourceKind(
            "address.",
            AddressResource,
            lambda login, name: AddressResource(broker, controls.addresses, controls.queues, name),
            info=AddressInfo,
            fields=ADDRESS_FIELDS,
        ),
        ResourceKind(
            "queue.",
            QueueResource,
            lambda login, name: QueueResource(broker, controls.queues, controls.messages, name),
            info=QueueInfo,
            fields=QUEUE_FIELDS,
        ),
        ResourceKind("acceptor.", AcceptorResource, lambda login, name: find_acceptor(broker.settings.acceptors, name)),
    ]
