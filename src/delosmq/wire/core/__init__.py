"""CORE, the protocol of Apache ActiveMQ Artemis, as bytes: its packets in the wire versions 129 to 136.

A packet's constructor declares its fields in their order; `codec` reads and writes by that. `message_packets` and
`message` are the short way of messages through a broker; `conversion` keeps them and meets other protocols, with
`bodies`, and `dispatch` makes of what is kept what consumers get. Nothing of the broker speaks it yet.

Source: the packets of artemis-core-client, and CoreMessage.
"""
