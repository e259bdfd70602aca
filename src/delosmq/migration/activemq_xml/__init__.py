"""Converts the configuration of ActiveMQ Classic."""

from delosmq.migration.activemq_xml.conversion_report import Remark, RemarkKind
from delosmq.migration.activemq_xml.converter import ConvertedBroker, convert_activemq_xml
from delosmq.migration.activemq_xml.instance_writer import check_conversion, write_instance

__all__ = [
    "ConvertedBroker",
    "Remark",
    "RemarkKind",
    "check_conversion",
    "convert_activemq_xml",
    "write_instance",
]
