"""Converts the configuration of ActiveMQ Classic."""

from delosmq.config.activemq_xml.convert import Conversion, convert_activemq_xml
from delosmq.config.activemq_xml.remarks import Kind, Remark
from delosmq.config.activemq_xml.write import ConvertedInstance, check_conversion, write_instance

__all__ = [
    "Conversion",
    "ConvertedInstance",
    "Kind",
    "Remark",
    "check_conversion",
    "convert_activemq_xml",
    "write_instance",
]
