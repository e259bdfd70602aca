"""Addresses and what belongs to them: queues by name, wildcards, diverts, histories, duplicate ids."""
