"""Syncers sync and prepare files in the background: a process, or threads."""
