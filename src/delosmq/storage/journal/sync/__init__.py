"""Who syncs and prepares files in the background: a process, or threads."""
