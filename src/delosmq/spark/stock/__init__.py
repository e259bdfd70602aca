"""The source for brokers that have no leases: queues and topics of ActiveMQ Classic and Artemis, over OpenWire."""
