"""The command ``delosmq``. Each command loads only what it needs."""
