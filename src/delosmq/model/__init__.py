"""The vocabulary every layer shares: messages, settings, errors, ids and ports. Imports nothing of the other layers."""
