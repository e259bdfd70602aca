"""The configuration file of a broker, in the format of Apache ActiveMQ Artemis."""

from delosmq.config.broker_xml.loader import LoadedConfiguration, load_broker_xml
from delosmq.config.broker_xml.manual_tables import names_that_stop

__all__ = ["LoadedConfiguration", "load_broker_xml", "names_that_stop"]
