"""Converts the configuration of ActiveMQ Classic."""

from delosmq.migration.activemq_xml.conversion_report import Remark, RemarkKind
from delosmq.migration.activemq_xml.convert import ConvertedBroker, convert_activemq_xml
from delosmq.migration.activemq_xml.write import ConvertedInstance, check_conversion, write_instance

__all__ = [
    "ConvertedBroker",
    "ConvertedInstance",
    "Remark",
    "RemarkKind",
    "check_conversion",
    "convert_activemq_xml",
    "write_instance",
]
