"""The configuration file of a broker, in the format of Apache ActiveMQ Artemis."""

from delosmq.config.broker_xml.explain import names_that_stop
from delosmq.config.broker_xml.load import LoadedConfiguration, load_broker_xml

__all__ = ["LoadedConfiguration", "load_broker_xml", "names_that_stop"]
