"""broker.xml, as Artemis reads it: parsed, checked against the catalogue, and turned into settings."""

from delosmq.config.broker_xml.load import LoadedConfiguration, load_broker_xml

__all__ = ["LoadedConfiguration", "load_broker_xml"]
