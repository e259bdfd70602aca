"""Converts the configuration of ActiveMQ Classic."""

from delosmq.migration.activemq_xml.conversion_report import Kind, Remark
from delosmq.migration.activemq_xml.convert import Conversion, convert_activemq_xml
from delosmq.migration.activemq_xml.write import ConvertedInstance, check_conversion, write_instance

__all__ = [
    "Conversion",
    "ConvertedInstance",
    "Kind",
    "Remark",
    "check_conversion",
    "convert_activemq_xml",
    "write_instance",
]
