"""Sees to it that no process outlives the program that started it, however that one ends.

A process that is to be started is first this script: it forks a watcher, then becomes the command. The watcher reads a
pipe of which the starting program has the other end. When that is closed the watcher kills its parent, the command.
"""

import os
import signal
import sys
from typing import NoReturn

_FIRST_FREE = 3


def run(pipe: int, command: list[str]) -> NoReturn:
    """Becomes ``command``, with a watcher at ``pipe``."""
    watched = os.getpid()
    if os.fork() == 0:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        # What the command writes ends when it does, not when its watcher does.
        for descriptor in range(_FIRST_FREE):
            os.close(descriptor)
        while os.read(pipe, 1):
            pass
        # Another process may have its number by now: then this one has another parent.
        if os.getppid() == watched:
            os.kill(watched, signal.SIGKILL)
        os._exit(0)
    os.close(pipe)
    os.execv(command[0], command)


if __name__ == "__main__":
    run(int(sys.argv[1]), sys.argv[2:])
