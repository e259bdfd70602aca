"""OpenWire, versions 1 to 12, as bytes: commands, decoder, encoders, and the conversion of its messages.

`layout` is one table of what travels; `codec` reads and writes by it, loosely and tightly encoded, with and without
cached values; `messages`, `heads` and `dispatch` are the short way of messages through a broker.

Source: the marshallers of ActiveMQ's Java client (activemq-client and activemq-openwire-legacy).
"""
