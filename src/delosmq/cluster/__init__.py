"""Brokers that find each other. The machines are pure: datagrams and time come in, what is to be done goes out."""
