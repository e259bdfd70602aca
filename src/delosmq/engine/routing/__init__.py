"""The way of a message into queues: sends, diverts, dead letters, senders that wait."""
