"""``python -m delosmq``: the command ``delosmq``."""

from delosmq.cli.main import app_main

if __name__ == "__main__":
    app_main()
