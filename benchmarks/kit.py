"""What a test pays for a broker of the test kit that is made, used with one message, and gone.

    python -m benchmarks.kit --rounds 300

In one warm process, without HTTP; milliseconds by the clock, and of the processor by all threads. The aims are those of
the kit: under 5 ms with ``vm://``, under 15 ms with a socket.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from delosmq.testing import BrokerFixture

_WARM_UP: Final = 5
_MS_PER_S: Final = 1_000
_WAIT_S: Final = 10.0


def one_message(*, ports: bool) -> None:
    """The whole life of a broker."""
    with BrokerFixture(ports=ports) as broker, broker.connect() as client:
        client.send("orders", "one pot of tea")
        with client.create_session() as session:
            message = session.create_consumer("orders").receive(_WAIT_S)
        assert message is not None


def measured(work: Callable[[], None], rounds: int) -> str:
    for _ in range(_WARM_UP):
        work()
    clock, processor = [], []
    for _ in range(rounds):
        began, used = time.perf_counter(), time.process_time()
        work()
        clock.append((time.perf_counter() - began) * _MS_PER_S)
        processor.append((time.process_time() - used) * _MS_PER_S)
    return (
        f"median {statistics.median(clock):.1f} ms, least {min(clock):.1f} ms;"
        f" of the processor {statistics.median(processor):.1f} and {min(processor):.1f} ms"
    )


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kit", description=__doc__)
    parser.add_argument("--rounds", type=int, default=300)
    rounds = parser.parse_args(given).rounds
    for name, ports in (("vm://", False), ("socket", True)):
        sys.stdout.write(f"{name}: {measured(partial(one_message, ports=ports), rounds)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
