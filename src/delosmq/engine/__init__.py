"""The broker without sockets, disks and clocks: addresses, queues, dispatch, acknowledgement, leases.

One thread owns an engine. Commands change memory at once and record what they did through `log`.
"""
