"""The thread in which the blocking client has its event loop, and how other threads work in that loop."""
