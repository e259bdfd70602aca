"""Sessions of CORE, the protocol of Apache ActiveMQ Artemis."""
