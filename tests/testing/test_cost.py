"""What a test pays for a broker of its own: counted, as the clock depends on what else a machine does."""

import subprocess
import sys

PROGRAM = """\
import sys, threading
from benchmarks.kit import one_message

opened, calls = [], [0]

def note(event, given):
    if event == "open" and noting:
        opened.append(str(given[0]))

def count(frame, event, given):
    if event == "call":
        calls[0] += 1

noting = False
for _ in range(2):
    one_message(ports=False)
sys.addaudithook(note)
noting = True
one_message(ports=False)
noting = False
threading.setprofile(count)
sys.setprofile(count)
one_message(ports=False)
sys.setprofile(None)
print(calls[0], *opened)
"""
MOST_CALLS = 16_000
"""Of functions in Python, by all threads; 12,500 are made (and 19,200 when each broker looked at all packages that are
installed, and read the declarations of its management messages)."""


def test_a_broker_in_memory_reads_no_file_once_one_has_run_and_makes_few_calls() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60)
    calls, *opened = done.stdout.split()
    assert opened == []
    assert int(calls) < MOST_CALLS
