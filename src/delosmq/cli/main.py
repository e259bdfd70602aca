"""Entry point of the command ``delosmq``.

``delosmq run`` is on the way of every restart, so it is looked at first and loads nothing of the other commands.
"""

import os
import signal
import sys
from typing import Final, NoReturn

INTERRUPTED: Final = 130
"""What shells give for a command that Ctrl-C ended."""


def app_main() -> None:
    """Runs the command line of this process and exits."""
    arguments = sys.argv[1:]
    handled = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if handled:
        signal.signal(signal.SIGINT, _leave)
    if arguments[:1] == ["run"]:
        from delosmq.cli.run import run_main

        # Until the broker listens to signals itself: nothing is promised to a client before.
        sys.exit(run_main(arguments[1:]))
    from delosmq.cli.app import run_app

    if handled:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(run_app())


def _leave(*_: object) -> NoReturn:
    """Ctrl-C while modules are loaded. An exception here would come up in the middle of any of them, as a trace."""
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    app_main()
