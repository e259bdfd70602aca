"""Entry point of the command ``delosmq``.

``delosmq run`` is on the way of every restart, so it is looked at first and loads nothing of the other commands.
"""

import sys


def app_main() -> None:
    """Runs the command line of this process and exits."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["run"]:
        from delosmq.cli.run import run_main

        sys.exit(run_main(arguments[1:]))
    from delosmq.cli.app import run_app

    sys.exit(run_app())


if __name__ == "__main__":
    app_main()
