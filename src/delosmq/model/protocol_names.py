"""The protocols that clients may speak, by the names that ``protocols=`` of an acceptor has for them."""

from typing import Final

STOMP: Final = "STOMP"
OPENWIRE: Final = "OPENWIRE"
SERVED_PROTOCOLS: Final = (STOMP, OPENWIRE)
"""Detected in this order; the class of each stands in `delosmq.composition`."""
LATER_PROTOCOLS: Final = ("AMQP", "CORE", "HORNETQ", "MQTT")
"""Those of Artemis that are not in effect yet."""
