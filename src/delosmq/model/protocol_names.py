"""The protocols that clients may speak, by the names that ``protocols=`` of an acceptor has for them."""

from typing import Final

STOMP: Final = "STOMP"
OPENWIRE: Final = "OPENWIRE"
CORE: Final = "CORE"
SERVED_PROTOCOLS: Final = (STOMP, OPENWIRE, CORE)
"""Detected in this order; the class of each stands in `delosmq.composition`."""
LATER_PROTOCOLS: Final = ("AMQP", "HORNETQ", "MQTT")
"""Those of Artemis that are not in effect yet."""
