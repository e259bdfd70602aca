"""The resources that management messages may name. One more is one entry here, and its class."""

from delosmq.engine.api import EngineBroker
from delosmq.manage.control.broker import BrokerControl, BrokerStatus
from delosmq.manage.messages.broker_resource import BROKER_FIELDS, BrokerResource
from delosmq.manage.messages.declarations import ResourceKind


def resource_kinds(broker: EngineBroker, control: BrokerControl) -> list[ResourceKind]:
    """Those of every broker."""
    the_broker = BrokerResource(control, broker.settings)
    return [
        ResourceKind("broker", BrokerResource, lambda login, name: the_broker, info=BrokerStatus, fields=BROKER_FIELDS),
    ]
