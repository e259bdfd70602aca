"""Management operations, one class per resource. Plain calls on the engine's thread; answers are plain values.

Each operation checks the permission it needs: ``view`` to look, ``edit`` to change, ``consume`` for leases, always on
the address that the resource belongs to. An answer may leave once the log's position after the call is synced.
"""
