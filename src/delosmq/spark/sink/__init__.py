"""The sink `delosmq`: its writers and its options."""
